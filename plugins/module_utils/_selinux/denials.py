# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SELinux denied: from lines of the audit log and the journal to sentences with a fix. Pure.

A line is that of ausearch (`type=AVC msg=audit(TIME:SERIAL): avc:  denied  { PERMISSIONS } for  ...`), of the kernel
(`audit: type=1400 audit(TIME:SERIAL): avc: ...`) or, without its time, the message of the journal.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_STAMP = re.compile(r"audit\((\d+)\.(\d+):(\d+)\)")
_DENIAL = re.compile(r"avc:\s+denied\s+\{ ([^}]*) \} for\s+(.*)", re.DOTALL)
_FIELD = re.compile(r'(\w+)=("[^"]*"|\S+)')
_HEX = re.compile(r"(?:[0-9A-F]{2})+")
_NUMBERED = re.compile(r"^(pipe|socket):\[\d+\]$")
#: Fields that the kernel writes in hexadecimal when they hold a blank, a quote or a control character.
_ENCODED = ("comm", "exe", "path", "name")
_PORT_CLASSES = {"tcp_socket": "tcp", "udp_socket": "udp", "sctp_socket": "sctp", "dccp_socket": "dccp"}
#: The types of a file that nobody labelled: the policy does not know the place, or it was written without SELinux.
_NO_LABEL = ("unlabeled_t", "file_t")
_UNKNOWN_PLACE = (
    "default_t",
    "root_t",
    "mnt_t",
    "var_t",
    "tmp_t",
    "user_tmp_t",
    "user_home_t",
    "admin_home_t",
    "usr_t",
)
_REMOTE = ("nfs_t", "cifs_t", "fusefs_t")
_FILES = ("file", "dir", "lnk_file")
#: The domains of processes in containers that keep their label.  The programs that make containers have others.
_CONTAINERS = ("container_t", "container_init_t", "svirt_lxc_net_t")
#: Booleans of EL's package container-selinux (its container.te): a label for containers cannot be given to these files.
_OF_CONTAINERS = {"nfs_t": "virt_use_nfs", "cifs_t": "virt_use_samba"}


@dataclass(frozen=True)
class Denial:
    """One denied access. ``when`` is in seconds since 1970, ``serial`` the number of the event in its boot.

    ``port`` is 0 and ``path`` empty where there is none; a path without a / in front is only a name in its folder.
    """

    when: float
    serial: int
    comm: str
    source: str
    target: str
    tclass: str
    permissions: tuple[str, ...]
    path: str
    port: int
    permissive: bool
    raw: str

    @property
    def kind(self) -> tuple[object, ...]:
        """What the same denial has in common each time."""
        return self.comm, self.source, self.target, self.tclass, self.permissions, self.path, self.port, self.permissive


@dataclass(frozen=True)
class Finding:
    """The same denial, once or many times: ``fix`` is empty when nobody knows its cause."""

    denial: Denial
    times: int
    first: float
    last: float
    fix: str

    def sentence(self) -> str:
        """The first line that a person reads."""
        denial = self.denial
        verb = "would deny (it is permissive here)" if denial.permissive else "denied"
        times = "" if self.times == 1 else f" ({self.times} times)"
        what = f"{' '.join(denial.permissions)} on {_object(denial)}"
        text = f"SELinux {verb} {denial.comm} {what} since {_clock(self.first)}{times}"
        return f"{text}; fix: {self.fix}" if self.fix else text

    def as_dict(self) -> dict[str, Any]:
        """The form in which the module returns it."""
        denial = self.denial
        return {
            "when": _stamp(self.first),
            "last": _stamp(self.last),
            "times": self.times,
            "comm": denial.comm,
            "scontext": denial.source,
            "tcontext": denial.target,
            "tclass": denial.tclass,
            "permissions": list(denial.permissions),
            "path": denial.path,
            "port": denial.port,
            "permissive": denial.permissive,
            "sentence": self.sentence(),
            "fix": self.fix,
            "raw": denial.raw,
        }


def type_of(context: str) -> str:
    """The type in `user:role:type:level`."""
    fields = context.split(":")
    return fields[2] if len(fields) > 2 else context


