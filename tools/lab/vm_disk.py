# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk of the virtual machine: the containers' image and a Debian kernel, made once and kept in the cache."""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import platform
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import cleanup, debian, host, image, state
from lab.settings import PREFIX, Paths
from lab.shell import LabError, run, say

# What is put on the disk, and the machine's first program.
GUEST = Path(__file__).resolve().parent / "vm"

KERNEL = "linux-image-cloud-amd64"
BUSYBOX = "busybox-static"
# What stands between the kernel and its root disk; udev loads the rest from there.
BOOT_MODULES = ("virtio_pci", "virtio_blk")
SIZE = "4G"


@dataclass(frozen=True)
class Disk:
    """What the machine boots from. Nothing writes to it: each machine keeps its changes to itself."""

    folder: Path

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"

    @property
    def root(self) -> Path:
        return self.folder / "root.raw"


def dependency(listed: str, suite: str) -> str:
    """The package that `apt-cache depends` names first: a meta package points at the current kernel."""
    for line in listed.splitlines():
        kind, _colon, name = line.strip().partition(": ")
        if kind == "Depends" and not name.startswith("<"):
            return name
    raise LabError(f"Debian {suite} has no package {KERNEL} on the mirror that this machine uses")


def fingerprint(reference: str, packages: Mapping[str, str], files: Mapping[str, bytes]) -> str:
    """The name of a disk: another image, version of a package or file on it makes another disk."""
    parts = [reference.encode(), SIZE.encode(), " ".join(BOOT_MODULES).encode()]
    parts += [f"{name}={version}".encode() for name, version in sorted(packages.items())]
    for name, data in sorted(files.items()):
        parts += [name.encode(), data]
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big"))
        whole.update(part)
    return whole.hexdigest()[:16]


def load_order(modules_dep: str, builtin: str, wanted: Sequence[str]) -> list[str]:
    """The files to load, each after what it needs. In depmod's list the deepest dependency comes last.

    ``builtin`` lists what the kernel has without any file.
    """

    def name_of(file: str) -> str:
        return Path(file).name.partition(".")[0].replace("-", "_")

    needs: dict[str, list[str]] = {name_of(file): [] for file in builtin.splitlines()}
    for line in modules_dep.splitlines():
        file, _colon, dependencies = line.partition(":")
        needs[name_of(file)] = [*reversed(dependencies.split()), file]
    order: list[str] = []
    for name in wanted:
        if name not in needs:
            raise LabError(f"the kernel has no module {name}, without which it does not find its root disk")
        order += [file for file in needs[name] if file not in order]
    return order


def _packages(release: debian.Packages, daemons: Sequence[str]) -> dict[str, str]:
    """The packages that go into the disk, with their versions."""
    wanted = (dependency(release.cache("depends", KERNEL), release.suite), BUSYBOX, *daemons)
    return release.versions(wanted)


def _disk(paths: Paths, cache: Path, packages: Mapping[str, str]) -> Disk:
    files = {path.name: path.read_bytes() for path in GUEST.iterdir()}
    return Disk(cache / fingerprint(image.node_reference(paths.flavour), packages, files))


def ensure(paths: Paths, cache: Path) -> Disk:
    """Make the disk unless the cache has it. It gets its name only when it is complete."""
    if platform.machine() != "x86_64":
        raise LabError(f"the virtual machine is an x86_64, and this machine is {platform.machine()}")
    release = debian.Packages(paths, paths.flavour.suite)
    # Without package lists there is no disk either.
    with contextlib.suppress(LabError):
        disk = _disk(paths, cache, _packages(release, paths.flavour.daemons))
        if disk.folder.exists():
            return disk
    # A mirror removes old versions: what old lists name cannot be downloaded.
    release.update()
    packages = _packages(release, paths.flavour.daemons)
    disk = _disk(paths, cache, packages)
    cache.mkdir(parents=True, exist_ok=True)
    for folder in cache.glob("build-*"):
        host.discard(folder)
    with tempfile.TemporaryDirectory(prefix="build-", dir=cache) as scratch:
        _build(paths, release, packages, Path(scratch))
        host.discard(disk.folder)
        (Path(scratch) / "disk").rename(disk.folder)
    # A machine that still runs from an older disk has its files open.
    for path in cache.iterdir():
        if path != disk.folder:
            host.discard(path)
    return disk


