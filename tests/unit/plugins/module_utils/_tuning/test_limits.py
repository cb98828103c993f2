# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource limits: the files, who wins, and what a process really has."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import limits as core
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.dropins import ConfFile
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.limits import Limit, Login

MEMLOCK = Limit("memlock", None, "registered memory", "kernel_tuning_limits[0]")
NOFILE = Limit("nofile", 524288, "many peers", "kernel_tuning_limits[1]")
BOTH = [MEMLOCK, NOFILE]
OURS = ConfFile(core.PAM_PATH, core.texts(BOTH, keep_ipc=True)[core.PAM_PATH])
TRAIN = Login("train", 4000, 4000, ("train", "gpu"))

# Recorded on a node: cat /proc/self/limits
PROC = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max stack size            8388608              unlimited            bytes
Max core file size        0                    unlimited            bytes
Max processes             32768                32768                processes
Max open files            1024                 20000                files
Max locked memory         8388608              8388608              bytes
Max pending signals       96365                96365                signals
Max msgqueue size         819200               819200               bytes
Max nice priority         0                    0
Max realtime timeout      unlimited            unlimited            us
"""


def test_reading_the_list() -> None:
    found, problems = core.read_limits(
        [
            {"item": "memlock", "value": "unlimited", "reason": "registered memory"},
            {"item": "nofile", "value": 524288, "reason": "many peers"},
        ]
    )
    assert (found, problems) == (BOTH, [])


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"item": "memlok", "value": "1"}, ["kernel_tuning_limits[0].item = 'memlok'", "write memlock"]),
        ({"item": "rss", "value": "1"}, ["known are core, memlock,"]),
        ({"item": "nofile", "value": "-1"}, ["kernel_tuning_limits[0] (nofile) = '-1'", "above 0"]),
        ({"item": "nofile", "value": "64k"}, ["found 64k"]),
        ({"item": "nofile", "value": ""}, ["found nothing"]),
        ({"item": "nofile", "value": "unlimited"}, ["no unlimited number of open files"]),
        ({"item": "stack", "value": "unlimited"}, ["2 MiB"]),
        ({"item": "nproc", "value": "1", "reason": "two\nlines"}, ["kernel_tuning_limits[0].reason", "one line"]),
        ("text", ["kernel_tuning_limits[0] = 'text'"]),
    ],
)
def test_wrong_entries(entry: Any, words: list[str]) -> None:
    found = core.limit_problems([entry])
    assert len(found) == 1
    for word in words:
        assert word in found[0].sentence()


def test_all_problems_at_once() -> None:
    entries = [{"item": "nofile", "value": "1"}, {"item": "nofile", "value": "2"}, {"item": "x", "value": "1"}]
    assert [problem.variable for problem in core.limit_problems(entries)] == [
        "kernel_tuning_limits[1] (nofile)",
        "kernel_tuning_limits[2].item",
    ]
    assert core.limit_problems("text")[0].rule == core.ERR_LIST


def test_the_files() -> None:
    header = "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost.\n"
    manager = (
        f"{header}[Manager]\n# registered memory\nDefaultLimitMEMLOCK=infinity\n"
        "# many peers\nDefaultLimitNOFILE=524288\n"
    )
    assert core.texts(BOTH, keep_ipc=True) == {
        "/etc/security/limits.d/90-gpu-cluster.conf": (
            f"{header}\n# registered memory\n* - memlock unlimited\nroot - memlock unlimited\n"
            "\n# many peers\n* - nofile 524288\nroot - nofile 524288\n"
        ),
        "/etc/systemd/system.conf.d/90-gpu-cluster.conf": manager,
        "/etc/systemd/user.conf.d/90-gpu-cluster.conf": manager,
        "/etc/systemd/logind.conf.d/90-gpu-cluster.conf": f"{header}[Login]\n# {core.REASON_IPC}\nRemoveIPC=no\n",
    }


def test_nothing_wanted_is_no_file() -> None:
    assert set(core.texts([], keep_ipc=False).values()) == {""}


def test_memlock_is_in_kib_for_pam_and_in_bytes_for_systemd() -> None:
    limit = Limit("memlock", 8192)
    found = core.texts([limit], keep_ipc=False)
    assert "* - memlock 8192\n" in found[core.PAM_PATH]
    assert "DefaultLimitMEMLOCK=8388608\n" in found[core.SYSTEM_PATH]
    assert core.manager_properties([limit]) == {
        "DefaultLimitMEMLOCK": "8388608",
        "DefaultLimitMEMLOCKSoft": "8388608",
    }
    assert core.manager_properties([MEMLOCK])["DefaultLimitMEMLOCK"] == "infinity"


def pam(text: str, *logins: Login, name: str = "/etc/security/limits.d/99-site.conf") -> list[str]:
    """What another file of limits decides; it is read after ours, unless it is limits.conf."""
    other = ConfFile(name, text)
    files = [other, OURS] if name == core.PAM_MAIN else [OURS, other]
    found = core.pam_overrides(BOTH, files, logins or (core.ANYBODY, core.ROOT, TRAIN))
    return [f"{one.variable}: {one.sentence()}" for one in found]


def nofile(value: str, who: str, line: int = 1, path: str = "/etc/security/limits.d/99-site.conf") -> str:
    wins = "and wins over /etc/security/limits.d/90-gpu-cluster.conf"
    return f"kernel_tuning_limits[1] (nofile): {path} sets it to '{value}' for {who}, in line {line}, {wins}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# * - nofile 1\n\n", []),
        ("* soft nofile 1024\n", [nofile("1024", "every user")]),
        ("\n*\thard\tNOFILE\t1024 # note\n", [nofile("1024", "every user", 2)]),
        ("* - nofile 1024#note\n", [nofile("1024", "every user")]),
        ("* - nofile 524288\n* - memlock unlimited\n", []),
        ("* - memlock infinity\n* - memlock -1\n", []),
        ("% - nofile 1\n", [nofile("1", "every user")]),
        ("root - nofile 65536\n", [nofile("65536", "root")]),
        ("train - nofile 65536\n", [nofile("65536", "train")]),
        ("@gpu - nofile 65536\n", [nofile("65536", "train")]),
        ("@other - nofile 65536\nothers - nofile 1\n", []),
        ("4000:4010 - nofile 1\n", [nofile("1", "train")]),
        (":4000 - nofile 1\n", [nofile("1", "train")]),
        ("3000: - nofile 1\n", [nofile("1", "train")]),
        ("@3000:3999 - nofile 1\n5000: - nofile 1\nx:y - nofile 1\n: - nofile 1\n", []),
        ("* - nproc 100\n* soft nofile\n", []),
    ],
)
def test_a_later_file(text: str, found: list[str]) -> None:
    assert pam(text) == found


def test_an_earlier_file_wins_only_with_a_closer_line() -> None:
    assert pam("* - nofile 1\n@gpu - nofile 2\ntrain soft nofile 3\n", name=core.PAM_MAIN) == [
        nofile("3", "train", 3, core.PAM_MAIN),
        nofile("2", "train", 2, core.PAM_MAIN),
    ]


def test_a_line_that_ends_all_limits() -> None:
    found = pam("train -\n", TRAIN)
    assert found == [
        f"{name}: /etc/security/limits.d/99-site.conf ends all limits of train, in line 1"
        for name in ("kernel_tuning_limits[0] (memlock)", "kernel_tuning_limits[1] (nofile)")
    ]
    assert pam("* -\n") == []


def systemd(text: str, path: str = "/run/systemd/system.conf.d/99-site.conf") -> list[str]:
    own = ConfFile(core.SYSTEM_PATH, core.texts(BOTH, keep_ipc=True)[core.SYSTEM_PATH])
    found = core.systemd_overrides(BOTH, [own, ConfFile(path, text)], core.SYSTEM_PATH)
    return [one.sentence() for one in found]


@pytest.mark.parametrize(
    ("value", "wins"),
    [("1024", True), ("1024:524288", True), ("524288", False), ("512K", False), ("524288:512K", False), ("", True)],
)
def test_a_later_drop_in_of_systemd(value: str, wins: bool) -> None:
    sentence = (
        "/run/systemd/system.conf.d/99-site.conf is read after /etc/systemd/system.conf.d/90-gpu-cluster.conf "
        f"and sets DefaultLimitNOFILE={value}"
    )
    assert systemd(f"[Manager]\nDefaultLimitNOFILE={value}\n") == ([sentence] if wins else [])


def test_systemd_and_unlimited() -> None:
    assert systemd("[Manager]\nDefaultLimitMEMLOCK=infinity\n") == []
    assert len(systemd("[Manager]\nDefaultLimitMEMLOCK=8M\n")) == 1


@pytest.mark.parametrize(("value", "wins"), [("yes", True), ("no", False), ("off", False), ("", True)])
def test_a_later_drop_in_of_logind(value: str, wins: bool) -> None:
    ours = ConfFile(core.LOGIND_PATH, core.texts([], keep_ipc=True)[core.LOGIND_PATH])
    later = ConfFile("/etc/systemd/logind.conf.d/99-site.conf", f"[Login]\nRemoveIPC={value}\n")
    found = core.logind_overrides([ours, later])
    assert [one.path for one in found] == ([later.path] if wins else [])
    assert core.logind_overrides([later, ours]) == []


def test_what_a_process_has() -> None:
    found = core.parse_proc_limits(PROC)
    assert found["Max open files"] == ("1024", "20000")
    assert found["Max locked memory"] == ("8388608", "8388608")
    assert set(found) == {item.kernel for item in core.ITEMS.values()}
    assert core.by_item([NOFILE], found) == {"nofile": ["1024", "20000"]}


def test_differences_are_in_the_unit_of_the_variable() -> None:
    found = core.parse_proc_limits(PROC)
    assert core.differences(BOTH, found) == [(MEMLOCK, "8192"), (NOFILE, "1024 (soft) and 20000 (hard)")]
    assert core.differences([Limit("memlock", 8192), Limit("nproc", 32768)], found) == []
    assert core.differences([NOFILE], {}) == [(NOFILE, "nothing")]


def test_a_limit_out_of_reach() -> None:
    assert MEMLOCK.unreachable("8388608").sentence() == (
        "kernel_tuning_limits[0] (memlock) = unlimited: this node cannot go above 8192 (no right to raise hard limits)"
        ". Fix: lower it, or set kernel_tuning_unsettable: report when this node is a container."
    )
    assert "fs.nr_open" in NOFILE.unreachable("20000").sentence()
