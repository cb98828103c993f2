# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which task waits for which hosts, and since when.  Pure."""

from __future__ import annotations

import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output import texts


class Waiting:
    """The hosts that have started a task and not ended it, with the seconds of a clock at which they began."""

    def __init__(self) -> None:
        self._task = ""
        self._where = ""
        self._done: set[str] = set()
        self._since: dict[tuple[str, str], float] = {}
        self._retries: dict[str, str] = {}
        self._tasks: dict[str, str] = {}

    def task(self, identity: str, where: str) -> None:
        """A task begins; with another strategy than linear the last one may still run somewhere."""
        self._task = identity
        self._tasks = {identity: where, **{one: self._tasks[one] for one in {key[0] for key in self._since}}}
        self._done = set()

    def began(self, identity: str, host: str, now: float) -> None:
        self._since[identity, host] = now

    def again(self, host: str, text: str) -> None:
        """A task of the host is tried again."""
        self._retries[host] = text

    def ended(self, identity: str, host: str) -> None:
        self._retries.pop(host, None)
        if self._since.pop((identity, host), None) is not None and identity == self._task:
            self._done.add(host)

    def forget(self) -> None:
        """Of a play that is over."""
        self._since.clear()
        self._retries.clear()

    @property
    def hosts(self) -> set[str]:
        return {host for _identity, host in self._since}

    @property
    def is_idle(self) -> bool:
        return not self._since

    def seconds(self, now: float) -> float:
        """How long the one that began first has been waited for."""
        return now - min(self._since.values(), default=now)

    def between(self) -> str:
        """While the controller prepares what comes next, which takes it long with many hosts; empty before any task."""
        where = self._tasks.get(self._task, "")
        return f"{where}: ended, the next task is being prepared" if where else ""

    def text(self, now: float) -> str:
        """Empty when nothing is waited for."""
        if not self._since:
            return ""
        identity = min(self._since, key=lambda one: self._since[one])[0]
        names = [host for one, host in self._since if one == identity]
        seconds = self.seconds(now)
        since = time.strftime("%H:%M:%S", time.localtime(time.time() - seconds))
        done = f", {len(self._done)} done" if self._done else ""
        again = next((f", {self._retries[host]}" for host in names if host in self._retries), "")
        return (
            f"{self._tasks.get(identity, '')}: waiting for {texts.hosts(names)} since {since} "
            f"({texts.duration(seconds)}{done}{again})"
        )
