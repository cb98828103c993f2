# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Enterprise Linux the nodes stand in for, and the Debian release whose packages are nearest to its software."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from lab.shell import LabError

#: Chooses the major version, as in ``LAB_EL=10 make lab``.
VARIABLE = "LAB_EL"


@dataclass(frozen=True)
class Flavour:
    """``el``: the major version that the nodes show.  ``suite``: the Debian release that they are made of.

    ``of_bookworm``: packages of Debian 12 that are unpacked into the image besides.  ``daemons``: packages of what
    CentOS runs on every machine, and only the virtual machine can run: auditd, without which the kernel drops denials
    of SELinux, and tuned, which would set the parameters of the whole kernel; and a file server of NFS, whose kernel
    part no container has.
    """

    el: int
    suite: str
    daemons: tuple[str, ...]
    of_bookworm: tuple[str, ...] = ()


BOOKWORM = "bookworm"
#: The lab's wheels of PyTorch are for Python 3.11, which newer releases do not have.
PYTHON_3_11 = (
    *("python3.11", "python3.11-minimal", "python3.11-venv", "libpython3.11-minimal", "libpython3.11-stdlib"),
    *("python3-pip-whl", "python3-setuptools-whl"),
)
TUNED = ("tuned", "python3-linux-procfs", "python3-pyudev", "python3-six")
FILE_SERVER = "nfs-kernel-server"
FLAVOURS = {
    9: Flavour(9, BOOKWORM, ("auditd", "libauparse0", FILE_SERVER, *TUNED)),
    10: Flavour(10, "trixie", ("auditd", "libauparse0t64", FILE_SERVER, *TUNED), PYTHON_3_11),
}
DEFAULT = 9


def major(text: str) -> int:
    """The major version that a value of the variable chooses."""
    if text in map(str, FLAVOURS):
        return int(text)
    raise LabError(f"{VARIABLE} is {text!r}: expected {' or '.join(map(str, FLAVOURS))}")


def chosen(owner_file: Path, checkout: Path) -> int:
    """The major version of the variable, else that of the lab which this checkout has up, else EL 9's."""
    if text := os.environ.get(VARIABLE):
        return major(text)
    try:
        record = json.loads(owner_file.read_text())
        return major(str(record["el"])) if Path(record["checkout"]) == checkout else DEFAULT
    except (OSError, ValueError, KeyError, TypeError, LabError):
        return DEFAULT
