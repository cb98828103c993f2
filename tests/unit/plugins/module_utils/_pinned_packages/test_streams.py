# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module streams, of the files and the listing of dnf 4.14."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.streams import (
    Switch,
    enabled,
    parse_list,
    switches,
)

FILE = "[nvidia-driver]\nname=nvidia-driver\nstream=580-open\nprofiles=\nstate=enabled\n"
RESET = "[nvidia-driver]\nname=nvidia-driver\nstream=\nprofiles=\nstate=\n"
LISTING = """\
Last metadata expiration check: 0:00:01 ago on Sat Nov 21 12:35:24 2026.
Lab stand-ins with content
Name          Stream   Profiles Summary
nvidia-driver 580-open default  Driver 
nvidia-driver 590-open [e] default  Driver 

Another one
Name          Stream   Profiles Summary
nvidia-driver 580-open default  Driver 
nodejs        22       common [d]  Javascript runtime

Hint: [d]efault, [e]nabled, [x]disabled, [i]nstalled
"""  # noqa: W291


def test_which_stream_is_enabled() -> None:
    assert enabled({"a": FILE, "b": "no section"}) == {"nvidia-driver": "580-open"}
    assert enabled({"a": RESET}) == {}


def test_a_stream_is_enabled_or_switched_or_reset() -> None:
    wanted = ["nvidia-driver:590-open"]
    assert switches(wanted, True, {}) == (Switch("nvidia-driver", "", "590-open"),)
    (switch,) = switches(wanted, True, {"a": FILE})
    assert switch.sentence == "enable module stream nvidia-driver:590-open instead of nvidia-driver:580-open"
    assert switches(["nvidia-driver:580-open"], True, {"a": FILE}) == ()
    # What was enabled by somebody else stays.
    assert switches(wanted, False, {"a": FILE}) == ()
    (switch,) = switches(["nvidia-driver:580-open"], False, {"a": FILE})
    assert switch.sentence == "reset module stream nvidia-driver:580-open"


def test_which_streams_there_are() -> None:
    assert parse_list(LISTING) == {"nvidia-driver": ("580-open", "590-open"), "nodejs": ("22",)}
    assert parse_list("") == {}
