# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Horovod needs in the lab: packages of Python on every node, and a compiler on the one that builds.

The RPM packages of the compiler are names without content there, and nodes have no apt. So Debian's packages are
unpacked onto the node, as many as its own list lacks, and removed again.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

from lab import debian
from lab.settings import Paths
from lab_cluster import PROJECT, Cluster

WHEELS = "/opt/lab-horovod"
#: Horovod's own needs; pycparser is one of cffi.
PACKAGES = ("cffi", "cloudpickle", "packaging", "psutil", "pycparser", "pyyaml")
SDIST = "horovod-0.28.1.tar.gz"
SDIST_ADDRESS = (
    "https://files.pythonhosted.org/packages/e4/86/"
    f"da559fcc1620ac7831a16ccb2ad3acb477a8da8a631f75a83b6410507210/{SDIST}"
)
SUITE = "bookworm"
COMPILER = ("cmake", "g++", "libopenmpi-dev", "libpython3.11-dev", "make")
#: What maintainer scripts would link, and the list of what was added.
LINKS = "cd /usr/bin; ln -sf g++ c++; ln -sf gcc cc; ln -sf mpicc.openmpi mpicc; ln -sf mpicxx.openmpi mpicxx"
ADDED = "/var/tmp/lab-horovod-added"


def cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpu-cluster" / "horovod"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(argv: list[str], **more: str) -> None:
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, **more})
    assert ended.returncode == 0, ended.stderr[-2000:]


def python_packages() -> Path:
    """The source package and the wheels, from the index that this machine's pip uses."""
    folder = cache() / "python"
    if not (folder / SDIST).exists():
        folder.mkdir(exist_ok=True)
        options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--dest", str(folder)]
        run([sys.executable, "-m", "pip", "download", "--quiet", *options, *PACKAGES])
        with urllib.request.urlopen(SDIST_ADDRESS, timeout=300) as answer:
            (folder / f"{SDIST}.new").write_bytes(answer.read())
        (folder / f"{SDIST}.new").rename(folder / SDIST)
    return folder


def tensorflow_packages(commands: str) -> list[Path]:
    """What these commands install with pip, and what that needs, for the nodes' Python."""
    wanted = sorted({word for line in commands.splitlines() if line.startswith("pip install ") for word in names(line)})
    digest = hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:16]
    folder = cache() / f"tensorflow-{digest}"
    if not folder.exists():
        part = folder.with_suffix(".part")
        options = ["--only-binary=:all:", "--python-version=3.11", "--dest", str(part)]
        run([sys.executable, "-m", "pip", "download", "--quiet", *options, *wanted])
        part.rename(folder)
    return [*folder.iterdir(), python_packages() / SDIST]


def names(line: str) -> list[str]:
    """The packages that a command of pip installs, without Horovod, which is no wheel."""
    return [word for word in shlex.split(line)[2:] if not word.startswith(("-", "horovod"))]


def give_wheels(cluster: Cluster, nodes: list[str]) -> None:
    """One folder with these and those of the lab: the role has one source."""
    for node in nodes:
        cluster.shell(node, f"rm -rf {WHEELS}; mkdir -p {WHEELS}; ln -s /srv/wheels/*.whl {WHEELS}")
        for path in sorted(python_packages().iterdir()):
            put(cluster, node, path, f"{WHEELS}/{path.name}")


def put(cluster: Cluster, node: str, path: Path, there: str) -> None:
    """Send a file to a node."""
    argv = cluster.lab_argv("exec", node, "sh", "-c", f"cat > {there}")
    with path.open("rb") as stream:
        assert subprocess.run(argv, cwd=PROJECT, stdin=stream, check=False).returncode == 0


def compiler_packages(cluster: Cluster, node: str) -> list[Path]:
    """Those of the compiler and all that they need, without what the node has."""
    folder = cache() / "debian"
    archives = folder / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    status = folder / "status"
    status.write_text(cluster.shell(node, "cat /var/lib/dpkg/status"), encoding="utf-8")
    packages = debian.Packages(Paths(PROJECT, cache()), SUITE)
    packages.update()
    own = ["-o", f"Dir::State::status={status}", "-o", f"Dir::Cache::archives={archives}"]
    options = [*packages._options(), *own, "-y", "--no-install-recommends"]
    run(["apt-get", *options, "--download-only", "install", *COMPILER])
    return sorted(archives.glob("*.deb"))


def give_compiler(cluster: Cluster, node: str) -> None:
    """Unpack it; files that are there stay."""
    there = "/var/tmp/lab-horovod-debs"
    cluster.shell(node, f"rm -rf {there}; mkdir -p {there}")
    for path in compiler_packages(cluster, node):
        put(cluster, node, path, f"{there}/{urllib.parse.quote(path.name)}")
    unpack = "tar -x -v --keep-directory-symlink --skip-old-files -C / -f -"
    cluster.shell(
        node,
        f"touch {ADDED}.before; for deb in {there}/*.deb; do dpkg-deb --fsys-tarfile $deb | {unpack}; done > {ADDED}; "
        f"{LINKS}; ldconfig; rm -rf {there}; mpicxx --version && cmake --version && c++ --version",
    )


def take_compiler(cluster: Cluster, node: str) -> None:
    """Remove the files that were unpacked, which are newer on this node than the mark; folders stay."""
    links = "for name in c++ cc mpicc mpicxx; do rm -f /usr/bin/$name; done"
    gone = f"cd / && find $(grep -v '/$' {ADDED}) -maxdepth 0 -newercc {ADDED}.before ! -type d -delete"
    cluster.shell(node, f"test ! -e {ADDED} || {{ {gone}; {links}; rm -f {ADDED} {ADDED}.before; ldconfig; }}")
