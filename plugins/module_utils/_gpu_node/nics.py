# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network cards, out of sysfs and ``ethtool -i``. Pure."""

from __future__ import annotations

FOLDER = "sys/class/net"
#: Every node has it, and it is no card.
LOOPBACK = "lo"


def parse_ethtool(text: str) -> dict[str, str]:
    """The lines ``key: value`` of ``ethtool -i``; values that say nothing are left out."""
    found = {}
    for line in text.splitlines():
        key, _colon, value = line.partition(":")
        if value.strip() not in ("", "N/A"):
            found[key.strip()] = value.strip()
    return found


def integer(text: str) -> int | None:
    """A number of sysfs; None where there is none. A speed of -1 means unknown."""
    return int(text) if text.isdigit() else None


def device_type(uevent: str) -> str:
    """``bond`` or ``vlan`` out of the file ``uevent`` of an interface, empty for a plain one."""
    for line in uevent.splitlines():
        if line.startswith("DEVTYPE="):
            return line.partition("=")[2]
    return ""
