# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a GPU, read from a tree such as /proc, and from this machine's own."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver import processes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.processes import GpuUser

SLICE = "0::/system.slice"


def add(proc: Path, pid: int, files: list[str], command: str, cgroup: str = "0::/user.slice/session-3.scope") -> None:
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    for number, target in enumerate(files):
        (folder / "fd" / str(number)).symlink_to(target)
    (folder / "cmdline").write_text(command.replace(" ", "\0") + "\0")
    (folder / "comm").write_text(command.split(" ")[0][:15] + "\n")
    (folder / "cgroup").write_text(f"{cgroup}\n")


def test_processes_with_a_gpu_are_found(tmp_path: Path) -> None:
    add(tmp_path, 4711, ["/dev/null", "socket:[1]", "/dev/nvidiactl", "/dev/nvidia3"], "python train.py --epochs 90")
    add(tmp_path, 15, ["/dev/nvme0", "/home/train/dev/nvidia0"], "dd if=/dev/nvme0")
    add(tmp_path, 812, ["/dev/nvidia0"], "/usr/bin/nvidia-persistenced", f"{SLICE}/nvidia-persistenced.service")
    add(tmp_path, 99, ["/dev/nvidia-caps/nvidia-cap2"], "", "1:name=systemd:/kubepods/pod1/abc\n0::/kubepods/pod1/abc")
    (tmp_path / "4711" / "comm").write_text("python\n")
    (tmp_path / "self").symlink_to("4711")
    (tmp_path / "uptime").write_text("1 1\n")
    # A process of another user, or one that ends meanwhile.
    (tmp_path / "5000").mkdir()
    user = getpass.getuser()
    found = processes.gpu_users(str(tmp_path))
    assert found == [
        GpuUser(99, "", user, "/dev/nvidia-caps/nvidia-cap2", ""),
        GpuUser(812, "/usr/bin/nvidia-persistenced", user, "/dev/nvidia0", "nvidia-persistenced.service"),
        GpuUser(4711, "python train.py --epochs 90", user, "/dev/nvidiactl", ""),
    ]
    assert [one.pid for one in found if one.is_service] == [812]


def test_the_sentence_names_pid_command_and_user() -> None:
    job = GpuUser(4711, "python train.py", "train", "/dev/nvidia0", "")
    service = GpuUser(812, "nvidia-persistenced", "root", "/dev/nvidia0", "nvidia-persistenced.service")
    exporter = GpuUser(813, "dcgm-exporter", "root", "/dev/nvidia0", "dcgm-exporter.service")
    site = GpuUser(814, "serve", "web", "/dev/nvidia1", "inference.service")
    assert processes.busy([]) == "" == processes.busy([service, exporter])
    assert processes.busy([job]) == "pid 4711 (python train.py) of train holds /dev/nvidia0"
    assert processes.busy([service, job, exporter, site]) == (
        "pid 4711 (python train.py) of train holds /dev/nvidia0; pid 814 (serve) of web holds /dev/nvidia1 "
        "(dcgm-exporter.service, nvidia-persistenced.service also hold it and do not count)"
    )


def test_this_process_has_no_gpu_and_is_read_all_the_same(tmp_path: Path) -> None:
    """On the real /proc, with a file whose name begins like a device but is none."""
    with (tmp_path / "nvidia0").open("w"):
        assert os.getpid() not in [one.pid for one in processes.gpu_users()]
