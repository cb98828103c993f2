# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build a wheel of Horovod from its source package: the patch, and the order of the commands.

Horovod 0.28.1 compiles as C++14, and the headers of PyTorch 2.13 need C++17. Upstream has the same change in its main
branch (github.com/horovod/horovod, pull request 3998), and made no release since.  It also imports numpy where it
broadcasts objects (horovod/torch/functions.py), and does not say that it needs it.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import pip
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.store import BuildError

STANDARD = ("set(CMAKE_CXX_STANDARD 14)", "set(CMAKE_CXX_STANDARD 17)")
#: Files of the source package, and what in them, once each, becomes what.
PATCHES = {
    "CMakeLists.txt": (STANDARD,),
    "horovod/torch/CMakeLists.txt": (STANDARD,),
    "setup.py": (
        ("require_list = ['cloudpickle',", "require_list = ['numpy', 'cloudpickle',"),
        # The same optimisation without data for a debugger, which takes most of the time, the disk and the wheel.
        ("else 'RelWithDebInfo'", "else 'Release'"),
    ),
}
#: What Horovod's setup.py imports, and what it asks for before a build.
NEEDS = ("cffi", "cloudpickle", "numpy", "packaging", "psutil", "pyyaml", "setuptools")
#: For an ordinary question.
STEP_SECONDS = 300
#: Of a failed build so many lines are shown: those that tell of an error, else the last ones.
SHOWN_LINES = 12
LINE_CHARACTERS = 300

ERR_PATCH = "%s of Horovod's source package has %d times %r, expected 1: it is not the package that the patch is for"
ERR_WHEELS = "the build of Horovod ended well and has left %d wheels, expected 1"
ERR_OUTPUT = "%s. All of its output is in %s on this node"
ERR_DISK = "; the disk has %d MiB left"
ERR_LINES = "; %s:\n%s"
#: Whoever has less has likely failed for that.
LITTLE_MIB = 200
#: Beside the wheels: the output of the last build, when it has failed.
LOG_NAME = "build.log"

_ERROR = re.compile(r"\berror\b|not found|No such file|Could NOT find|No module named|Killed", re.IGNORECASE)


@dataclass(frozen=True)
class Wish:
    """What is built. ``torch`` is a pin; ``local`` is the part of the version that tells this wheel from others."""

    version: str
    sha256: str
    local: str
    torch: str
    python: str
    mpi_prefix: str

    @property
    def pattern(self) -> str:
        """What the file of the wheel is called, whatever interpreter and processor it is for."""
        return f"horovod-{self.version}+{self.local}-*.whl"


def patched(text: str, name: str) -> str:
    """A file of the source package as it is built."""
    for old, new in PATCHES[name]:
        if text.count(old) != 1:
            raise BuildError(ERR_PATCH % (name, text.count(old), old))
        text = text.replace(old, new)
    return text


