#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module firewall_peers: open ports to the members of the cluster and to nobody else, with firewalld."""

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_peers
short_description: Open ports to the members of the cluster only
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Keeps the ipsets C(gpu-peers) (and C(gpu-peers6) when there are IPv6 peers) and the policy C(gpu-cluster-peers) of
    firewalld, which accepts the listed ports from those addresses in whichever zone they arrive.
  - What the policy does not accept stays with the zones, ssh included. Nothing else of firewalld is touched.
  - New files are tested with C(firewall-cmd --check-config) and, when refused, the old ones are put back. firewalld is
    reloaded only when something differs, and asked afterwards whether the running rules are the wanted ones.
options:
  peers:
    description: Addresses of the members, without prefix length.
    type: list
    elements: str
    required: true
  ports:
    description:
      - Exactly the ports that are open to the peers through this policy, such as C(29500/tcp) and C(29400-29599/tcp).
    type: list
    elements: str
    required: true
  start_ok:
    description:
      - Whether a firewalld that does not run may be started. Starting it closes every port that no zone opens, to
        whatever else runs on the node.
      - Before it starts, O(ssh_port) is opened in the permanent configuration of the default zone.
    type: bool
    default: false
  ssh_port:
    description: The port on which sshd listens, kept open when firewalld is started.
    type: int
    default: 22
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Compares, but cannot say whether firewalld would take the new files.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Needs firewalld 0.9 or newer, as in EL9 and EL10, and systemd.
"""

EXAMPLES = r"""
- name: Open the rendezvous port to the peers
  baremetal.gpu_cluster.firewall_peers:
    peers: [192.0.2.11, 192.0.2.12]
    ports: [29400-29599/tcp]
"""

RETURN = r"""
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
"""

import json
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall_peers import (
    POLICY,
    SETS,
    InputError,
    Runtime,
    parse_wanted,
    runtime_differences,
    wanted_files,
    wanted_runtime,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    restore_file,
)

FOLDER = "/etc/firewalld"
BUS = "org.fedoraproject.FirewallD1"
BUS_PATH = "/org/fedoraproject/FirewallD1"

ERR_NOT_INSTALLED = "firewalld is not installed on this node: expected the command firewall-cmd. Install firewalld."
ERR_NOT_RUNNING = (
    "firewalld does not run on this node (%s). Starting it closes every port that its zones do not open, to whatever "
    "else runs here; only ssh (port %d) is opened first. If that is acceptable, consent with "
    "cluster_firewall_start_ok: true. Nothing was changed."
)


class Firewalld:
    """The commands through which firewalld is asked and told."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.systemctl = module.get_bin_path("systemctl", required=True)
        self.busctl = module.get_bin_path("busctl", required=True)
        self.client = module.get_bin_path("firewall-cmd")
        self.offline = module.get_bin_path("firewall-offline-cmd")

    def _run(self, *argv: str) -> tuple[int, str, str]:
        rc, out, err = self.module.run_command(list(argv), environ_update={"LC_ALL": "C"})
        return rc, out.strip(), " ".join(f"{out} {err}".split())

    def unit(self) -> dict[str, str]:
        """The unit's ActiveState and UnitFileState."""
        _rc, out, _both = self._run(
            self.systemctl, "show", "-p", "ActiveState", "-p", "UnitFileState", "firewalld.service"
        )
        return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

    def _ask(self, interface: str, method: str, name: str) -> list[Any] | None:
        """The arguments of one D-Bus answer, None when firewalld has no such object."""
        rc, out, both = self._run(
            self.busctl, "--json=short", "--timeout=60", "call", BUS, BUS_PATH, f"{BUS}.{interface}", method, "s", name
        )
        if rc == 0:
            return list(json.loads(out)["data"])
        if "INVALID_IPSET" in both or "INVALID_POLICY" in both:
            return None
        self.module.fail_json(
            msg=f"firewalld did not answer {method} {name}: {both}. Look at `journalctl -u firewalld`."
        )
        return None

    def runtime(self) -> Runtime:
        """What runs of ours."""
        entries: dict[str, frozenset[str] | None] = {}
        for name in SETS.values():
            answer = self._ask("ipset", "getEntries", name)
            entries[name] = frozenset(answer[0]) if answer is not None else None
        answer = self._ask("policy", "getPolicySettings", POLICY)
        rules = None
        if answer is not None:
            rules = frozenset(answer[0].get("rich_rules", {}).get("data", []))
        return Runtime(entries=entries, rules=rules)

    def check_config(self, running: bool) -> str:
        """Why firewalld refuses its permanent configuration, empty when it takes it."""
        rc, _out, both = self._run(self.client if running else self.offline, "--check-config")
        return both if rc else ""

    def reload(self) -> str:
        """Load the permanent configuration; the reason when that failed."""
        rc, _out, both = self._run(self.client, "--reload")
        return both if rc else ""

    def open_ssh_offline(self, port: int) -> str:
        """Open ssh in the permanent default zone while firewalld is off; the reason when that failed."""
        rc, zone, both = self._run(self.offline, "--get-default-zone")
        if rc:
            return both
        kind = "service=ssh" if port == 22 else f"port={port}/tcp"
        rc, _out, _both = self._run(self.offline, f"--zone={zone}", f"--query-{kind}")
        if rc:
            rc, _out, both = self._run(self.offline, f"--zone={zone}", f"--add-{kind}")
        return str(both) if rc else ""

    def systemctl_do(self, *words: str) -> str:
        """Run systemctl on the unit; the reason when that failed."""
        rc, _out, both = self._run(self.systemctl, *words, "firewalld.service")
        return both if rc else ""


