# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a node looks for names of hosts."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_names


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("passwd: files\nhosts:      files dns myhostname\n", ["files", "dns", "myhostname"]),
        ("hosts: dns [!UNAVAIL=return] files # by hand", ["dns", "[!UNAVAIL=return]", "files"]),
        ("#hosts: files\nhosts:\n", []),
        ("passwd: files\n", None),
        ("", None),
        ("hosts: fi`x`les $(x) dns " + "y" * 41, ["dns"]),
        ("hosts:" + " a" * 99, ["a"] * facts_names.MOST_SOURCES),
    ],
)
def test_the_line_of_nsswitch_conf(text: str, sources: list[str] | None) -> None:
    assert facts_names.sources(text) == sources
