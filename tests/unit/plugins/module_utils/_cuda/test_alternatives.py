# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What alternatives shows, and what is done about it."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda import alternatives
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda.alternatives import Alternatives

OLD, NEW = "/usr/local/cuda-12.8", "/usr/local/cuda-13.0"

#: The formats of chkconfig's alternatives.c (EL 9 and 10), and of Debian's update-alternatives.
EL = """\
cuda - status is manual.
 link currently points to /usr/local/cuda-12.8
/usr/local/cuda-12.8 - priority 128
/usr/local/cuda-13.0 - priority 130
Current `best' version is /usr/local/cuda-13.0.
"""
EL_FAMILY = """\
cuda - status is auto.
 link currently points to /usr/local/cuda-13.0
/usr/local/cuda-13.0 - family cuda priority 130
 slave cuda-13: /usr/local/cuda-13.0
Current `best' version is /usr/local/cuda-13.0.
"""
DEBIAN = """\
cuda - auto mode
  link best version is /usr/local/cuda-13.0
  link currently points to /usr/local/cuda-13.0
  link cuda is /usr/local/cuda
/usr/local/cuda-12.8 - priority 128
/usr/local/cuda-13.0 - priority 130
"""
BOTH = ((OLD, 128), (NEW, 130))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (EL, Alternatives("manual", OLD, BOTH)),
        (EL_FAMILY, Alternatives("auto", NEW, ((NEW, 130),))),
        (DEBIAN, Alternatives("auto", NEW, BOTH)),
        ("", Alternatives()),
    ],
)
def test_both_programs_are_understood(text: str, found: Alternatives) -> None:
    assert alternatives.parse(text) == found


@pytest.mark.parametrize(
    ("found", "path", "options"),
    [
        (Alternatives("manual", NEW, BOTH), NEW, []),
        (Alternatives("auto", NEW, BOTH), NEW, ["--set"]),
        (Alternatives("manual", OLD, BOTH), NEW, ["--set"]),
        (Alternatives("auto", OLD, ((OLD, 128),)), NEW, ["--install", "--set"]),
        (Alternatives(), NEW, ["--install", "--set"]),
        (Alternatives("manual", NEW, BOTH), "", ["--auto"]),
        (Alternatives("auto", NEW, BOTH), "", []),
        (Alternatives(), "", []),
    ],
)
def test_a_choice_is_made_by_hand_so_that_it_stays(found: Alternatives, path: str, options: list[str]) -> None:
    assert [command[1] for command in alternatives.commands(found, path)] == options


def test_the_commands() -> None:
    link = "/usr/local/cuda"
    assert alternatives.register(NEW)[1:] == ["--install", link, "cuda", NEW, "130"]
    assert alternatives.register("/usr/local/cuda-12.8")[-1] == "128"
    assert alternatives.choose(NEW)[1:] == ["--set", "cuda", NEW]


@pytest.mark.parametrize(
    ("before", "now", "options"),
    [
        (Alternatives("manual", OLD, BOTH), Alternatives("manual", NEW, BOTH), ["--set"]),
        (Alternatives("auto", NEW, BOTH), Alternatives("manual", OLD, BOTH), ["--auto"]),
        (Alternatives("manual", "/gone", BOTH), Alternatives("manual", NEW, BOTH), []),
        (Alternatives(), Alternatives("manual", NEW, BOTH), []),
    ],
)
def test_an_earlier_choice_comes_back(before: Alternatives, now: Alternatives, options: list[str]) -> None:
    assert [command[1] for command in alternatives.back(before, now)] == options