def current_files(names: list[str]) -> dict[str, str | None]:
    """The text of our files, None where there is none."""
    paths = {name: os.path.join(FOLDER, name) for name in names}
    return {name: read_text(path) if os.path.exists(path) else None for name, path in paths.items()}


def write_files(module: AnsibleModule, files: dict[str, str | None]) -> None:
    """Bring our files to the given texts; None removes."""
    for name, text in files.items():
        restore_file(module, os.path.join(FOLDER, name), text or "", text is not None)


def apply_files(
    module: AnsibleModule,
    firewalld: Firewalld,
    files: dict[str, str | None],
    before: dict[str, str | None],
    running: bool,
) -> None:
    """Write what differs; when firewalld refuses the result, put the old files back and fail."""
    write_files(module, {name: text for name, text in files.items() if text != before[name]})
    refused = firewalld.check_config(running)
    if refused:
        write_files(module, before)
        older = firewalld.check_config(running)
        cause = "its configuration was refused before that already" if older else "the old files are back in place"
        module.fail_json(msg=f"firewalld refuses its permanent configuration: {refused}. Nothing was changed; {cause}.")


def main() -> None:
    """Compare, write, test, load, ask again."""
    module = AnsibleModule(
        argument_spec={
            "peers": {"type": "list", "elements": "str", "required": True},
            "ports": {"type": "list", "elements": "str", "required": True},
            "start_ok": {"type": "bool", "default": False},
            "ssh_port": {"type": "int", "default": 22},
        },
        supports_check_mode=True,
    )
    try:
        wanted = parse_wanted(module.params["peers"], module.params["ports"])
    except InputError as error:
        module.fail_json(msg=f"Wrong input for the firewall: {error}")
    firewalld = Firewalld(module)
    if not firewalld.client or not firewalld.offline:
        module.fail_json(msg=ERR_NOT_INSTALLED)

    unit = firewalld.unit()
    running = unit.get("ActiveState") == "active"
    enabled = unit.get("UnitFileState") == "enabled"
    if not running and not module.params["start_ok"]:
        module.fail_json(msg=ERR_NOT_RUNNING % (unit.get("ActiveState", "unknown"), module.params["ssh_port"]))

    files = wanted_files(wanted)
    before = current_files(list(files))
    expected = wanted_runtime(wanted)
    differences = runtime_differences(expected, firewalld.runtime()) if running else []
    result = {
        "changed": files != before or bool(differences) or not running or not enabled,
        "reloaded": running and (files != before or bool(differences)),
        "started": not running,
        "differences": differences,
        "diff": [
            {
                "before_header": os.path.join(FOLDER, name),
                "after_header": os.path.join(FOLDER, name),
                "before": before[name] or "",
                "after": text or "",
            }
            for name, text in files.items()
            if text != before[name]
        ],
    }
    if module.check_mode or not result["changed"]:
        module.exit_json(**result)

    failure = "" if running else firewalld.open_ssh_offline(module.params["ssh_port"])
    if failure:
        module.fail_json(msg=f"Could not open ssh before starting firewalld: {failure}. firewalld was not started.")
    apply_files(module, firewalld, files, before, running)
    if result["started"]:
        failure = firewalld.systemctl_do("enable", "--now")
    elif result["reloaded"]:
        failure = firewalld.reload()
    if not failure and not enabled and running:
        failure = firewalld.systemctl_do("enable")
    if not failure:
        remaining = runtime_differences(expected, firewalld.runtime())
        failure = f"after loading, the running rules still differ: {'; '.join(remaining)}" if remaining else ""
    if failure:
        write_files(module, before)
        if running:
            again = firewalld.reload()
            outcome = f"but loading them failed: {again}" if again else "and they are loaded"
        else:
            again = firewalld.systemctl_do("stop") if enabled else firewalld.systemctl_do("disable", "--now")
            outcome = f"but stopping it failed: {again}" if again else "and firewalld is off again"
        module.fail_json(msg=f"firewalld did not take the rules: {failure}. The old files are back {outcome}.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
