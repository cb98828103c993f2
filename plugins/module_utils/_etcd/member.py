# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One member of etcd on its node: look at it, start it in the one way that is safe, and wait for it.

A member with data is started as it is. A member without data founds the cluster only together with all the others, or
joins the one that answers: its old entry is removed and a new one is added. A cluster that exists is never founded
again, because jobs would then see two of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._etcd.client import Client, ClientError

POLL_SECONDS = 1.0
#: etcd refuses to change its members until all have been connected for 5 seconds.
CHANGE_SECONDS = 20.0
NOTHING, START, RESTART, FOUND, JOIN = "", "start", "restart", "found", "join"

ERR_NO_MAJORITY = (
    "this host has no data of etcd, other members have, and fewer than half of them answer (%s): it can join only a "
    "cluster that works. Start the others: systemctl restart gpu-cluster-etcd. If their data is lost too, no running "
    "job can be rescued: stop gpu-cluster-etcd and remove %s on all members of etcd, and run the role again"
)
ERR_ALONE = (
    "this host has no data of etcd, and %s did not run the role in this run and did not answer: nobody knows whether a "
    "cluster exists. Run the role for all members of etcd, without --limit"
)
ERR_FOREIGN = (
    "etcd has a member %s at %s that etcd_members does not list, and it answers. Remove it first, on a member: "
    "ETCDCTL_API=3 etcdctl --endpoints https://%s:%d --cacert %s --cert %s --key %s member remove %s"
)
ERR_RESTART = (
    "the settings or certificates of this member changed, and it is not restarted, because %s did not answer: fewer "
    "than half would be left. Start these first: systemctl restart gpu-cluster-etcd"
)
ERR_NOT_READY = (
    "%s knows no leader after %d seconds. journalctl -u %s on it shows why; the ports %d and %d must be open between "
    "the members (--tags cluster_firewall opens them)"
)
ERR_CHANGE = "etcd did not take this host as a member: %s"
ERR_COMMAND = "'%s' failed: %s"


class MemberError(Exception):
    """The member cannot be started safely."""


@dataclass(frozen=True)
class Settings:
    """What does not change during a run.  members: address by name."""

    name: str
    members: Mapping[str, str]
    client_port: int
    peer_port: int
    data_dir: str
    unit: str
    first_start: str
    tls: Mapping[str, str]
    seconds: int

    def majority(self) -> int:
        return len(self.members) // 2 + 1

    def peer_url(self, name: str) -> str:
        address = self.members[name]
        return f"https://{f'[{address}]' if ':' in address else address}:{self.peer_port}"


@dataclass(frozen=True)
class Seen:
    """has_data: whether the member has been part of a cluster.  answering: members that know a leader."""

    has_data: bool
    is_active: bool
    answering: tuple[str, ...]


#: Runs a command; returns its exit status and output.
Run = Callable[[Sequence[str]], "tuple[int, str]"]


