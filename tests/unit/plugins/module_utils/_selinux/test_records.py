# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Customisations of a policy: reading them, comparing, and the lines of an import."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.records import (
    BOOLEAN,
    EQUAL,
    FCONTEXT,
    ORDER,
    PORT,
    Entry,
    Identity,
    LedgerError,
    Plan,
    Record,
    ledger_text,
    load_ledger,
    make_plan,
    parse_export,
    parse_file_contexts,
    parse_ports,
    united,
)

#: Recorded: policycoreutils 3.4, after an import of every kind.
EXPORT = """\
boolean -D
login -D
port -D
fcontext -D
boolean -m -1 use_nfs_home_dirs
boolean -m -0 ssh_sysadm_login
port -a -t ssh_port_t -r 's0' -p tcp 2222
port -a -t http_port_t -r 's0' -p tcp 2300-2310
fcontext -a -f a -t bin_t -r 's0' '/data/torch[^/]*/bin(/.*)?'
fcontext -a -f d -t home_root_t -r 's0' '/export'
fcontext -a -e /home/train /export/home/train
module -d amtu
"""
PORTS = """\
ssh_port_t                     tcp      22
http_port_t                    tcp      80, 443, 8008-8010
unreserved_port_t              udp      1024-65535
"""

SSH = Record(PORT, "tcp 2222", "ssh_port_t")
NFS = Record(BOOLEAN, "use_nfs_home_dirs", "on")
BIN = Record(FCONTEXT, "/data/torch(/.*)?", "bin_t", "/data/torch")
HOME = Record(EQUAL, "/export/home/train", "/home/train", "/export/home/train")
DOOR = Record(FCONTEXT, "/export", "home_root_t", "/export", deep=False)
NOTHING: dict[Identity, str] = {}
OFF = {NFS.identity: "off"}


def lines(plan: Plan) -> list[str]:
    return plan.script().splitlines()


def test_export_is_read() -> None:
    assert parse_export(EXPORT) == {
        (BOOLEAN, "use_nfs_home_dirs"): "on",
        (BOOLEAN, "ssh_sysadm_login"): "off",
        (PORT, "tcp 2222"): "ssh_port_t",
        (PORT, "tcp 2300-2310"): "http_port_t",
        (FCONTEXT, "/data/torch[^/]*/bin(/.*)?"): "bin_t",
        (EQUAL, "/export/home/train"): "/home/train",
    }


def test_labels_of_the_policy_are_read() -> None:
    assert parse_ports(PORTS) == {
        "tcp 22": "ssh_port_t",
        "tcp 80": "http_port_t",
        "tcp 443": "http_port_t",
        "tcp 8008-8010": "http_port_t",
        "udp 1024-65535": "unreserved_port_t",
    }
    text = "/opt(/.*)?\tsystem_u:object_r:usr_t:s0\n/dev/x\t-c\tsystem_u:object_r:x_t:s0\n/proc\t<<none>>\n"
    assert parse_file_contexts(text) == {"/opt(/.*)?": "usr_t"}


def test_everything_new_is_one_script_with_equivalences_last() -> None:
    plan = make_plan([HOME, BIN, DOOR, NFS, SSH], NOTHING, OFF, ())
    assert lines(plan) == [
        "port -a -t ssh_port_t -p tcp 2222",
        "boolean -m -1 use_nfs_home_dirs",
        "fcontext -a -f a -t bin_t '/data/torch(/.*)?'",
        "fcontext -a -f a -t home_root_t /export",
        "fcontext -a -e /home/train /export/home/train",
    ]
    assert ORDER[-1] == EQUAL
    assert {entry.record for entry in plan.ledger} == {HOME, BIN, DOOR, NFS, SSH}
    assert {entry.before for entry in plan.ledger} == {"", "off"}
    assert plan.roots(deep=True) == ["/data/torch", "/export/home/train"] and plan.roots(deep=False) == ["/export"]


def test_the_script_is_read_back_as_it_was_meant() -> None:
    """What an export lists is what the import said: the reader of the one understands the other."""
    plan = make_plan([HOME, BIN, NFS, SSH], NOTHING, OFF, ())
    assert parse_export(plan.script()) == {record.identity: record.value for record in (HOME, BIN, NFS, SSH)}


def test_a_second_run_has_nothing_to_do() -> None:
    wanted = [HOME, BIN, NFS, SSH]
    first = make_plan(wanted, NOTHING, OFF, ())
    local = parse_export(first.script())
    second = make_plan(wanted, local, {NFS.identity: "on"}, load_ledger(ledger_text(first.ledger)))
    assert second.changes == () and second.ledger == first.ledger


def test_what_somebody_else_has_set_is_neither_changed_nor_remembered() -> None:
    local = {SSH.identity: "ssh_port_t", (PORT, "tcp 9000"): "http_port_t", HOME.identity: "/home/train"}
    plan = make_plan([SSH, HOME, Record(PORT, "tcp 22", "ssh_port_t")], local, {(PORT, "tcp 22"): "ssh_port_t"}, ())
    assert plan == Plan()


