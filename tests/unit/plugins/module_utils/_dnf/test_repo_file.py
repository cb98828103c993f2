# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading repository files as dnf does, and changing one line of them."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf.repo_file import parse, with_option

CENTOS = """\
# CentOS
[baseos]
name=CentOS Stream $releasever - BaseOS
metalink=https://mirrors.example.com/metalink?repo=baseos&arch=$basearch
enabled=1
gpgkey=file:///etc/one
       file:///etc/two

[crb]
name = CRB
; a note
enabled = 0
"""


def test_sections_with_their_options() -> None:
    baseos, crb = parse("/x.repo", CENTOS)
    assert (baseos.id, baseos.is_enabled, crb.id, crb.is_enabled) == ("baseos", True, "crb", False)
    assert baseos.options["metalink"] == "https://mirrors.example.com/metalink?repo=baseos&arch=$basearch"
    assert baseos.options["gpgkey"] == "file:///etc/one\nfile:///etc/two"
    assert dict(crb.options) == {"name": "CRB", "enabled": "0"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", True), ("yes", True), ("True", True), ("on", True), ("0", False), ("no", False), ("false", False)],
)
def test_what_dnf_takes_for_enabled(value: str, expected: bool) -> None:
    assert parse("/x", f"[a]\nenabled={value}\n")[0].is_enabled is expected


def test_enabled_is_the_default() -> None:
    assert parse("/x", "[a]\nname=a\n")[0].is_enabled


def test_only_one_line_changes() -> None:
    assert with_option(CENTOS, "crb", "enabled", "1") == CENTOS.replace("enabled = 0", "enabled=1")


def test_line_ends_and_the_missing_last_one_stay() -> None:
    assert with_option("[a]\r\nenabled=0\r\nx=1", "a", "enabled", "1") == "[a]\r\nenabled=1\r\nx=1"
    assert with_option("[a]\nenabled=0", "a", "enabled", "1") == "[a]\nenabled=1"


def test_a_missing_option_comes_below_the_head() -> None:
    assert with_option("[a]\r\nname=a\r\n[b]\n", "a", "enabled", "0") == "[a]\r\nenabled=0\r\nname=a\r\n[b]\n"
    assert with_option("[a]", "a", "enabled", "0") == "[a]\nenabled=0\n"


def test_a_missing_section_comes_last() -> None:
    assert with_option("# empty", "main", "proxy", "http://x:1") == "# empty\n[main]\nproxy=http://x:1\n"
    assert with_option("", "main", "proxy", "http://x:1") == "[main]\nproxy=http://x:1\n"


def test_of_several_lines_one_is_left() -> None:
    """dnf takes the last, so leaving the others would mean nothing."""
    assert with_option("[a]\nenabled=0\nname=a\nenabled=0\n", "a", "enabled", "1") == "[a]\nenabled=1\nname=a\n"


def test_an_option_goes() -> None:
    assert with_option("[main]\nproxy=http://x:1\nbest=1\n", "main", "proxy", None) == "[main]\nbest=1\n"
    assert with_option("[main]\nbest=1\n", "main", "proxy", None) == "[main]\nbest=1\n"


def test_the_same_option_of_another_section_stays() -> None:
    assert with_option("[a]\nenabled=0\n[b]\nenabled=0\n", "b", "enabled", "1") == "[a]\nenabled=0\n[b]\nenabled=1\n"
