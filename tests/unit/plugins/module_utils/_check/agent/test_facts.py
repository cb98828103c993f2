# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node side reads, from recorded texts of iproute2 6.1, the kernel and its files."""

from __future__ import annotations

import getpass
import json
import os
import pwd
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    facts,
    facts_arp,
    facts_environment,
    facts_host_keys,
    facts_interfaces,
    facts_listeners,
    facts_names,
    facts_nccl,
    facts_resources,
    facts_routes,
    service,
)

LINKS = json.dumps(
    [
        {
            "ifname": "lo",
            "flags": ["LOOPBACK", "UP", "LOWER_UP"],
            "mtu": 65536,
            "address": "00:00:00:00:00:00",
            "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8, "scope": "host"}],
        },
        {
            "ifname": "fab0",
            "flags": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"],
            "mtu": 9000,
            "operstate": "UP",
            "address": "52:54:00:AA:00:01",
            "addr_info": [
                {"family": "inet", "local": "192.0.2.11", "prefixlen": 24, "scope": "global"},
                {"family": "inet6", "local": "2001:db8::11", "prefixlen": 64, "scope": "global"},
                {"family": "inet6", "local": "2001:db8::99", "prefixlen": 64, "scope": "global", "dadfailed": True},
                {"family": "inet6", "local": "fe80::5054:ff:feaa:1", "prefixlen": 64, "scope": "link"},
            ],
        },
        {
            "ifname": "fab1",
            "flags": ["NO-CARRIER", "BROADCAST", "MULTICAST", "UP"],
            "mtu": 1500,
            "operstate": "DOWN",
            "address": "52:54:00:aa:00:02",
            "addr_info": [],
        },
        {"ifname": "veth7", "flags": ["UP"], "mtu": 1500, "address": "52:54:00:aa:00:07", "addr_info": []},
    ]
)
FILES = {
    "/sys/class/net/fab0/speed": "100000\n",
    "/sys/class/net/fab1/speed": "-1\n",
    "/proc/sys/net/ipv4/conf/all/rp_filter": "1\n",
    "/proc/sys/net/ipv4/conf/fab0/rp_filter": "0\n",
    "/proc/sys/net/ipv4/conf/fab0/arp_ignore": "2\n",
}


#: As Linux 6.1 shows it, with a line for each processor.
ARP_CACHE = """\
entries  allocs   destroys hash_grows lookups  hits     res_failed unresolved_discards table_fulls
0000003c 00007e6f 0000b5e1 00000000   0000a3b3 000008e8 0000007c   00000000            0000000a
0000003c 000071d1 00003a23 00000009   0000946b 000006f7 00000035   00000000            00000010
"""


def test_tables_of_neighbours() -> None:
    files = {
        "/proc/sys/net/ipv4/neigh/default/gc_thresh2": "512\n",
        "/proc/sys/net/ipv4/neigh/default/gc_thresh3": "1024\n",
        "/proc/sys/net/ipv6/neigh/default/gc_thresh3": "1024\n",
        "/proc/net/stat/arp_cache": ARP_CACHE,
    }
    seen = {"gc_thresh2": 512, "gc_thresh3": 1024, "table_fulls": 26}
    assert facts_interfaces.neighbour_tables(lambda path: files.get(path, "")) == {"ipv4": seen}
    del files["/proc/net/stat/arp_cache"]
    assert facts_interfaces.neighbour_tables(lambda path: files.get(path, ""))["ipv4"]["table_fulls"] == 0
    assert facts_interfaces.neighbour_tables(lambda _path: "") == {}


def test_interfaces() -> None:
    found = facts_interfaces.parse(LINKS, ["fab1"], lambda path: FILES.get(path, ""))
    assert list(found) == ["fab0", "fab1"]
    assert found["fab0"] == {
        "mtu": 9000,
        "state": "up",
        "mac": "52:54:00:aa:00:01",
        "arp": True,
        "addresses": ["192.0.2.11/24", "2001:db8::11/64"],
        "duplicated": ["2001:db8::99/64"],
        "speed_mbps": 100000,
        "physical": False,
        "rp_filter": 1,
        "arp_ignore": 2,
        "arp_announce": 0,
    }
    assert (found["fab1"]["state"], found["fab1"]["speed_mbps"]) == ("no carrier", None)
    assert list(facts_interfaces.all_of(LINKS)) == ["fab0", "fab1", "veth7"]


