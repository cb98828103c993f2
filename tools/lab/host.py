# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine that carries the lab: its packages, cgroups, limits, and podman on it."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from lab.settings import MOUNT_NAMESPACE, RECIPE, RUN, UNIFIED, Paths
from lab.shell import LabError, run, say

# Command -> Debian package that has it.
TOOLS = {
    "podman": "podman",
    "crun": "crun",
    "conmon": "conmon",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "rpmbuild": "rpm",
    "createrepo_c": "createrepo-c",
    "gpg": "gnupg",
    "openssl": "openssl",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "ssh": "openssh-client",
    "tar": "tar",
}

# A node has every capability this machine has, except those with which it could change the machine itself.
WITHHELD_CAPABILITIES = ("SYS_TIME", "SYS_MODULE", "SYS_BOOT")

# No container gets more than this, even where the machine allows it; podman 4 lowers itself to this many processes.
LIMIT_CEILINGS = {"nofile": 1048576, "nproc": 32768}


INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
#: The systemd of a node sets it to the highest value there is, which only this machine's own systemd should.
FILE_MAX = Path("/proc/sys/fs/file-max")
FUSE = Path("/dev/fuse")


@dataclass(frozen=True)
class Cgroups:
    """How /sys/fs/cgroup is laid out."""

    legacy: bool
    hybrid_mount: str | None


def require_root() -> None:
    if os.geteuid() != 0:
        raise LabError("the lab makes containers and network interfaces and needs root: run it with sudo")


def read_cgroups(mounts: str) -> Cgroups:
    """Recognise plain cgroup v2, v1, and v1 with v2 mounted beside it (hybrid), which crun refuses."""
    fields = [line.split() for line in mounts.splitlines()]
    legacy = any(len(field) > 2 and field[2] == "cgroup" for field in fields)
    beside = [field[1] for field in fields if len(field) > 2 and field[2] == "cgroup2"]
    return Cgroups(legacy=legacy, hybrid_mount=beside[0] if legacy and beside else None)


def cgroups() -> Cgroups:
    return read_cgroups(Path("/proc/self/mounts").read_text())


