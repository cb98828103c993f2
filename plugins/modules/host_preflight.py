#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module host_preflight: look at a node and say why it cannot become a member. Reads only."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_preflight
short_description: Check a node before anything is changed
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Checks the requirements of the roles of this collection on a node and returns all problems at once. Changes nothing.
  - Checks the system and its version, Python, the user, systemd, NetworkManager, firewalld, the declared network cards
    (present, with a link, and with drivers that support the MTU), the number of GPUs, the running and the installed
    kernels, the clock, and the free space for the PyTorch environment.
  - Also returns the facts of M(baremetal.gpu_cluster.gpu_node_facts), so that the roles of a run need not read them
    again.
  - The module also succeeds on a node with problems, so that the caller can decide after all hosts have answered.
  - An action plugin of the same name reads the controller's clock before and after the call, and returns a failed
    become as a problem, so that a node without sudo does not hide the problems of the others.
options:
  fabric_interface:
    description: Name of the network card of the data network. Empty checks none.
    type: str
    default: ""
  interfaces:
    description:
      - The wanted interfaces of the node, in the form of C(static_network_interfaces). Only C(name), C(mac), C(mtu),
        C(vlan.parent) and C(bond.ports) are read.
      - A VLAN or a bond need not exist yet, but its parent or ports must. The link of an interface that is down is not
        checked.
    type: list
    elements: dict
    default: []
  install_path:
    description:
      - Path of the future PyTorch environment. Free space is checked on the file system of its nearest existing folder,
        while nothing is installed there.
    type: path
    default: /opt/gpu-cluster/torch
  min_free_gib:
    description: Minimum free space there, in GiB (2^30 bytes).
    type: int
    default: 10
  max_time_offset_seconds:
    description:
      - Maximum difference between the clocks of node and controller, in seconds. The duration of the call is not
        counted, so a slow node is not a problem.
    type: int
    default: 5
  stale_kernel:
    description:
      - What to do if a newer kernel is installed than the running one. V(report) returns it in RV(notes), V(refuse) in
        RV(problems). If no kernel is installed, as in containers, nothing is compared.
    type: str
    choices: [report, refuse]
    default: report
  ports:
    description:
      - The overrides of the port plan, as C(gpu_cluster_ports). Only C(ssh) is read. It must contain every port on
        which sshd listens, and the port of the current connection. A malformed plan is not checked here.
    type: raw
    default: {}
  gpus:
    description:
      - Number of NVIDIA GPUs that must be on the PCI bus of the node, with or without a driver, 0 to 64. Another number
        is a problem, which lists the PCI addresses. V(-1) compares nothing.
    type: int
    default: -1
  user:
    description:
      - Name of the user who runs jobs. The account is returned as a fact; a missing account is not a problem here.
        Empty reads no account.
    type: str
    default: ""
  commands:
    description: Commands that must exist on the node.
    type: list
    elements: str
    default: [firewall-cmd, ip, nmcli]
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Same behaviour as without check mode.
  diff_mode:
    support: none
    details: There is nothing to compare.
  platform:
    platforms: posix
    details: Runs on every Linux. Any system other than EL 9 and EL 10 is reported as a problem.
seealso:
  - module: baremetal.gpu_cluster.gpu_node_facts
  - plugin: baremetal.gpu_cluster.host_problems
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Look at the node
  baremetal.gpu_cluster.host_preflight:
    fabric_interface: ens1f0
    interfaces:
      - name: ens1f0
        mtu: 9000
    min_free_gib: 20
  register: looked
"""

RETURN = r"""
ansible_facts:
  description:
    - C(gpu_node), as M(baremetal.gpu_cluster.gpu_node_facts) returns it without options.
    - C(getent_passwd) with the entry of O(user), or none, as M(ansible.builtin.getent) returns it.
  returned: success
  type: dict
problems:
  description: The problems, each with C(variable), C(value), C(rule), C(fix) and an empty C(host).
  returned: success
  type: list
  elements: dict
  sample: []
notes:
  description: Remarks that do not stop the run, in the same form.
  returned: success
  type: list
  elements: dict
  sample: []
observed:
  description:
    - Values that were read, by name. C(free_bytes) is the space for ordinary users there.
    - C(clock_seconds) is the node's clock (seconds since 1970), C(clock_offset_seconds) how far it lies outside of the
      controller's times before and after the call, below zero when the node is behind.
    - C(newest_kernel) has a note if no kernel is installed; C(network_manager) is the state of the service.
  returned: success
  type: dict
  sample:
    clock_offset_seconds: 0.0
    clock_seconds: 1795238779.58
    first_process: systemd
    hostname: gpu01
    free_bytes: 42949672960
    free_path: /opt
    gpus: ["0000:1b:00.0", "0000:43:00.0"]
    interfaces: [ens1f0, eno1, lo]
    network_manager: active
    newest_kernel: 5.14.0-503.11.1.el9_5.x86_64
    python: 3.9.18
    running_kernel: 5.14.0-503.11.1.el9_5.x86_64
    ssh_ports: [22]
    system: CentOS Stream 9
"""

import os
import pwd
import sys
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import ssh_connection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import ssh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.gather import TORCH_PREFIX, Node, gather
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.tree import (
    installed_kernels,
    nvidia_devices,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_preflight import (
    ANY_GPUS,
    REFUSE,
    REPORT,
    Expected,
    Link,
    Observed,
    host_notes,
    host_problems,
    parse_links,
    parse_os_release,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._kernels import newest_kernel
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import PortPlanError, make_port_plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import silence

NO_KERNEL = "not looked at: no kernel is installed here"


def read_text(path: str) -> str:
    """The text of a file, empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def read_links(module: AnsibleModule) -> tuple[Link, ...] | None:
    """The network interfaces; None where there is no command to ask, which is a problem of its own."""
    if not module.get_bin_path("ip"):
        return None
    code, out, err = module.run_command(["ip", "-details", "-json", "link", "show"])
    try:
        if code == 0:
            return parse_links(out)
    except ValueError as error:
        err = str(error)
    module.fail_json(msg=f"`ip -details -json link show` on the node said: {err.strip()}")
    return None


