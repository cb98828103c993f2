#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module network_profiles: static addresses as NetworkManager keyfiles, activated and read back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_profiles
short_description: Give network cards static addresses with NetworkManager
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Keeps one keyfile for each interface, loads and activates it only when the file, the active profile, an address or
    the MTU differs, and reads the addresses back.
  - Refuses, before anything is changed, an interface that carries Ansible's own ssh connection or a default route.
    When such an interface holds what is wanted already, it is left alone and named in RV(left_alone).
  - When a profile cannot be activated, the old file and the profile that was active before are put back.
  - The profiles never give a default route.
options:
  interfaces:
    description: The interfaces.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the network card, as C(ip -br link) prints it.
        type: str
        required: true
      addresses:
        description: Its addresses with prefix length, IPv4 or IPv6.
        type: list
        elements: str
        required: true
      mtu:
        description: MTU in bytes. Left as it is when not given.
        type: int
      zone:
        description: Zone of firewalld, which must exist. The default zone when not given.
        type: str
  folder:
    description: Where NetworkManager keeps its keyfiles.
    type: path
    default: /etc/NetworkManager/system-connections
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Needs NetworkManager with keyfiles, as in EL9 and EL10, and Ethernet cards.
"""

EXAMPLES = r"""
- name: Give the data network its address
  baremetal.gpu_cluster.network_profiles:
    interfaces:
      - name: ens1f0
        addresses: [192.0.2.11/24]
        mtu: 9000
"""

RETURN = r"""
activated:
  description: The interfaces whose profile was activated, or in check mode would be.
  returned: success
  type: list
  elements: str
  sample: [ens1f0]
left_alone:
  description: Interfaces that hold what is wanted and must not be touched, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
"""

import glob
import os
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    replace_file,
    restore_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network_profiles import (
    InputError,
    Link,
    Step,
    carriers,
    make_plan,
    parse_default_routes,
    parse_links,
    parse_profiles,
    satisfied,
)

ACTIVATION_SECONDS = 30
SETTLE_SECONDS = 10


class Node:
    """The commands through which the node's network is read and told."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.ip = module.get_bin_path("ip", required=True)
        self.nmcli = module.get_bin_path("nmcli", required=True)

    def _run(self, *argv: str) -> tuple[int, str, str]:
        rc, out, err = self.module.run_command(list(argv), environ_update={"LC_ALL": "C"})
        return rc, out, " ".join(f"{out} {err}".split())

    def _read(self, *argv: str) -> str:
        rc, out, both = self._run(*argv)
        if rc:
            self.module.fail_json(msg=f"Could not read the network of this node: {' '.join(argv)}: {both}")
        return out

    def links(self) -> dict[str, Link]:
        """The interfaces with their addresses."""
        return parse_links(self._read(self.ip, "-j", "address"))

    def default_routes(self) -> list[str]:
        """The interfaces of the default routes of both address families."""
        found = [
            device
            for family in ("-4", "-6")
            for device in parse_default_routes(self._read(self.ip, "-j", family, "route", "show", "default"))
        ]
        return sorted(set(found))

    def active(self) -> dict[str, str]:
        """The uuid of the active profile by interface."""
        out = self._read(self.nmcli, "-t", "-f", "UUID,DEVICE", "connection", "show", "--active")
        pairs = (line.partition(":") for line in out.splitlines())
        return {device: uuid for uuid, _colon, device in pairs if device}

    def load(self, path: str) -> str:
        """Let NetworkManager read one file; the reason when it would not."""
        rc, _out, both = self._run(self.nmcli, "connection", "load", path)
        # It prints its refusal and still ends with 0.
        return both if rc or "Could not load" in both or "Warning" in both else ""

    def reload(self) -> None:
        """Let NetworkManager read all files, after one was removed."""
        self._run(self.nmcli, "connection", "reload")

    def up(self, uuid: str, interface: str) -> str:
        """Activate a profile; the reason when that failed."""
        rc, _out, both = self._run(
            self.nmcli, "--wait", str(ACTIVATION_SECONDS), "connection", "up", "uuid", uuid, "ifname", interface
        )
        return both if rc else ""


