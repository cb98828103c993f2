# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pinned packages with the node's real dnf and rpm: signed packages with content, module streams, SIGKILL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lab_mirror
import lab_packages
import pytest
import yaml
from lab_cluster import Cluster
from lab_packages import StandIn, real_nccl

LOCK_LIST = "/etc/dnf/plugins/versionlock.list"
#: A lock of the site's own; it must stay as it is.
FOREIGN_LOCK = "# of the site\nhorovod-0:0.28.1-1.*\n"
STATE = (
    "rpm -qa | sort; find /etc/dnf /var/lib/gpu-cluster/packages -type f 2>/dev/null | sort | xargs sha256sum; "
    "cat /etc/dnf/modules.d/* 2>/dev/null; true"
)
NCCL_VERSION = (
    "import ctypes; found = ctypes.c_int(); "
    'ctypes.CDLL("/usr/lib64/libnccl.so.2").ncclGetVersion(ctypes.byref(found)); print(found.value)'
)
#: A scriptlet that stops for as long as a test wants, and says who runs it.
HOLDING = """\
echo "$1" >> /var/tmp/held/began
if [ -e /var/tmp/held/stop ]; then
    echo "$PPID $$" > /var/tmp/held/new; mv /var/tmp/held/new /var/tmp/held/here
    while [ -e /var/tmp/held/stop ]; do sleep 0.1; done
fi
echo "$1" >> /var/tmp/held/ended
"""
#: Waits in the background for that scriptlet, ends processes without warning, and lets what is left go on.
KILL = (
    "rm -rf /var/tmp/held; mkdir /var/tmp/held; touch /var/tmp/held/stop; "
    "setsid sh -c 'until [ -e /var/tmp/held/here ]; do sleep 0.05; done; set -- $(cat /var/tmp/held/here); "
    "kill -9 {processes}; sleep 1.5; rm /var/tmp/held/stop' > /dev/null 2>&1 < /dev/null &"
)
OF_DNF = "$1 $2"
#: The module as well, as when the node loses its power.
OF_ALL = "$(ps -o ppid= -p $1) $1 $2"
#: Only the module, as when the connection to the node breaks.
OF_THE_MODULE = "$(ps -o ppid= -p $1)"
#: Ansible, the module, dnf and rpm cannot take these away any more.
LEFT_BY_KILLED_PROCESSES = (
    "rm -rf /var/tmp/held /tmp/ansible_baremetal.gpu_cluster.pinned_packages_* /tmp/gpu-cluster-dnf-* "
    "/var/tmp/rpm-tmp.*; find /tmp -maxdepth 1 -type f -name 'tmp????????' -empty -delete"
)
NCCL_VERSIONS = ("2.26.5-1+cuda12.9", "2.27.7-1+cuda13.0", "2.28.9-1+cuda12.9", "2.28.9-1+cuda13.0")
MODULE = """\
---
document: modulemd
version: 2
data:
  name: nvidia-driver
  stream: {stream}
  version: 1
  context: {context}
  arch: x86_64
  summary: Driver
  description: Driver
  license: {{module: [MIT]}}
  artifacts:
    rpms: [{artifacts}]
...
"""
DRIVER = ("nvidia-driver-cuda", "nvidia-driver-cuda-libs", "libnvidia-ml", "kmod-nvidia-open-dkms")


@dataclass(frozen=True)
class Site:
    """The repository, and the key that its packages are signed with."""

    mirror: lab_mirror.Mirror
    key: str


def nccl_packages(library: Path) -> Iterator[StandIn]:
    for evr in NCCL_VERSIONS:
        content = library if evr == NCCL_VERSIONS[-1] else evr.encode()
        files = {"/usr/lib64/libnccl.so.2": content, "/usr/lib64/libnccl.so": "libnccl.so.2"}
        yield StandIn("libnccl", evr, files=files)
        yield StandIn("libnccl-devel", evr, requires=[f"libnccl = {evr}"])


