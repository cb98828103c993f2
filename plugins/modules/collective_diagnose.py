#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: collective_diagnose
short_description: Judge a collective check and name the culprits
version_added: "0.1.0"
description:
  - Turns the results of all nodes into a verdict, findings with cause and fix, and bandwidth per buffer size. Runs
    once, on the controller, and connects to nothing.
  - The task itself does not fail on a bad verdict, so that the playbook decides which hosts fail; see the example.
    A node without a result is an error in the verdict.
  - A node without an NVIDIA device is told on the console, and is never among RV(report.gpu_verified).
  - In check mode only O(static) and O(facts) are judged, which the findings C(GC-NODE), C(GC-FW), C(GC-NCCL),
    C(GC-CLOCK), C(GC-VER), C(GC-GPU) and C(GC-SSH) are made of, and a host without an answer is named. The verdict is
    V(NOT VALIDATED) then, whatever is found.
  - "Bandwidth as nccl-tests defines it (doc/PERFORMANCE.md): algbw = size / time and busbw = algbw * 2 (n - 1) / n,
    in GB/s of 10**9 bytes,
    where time is the median over iterations of the slowest rank."
options:
  run_id:
    description: Name of the run.
    type: str
    required: true
  started:
    description: When the run began, in UTC, such as V(2026-01-31T12:00:00Z). Without it the report has no duration.
    type: str
    default: ""
  times:
    description:
      - Step of the run to when it began, in UTC by the clock of the controller, such as V(2026-01-31T12:00:00.25Z).
        The report tells from it, with O(started), how long each step took.
      - Usual names are V(look), V(launch), V(mesh), V(collective), V(openmpi) and V(facts). A step
        ends where the next one begins.
    type: dict
    default: {}
  strict:
    description: Fail when a text of the run is explained by nothing.
    type: bool
    default: false
  limits:
    description: What the network has to reach at least. What breaks one of these limits is an error; without any, the
      times and rates of a run are judged only by comparing its nodes with each other.
    type: dict
    default: {}
    suboptions:
      sizes:
        description: For buffer sizes of the all_reduce, each at most once.
        type: list
        elements: dict
        suboptions:
          size_bytes:
            description: The buffer of one rank, in bytes, at least 4. It has to be one that is measured.
            type: int
            required: true
          busbw_gb_per_s_min:
            description: Least bus bandwidth in GB/s of 10**9 bytes, as nccl-tests counts it. Above 0.
            type: float
          milliseconds_max:
            description: Most milliseconds of the median time. Above 0.
            type: float
      links:
        description: For each directed link between two nodes, as the mesh measures it with one connection.
        type: dict
        suboptions:
          bytes_per_second_min:
            description: Least rate of a payload of 1 MiB, in bytes per second. Above 0.
            type: float
          connect_milliseconds_max:
            description: Most milliseconds of a handshake, which is one round trip. Above 0.
            type: float
          retransmits_max:
            description: Most segments that are sent again while 1 MiB passes, 0 or more.
            type: int
  user:
    description: User who ran the ranks, empty for root.
    type: str
    default: ""
  known_members:
    description: The members as C(common_members) of role C(common) has them. O(static) is judged where this and
      O(port_plan) are given.
    type: list
    elements: dict
    default: []
  port_plan:
    description: The port plan, C(common_port_plan) of role C(common).
    type: dict
    default: {}
  labels:
    description: Host to its labels, as P(baremetal.gpu_cluster.collective_labels#filter) returns them. Failing links
      are grouped by them.
    type: dict
    default: {}
  static:
    description: Host to the result of M(baremetal.gpu_cluster.collective_static), empty for a host without one.
    type: dict
    default: {}
  backend:
    description: Backend of C(torch.distributed) that the ranks used.
    type: str
    choices: [gloo, nccl]
    default: gloo
  members:
    description: Inventory names of all members of the cluster, in rank order.
    type: list
    elements: str
    required: true
  selected:
    description: The members that this run was meant for. Fewer than O(members) means V(NOT VALIDATED), never
      V(PASSED).
    type: list
    elements: str
    required: true
  launch:
    description: Host to the result of M(baremetal.gpu_cluster.collective_launch), empty for a host without one.
    type: dict
    required: true
  probe:
    description: The same for M(baremetal.gpu_cluster.collective_probe).
    type: dict
    required: true
  go:
    description: The same for M(baremetal.gpu_cluster.collective_go).
    type: dict
    required: true
  collect:
    description: The same for M(baremetal.gpu_cluster.collective_collect).
    type: dict
    required: true
  plan:
    description: Result of the filter P(baremetal.gpu_cluster.collective_plan#filter); empty when nobody took part.
    type: dict
    required: true
  pairs:
    description: Last result of the filters P(baremetal.gpu_cluster.collective_pairs#filter) and
      P(baremetal.gpu_cluster.collective_pair_results#filter), which say who is at fault when the ranks do not.
    type: dict
    default: {}
  openmpi_job:
    description: Result of the filter P(baremetal.gpu_cluster.collective_mpi_job#filter). Without it the report says
      that nobody asked for Open MPI.
    type: dict
    default: {}
  openmpi:
    description: Host to the result of M(baremetal.gpu_cluster.collective_mpi), of the one host that ran it.
    type: dict
    default: {}
  openmpi_clear:
    description: Host to the result of M(baremetal.gpu_cluster.collective_mpi) with C(clear). A host that could not be
      reached for it, or for O(facts), is named.
    type: dict
    default: {}
  facts:
    description:
      - Host to the result of M(baremetal.gpu_cluster.gpu_node_facts), empty for a host without one. The versions of
        the nodes are compared with O(pins) first, then with each other, and the nodes with another one are named.
    type: dict
    default: {}
  pins:
    description: Host to what the inventory wants of it, as P(baremetal.gpu_cluster.collective_pins#filter) returns.
    type: dict
    default: {}
  report_dir:
    description:
      - Folder on the controller for C(report.txt), C(report.json), C(report.html), C(junit.xml) and C(report.prom).
        Empty writes no files.
      - A C(report.json) that is there already is what the new one is compared with.
      - A file that cannot be written is a warning in the report and in RV(missing_files). What was there stays, and
        the verdict is the same.
    type: path
    default: ""
attributes:
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on
      the controller.
    support: full
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details:
      - It changes nothing on any node; the report files are its output and are written in check mode too.
  diff_mode:
    description: Will return details on what has changed, or possibly needs changing in C(check_mode), when in diff
      mode.
    support: none
  platform:
    description: Target OS that the action works on.
    support: full
    platforms: posix
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Judge the run
  baremetal.gpu_cluster.collective_diagnose:
    run_id: "{{ run_id }}"
    members: "{{ groups['gpu_cluster'] }}"
    selected: "{{ ansible_play_hosts_all }}"
    launch: "{{ hostvars | baremetal.gpu_cluster.collective_results(ansible_play_hosts_all, 'launch') }}"
    probe: "{{ hostvars | baremetal.gpu_cluster.collective_results(ansible_play_hosts_all, 'probe') }}"
    go: "{{ hostvars | baremetal.gpu_cluster.collective_results(ansible_play_hosts_all, 'go') }}"
    collect: "{{ hostvars | baremetal.gpu_cluster.collective_results(ansible_play_hosts_all, 'collect') }}"
    plan: "{{ plan }}"
    facts: "{{ hostvars | baremetal.gpu_cluster.collective_results(ansible_play_hosts_all, 'facts') }}"
    pins: "{{ hostvars | baremetal.gpu_cluster.collective_pins(ansible_play_hosts_all) }}"
  run_once: true
  register: diagnosis

- name: Fail on the culprits only
  ansible.builtin.assert:
    that: inventory_hostname not in diagnosis.culprits
    fail_msg: "{{ diagnosis.culprits[inventory_hostname] }}"
"""

RETURN = r"""
verdict:
  description: V(PASSED), V(FAILED) or V(NOT VALIDATED).
  returned: always
  type: str
  sample: PASSED
headline:
  description: The verdict as one sentence with its reason or its numbers.
  returned: always
  type: str
  sample: "PASSED: world 3, 3 nodes, all_reduce over gloo exact in every iteration: 4 KiB 0.61 ms busbw 0.00896 GB/s"
culprits:
  description: Host to the causes of its errors.
  returned: always
  type: dict
  sample:
    gpu02: "GC-NET-001 inbound connections of gpu02 fail on the data network: 8 of 8 probes of the ephemeral ports
      dropped (no answer)"
missing_files:
  description: The files that could not be written into O(report_dir); an older one of that name may be there.
  returned: always
  type: list
  elements: str
  sample: []
report:
  description: Everything, as in C(report.json); its C(schema_version) is 2, and C(docs/report.schema.json) its shape.
  returned: always
  type: dict
  contains:
    notes:
      description: What a person must know to read the verdict, such as nodes whose GPUs were not checked.
      returned: always
      type: list
      elements: str
      sample: ["GPU stages not checked on n1, n2, n3 (no NVIDIA device)"]
    stack:
      description: Host to the versions that were compared.
      returned: always
      type: dict
    gpu_verified:
      description: The hosts whose GPUs took part in a run that passed. Empty as long as O(backend) is V(gloo).
      returned: always
      type: list
      elements: str
      sample: []
"""