def network_manager_state(module: AnsibleModule, first_process: str) -> str:
    """What systemd says of the service; empty where it cannot be asked, or the package is missing."""
    if first_process != "systemd" or not module.get_bin_path("nmcli"):
        return ""
    _code, out, _err = module.run_command(["systemctl", "is-active", "NetworkManager"])
    return str(out).strip() or "unknown"


def planned_ssh_ports(overrides: object) -> tuple[int, ...]:
    """The ports of ssh in the port plan; none where the plan is refused anyway, with the inventory."""
    try:
        return make_port_plan(overrides).ssh
    except PortPlanError:
        return ()


def output(module: AnsibleModule, *words: str) -> str:
    """What a command prints; empty where the node does not have it."""
    if not module.get_bin_path(words[0]):
        return ""
    _code, out, _err = module.run_command(list(words), environ_update={"LC_ALL": "C"})
    return str(out)


def passwd_entry(name: str) -> list[str] | None:
    """What getent lists after the name: password, uid, gid, comment, home, shell. None where there is no such user."""
    try:
        return [str(field) for field in pwd.getpwnam(name)[1:]]
    except KeyError:
        return None


def observe(module: AnsibleModule) -> Observed:
    """Read the node."""
    install_path = os.path.abspath(module.params["install_path"])
    folder = os.path.dirname(install_path)
    answers = silence.ask([install_path, folder])
    installed, space = answers[install_path], answers[folder]
    first_process = read_text("/proc/1/comm").strip() or "nothing"
    return Observed(
        os_release=read_text("/etc/os-release"),
        python=tuple(sys.version_info[:3]),
        user_id=os.geteuid(),
        first_process=first_process,
        commands={name: bool(module.get_bin_path(name)) for name in module.params["commands"]},
        network_manager=network_manager_state(module, first_process),
        links=read_links(module),
        running_kernel=os.uname().release,
        installed_kernels=tuple(installed_kernels()),
        install_path_exists=installed.place == install_path and not installed.error,
        free_path=space.place,
        free_bytes=space.free_bytes,
        storage=tuple(silence.problems()),
        install_silent=installed.silent or space.silent,
        install_error=space.error,
        ssh_used=ssh.used(output(module, *ssh.LISTENERS), output(module, *ssh.SOCKETS), ssh_connection.current().port),
        gpus=tuple(device.address for device in pci.gpus(nvidia_devices())),
    )


def main() -> None:
    """Look, compare, answer."""
    module = AnsibleModule(
        argument_spec={
            "fabric_interface": {"type": "str", "default": ""},
            "interfaces": {"type": "list", "elements": "dict", "default": []},
            "install_path": {"type": "path", "default": "/opt/gpu-cluster/torch"},
            "min_free_gib": {"type": "int", "default": 10},
            # Judged by the action plugin: only the controller knows its own time.
            "max_time_offset_seconds": {"type": "int", "default": 5},
            "stale_kernel": {"type": "str", "choices": [REPORT, REFUSE], "default": REPORT},
            "ports": {"type": "raw", "default": {}},
            "gpus": {"type": "int", "default": ANY_GPUS},
            "user": {"type": "str", "default": ""},
            "commands": {"type": "list", "elements": "str", "default": ["firewall-cmd", "ip", "nmcli"]},
        },
        supports_check_mode=True,
    )
    expected = Expected(
        fabric_interface=module.params["fabric_interface"],
        install_path=module.params["install_path"],
        min_free_gib=module.params["min_free_gib"],
        interfaces=tuple(module.params["interfaces"]),
        stale_kernel=module.params["stale_kernel"],
        ssh_ports=planned_ssh_ports(module.params["ports"]),
        gpus=module.params["gpus"],
    )
    observed = observe(module)
    newest = newest_kernel(observed.running_kernel, observed.installed_kernels)
    user = module.params["user"]
    # It looks into the environment of PyTorch: not where that hangs.
    facts, warnings = ({}, []) if observed.install_silent else gather(Node(), TORCH_PREFIX, False)
    for warning in warnings:
        module.warn(warning)
    module.exit_json(
        changed=False,
        ansible_facts={"gpu_node": facts, **({"getent_passwd": {user: passwd_entry(user)}} if user else {})},
        problems=[problem.as_dict() for problem in host_problems(expected, observed)],
        notes=[note.as_dict() for note in host_notes(expected, observed)],
        observed={
            "system": parse_os_release(observed.os_release).get("PRETTY_NAME", "unknown"),
            "python": ".".join(str(part) for part in observed.python),
            "first_process": observed.first_process,
            "hostname": os.uname().nodename,
            "network_manager": observed.network_manager,
            "interfaces": [link.name for link in observed.links or ()],
            "running_kernel": observed.running_kernel,
            "ssh_ports": sorted(observed.ssh_used.listened),
            "newest_kernel": newest or NO_KERNEL,
            "gpus": list(observed.gpus),
            "free_path": observed.free_path,
            "free_bytes": observed.free_bytes,
            "clock_seconds": time.time(),
        },
    )


if __name__ == "__main__":
    main()