def test_a_card_that_is_down() -> None:
    entry = {"ifname": "fab0", "flags": ["BROADCAST"], "mtu": 1500, "addr_info": []}
    assert facts_interfaces.parse(json.dumps([entry]), ["fab0"], lambda _path: "")["fab0"]["state"] == "down"


def test_neighbours_that_hold_now() -> None:
    text = json.dumps(
        [
            {"dst": "192.0.2.12", "dev": "fab0", "lladdr": "52:54:00:AA:00:12", "state": ["REACHABLE"]},
            {"dst": "192.0.2.13", "dev": "fab0", "lladdr": "52:54:00:aa:00:13", "state": ["STALE"]},
            {"dst": "192.0.2.14", "dev": "fab0", "state": ["FAILED"]},
            {"dst": "192.0.2.1", "dev": "fab0", "lladdr": "52:54:00:aa:00:ff", "state": ["REACHABLE"]},
        ]
    )
    found = facts_interfaces.parse_neighbours(text, ["192.0.2.12", "192.0.2.13", "192.0.2.14"])
    assert found == {"192.0.2.12": "52:54:00:aa:00:12"}


def test_neighbours_that_somebody_wrote() -> None:
    text = json.dumps(
        [
            {"dst": "192.0.2.12", "dev": "fab0", "lladdr": "52:54:00:AA:00:12", "state": ["PERMANENT"]},
            {"dst": "192.0.2.13", "dev": "fab0", "lladdr": "52:54:00:aa:00:13", "state": ["REACHABLE"]},
            {"dst": "203.0.113.1", "dev": "fab0", "lladdr": "52:54:00:aa:00:ff", "state": ["PERMANENT"]},
        ]
    )
    assert facts_interfaces.parse_fixed(text, ["192.0.2.12", "192.0.2.13"]) == {"192.0.2.12": "52:54:00:aa:00:12"}


def test_a_card_without_arp() -> None:
    entry = {"ifname": "fab0", "flags": ["BROADCAST", "NOARP", "UP"], "mtu": 1500, "addr_info": []}
    assert facts_interfaces.parse(json.dumps([entry]), ["fab0"], lambda _path: "")["fab0"]["arp"] is False


@pytest.mark.parametrize(
    ("xdp", "qdiscs", "count"),
    [
        (None, '[{"kind":"mq","handle":"0:"},{"kind":"fq_codel","parent":":1"}]', 0),
        ({"mode": 2, "prog": {"id": 5, "tag": "3b185187f1855c4c", "jited": 1}}, "", 1),
        (None, '[{"kind":"clsact","handle":"ffff:","parent":"ffff:fff1"}]', 1),
        ({"mode": 1, "prog": {"id": 5}}, '[{"kind":"ingress","handle":"ffff:"}]', 2),
    ],
)
def test_programs_that_look_at_packets(xdp: Any, qdiscs: str, count: int) -> None:
    entry = {"ifname": "fab0", "flags": ["UP"], "mtu": 1500, "addr_info": [], **({"xdp": xdp} if xdp else {})}
    listed = json.dumps([entry, {"ifname": "eth0", "xdp": {"mode": 1}, "addr_info": [], "mtu": 1500}])
    assert len(facts_interfaces.programs("fab0", listed, qdiscs)) == count


def test_packets_from_the_own_address_may_go_another_way() -> None:
    """A rule of ``ip rule`` can send them elsewhere; what a lookup without an address says is not all then."""
    peers = {"n2": "192.0.2.2", "n3": "192.0.2.3", "n4": "192.0.2.4"}
    lines = facts_routes.questions(peers.values(), "192.0.2.1").splitlines()
    assert lines[2:4] == ["route get 192.0.2.3", "route get 192.0.2.3 from 192.0.2.1"] and len(lines) == 6
    card = '[{"dst":"192.0.2.9","dev":"fab0","prefsrc":"192.0.2.1"}]\n'
    other = '[{"dst":"192.0.2.9","from":"192.0.2.1","dev":"eth0","gateway":"198.51.100.1"}]\n'
    out = card + card + other + card + card
    said = "RTNETLINK answers: Invalid argument\nCommand failed -:2\n"
    found = facts_routes.parse(peers, out, said, "192.0.2.1", "fab0")
    assert "from 192.0.2.1" in found["n2"]["error"] and found["n2"]["interface"] == ""
    assert (found["n3"]["interface"], found["n3"]["gateway"], found["n3"]["source"]) == (
        "eth0",
        "198.51.100.1",
        "192.0.2.1",
    )
    assert (found["n4"]["interface"], found["n4"]["error"]) == ("fab0", "")


