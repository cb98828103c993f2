# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Python files reach a package: by an import of their own, or of what they import of this project."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import project


def reaching(package: str, files: Iterable[Path]) -> list[Path]:
    """Those of ``files`` that import ``package`` or any part of it, wherever in the file or in what it imports.

    The ``conftest.py`` of a file's folder and of those above are imported by pytest, so they count as imports of it.
    What a program imports that a test starts is not seen.
    """
    return [file for file in files if any(name.split(".")[0] == package for name in _reached(file))]


def _reached(file: Path) -> set[str]:
    """The names of all modules that a file imports, directly or not."""
    seen: set[Path] = set()
    names: set[str] = set()
    waiting = [file, *(folder / "conftest.py" for folder in file.parents if folder.is_relative_to(project.ROOT))]
    while waiting:
        one = waiting.pop()
        if one in seen or not one.is_file():
            continue
        seen.add(one)
        names |= _imported(one)
        waiting += _next(one)
    return names


@cache
def _next(file: Path) -> list[Path]:
    """The files of this project that a file imports."""
    found = [path for name in _imported(file) for path in _of_this_project(name, file.parent)]
    return [path for path in found if path.is_file()]


@cache
def _imported(file: Path) -> frozenset[str]:
    """What the imports of one file name; of ``from a import b`` both a and a.b, which may be a module."""
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def _of_this_project(name: str, beside: Path) -> list[Path]:
    """Where a module of this project would be: beside the file that imports it, or where pytest looks."""
    return [folder.joinpath(*name.split(".")).with_suffix(".py") for folder in (beside, *_pytest_path())]


@cache
def _pytest_path() -> tuple[Path, ...]:
    settings = tomllib.loads((project.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return tuple(project.ROOT / folder for folder in settings["tool"]["pytest"]["ini_options"]["pythonpath"])
