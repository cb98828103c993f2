#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a node says of itself before a collective check."""

from __future__ import annotations

DOCUMENTATION = r"""
module: collective_static
short_description: Read what a node says of itself before a collective check
version_added: "0.1.0"
description:
  - First step of a check of the cluster. It reads what names mean on this node, its interfaces, the way to each
    member, the port range of the kernel, who listens on ports of the rendezvous, the limits of the user who runs the
    ranks, what its packet filter would block, which interface NCCL would take, what jobs are told about
    interfaces, ssh host keys, free space and the clock.
  - Opens no connection to another member, and judges nothing. The findings are made by
    M(baremetal.gpu_cluster.collective_diagnose), from the results of all nodes.
  - Starts one process, where there is a C(libnccl.so.2), for the time of one call of C(ncclGetUniqueId()). It runs as
    O(user), with the variables in C(/etc/gpu-cluster/environment), and is killed after 3 seconds. It needs no GPU.
  - On the wire are the questions of the node's resolver, and two ARP probes that ask whether somebody else has the
    address of the data network.
  - Takes below one second, and some seconds where a name server does not answer. The same for many members, because
    the ways to all of them are asked at once.
  - The node's clock is compared with that of the controller. Its offset is known as exactly as the time of the call
    allows, so a slow node is never accused.
options:
  host:
    description: Name of this node among O(members).
    type: str
    required: true
  members:
    description: All members of the cluster, as C(common_members) of the role C(common). The list, or JSON of it.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name in the inventory.
        type: str
        required: true
      fabric_address:
        description: Address on the data network, without prefix length.
        type: str
        required: true
      fabric_prefix:
        description: Its prefix length.
        type: int
        required: true
      fabric_interface:
        description: Interface that holds it.
        type: str
        required: true
      management_address:
        description: Address or name at which Ansible reaches the member.
        type: str
        required: true
      addresses:
        description: All its addresses, without prefix length.
        type: list
        elements: str
        required: true
      rail_addresses:
        description: What the inventory says of each of them. Not used here.
        type: list
        elements: dict
        default: []
  plan:
    description: The port plan, as C(common_port_plan) of the role C(common).
    type: dict
    required: true
  user:
    description: User who runs the ranks, empty for root. The limits are those of a session of this user.
    type: str
    default: ""
  torch_python:
    description: Python of the training environment. NCCL is the one that is installed beside its torch, or that of the
      system where this has none.
    type: str
    default: ""
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Will return details on what has changed, or possibly needs changing in C(check_mode), when in diff
      mode.
    support: none
    details:
      - Nothing is changed, C(changed) is always V(false).
  platform:
    description: Target OS that the module works on.
    support: full
    platforms: posix
    details:
      - Linux with iproute2 and Python 3.9 or newer, as root.
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on
      the controller.
    support: full
    details:
      - It reads the clock of the controller before and after the call.
seealso:
  - module: baremetal.gpu_cluster.collective_launch
  - module: baremetal.gpu_cluster.collective_diagnose
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Read what the node says of itself
  baremetal.gpu_cluster.collective_static:
    host: "{{ inventory_hostname }}"
    members: "{{ common_members }}"
    plan: "{{ common_port_plan }}"
    user: train
    torch_python: /opt/gpu-cluster/torch/bin/python
  register: static
"""