def test_ways_and_their_errors_stay_with_their_peers() -> None:
    peers = {"n1": "127.0.0.1", "n2": "203.0.113.1", "n3": "198.51.100.3", "n4": "192.0.2.4"}
    out = (
        '[{"type":"local","dst":"127.0.0.1","dev":"lo","prefsrc":"127.0.0.1","flags":[],"uid":0,"cache":["local"]}]\n'
        '[{"dst":"198.51.100.3","gateway":"192.0.2.1","dev":"eth0","prefsrc":"192.0.2.2","flags":[],"uid":0}]\n'
        '[{"dst":"192.0.2.4","dev":"fab0","prefsrc":"192.0.2.2","metrics":[{"mtu":1400}],"cache":[]}]\n'
    )
    err = "RTNETLINK answers: Network is unreachable\nCommand failed -:2\n"
    found = facts_routes.parse(peers, out, err)
    assert [way["error"] for way in found.values()] == ["", "RTNETLINK answers: Network is unreachable", "", ""]
    assert found["n3"] == {
        "address": "198.51.100.3",
        "interface": "eth0",
        "source": "192.0.2.2",
        "gateway": "192.0.2.1",
        "mtu": 0,
        "error": "",
    }
    assert (found["n4"]["interface"], found["n4"]["mtu"]) == ("fab0", 1400)
    assert facts_routes.questions(peers.values()).splitlines()[2] == "route get 198.51.100.3"


def test_no_answer_of_ip_is_an_error_of_every_way() -> None:
    assert [way["error"] for way in facts_routes.parse({"n1": "192.0.2.1", "n2": "192.0.2.2"}, "", "").values()] == [
        facts_routes.NO_ANSWER,
        facts_routes.NO_ANSWER,
    ]


def test_names_come_back_in_time_though_one_hangs() -> None:
    release = threading.Event()

    def ask(name: str) -> list[str]:
        if name == "hangs":
            release.wait(60)
        if name == "unknown":
            raise socket.gaierror(-2, "Name or service not known")
        return [f"192.0.2.{len(name)}"]

    began = time.monotonic()
    try:
        found, errors = facts_names.Resolver(["n1", "hangs", "unknown", "n1", "node5"], ask).results(0.3)
    finally:
        release.set()
    assert time.monotonic() - began < 30
    assert found == {"n1": ["192.0.2.2"], "hangs": [], "unknown": [], "node5": ["192.0.2.5"]}
    assert errors == {"hangs": "no answer within 0.3 s", "unknown": "Name or service not known"}


def test_the_resolver_of_this_machine() -> None:
    found, errors = facts_names.Resolver(["localhost", "no such name"]).results(20)
    assert set(found["localhost"]) <= {"127.0.0.1", "::1"} and found["localhost"]
    assert found["no such name"] == [] and errors["no such name"]


def test_lines_of_the_hosts_file() -> None:
    text = "127.0.0.1 localhost\n127.0.1.1\tn1.example N1 # n2\n\n192.0.2.1 n1\n"
    assert facts_names.hosts_lines(text, ["n1", "n2"]) == {
        "n1": [{"line": 2, "address": "127.0.1.1"}, {"line": 4, "address": "192.0.2.1"}]
    }


def test_the_probe_is_that_of_rfc_5227() -> None:
    frame = facts_arp.probe(bytes.fromhex("525400aa0001"), "192.0.2.11")
    assert frame.hex() == (
        "ffffffffffff525400aa00010806"  # everybody, from this card, ARP
        "0001080006040001"  # Ethernet, IPv4, a request
        "525400aa000100000000"  # sender: this card, no address
        "000000000000c000020b"  # target: whoever has the address
    )


REPLY = "525400aa0001020000000099" + "0806" + "0001080006040002" + "020000000099c000020b" + "525400aa000100000000"


