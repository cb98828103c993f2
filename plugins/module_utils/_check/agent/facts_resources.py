# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node has for the ranks and for the check: ports, limits, disk, and what SELinux denied."""

from __future__ import annotations

import os
import re

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import service
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import (
    DENIAL_MINUTES,
    UNLIMITED,
)

#: Key here to the name in /proc/<pid>/limits.
LIMITS = {"nofile": "Max open files", "memlock": "Max locked memory", "nproc": "Max processes"}
LIMITS_OF_THIS_PROCESS = "/proc/self/limits"
#: What role kernel_tuning writes, and how: for everybody and, as limits.conf(5) wants it, for root once more.
LIMITS_OF_ROLE = "/etc/security/limits.d/90-gpu-cluster.conf"
_OF_EVERYBODY = re.compile(r"^\* - (?P<item>[a-z]+) (?P<value>unlimited|[0-9]{1,18})$", re.MULTILINE)
#: Far more than reading them takes, less than a person waits.
LIMITS_SECONDS = 10
#: A service, as the node's sshd is one: what it starts has no limits of the login that Ansible uses.
AS_A_SERVICE = (
    "systemd-run",
    "--quiet",
    "--collect",
    "--pipe",
    "--wait",
    f"--property=RuntimeMaxSec={LIMITS_SECONDS}",
    "--",
)
AUDIT_LOG = ("ausearch", "--raw", "--input-logs", "--message", "AVC,USER_AVC", "--start", "recent")
#: 1400 is AVC, 1107 USER_AVC (linux/audit.h, libaudit.h).
JOURNAL = (
    "journalctl",
    "--quiet",
    "--no-pager",
    "--output=cat",
    f"--since=-{DENIAL_MINUTES}min",
    "_AUDIT_TYPE=1400",
    "_AUDIT_TYPE=1107",
)
LIMIT_LINE = re.compile(r"^(?P<name>\S+(?: \S+)*?) {2,}(?P<soft>\S+) +(?P<hard>\S+)", re.MULTILINE)
_DENIED = re.compile(r"avc:\s+denied\s")


def limits_command(user: str) -> list[str]:
    """Read the limits of a session of this user, ``root`` for an empty name.

    runuser opens it through PAM, so pam_limits sets what limits.d says, as it does for an ssh session. What limits.d
    leaves alone comes from whatever starts runuser: with systemd a service, and else the process that asks.
    """
    session = ["runuser", "-u", user or "root", "--", "cat", LIMITS_OF_THIS_PROCESS]
    return [*AS_A_SERVICE, *session] if os.path.isdir(service.SYSTEMD_DIR) else session


def parse_limits(text: str) -> dict[str, int]:
    """The soft limits of ``LIMITS``; -1 is unlimited, one that is not there is left out."""
    soft = {match.group("name"): match.group("soft") for match in LIMIT_LINE.finditer(text)}
    return {
        key: UNLIMITED if soft[name] == "unlimited" else int(soft[name])
        for key, name in LIMITS.items()
        if name in soft and (soft[name] == "unlimited" or soft[name].isdigit())
    }


def written_limits(text: str) -> dict[str, int]:
    """The limits in the file of role kernel_tuning, as ``parse_limits`` gives those in force."""
    found = {}
    for match in _OF_EVERYBODY.finditer(text):
        item, value = match["item"], match["value"]
        if item in LIMITS:
            # limits.conf counts locked memory in KiB, the kernel in bytes.
            unit = 1024 if item == "memlock" else 1
            found[item] = UNLIMITED if value == "unlimited" else int(value) * unit
    return found


def parse_ports(text: str) -> list[list[int]]:
    """``ip_local_reserved_ports``, as ``29400-29409,50000``, to intervals, both ends included."""
    found = []
    for part in filter(None, text.strip().split(",")):
        first, _dash, last = part.partition("-")
        found.append([int(first), int(last or first)])
    return found


def free(path: str) -> dict[str, object]:
    """Bytes that are free at a path, or at the nearest folder above that exists; 0 when no further file fits."""
    place = path
    while not os.path.exists(place):
        place = os.path.dirname(place)
    have = os.statvfs(place)
    # Some file systems have no number of files at all: both are 0 then.
    full = have.f_files > 0 and have.f_favail == 0
    return {"path": path, "free_bytes": 0 if full else have.f_bavail * have.f_frsize}


def denials(text: str) -> int:
    """How many accesses SELinux refused, out of audit records; what it only would have refused does not count."""
    return len([line for line in text.splitlines() if _DENIED.search(line) and "permissive=1" not in line])
