# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of a node: made once, kept in the cache, named after a hash of everything that goes into it."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
from pathlib import Path

from lab import debian, repo
from lab.flavour import BOOKWORM, FLAVOURS, Flavour
from lab.host import discard, limit_arguments, podman
from lab.settings import PREFIX, RECIPE, Paths
from lab.shell import LabError, run, say

BASE_OPTIONS = [
    "--mode=root",
    "--variant=minbase",
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-include=/usr/share/locale/de/*",
    "--dpkgopt=path-exclude=/usr/share/lintian/*",
    # mmdebstrap copies both from this machine.
    '--customize-hook=rm -f "$1"/etc/resolv.conf "$1"/etc/hostname',
]
#: How the images of saved nodes begin. Those are removed when others are saved.
SAVED = f"localhost/{PREFIX}-saved-"
BASE_PACKAGES = RECIPE / "debian-packages.txt"


def registry_image() -> str | None:
    """A CentOS image to use instead of the stand-in, from the environment."""
    return os.environ.get("LAB_IMAGE") or None


def digest(parts: list[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big"))
        whole.update(part)
    return whole.hexdigest()[:16]


def recipe(flavour: Flavour) -> Path:
    """What only this flavour has: its table of packages, and files that say what it is."""
    return RECIPE / f"el{flavour.el}"


def _recipe_files(flavour: Flavour) -> list[Path]:
    others = {recipe(one) for one in FLAVOURS.values() if one != flavour}
    files = (path for path in RECIPE.rglob("*") if path.is_file() and not others & set(path.parents))
    return [*sorted(files), Path(repo.__file__)]


def base_reference(flavour: Flavour) -> str:
    parts = [
        flavour.suite.encode(),
        platform.machine().encode(),
        BASE_PACKAGES.read_bytes(),
        repr(BASE_OPTIONS).encode(),
    ]
    return f"localhost/{PREFIX}-base:{digest(parts)}"


def node_reference(flavour: Flavour) -> str:
    parts = [base_reference(flavour).encode(), (registry_image() or "").encode(), *map(str.encode, flavour.of_bookworm)]
    for path in _recipe_files(flavour):
        parts += [os.path.relpath(path, RECIPE).encode(), path.read_bytes()]
    return f"localhost/{PREFIX}-node:{digest(parts)}"


def exists(paths: Paths, reference: str) -> bool:
    return podman(paths, "image", "exists", reference, check=False).returncode == 0


def ensure(paths: Paths) -> bool:
    """Build the node image unless the cache has it. An image gets its name only when it is complete."""
    reference = node_reference(paths.flavour)
    if exists(paths, reference):
        return False
    _remove_half_built(paths)
    with tempfile.TemporaryDirectory(prefix="build-", dir=paths.image_cache) as folder:
        registry = registry_image()
        if registry is None:
            _ensure_base(paths, Path(folder))
            base = base_reference(paths.flavour)
            _build(paths, Path(folder), base, "Containerfile.standin", pull=False)
        else:
            _build(paths, Path(folder), registry, "Containerfile.registry", pull=True)
    _remove_older(paths, keep={reference, base_reference(paths.flavour)})
    return True


def packages(text: str) -> list[str]:
    """The words of a package list, without its comments."""
    return [word for line in text.splitlines() for word in line.partition("#")[0].split()]


def _ensure_base(paths: Paths, folder: Path) -> None:
    reference, suite = base_reference(paths.flavour), paths.flavour.suite
    if exists(paths, reference):
        return
    say("making the root file system (once; a minute or two)")
    archive = folder / "root.tar"
    include = ",".join(packages(BASE_PACKAGES.read_text()))
    options = [*BASE_OPTIONS, *(f"--aptopt={line}" for line in debian.connection_options()), f"--include={include}"]
    argv = ["mmdebstrap", *options, suite, str(archive), str(debian.source_list(folder, suite))]
    run(argv, timeout=1800, env={**os.environ, "TMPDIR": str(folder)})
    podman(paths, "import", "--quiet", str(archive), reference, timeout=600)
    archive.unlink()


def _build(paths: Paths, folder: Path, base: str, containerfile: str, *, pull: bool) -> None:
    say(f"building the node image from {base}")
    context = folder / "context"
    shutil.copytree(RECIPE, context)
    own = context / "flavour"
    shutil.copytree(recipe(paths.flavour) / "files", own)
    _unpack_older(paths, folder / "older", own)
    repo.build(recipe(paths.flavour) / repo.TABLE, context / "repo", folder)
    arguments = ["build", "--quiet", "--isolation", "chroot", "--file", str(context / containerfile)]
    arguments += ["--build-arg", f"BASE={base}", "--pull=missing" if pull else "--pull=never"]
    # podman 5 gives the build its own defaults, which may be above this machine's hard limits.
    arguments += limit_arguments()
    if pull:
        _pull(paths, base)
    # Named in a second step: a build that ends half-way must leave nothing that `exists` would find.
    image = podman(paths, *arguments, str(context), timeout=1800).stdout.split()[-1]
    podman(paths, "tag", image, node_reference(paths.flavour))


def _unpack_older(paths: Paths, scratch: Path, target: Path) -> None:
    """The files of packages of Debian 12 that a newer release lacks, without their scripts."""
    if not paths.flavour.of_bookworm:
        return
    scratch.mkdir()
    release = debian.Packages(paths, BOOKWORM)
    release.update()
    release.download(release.versions(paths.flavour.of_bookworm), scratch)
    for archive in scratch.glob("*.deb"):
        run(["dpkg-deb", "--extract", str(archive), str(target)])


def _pull(paths: Paths, image: str) -> None:
    try:
        podman(paths, "pull", "--quiet", image, timeout=900)
    except LabError as error:
        raise LabError(
            f"LAB_IMAGE={image} cannot be pulled from here; unset LAB_IMAGE to use the stand-in image, "
            f"which needs no registry. podman said:\n{error}"
        ) from error


def _remove_half_built(paths: Paths) -> None:
    """Folders and unnamed images of a build that was killed."""
    for folder in paths.image_cache.glob("build-*"):
        discard(folder)
    podman(paths, "rm", "--all", "--force", "--storage", check=False)
    podman(paths, "image", "prune", "--force", check=False)


def _remove_older(paths: Paths, keep: set[str]) -> None:
    """Images of earlier recipes, unless a node still runs from one."""
    listed = podman(
        paths, "images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", f"reference=localhost/{PREFIX}-*"
    )
    for reference in listed.stdout.split():
        if reference not in keep and not reference.startswith(SAVED):
            podman(paths, "rmi", reference, check=False)


def remove_cache(paths: Paths) -> None:
    discard(paths.image_cache)
    if paths.image_cache.exists():
        raise LabError(f"cannot remove the image cache {paths.image_cache}: something in it is still in use")
