#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module firewall_peers: open ports to the members of the cluster and to nobody else, with firewalld."""

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_peers
short_description: Open ports to the members of the cluster only, and take it back unless the controller still gets in
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Keeps the ipsets C(gpu-peers) and C(gpu-peers6) and the policy C(gpu-cluster-peers) of firewalld, which accepts the
    listed ports from those addresses in whichever zone they arrive. What the policy does not accept stays with the
    zones. What an earlier call opened and this one does not list is closed; what others opened is not touched.
  - Compares first. Then the new files are tested on a copy of the configuration with C(--check-config).
  - Warns, with the rule, where somebody who is no member gets to the TCP ports all the same. The rules in force are
    asked with an address that no site lets in on purpose, for each interface. Such a rule is that of an interface in
    the zone C(trusted), of a zone with wide ports, or of a port that a container publishes.
  - A member more or less, and other ports, are put in force without a reload. firewalld is reloaded only when one of
    these objects does not run yet, because it makes none at run time.
  - Every change is made by a program on the node that waits for the controller. The controller opens a fresh ssh
    connection, moves 64 KiB over it in both directions, and confirms. When it does not come back within
    O(confirm_seconds), when a step fails, or when that program is killed, the node takes the change back. Files,
    running rules, and whether firewalld is started, enabled or masked are as before then.
  - What lets somebody in is taken out of the files only after the confirmation, so a node that loses power before it
    boots with all of that.
  - Hosts do not wait for each other, so C(forks) and C(serial) may be as small as you like.
options:
  peers:
    description: Addresses of the members, IPv4 and IPv6, without prefix length.
    type: list
    elements: str
    required: true
  ports:
    description:
      - Exactly the ports that are open to the peers through this policy, such as C(29500/tcp) and C(29400-29599/tcp).
      - Must not be empty with O(mode=ports), and does not count with O(mode=trust).
    type: list
    elements: str
    default: []
  mode:
    description:
      - V(ports) opens O(ports) to the peers.
      - V(trust) opens all ports to them, for programs that choose theirs at random, such as Horovod and UCX.
    type: str
    choices: [ports, trust]
    default: ports
  ssh_ports:
    description:
      - The ports of sshd. A node whose sshd listens on another one, or that is reached through another one right now,
        is refused before anything is changed.
    type: list
    elements: int
    default: [22]
  open_ssh:
    description:
      - Whether the policy C(gpu-cluster-ssh) opens O(ssh_ports) to everybody, whatever the zone of the interface.
      - V(auto) writes it where firewalld does not run and is to be started, and keeps it from then on. A firewalld that
        runs already was set up by the site, which may have restricted ssh.
    type: str
    choices: [auto, always, never]
    default: auto
  start_ok:
    description:
      - Whether a firewalld that does not run, also a disabled or masked one, may be started. Starting it closes every
        port that no zone opens, to whatever else runs on the node.
      - It is enabled for the next boot only when the controller has confirmed the start.
    type: bool
    default: false
  discard_runtime_ok:
    description:
      - Whether a reload may discard what others changed at run time only, and put in force what others wrote to the
        files and did not load. Without it, a reload is refused as long as there is any such difference; each is named.
    type: bool
    default: false
  ipv6_rpfilter:
    description:
      - firewalld's reverse-path filter for IPv6. V(keep) leaves it alone and warns where it drops what members send.
      - V(loose) accepts a packet when any way leads back to its source. firewalld knows that since 2.2; in an older one
        the filter is switched off instead. V(strict) is firewalld's own default.
    type: str
    choices: [keep, strict, loose]
    default: keep
  confirm_seconds:
    description: After how many seconds without confirmation the node takes the change back, 15 to 600.
    type: int
    default: 60
  run_id:
    description: Names the change on the node. Set by the action plugin of this name.
    type: str
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Compares, tests the new files on a copy, and arms nothing.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Needs firewalld 1.0 or newer, as in EL9 and EL10, and systemd.
seealso:
  - module: baremetal.gpu_cluster.pending_change
"""

EXAMPLES = r"""
- name: Open the rendezvous port to the peers
  baremetal.gpu_cluster.firewall_peers:
    peers: [192.0.2.11, 192.0.2.12]
    ports: [29400-29599/tcp]

