# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes' package repositories: RPMs with real names, versions and dependencies, and no content."""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lab.shell import LabError, run

TABLE = "packages.toml"


@dataclass(frozen=True)
class Package:
    """One version of one package."""

    name: str
    epoch: str
    version: str
    release: str
    requires: tuple[str, ...]
    summary: str


@dataclass(frozen=True)
class Repository:
    name: str
    packages: tuple[Package, ...]


def parse_evr(text: str) -> tuple[str, str, str]:
    """Split `[epoch:]version-release`."""
    epoch, _colon, rest = text.rpartition(":")
    version, dash, release = rest.rpartition("-")
    if not dash or not version or not release:
        raise LabError(f"{TABLE}: expected [epoch:]version-release, found {text!r}")
    return epoch, version, release


def _packages(table: Mapping[str, Any]) -> Iterator[Package]:
    requires = table.get("requires", {})
    for name, versions in table["packages"].items():
        for evr in versions:
            epoch, version, release = parse_evr(evr)
            lines = tuple(line.format(evr=evr, version=version) for line in requires.get(name, []))
            yield Package(name, epoch, version, release, lines, table["summary"])


def load(text: str) -> list[Repository]:
    return [Repository(name, tuple(_packages(table))) for name, table in tomllib.loads(text).items()]


def generations(packages: tuple[Package, ...]) -> list[list[Package]]:
    """Split so that no name comes twice: a spec file cannot build two versions of a package."""
    by_name: dict[str, list[Package]] = {}
    for package in packages:
        by_name.setdefault(package.name, []).append(package)
    return [[package for package in row if package is not None] for row in zip_longest(*by_name.values())]


def spec(title: str, packages: list[Package]) -> str:
    """One spec file that makes all of `packages`."""
    lines = [
        f"Name: {title}",
        "Version: 1",
        "Release: 1",
        f"Summary: {title}",
        "License: GPL-3.0-or-later",
        "%description",
        title,
    ]
    for package in packages:
        lines += ["", f"%package -n {package.name}", f"Summary: {package.summary}"]
        lines += [f"Epoch: {package.epoch}"] if package.epoch else []
        lines += [f"Version: {package.version}", f"Release: {package.release}"]
        lines += [f"Requires: {requirement}" for requirement in package.requires]
        lines += [f"%description -n {package.name}", package.summary, f"%files -n {package.name}"]
    return "\n".join(lines) + "\n"


def build(table: Path, target: Path, scratch: Path) -> None:
    """Make every repository of the table below `target`."""
    for repository in load(table.read_text()):
        folder = target / repository.name
        folder.mkdir(parents=True)
        for number, packages in enumerate(generations(repository.packages)):
            title = f"lab-{repository.name}-{number}"
            source = scratch / f"{title}.spec"
            source.write_text(spec(title, packages))
            defines = {
                "_topdir": scratch / "rpmbuild",
                "_rpmdir": folder,
                "_dbpath": scratch / "rpmdb",
                "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
                "_binary_payload": "w1.gzdio",
                "debug_package": "%{nil}",
            }
            words = [word for key, value in defines.items() for word in ("--define", f"{key} {value}")]
            run(["rpmbuild", "-bb", "--quiet", "--target", f"{platform.machine()}-linux", *words, str(source)])
        run(["createrepo_c", "--quiet", "--no-database", str(folder)])
