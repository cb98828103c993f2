# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted: bad input, and the customisations that good input and the homes of users make."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import records, spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.records import (
    BOOLEAN,
    EQUAL,
    FCONTEXT,
    PORT,
    Record,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.spec import Home

TRAIN = Home("train", 4000, "/home/train", 4000, "ssh_home_t")
ELSEWHERE = Home("train", 4000, "/export/home/train", 4000, "default_t", closed=("/export", "/export/home"))
LIKE_HOME = Record(EQUAL, "/export/home/train", "/home/train", "/export/home/train")


def params(**changes: Any) -> dict[str, Any]:
    return {
        "state": "enforcing",
        "ssh_ports": [22],
        "booleans": {},
        "fcontexts": [],
        "users": [],
        "torch_prefix": "/opt/gpu-cluster/torch",
        "confirm_seconds": 60,
        **changes,
    }


def sentences(**changes: Any) -> list[str]:
    return [problem.sentence() for problem in spec.problems(params(**changes))]


def entry(path: str, **more: str) -> dict[str, Any]:
    return {"path": path, "type": None, "like": None, **more}


def test_the_defaults_are_no_problem() -> None:
    assert sentences() == []
    assert sentences(state="permissive", confirm_seconds=0, torch_prefix="") == []


@pytest.mark.parametrize("state", ["disabled", "Disabled", "off"])
def test_selinux_is_never_turned_off_and_the_reason_is_said(state: str) -> None:
    (sentence,) = sentences(state=state)
    assert sentence == (
        f"selinux_policy_state = '{state}': this collection never turns SELinux off: files that are written without it "
        "carry no labels, so a node that ran without it has to be relabelled as a whole before it can enforce again. "
        "Fix: set selinux_policy_state: permissive, which denies nothing and logs what enforcing would deny."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "enforce"}, ["selinux_policy_state = 'enforce'", "set selinux_policy_state: enforcing"]),
        ({"ssh_ports": [22, 0]}, ["selinux_policy_ssh_ports[1] = 0", "1 to 65535"]),
        ({"ssh_ports": [65536]}, ["selinux_policy_ssh_ports[0] = 65536"]),
        ({"booleans": {"use_nfs_home_dirs": "yes"}}, ["selinux_policy_booleans.use_nfs_home_dirs = 'yes'", "true}"]),
        ({"confirm_seconds": 5}, ["selinux_policy_confirm_seconds = 5", "expected 15 to 600, or 0"]),
        ({"torch_prefix": "opt/torch"}, ["selinux_policy_torch_prefix = 'opt/torch'", "torch_runtime_prefix"]),
        ({"fcontexts": [entry("/data/a b", type="bin_t")]}, ["selinux_policy_fcontexts[0].path", "blank"]),
        ({"fcontexts": [entry("/data/", type="bin_t")]}, ["'/data/'", "a / at its end"]),
        ({"fcontexts": [entry("/data/../etc", type="bin_t")]}, ["'/data/../etc'"]),
        ({"fcontexts": [entry("/var/lib", like="/home")]}, ["'/var/lib'", "a folder of the system"]),
        ({"fcontexts": [entry("/data")]}, ["selinux_policy_fcontexts[0] = '/data'", "found neither"]),
        ({"fcontexts": [entry("/data", type="bin_t", like="/usr")]}, ["found both"]),
        ({"fcontexts": [entry("/data", type="bin_t;x")]}, ["selinux_policy_fcontexts[0].type = 'bin_t;x'"]),
        ({"fcontexts": [entry("/data", like="home")]}, ["selinux_policy_fcontexts[0].like = 'home'"]),
        ({"fcontexts": [entry("/data", like="/data/x")]}, ["like itself"]),
        (
            {"fcontexts": [entry("/data", type="bin_t"), entry("/data", like="/home")]},
            ["selinux_policy_fcontexts[1].path", "first in selinux_policy_fcontexts[0]"],
        ),
    ],
)
def test_bad_input_has_its_sentence(changes: dict[str, Any], words: list[str]) -> None:
    (sentence,) = sentences(**changes)
    for word in [*words, "Fix: "]:
        assert word in sentence


def test_all_problems_come_at_once() -> None:
    found = sentences(state="off", ssh_ports=[0, -1], booleans={"a": 1}, fcontexts=[entry("x", like="y")])
    assert len(found) == 6


def test_what_only_the_policy_knows() -> None:
    known = ["use_nfs_home_dirs", "use_samba_home_dirs"]
    assert spec.boolean_problems({"use_nfs_home_dirs": True}, known, "targeted") == []
    (near,) = spec.boolean_problems({"use_nfs_homedirs": True}, known, "targeted")
    assert near.sentence() == (
        "selinux_policy_booleans.use_nfs_homedirs: the policy of this host (targeted) has no such boolean. "
        "Fix: set use_nfs_home_dirs."
    )
    (far,) = spec.boolean_problems({"qqqq": True}, known, "default")
    assert "getsebool -a" in far.fix
    (kind,) = spec.type_problems([entry("/a", like="/home"), entry("/b", type="bim_t")], ["bim_t"], "targeted")
    assert kind.sentence().startswith("selinux_policy_fcontexts[1].type = 'bim_t': the policy of this host (targeted)")


def test_ports_and_booleans_become_records() -> None:
    wanted = spec.records(params(ssh_ports=[22, 2222, 2222], booleans={"a": True, "b": False}), [], set())
    assert wanted == [
        Record(PORT, "tcp 22", "ssh_port_t"),
        Record(PORT, "tcp 2222", "ssh_port_t"),
        Record(BOOLEAN, "a", "on"),
        Record(BOOLEAN, "b", "off"),
    ]


