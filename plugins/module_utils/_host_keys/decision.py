# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which offered keys are accepted, and what is said about the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys import known_hosts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys.keys import HostKey

FINGERPRINT = "gpu_cluster_host_key_fingerprint"
KNOWN_HOSTS = "gpu_cluster_known_hosts"
CONSENT = "rebuild_accept_host_keys"

BY_FINGERPRINT = f"its fingerprint is {FINGERPRINT}"
BY_PREPARED = "it is the key that was prepared for the host"
BY_CONSENT = f"accepted by {CONSENT}"

THREE_WAYS = (
    "Nobody has vouched for a key above. Three ways to accept one:\n"
    "  1. Compare the fingerprint on the node's console (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), and write\n"
    f"     it into the inventory as {FINGERPRINT} of that host, or give it with -e.\n"
    "  2. Install the node with a host key that was prepared here; docs/rebuild.md has the snippet for kickstart.\n"
    f"  3. On a network that you trust, repeat the command with -e {CONSENT}=true."
)
ERR_UNREACHABLE = "no host key could be read: %s. Fix: see that ssh reaches the node, or leave it out with --limit"
ERR_REVOKED = "offers %s, which %s marks as @revoked. Fix: give the node a new host key; no consent accepts this one"
ERR_FINGERPRINT = (
    "offers %s, but %s is %s. That is another machine or another installation. Fix: find out which one answers there, "
    "then correct or remove the variable; no consent accepts this key"
)
ERR_PREPARED = (
    "offers %s, but the key that was prepared for it, %s, is %s. Fix: install the node with that key, or remove the "
    "file; no consent accepts this one"
)
ERR_NOT_READ = (
    "%s is where accepted keys go, but ssh looks into %s on its way to this host. Fix: set ansible_ssh_common_args to "
    "-o UserKnownHostsFile=..., as the sample inventory does, or %s to a file that ssh reads"
)
ERR_SHARED = (
    "offers the same key as %s. Fix: every node needs a host key of its own; remove the copies and restart sshd"
)


@dataclass(frozen=True)
class Look:
    """One host as the controller found it. ``prepared`` is the key in ``prepared_file``, where there is one."""

    host: str
    where: str
    name: str
    known: bool = False
    changed: bool = False
    keys: tuple[HostKey, ...] = ()
    problem: str = ""
    fingerprint: str = ""
    prepared: HostKey | None = None
    prepared_file: str = ""
    files: str = ""
    read: bool = True

    @classmethod
    def of(cls, host: str, data: Mapping[str, Any]) -> Look:
        """Out of what the module returned."""
        prepared = data.get("prepared")
        return cls(
            host=host,
            where=str(data.get("where", "")),
            name=str(data.get("name", "")),
            known=bool(data.get("known")),
            changed=bool(data.get("changed_key")),
            keys=tuple(HostKey(key["kind"], key["blob"]) for key in data.get("keys", [])),
            problem=sanitize.sentence(data.get("problem", data.get("msg", "no answer"))),
            fingerprint=str(data.get("fingerprint", "")),
            prepared=HostKey(prepared["kind"], prepared["blob"]) if prepared else None,
            prepared_file=str(data.get("prepared_file", "")),
            files=str(data.get("files", "")),
            read=bool(data.get("read", True)),
        )


@dataclass(frozen=True)
class Accepted:
    """A key that goes into the file, and why."""

    look: Look
    key: HostKey
    why: str

    def sentence(self) -> str:
        """For the console."""
        what = "new host key" if self.look.changed else "host key"
        return f"{self.look.host} ({self.look.where}): {what} {named(self.key)}: {self.why}"


@dataclass
class Decision:
    """About all hosts together: where one is refused, nothing is written."""

    known: list[str] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unknown: bool = False

    def refusal(self) -> str:
        """Everything that stands in the way, and what to do."""
        head = f"{len(self.refused)} host(s) whose key is not accepted; no key was written."
        return "\n".join([head, *(f"  {line}" for line in self.refused), *([THREE_WAYS] if self.unknown else [])])


def named(key: HostKey) -> str:
    """A key in a sentence."""
    return f"{key.label} {key.fingerprint}"


def decide(looks: Sequence[Look], path: str, text: str, consent: bool) -> Decision:
    """Judge every host. ``path`` and ``text`` are the known_hosts file of the controller."""
    decision = Decision()
    holders: dict[str, list[str]] = {}
    # Those that are known show no key here; the file has it. Nobody asks for it while nobody is new.
    of_the_file = text if any(look.keys for look in looks) else ""
    for look in looks:
        for blob in [key.blob for key in look.keys[:1]] or known_hosts.blobs_of(of_the_file, look.name):
            holders.setdefault(blob, []).append(look.host)
    for look in looks:
        twins = [host for key in look.keys[:1] for host in holders[key.blob] if host != look.host]
        _judge(decision, look, path, text, consent, twins)
    return decision


def _judge(decision: Decision, look: Look, path: str, text: str, consent: bool, twins: Sequence[str]) -> None:
    if look.known:
        decision.known.append(look.host)
        return
    key, why, problem = _choose(look, path, text, consent)
    if not problem and key is not None and not look.read:
        problem = ERR_NOT_READ % (path, look.files or "no file", KNOWN_HOSTS)
    if not problem and twins:
        problem = ERR_SHARED % ", ".join(twins)
    if problem:
        decision.refused.append(f"{look.host} ({look.where}): {problem}.")
    elif key is None:
        decision.unknown = True
        state = "the host key has CHANGED" if look.changed else "the host key is not known yet"
        offered = ", ".join(named(one) for one in look.keys)
        decision.refused.append(f"{look.host} ({look.where}): {state}. It offers {offered}.")
    else:
        decision.accepted.append(Accepted(look, key, why))


def _choose(look: Look, path: str, text: str, consent: bool) -> tuple[HostKey | None, str, str]:
    """The key to accept and why, or a problem; neither when somebody has to decide."""
    if look.problem or not look.keys:
        return None, "", ERR_UNREACHABLE % (look.problem or "no answer")
    offered = ", ".join(named(key) for key in look.keys)
    for key in look.keys:
        if known_hosts.is_revoked(text, key):
            return None, "", ERR_REVOKED % (named(key), path)
    if look.fingerprint:
        for key in look.keys:
            if key.fingerprint == look.fingerprint:
                return key, BY_FINGERPRINT, ""
        return None, "", ERR_FINGERPRINT % (offered, FINGERPRINT, look.fingerprint)
    if look.prepared is not None:
        if look.prepared in look.keys:
            return look.prepared, BY_PREPARED, ""
        return None, "", ERR_PREPARED % (offered, look.prepared_file, named(look.prepared))
    return (look.keys[0], BY_CONSENT, "") if consent else (None, "", "")


def rewrite(text: str, accepted: Sequence[Accepted]) -> str:
    """The file with every accepted key."""
    for one in accepted:
        text = known_hosts.replace(text, [one.look.name, *_aliases(one.look)], one.key)
    return text


def _aliases(look: Look) -> list[str]:
    """The inventory's name of the host, in the form that the file would have it in."""
    if look.name.startswith("["):
        return [f"[{look.host}]:{look.name.rpartition(':')[2]}"]
    return [look.host] if look.host != look.name else []
