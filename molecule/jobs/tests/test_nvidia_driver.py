# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver on a node with eight GPUs, from a build that fails without a word to its removal.

The node is a container and cannot reboot. With consent, a script stands in for shutdown and shows what a reboot would.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import lab_driver
import lab_gpus
import lab_mirror
import lab_packages
import pytest
from lab_cluster import Cluster, Ended
from lab_driver import KERNEL, NEW, NEWER_KERNEL, OLD, VERSION

#: What the driver may leave behind besides packages, which lab_packages looks after.
STATE = (
    "find /boot /usr/lib/modules /usr/src /var/lib/dkms /etc/modprobe.d /etc/dracut.conf.d /etc/systemd/system "
    "/dev/nvidia0 2>/dev/null | sort"
)
REBOOTS = (
    "set -e; cp -P /usr/sbin/shutdown /run/lab-shutdown; "
    f"printf %s {shlex.quote(lab_driver.SHUTDOWN)} > /run/lab-script; "
    "chmod 755 /run/lab-script; mv /run/lab-script /usr/sbin/shutdown"
)
AS_BEFORE = (
    "cp -P --remove-destination /run/lab-shutdown /usr/sbin/shutdown; umount /sys/module /proc/sys/kernel/osrelease "
    "/proc/sys/kernel/random/boot_id; rm -rf /run/lab-rebooted /run/lab-shutdown"
)
TIDY = (
    f"[ ! -e /run/lab-shutdown ] || {{ {AS_BEFORE}; }}; "
    "systemctl stop lab-gpu-job 2>/dev/null; "
    "systemctl disable --now nvidia-persistenced nvidia-fabricmanager 2>/dev/null; "
    f"rm -rf /var/lib/dkms /usr/lib/modules/{VERSION}-*.x86_64 /boot/lab-arguments /boot/initramfs-{VERSION}-* "
    "/dev/nvidia0 /etc/modprobe.d/gpu-cluster-nouveau.conf /etc/dracut.conf.d /usr/src/kernels; "
    "rmdir /usr/lib/modules 2>/dev/null; "
    "systemctl daemon-reload"
)
MODULE = f"modinfo -k {KERNEL} -F version nvidia 2>&1; true"
VERSIONS = "rpm -q --qf '%{NAME} %{VERSION}\\n' -a | grep -E 'nvidia|kernel-|^dkms' | sort"
JOB = (
    "touch /dev/nvidia0; chmod 666 /dev/nvidia0; systemctl reset-failed lab-gpu-job 2>/dev/null; "
    "systemd-run --quiet --unit lab-gpu-job --uid nobody sh -c 'exec 3</dev/nvidia0; exec sleep 300'; sleep 0.5"
)
#: The older branch, with the CUDA that it can run.
OLD_BRANCH = f"nvidia_driver_version={OLD}", '{"cuda_toolkit_versions": ["12.8"], "nccl_cuda": "12"}'
ARGUMENTS = "ro crashkernel=1G-4G:192M quiet\n"
PACKAGES = "kmod-nvidia-open-dkms", "nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-kmod-common"


def packages(version: str, manager: str) -> set[str]:
    """What must be installed of one version; the kernel's packages do not follow the driver."""
    kernels = {f"{name} {VERSION}" for name in ("kernel-core", "kernel-devel", "kernel-devel-matched")}
    others = {"dkms 3.9.9", f"kernel-headers {VERSION}"}
    return {f"{name} {version}" for name in (*PACKAGES, "nvidia-persistenced", manager)} | kernels | others


