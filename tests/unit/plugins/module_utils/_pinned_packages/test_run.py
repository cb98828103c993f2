# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole run on a node whose rpm and dnf are imitated: locks of what goes with the pinned packages, and check mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.system import Ended
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import (
    locks,
    memory,
    run,
    transaction,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Evr, Package
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.transaction import Step

OLD, NEW = "580.82.07", "580.95.05"
LOCK_LIST = "/etc/locks"
CUDA, LIBS, ML = "nvidia-driver-cuda", "nvidia-driver-cuda-libs", "libnvidia-ml"
HEADINGS = {"install": "Installing:", "upgrade": "Upgrading:", "downgrade": "Downgrading:", "remove": "Removing:"}
DEPENDENT = "Removing dependent packages:"


def driver(name: str, version: str = OLD) -> Package:
    return Package(name, Evr("3", version, "1.el9"), "x86_64")


def all_of(version: str) -> list[Package]:
    return [driver(name, version) for name in (CUDA, LIBS, ML)]


def lines(version: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{name}-3:{version}-1.el9.*" for name in names)


@dataclass
class Node:
    """What is installed and on offer, the lock list, the record, and what the next transaction does."""

    installed: list[Package] = field(default_factory=list)
    offered: list[Package] = field(default_factory=list)
    plan: list[Step] = field(default_factory=list)
    #: What dnf does instead of its plan.
    surprise: list[Step] | None = None
    #: A lock with which dnf has no plan.
    in_the_way: str = "none"
    fails: bool = False
    lock_list: str = ""
    record: memory.Memory = field(default_factory=memory.Memory)
    seen_locks: list[str] = field(default_factory=list)
    transactions: int = 0

    def call(self, version: str = OLD, *, check: bool = False, **options: Any) -> dict[str, Any]:
        package = {"name": CUDA, "version": version, "family": None, "variable": ""}
        params = {
            "group": "driver",
            "state": "present",
            "packages": [package],
            "absent": [],
            "locked_with": ["libnvidia-*", "nvidia-*"],
            "module_streams": [],
            "timeout_seconds": 60,
            "wait_seconds": 0,
        }
        return run.outcome(None, {**params, **options}, check)  # type: ignore[arg-type]

    @property
    def locked(self) -> tuple[str, ...]:
        return locks.read(self.lock_list, "driver").ours

    def read_text(self, path: str) -> str | None:
        return {LOCK_LIST: self.lock_list, memory.path("driver"): memory.render(self.record)}.get(path)

    def replace_file(self, _module: object, path: str, text: str) -> None:
        assert path == LOCK_LIST
        self.lock_list = text

    def remember(self, _module: object, _group: str, what: memory.Memory) -> None:
        self.record = what

    @contextmanager
    def box(self, _path: str) -> Iterator[Node]:
        self.seen_locks = []
        yield self

    prefix: Sequence[str] = ("box",)

    def write_locks(self, text: str) -> None:
        self.seen_locks.append(text)

    def dnf(self, _timeout: int, _wait: int) -> Dnf:
        return Dnf(self)


@dataclass
class Dnf:
    """As far as these runs ask it."""

    node: Node
    timeout_seconds: int = 60

    def offered(self, names: Sequence[str], _arguments: Sequence[str], _prefix: Sequence[str]) -> list[Package]:
        return [package for package in self.node.offered if package.name in names]

    def repositories(self) -> tuple[str, ...]:
        return ("baseos",)

    def switch_streams(self, _switches: object, _prefix: Sequence[str] = ()) -> None:
        return None

    def shell(self, script: str, arguments: Sequence[str], _seconds: int, _prefix: Sequence[str] = ()) -> Ended:
        node = self.node
        assert script
        if "--assumeno" in arguments:
            if node.in_the_way in node.seen_locks[-1]:
                return Ended(1, "", "Error: \n Problem: package libnvidia-ml is filtered out by exclude filtering\n")
            table = "".join(
                f"{DEPENDENT if step.is_dependent else HEADINGS[step.kind]}\n {step.package.name} "
                f"{step.package.arch} {step.package.evr} lab 1 k\n\n"
                for step in node.plan
            )
            return Ended(1, table, "Operation aborted.\n")
        node.transactions += 1
        if node.fails:
            return Ended(1, "", "Error: no space\n")
        node.installed = list(transaction.after(node.installed, node.plan if node.surprise is None else node.surprise))
        return Ended(0, "", "")


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Node:
    found = Node()
    # The plugin is there, and with the list where these tests look for it.
    monkeypatch.setattr(locks, "CONFIGURATION", str(tmp_path))
    monkeypatch.setattr(locks, "place_and_switch", lambda _text: (LOCK_LIST, True))
    monkeypatch.setattr(run, "replace_file", found.replace_file)
    monkeypatch.setattr(run.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(run.system, "installed", lambda: tuple(found.installed))
    monkeypatch.setattr(run.system, "read_text", found.read_text)
    monkeypatch.setattr(run.system, "stream_files", dict)
    monkeypatch.setattr(run.system, "restore_streams", lambda _module, _before: None)
    monkeypatch.setattr(run.system, "exclusions", lambda: ())
    monkeypatch.setattr(run.system, "remember", found.remember)
    monkeypatch.setattr(run.system, "box", found.box)
    monkeypatch.setattr(run.system, "Dnf", found.dnf)
    return found


def steps(kind: str, packages: Sequence[Package]) -> list[Step]:
    return [Step(kind, package) for package in packages]


def test_what_is_there_already_is_locked_and_stays_so(node: Node) -> None:
    node.installed = [*all_of(OLD), driver("libnvidia-cfg", NEW)]
    expected = lines(OLD, CUDA, ML, LIBS)
    planned = node.call(check=True)
    assert planned["actions"] == [f"lock {line}" for line in expected] and node.lock_list == ""
    assert node.call()["actions"] == planned["actions"]
    assert node.locked == node.record.locks == expected
    assert not node.call()["changed"] and node.transactions == 0
    # What went since then is not needed, and not locked.
    node.installed.remove(driver(ML))
    assert node.call()["actions"] == [f"unlock {line}" for line in lines(OLD, ML)]
    assert node.call(locked_with=[])["actions"] == [f"unlock {line}" for line in lines(OLD, LIBS)]


def test_locks_are_those_of_the_versions_after_the_transaction(node: Node) -> None:
    node.installed, node.offered = all_of(OLD), all_of(NEW)
    node.call()
    # One is installed before, one comes along, and one is new with this version.
    node.plan = [*steps("upgrade", [driver(CUDA, NEW), driver(ML, NEW)]), *steps("install", [driver("nvidia-x", NEW)])]
    expected = lines(NEW, CUDA, ML, "nvidia-x")
    told = [f"unlock {line}" for line in lines(OLD, CUDA, ML, LIBS)] + [f"lock {line}" for line in expected]
    planned = node.call(NEW, check=True)
    assert planned["actions"][3:] == told and node.locked == lines(OLD, CUDA, ML, LIBS)
    for line in expected:
        assert f"lock {line}\n" in planned["diff"]["after"]
    # dnf's plan has none of the locks that would keep what goes with it where it is.
    assert locks.read(node.seen_locks[0], "driver").ours == lines(NEW, CUDA)
    done = node.call(NEW)
    assert done["actions"] == planned["actions"]
    assert node.locked == node.record.locks == expected
    assert not node.call(NEW)["changed"] and node.transactions == 1


def test_what_goes_with_a_rebuilt_package_may_move_with_it(node: Node) -> None:
    """Epoch and version stay, and still the release that is installed must not be locked while dnf plans."""
    rebuilt = [Package(one.name, Evr("3", OLD, "2.el9"), one.arch) for one in all_of(OLD)]
    node.installed, node.offered, node.plan = all_of(OLD), rebuilt, steps("upgrade", rebuilt)
    node.call()
    node.call(f"{OLD}-2.el9")
    assert locks.read(node.seen_locks[0], "driver").ours == ("nvidia-driver-cuda-3:580.82.07-2.el9.*",)
    assert node.locked == tuple(line.replace("-1.el9", "-2.el9") for line in lines(OLD, CUDA, ML, LIBS))


def test_locks_follow_what_dnf_has_done(node: Node) -> None:
    node.offered = all_of(OLD)
    node.plan, node.surprise = steps("install", all_of(OLD)), steps("install", [driver(CUDA), driver(LIBS)])
    assert node.call()["actions"][-2:] == [f"lock {line}" for line in lines(OLD, CUDA, LIBS)]
    assert node.locked == node.record.locks == lines(OLD, CUDA, LIBS)


def test_locks_are_taken_back_when_dnf_fails(node: Node) -> None:
    node.installed, node.offered, node.plan = all_of(OLD), all_of(NEW), steps("upgrade", all_of(NEW))
    node.call()
    before = node.lock_list, node.record
    node.fails = True
    with pytest.raises(run.SystemFailure, match="Everything is as it was before"):
        node.call(NEW)
    assert (node.lock_list, node.record) == before and node.transactions == 1


def test_with_the_packages_their_locks_go(node: Node) -> None:
    node.installed = all_of(OLD)
    node.call()
    node.plan = steps("remove", [driver(CUDA)])
    told = ["remove nvidia-driver-cuda 3:580.82.07-1.el9", *(f"unlock {line}" for line in lines(OLD, CUDA, ML, LIBS))]
    assert node.call(state="absent", check=True)["actions"] == told
    assert node.call(state="absent")["actions"] == told
    assert node.lock_list == "" and node.record == memory.Memory()
    assert not node.call(state="absent")["changed"]


def refused(node: Node, version: str, **options: Any) -> str:
    with pytest.raises(run.RefusedError) as caught:
        node.call(version, **options)
    return " ".join(problem.sentence() for problem in caught.value.problems)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_lock_of_others_on_what_goes_with_it_is_named(node: Node, is_there: bool) -> None:
    line = node.in_the_way = "libnvidia-ml-3:570.172.08-1.el9.*"
    node.lock_list = before = f"{line}\n"
    node.installed = all_of(OLD) if is_there else []
    node.offered, node.plan = all_of(OLD), steps("install", all_of(OLD))
    said = refused(node, OLD)
    assert said.startswith(
        f"locked_with[libnvidia-ml] = '3:580.82.07-1.el9': libnvidia-ml is locked to another version in {LOCK_LIST} "
        f"({line}). Fix: take that lock away (`dnf versionlock delete {line}`)"
    )
    assert node.lock_list == before and node.transactions == 0
    # Another reason is told as dnf tells it.
    node.installed, node.lock_list, node.in_the_way = [], "horovod-0:1-1.*\n", ""
    with pytest.raises(run.SystemFailure, match="is filtered out by exclude filtering"):
        node.call()


def test_check_mode_waits_for_a_repository_that_is_not_there_yet(node: Node) -> None:
    compiler = {"name": "gcc-c++", "version": "", "family": None, "variable": ""}
    wanted = [{"name": name, "version": OLD, "family": None, "variable": ""} for name in (CUDA, LIBS)]
    node.offered = [Package("gcc-c++", Evr("0", "11", "1"), "x86_64")]
    found = node.call(check=True, packages=[compiler, *wanted])
    assert found["changed"] and found["actions"] == [
        "install gcc-c++ 11-1",
        "install nvidia-driver-cuda, once a repository offers it",
        "install nvidia-driver-cuda-libs, once a repository offers it",
    ]
    sentence = "packages[{0}]: no repository of the node offers the package {0}; the node uses baseos. Fix: "
    for said, name in zip(found["warnings"], (CUDA, LIBS)):
        assert said.startswith(sentence.format(name))
    assert "nvidia-driver-cuda not installed\n" in found["diff"]["before"]
    assert "nvidia-driver-cuda 580.82.07, once a repository offers it\n" in found["diff"]["after"]
    # Outside of check mode it is an error, and so is a version that is not among those on offer.
    assert sentence.format(CUDA) in refused(node, OLD, packages=wanted)
    node.offered = [driver(CUDA, NEW)]
    assert "offers that version of nvidia-driver-cuda" in refused(node, OLD, check=True)
    assert "offers that version of nvidia-driver-cuda" in refused(node, OLD, check=True, packages=wanted)
    assert node.transactions == 0


def test_what_needs_something_that_goes_is_to_be_removed_first(node: Node) -> None:
    node.installed = all_of(OLD)
    node.plan = [Step("remove", driver(CUDA)), Step("remove", driver("other"), is_dependent=True)]
    said = refused(node, OLD, state="absent")
    assert "is needed by other 3:580.82.07-1.el9, which would go as well" in said
    assert said.endswith("Fix: remove those packages first (`dnf remove`), then run again.")


def test_what_is_there_in_any_version_asks_no_repository(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def dnf(*_arguments: object) -> None:
        raise AssertionError("dnf was asked")

    monkeypatch.setattr(run.system, "Dnf", dnf)
    node.installed = all_of(OLD)
    assert not node.call("")["changed"] and node.lock_list == ""


def test_an_optional_package_that_nobody_offers_is_left_out(node: Node) -> None:
    """EPEL 10 lacks tools that EPEL 9 has."""
    common = {"version": "", "family": None, "variable": "monitoring_packages", "optional": True}
    wanted = [{"name": name, **common} for name in ("nload", "iperf3")]
    iperf3 = Package("iperf3", Evr("0", "3.17", "1"), "x86_64")
    node.offered, node.plan = [iperf3], [Step("install", iperf3)]
    planned = node.call(check=True, packages=wanted)
    found = node.call(packages=wanted)
    assert planned["actions"] == found["actions"] == ["install iperf3 3.17-1"]
    assert planned["warnings"] == found["warnings"]
    (said,) = found["warnings"]
    assert said.startswith("Left out: monitoring_packages[nload]: no repository of the node offers the package nload;")
    assert found["packages"] == {"iperf3": "3.17-1"} and node.installed == [iperf3]
    # A second run, and one in check mode, change nothing and warn again.
    for check in (True, False):
        again = node.call(packages=wanted, check=check)
        assert not again["changed"] and again["warnings"] == [said]
    # Where nothing of the list is to be had, nothing is done.
    node.installed, node.offered = [], []
    assert not node.call(packages=wanted)["changed"] and node.transactions == 1
    # One that is not optional fails as before, and one with a version cannot be optional.
    assert "offers the package nload" in refused(node, OLD, packages=[{**wanted[0], "optional": False}])
    assert "a package with a version is not optional" in refused(node, OLD, packages=[{**wanted[0], "version": "1"}])