def telling(log: str) -> str:
    """Those lines of a build's output that say why it failed, with what they are."""
    lines = [line.strip()[:LINE_CHARACTERS] for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    title = "its last lines that tell of an error" if errors else "its last lines"
    return ERR_LINES % (title, "\n".join((errors or lines)[-SHOWN_LINES:])) if lines else ""


def failure(said: str, log: str, folder: str) -> str:
    """What is said of a failed build. Its output moves to the folder of the wheels."""
    try:
        with open(log, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError:
        return said
    free = shutil.disk_usage(os.path.dirname(log)).free >> 20
    with contextlib.suppress(OSError):  # The disk may be full.
        kept = os.path.join(folder, LOG_NAME)
        os.makedirs(folder, mode=0o755, exist_ok=True)
        os.replace(log, kept)
        said = ERR_OUTPUT % (said, kept)
    return said + (ERR_DISK % free if free < LITTLE_MIB else "") + telling(text)


def variables(wish: Wish, inside: str, temporary: str, with_cuda: bool) -> dict[str, str]:
    """The settings of the build (Horovod's docs/install.rst), with MPI and gloo in any case."""
    folders = [os.path.join(wish.mpi_prefix, "bin"), os.path.dirname(inside), "/usr/local/cuda/bin", "/usr/bin", "/bin"]
    found = {
        "HOROVOD_CMAKE": "cmake",  # Without it, and without CMake, setup.py would ask an index for one.
        "HOROVOD_LOCAL_VERSION": wish.local,
        "HOROVOD_WITH_PYTORCH": "1",
        "HOROVOD_WITHOUT_TENSORFLOW": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITH_GLOO": "1",
        "LDFLAGS": "-Wl,-s",  # Symbols for a debugger make it ten times as large.
        "MAKEFLAGS": f"-j{len(os.sched_getaffinity(0))}",
        "PATH": ":".join(folders),
        "TMPDIR": temporary,
    }
    if with_cuda:
        found.update(HOROVOD_GPU_OPERATIONS="NCCL", HOROVOD_NCCL_LINK="SHARED", HOROVOD_CUDA_HOME="/usr/local/cuda")
    return found


def find(folder: str, wish: Wish) -> str:
    """The wheel that an earlier run has built; empty when there is none."""
    return next(iter(sorted(glob.glob(os.path.join(glob.escape(folder), wish.pattern)))), "")


def build(work: str, folder: str, wish: Wish, source: pip.Source, seconds: int, inherit: Sequence[int]) -> str:
    """Build the wheel below ``work``, a new folder, from nothing but the source of packages; its path in ``folder``."""
    run([wish.python, "-m", "venv", os.path.join(work, "env")], STEP_SECONDS, f"{wish.python} -m venv", inherit)
    inside = os.path.join(work, "env", "bin", "python")
    temporary = os.path.join(work, "tmp")
    os.mkdir(temporary)
    command = [*source.pip(inside, temporary), "install", *pip.COMMON, *source.arguments(), wish.torch, *NEEDS]
    run(command, seconds, "pip install of what the build of Horovod needs", inherit)
    tree = unpacked(work, download(work, wish, source, inside, seconds, inherit))
    for name in PATCHES:
        path = os.path.join(tree, name)
        with open(path, encoding="utf-8") as stream:
            text = patched(stream.read(), name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    cuda = run([inside, "-I", "-c", "import torch; print(torch.version.cuda or '')"], STEP_SECONDS, "torch", inherit)
    log, out = os.path.join(work, "build.log"), os.path.join(work, "wheel")
    settings = [f"{name}={value}" for name, value in variables(wish, inside, temporary, bool(cuda.strip())).items()]
    shell = 'log=$1; cd "$2"; shift 2; exec "$@" >"$log" 2>&1'
    make = [inside, "setup.py", "bdist_wheel", "--dist-dir", out]
    argv = ["/usr/bin/env", *settings, "/bin/sh", "-c", shell, "sh", log, tree, *make]
    try:
        run(argv, seconds, "setup.py bdist_wheel of Horovod", inherit)
    except CommandError as error:
        raise BuildError(failure(str(error).rstrip(": "), log, folder)) from None
    wheels = glob.glob(os.path.join(glob.escape(out), wish.pattern))
    if len(wheels) != 1:
        raise BuildError(ERR_WHEELS % len(wheels))
    return keep(folder, wheels[0])


def download(work: str, wish: Wish, source: pip.Source, inside: str, seconds: int, inherit: Sequence[int]) -> str:
    """The source package, which pip refuses when its hash is another one; its path."""
    wanted, folder = os.path.join(work, "sdist.txt"), os.path.join(work, "sdist")
    with open(wanted, "w", encoding="utf-8") as stream:
        stream.write(f"horovod=={wish.version} --hash=sha256:{wish.sha256}\n")
    options = ["--no-deps", "--no-build-isolation", "--no-binary=horovod", "--no-cache-dir", "--progress-bar=off"]
    command = [*source.pip(inside, os.path.join(work, "tmp")), "download", *options, *source.arguments()]
    try:
        run([*command, "--require-hashes", "--dest", folder, "--requirement", wanted], seconds, "pip download", inherit)
    except CommandError as error:
        raise BuildError(pip.tampered(str(error)) or str(error)) from None
    return glob.glob(os.path.join(glob.escape(folder), "*.tar.gz"))[0]


def unpacked(work: str, path: str) -> str:
    """The folder of the source package; its hash is known, so its names are those of the release."""
    with tarfile.open(path) as archive:
        archive.extractall(os.path.join(work, "source"))
    return os.path.join(work, "source", os.path.basename(path)[: -len(".tar.gz")])


def keep(folder: str, wheel: str) -> str:
    """Put the wheel where it stays, in one step; its new path."""
    os.makedirs(folder, mode=0o755, exist_ok=True)
    path = os.path.join(folder, os.path.basename(wheel))
    shutil.copyfile(wheel, f"{path}.new")
    os.chmod(f"{path}.new", 0o644)
    os.replace(f"{path}.new", path)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, LOG_NAME))
    return path


#: Runs in a new environment that has Horovod. One line of JSON.
PROGRAM = """
import json, os
import horovod
import horovod.torch as hvd
import torch
with open(os.path.join(os.path.dirname(horovod.__file__), "metadata.json")) as stream:
    built = json.load(stream).get("pytorch", "")
said = {"mpi": bool(hvd.mpi_built()), "gloo": bool(hvd.gloo_built()), "torch": built, "here": torch.__version__}
print(json.dumps(said))
"""
ERR_BUILT = "Horovod was built without %s. Fix: remove its wheel, and run again"
ERR_OTHER_TORCH = (
    "Horovod was built for torch %s, and this is %s. Fix: remove its wheel from torch_runtime_horovod_wheels and from "
    "the node, and run again"
)


def problems(said: dict[str, object]) -> list[str]:
    """What the program has found to be wrong, one sentence each."""
    found = [ERR_BUILT % name for name, key in (("MPI", "mpi"), ("gloo", "gloo")) if not said.get(key)]
    if said.get("torch") != said.get("here"):
        found.append(ERR_OTHER_TORCH % (said.get("torch"), said.get("here")))
    return found
