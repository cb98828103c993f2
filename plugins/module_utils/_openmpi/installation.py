# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what the programs of an installation say about it: versions, files, components, values in force. Pure.

``ompi_info --all --parsable`` prints lines of fields with colons. prte_info of PRRTE 3.0 knows no such form, so its
prose is read, which breaks lines at blanks. Both seen with Open MPI 4.1.4 and 5.0.11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

#: The home of nobody: what users have set for themselves is not in what we ask for.
NO_HOME = "/nonexistent"

VERSION = re.compile(r"^ompi:version:full:(\d+)\.(\d+)(\S*)", re.MULTILINE)
COMPONENT = re.compile(r"^mca:pml:(\w+):version:", re.MULTILINE)
VALUE = re.compile(r'^mca:[^:\n]*:[^:\n]*:param:([^:\n]+):(value|source):"?(.*?)"?$', re.MULTILINE)
PRTE_VALUE = re.compile(r'MCA \w+: "(\w+)" \(current value: "(.*?)", data source: ([^,]*),')
PRTE_FOLDER = re.compile(r"^\s*Sysconfdir: (/\S+)$", re.MULTILINE)
PRTE_FILE = "prte-mca-params.conf"


class Installation(NamedTuple):
    """One Open MPI. ``values`` are what is in force, with the place that says so in ``sources``."""

    version: str
    mpi_file: str
    pmls: frozenset[str]
    values: Mapping[str, str]
    sources: Mapping[str, str]
    #: Of the launcher, for version 5; empty for 4.1, which has one file for both.
    prte_file: str = ""
    prte_values: Mapping[str, str] = {}

    @property
    def generation(self) -> str:
        """``4.1``, ``5``, or the empty string for what is not supported."""
        if self.version.startswith("4.1."):
            return "4.1"
        return "5" if self.version.startswith("5.") else ""


def parse_mpi(text: str) -> Installation:
    """What ompi_info says. Without a version the text is none of its answers."""
    version = VERSION.search(text)
    found: dict[str, dict[str, str]] = {"value": {}, "source": {}}
    for name, kind, value in VALUE.findall(text):
        found[kind][name] = value
    # Its last file is the installation's own; before it stands that of the user.
    files = re.split(r"[,:]", found["value"].get("mca_base_param_files", ""))
    return Installation(
        version="{}.{}{}".format(*version.groups()) if version else "",
        mpi_file=files[-1],
        pmls=frozenset(COMPONENT.findall(text)),
        values=found["value"],
        sources=found["source"],
    )


def parse_prte(text: str) -> tuple[str, dict[str, str]]:
    """The launcher's file, and its values in force."""
    folder = PRTE_FOLDER.search(text)
    prose = " ".join(text.split())
    values = {name: value for name, value, _source in PRTE_VALUE.findall(prose)}
    return f"{folder.group(1)}/{PRTE_FILE}" if folder else "", values