class Node:
    """The node under test, and the playbook on it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.name = next(iter(cluster.hosts))

    def run(self, command: str) -> str:
        return self.cluster.shell(self.name, command)

    def apply(self, *variables: str, everybody: bool = False, check: bool = False) -> Ended:
        """The shipped playbook, without CUDA and NCCL."""
        words = [word for variable in variables for word in ("-e", variable)]
        words += [] if everybody else ["--limit", self.name]
        words += ["--check", "--diff"] if check else []
        return self.cluster.play("baremetal.gpu_cluster.gpu", "--tags", "nvidia_driver", *words)

    def changes(self, ended: Ended) -> int:
        found = re.search(rf"^{self.name} +: ok=\d+ +changed=(\d+)", ended.text, re.MULTILINE)
        assert found, ended.text
        return int(found.group(1))

    @property
    def versions(self) -> set[str]:
        return set(self.run(VERSIONS).splitlines())


@pytest.fixture
def node(cluster: Cluster, tmp_path: Path) -> Iterator[Node]:
    """A node that shows seven of eight H100, with the packages in reach, and a compiler that is not there."""
    keys = lab_mirror.Keys(tmp_path / "keys")
    keys.make("nvidia")
    lab_driver.repository(tmp_path / "site" / "cuda", tmp_path, keys, "nvidia")
    key = keys.public("nvidia")
    keys.close()
    mirror = lab_mirror.Mirror(tmp_path / "site")
    found = Node(cluster)
    before = found.run(STATE)
    try:
        with (
            lab_packages.on_node(cluster, found.name, f"{mirror.url}/cuda", key),
            lab_gpus.shown_devices(cluster, found.name, "h100_7.lspci"),
        ):
            older = f"gcc-c++-{lab_driver.BROKEN_COMPILER} dkms-{lab_driver.BAD_DKMS}"
            found.run(f"dnf -y -q install kernel-core-{lab_driver.RELEASE} {older} dracut")
            yield found
    finally:
        mirror.close()
        found.run(TIDY)
    assert found.run(STATE) == before


def one_line(ended: Ended) -> str:
    return " ".join(ended.text.split())


def test_a_version_that_cannot_be_is_refused(cluster: Cluster) -> None:
    """In quotes or not, and before any host is asked: by the role itself, without preflight."""
    for words in ("nvidia_driver_version=58x", '{"nvidia_driver_version": 620, "nvidia_driver_kind": "proprietary"}'):
        ended = cluster.play(cluster.without_guard("gpu"), "--tags", "nvidia_driver", "-e", words)
        assert ended.code == 2 and "expected a branch such as '580'" in one_line(ended), ended.text
        assert "Look at the GPUs" not in ended.text


def test_a_driver_from_a_silent_failure_to_its_removal(node: Node, tmp_path: Path) -> None:
    """One story, because each step needs what the one before has left."""
    check_mode_foresees_it(node)
    a_build_that_failed_silently_is_named(node)
    the_next_run_repairs_it_and_asks_for_a_reboot(node)
    node.run(REBOOTS)
    a_second_run_changes_nothing_and_reboots_under_nobody(node)
    with_consent_it_reboots_and_verifies(node)
    cuda_that_does_not_start_is_told(node, tmp_path)
    a_job_keeps_the_driver_that_it_runs_with(node)
    one_variable_changes_the_branch(node)
    a_removal_leaves_nothing(node)
    a_kernel_whose_packages_are_gone_is_updated_with_consent(node, tmp_path / "site" / "cuda")


def check_mode_foresees_it(node: Node) -> None:
    """On a host without the driver."""
    before = node.versions, node.run(STATE)
    ended = node.apply(check=True)
    assert ended.code == 0 and node.changes(ended) == 3, ended.text
    for line in (f"+nvidia-driver-cuda 3:{NEW}-1.el9", "+module stream nvidia-driver:580-open", "+blacklist nouveau"):
        assert line in ended.text, ended.text
    assert (node.versions, node.run(STATE)) == before


def a_build_that_failed_silently_is_named(node: Node) -> None:
    """rpm calls the package installed. The members without a GPU are skipped in the same run."""
    ended = node.apply(everybody=True)
    said = one_line(ended)
    assert ended.code == 2, ended.text
    assert f"There is no module nvidia {NEW} (open) for the kernel {KERNEL}, which boots next." in said, ended.text
    assert f"/var/lib/dkms/nvidia/{NEW}/build/make.log says: /bin/sh: line 1: g++: command not found." in said
    assert node.versions == packages(NEW, "nvidia-fabricmanager")
    assert "not found" in node.run(MODULE)
    assert node.run("cat /boot/lab-arguments") == ARGUMENTS
    for name in node.cluster.hosts:
        if name != node.name:
            assert re.search(rf"ok: \[{name}\] => +\s+msg: 'no NVIDIA device: driver skipped'", ended.text), ended.text
            assert "nvidia" not in node.cluster.shell(name, "rpm -qa")


def the_next_run_repairs_it_and_asks_for_a_reboot(node: Node) -> None:
    """With a compiler. The module is for the kernel that boots, and not for the one that runs."""
    node.run("dnf -y -q upgrade gcc-c++")
    ended = node.apply()
    assert ended.code == 2 and "NOT FINISHED: 1 of 1 hosts need a reboot." in ended.text, ended.text
    kernels = f"the kernel {node.run('uname -r').strip()} runs, and {KERNEL} boots next"
    assert f"{node.name}: the driver {NEW} is installed and not loaded; {kernels}" in one_line(ended)
    assert node.run(MODULE) == f"{NEW}\n"
    kept_out = ["rd.driver.blacklist=nouveau", "modprobe.blacklist=nouveau"]
    assert node.run("cat /boot/lab-arguments").split()[-2:] == kept_out
    assert "blacklist nouveau" in node.run("cat /etc/modprobe.d/gpu-cluster-nouveau.conf")
    assert "nouveau.ko" not in node.run(f"cat /boot/initramfs-{KERNEL}.img")
    assert node.run("systemctl is-enabled nvidia-persistenced nvidia-fabricmanager").split() == ["enabled", "enabled"]
    assert node.run("systemctl is-active nvidia-persistenced; true") == "inactive\n"
    assert node.versions == packages(NEW, "nvidia-fabricmanager")


def a_second_run_changes_nothing_and_reboots_under_nobody(node: Node) -> None:
    """Not even with consent."""
    node.run(JOB)
    ended = node.apply("nvidia_driver_reboot_ok=true")
    pid = node.run("systemctl show -P MainPID lab-gpu-job").strip()
    refusal = f"{node.name} is not rebooted: a process uses a GPU: pid {pid} (sleep 300) of nobody holds /dev/nvidia0"
    assert ended.code == 2 and node.changes(ended) == 0, ended.text
    assert refusal in one_line(ended) and "NOT FINISHED: 1 of 1 hosts need a reboot." in ended.text, ended.text
    assert node.run("systemctl is-active lab-gpu-job; ls -d /run/lab-rebooted 2>/dev/null; true") == "active\n"
    node.run("systemctl stop lab-gpu-job; rm /dev/nvidia0")


def with_consent_it_reboots_and_verifies(node: Node) -> None:
    """The driver runs, all GPUs answer, the daemons are up: finished."""
    ended = node.apply("nvidia_driver_reboot_ok=true")
    assert ended.code == 0 and node.changes(ended) == 1 and "NOT FINISHED" not in ended.text, ended.text
    assert node.run("cat /sys/module/nvidia/version") == f"{NEW}\n"
    verified = r"Refuse a driver that does not run as it should\] \**\s+ok: "
    assert re.search(verified, ended.text), ended.text


def cuda_that_does_not_start_is_told(node: Node, folder: Path) -> None:
    """As with open modules on EL 9.6 and EL 10.0: nvidia-smi shows everything, and no program can begin."""
    broken = base64.b64encode(lab_driver.cuda_library(folder, result=3)).decode()
    node.run(f"mv {lab_driver.CUDA_LIBRARY} /run/libcuda; echo {broken} | base64 -d > {lab_driver.CUDA_LIBRARY}")
    try:
        ended = node.apply()
    finally:
        node.run(f"mv /run/libcuda {lab_driver.CUDA_LIBRARY}")
    said = "no CUDA program starts: cuInit() of libcuda.so.1 ends with 3 (CUDA_ERROR_NOT_INITIALIZED); write `options"
    assert ended.code == 2 and node.changes(ended) == 0 and said in one_line(ended), ended.text


def a_job_keeps_the_driver_that_it_runs_with(node: Node) -> None:
    """Other libraries than the loaded module's would end its next use of a GPU."""
    node.run(JOB)
    ended = node.apply(*OLD_BRANCH)
    in_use = f"{node.name}: the driver {NEW} is in use: pid "
    assert ended.code == 2 and node.changes(ended) == 0 and in_use in one_line(ended), ended.text
    assert node.versions == packages(NEW, "nvidia-fabricmanager")
    node.run("systemctl stop lab-gpu-job; rm /dev/nvidia0")


