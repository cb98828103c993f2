# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CUDA toolkits are wanted, and the packages that bring them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

VERSIONS = "cuda_toolkit_versions"
DEFAULT = "cuda_toolkit_default"
#: A release of CUDA, such as 13.0, or one exact version of its toolkit, such as 13.0.2.
VERSION = re.compile(r"[1-9][0-9]?\.[0-9]{1,2}(\.[0-9]{1,3})?")
#: NVIDIA installs each release into a folder of its own beside the link.
LINK = "/usr/local/cuda"

ERR_NO_LIST = "a list of versions is expected"
FIX_LIST = 'write [] for none, or for example ["13.0"]'
ERR_NO_TEXT = "without quotes YAML takes it for a number, and 12.10 for 12.1"
ERR_NO_VERSION = "no version of CUDA"
FIX_VERSION = 'write a release such as "13.0", or one version of it such as "13.0.2", in quotes'
ERR_TWICE = "the release %s is in the list twice, and it has one package, %s"
FIX_TWICE = "keep one of %s"
ERR_NOT_LISTED = "no such toolkit is in " + VERSIONS
FIX_NOT_LISTED = "add it there, or choose one of %s"


class Toolkit(NamedTuple):
    """One wanted toolkit."""

    release: str
    version: str

    @property
    def package(self) -> str:
        """The package with the toolkit and nothing else; ``cuda`` and ``cuda-X-Y`` bring a driver too."""
        return f"cuda-toolkit-{self.release.replace('.', '-')}"

    @property
    def path(self) -> str:
        """Where it is installed."""
        return f"{LINK}-{self.release}"


class Plan(NamedTuple):
    """What a node is to have."""

    toolkits: list[Toolkit]
    default: Toolkit | None

    def as_dict(self) -> dict[str, Any]:
        """The form in which the filter returns it."""
        return {
            "packages": [{"name": one.package, "version": one.version, "variable": VERSIONS} for one in self.toolkits],
            "releases": [one.release for one in self.toolkits],
            "default": self.default.release if self.default else "",
        }


def release_of(version: str) -> str:
    """13.0 for 13.0.2."""
    return ".".join(version.split(".")[:2])


def plan(params: Mapping[str, Any]) -> tuple[Plan, list[Problem]]:
    """Read ``versions`` and ``default``. All problems at once; with any, the plan must not be used."""
    problems: list[Problem] = []
    versions = params.get("versions", [])
    if not isinstance(versions, list):
        return Plan([], None), [Problem(VERSIONS, shown(versions), ERR_NO_LIST, FIX_LIST)]
    found: dict[str, Toolkit] = {}
    for number, value in enumerate(versions):
        variable = f"{VERSIONS}[{number}]"
        rule = refused(value)
        if rule:
            problems.append(Problem(variable, shown(value), rule, FIX_VERSION))
            continue
        toolkit = Toolkit(release_of(value), str(value))
        if toolkit.release in found:
            both = f"{found[toolkit.release].version} and {value}"
            problems.append(
                Problem(variable, shown(value), ERR_TWICE % (toolkit.release, toolkit.package), FIX_TWICE % both)
            )
        found.setdefault(toolkit.release, toolkit)
    toolkits = list(found.values())
    wanted = params.get("default", "")
    default = toolkits[0] if toolkits else None
    if wanted != "" and refused(wanted):
        problems.append(Problem(DEFAULT, shown(wanted), refused(wanted), FIX_VERSION))
    elif wanted != "":
        fitting = [one for one in toolkits if wanted in (one.release, one.version)]
        default = fitting[0] if fitting else default
        if not fitting and not problems:
            fix = FIX_NOT_LISTED % ", ".join(one.version for one in toolkits) if toolkits else f'write "" for {DEFAULT}'
            problems.append(Problem(DEFAULT, shown(wanted), ERR_NOT_LISTED, fix))
    return Plan(toolkits, default), problems


def refused(value: Any) -> str:
    """Why this is no version; empty when it is one."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return ERR_NO_TEXT
    if not isinstance(value, str) or not VERSION.fullmatch(value):
        return ERR_NO_VERSION
    return ""