def test_a_port_with_another_label_is_modified_and_the_old_one_comes_back() -> None:
    """Whether the policy gave it or somebody on this host: semanage refuses to add a second one."""
    by_policy = make_plan([SSH], NOTHING, {SSH.identity: "zebra_port_t"}, ())
    assert lines(by_policy) == ["port -m -t ssh_port_t -p tcp 2222"] and by_policy.ledger == (Entry(SSH, ""),)
    gone = make_plan([], {SSH.identity: "ssh_port_t"}, {SSH.identity: "zebra_port_t"}, by_policy.ledger)
    assert lines(gone) == ["port -d -p tcp 2222"]

    by_somebody = make_plan([SSH], {SSH.identity: "http_port_t"}, NOTHING, ())
    assert lines(by_somebody) == ["port -m -t ssh_port_t -p tcp 2222"]
    assert by_somebody.ledger == (Entry(SSH, "http_port_t"),)
    back = make_plan([], {SSH.identity: "ssh_port_t"}, NOTHING, by_somebody.ledger)
    assert lines(back) == ["port -m -t http_port_t -p tcp 2222"] and back.ledger == ()


def test_only_what_is_ours_and_as_we_left_it_is_taken_back() -> None:
    ours = (Entry(SSH), Entry(BIN), Entry(HOME), Entry(NFS, "off"))
    local = {record.identity: record.value for record in (SSH, BIN, HOME, NFS)}
    foreign = {(PORT, "tcp 2200"): "ssh_port_t", (FCONTEXT, "/data/x"): "bin_t"}
    plan = make_plan([], {**local, **foreign}, NOTHING, ours)
    assert lines(plan) == [
        "port -d -p tcp 2222",
        "boolean -m -0 use_nfs_home_dirs",
        "fcontext -d -f a '/data/torch(/.*)?'",
        "fcontext -d -e /home/train /export/home/train",
    ]
    assert plan.ledger == () and plan.roots(deep=True) == ["/data/torch", "/export/home/train"]
    changed_since = {SSH.identity: "http_port_t", NFS.identity: "off"}
    assert make_plan([], changed_since, NOTHING, ours) == Plan()


def test_a_label_that_went_missing_is_made_again_and_stays_ours() -> None:
    plan = make_plan([SSH], NOTHING, NOTHING, (Entry(SSH, "http_port_t"),))
    assert lines(plan) == ["port -a -t ssh_port_t -p tcp 2222"] and plan.ledger == (Entry(SSH, "http_port_t"),)


@pytest.mark.parametrize(
    ("kept", "running", "changes"), [("on", "on", 0), ("on", "off", 1), ("off", "on", 1), ("", "on", 0), ("", "off", 1)]
)
def test_a_boolean_counts_when_it_holds_now_and_at_the_next_boot(kept: str, running: str, changes: int) -> None:
    local = {NFS.identity: kept} if kept else NOTHING
    assert len(make_plan([NFS], local, {NFS.identity: running}, ()).changes) == changes


def test_a_port_in_a_range_of_somebody_else() -> None:
    """With the right label nothing is needed; with another one semanage would refuse the whole import."""
    assert make_plan([SSH], {(PORT, "tcp 2200-2300"): "ssh_port_t"}, NOTHING, ()) == Plan()
    assert make_plan([SSH], {(PORT, "udp 2200-2300"): "http_port_t"}, NOTHING, ()).problems == ()
    (problem,) = make_plan([SSH], {(PORT, "tcp 2200-2300"): "http_port_t"}, NOTHING, ()).problems
    assert problem.sentence() == (
        "selinux_policy_ssh_ports = 2222: the ports 2200-2300 are labelled http_port_t on this host by somebody else, "
        "and SELinux takes no second label for a part of them. Fix: take another port, or give those up with "
        "`semanage port -d -p tcp 2200-2300`."
    )


def test_ledger_is_a_file_that_says_what_it_is() -> None:
    entries = (Entry(SSH, "http_port_t"), Entry(DOOR))
    text = ledger_text(entries)
    assert load_ledger(text) == entries and "selinux_policy" in text
    assert ledger_text(()) == "" and load_ledger("") == ()


@pytest.mark.parametrize("text", ["{", "[]", '{"entries": [{}]}', '{"entries": [{"record": {"x": 1}, "before": ""}]}'])
def test_a_broken_ledger_is_no_empty_ledger(text: str) -> None:
    with pytest.raises(LedgerError):
        load_ledger(text)


def test_a_run_that_is_cut_short_forgets_neither_the_old_nor_the_new() -> None:
    old, new = (Entry(SSH), Entry(BIN)), (Entry(BIN, "x"), Entry(HOME))
    assert set(united(old, new)) == {Entry(SSH), Entry(BIN, "x"), Entry(HOME)}
