# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line for a role."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output.grouping import Told
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output.units import Unit

HOSTS = {"n1", "n2", "n3"}


def line(check_mode: bool = False, **given: object) -> str:
    (only,) = Unit("base: ssh_mesh", 1.0, 13.0, **{"ran": HOSTS, **given}).lines(check_mode)  # type: ignore[arg-type]
    return " ".join(only.split())


def test_hosts_time_and_outcome() -> None:
    assert line() == "base: ssh_mesh 3 hosts 12 s no change"
    assert line(ran=set(), skipped=HOSTS) == "base: ssh_mesh 3 hosts 12 s skipped"
    assert line(ran={"localhost"}) == "base: ssh_mesh 1 host 12 s no change"
    assert line(ran={"localhost", "n1"}) == "base: ssh_mesh 1 host 12 s no change"
    assert line(changes={"n1": 2, "n2": 1}) == "base: ssh_mesh 3 hosts 12 s 3 changes on n1, n2"
    assert line(True, changes={"n1": 1}).endswith("1 change predicted on n1")
    assert line(failed={"n1"}, unreachable={"n2"}).endswith("FAILED on n1, UNREACHABLE: n2")
    assert line(failed={""}).endswith(" FAILED")


def test_notes_that_all_hosts_share_need_no_names() -> None:
    skipped = [Told(host, "", "no NVIDIA device: driver skipped") for host in sorted(HOSTS)]
    assert line(notes=skipped).endswith("12 s no NVIDIA device: driver skipped")
    assert line(notes=skipped[:2]).endswith("12 s n1, n2: no NVIDIA device: driver skipped")
    assert line(notes=[Told("", "", "3 members")]).endswith("12 s 3 members")


def test_long_notes_stand_below() -> None:
    found = list(Unit("x", 0, ran=HOSTS, notes=[Told("n1", "", "a" * 200), Told("n2", "", "b\nc")]).lines(False))
    assert found[0].endswith("no change") and found[1:] == [f"    n1: {'a' * 200}", "    n2:", "        b", "        c"]


def test_the_worst_counts() -> None:
    assert Unit("x", 0).state == "ok" and Unit("x", 0, changes={"a": 1}).state == "changed"
    assert Unit("x", 0, changes={"a": 1}, failed={"a"}, unreachable={"b"}).state == "failed"
    assert Unit("x", 0, unreachable={"b"}).state == "unreachable"