class Member:
    """The member of this node."""

    def __init__(self, settings: Settings, client: Client, run: Run, sleep: Callable[[float], None] = time.sleep):
        self._settings = settings
        self._client = client
        self._run = run
        self._sleep = sleep

    def look(self) -> Seen:
        settings = self._settings
        answering = tuple(name for name, address in settings.members.items() if self._client.has_leader(address))
        active = self._run(["systemctl", "is-active", settings.unit])[1].strip() in ("active", "activating")
        return Seen(os.path.isdir(os.path.join(settings.data_dir, "member")), active, answering)

    def plan(self, seen: Seen, changed: bool, with_data: Sequence[str], looked: Sequence[str]) -> str:
        """What to do.  with_data, looked: the members with data, and all that ran the role in this run."""
        settings = self._settings
        others = [name for name in settings.members if name != settings.name]
        if seen.has_data:
            if not seen.is_active:
                return START
            if not changed:
                return NOTHING
            silent = [name for name in others if name not in seen.answering]
            if seen.answering and len(others) - len(silent) < settings.majority():
                # With three members both others must be there; without a leader nothing can be lost.
                raise MemberError(ERR_RESTART % ", ".join(silent))
            return RESTART
        answering = [name for name in seen.answering if name != settings.name]
        if answering:
            return JOIN
        unknown = [name for name in others if name not in looked]
        if unknown and not with_data:
            raise MemberError(ERR_ALONE % ", ".join(unknown))
        if with_data:
            raise MemberError(ERR_NO_MAJORITY % ("with data: " + ", ".join(with_data), settings.data_dir))
        return FOUND

    def carry_out(self, step: str, seen: Seen) -> None:
        settings = self._settings
        if step == NOTHING:
            return
        self._command("systemctl", "daemon-reload")
        if step == FOUND:
            self._write_first_start("new", {name: settings.peer_url(name) for name in settings.members})
        elif step == JOIN:
            self._join(next(name for name in seen.answering if name != settings.name))
        self._command("systemctl", "enable", "--quiet", settings.unit)
        verb = "restart" if step in (RESTART, JOIN, FOUND) else "start"
        # It is ready when a majority is: the first ones of a new cluster cannot wait for themselves.
        self._command("systemctl", "--no-block", verb, settings.unit)
        others = [name for name in seen.answering if name != settings.name]
        if step != FOUND and len(others) + 1 >= settings.majority():
            self.wait()

    def wait(self) -> None:
        """Until the member knows a leader."""
        settings = self._settings
        deadline = time.monotonic() + settings.seconds
        while not self._client.has_leader(settings.members[settings.name]):
            if time.monotonic() > deadline:
                ports = (settings.client_port, settings.peer_port)
                raise MemberError(ERR_NOT_READY % (settings.name, settings.seconds, settings.unit, *ports))
            self._sleep(POLL_SECONDS)

    def _join(self, through: str) -> None:
        """Remove the entries that this host takes the place of, and add its own."""
        settings = self._settings
        address = settings.members[through]
        own = settings.peer_url(settings.name)
        urls = {settings.peer_url(name) for name in settings.members}
        try:
            for one in self._client.members(address):
                if own in one["peerURLs"]:
                    self._change(self._client.remove, address, str(one["ID"]))
                elif not urls & set(one["peerURLs"]):
                    self._refuse_if_alive(one, address)
                    self._change(self._client.remove, address, str(one["ID"]))
            members = self._change(self._client.add, address, own)
        except ClientError as error:
            raise MemberError(ERR_CHANGE % error) from None
        names = {settings.peer_url(name): name for name in settings.members}
        self._write_first_start("existing", {names[url]: url for one in members for url in one["peerURLs"]})

    def _refuse_if_alive(self, one: Mapping[str, Any], address: str) -> None:
        for url in one.get("clientURLs") or []:
            host = str(url).partition("//")[2].rpartition(":")[0].strip("[]")
            if self._client.has_leader(host):
                tls = self._settings.tls
                number = f"{int(one['ID']):x}"
                place = (address, self._settings.client_port, tls["ca"], tls["cert"], tls["key"], number)
                raise MemberError(ERR_FOREIGN % (one.get("name", number), url, *place))

    def _change(self, change: Callable[..., Any], *arguments: str) -> Any:
        """Change the members, again and again for some seconds: etcd refuses while a member has just connected."""
        deadline = time.monotonic() + CHANGE_SECONDS
        while True:
            try:
                return change(*arguments)
            except ClientError:
                if time.monotonic() > deadline:
                    raise
                self._sleep(POLL_SECONDS)

    def _write_first_start(self, state: str, members: Mapping[str, str]) -> None:
        """Settings that count only while there is no data. They are gone after a reboot."""
        path = self._settings.first_start
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as stream:
            stream.write(f"ETCD_INITIAL_CLUSTER_STATE={state}\nETCD_INITIAL_CLUSTER={initial_cluster(members)}\n")

    def _command(self, *argv: str) -> None:
        status, output = self._run(argv)
        if status:
            raise MemberError(ERR_COMMAND % (" ".join(argv), output.strip()[-400:]))


def initial_cluster(members: Mapping[str, str]) -> str:
    """Names and peer URLs in the form of etcd's --initial-cluster."""
    return ",".join(f"{name}={url}" for name, url in members.items())