@pytest.mark.parametrize("prefix", ["", "/opt/gpu-cluster/torch", "/usr/local/torch"])
def test_the_policy_itself_labels_programs_below_opt_and_usr(prefix: str) -> None:
    assert spec.records(params(ssh_ports=[], torch_prefix=prefix), [], set()) == []


def test_programs_elsewhere_are_labelled_for_every_environment_beside_the_prefix() -> None:
    wanted = spec.records(params(ssh_ports=[], torch_prefix="/data/v1.2/torch"), [], set())
    assert {record.roots for record in wanted} == {"/data/v1.2/torch*"}
    label = {}
    for path in (
        "/data/v1.2/torch",
        "/data/v1.2/torch-0a1b/pyvenv.cfg",
        "/data/v1.2/torch-0a1b/bin/python",
        "/data/v1.2/torch-0a1b/lib/python3.12/x.so",
        "/data/v1.2/torch-0a1b/lib64",
        "/data/v102/torch",
        "/data/v1.2/other",
    ):
        # The longest expression is the most specific one, and wins.
        rules = sorted((record for record in wanted if re.fullmatch(record.key, path)), key=lambda rule: len(rule.key))
        label[path] = rules[-1].value if rules else ""
    assert list(label.values()) == ["usr_t", "usr_t", "bin_t", "lib_t", "lib_t", "", ""]


def test_entries_of_the_site_become_records_and_win() -> None:
    entries = [entry("/data/t.[x]", type="bin_t"), entry("/export/home/train", like="/srv")]
    wanted = spec.records(params(ssh_ports=[], fcontexts=entries), [ELSEWHERE], set())
    assert Record(FCONTEXT, r"/data/t\.\[x\](/.*)?", "bin_t", "/data/t.[[]x]") in wanted
    assert Record(EQUAL, "/export/home/train", "/srv", "/export/home/train") in wanted
    assert LIKE_HOME not in wanted


def test_a_home_that_the_policy_knows_needs_nothing() -> None:
    assert spec.records(params(ssh_ports=[]), [TRAIN], set()) == []


def test_a_home_elsewhere_is_like_one_below_home_and_can_be_reached() -> None:
    wanted = spec.records(params(ssh_ports=[]), [ELSEWHERE], set())
    assert wanted == [
        Record(FCONTEXT, "/export", "home_root_t", "/export", deep=False),
        Record(FCONTEXT, "/export/home", "home_root_t", "/export/home", deep=False),
        LIKE_HOME,
    ]


def test_what_was_done_for_a_home_is_still_wanted_when_it_works() -> None:
    """The policy answers with our own rules then."""
    first = spec.records(params(ssh_ports=[]), [ELSEWHERE], set())
    settled = Home("train", 4000, "/export/home/train", 4000, "ssh_home_t", closed=())
    assert spec.records(params(ssh_ports=[]), [settled], {record.identity for record in first}) == first


@pytest.mark.parametrize(
    "home",
    [
        Home("daemon", 2, "/usr/sbin", 2, "bin_t"),
        Home("root", 0, "/data/root", 0, "default_t"),
        Home("train", 4000, "/data", 0, "default_t"),
        Home("train", 4000, "/", 4000, "default_t"),
        Home("train", 4000, "/var/lib/train", None, "var_lib_t"),
        Home("train", 4000, "/nfs/home/train", 4000, "nfs_t", remote=True),
        Home("train", 4000, "/a b/train", 4000, "default_t"),
    ],
)
def test_folders_that_are_not_a_users_own_get_no_labels(home: Home) -> None:
    assert spec.records(params(ssh_ports=[]), [home], set()) == []


def test_notes_about_homes() -> None:
    remote = Home("train", 4000, "/nfs/home/train", 4000, "nfs_t", remote=True)
    foreign = Home("train", 4000, "/data", 0, "default_t")
    (absent,) = spec.home_notes([TRAIN], ["nobody2"], {})
    assert absent.startswith("There is no user nobody2 on this host yet")
    (nfs,) = spec.home_notes([remote], [], {})
    assert "/nfs/home/train of train is on a network file system" in nfs and "use_nfs_home_dirs: true" in nfs
    assert spec.home_notes([remote], [], {"use_nfs_home_dirs": True}) == []
    (other,) = spec.home_notes([foreign], [], {})
    assert "belongs to uid 0 and not to 4000" in other


def test_the_label_of_a_port_that_sshd_uses_is_not_taken_back() -> None:
    """Who comes by that port would be shut out at sshd's next start, and nothing waits for a confirmation."""
    ledger = [records.Entry(Record(PORT, f"tcp {port}", "ssh_port_t")) for port in (2222, 2223)]
    ledger.append(records.Entry(Record(BOOLEAN, "use_nfs_home_dirs", "on"), "off"))
    local = {entry.record.identity: entry.record.value for entry in ledger}
    wanted = [Record(PORT, "tcp 22", "ssh_port_t")]
    plan = records.make_plan(wanted, local, {(PORT, "tcp 22"): "ssh_port_t"}, ledger)
    dropped = spec.dropped_ports(plan.changes)
    assert dropped == {2222, 2223}
    (problem,) = spec.used_port_problems(dropped, {22, 2222, 0}, [22])
    assert problem.variable == "selinux_policy_ssh_ports" and "port 2222" in problem.rule
    assert spec.used_port_problems(dropped, {22}, [22]) == []