@pytest.mark.parametrize(
    ("frame", "mac"),
    [
        (REPLY, "02:00:00:00:00:99"),
        (REPLY + "00" * 18, "02:00:00:00:00:99"),
        (REPLY.replace("c000020b", "c000020c"), ""),
        (REPLY.replace("06040002", "06040001"), ""),
        (REPLY[:40], ""),
    ],
)
def test_only_an_answer_for_this_address_counts(frame: str, mac: str) -> None:
    assert facts_arp.answer(bytes.fromhex(frame), "192.0.2.11") == mac


def test_nobody_is_asked_for_ipv6_or_without_a_card() -> None:
    assert facts_arp.others("fab0", "2001:db8::1", set()) is None
    assert facts_arp.others("no-such-card", "192.0.2.1", set()) is None


def test_limits_of_a_session() -> None:
    text = (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max processes             96365                96365                processes \n"
        "Max open files            1024                 524288               files     \n"
        "Max locked memory         unlimited            unlimited            bytes     \n"
    )
    assert facts_resources.parse_limits(text) == {"nofile": 1024, "memlock": -1, "nproc": 96365}
    assert facts_resources.parse_limits("runuser: user nobody5 does not exist\n") == {}


def test_the_limits_are_not_those_of_the_login_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ["runuser", "-u", "train", "--", "cat", "/proc/self/limits"]
    monkeypatch.setattr(service, "SYSTEMD_DIR", str(tmp_path))
    with_systemd = facts_resources.limits_command("train")
    assert with_systemd[0] == "systemd-run" and {"--pipe", "--wait"} <= set(with_systemd)
    assert with_systemd[-len(session) - 1 :] == ["--", *session]
    monkeypatch.setattr(service, "SYSTEMD_DIR", str(tmp_path / "none"))
    assert facts_resources.limits_command("train") == session and facts_resources.limits_command("")[2] == "root"


def test_reserved_ports() -> None:
    assert facts_resources.parse_ports("40000-40009,50000\n") == [[40000, 40009], [50000, 50000]]
    assert facts_resources.parse_ports("\n") == []


def test_free_space_of_a_folder_that_is_not_made_yet(tmp_path: Path) -> None:
    found = facts_resources.free(str(tmp_path / "a" / "b"))
    assert found["path"] == str(tmp_path / "a" / "b") and int(str(found["free_bytes"])) > 0


def test_denials_of_an_enforcing_policy_count() -> None:
    line = 'type=AVC msg=audit(1795291200.1:77): avc:  denied  {{ name_bind }} for  pid=1 comm="python" permissive={}'
    assert (
        facts_resources.denials(f"{line.format(0)}\n{line.format(1)}\ntype=SYSCALL msg=audit(1795291200.1:77)\n") == 1
    )


PLAN = {"ssh": [22], "rendezvous": {"first": 29500, "last": 29599}}


def test_who_listens_already(tmp_path: Path) -> None:
    """With and without the right to see the process; one of a card, one of two processes."""
    text = """\
LISTEN 0      128          0.0.0.0:29500      0.0.0.0:*    users:(("python3",pid=7,fd=3))
LISTEN 0      4096   198.18.30.2%fab0:29501      0.0.0.0:*    users:(("a b",pid=8,fd=3),("a b",pid=9,fd=3))
LISTEN 0      128             [::]:29502         [::]:*
"""
    found = facts_listeners.parse(text)
    assert [(one["address"], one["port"], one["program"], one["pid"]) for one in found] == [
        ("0.0.0.0", 29500, "python3", 7),
        ("198.18.30.2%fab0", 29501, "a b", 8),
        ("[::]", 29502, "", 0),
    ]
    for pid, line in (
        (7, f"python3\0-m\0ansible_collections.baremetal.{facts_listeners.OF_A_CHECK}worker"),
        (8, "a b"),
    ):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_text(line)
    # What a check has open is told as a check that is at work, by its own finding.
    assert [(one["port"], one["user"]) for one in facts_listeners.known(found, str(tmp_path))] == [
        (29501, getpass.getuser()),
        (29502, ""),
    ]


def test_the_listeners_of_this_machine_are_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = subprocess.run(facts_listeners.command(port, port), capture_output=True, text=True, check=True)
    (one,) = facts_listeners.parse(done.stdout)
    assert (one["address"], one["port"], one["pid"]) == ("127.0.0.1", port, os.getpid())


