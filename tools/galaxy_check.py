# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Import the built archive as Galaxy does, and prepare an execution environment with it, both without network.

Every warning of the importer is a failure. The image itself is not built: that needs a registry.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import project
import setup
import yaml

VENV = project.ROOT / ".venv-galaxy"
EXAMPLE = project.ROOT / "docs" / "examples" / "execution-environment"
#: What the collection asks of an execution environment.
SYSTEM = ("openssh-clients [platform:rpm]", "openssh-client [platform:dpkg]")
# The importer names the folder ansible_collections itself as a path of collections. Ansible accepts that, but
# ansible-lint looks for playbooks below ansible_collections of each path, and finds none of ours.
LINT = """#!/bin/sh
ANSIBLE_COLLECTIONS_PATH="${ANSIBLE_COLLECTIONS_PATH%/ansible_collections}" exec __PROGRAM__ "$@"
"""


class GalaxyError(Exception):
    """What is wrong with the archive, in one text."""


def complaints(log: str) -> list[str]:
    """The lines of the importer that are more than progress."""
    return [line for line in log.splitlines() if line.startswith(("WARNING", "ERROR", "CRITICAL"))]


def run(*command: str, cwd: Path, path: tuple[Path, ...] = ()) -> str:
    """What a program of these tools prints; its failure is an error with that."""
    environment = project.tool_environment(HOME=str(cwd), PIP_NO_INDEX="1")
    del environment["ANSIBLE_CONFIG"]
    environment["PATH"] = os.pathsep.join([*map(str, path), str(VENV / "bin"), environment["PATH"]])
    done = subprocess.run(
        command, cwd=cwd, env=environment, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode != 0:
        raise GalaxyError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def build(folder: Path) -> Path:
    """The archive of what is committed or about to be."""
    copy = project.copy_sources(folder / "checkout")
    run("ansible-galaxy", "collection", "build", "--output-path", str(folder), cwd=copy)
    return next(folder.glob("*.tar.gz"))


def import_archive(archive: Path, folder: Path) -> None:
    """Let galaxy-importer read it."""
    shim = folder / "shim" / "ansible-lint"
    shim.parent.mkdir()
    shim.write_text(LINT.replace("__PROGRAM__", str(VENV / "bin" / "ansible-lint")), encoding="utf-8")
    shim.chmod(0o755)
    python = str(VENV / "bin" / "python")
    log = run(python, "-m", "galaxy_importer.main", str(archive), cwd=folder, path=(shim.parent,))
    if found := complaints(log):
        raise GalaxyError("galaxy-importer complains:\n" + "\n".join(found))
    if "ansible-lint run complete" not in log or "completed successfully" not in log:
        raise GalaxyError(f"galaxy-importer left out a part:\n{log}")


def prepare_environment(archive: Path, folder: Path) -> None:
    """Write the context of the documented execution environment, and install the archive as its image would."""
    work = folder / "environment"
    shutil.copytree(EXAMPLE, work)
    shutil.copy2(archive, work / "gpu_cluster.tar.gz")
    run("ansible-builder", "create", cwd=work)
    files = work / "context" / "_build"
    if "_build/scripts/" not in (work / "context" / "Containerfile").read_text(encoding="utf-8"):
        raise GalaxyError("the context has another form than this check knows")
    target = folder / "installed"
    install = ("ansible-galaxy", "collection", "install", "--offline", "-r", "requirements.yml")
    run(*install, "--collections-path", str(target), cwd=files)
    asked = yaml.safe_load(run("ansible-builder", "introspect", str(target), cwd=work))
    wanted = [line.partition("  #")[0] for line in asked["system"]]
    if wanted != list(SYSTEM) or asked["python"]:
        raise GalaxyError(f"expected {SYSTEM} and no Python package, but the collection asks for {asked}")


def checks(folder: Path) -> Iterator[str]:
    """All of it, and what each part has shown."""
    archive = build(folder)
    yield f"built {archive.name}, {archive.stat().st_size // 1024} KiB"
    import_archive(archive, folder)
    yield "galaxy-importer: no complaint"
    prepare_environment(archive, folder)
    yield "ansible-builder: the context is complete, and the archive installs there"


def main() -> int:
    """Check the tree as it is."""
    setup.install_tools(VENV, setup.GALAXY)
    with tempfile.TemporaryDirectory() as folder:
        for text in checks(Path(folder)):
            print(text, flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (GalaxyError, setup.SetupError) as error:
        sys.exit(f"galaxy: {error}")
