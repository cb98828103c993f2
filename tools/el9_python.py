# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python 3.9, with which modules run on EL 9, on a machine whose Debian no longer has it.

Debian 11 packages it. Its files are unpacked into the cache, not installed: the interpreter finds its own library
beside itself, and its extensions are told to look there for the libraries that this machine does not have.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import project
import setup
from lab import debian, host
from lab.settings import here
from lab.shell import run, say

RELEASE = "bullseye"
PACKAGES = (
    *("python3.9-minimal", "libpython3.9-minimal", "libpython3.9-stdlib", "python3-distutils"),
    *("libssl1.1", "libffi7", "libmpdec3"),
)
REQUIREMENTS = project.REQUIREMENTS / "el9.txt"


def install() -> Path:
    """The interpreter of an environment in the cache, which is made where it is missing."""
    name = setup.fingerprint(str(project.cache_dir()), RELEASE, *PACKAGES, REQUIREMENTS, Path(__file__))[:16]
    kept = setup.venvs() / f"el9-{name}"
    with setup.only_one(setup.venvs() / setup.LOCK):
        if not (kept / setup.STAMP).exists():
            setup.make_room(kept)
            _make(kept)
        (kept / setup.STAMP).touch()
    return kept / "venv/bin/python"


def _make(kept: Path) -> None:
    root, venv = kept / "debian", kept / "venv"
    root.mkdir(parents=True)
    host.install_packages({"patchelf": "patchelf", "dpkg-deb": "dpkg"})
    release = debian.Packages(here(), RELEASE)
    release.update()
    with tempfile.TemporaryDirectory() as scratch:
        release.download(release.versions(PACKAGES), Path(scratch))
        for archive in Path(scratch).glob("*.deb"):
            run(["dpkg-deb", "--extract", str(archive), str(root)])
    (libraries,) = (root / "usr/lib").glob("*-linux-gnu")
    extensions = map(str, (root / "usr/lib/python3.9/lib-dynload").glob("*.so"))
    run(["patchelf", "--force-rpath", "--set-rpath", str(libraries), *extensions])
    say(f"making {venv} with Python 3.9 of Debian {RELEASE}")
    run([str(root / "usr/bin/python3.9"), "-m", "venv", "--without-pip", str(venv)])
    # pip judges requirements by the Python that runs it, so every package is listed.
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.9", f"--requirement={REQUIREMENTS}"]
    target = f"--target={venv}/lib/python3.9/site-packages"
    setup.run([*setup.pip(setup.VENV_PYTHON, "install"), *options, target], f"{REQUIREMENTS} cannot be installed")


def main() -> int:
    """Run a command of this Python, such as: el9_python.py -m pytest tests/unit/plugins/modules."""
    argv = [str(install()), *sys.argv[1:]]
    os.execve(argv[0], argv, project.tool_environment())


if __name__ == "__main__":
    sys.exit(main())
