# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the firewall of a node with what is wanted, refuse what cannot be, and start the change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import ssh_connection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import ChangeError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import pending, rules
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.change import FIREWALL
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.node import (
    NOT_CHANGED,
    Node,
    Unit,
    current_files,
    mode_of,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.plan import (
    CONF,
    Plan,
    diffs,
    in_words,
    make_plan,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import look, strangers

ERR_NOT_RUNNING = (
    "firewalld does not run on this node (%s). Starting it closes every port that its zones do not open, to whatever "
    "else runs here; only ssh (%s) stays open to everybody, and only if the controller comes back the start is kept. "
    "If that is acceptable, consent with cluster_firewall_start_ok: true"
)
ERR_FAILED = (
    "firewalld runs, but it could not load its files (state %s): what it lets through now is not what they say. Find "
    "the reason with `firewall-cmd --check-config` and `journalctl -u firewalld`, then load the files with "
    "`firewall-cmd --reload`"
)
ERR_MASKED = (
    "firewalld runs, but its unit is masked: it would be off after the next boot. Consent to unmasking and enabling it "
    "with cluster_firewall_start_ok: true"
)
ERR_CONFLICT = (
    "%s is active on this node, and starting firewalld stops it together with its rules. Move its rules to firewalld "
    "and switch it off first: systemctl disable --now %s"
)
ERR_CHECK = "firewalld refuses the configuration with the new files: %s"
ERR_CHECK_BEFORE = "firewalld refuses the configuration of this node as it is, without anything of ours: %s"


def carry_out(module: AnsibleModule, node: Node) -> dict[str, Any]:
    """Compare; start the change when there is one to make. The result of the module."""
    given = module.params
    unit = node.unit()
    wanted = read_wanted(given, running=unit.running)
    for note in FIREWALL.clear_way(module.run_command, check_mode=module.check_mode):
        module.warn(note)
    refused = refusals(node, unit, given)
    if refused:
        raise ChangeError(NOT_CHANGED % " ".join(refused))
    before, files = texts(node, wanted, given["ipv6_rpfilter"])
    for warning in warnings(node, unit, wanted, files[CONF] or "", given):
        module.warn(warning)
    found = node.bus.ours() if unit.running else None
    plan = make_plan(wanted, found, before, files, enable=unit.file_state != "enabled")
    discarded = node.discarded() if plan.way == "reload" else []
    sentences = [one.sentence for one in discarded]
    if discarded and not given["discard_runtime_ok"]:
        raise ChangeError(NOT_CHANGED % f"firewalld has to be reloaded, but {'; '.join(sentences)}. {pending.FIX}")
    check_files(node, plan)
    result: dict[str, Any] = {
        "changed": plan.way != "none",
        "way": plan.way,
        "reloaded": plan.way == "reload",
        "started": plan.way == "start",
        "differences": plan.differences,
        "discarded": sentences,
        "diff": diffs(plan),
    }
    if module.check_mode or plan.way == "none":
        return result
    job = make_job(node, plan, given, discarded)
    began = FIREWALL.start(module.run_command, job)
    if began["state"] == "failed":
        raise ChangeError(NOT_CHANGED % began["reason"])
    return {**result, "run_id": job["run_id"], "change": job}


def read_wanted(given: dict[str, Any], *, running: bool) -> rules.Wanted:
    """What is wanted. Whether ssh has a policy of its own depends on what an earlier run has written."""
    ssh_file = os.path.join(rules.FOLDER, "policies", f"{rules.SSH}.xml")
    return rules.parse_wanted(
        given["peers"],
        given["ports"],
        mode=given["mode"],
        ssh_ports=given["ssh_ports"],
        with_ssh=rules.wants_ssh(given["open_ssh"], running=running, written=os.path.exists(ssh_file)),
        confirm_seconds=given["confirm_seconds"],
    )


def refusals(node: Node, unit: Unit, given: dict[str, Any]) -> list[str]:
    """Why nothing may be changed on this node as it is, one sentence each."""
    found = node.ssh_problems(given["ssh_ports"])
    if unit.running:
        state = node.bus.property("state")
        found += [ERR_FAILED % state] if state != "RUNNING" else []
        found += [ERR_MASKED] if unit.masked and not given["start_ok"] else []
        return found
    if not given["start_ok"]:
        ports = ", ".join(map(str, given["ssh_ports"]))
        found.append(ERR_NOT_RUNNING % (unit.words(), f"port {ports}" if given["open_ssh"] != "never" else "no port"))
    return found + [ERR_CONFLICT % (name, name) for name in node.conflicting(unit)]


def texts(node: Node, wanted: rules.Wanted, filter_mode: str) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """The files as they are and as they are wanted. ``filter_mode``: what is wanted of the reverse-path filter."""
    files = rules.wanted_files(wanted)
    before = current_files([*files, CONF])
    files[CONF] = before[CONF]
    if filter_mode != "keep":
        version = node.answer("firewall-offline-cmd", "--version")
        files[CONF] = rules.with_rpfilter(before[CONF] or "", filter_mode, version)
    return before, files


def warnings(node: Node, unit: Unit, wanted: rules.Wanted, conf: str, given: dict[str, Any]) -> Iterator[str]:
    """What drops packets of members, or lets others in, beside our rules. ``conf``: firewalld.conf as it is wanted."""
    yield from node.rpfilter_warnings(conf, wanted.peers[6])
    if unit.running:
        yield from look.not_for_members_only(node.output(*strangers.LINKS), given["ports"], given["peers"])


def check_files(node: Node, plan: Plan) -> None:
    """Refuse files that firewalld would not take, those until the confirmation too."""
    for wanted in [plan.files] if plan.interim == plan.files else [plan.files, plan.interim]:
        refusal = node.check(wanted) if wanted != plan.before else ""
        if refusal:
            older = node.check({})
            raise ChangeError(NOT_CHANGED % (ERR_CHECK_BEFORE % older if older else ERR_CHECK % refusal))


def make_job(node: Node, plan: Plan, given: dict[str, Any], discarded: list[pending.Difference]) -> dict[str, Any]:
    """The change, for the program that makes it and waits for the confirmation."""
    strict = given["ipv6_rpfilter"] == "strict"
    return {
        "run_id": given["run_id"] or f"by-hand-{os.getpid()}",
        "confirm_seconds": given["confirm_seconds"],
        "client": ssh_connection.current().client,
        "starter": os.getpid(),
        "tried": in_words(plan.wanted, given["mode"], plan.way),
        "way": plan.way,
        "files": [
            {
                "path": os.path.join(rules.FOLDER, name),
                "mode": mode_of(name),
                "loaded": plan.interim[name],
                # Only a reload puts it in force, and a stricter filter waits for the confirmation like any removal.
                "interim": plan.before[name] if name == CONF and strict else plan.interim[name],
                "text": plan.files[name],
            }
            for name in plan.changed()
        ],
        "expected": plan.expected.as_json(),
        "enable": plan.enable,
        "pending": pending.in_force(node.bus, discarded, node.comes_back),
    }
