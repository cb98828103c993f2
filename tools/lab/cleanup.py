# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking the lab off the machine, whatever state it is in: also after every process of it was killed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path

from lab import host, network, state
from lab.settings import CGROUP_PARENT, RUN, Paths
from lab.shell import LabError, say

CGROUP_ROOT = Path("/sys/fs/cgroup")
# crun's; only removed when no container of anybody is in it.
RUNTIME_FOLDER = Path("/run/crun")


def _cgroup_folders() -> list[Path]:
    """The lab's cgroup in every hierarchy that is mounted."""
    name = CGROUP_PARENT.lstrip("/")
    candidates = [CGROUP_ROOT / name, *CGROUP_ROOT.glob(f"*/{name}")]
    return [path for path in candidates if path.is_dir()]


def _processes() -> set[int]:
    """Everything that runs in the lab's cgroups: nodes and conmon."""
    pids: set[int] = set()
    for folder in _cgroup_folders():
        for path in [folder / "cgroup.procs", *folder.rglob("cgroup.procs")]:
            with contextlib.suppress(OSError):
                pids.update(int(word) for word in path.read_text().split())
    return pids - {0, os.getpid()}


def _thaw() -> None:
    """A frozen process does not die."""
    for folder in _cgroup_folders():
        for name, value in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            for path in folder.rglob(name):
                with contextlib.suppress(OSError):
                    path.write_text(value)


def _kill_processes() -> None:
    deadline = time.monotonic() + 20
    while pids := _processes():
        _thaw()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(f"these processes of the lab do not end: {' '.join(map(str, sorted(pids)))}")
        time.sleep(0.1)


def _remove_cgroups() -> None:
    for folder in _cgroup_folders():
        for path in [*sorted(folder.rglob("*"), key=lambda entry: -len(entry.parts)), folder]:
            if path.is_dir():
                with contextlib.suppress(OSError):
                    path.rmdir()


def leftovers() -> list[str]:
    """What of a lab this machine still carries."""
    found = [f"interface {name}" for name in network.links()]
    found += [f"cgroup {CGROUP_PARENT}"] if _cgroup_folders() else []
    found += [f"folder {RUN}"] if RUN.exists() else []
    return found


def _remove_containers(paths: Paths) -> None:
    """By podman, gently, then as after a reboot; when it can do neither, all that the lab has stored goes."""
    if not paths.storage.exists():
        return
    try:
        host.prepare_run_folder()
        _podman_remove(paths)
        return
    except LabError:
        _forget_running_state(paths)
    try:
        host.prepare_run_folder()
        _podman_remove(paths)
    except LabError as error:
        say(f"podman's records are broken, the image has to be built again: {error}")
        _forget_running_state(paths)
        host.discard(paths.storage)


def _podman_remove(paths: Paths) -> None:
    """The first attempt on a container whose processes were killed only makes podman notice that."""
    argv = ("rm", "--all", "--force", "--time=0")
    if host.podman(paths, *argv, check=False, timeout=60).returncode != 0:
        host.podman(paths, *argv, timeout=60)


def _forget_running_state(paths: Paths) -> None:
    """What a reboot would do."""
    _kill_processes()
    host.restore_settings()
    host.unmount_below(paths.storage)
    host.discard(RUN)
    for status in RUNTIME_FOLDER.glob("*/status"):
        with contextlib.suppress(OSError, ValueError):
            if Path(json.loads(status.read_text())["bundle"]).is_relative_to(paths.storage):
                shutil.rmtree(status.parent)
    with contextlib.suppress(OSError):
        RUNTIME_FOLDER.rmdir()


def clear(paths: Paths) -> None:
    """Remove everything but the cached image. `paths` are those of the lab that goes, maybe of another checkout."""
    state.remove_lab(paths)
    _thaw()
    _remove_containers(paths)
    _forget_running_state(paths)
    network.remove_links(network.links())
    _remove_cgroups()
    if left := leftovers():
        raise LabError(f"the lab could not be removed completely; still there: {', '.join(left)}")
