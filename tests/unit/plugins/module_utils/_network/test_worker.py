# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on the node, as far as it needs no network: frames, answers. The rest is tested on real nodes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import program
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import worker

OWN = "02:00:00:00:00:01"
OTHER = "02:00:00:00:00:02"


def arp(operation: int, sender_mac: str, sender: str, target: str) -> bytes:
    """An Ethernet frame with an ARP packet for IPv4 (RFC 826)."""
    mac = bytes.fromhex(sender_mac.replace(":", ""))
    frame = b"\xff" * 6 + mac + b"\x08\x06" + b"\x00\x01\x08\x00\x06\x04" + operation.to_bytes(2, "big")
    return frame + mac + socket.inet_aton(sender) + b"\0" * 6 + socket.inet_aton(target)


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        (arp(2, OTHER, "192.0.2.1", "0.0.0.0"), OTHER),
        (arp(1, OTHER, "192.0.2.1", "192.0.2.9"), OTHER),
        (arp(1, OTHER, "0.0.0.0", "192.0.2.1"), OTHER),
        (arp(2, OWN, "192.0.2.1", "0.0.0.0"), None),
        (arp(2, OTHER, "192.0.2.2", "0.0.0.0"), None),
        (arp(1, OTHER, "192.0.2.9", "192.0.2.1"), None),
        (arp(2, OTHER, "192.0.2.1", "0.0.0.0")[:41], None),
        (b"\0" * 60, None),
    ],
    ids=[
        "reply",
        "its own request",
        "probes for it too",
        "own card",
        "another address",
        "asks for it",
        "cut",
        "no ARP",
    ],
)
def test_who_holds_an_address(frame: bytes, found: str | None) -> None:
    assert worker.conflict_in(frame, "192.0.2.1", {OWN}) == found


@pytest.mark.parametrize(
    ("code", "out", "err", "refused"),
    [
        (0, "", "", False),
        (0, "", "Could not load file '/run/one.nmconnection'\n", True),
        (1, "", "Error: failed to load connection: not authorized.\n", True),
    ],
)
def test_a_profile_that_networkmanager_refuses_is_heard(
    monkeypatch: pytest.MonkeyPatch, code: int, out: str, err: str, refused: bool
) -> None:
    monkeypatch.setattr(worker, "execute", lambda *_argv: (code, out, err))
    if not refused:
        worker.load_profiles(["/run/one.nmconnection"])
        return
    with pytest.raises(program.ChangeError) as caught:
        worker.load_profiles(["/run/one.nmconnection"])
    assert str(caught.value) == f"NetworkManager refused a profile: {err.strip()}"


def ping(monkeypatch: pytest.MonkeyPatch, code: int, text: str) -> None:
    def fake(argv: list[str], **options: Any) -> Any:
        return subprocess.CompletedProcess(argv, code, text, "")

    monkeypatch.setattr(program.subprocess, "run", fake)


@pytest.mark.parametrize(
    ("code", "text", "heard"),
    [
        (0, "1472 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.03 ms", True),
        (1, "2 packets transmitted, 0 received, 100% packet loss", False),
        (1, "From 192.0.2.9 icmp_seq=1 Frag needed and DF set (mtu = 1500)", True),
        (1, "ping: local error: message too long, mtu=1500", True),
        (1, "From 2001:db8::1 icmp_seq=1 Packet too big: mtu=1400", True),
    ],
)
def test_silence_is_a_hole_and_a_refusal_is_not(
    monkeypatch: pytest.MonkeyPatch, code: int, text: str, heard: bool
) -> None:
    ping(monkeypatch, code, text)
    assert bool(worker.echo("eth0", "192.0.2.1", 1500)) is heard


def test_the_size_of_a_probe_includes_the_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def fake(argv: list[str], **options: Any) -> Any:
        sizes.append(argv[argv.index("-s") + 1])
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr(program.subprocess, "run", fake)
    worker.echo("eth0", "192.0.2.1", 9000)
    worker.echo("eth0", "2001:db8::1", 9000)
    assert sizes == ["8972", "8952"]