def install_packages(more: Mapping[str, str] | None = None) -> None:
    """Install what is missing, with the machine's own apt configuration; `more` has further tools and packages."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    wanted = {**TOOLS, **(more or {})}
    missing = sorted({package for tool, package in wanted.items() if shutil.which(tool, path=path) is None})
    if not missing:
        return
    install(*missing)


def install(*packages: str) -> None:
    """Install packages of this machine's own release."""
    if shutil.which("apt-get") is None:
        raise LabError(
            f"these packages are missing and this machine has no apt-get to install them: {' '.join(packages)}"
        )
    say(f"installing {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "-qq"]
    run([*apt, "update"], timeout=600, env=environment)
    run([*apt, "install", "-y", "--no-install-recommends", *packages], timeout=1200, env=environment)


def limit_arguments() -> list[str]:
    """A container cannot have higher limits than this machine allows; podman's own defaults may be higher."""
    arguments = []
    for name, number in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        hard = resource.getrlimit(number)[1]
        ceiling = LIMIT_CEILINGS[name]
        value = ceiling if hard == resource.RLIM_INFINITY else min(hard, ceiling)
        arguments += ["--ulimit", f"{name}={value}:{value}"]
    return arguments


def needed_inotify(nodes: int) -> int:
    """systemd, NetworkManager and firewalld of one node take 15; the rest is for the machine itself."""
    return 16 * nodes + 64


def raise_inotify(nodes: int) -> bool:
    """All nodes share root's inotify instances, of which a machine has 128 unless told otherwise. Undone by `down`."""
    current = int(INOTIFY.read_text())
    needed = needed_inotify(nodes)
    if current >= needed:
        return False
    INOTIFY.write_text(f"{needed}\n")
    return True


def note_settings(folder: Path = RUN, settings: Sequence[Path] = (INOTIFY, FILE_MAX)) -> None:
    """Write down, once, the machine's settings that a lab changes. `restore_settings` puts them back."""
    for setting in settings:
        note = folder / setting.name
        if not note.exists():
            note.write_text(setting.read_text())


def restore_settings(folder: Path = RUN, settings: Sequence[Path] = (INOTIFY, FILE_MAX)) -> None:
    """No node may run any more: one that boots would change them again."""
    for setting in settings:
        note = folder / setting.name
        if note.exists():
            setting.write_text(note.read_text())
            note.unlink()


def capability_arguments() -> list[str]:
    return ["--cap-add", "ALL", *(word for name in WITHHELD_CAPABILITIES for word in ("--cap-drop", name))]


def device_arguments(fuse: Path = FUSE) -> list[str]:
    """podman in a node keeps images with fuse-overlayfs: the kernel's overlay takes no layers from a node's disk."""
    return [f"--device={fuse}"] if fuse.exists() else []


def cgroup_arguments() -> list[str]:
    """On a hybrid machine nodes get its cgroup v2 tree by hand; systemd cannot tell when a session ends without it.

    Left to mount the tree itself, systemd would change the machine's mount options.
    """
    return [f"--volume={UNIFIED}:/sys/fs/cgroup/unified"] if namespace_needed() else []


def read_systemd_path(text: str) -> str:
    """The path in systemd's own v1 hierarchy, of a /proc/PID/cgroup."""
    for line in text.splitlines():
        _number, controllers, path = line.split(":", 2)
        if controllers == "name=systemd":
            return path
    raise LabError(
        "a container has no place in systemd's cgroup hierarchy: podman or crun behaves differently than expected"
    )


def join_unified(pid: int) -> None:
    """On a hybrid machine, put a node that has not started yet where crun does not: into its own v2 cgroup.

    systemd takes the place where it starts as its root. Left at the top, all nodes would share the machine's.
    """
    mount = cgroups().hybrid_mount
    if mount is None:
        return
    path = read_systemd_path(Path(f"/proc/{pid}/cgroup").read_text())
    folder = Path(mount) / path.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.procs").write_text(str(pid))


def namespace_needed() -> bool:
    return cgroups().hybrid_mount is not None


def mount_points() -> list[Path]:
    """`Path.is_mount` answers no for a file, and the private mount namespace is kept in one."""
    points = (line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines())
    return [Path(point.encode().decode("unicode_escape")) for point in points]


def unmount_below(folder: Path) -> None:
    """Unmount everything at or below a folder, the innermost first."""
    for point in reversed(mount_points()):
        if point.is_relative_to(folder):
            run(["umount", "--lazy", str(point)], check=False)


def discard(folder: Path) -> None:
    """Remove a folder, and nothing of what may still be mounted in it."""
    unmount_below(folder)
    run(["rm", "-rf", "--one-file-system", str(folder)], check=False, timeout=300)


def prepare_run_folder() -> None:
    """Make /run/gpulab and, on a hybrid machine, the private mount namespace without the v2 tree."""
    RUN.mkdir(mode=0o700, exist_ok=True)
    hybrid = cgroups().hybrid_mount
    if hybrid is None or MOUNT_NAMESPACE in mount_points():
        return
    MOUNT_NAMESPACE.touch()
    if RUN not in mount_points():
        run(["mount", "--bind", str(RUN), str(RUN)])
    run(["mount", "--make-private", str(RUN)])
    UNIFIED.mkdir(exist_ok=True)
    script = f"mount --make-rprivate / && mount --move {hybrid} {UNIFIED}"
    run(["unshare", f"--mount={MOUNT_NAMESPACE}", "sh", "-c", script])


def ready() -> bool:
    """Whether the private mount namespace, where one is needed, is still there."""
    return RUN.is_dir() and (not namespace_needed() or MOUNT_NAMESPACE in mount_points())


def podman_argv(paths: Paths, arguments: Sequence[str]) -> list[str]:
    """The one place that builds a podman command: own storage, own run folder, and the private mounts where needed."""
    enter = ["nsenter", f"--mount={MOUNT_NAMESPACE}"] if namespace_needed() else []
    base = [*enter, "podman", "--root", str(paths.storage), "--runroot", str(RUN / "storage")]
    return [*base, *arguments]


def podman_variables(paths: Paths) -> dict[str, str]:
    """What keeps podman from this machine's own configuration and from small temporary folders."""
    scratch = paths.image_cache / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    settings = {"CONTAINERS_CONF": str(RECIPE / "containers.conf"), "TMPDIR": str(scratch)}
    # podman 5 warns at every command on a machine with cgroup v1.
    return {**settings, "PODMAN_IGNORE_CGROUPSV1_WARNING": "true"}


def podman(
    paths: Paths, *arguments: str, check: bool = True, stdin: bytes | None = None, timeout: float | None = 120
) -> CompletedProcess[str]:
    argv, environment = podman_argv(paths, arguments), {**os.environ, **podman_variables(paths)}
    if stdin is None:
        return run(argv, check=check, timeout=timeout, env=environment, cwd=Path("/"))
    # What it reads, `podman cp -` leaves among its temporary files.
    with tempfile.TemporaryDirectory(prefix="stdin-", dir=environment["TMPDIR"]) as scratch:
        environment["TMPDIR"] = scratch
        return run(argv, check=check, stdin=stdin, timeout=timeout, env=environment, cwd=Path("/"))
