# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI trees of machines with GPUs, from recorded listings, shown to a node of the lab in place of its own."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab_cluster import Cluster

LISTINGS = Path(__file__).parents[2] / "tests/unit/plugins/module_utils/_gpu_node/data"
DEVICES = "/sys/bus/pci/devices"
#: A line of `lspci -Dnn`: address, class, vendor and device.
LINE = re.compile(r"^(\S+) .*? \[([0-9a-f]{4})\]: .*\[([0-9a-f]{4}):([0-9a-f]{4})\]")


def pci_files(listing: str) -> dict[str, str]:
    """The files of /sys/bus/pci/devices that stand for a listing: path below it to content, as the kernel writes it."""
    files = {}
    for line in (LISTINGS / listing).read_text().splitlines():
        match = LINE.match(line)
        if match is None:
            raise ValueError(f"{listing}: not a line of lspci -Dnn: {line}")
        address, kind, vendor, device = match.groups()
        values = {"class": f"0x{kind}00", "vendor": f"0x{vendor}", "device": f"0x{device}"}
        files.update({f"{address}/{name}": f"{value}\n" for name, value in values.items()})
    return files


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write such files below a folder of this machine."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


@contextlib.contextmanager
def shown_devices(cluster: Cluster, name: str, listing: str) -> Iterator[None]:
    """Let a node see the devices of a listing: its namespace of mounts is its own."""
    folder = "/run/lab-pci-devices"
    lines = [f"mkdir -p {folder}"]
    for path, content in pci_files(listing).items():
        lines += [
            f"mkdir -p {folder}/{path.rpartition('/')[0]}",
            f"echo {shlex.quote(content.strip())} >{folder}/{path}",
        ]
    cluster.shell(name, f"set -e; {'; '.join(lines)}; mount --bind {folder} {DEVICES}")
    try:
        yield
    finally:
        cluster.shell(name, f"umount {DEVICES}; rm -rf {folder}")