def parse(line: str, when: float = 0.0, serial: int = 0) -> Denial | None:
    """The denial in a line; ``when`` and ``serial`` count where the line itself has no stamp."""
    found = _DENIAL.search(line)
    if not found:
        return None
    stamp = _STAMP.search(line)
    if stamp:
        when, serial = float(f"{stamp.group(1)}.{stamp.group(2)}"), int(stamp.group(3))
    fields = {name: _value(name, text) for name, text in _FIELD.findall(found.group(2))}
    port = fields.get("dest") or fields.get("src") or ""
    return Denial(
        when=when,
        serial=serial,
        comm=fields.get("comm") or fields.get("exe", "").rpartition("/")[2] or "a program",
        source=fields.get("scontext", ""),
        target=fields.get("tcontext", ""),
        tclass=fields.get("tclass", "").rstrip("'"),
        permissions=tuple(found.group(1).split()),
        path=fields.get("path") or fields.get("name", ""),
        port=int(port) if port.isdigit() and fields.get("tclass") in _PORT_CLASSES else 0,
        permissive=fields.get("permissive") == "1",
        raw=" ".join(found.group(0).split()),
    )


def _value(name: str, text: str) -> str:
    if text.startswith('"'):
        return _NUMBERED.sub(r"\1", text[1:-1])
    if name in _ENCODED and _HEX.fullmatch(text):
        return bytes.fromhex(text).decode("utf-8", "backslashreplace")
    # A pipe has another number each time.
    return _NUMBERED.sub(r"\1", text)


def unique(denials: Iterable[Denial]) -> list[Denial]:
    """Each denial once, in order of time: the audit log and the journal tell of the same events."""
    found = {(denial.serial, round(denial.when), denial.kind): denial for denial in denials}
    return sorted(found.values(), key=lambda denial: (denial.when, denial.serial))


def findings(denials: Sequence[Denial], torch_prefix: str) -> list[Finding]:
    """The same denials together, the explained ones first, then by time."""
    grouped: dict[tuple[object, ...], list[Denial]] = {}
    for denial in denials:
        grouped.setdefault(denial.kind, []).append(denial)
    found = [
        Finding(group[0], len(group), group[0].when, group[-1].when, fix_of(group[0], torch_prefix))
        for group in grouped.values()
    ]
    return sorted(found, key=lambda finding: (not finding.fix, finding.first))


def fix_of(denial: Denial, torch_prefix: str) -> str:
    """What to do, in variables of this collection; empty when the cause is none of those that are known."""
    source, target = type_of(denial.source), type_of(denial.target)
    files = denial.tclass in _FILES
    login = source in ("sshd_t", "sshd_session_t", "sshd_auth_t")
    if login and "name_bind" in denial.permissions:
        return (
            f"list port {denial.port} in gpu_cluster_ports.ssh and run site.yml with --tags selinux_policy before sshd "
            "is restarted"
        )
    if files and target in _NO_LABEL:
        return "files were written while SELinux was off: touch /.autorelabel and reboot"
    if files and target in _REMOTE and login:
        return "selinux_policy_booleans: {use_nfs_home_dirs: true}"
    if files and login and target in _UNKNOWN_PLACE:
        return (
            "keys or a home are not labelled as such: run site.yml with --tags selinux_policy for a user in "
            "selinux_policy_users, or `restorecon -RF` on the home; for a home that the policy does not know, "
            "selinux_policy_fcontexts with like: /home"
        )
    if source.startswith("container") and denial.tclass == "chr_file":
        return "selinux_policy_booleans: {container_use_devices: true}"
    if files and source in _CONTAINERS:
        label = (
            f"selinux_policy_booleans: {{{_OF_CONTAINERS[target]}: true}}"
            if target in _OF_CONTAINERS
            else "give its volume the option :z"
        )
        return f"start the container with --security-opt label=disable, as gpu-cluster-run --image does, or {label}"
    if files and torch_prefix and denial.path.startswith(torch_prefix):
        return (
            f"`restorecon -RF {torch_prefix}*`; where the prefix is outside of /opt and /usr, run site.yml with --tags "
            "selinux_policy before"
        )
    return ""


def _object(denial: Denial) -> str:
    if denial.port:
        return f"{_PORT_CLASSES[denial.tclass]} port {denial.port}"
    what = f"{denial.tclass} {denial.path}" if denial.path else denial.tclass
    return f"{what} ({type_of(denial.target)})"


def _clock(when: float) -> str:
    return time.strftime("%H:%M:%S on %Y-%m-%d", time.localtime(when))


def _stamp(when: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(when))