def driver_packages() -> Iterator[StandIn]:
    for version in ("580.82.07", "580.95.05", "590.44.01"):
        evr = f"3:{version}-1.el9"
        yield StandIn("nvidia-driver-cuda", evr, requires=[f"nvidia-driver-cuda-libs = {evr}"])
        # As NVIDIA's package requires libnvidia-ml and others of its kind: in exactly its version.
        yield StandIn("nvidia-driver-cuda-libs", evr, requires=[f"libnvidia-ml = {evr}"])
        yield StandIn("libnvidia-ml", evr)
        yield StandIn("kmod-nvidia-open-dkms", evr, conflicts=["kmod-nvidia-latest-dkms"])
        yield StandIn("kmod-nvidia-latest-dkms", evr)
        if version != "580.95.05":
            yield StandIn("nvidia-fabricmanager", f"{version}-1")


def driver_streams() -> str:
    def document(stream: str, versions: tuple[str, ...]) -> str:
        names = [f"{name}-3:{version}-1.el9.x86_64" for name in DRIVER for version in versions]
        return MODULE.format(stream=stream, context=f"c{stream[:3]}", artifacts=", ".join(names))

    return document("580-open", ("580.82.07", "580.95.05")) + document("590-open", ("590.44.01",))


def tool_packages() -> Iterator[StandIn]:
    for version in ("1", "2"):
        # Two packages, so that a transaction can be interrupted between them.
        files = {"/usr/share/labtool/": b"", "/usr/share/labtool/version": version.encode()}
        yield StandIn("labtool", f"{version}-1", files=files, post=HOLDING)
        files = {"/usr/share/labtool/extra": version.encode()}
        yield StandIn("labtool-extra", f"{version}-1", files=files, requires=[f"labtool = {version}-1"])
    yield StandIn("unsignedtool", "1-1", signed=False)
    yield StandIn("foreigntool", "1-1", signed_by="foreign")
    yield StandIn("needytool", "1-1", requires=["libnonsense.so.7"])
    yield StandIn("failingtool", "1-1", post="exit 3")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("packages")
    keys = lab_mirror.Keys(folder / "g")
    for name in ("site", "foreign"):
        keys.make(name)
    library = real_nccl(folder)
    packages = [*nccl_packages(library), *driver_packages(), *tool_packages()]
    lab_packages.build_repository(folder / "repository", keys, "site", packages, driver_streams())
    mirror = lab_mirror.Mirror(folder / "repository")
    yield Site(mirror, keys.public("site"))
    mirror.close()
    keys.close()
    # pytest keeps the folder for a while, and need not keep 400 MB.
    for file in (library, *(folder / "repository").glob("libnccl-2.28.9-*")):
        file.unlink()


def pin(group: str = "trial", *packages: tuple[str, str], check: bool = False, **options: Any) -> dict[str, Any]:
    """A call of the module."""
    listed = [{"name": name, "version": version} for name, version in packages]
    task: dict[str, Any] = {"baremetal.gpu_cluster.pinned_packages": {"group": group, "packages": listed, **options}}
    return {**task, "check_mode": True, "diff": True} if check else task


def nccl(version: str, **options: Any) -> dict[str, Any]:
    return pin("nccl", ("libnccl", version), ("libnccl-devel", version), **options)


