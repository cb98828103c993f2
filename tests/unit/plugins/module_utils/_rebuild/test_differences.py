# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a rebuilt node differs from most of its peers."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._rebuild import differences


def snapshot(**given: Any) -> dict[str, Any]:
    values: dict[str, Any] = {name: {} for name in differences.SECTIONS}
    return {**values, "unknown_addresses": [], "problems": [], **given}


def test_the_same_everywhere_is_no_difference() -> None:
    same = snapshot(stack={"PyTorch": "2.13.0"})
    report = differences.compare(["gpu07"], {"gpu07": same, "gpu01": same, "gpu02": same})
    assert report.differences == () and report.peers == ("gpu01", "gpu02")
    assert differences.lines(report) == ["gpu07 does not differ from its 2 peers"]


def test_most_peers_decide_what_is_usual() -> None:
    nodes = {
        "gpu07": snapshot(stack={"driver": "580"}, package={"a.x86_64": "1", "extra.noarch": "3"}),
        "gpu01": snapshot(stack={"driver": "580"}, package={"a.x86_64": "2", "b.x86_64": "1"}),
        "gpu02": snapshot(stack={"driver": "575"}, package={"a.x86_64": "2", "b.x86_64": "1"}),
        "gpu03": snapshot(stack={"driver": "580"}, package={"a.x86_64": "1", "b.x86_64": "1"}),
    }
    report = differences.compare(["gpu07"], nodes)
    assert differences.lines(report) == [
        "gpu07 differs from its 3 peers in 3 point(s):",
        "  package a.x86_64: 1; 2 of 3 peers: 2",
        "  package b.x86_64: none; 3 of 3 peers: 1",
        "  package extra.noarch: 3; 3 of 3 peers: none",
    ]
    assert report.as_dict()["differences"][0] == {
        "host": "gpu07",
        "section": "package",
        "name": "a.x86_64",
        "value": "1",
        "usual": "2",
        "peers": 2,
        "of": 3,
    }


def test_peers_that_do_not_agree_accuse_nobody_who_is_like_one_of_them() -> None:
    peers = {"gpu01": snapshot(stack={"kernel": "a"}), "gpu02": snapshot(stack={"kernel": "b"})}
    like = differences.compare(["gpu07"], {"gpu07": snapshot(stack={"kernel": "b"}), **peers})
    assert like.differences == ()
    unlike = differences.compare(["gpu07"], {"gpu07": snapshot(stack={"kernel": "c"}), **peers})
    assert len(unlike.differences) == 1


def test_rebuilt_hosts_are_not_each_others_peers() -> None:
    new, old = snapshot(stack={"kernel": "new"}), snapshot(stack={"kernel": "old"})
    report = differences.compare(["gpu07", "gpu08"], {"gpu07": new, "gpu08": new, "gpu01": old})
    assert [(one.host, one.usual) for one in report.differences] == [("gpu07", "old"), ("gpu08", "old")]
    assert "gpu08 differs from its peer gpu01 in 1 point(s):" in differences.lines(report)


def test_who_gave_no_answer_is_said() -> None:
    report = differences.compare(["gpu07"], {"gpu07": {"problem": "unreachable"}, "gpu01": {"problem": "no answer"}})
    assert differences.lines(report) == [
        "gpu07 was not compared completely: unreachable",
        "gpu07 is compared with nobody: no other member answered",
        "gpu01, a peer, was not read completely: no answer",
    ]


def test_a_part_that_could_not_be_read_is_said() -> None:
    partly = snapshot(problems=["rpm did not end within 60 s"])
    report = differences.compare(["gpu07"], {"gpu07": partly, "gpu01": snapshot()})
    assert differences.lines(report) == ["gpu07 was not compared completely: rpm did not end within 60 s"]


def test_a_peer_that_does_not_know_the_address_is_named() -> None:
    unaware = snapshot(unknown_addresses=["198.51.100.17 as gpu07 in /etc/hosts"])
    report = differences.compare(["gpu07"], {"gpu07": unaware, "gpu01": unaware, "gpu02": snapshot()})
    last = differences.lines(report)[-1]
    assert last.startswith("gpu01 does not know 198.51.100.17 as gpu07 in /etc/hosts. Fix: ")
    assert "gpu07" not in report.unaware and "baremetal.gpu_cluster.site" in last


def test_a_long_list_is_cut_on_the_console_only() -> None:
    many = {f"p{number:02}.noarch": "1" for number in range(30)}
    report = differences.compare(["gpu07"], {"gpu07": snapshot(), "gpu01": snapshot(package=many)})
    assert len(report.as_dict()["differences"]) == 30
    text = differences.lines(report)
    assert len(text) == 1 + differences.SHOWN + 1 and text[-1] == "  and 10 more of this kind"
