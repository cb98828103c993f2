# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether limits are in force: what systemd, logind, a service and an ssh session have."""

from __future__ import annotations

import time
from collections.abc import Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.limits_node import Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.limits_overrides import Found

WHY_SERVICE = "no file of systemd explains it; look for limits of the machine itself, as a container has them"

ERR_DIFFERS = "%s = %s: %s has %s; %s"
ERR_MANAGER = "systemd did not take %s=%s, it has %s"
ERR_LOGIND = "logind did not take RemoveIPC=no, it has %s"

#: How often logind is asked after it was told to read its files again, and how long is waited in between, in seconds.
LOGIND_TRIES = 20
LOGIND_PAUSE_S = 0.1


class Wanted:
    """What shall be in force, and how far the node is from it.

    What files of others decide is no failure: it is here only when the site asked to have that reported.
    """

    def __init__(self, node: Node, wanted: list[limits.Limit], found: Found, *, keep_ipc: bool, user: str) -> None:
        self.node = node
        self.user = user
        self.limits = wanted
        self.decided_for_logins = {override.variable: override.sentence() for override in found.logins}
        self.decided_for_services = {override.variable: override.sentence() for override in found.services}
        self.properties = limits.manager_properties(
            [limit for limit in wanted if limit.variable not in self.decided_for_services]
        )
        self.keep_ipc = keep_ipc and not found.shared_memory
        self.session: dict[str, tuple[str, str]] = {}
        self.service: dict[str, tuple[str, str]] = {}
        #: What was read back differently, and why, where that is no failure.
        self.reported: list[str] = []

    def manager_failures(self) -> list[str]:
        """What systemd has not taken."""
        has = self.node.manager(self.properties)
        return [
            ERR_MANAGER % (name, value, has.get(name, "nothing"))
            for name, value in self.properties.items()
            if has.get(name) != value
        ]

    def logind_failures(self) -> list[str]:
        """What logind has not taken."""
        has = self.node.keeps_ipc() if self.keep_ipc else "no"
        return [] if has == "no" else [ERR_LOGIND % has]

    def failures(self) -> list[str]:
        """Read everything back."""
        found = self.manager_failures()
        for _attempt in range(LOGIND_TRIES):
            # The signal returns before logind has read its files.
            if not self.logind_failures():
                break
            time.sleep(LOGIND_PAUSE_S)
        found += self.logind_failures()
        if self.limits:
            self.service = self.node.service(self.user)
            who = f"a service of {self.user or 'root'}"
            found += self._differences(self.service, who, self.decided_for_services, lambda: WHY_SERVICE)
        if self.limits and self.user:
            who = f"an ssh session of {self.user}"
            try:
                self.session = self.node.session(self.user)
                found += self._differences(self.session, who, self.decided_for_logins, self.node.why)
            except OSError as error:
                found.append(str(error))
        return found

    def _differences(
        self, has: dict[str, tuple[str, str]], who: str, decided: dict[str, str], why: Callable[[], str]
    ) -> list[str]:
        failures: list[str] = []
        for limit, value in limits.differences(self.limits, has):
            reason = decided.get(limit.variable)
            into = failures if reason is None else self.reported
            into.append(ERR_DIFFERS % (limit.variable, limit.text(), who, value, reason or why()))
        return failures