class Node:
    """The node under test."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.name = next(iter(cluster.hosts))
        self.folder = folder

    def do(self, *steps: dict[str, Any] | str) -> list[Any]:
        """One playbook with all steps: what each call of the module returned, and what each command printed."""
        tasks: list[dict[str, Any]] = []
        for number, step in enumerate(steps):
            task = {"ansible.builtin.shell": step} if isinstance(step, str) else step
            tasks.append({"name": f"Step {number}", **task, "register": f"step_{number}", "ignore_errors": True})
        names = ", ".join(f"step_{number}" for number in range(len(steps)))
        results = f"{{{{ [{names}] | to_json }}}}"
        file = self.folder / "results.json"
        file.unlink(missing_ok=True)
        copy = {"content": results, "dest": str(file), "mode": "0600"}
        tasks.append({"name": "Keep", "ansible.builtin.copy": copy, "delegate_to": "localhost", "check_mode": False})
        playbook = self.folder / "steps.yml"
        playbook.write_text(yaml.safe_dump([{"hosts": self.name, "gather_facts": False, "tasks": tasks}]))
        ended = self.cluster.play(str(playbook))
        assert ended.code == 0 and file.exists(), ended.text
        found = json.loads(file.read_text())
        return [one["stdout"] if isinstance(step, str) else one for step, one in zip(steps, found, strict=True)]


@pytest.fixture
def node(cluster: Cluster, site: Site, tmp_path: Path) -> Iterator[Node]:
    found = Node(cluster, tmp_path)
    with lab_packages.on_node(cluster, found.name, site.mirror.url, site.key):
        yield found
    cluster.shell(found.name, LEFT_BY_KILLED_PROCESSES)


def test_a_pin_is_installed_kept_and_moved_by_one_variable(node: Node, site: Site) -> None:
    asked = f"curl -s {site.mirror.url}/asked-{{}}; stat -c %s /var/log/dnf.log"
    found = node.do(
        f"printf '{FOREIGN_LOCK}' >> {LOCK_LIST}; {STATE}",
        nccl("2.27.7", check=True),
        STATE,
        nccl("2.27.7"),
        asked.format("before"),
        nccl("2.27.7"),
        asked.format("after"),
        "dnf -q -y upgrade; rpm -q libnccl libnccl-devel",
        nccl("2.28.9-*+cuda13.0"),
        f"python3 -c '{NCCL_VERSION}'",
        "rm -rf /var/cache/dnf/lab-nvidia-*/packages",
        STATE,
        nccl("2.99"),
        STATE,
        nccl("2.26"),
        f"cat {LOCK_LIST}",
        # dnf writes the list anew without comments; the lines are still ours.
        "dnf -q versionlock delete horovod; rpm -q libnccl",
        nccl("2.27.7"),
        f"cat {LOCK_LIST}",
        nccl("", state="absent"),
        f"cat {LOCK_LIST}; rpm -q libnccl; ls /var/lib/gpu-cluster/packages",
    )
    state, planned, state_after, installed, before, again, after, upgraded, moved, version, _step1, *rest = found
    assert planned["changed"] and state_after == state
    actions = [f"install {name} 2.27.7-1+cuda13.0" for name in ("libnccl", "libnccl-devel")]
    locks = [f"lock {name}-0:2.27.7-1+cuda13.0.*" for name in ("libnccl", "libnccl-devel")]
    assert planned["actions"] == actions + locks
    assert planned["diff"]["before"] == "libnccl not installed\nlibnccl-devel not installed\n"
    assert planned["diff"]["after"].endswith("lock libnccl-devel-0:2.27.7-1+cuda13.0.*\n")
    assert installed["changed"] and installed["actions"] == planned["actions"]
    assert installed["packages"] == {"libnccl": "2.27.7-1+cuda13.0", "libnccl-devel": "2.27.7-1+cuda13.0"}

    assert not again["changed"] and again["actions"] == []
    between = site.mirror.requests[site.mirror.requests.index("/asked-before") :]
    assert between[1] == "/asked-after", between
    assert before == after, "dnf ran"
    assert "libnccl-2.27.7-" in upgraded and "libnccl-devel-2.27.7-" in upgraded

    assert moved["actions"][0] == "upgrade libnccl from 2.27.7-1+cuda13.0 to 2.28.9-1+cuda13.0"
    # NVIDIA's own library says which version it is.
    assert version.strip() == str(2 * 10000 + 28 * 100 + 9)

    state, wrong, state_after, back, locked, listed, forward, locked_again, gone, left = rest
    assert wrong["failed"] and wrong["msg"].startswith("Nothing was changed."), wrong
    assert f"packages[libnccl].version = '2.99': no repository of the node offers that version of libnccl; there are " \
        f"{', '.join(NCCL_VERSIONS)}. Fix: " in wrong["msg"], wrong  # fmt: skip
    assert state == state_after
    assert back["actions"][0] == "downgrade libnccl from 2.28.9-1+cuda13.0 to 2.26.5-1+cuda12.9"
    assert FOREIGN_LOCK in locked and "\nlibnccl-0:2.26.5-1+cuda12.9.*\n" in locked
    assert "2.27.7" not in locked and "2.28.9" not in locked
    assert "libnccl-2.26.5" in listed
    assert forward["packages"]["libnccl"] == "2.27.7-1+cuda13.0", forward
    assert "2.26.5" not in locked_again and "libnccl-0:2.27.7-1+cuda13.0.*" in locked_again
    assert gone["changed"] and "remove libnccl 2.27.7-1+cuda13.0" in gone["actions"]
    assert "libnccl-" not in left and "gpu-cluster" not in left and "nccl.json" not in left, left
    assert "package libnccl is not installed" in left


def test_what_dnf_refuses_has_its_sentence(node: Node) -> None:
    before, unsigned, foreign, needy, waiting, after, failing, busy, waited, _step1 = node.do(
        STATE,
        pin("trial", ("unsignedtool", "1")),
        pin("trial", ("foreigntool", "1")),
        pin("trial", ("needytool", "1")),
        pin("trial", ("no-such-tool", "1"), check=True),
        STATE,
        pin("trial", ("failingtool", "1")),
        {
            "name": "A lock that another process holds",
            "vars": {"held": "sleep 600 & echo $! > /var/cache/dnf/metadata_lock.pid; wait"},
            "ansible.builtin.shell": "setsid sh -c '{{ held }}' > /dev/null 2>&1 < /dev/null & sleep 0.3",
        },
        pin("trial", ("labtool", "1"), wait_seconds=1),
        "kill $(cat /var/cache/dnf/metadata_lock.pid) && rm /var/cache/dnf/metadata_lock.pid",
    )
    assert (
        unsigned["failed"] and "dnf refuses unsignedtool-1-1.x86_64.rpm: the package is not signed" in unsigned["msg"]
    )
    rule = "dnf refuses foreigntool-1-1.x86_64.rpm: no trusted key of the node has made its signature"
    assert foreign["failed"] and rule in foreign["msg"]
    # dnf says since 4.19 from which repository.
    assert needy["msg"].replace(" from lab-nvidia", "") == (
        "dnf cannot do it: Problem: conflicting requests; nothing provides libnonsense.so.7 needed by "
        "needytool-1-1.x86_64. Everything is as it was before."
    )
    # A repository may come in the same run.
    assert waiting["changed"] and waiting["actions"] == ["install no-such-tool, once a repository offers it"], waiting
    assert waiting["warnings"][0].startswith(
        "packages[no-such-tool]: no repository of the node offers the package no-such-tool; the node uses "
    )
    for refused in (unsigned, foreign):
        assert refused["msg"].endswith("Everything is as it was before.")
    assert before == after
    assert not failing["failed"]
    assert failing["warnings"] == [
        "The scriptlet %post of failingtool-1-1.x86_64 failed with exit status 3; rpm calls the package installed."
    ]
    assert waited["failed"] and "(sleep) holds dnf's lock, and still did after 1 s." in waited["msg"], waited
    assert not busy["failed"]


def test_a_branch_has_one_version_within_its_module_stream(node: Node) -> None:
    names = ("nvidia-driver-cuda", "nvidia-fabricmanager", "kmod-nvidia-open-dkms")

    def branch(version: str, stream: str, **options: Any) -> dict[str, Any]:
        streams = [f"nvidia-driver:{stream}", "no-such-module:1"]
        wanted = [(name, version) for name in names]
        options = {"locked_with": ["libnvidia-*", "nvidia-*"], "module_streams": streams, **options}
        return pin("driver", *wanted, absent=["kmod-nvidia-latest-*"], **options)

    old, hidden, before, planned, after, first, again, upgraded, wrong, second, gone, left = node.do(
        "dnf -q -y install kmod-nvidia-latest-dkms; rpm -q kmod-nvidia-latest-dkms",
        pin("driver", ("nvidia-driver-cuda", "580")),
        STATE,
        branch("580", "580-open", check=True),
        STATE,
        branch("580", "580-open"),
        branch("580", "580-open"),
        # The stream has 580.95.05 of everything but Fabric Manager.
        "rpm -qa | sort > /var/tmp/before; dnf -y upgrade 2>&1; echo ended $?; "
        "rpm -qa | sort | diff /var/tmp/before -; rm /var/tmp/before",
        branch("580", "581-open"),
        branch("590", "590-open"),
        branch("590", "590-open", state="absent"),
        f"cat /etc/dnf/modules.d/* {LOCK_LIST}; rpm -qa '*nvidia*'",
    )
    assert "kmod-nvidia-latest-dkms-590.44.01" in old
    assert "it belongs to a module stream that is not enabled" in hidden["msg"]
    # dnf ended well, and no package differs.
    assert upgraded.splitlines()[-1] == "ended 0", upgraded
    # 580.95.05 is newer, and has no Fabric Manager.
    expected = [
        "enable module stream nvidia-driver:580-open",
        "install kmod-nvidia-open-dkms 3:580.82.07-1.el9",
        "install nvidia-driver-cuda 3:580.82.07-1.el9",
        "install nvidia-fabricmanager 580.82.07-1",
        "install libnvidia-ml 3:580.82.07-1.el9",
        "install nvidia-driver-cuda-libs 3:580.82.07-1.el9",
        "remove kmod-nvidia-latest-dkms 3:590.44.01-1.el9",
        "lock nvidia-driver-cuda-3:580.82.07-1.el9.*",
        "lock nvidia-fabricmanager-0:580.82.07-1.*",
        "lock kmod-nvidia-open-dkms-3:580.82.07-1.el9.*",
        "lock libnvidia-ml-3:580.82.07-1.el9.*",
        "lock nvidia-driver-cuda-libs-3:580.82.07-1.el9.*",
    ]
    assert planned["actions"] == expected, planned
    assert "+module stream nvidia-driver:580-open" not in planned["diff"]["before"] and before == after
    assert first["actions"] == expected, first
    assert not again["changed"], again
    assert (
        "'nvidia-driver:581-open': the module nvidia-driver has no such stream; there are 580-open, 590-open"
        in wrong["msg"]
    )
    assert second["actions"][0] == "enable module stream nvidia-driver:590-open instead of nvidia-driver:580-open"
    assert second["packages"]["nvidia-driver-cuda"] == "3:590.44.01-1.el9", second
    assert second["packages"]["nvidia-fabricmanager"] == "590.44.01-1"
    assert "upgrade libnvidia-ml from 3:580.82.07-1.el9 to 3:590.44.01-1.el9" in second["actions"], second
    assert "lock libnvidia-ml-3:590.44.01-1.el9.*" in second["actions"]
    assert gone["changed"] and "state=enabled" not in left, left
    # Nor a lock: what came along is gone, too.
    assert not any(name in left for name in DRIVER), left


def test_what_stands_in_the_way_is_named(node: Node) -> None:
    exclude = "/etc/dnf/dnf.conf"
    state, locked, _step1, excluded, _step2, needed, state_after = node.do(
        "dnf -q -y install libnccl-2.27.7 libnccl-devel-2.27.7 > /dev/null; "
        f"printf 'libnccl-0:2.27.7-1+cuda13.0.*\\n' >> {LOCK_LIST}; "
        f"cp {exclude} {exclude}.kept; {STATE}",
        nccl("2.26"),
        f"sed -i '$!b; /./a exclude=labtool*' {exclude}",
        pin("trial", ("labtool", "2")),
        f"mv {exclude}.kept {exclude}; cp {exclude} {exclude}.kept",
        pin("trial", ("libnccl", ""), state="absent"),
        STATE,
    )
    assert (
        f"packages[libnccl].version = '2.26.5-1+cuda12.9': libnccl is locked to another version in {LOCK_LIST} "
        "(libnccl-0:2.27.7-1+cuda13.0.*)" in locked["msg"]
    ), locked
    assert f"there is labtool 2-1, and exclude = labtool* in {exclude} hides it" in excluded["msg"], excluded
    assert "is needed by libnccl-devel 2.27.7-1+cuda13.0, which would go as well" in needed["msg"], needed
    assert state == state_after


def test_an_interrupted_transaction_is_put_right_by_the_next_run(node: Node) -> None:
    def tool(version: str, **options: Any) -> dict[str, Any]:
        return pin("trial", ("labtool", version), ("labtool-extra", version), **options)

    installed = "rpm -qa 'labtool*' | sort; cat /usr/share/labtool/*; rpm --verify labtool labtool-extra"
    ran = "cat /var/tmp/held/ended"
    found = node.do(
        # The scriptlet of a new package is interrupted, and the module dies too.
        KILL.format(processes=OF_ALL),
        tool("1"),
        f"{installed}; cat /var/lib/gpu-cluster/packages/trial.json",
        tool("1", check=True),
        tool("1"),
        f"{ran}; {installed}",
        tool("1"),
        # An upgrade is interrupted: both versions are installed.
        KILL.format(processes=OF_DNF),
        tool("2"),
        "rpm -qa 'labtool*' | sort",
        # Something that the transaction had already brought was lost on the way to the disk.
        "rm /usr/share/labtool/version",
        tool("2", check=True),
        tool("2"),
        f"{ran}; {installed}",
        tool("2"),
        "ls /var/lib/gpu-cluster/packages; grep transaction /var/lib/gpu-cluster/packages/*; dnf -q check; true",
    )
    (
        _step1,
        died,
        half,
        planned,
        repaired,
        whole,
        again,
        _step2,
        killed,
        twice,
        _step3,
        checked,
        mended,
        done,
        settled,
        left,
    ) = found
    assert died["failed"]
    assert "labtool-1-1.x86_64" in half and "package labtool-extra is not installed" in half, half
    assert '"coming"' in half
    sentence = "labtool 1-1 may not have run its scriptlet: it is removed and installed again"
    assert planned["repaired"] == repaired["repaired"] == [sentence], (planned, repaired)
    assert whole == "1\nlabtool-1-1.x86_64\nlabtool-extra-1-1.x86_64\n11", whole
    assert not again["changed"], again

    assert killed["failed"] and "dnf was ended by signal 9" in killed["msg"] and "run again" in killed["msg"], killed
    assert twice == "labtool-1-1.x86_64\nlabtool-2-1.x86_64\nlabtool-extra-1-1.x86_64", twice
    sentences = [
        "labtool was installed twice: 1-1 is removed, 2-1 stays",
        "labtool 2-1 is not whole: it is installed again",
    ]
    assert checked["repaired"] == mended["repaired"] == sentences, mended
    # A scriptlet is told of an upgrade (2), and not of a first installation.
    assert done == "2\nlabtool-2-1.x86_64\nlabtool-extra-2-1.x86_64\n22", done
    assert not settled["changed"], settled
    assert "null" in left and "missing" not in left, left


def test_a_transaction_that_goes_on_without_the_module_is_waited_for(node: Node) -> None:
    tool = ("labtool", "1"), ("labtool-extra", "1")
    _step1, died, ended, after = node.do(
        KILL.format(processes=OF_THE_MODULE),
        pin("trial", *tool),
        pin("trial", *tool),
        "cat /var/tmp/held/began /var/tmp/held/ended; rpm -qa 'labtool*' | sort",
    )
    assert died["failed"]
    # Nobody saw how it ended, so what has a scriptlet is installed again; the rest was finished by then.
    assert ended["actions"] == ["install labtool 1-1"], ended
    assert ended["repaired"] == ["labtool 1-1 may not have run its scriptlet: it is removed and installed again"]
    assert after == "1\n1\n1\n1\nlabtool-1-1.x86_64\nlabtool-extra-1-1.x86_64"
