# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command check, as a person calls it."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

#: Another step, or another answer of the same kind.
LONG = pytest.mark.long
HOSTS = ["n1", "n2", "n3"]
STEPS = ["launch", "probe_begin", "probe", "go", "collect"]


def test_a_healthy_cluster(site: Any) -> None:
    assert site.check("--set", "user=train", "--report-dir", "reports") == 0, site.err + site.out
    assert site.out.startswith("PASSED: world 3, 3 nodes") and site.err == ""
    assert site.steps("n2") == ["addresses", "static", *STEPS, "facts"]
    assert site.steps("n1") == ["addresses", "static", *STEPS, "openmpi", "facts"]
    launch = {one["host"]: one["given"] for one in site.asked if one["step"] == "launch"}
    assert {host: one["address"] for host, one in launch.items()} == {host: f"192.0.2.{host[1:]}" for host in HOSTS}
    assert {(one["interface"], one["user"]) for one in launch.values()} == {("fab0", "train")}
    # A range of the default plan, and a default that only the spec of the program has.
    assert {"name": "mpi", "first": 61000, "last": 64999} in launch["n1"]["ranges"]
    assert launch["n1"]["rendezvous_first"] == 29400 and launch["n1"]["wait_seconds"] == 15
    (static,) = [one["given"] for one in site.asked if one["step"] == "static" and one["host"] == "n2"]
    # The address that all nodes have is no address of a member.
    assert static["members"][1]["addresses"] == ["192.0.2.2"] and static["members"][1]["fabric_prefix"] == 24
    report = json.loads((site.folder / "reports/report.json").read_text())
    assert report["verdict"] == "PASSED" and report["participants"] == HOSTS
    assert report["origin"]["inventory"] == ["n[1-3]"] and report["origin"]["product_version"]
    assert site.out == (site.folder / "reports/report.txt").read_text()
    assert [one["name"] for one in report["times"]] == [
        *("static", "launch", "mesh", "collective", "openmpi", "facts", "diagnosis")
    ]
    # Nothing is left on this machine.
    assert list((site.folder / "tmp").iterdir()) == []


def test_json_and_how_ssh_is_called(site: Any) -> None:
    more = ("--user", "admin", "--ssh-port", "2222", "--ssh-option", "ServerAliveInterval=9", "--forks", "1")
    assert site.check(*more, "--json", "--set", "openmpi=false") == 0, site.err + site.out
    report = json.loads(site.out)
    assert report["verdict"] == "PASSED" and report["schema_version"] == 3
    for line in site.called:
        options, _dashes, command = line.partition(" -- ")
        assert command.startswith(("n1 cd / && exec ", "n2 cd / && exec ", "n3 cd / && exec "))
        assert " -p 2222 -l admin" in options and "BatchMode=yes" in options and "ServerAliveCountMax=3" in options
        # ssh takes the first one.
        assert options.index("ServerAliveInterval=9") < options.index("ServerAliveInterval=5")
    (static,) = [one["given"] for one in site.asked if one["step"] == "static" and one["host"] == "n2"]
    assert static["plan"]["ssh"] == [2222]
    # The sum of what one fork adds for three hosts.
    launch = next(one["given"] for one in site.asked if one["step"] == "launch")
    assert launch["lifetime_seconds"] > 170


def test_addresses_that_are_given_and_this_machine(site: Any) -> None:
    """Without them it is the first one of the interface."""
    two = {"answer": {"interfaces": {"fab0": ["192.0.2.99/24", "192.0.2.2/24"]}}}
    site.faults = {"n2": {"addresses": two}}
    (site.folder / "addresses").write_text("# of the data network\nn2 192.0.2.2\nn9=198.18.20.9\n")
    assert site.check("--local", "n1", "--address-file", "addresses") == 0, site.err + site.out
    launch = {one["host"]: one["given"]["address"] for one in site.asked if one["step"] == "launch"}
    assert launch == {host: f"192.0.2.{host[1:]}" for host in HOSTS}
    (static,) = [one["given"] for one in site.asked if one["step"] == "static" and one["host"] == "n1"]
    assert static["members"][1]["addresses"] == ["192.0.2.2", "192.0.2.99"]
    assert not [line for line in site.called if " -- n1 " in line] and site.steps("n1")[-1] == "facts"


def test_limits_and_a_port_plan(site: Any) -> None:
    (site.folder / "limits").write_text('{"sizes": [{"size_bytes": 4096, "milliseconds_max": 0.001}]}')
    (site.folder / "plan").write_text('{"mpi": "62000-62999", "rendezvous": "30000-30099"}')
    assert site.check("--limits", "limits", "--port-plan", "plan") == 1, site.err + site.out
    assert "GC-PERF-001" in site.out
    launch = next(one["given"] for one in site.asked if one["step"] == "launch")
    assert {"name": "mpi", "first": 62000, "last": 62999} in launch["ranges"]
    assert (launch["rendezvous_first"], launch["rendezvous_last"]) == (30000, 30099)