def one_variable_changes_the_branch(node: Node) -> None:
    """The stream and the name of Fabric Manager's package change with it. And one of eight GPUs is missing."""
    ended = node.apply(*OLD_BRANCH, '{"gpu_cluster_gpus": 8}')
    assert node.versions == packages(OLD, "nvidia-fabric-manager"), ended.text
    assert node.run(MODULE) == f"{OLD}\n"
    assert "stream=570-open" in node.run("cat /etc/dnf/modules.d/nvidia-driver.module")
    count = f"{node.name}: the inventory says 8 GPUs (nvidia_driver_gpus), and the PCI bus shows 7 (0000:1b:00.0, "
    assert ended.code == 2 and count in one_line(ended), ended.text


def a_removal_leaves_nothing(node: Node) -> None:
    """But a driver that is still loaded."""
    ended = node.apply("nvidia_driver_state=absent", *OLD_BRANCH)
    loaded = f"{node.name}: the driver {NEW} is removed and still loaded"
    assert ended.code == 2 and loaded in one_line(ended), ended.text
    left = {line.split()[0] for line in node.versions}
    assert left == {"dkms", "kernel-core", "kernel-devel", "kernel-devel-matched", "kernel-headers"}
    assert "not found" in node.run(MODULE)
    assert node.run("cat /boot/lab-arguments") == ARGUMENTS
    assert "gpu-cluster" not in node.run("ls /etc/modprobe.d /etc/dracut.conf.d")
    assert "nvidia" not in node.run("cat /etc/dnf/plugins/versionlock.list")