def test_a_host_that_answers_nothing_tells_nothing_about_the_mtu(monkeypatch: pytest.MonkeyPatch) -> None:
    ping(monkeypatch, 1, "100% packet loss")
    assert worker.mtu_hole("eth0", "192.0.2.1", 9000) is False


def test_a_node_without_ping_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(worker.ChangeError, match="'ping' could not be started"):
        worker.mtu_hole("eth0", "192.0.2.1", 9000)


#: What ``ip monitor address`` printed on a node whose IPv6 address another machine had; NetworkManager tried it twice.
EVENTS = """\
3: fab0    inet6 fd00:20::7/64 scope global tentative noprefixroute
       valid_lft forever preferred_lft forever
3: fab0    inet6 fd00:20::8/64 scope global tentative noprefixroute
       valid_lft forever preferred_lft forever
3: fab0    inet6 fd00:20::7/64 scope global dadfailed tentative noprefixroute
       valid_lft forever preferred_lft forever
Deleted 3: fab0    inet6 fd00:20::7/64 scope global dadfailed tentative noprefixroute
       valid_lft forever preferred_lft forever
3: fab0    inet6 fd00:20::7/64 scope global tentative noprefixroute
       valid_lft forever preferred_lft forever
"""


def test_an_address_that_the_kernel_refused_is_told_from_one_that_is_still_checked() -> None:
    assert worker.taken_addresses(EVENTS, "fab0") == {"fd00:20::7/64"}
    assert worker.taken_addresses(EVENTS, "fab") == set()
    assert worker.taken_addresses(EVENTS.replace("dadfailed ", ""), "fab0") == set()


def test_an_activation_that_fails_because_of_a_taken_address_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = "Error: Connection activation failed: IP configuration could not be reserved"
    (tmp_path / "job.json").write_text(json.dumps({"run_id": "1", "client": "", "confirm_seconds": 30}))
    program = worker.Worker(str(tmp_path))

    def refuse(*argv: str, **options: Any) -> str:
        raise worker.ChangeError(refusal)

    monkeypatch.setattr(worker, "command", refuse)
    entry = {"uuid": "0", "interface": "fab0"}
    with pytest.raises(worker.ChangeError, match=r"^fab0: the profile could not be activated: Error: Conn"):
        program.activate(entry)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.write(writer, EVENTS.encode())
    program.watched = reader
    with pytest.raises(worker.ChangeError) as caught:
        program.activate(entry)
    assert "another machine has fd00:20::7/64" in str(caught.value) and refusal in str(caught.value)
    os.close(writer)
    assert program.taken("fab0") == {"fd00:20::7/64"}
    os.close(reader)