@pytest.mark.parametrize("step", [pytest.param("addresses", marks=LONG), "launch", pytest.param("collect", marks=LONG)])
def test_a_node_that_ssh_does_not_reach(site: Any, step: str) -> None:
    site.faults = {"n2": {step: {"exit": 255}}}
    assert site.check("--json") == 1, site.err + site.out
    report = json.loads(site.out)
    (lost,) = [one for one in report["findings"] if one["id"] == "GC-HOST-001"]
    assert lost["hosts"] == ["n2"] and "Connection timed out" in json.dumps(lost)
    assert report["culprits"].keys() == {"n2"} and site.steps("n2")[-1] == step and site.steps("n3")[-1] == "facts"


def test_a_node_without_an_address_there(site: Any) -> None:
    site.faults = {"n2": {"addresses": {"answer": {"interfaces": {"fab0": [], "eth0": ["198.18.1.2/24"]}}}}}
    assert site.check() == 1, site.err + site.out
    assert "n2: no address on the interface fab0; interfaces with one: eth0 198.18.1.2/24" in site.out
    assert site.steps("n2") == ["addresses"] and site.steps("n3")[1:] == ["static", *STEPS, "facts"]


def test_no_node_answers(site: Any) -> None:
    site.faults = {host: {"addresses": {"exit": 255}} for host in HOSTS}
    assert site.check() == 1, site.err + site.out
    assert all(site.steps(host) == ["addresses"] for host in HOSTS) and site.out.startswith("FAILED")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"interfaces": "x"}, marks=LONG),
        {"interfaces": {"fab0": ["192.0.2.2; rm"]}},
        pytest.param({"interfaces": {"fab0": {"a": 1}}}, marks=LONG),
        {"static": {"epoch": "x", "seconds": {}}},
        {"unreachable": True, "state": "waiting", "\x1b[31m": 1},
    ],
)
def test_a_node_that_answers_something_else(site: Any, answer: dict[str, Any]) -> None:
    """It costs the others nothing, and nothing of it gets to the terminal."""
    step = "static" if "static" in answer else "launch" if "state" in answer else "addresses"
    site.faults = {"n2": {step: {"answer": answer}}}
    assert site.check("--json") == 1, site.err + site.out
    report = json.loads(site.out)
    assert report["culprits"].keys() == {"n2"} and "is not what its program returns" in site.out
    assert site.steps("n3")[-1] == "facts" and "\x1b" not in site.out


def test_a_node_without_python(site: Any) -> None:
    site.python = site.folder / "none"
    assert site.check() == 1
    assert "none ended with 127 and gave no answer: sh: " in site.out and "not found" in site.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_run_on_the_nodes(site: Any, number: signal.Signals) -> None:
    site.faults = {"n2": {"go": {"sleep": 60}}}
    began = time.monotonic()
    assert site.interrupted("go", number) == 128 + number, site.err
    assert time.monotonic() - began < 40
    assert site.out == "" and "interrupted, there is no verdict" in site.err
    assert "Hand the ranks their job: 3 host(s)\n" in site.err
    ended = [one for one in site.asked if one["step"] == "collect"]
    assert {one["host"] for one in ended} == set(HOSTS)
    assert {one["given"]["wait_seconds"] for one in ended} == {0}
    assert {one["given"]["run_id"] for one in ended} == {
        one["given"]["run_id"] for one in site.asked if one["step"] == "launch"
    }
    assert list((site.folder / "tmp").iterdir()) == []


def test_a_second_interruption_waits_for_nobody(site: Any) -> None:
    site.faults = {"n2": {"go": {"sleep": 60}, "collect": {"sleep": 60}}}
    process = site.start(*site.options())
    site.wait_for("go")
    process.send_signal(signal.SIGINT)
    site.wait_for("collect")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert site.end(process) == 130, site.err
    assert time.monotonic() - began < 10 and list((site.folder / "tmp").iterdir()) == []


def test_an_interrupted_mpirun_is_cleared(site: Any) -> None:
    site.faults = {"n1": {"openmpi": {"sleep": 60}}}
    site.options = lambda *more, options=site.options: options("--set", "user=train", *more)
    assert site.interrupted("openmpi") == 130, site.err
    assert all(site.steps(host)[-1] == "openmpi_clear" for host in HOSTS)


def test_nothing_is_started_with_wrong_options(site: Any) -> None:
    more = ("--hosts=-oProxyCommand=x,n1;id", "--user=-l", "--set", "samples=99", "--forks", "0", "--interface", "fab0")
    assert site.run("check", *more) == 2
    lines = site.err.splitlines()
    assert len(lines) == 6 and all(line.startswith("gpu-cluster-check: ") for line in lines), site.err
    assert site.run("check", *more, "--json") == 2 and len(json.loads(site.out)["problems"]) == 6
    assert site.called == [] and site.asked == []
