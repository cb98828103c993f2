# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job of the user has and a service has not: the limits of a session.

The ranks of a check get them, so that what a job would lack is lacking in the check.
"""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_resources

#: What limits.conf(5) can set of those in /proc/<pid>/limits; the names are those of setrlimit(2).
LIMITS = {
    "Max core file size": "CORE",
    "Max locked memory": "MEMLOCK",
    "Max msgqueue size": "MSGQUEUE",
    "Max open files": "NOFILE",
    "Max pending signals": "SIGPENDING",
    "Max processes": "NPROC",
    "Max stack size": "STACK",
}


def limits(run: Runner, user: str) -> dict[str, str]:
    """Name to ``soft:hard``, where ``infinity`` is no limit, as systemd.exec(5) has it.

    Empty for root, and where PAM opens no session for the user: there the ranks have those of a service.
    """
    if not user:
        return {}
    code, out, _err = run(facts_resources.limits_command(user))
    return parsed(out) if code == 0 else {}


def parsed(text: str) -> dict[str, str]:
    """``LIMITS`` out of /proc/<pid>/limits."""
    found = {}
    for match in facts_resources.LIMIT_LINE.finditer(text):
        if match["name"] in LIMITS:
            both = f"{match['soft']}:{match['hard']}"
            found[LIMITS[match["name"]]] = both.replace("unlimited", "infinity")
    return found