RETURN = r"""
static:
  description: What was read.
  returned: always
  type: dict
  contains:
    hostname:
      description: The node's own name.
      type: str
      returned: always
      sample: gpu01
    resolves:
      description: The addresses of each member's name, and of the node's own name, as this node sees them.
      type: dict
      returned: always
      sample: {gpu01: [192.0.2.11], gpu02: [192.0.2.12]}
    resolve_errors:
      description: Why a name has no address.
      type: dict
      returned: always
      sample: {}
    hosts_file:
      description: The lines of C(/etc/hosts) with the names that do not mean the fabric address alone.
      type: dict
      returned: always
      sample: {gpu01: [{line: 2, address: 127.0.1.1}]}
    interfaces:
      description:
        - The interfaces with addresses, and the one of the data network. Each has C(mtu) in bytes, C(state) (V(up),
          V(down) or V(no carrier)), C(mac), C(addresses), C(duplicated) (IPv6 addresses that somebody else has),
          C(speed_mbps) or null, and the values in force of C(rp_filter), C(arp_ignore) and C(arp_announce).
      type: dict
      returned: always
      sample:
        ens1f0:
          mtu: 9000
          state: up
          mac: "52:54:00:12:34:56"
          addresses: [192.0.2.11/24]
          duplicated: []
          speed_mbps: 100000
          rp_filter: 0
          arp_ignore: 0
          arp_announce: 0
    present:
      description: The names of all interfaces.
      type: list
      elements: str
      returned: always
      sample: [eno1, ens1f0]
    macs:
      description: The hardware addresses of all interfaces.
      type: list
      elements: str
      returned: always
      sample: ["52:54:00:12:34:56", "52:54:00:12:34:66"]
    routes:
      description: >-
        The way to the fabric address of each other member, with C(address), C(interface), C(source), C(gateway),
        C(mtu) in bytes (0 where the way has none of its own) and C(error).
      type: dict
      returned: always
      sample:
        gpu02: {address: 192.0.2.12, interface: ens1f0, source: 192.0.2.11, gateway: "", mtu: 0, error: ""}
    neighbours:
      description: Hardware address by address of the other members, where the kernel knows it for certain.
      type: dict
      returned: always
      sample: {192.0.2.12: "52:54:00:12:34:57"}
    neighbour_tables:
      description: >-
        Of the kernel's tables of neighbours, by family, C(gc_thresh2), C(gc_thresh3) and C(table_fulls), how often
        there was no place for a new neighbour since boot. Empty in a container, where the kernel does not show them.
      type: dict
      returned: always
      sample: {ipv4: {gc_thresh2: 512, gc_thresh3: 1024, table_fulls: 0}}
    duplicates:
      description: Who else answers for the fabric address of this node; null when nobody could be asked.
      type: list
      elements: dict
      returned: always
      sample: []
    ephemeral_range:
      description: First and last port of C(net.ipv4.ip_local_port_range).
      type: list
      elements: int
      returned: always
      sample: [32768, 60999]
    reserved_ports:
      description: First and last port of each entry of C(net.ipv4.ip_local_reserved_ports).
      type: list
      elements: list
      returned: always
      sample: []
    listeners:
      description: >-
        What listens on ports of the rendezvous, other than a check. C(port), C(address), C(program), C(pid) (0 where it
        is not known) and C(user).
      type: list
      elements: dict
      returned: always
      sample: [{port: 29500, address: "*", program: python3, pid: 4711, user: train}]
    limits:
      description: Soft limits of a session of O(user), C(memlock) in bytes; -1 is unlimited.
      type: dict
      returned: always
      sample: {nofile: 524288, memlock: -1, nproc: 2060000}
    cpus:
      description: Number of processors.
      type: int
      returned: always
      sample: 128
    rdma:
      description: The devices that can do RDMA.
      type: list
      elements: str
      returned: always
      sample: [mlx5_0]
    packet_filter:
      description:
        - What the node's own rules would do to connections of the port plan. C(readable), or C(why) not; C(inbound)
          and C(outbound) have, by peer, intervals of ports with C(first), C(last), C(verdict) and C(rule). A peer
          for which nothing would be blocked is left out.
      type: dict
      returned: always
      sample: {readable: true, why: "", inbound: {}, outbound: {}}
    nccl:
      description:
        - Which interface NCCL takes for the first meeting of the ranks. C(library), its C(version), C(interface) and
          C(address), and C(settings) that decide about it, each with C(value) and the file that is its C(source).
        - C(error) is why NCCL can't begin, in its own words. C(why) is why a library that is there could not be asked.
          All are empty where there is none.
      type: dict
      returned: always
      sample:
        library: /opt/gpu-cluster/torch/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2
        version: 2.28.9
        interface: ens1f0
        address: 192.0.2.11
        error: ""
        settings: {NCCL_SOCKET_IFNAME: {value: "=ens1f0", source: /etc/gpu-cluster/environment}}
        why: ""
    environment:
      description:
        - The variables of C(/etc/environment) and C(/etc/gpu-cluster/environment) that gloo and NCCL read in jobs,
          with C(value) and C(source), the file. They begin with C(GLOO_), C(NCCL_) or C(TORCH_NCCL_).
      type: dict
      returned: always
      sample: {GLOO_SOCKET_IFNAME: {value: ens1f0, source: /etc/gpu-cluster/environment}}
    denials:
      description: How many accesses SELinux refused in the last ten minutes; null where there is no SELinux.
      type: int
      returned: always
      sample: 0
    host_keys:
      description: Type and fingerprint of the node's own public ssh host keys. Empty where they are not known.
      type: list
      elements: str
      returned: always
      sample: ["ED25519 SHA256:uMNp3n0dXZQhxhqZ8Kq8x9R5Xv3yL1c7vC2rJr6Xj2k"]
    known_hosts:
      description:
        - The single keys of other members in the files that ssh of O(user) and of root reads. C(user), C(member), the
          C(name) that ssh looks up, and C(keys), each C(key) as in C(host_keys) and the C(place) with its line.
        - Names for which there is a line of an authority are left out. Empty also where a file is too large.
      type: list
      elements: dict
      returned: always
      sample:
        - user: train
          member: gpu02
          name: 192.0.2.12
          keys:
            - key: ED25519 SHA256:uMNp3n0dXZQhxhqZ8Kq8x9R5Xv3yL1c7vC2rJr6Xj2k
              place: /home/train/.ssh/known_hosts:3
    disk:
      description: Free space in bytes where the check keeps its files.
      type: list
      elements: dict
      returned: always
      sample: [{path: /run/gpu-cluster-check, free_bytes: 3355443200}]
    epoch:
      description: The node's clock when the look began, in seconds since 1970.
      type: float
      returned: always
      sample: 1795291200.5
    seconds:
      description: How long the look took.
      type: float
      returned: always
      sample: 0.41
    clock:
      description: >-
        C(offset_seconds) of the node's clock from the controller's, above zero when the node is ahead, and
        C(uncertainty_seconds), how far off that number can be.
      type: dict
      returned: always
      sample: {offset_seconds: 0.012, uncertainty_seconds: 0.31}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_step


def main() -> None:
    module = AnsibleModule(argument_spec=facts_step.SPEC, supports_check_mode=True)
    result = facts_step.run_step(module.run_command, module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