def a_kernel_whose_packages_are_gone_is_updated_with_consent(node: Node, repository: Path) -> None:
    """As on CentOS Stream a few weeks after an installation."""
    for file in repository.glob(f"kernel-devel-*{lab_driver.RELEASE}*"):
        file.unlink()
    lab_packages.index(repository, (repository.parent / f"{repository.name}-modules.yaml").read_text())
    node.run("umount /sys/module; rpm -e --nodeps kernel-devel kernel-devel-matched dkms; dnf -q clean metadata")
    refused = node.apply()
    advice = "or let a run do both (nvidia_driver_kernel_update_ok and nvidia_driver_reboot_ok)"
    assert refused.code == 2 and advice in one_line(refused) and "nvidia" not in node.run("rpm -qa"), refused.text
    foreseen = node.apply("nvidia_driver_kernel_update_ok=true", check=True)
    assert foreseen.code == 0 and NEWER_KERNEL not in node.run("ls /usr/lib/modules"), foreseen.text
    ended = node.apply("nvidia_driver_kernel_update_ok=true")
    boots = f"{KERNEL} runs, and {NEWER_KERNEL} boots next"
    assert ended.code == 2 and "NOT FINISHED: 1 of 1 hosts need a reboot." in ended.text, ended.text
    assert f"{node.name}: " in one_line(ended) and boots in one_line(ended), ended.text
    assert node.run(f"modinfo -k {NEWER_KERNEL} -F version nvidia") == f"{NEW}\n"
    again = node.apply("nvidia_driver_kernel_update_ok=true")
    assert again.code == 2 and node.changes(again) == 0, again.text
