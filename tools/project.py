# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things are: the checkout, its tools and the cache outside it. Standard library only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMESPACE = "baremetal"
NAME = "gpu_cluster"
COLLECTION = f"{NAMESPACE}.{NAME}"

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
COLLECTIONS = ROOT / ".ansible" / "collections"
REQUIREMENTS = ROOT / "tools" / "requirements"


def cache_dir() -> Path:
    """The folder that keeps downloads between checkouts; GPU_CLUSTER_CACHE moves it."""
    chosen = os.environ.get("GPU_CLUSTER_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpu-cluster"


def tool_environment(**more: str) -> dict[str, str]:
    """The environment of every tool: the pinned tools first, and this checkout's configuration only."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    # Else every one of the thousands of Pythons that tests start would compile the collection again.
    for name in ("PYTHONHOME", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    environment["PATH"] = f"{BIN}{os.pathsep}{environment.get('PATH', os.defpath)}"
    environment["VIRTUAL_ENV"] = str(VENV)
    environment["ANSIBLE_CONFIG"] = str(ROOT / "ansible.cfg")
    # What mypy has found in files that another checkout has too; it compares their content.
    environment["MYPY_CACHE_DIR"] = str(cache_dir() / "mypy")
    if not sys.stdout.isatty():
        environment["NO_COLOR"] = "1"
    return environment | more


def source_files() -> list[Path]:
    """Every file that belongs to the project, relative to the checkout: committed or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [Path(name) for name in sorted(set(listed.split("\0"))) if name]
    return [file for file in files if os.path.lexists(ROOT / file)]


def playbooks() -> list[Path]:
    """Every playbook of the collection."""
    return sorted((ROOT / "playbooks").glob("*.yml"))


def copy_sources(destination: Path) -> Path:
    """Copy the project's own files, and nothing that was made from them."""
    for file in source_files():
        target = destination / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, target, follow_symlinks=False)
    return destination