- name: Start a firewalld that is off, with sshd on another port
  baremetal.gpu_cluster.firewall_peers:
    peers: [192.0.2.11, 192.0.2.12, "2001:db8::11", "2001:db8::12"]
    mode: trust
    ssh_ports: [2222]
    start_ok: true
"""

RETURN = r"""
way:
  description:
    - How the change is put in force, or in check mode would be.
    - V(none), V(rules) for a change at run time without a reload, V(reload), or V(start).
  returned: success
  type: str
  sample: rules
reloaded:
  description: Whether firewalld was reloaded, or in check mode would be.
  returned: success
  type: bool
  sample: false
started:
  description: Whether firewalld was started, or in check mode would be.
  returned: success
  type: bool
  sample: false
differences:
  description: Where the running firewalld differed from what was wanted before the run, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
discarded:
  description:
    - What of others is in force otherwise than the files say, and is lost or comes in force with the reload, one
      sentence each.
  returned: success
  type: list
  elements: str
  sample: []
host:
  description: The address at which the node answers.
  returned: always
  type: str
  sample: 192.0.2.11
run_id:
  description: The name of the change.
  returned: when something differs, and not in check mode
  type: str
  sample: 20261121t052204z-k3x9ab
outcome:
  description: What the node said about the end of the change, as in M(baremetal.gpu_cluster.pending_change).
  returned: when something differs, and not in check mode
  type: dict
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import ssh_connection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import (
    BusyError,
    ChangeError,
    read_text,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import pending, rpfilter, rules, ssh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.bus import Bus
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.change import FIREWALL
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import look, strangers

UNIT = "firewalld.service"
CONF = "firewalld.conf"
MODE = 0o644
#: What firewalld's unit names in Conflicts=. A masked unit does not say it.
CONFLICTS = "iptables.service ip6tables.service ebtables.service ipset.service nftables.service"

NOT_CHANGED = "Refused, nothing was changed: %s"
ERR_NOT_INSTALLED = "firewalld is not installed on this node: expected the command firewall-cmd. Install firewalld."
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


class Unit(NamedTuple):
    """ActiveState, UnitFileState and Conflicts of firewalld's unit."""

    active: str
    file_state: str
    conflicts: str

    @property
    def running(self) -> bool:
        return self.active == "active"

    @property
    def masked(self) -> bool:
        return self.file_state.startswith("masked")

    def words(self) -> str:
        """How it is, for a sentence."""
        return ", ".join(dict.fromkeys((self.active, self.file_state)))


class Node:
    """Runs the commands that read this node's firewall."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.bus = Bus(self.run)

    def run(self, words: Sequence[str]) -> tuple[int, str, str]:
        """Exit status, output, errors."""
        try:
            rc, out, err = self.module.run_command(list(words), environ_update={"LC_ALL": "C"}, handle_exceptions=False)
        except OSError as error:
            return 127, "", f"'{words[0]}' could not be started: {error.strerror}"
        return rc, out, err

    def output(self, *words: str) -> str:
        """The output of a command that may fail: what it does not say is not there."""
        return self.run(words)[1]

    def answer(self, *words: str) -> str:
        """The output of a command that must not fail."""
        rc, out, err = self.run(words)
        if rc:
            raise ChangeError(NOT_CHANGED % f"'{' '.join(words)}' failed: {' '.join(f'{out} {err}'.split())}")
        return out

    def unit(self) -> Unit:
        """firewalld's unit. Refuse a node without firewalld."""
        properties = ("LoadState", "ActiveState", "UnitFileState", "Conflicts")
        out = self.answer("systemctl", "show", *(f"--property={name}" for name in properties), UNIT)
        said = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
        if said.get("LoadState") == "not-found" or not self.module.get_bin_path("firewall-cmd"):
            raise ChangeError(ERR_NOT_INSTALLED)
        return Unit(said.get("ActiveState", "unknown"), said.get("UnitFileState", "unknown"), said.get("Conflicts", ""))

    def conflicting(self, unit: Unit) -> list[str]:
        """The active units that a start would stop."""
        names = [name for name in (CONFLICTS if unit.masked else unit.conflicts).split() if name.endswith(".service")]
        states = self.output("systemctl", "is-active", *names).split() if names else []
        return [name for name, state in zip(names, states) if state == "active"]

    def ssh_problems(self, ports: Sequence[int]) -> list[str]:
        """Why following these ports would close ssh, one sentence each."""
        used = ssh.used(self.answer(*ssh.LISTENERS), self.output(*ssh.SOCKETS), ssh_connection.current().port)
        return [problem.sentence() for problem in ssh.problems(ports, used, "cluster_firewall_ssh_ports")]

    def comes_back(self, interface: str, zone: str) -> bool:
        """Whether NetworkManager binds an interface to this zone again after a reload."""
        uuid = self.output("nmcli", "-g", "GENERAL.CON-UUID", "device", "show", interface).strip()
        if not uuid:
            return False
        own = self.output("nmcli", "-g", "connection.zone", "connection", "show", "uuid", uuid).strip()
        return (own or self.default_zone()) == zone

    def default_zone(self) -> str:
        """The default zone that is in force."""
        return str(self.bus.call("/org/fedoraproject/FirewallD1", "", "getDefaultZone")[0])

    def discarded(self) -> list[pending.Difference]:
        """What of others a reload would change."""
        return pending.differences(pending.Reader(self.run), rules.FOLDER, self.comes_back)

    def check(self, files: dict[str, str | None]) -> str:
        """Why firewalld would refuse these files beside its own, empty when it takes them. Only a copy is changed."""
        folder = tempfile.mkdtemp(prefix="gpu-cluster-firewall-")
        try:
            copy = os.path.join(folder, "firewalld")
            shutil.copytree(rules.FOLDER, copy)
            for name, text in files.items():
                path = os.path.join(copy, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if text is not None:
                    with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
                        stream.write(text)
                elif os.path.exists(path):
                    os.unlink(path)
            rc, out, err = self.run(["firewall-offline-cmd", "--system-config", copy, "--check-config"])
            return " ".join(f"{out} {err}".replace(copy, rules.FOLDER).split()) if rc else ""
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def rpfilter_warnings(self, conf: str, peers: Sequence[str]) -> list[str]:
        """Where the strict filter drops what members send."""
        if not peers or rules.rpfilter_of(conf) != "strict":
            return []
        found = rpfilter.rails(self.output(*rpfilter.ADDRESSES) or "[]", peers)
        return rpfilter.warnings({rail: self.output(*rail.question()) for rail in found})


def current_files(names: Sequence[str]) -> dict[str, str | None]:
    """The text of our files, None where there is none."""
    return {name: read_text(os.path.join(rules.FOLDER, name)) for name in names}


def mode_of(name: str) -> int:
    """The mode of a file of firewalld, that of a new one where there is none."""
    path = os.path.join(rules.FOLDER, name)
    return os.stat(path).st_mode & 0o7777 if os.path.exists(path) else MODE


def diffs(before: dict[str, str | None], files: dict[str, str | None]) -> list[dict[str, str]]:
    """What changes, for ``--diff``."""
    return [
        {
            "before_header": os.path.join(rules.FOLDER, name),
            "after_header": os.path.join(rules.FOLDER, name),
            "before": before[name] or "",
            "after": text or "",
        }
        for name, text in files.items()
        if text != before[name]
    ]


def in_words(wanted: rules.Wanted, mode: str, way: str) -> str:
    """The change, for a sentence."""
    count = sum(len(peers) for peers in wanted.peers.values())
    ports = "all ports" if mode == "trust" else f"{len(wanted.rules[rules.PEERS])} rules"
    how = {"start": "starting firewalld", "reload": "reloading firewalld", "rules": "changing the running rules"}[way]
    return f"{how} with {ports} for {count} addresses of members"


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


def carry_out(module: AnsibleModule, node: Node) -> dict[str, Any]:
    """Compare; start the change when there is one to make. The result of the module."""
    given = module.params
    unit = node.unit()
    ssh_file = os.path.join(rules.FOLDER, "policies", f"{rules.SSH}.xml")
    wanted = rules.parse_wanted(
        given["peers"],
        given["ports"],
        mode=given["mode"],
        ssh_ports=given["ssh_ports"],
        with_ssh=rules.wants_ssh(given["open_ssh"], running=unit.running, written=os.path.exists(ssh_file)),
        confirm_seconds=given["confirm_seconds"],
    )
    for note in FIREWALL.clear_way(module.run_command, check_mode=module.check_mode):
        module.warn(note)
    refused = refusals(node, unit, given)
    if refused:
        raise ChangeError(NOT_CHANGED % " ".join(refused))

    files = rules.wanted_files(wanted)
    before = current_files([*files, CONF])
    conf = before[CONF] or ""
    files[CONF] = before[CONF]
    if given["ipv6_rpfilter"] != "keep":
        version = node.answer("firewall-offline-cmd", "--version")
        files[CONF] = rules.with_rpfilter(conf, given["ipv6_rpfilter"], version)
    for warning in node.rpfilter_warnings(files[CONF] or "", wanted.peers[6]):
        module.warn(warning)

    if unit.running:
        for warning in look.not_for_members_only(node.output(*strangers.LINKS), given["ports"], given["peers"]):
            module.warn(warning)

    expected = rules.wanted_runtime(wanted)
    found = node.bus.ours() if unit.running else rules.Runtime({}, {})
    differences = rules.differences(expected, found) if unit.running else []
    enable = unit.file_state != "enabled"
    way = "none"
    if not unit.running:
        way = "start"
    elif rules.needs_reload(expected, found) or files[CONF] != before[CONF]:
        way = "reload"
    elif files != before or differences or enable:
        way = "rules"
    discarded = node.discarded() if way == "reload" else []
    sentences = [one.sentence for one in discarded]
    if discarded and not given["discard_runtime_ok"]:
        raise ChangeError(NOT_CHANGED % f"firewalld has to be reloaded, but {'; '.join(sentences)}. {pending.FIX}")
    interim = {**rules.until_confirmed(before, files), CONF: files[CONF]}
    for texts in [files] if interim == files else [files, interim]:
        refusal = node.check(texts) if texts != before else ""
        if refusal:
            older = node.check({})
            raise ChangeError(NOT_CHANGED % (ERR_CHECK_BEFORE % older if older else ERR_CHECK % refusal))

    result: dict[str, Any] = {
        "changed": way != "none",
        "way": way,
        "reloaded": way == "reload",
        "started": way == "start",
        "differences": differences,
        "discarded": sentences,
        "diff": diffs(before, files),
    }
    if module.check_mode or way == "none":
        return result
    job = {
        "run_id": given["run_id"] or f"by-hand-{os.getpid()}",
        "confirm_seconds": given["confirm_seconds"],
        "client": ssh_connection.current().client,
        "starter": os.getpid(),
        "tried": in_words(wanted, given["mode"], way),
        "way": way,
        "files": [
            {
                "path": os.path.join(rules.FOLDER, name),
                "mode": mode_of(name),
                "loaded": interim[name],
                # Only a reload puts it in force, and a stricter filter waits for the confirmation like any removal.
                "interim": before[name] if name == CONF and given["ipv6_rpfilter"] == "strict" else interim[name],
                "text": text,
            }
            for name, text in files.items()
            if text != before[name]
        ],
        "expected": expected.as_json(),
        "enable": enable,
        "pending": pending.in_force(node.bus, discarded, node.comes_back),
    }
    began = FIREWALL.start(module.run_command, job)
    if began["state"] == "failed":
        raise ChangeError(NOT_CHANGED % began["reason"])
    return {**result, "run_id": job["run_id"], "change": job}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "peers": {"type": "list", "elements": "str", "required": True},
            "ports": {"type": "list", "elements": "str", "default": []},
            "mode": {"type": "str", "choices": list(rules.MODES), "default": "ports"},
            "ssh_ports": {"type": "list", "elements": "int", "default": [22]},
            "open_ssh": {"type": "str", "choices": list(rules.OPEN_SSH), "default": "auto"},
            "start_ok": {"type": "bool", "default": False},
            "discard_runtime_ok": {"type": "bool", "default": False},
            "ipv6_rpfilter": {"type": "str", "choices": list(rules.RPFILTER), "default": "keep"},
            "confirm_seconds": {"type": "int", "default": 60},
            "run_id": {"type": "str"},
        },
        supports_check_mode=True,
    )
    try:
        result = carry_out(module, Node(module))
    except rules.InputError as error:
        module.fail_json(msg=NOT_CHANGED % error)
    except BusyError as error:
        module.fail_json(msg=str(error), busy_seconds=error.seconds)
    except ChangeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