def _build(paths: Paths, release: debian.Packages, packages: Mapping[str, str], scratch: Path) -> None:
    unpacked, tree, disk = scratch / "packages", scratch / "tree", Disk(scratch / "disk")
    for folder in (tree, disk.folder):
        folder.mkdir()
    say(f"downloading {', '.join(packages)}")
    release.download(packages, scratch)
    _export_image(paths, scratch / "image.tar")
    say("making the disk of the virtual machine")
    run(["tar", "-x", "--numeric-owner", "--xattrs", "--xattrs-include=*", f"--file={scratch}/image.tar", f"-C{tree}"])
    for archive in scratch.glob("*.deb"):
        target = tree if archive.name.startswith(paths.flavour.daemons) else unpacked
        _unpack(archive, target)
    (kernel,) = (unpacked / "boot").glob("vmlinuz-*")
    version = kernel.name.removeprefix("vmlinuz-")
    # Packages have these below /usr since Debian 13.
    (modules,), (busybox,) = unpacked.glob("**/lib/modules"), unpacked.glob("**/bin/busybox")
    shutil.copytree(modules / version, tree / "usr" / "lib" / "modules" / version)
    _put_guest_files(tree, version)
    _make_initrd(busybox, tree / "usr" / "lib" / "modules" / version, scratch / "early", disk.initrd)
    shutil.copy(kernel, disk.kernel)
    run(["mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(disk.root), SIZE], timeout=600)


def _export_image(paths: Paths, archive: Path) -> None:
    """The image that the containers use, made first where there is none; a lab that is up is left alone."""
    name = f"{PREFIX}-vm-export"
    with state.lock():
        borrowed = state.owner() is None
        host.prepare_run_folder()
        paths.image_cache.mkdir(parents=True, exist_ok=True)
        image.ensure(paths)
        host.podman(paths, "rm", "--force", "--ignore", name)
        reference = image.node_reference(paths.flavour)
        host.podman(paths, "create", f"--name={name}", "--network=none", "--pull=never", reference, "true")
        try:
            host.podman(paths, "export", f"--output={archive}", name, timeout=300)
        finally:
            host.podman(paths, "rm", "--force", name)
            if borrowed:
                cleanup.clear(paths)


def _unpack(archive: Path, target: Path) -> None:
    """The files of a package, without its scripts. In the image /lib and its kin are links, which must stay."""
    target.mkdir(exist_ok=True)
    script = 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"'
    run(["bash", "-euo", "pipefail", "-c", script, "bash", str(archive), str(target)])


def _put_guest_files(tree: Path, version: str) -> None:
    shutil.copy(GUEST / "lab-console", tree / "usr" / "local" / "libexec")
    shutil.copy(GUEST / "lab-console.service", tree / "etc" / "systemd" / "system")
    for name in ("prepare.sh", "centos.cil"):
        shutil.copy(GUEST / name, tree)
    # setfiles asks /proc for names. In a mount namespace of its own nothing has to be unmounted, whatever happens.
    script = 'mount -t proc proc "$1/proc"; exec chroot "$1" /bin/sh -eu /prepare.sh "$2"'
    run(["unshare", "--mount", "sh", "-euc", script, "sh", str(tree), version])


def _make_initrd(busybox: Path, modules: Path, early: Path, target: Path) -> None:
    """The kernel has no disk driver built in: a first root file system in memory that loads it."""
    for name in ("bin", "dev", "modules", "sysroot"):
        (early / name).mkdir(parents=True)
    listed, builtin = ((modules / name).read_text() for name in ("modules.dep", "modules.builtin"))
    order = load_order(listed, builtin, BOOT_MODULES)
    for file in order:
        content = (modules / file).read_bytes()
        # insmod of busybox takes them as they are in memory.
        plain = lzma.decompress(content) if file.endswith(".xz") else content
        (early / "modules" / Path(file).name.removesuffix(".xz")).write_bytes(plain)
    names = [Path(file).name.removesuffix(".xz") for file in order]
    (early / "modules" / "order").write_text("".join(f"{name}\n" for name in names))
    shutil.copy(busybox, early / "bin" / "busybox")
    (early / "init").write_text(f"#!/bin/busybox sh\n{(GUEST / 'init').read_text()}")
    (early / "init").chmod(0o755)
    script = 'find . | "$1" cpio -o -H newc > "$2"'
    run(["sh", "-euc", script, "sh", str(busybox), str(target)], cwd=early)
