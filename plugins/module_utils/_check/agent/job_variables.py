# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that a node gives to jobs, and the file that each stands in."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import OF_SESSIONS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.paths import ENVIRONMENT

#: What a session and the launcher give to a job; later ones win.
FILES = (OF_SESSIONS, ENVIRONMENT)


class Variable(NamedTuple):
    """source: the path of the file that sets it."""

    value: str
    source: str


def read(paths: Sequence[str] = FILES) -> dict[str, Variable]:
    """Name to what a job gets; of two files the later one wins, and one that cannot be read sets nothing."""
    found: dict[str, Variable] = {}
    for path in paths:
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
            found.update({name: Variable(value, path) for name, value in parsed(stream.read()).items()})
    return found


def values(paths: Sequence[str] = FILES) -> dict[str, str]:
    """The same without the files."""
    return {name: one.value for name, one in read(paths).items()}


def parsed(text: str) -> dict[str, str]:
    """NAME=value of either file; quotes around a value go, as pam_env(8) has it."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        name = name[len("export ") :].strip() if name.startswith("export ") else name.strip()
        if equals and name.isidentifier():
            value = value.strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            found[name] = value[1:-1] if quoted else value
    return found
