# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with SELinux: what differs from what is wanted, what speaks against a change, and the change itself."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import ssh_connection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import ssh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import (
    customise,
    mode,
    records,
    report,
    spec,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.host import ROOT_HOME, Host
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.selinuxfs import (
    booleans,
    read_mode,
    unknown_types,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.switch import UNDO, armed, switch

#: What a login needs: where one of these has a wrong label, enforcing would lock everybody out.
VITAL = (
    "/bin/bash",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/ssh/sshd_config",
    "/etc/ssh/ssh_host_*_key",
    f"{ROOT_HOME}/.ssh/authorized_keys",
    "/usr/lib/systemd/systemd",
    "/usr/sbin/sshd",
)


class Comparison(NamedTuple):
    """What there is to do on a host, and what that follows from. ``missing`` are the users that do not exist."""

    homes: list[spec.Home]
    missing: list[str]
    ledger_text: str
    ledger: tuple[records.Entry, ...]
    plan: records.Plan


def settle(host: Host, facts: mode.Facts) -> dict[str, Any]:
    """Bring a host with SELinux to what is wanted: labels first, so that enforcing finds them."""
    params = host.params
    if armed() and not params["confirm"]:
        host.fail(
            "Refused, nothing was changed: another run lets this host enforce right now and has not confirmed it yet. "
            f"Wait for the end of {UNDO}.timer, and repeat."
        )
    found = compare(host, facts.policy)
    refuse_to_enforce(host, facts)
    relabelled = label(host, found, facts.policy)
    config = mode.config_with(facts.config, params["state"])
    waits = switch(host, facts, config)
    notes = spec.home_notes(found.homes, found.missing, params["booleans"])
    if params["state"] == mode.ENFORCING and mode.boot_note(facts):
        notes.append(mode.boot_note(facts))
    changes = found.plan.changes
    return {
        "changed": bool(changes or relabelled) or config != facts.config or facts.running != params["state"],
        "mode": facts.running if host.module.check_mode else read_mode(),
        "configured": facts.configured if waits else params["state"],
        "reboot_required": False,
        "confirm_needed": waits,
        "customised": report.phrases(changes),
        "relabelled": relabelled,
        "notes": notes,
        "diff": report.diff(facts, state=params["state"], config=config, changes=changes, relabelled=relabelled),
    }


def compare(host: Host, policy: str) -> Comparison:
    """What has to change; ends the module where that cannot be."""
    params = host.params
    homes, missing = host.homes()
    ledger_text, ledger = customise.read_ledger(host)
    wanted = spec.records(params, homes, {entry.record.identity for entry in ledger})
    known = booleans()
    types = unknown_types(sorted({entry["type"] for entry in params["fcontexts"] if entry["type"]}))
    wrong = spec.boolean_problems(params["booleans"], known, policy)
    wrong += spec.type_problems(params["fcontexts"], types, policy)
    needed = bool(ledger) or any(record.key != records.SSH_PORT for record in wanted)
    local = host.local() if needed else {}
    plan = records.make_plan(wanted, local, host.inherited(wanted, local, policy), ledger)
    wrong += [*plan.problems, *port_problems(host, plan.changes)]
    if wrong:
        host.refuse(wrong)
    return Comparison(homes, missing, ledger_text, ledger, plan)


def port_problems(host: Host, changes: Sequence[records.Change]) -> list[Problem]:
    """Ports that sshd uses and would lose with these changes."""
    dropped = spec.dropped_ports(changes)
    if not dropped:
        return []
    used = ssh.used(host.run(*ssh.LISTENERS)[1], host.run(*ssh.SOCKETS)[1], ssh_connection.current().port)
    return spec.used_port_problems(dropped, {*used.listened, used.connection}, host.params["ssh_ports"])


def refuse_to_enforce(host: Host, facts: mode.Facts) -> None:
    """End the module where a permissive host must not go over to enforcing."""
    goes_over = host.params["state"] == mode.ENFORCING and facts.running == mode.PERMISSIVE
    if goes_over and not host.params["confirm"]:
        against = mode.obstacles(facts, host.restorecon([*VITAL], deep=False, dry=True))
        if against:
            host.fail(f"Refused, nothing was changed: this host must not enforce yet. {'. '.join(against)}.")


def label(host: Host, found: Comparison, policy: str) -> list[str]:
    """Customise the policy and label what it decides, and the keys of the users; the paths with other labels."""
    plan = found.plan
    keys = [glob.escape(f"{home.path}/.ssh") for home in found.homes if not home.remote]
    whole = [*plan.roots(deep=True), *keys]
    if host.module.check_mode:
        return host.restorecon(whole, deep=True, dry=True)
    customise.apply_plan(host, plan, found.ledger, found.ledger_text, policy)
    alone = host.restorecon(plan.roots(deep=False), deep=False, dry=False)
    return alone + host.restorecon(whole, deep=True, dry=False)