@pytest.mark.parametrize(("confirm_seconds", "activation"), [(15, 14), (30, 20), (60, 20), (180, 60), (600, 200)])
def test_who_has_longer_to_confirm_has_longer_to_come_up(
    confirm_seconds: int, activation: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 15 s the deadline is nearer than what a profile may take."""
    (tmp_path / "job.json").write_text(json.dumps({"run_id": "1", "client": "", "confirm_seconds": confirm_seconds}))
    argv: list[str] = []
    monkeypatch.setattr(worker, "command", lambda *words, **_options: argv.extend(words))
    worker.Worker(str(tmp_path)).activate({"uuid": "0", "interface": "fab0"})
    assert argv[argv.index("--wait") + 1] == str(activation)


OURS, UUID = "gpu-cluster-fab0.nmconnection", "0b5b1f6e-0000-5000-8000-000000000001"


@pytest.mark.parametrize("before", [f"# Managed by Ansible\n[connection]\nuuid={UUID}\n", None])
@pytest.mark.parametrize("since", ["1.42", "1.48"])
def test_the_undo_gives_the_profiles_back_byte_by_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, since: str, before: str | None
) -> None:
    """From 1.48 on NetworkManager writes what it rolls back to /etc, also under a new name."""
    etc, run = tmp_path / "etc", tmp_path / "run"
    etc.mkdir()
    run.mkdir()
    others = etc / "eth0.nmconnection"
    others.write_text("[connection]\nuuid=of-somebody\n")
    if before is not None:
        (etc / OURS).write_text(before)
    (tmp_path / "job.json").write_text(
        json.dumps(
            {
                "run_id": "1",
                "client": "",
                "confirm_seconds": 30,
                "sysctl": None,
                "profiles": [{"name": OURS, "uuid": UUID}],
            }
        )
    )
    monkeypatch.setattr(worker, "PERSISTENT", str(etc))
    monkeypatch.setattr(worker, "RUNTIME", str(run))
    monkeypatch.setattr(worker, "command", lambda *_argv, **_options: "")
    one = worker.Worker(str(tmp_path))
    one.before = {"profiles": {OURS: before}, "digests": worker.keyfile_digests()}
    files = {path.name: path.read_text() for path in etc.iterdir()}
    (run / OURS).write_text(f"[connection]\nuuid={UUID}\n[ethernet]\nmtu=1400\n")

    def rollback(method: str, *_arguments: str) -> str:
        assert method == "CheckpointRollback"
        if since == "1.48":
            (etc / OURS).write_text(f"[connection]\nid=fab0\nuuid={UUID}\n")
            (etc / f"fab0-{UUID}.nmconnection").write_text(f"[connection]\nid=fab0\nuuid={UUID}\n")
            # What somebody else has added meanwhile is not ours.
            (etc / "new.nmconnection").write_text("[connection]\nuuid=new\n")
        return ""

    monkeypatch.setattr(worker, "checkpoint_call", rollback)
    monkeypatch.setattr(one, "wait_until_restored", lambda _notes: [])
    one.undo("no reason")
    (etc / "new.nmconnection").unlink(missing_ok=True)
    assert {path.name: path.read_text() for path in etc.iterdir()} == files
    assert one.state["state"] == "undone" and list(run.iterdir()) == []


def test_a_file_is_moved_over_one_that_is_there_and_an_obstacle_is_named(tmp_path: Path) -> None:
    """The label of its new place is seen on the virtual machine only."""
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("new")
    source.chmod(0o600)
    target.write_text("old")
    worker.move(str(source), str(target))
    assert (target.read_text(), target.stat().st_mode & 0o777, source.exists()) == ("new", 0o600, False)
    with pytest.raises(worker.ChangeError, match=r"'mv .* failed: .*No such file"):
        worker.move(str(source), str(target))


@pytest.mark.parametrize(
    ("printed", "answered"),
    [
        ('[{"dst": "192.0.2.1", "lladdr": "02:00:00:00:00:02", "state": ["REACHABLE"]}]', True),
        ('[{"dst": "192.0.2.1", "lladdr": "02:00:00:00:00:02", "state": ["STALE"]}]', True),
        ('[{"dst": "192.0.2.1", "state": ["NOARP"]}]', True),
        ('[{"dst": "192.0.2.1", "state": ["INCOMPLETE"]}]', False),
        ('[{"dst": "192.0.2.1", "state": ["FAILED"]}]', False),
        ("[]", False),
        ("", False),
    ],
)
def test_whether_a_router_answered(printed: str, answered: bool) -> None:
    assert worker.has_answered(printed) is answered


GATEWAY = "192.0.2.1"


def with_routers(
    tmp_path: Path,
    answers: dict[str, list[bool]],
    monkeypatch: pytest.MonkeyPatch,
    used: Collection[tuple[str, str]] = (),
    to: str = "",
) -> worker.Worker:
    """A program whose routers answer so, one time after the other, and then as the last time."""
    entries = [{"interface": "eth0", "router": router, "to": to} for router in answers]
    job = {"run_id": "1", "client": "", "confirm_seconds": 30, "routers": entries}
    (tmp_path / "job.json").write_text(json.dumps(job))
    said = {router: list(given) for router, given in answers.items()}

    def answers_to(interface: str, router: str) -> bool:
        assert interface == "eth0"
        return said[router].pop(0) if len(said[router]) > 1 else said[router][0]

    monkeypatch.setattr(worker, "router_answers", answers_to)
    monkeypatch.setattr(worker, "routers_in_use", lambda: set(used))
    made = worker.Worker(str(tmp_path))
    monkeypatch.setattr(made, "share", lambda part, least: 0.3)
    return made


def test_a_new_gateway_that_does_not_answer_undoes_the_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes from outside the subnet would be locked out, and a controller inside does not see it."""
    one = with_routers(tmp_path, {GATEWAY: [False], "fe80::1": [True]}, monkeypatch, used={("eth0", "192.0.2.254")})
    with pytest.raises(worker.ChangeError, match=rf"eth0: the gateway {GATEWAY} does not answer") as caught:
        one.refuse_dead_routers(one.silent_routers())
    assert "fe80::1" not in str(caught.value)


def test_a_router_of_a_static_route_that_does_not_answer_undoes_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = with_routers(tmp_path, {GATEWAY: [False]}, monkeypatch, to="203.0.113.0/24")
    with pytest.raises(worker.ChangeError, match=f"eth0: the router {GATEWAY} of the route to 203.0.113.0/24 does not"):
        one.refuse_dead_routers(one.silent_routers())


@pytest.mark.parametrize(
    ("before", "after", "refused"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_the_gateway_that_is_there_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool, after: bool, refused: bool
) -> None:
    """One that did not answer before the change either is no reason to refuse it."""
    one = with_routers(tmp_path, {GATEWAY: [before, after]}, monkeypatch, used={("eth0", GATEWAY)})
    silent = one.silent_routers()
    if refused:
        with pytest.raises(worker.ChangeError, match=GATEWAY):
            one.refuse_dead_routers(silent)
    else:
        one.refuse_dead_routers(silent)


def test_a_gateway_may_take_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port of a switch that learns, a router that boots its table."""
    one = with_routers(tmp_path, {GATEWAY: [False, False, True]}, monkeypatch)
    one.refuse_dead_routers(one.silent_routers())


def test_a_card_that_has_the_routers_address_beside_another_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same router by another card is a new one: nobody knows whether it answers there."""
    one = with_routers(tmp_path, {GATEWAY: [False]}, monkeypatch, used={("eth1", GATEWAY)})
    assert one.silent_routers() == set()


def test_asking_the_wire_of_this_machine() -> None:
    """The loopback needs no neighbour discovery; an interface that is not there answers nothing."""
    assert worker.router_answers("lo", "127.0.0.2") in (True, False)
    assert worker.router_answers("gc-none", GATEWAY) is False
    assert worker.router_answers("gc-none", "fe80::1") is False


def test_the_routers_of_all_tables_and_of_routes_with_several(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = {
        "-4": [
            {"dst": "default", "gateway": GATEWAY, "dev": "eth0"},
            {"dst": "203.0.113.0/24", "dev": "eth0", "scope": "link"},
            {"dst": "198.51.100.0/24", "nexthops": [{"gateway": "192.0.2.2", "dev": "eth1"}, {"dev": "ppp0"}]},
            {"dst": "198.51.100.0/24", "via": {"family": "inet6", "host": "fe80::1"}, "dev": "eth2", "table": "8000"},
        ],
        "-6": [],
    }
    asked = []

    def command(*argv: str) -> str:
        asked.append(argv[-2:])
        return json.dumps(printed[argv[2]])

    monkeypatch.setattr(worker, "command", command)
    assert worker.routers_in_use() == {("eth0", GATEWAY), ("eth1", "192.0.2.2"), ("eth2", "fe80::1")}
    assert asked == [("table", "all")] * 2