def ssh_address() -> str:
    """The address of this node at which the current ssh connection arrived; empty without one.

    sudo drops the variable, so the parents of this process are asked too.
    """
    pid = os.getpid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                variables = stream.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
                pid = int(stream.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return ""
        for variable in variables:
            if variable.startswith(b"SSH_CONNECTION="):
                fields = variable.split(b"=", 1)[1].decode("ascii", "replace").split()
                return fields[2] if len(fields) == 4 else ""
    return ""


def keyfile(path: str) -> str:
    """The text of a keyfile; empty when there is none, or when NetworkManager ignores it because others may read it."""
    if os.path.exists(path) and os.stat(path).st_mode & 0o077:
        return ""
    return read_text(path)


def zones() -> set[str]:
    """The zones that firewalld knows."""
    found = glob.glob("/etc/firewalld/zones/*.xml") + glob.glob("/usr/lib/firewalld/zones/*.xml")
    return {os.path.splitext(os.path.basename(path))[0] for path in found}


def settled(node: Node, step: Step) -> bool:
    """Wait until the interface has what is wanted; duplicate address detection takes its time."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while not satisfied(step.profile, node.links()[step.profile.name]):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def take(module: AnsibleModule, node: Node, step: Step, folder: str, previous: str) -> None:
    """Write, load and activate one profile; when that fails, put back what was there and fail."""
    path = os.path.join(folder, step.profile.file_name)
    existed = os.path.exists(path)
    replace_file(module, path, step.after, 0o600)
    failure = node.load(path) or node.up(step.profile.uuid, step.profile.name)
    if not failure and not settled(node, step):
        failure = f"after {SETTLE_SECONDS} s the interface still does not have {step.profile.wish()}"
    if not failure:
        return
    restore_file(module, path, step.before, existed, 0o600)
    node.reload()
    if previous:
        again = node.up(previous, step.profile.name)
        outcome = f"but activating the profile before it failed: {again}" if again else "and active again"
    else:
        outcome = "no profile was active before"
    module.fail_json(
        msg=f"{step.profile.name}: the profile could not be activated: {failure}. The old file is back, {outcome}."
    )


def main() -> None:
    """Compare everything, then take the steps."""
    module = AnsibleModule(
        argument_spec={
            "interfaces": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "name": {"type": "str", "required": True},
                    "addresses": {"type": "list", "elements": "str", "required": True},
                    "mtu": {"type": "int"},
                    "zone": {"type": "str"},
                },
            },
            "folder": {"type": "path", "default": "/etc/NetworkManager/system-connections"},
        },
        supports_check_mode=True,
    )
    folder = module.params["folder"]
    try:
        profiles = parse_profiles(module.params["interfaces"])
    except InputError as error:
        module.fail_json(msg=f"Wrong input for the network: {error}")
    node = Node(module)
    links = node.links()
    active = node.active()
    plan = make_plan(
        profiles,
        links=links,
        untouchable=carriers(links, node.default_routes(), ssh_address()),
        files={profile.file_name: keyfile(os.path.join(folder, profile.file_name)) for profile in profiles},
        active=active,
        zones=zones(),
    )
    if plan.problems:
        module.fail_json(msg="The network of this node was not changed: {}.".format("; ".join(plan.problems)))
    steps = [step for step in plan.steps if step.changed]
    if not module.check_mode:
        for step in steps:
            take(module, node, step, folder, active.get(step.profile.name, ""))
    module.exit_json(
        changed=bool(steps),
        activated=[step.profile.name for step in steps],
        left_alone=list(plan.left_alone),
        diff=[
            {
                "before_header": os.path.join(folder, step.profile.file_name),
                "after_header": os.path.join(folder, step.profile.file_name),
                "before": step.before,
                "after": step.after,
            }
            for step in steps
        ],
    )


if __name__ == "__main__":
    main()
