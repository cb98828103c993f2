# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins of the user of jobs from each member to the next one: those that failed, and what nodes have against them.

The cause stands on the node that refuses; what ssh printed on the other one is evidence.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import LINK, Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.lookup import Match
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import SELF
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ssh_refusals import (
    Reason,
    from_log,
    of_startups,
    reasons,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    CONCLUDED,
    READ,
    View,
    again,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import ssh_login
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.files import ROOT

ID = "GC-SSH-006"
UNSURE = 0.6
MOST_LINES = 5
#: The exit status of a login that was ended because it took too long.
NO_ANSWER = -1
FIX_UNKNOWN = "read the log of sshd there: journalctl -u sshd -u ssh -n 30"
#: Who gets no answer at all has it from the network, about which other findings speak.
UNANSWERED = ("Connection timed out", "No route to host", "Network is unreachable", "Operation timed out")


def findings(view: View, user: str) -> list[Finding]:
    """One finding for all nodes that refuse for the same.  Raises ValueError for an answer of another form.

    user: of jobs, empty for root.
    """
    said = {}
    for host, looked in view.static.items():
        # A report of an earlier version has none.
        answer = looked.get("ssh_login", {"found": None, "tried": None})
        if not ssh_login.ANSWER(answer):
            raise ValueError(f"what {host} says of logins over ssh has another form: {answer!r}")
        # The name comes into commands.
        other = answer["found"] is not None and answer["found"]["user"] != (user or ROOT)
        said[host] = {**answer, "found": None} if other else answer
    failed = {
        str(answer["tried"]["to"]): (host, answer["tried"])
        for host, answer in said.items()
        if answer["tried"] and answer["tried"]["code"] != 0 and answer["tried"]["to"] in view.members
    }
    got_in = {answer["tried"]["to"] for answer in said.values() if answer["tried"] and answer["tried"]["code"] == 0}
    found: list[Finding] = []
    refused: list[tuple[Reason, str]] = []
    for host, answer in said.items():
        # A cluster whose jobs use no ssh has no key for it, and no login was tried.
        why = (
            _reasons(view, host, answer["found"], host in got_in) if any(one["tried"] for one in said.values()) else []
        )
        refused += [(one, host) for one in why]
    for reason, hosts in together(refused).items():
        found.append(_refused(reason, hosts, failed))
    told = {host for _reason, host in refused}
    for target, (source, tried) in failed.items():
        if target not in told:
            found += _failed(source, target, tried, (said.get(target) or {}).get("found"))
    return found


def _reasons(view: View, host: str, found: Mapping[str, Any] | None, got_in: bool) -> list[Reason]:
    """Of several only the first: sshd comes no further."""
    if found is None:
        return []
    sources = [member.fabric_address for name, member in view.members.items() if name != host]
    return reasons(found, sources, view.members[host].fabric_address, got_in)[:1]


def _refused(reason: Reason, hosts: Sequence[str], failed: Mapping[str, tuple[str, Mapping[str, Any]]]) -> Finding:
    """An error where a login was refused; else it is what the next one will meet."""
    met = {host: failed[host] for host in hosts if host in failed}
    does = "do" if len(hosts) > 1 else "does"
    return Finding(
        ID,
        tuple(hosts),
        f"{listed(hosts)} {does} not let the user of jobs in over ssh: {reason.why}",
        reason.fix,
        tuple(line for target, (source, tried) in met.items() for line in _seen(source, target, tried)),
        confidence=READ,
        command=fixes.run(hosts, reason.command),
        # Each is asked by the one before it.
        reproduce=again(list(dict.fromkeys((*hosts, *(source for source, _tried in met.values()))))),
        severity=ERROR if met else WARNING,
    )


def _seen(source: str, target: str, tried: Mapping[str, Any]) -> list[str]:
    lines = [sanitize.one_line(line) for line in str(tried["text"]).splitlines() if line.strip()]
    start = f"ssh from {source} to {target} ended with {tried['code']}"
    return [f"{start}: {line}" for line in lines[-MOST_LINES:]] or [start]


def _failed(source: str, target: str, tried: Mapping[str, Any], found: Mapping[str, Any] | None) -> list[Finding]:
    """A login that failed for nothing that the facts show: the log of the node, or else what ssh printed."""
    text = sanitize.one_line(tried["text"])
    # A node that is only slow refuses nobody.
    if tried["code"] == NO_ANSWER or any(words in text for words in UNANSWERED):
        return []
    match = _match(str(tried["text"]))
    own = match is not None and match.text.about == SELF
    logged = (of_startups(found, text) or from_log(found)) if found and not own else None
    if logged:
        reason, sure = logged, CONCLUDED
    elif match:
        reason, sure = Reason(match.text.says, match.fix), CONCLUDED if own else UNSURE
    else:
        reason, sure = Reason(text[:200] or f"ssh ended with {tried['code']}", FIX_UNKNOWN), UNSURE
    hosts = (source,) if own else (target,)
    evidence = [*_seen(source, target, tried), *(f"log of {target}: {line}" for line in (found or {}).get("log", []))]
    return [
        Finding(
            ID,
            hosts,
            f"ssh from {source} to {target} as the user of jobs fails: {reason.why}",
            reason.fix,
            tuple(map(sanitize.one_line, evidence)),
            Subject(LINK, (source, target)),
            confidence=sure,
            reproduce=again([source, target]),
            severity=ERROR,
        )
    ]


def _match(text: str) -> Match | None:
    """The line of ssh that says most: one that is about this node, then others; what only follows last."""
    matches = [one for one in map(lookup.match, text.splitlines()) if one]
    return min(matches, key=lambda one: (one.text.weak, one.text.about != SELF), default=None)