def test_what_libraries_read_in_jobs_with_its_file_and_without_keys(tmp_path: Path) -> None:
    pam, launcher = tmp_path / "pam", tmp_path / "launcher"
    pam.write_text("GLOO_SOCKET_IFNAME=eth9\nPATH=/usr/bin\nTORCH_NCCL_BLOCKING_WAIT=1\nNCCL_PSK=secret\n")
    launcher.write_text("# ours\nMASTER_ADDR=192.0.2.1\nGLOO_SOCKET_IFNAME=fab0\nNCCL_IB_DISABLE=0\n")
    assert facts_environment.of_libraries([str(pam), str(launcher)]) == {
        "GLOO_SOCKET_IFNAME": {"value": "fab0", "source": str(launcher)},
        "NCCL_IB_DISABLE": {"value": "0", "source": str(launcher)},
        "TORCH_NCCL_BLOCKING_WAIT": {"value": "1", "source": str(pam)},
    }
    # A node on which neither is there, or can be read.
    assert facts_environment.of_libraries([str(tmp_path), str(tmp_path / "none")]) == {}


def test_a_look_at_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the node are recorded, the rest is read from the machine that runs the test."""
    asked: list[list[str]] = []

    def run(argv: list[str], data: str = "", environ_update: Any = None) -> tuple[int, str, str]:
        assert argv[:2] == ["timeout", "10"] and environ_update == facts.ENVIRONMENT
        asked.append(argv[2:])
        if argv[2:] == list(facts_interfaces.ADDRESSES):
            return 0, LINKS, ""
        if argv[2:] == list(facts_routes.COMMAND):
            assert data == "route get 192.0.2.12\nroute get 192.0.2.12 from 192.0.2.11\n"
            bound = '[{"dst":"192.0.2.12","from":"192.0.2.11","dev":"fab0"}]\n'
            return 0, '[{"dst":"192.0.2.12","dev":"fab0","prefsrc":"192.0.2.11"}]\n' + bound, ""
        if argv[2:] == facts_listeners.command(29500, 29599):
            return 0, f'LISTEN 0 128 0.0.0.0:29512 0.0.0.0:* users:(("python3",pid={os.getpid()},fd=3))\n', ""
        return 1, "", "no"

    monkeypatch.setattr(facts_names, "look_up", lambda name: ["192.0.2.1"])
    monkeypatch.setattr(facts.facts_arp, "others", lambda *given: [str(given[:2])])
    monkeypatch.setattr(facts_environment, "of_libraries", lambda: {"NCCL_DEBUG": {"value": "INFO", "source": "/x"}})
    monkeypatch.setattr(facts, "_packet_filter", lambda *_given: {"readable": False})
    monkeypatch.setattr(facts_nccl, "of_torch", lambda python: [python])
    members = [
        {
            "name": name,
            "fabric_address": f"192.0.2.{number}",
            "fabric_interface": "fab0",
            "management_address": f"198.51.100.{number}",
            "addresses": [f"192.0.2.{number}"],
        }
        for name, number in (("n1", 11), ("n2", 12))
    ]
    found = facts.look(run, host="n1", members=members, user="no such user", plan=PLAN, torch_python="/x/python")
    assert found["routes"]["n2"]["source"] == "192.0.2.11"
    assert found["duplicates"] == [{"address": "192.0.2.11", "mac": "('fab0', '192.0.2.11')"}]
    assert facts_resources.limits_command("no such user") in asked
    assert found["nccl"] == facts_nccl.nothing(["/x/python"], "there is no user no such user")
    assert [(one["port"], one["user"]) for one in found["listeners"]] == [(29512, getpass.getuser())]
    assert facts_host_keys.command(f"{pwd.getpwnam('root').pw_dir}/.ssh/known_hosts") in asked
    assert found["host_keys"] == facts_host_keys.own(facts.read, facts._folder) and found["known_hosts"] == []
    assert found["neighbour_tables"] == facts_interfaces.neighbour_tables(facts.read)
    assert list(found["environment"]) == ["NCCL_DEBUG"]
    assert found["job"] == {"found": None, "why": "there is no user no such user"}
    assert len(found["ephemeral_range"]) == 2 and found["seconds"] >= 0 and found["epoch"] > 1e9
    json.dumps(found)
