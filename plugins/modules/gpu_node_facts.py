#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module gpu_node_facts: what a node has of the GPU stack. Reads only."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_node_facts
short_description: Read the GPU stack of a node
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads kernels, GPUs, driver, Fabric Manager, CUDA toolkits, NCCL, PyTorch, Open MPI, network cards and ssh
    certificates of a node. Changes nothing. Usually takes less than one second.
  - Reads files first. Calls the commands C(dmesg), C(ethtool), C(grubby), C(journalctl), C(modinfo), C(nvidia-smi),
    C(ompi_info), C(rpm) and C(systemctl), each only if needed, and each with a timeout. C(nvidia-smi) has 30 seconds,
    because it hangs on a broken GPU; RV(ignore:ansible_facts.gpu_node.smi_problem) then has the reason.
  - Runs as any user. Without root the newest installed kernel is reported as the default of the boot loader, and Xid
    errors are missing if users cannot read the kernel's log.
  - Does not import PyTorch without O(import_torch). The versions of PyTorch and of the NCCL in its wheel are read from
    the files of the environment. PyTorch from a wheel uses that NCCL and not the system's, independent of
    C(LD_LIBRARY_PATH).
options:
  root:
    description:
      - Root folder of the node's files. Commands are searched in C(usr/sbin), C(usr/bin), C(sbin) and C(bin) below it.
    type: path
    default: /
  torch_prefix:
    description: Path of the Python environment with PyTorch, a virtual environment or a conda prefix.
    type: path
    default: /opt/gpu-cluster/torch
  import_torch:
    description:
      - Whether the environment's interpreter imports PyTorch to read the versions. The import takes seconds, and its
        timeout is 60 seconds. If it fails, there is a warning, and the versions are read from the files.
    type: bool
    default: false
  openmpi_prefix:
    description: The folder above C(bin/ompi_info) of Open MPI. If there is none, C(ompi_info) of the system is used.
    type: path
    default: /usr/lib64/openmpi
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.facts
attributes:
  check_mode:
    support: full
    details: Same behaviour as without check mode.
  diff_mode:
    support: none
    details: There is nothing to compare.
  facts:
    support: full
  platform:
    platforms: posix
    details: Linux. A node without a GPU answers with empty values.
"""

EXAMPLES = r"""
- name: Read what the node has of the GPU stack
  baremetal.gpu_cluster.gpu_node_facts:

- name: Show the GPUs
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node.gpus | map(attribute='model') | list }}"

- name: Ask PyTorch itself which NCCL it uses
  baremetal.gpu_cluster.gpu_node_facts:
    torch_prefix: /opt/conda/envs/train
    import_torch: true
"""

RETURN = r"""
ansible_facts:
  description: The facts. Every key is always present; an unknown value is an empty string, list or dictionary, or null.
  returned: always
  type: dict
  contains:
    gpu_node:
      description: The GPU stack of the node.
      returned: always
      type: dict
      contains:
        kernel:
          description:
            - C(running), C(installed) without rescue images, C(arguments) of the running one.
            - C(boots) is the default of the boot loader, or the newest installed one if the default cannot be read.
              Empty when no kernel is installed, as in a container.
          returned: always
          type: dict
        secure_boot:
          description: Whether Secure Boot is on. Null without UEFI.
          returned: always
          type: bool
        pci:
          description:
            - C(gpus) with C(address), C(device) (four hexadecimal digits), C(model) and the C(driver) that holds it,
              and C(nvswitches) with C(address) and C(device). These are read from the PCI bus, with or without a
              driver.
          returned: always
          type: dict
        driver:
          description:
            - C(loaded) is the version in the kernel, C(user_space) that of the libraries. When they differ,
              nvidia-smi fails with "Driver/library version mismatch" until a reboot.
            - C(kind) is V(open) or V(proprietary), of the loaded module, else of the one for the kernel that boots.
            - C(modules) has an entry for every installed kernel, the version of its module, empty when it has none.
          returned: always
          type: dict
        gpus:
          description:
            - What nvidia-smi shows, each with C(index), C(uuid), C(model), C(memory_mib) in MiB, C(pci_address),
              C(ecc) and C(mig) (true, false, or null where the GPU has no such thing), and C(xids), the numbers that
              the kernel's log has since boot.
            - Empty when no driver is loaded.
          returned: always
          type: list
          elements: dict
        smi_problem:
          description: Error of nvidia-smi in words. Empty without an error.
          returned: always
          type: str
        cuda_problem:
          description:
            - Why CUDA does not start although nvidia-smi shows GPUs, in words. Empty if it starts.
            - To know it, a process calls C(cuInit()), which loads the kernel module nvidia-uvm if that is not loaded.
          returned: always
          type: str
        cuda_gpus:
          description:
            - The GPUs that CUDA shows where it starts, in the order of nvidia-smi, each with its C(capability), as
              V(9.0), and its compute C(mode), V(default), V(exclusive process) or V(prohibited), empty when it is
              another one. Of a GPU that is divided by MIG, CUDA shows one part.
          returned: always
          type: list
          elements: dict
        rdma:
          description:
            - C(devices) are the names of the RDMA devices. C(peer_memory) says whether nvidia_peermem or its
              predecessor is loaded.
            - C(redirecting_ports) are the PCI addresses of ports of switches that redirect data between a GPU and an
              RDMA device through the processor (ACS). Only root can read that; empty for others.
          returned: always
          type: dict
        fabric_manager:
          description: C(version) of the package, and whether the service is C(active), null when it is not installed.
          returned: always
          type: dict
        persistence_active:
          description: Whether nvidia-persistenced runs. Null when it is not installed.
          returned: always
          type: bool
        cuda:
          description:
            - C(versions) of the toolkits, as V(13.0), the C(default) that C(/usr/local/cuda) names, and the newest
              version that the loaded driver C(driver_supports).
          returned: always
          type: dict
        nccl:
          description: C(system) is the NCCL of the system, C(torch) the one that PyTorch loads.
          returned: always
          type: dict
        torch:
          description: C(version) of PyTorch, the C(cuda) that it was built for, and the C(prefix) where it was found.
          returned: always
          type: dict
        openmpi:
          description: Version of Open MPI.
          returned: always
          type: str
        images:
          description:
            - The images of containers that M(baremetal.gpu_cluster.container_images) has noted, with C(name) and C(id),
              empty without an image of that name. An empty list if there are none, and for users other than root.
          returned: always
          type: list
          elements: dict
        nics:
          description:
            - All interfaces but the loopback one, with C(name), C(driver), C(model), C(speed_mbit) in Mbit/s (10^6)
              or null, C(mtu) in bytes, C(firmware), and the hardware C(address).
          returned: always
          type: list
          elements: dict
        ssh:
          description:
            - The certificates of M(baremetal.gpu_cluster.ssh_mesh), each with its C(holder) (V(host) or a user),
              C(kind), C(key_id), C(serial), C(principals), C(valid_from) and C(valid_until) in UTC, C(days_left) in
              whole days, C(authority), the fingerprint of the key that signed it, C(trusts), the fingerprints of the
              authorities whose certificates of this kind the node takes from others, and C(problem), in words why it
              does not do now, empty when it does.
            - Empty if there are none. Revocation is not checked.
          returned: always
          type: list
          elements: dict
  sample:
    gpu_node:
      kernel:
        running: 5.14.0-503.el9.x86_64
        boots: 5.14.0-503.el9.x86_64
        installed: [5.14.0-503.el9.x86_64]
        arguments: root=/dev/sda1 ro
      secure_boot: false
      pci:
        gpus:
          - address: "0000:1b:00.0"
            device: "2330"
            model: GH100 [H100 SXM5 80GB]
            driver: nvidia
        nvswitches:
          - address: "0000:07:00.0"
            device: "22a3"
      driver:
        loaded: 580.95.05
        kind: open
        user_space: 580.95.05
        modules:
          5.14.0-503.el9.x86_64: 580.95.05
        nouveau_loaded: false
      gpus:
        - index: 0
          uuid: GPU-c7a0294c-c2c2-5476-438c-fb468eaa223b
          model: NVIDIA H100 80GB HBM3
          memory_mib: 81559
          pci_address: "0000:1b:00.0"
          ecc: true
          mig: false
          xids: []
      smi_problem: ""
      cuda_problem: ""
      cuda_gpus:
        - capability: "9.0"
          mode: default
      rdma:
        devices: [mlx5_0]
        peer_memory: false
        redirecting_ports: []
      fabric_manager:
        version: 580.95.05
        active: true
      persistence_active: true
      cuda:
        versions: ["12.8", "13.0"]
        default: "13.0"
        driver_supports: "13.0"
      nccl:
        system: 2.28.9
        torch: 2.29.7
      torch:
        version: 2.13.0+cu130
        cuda: "13.0"
        prefix: /opt/gpu-cluster/torch
      openmpi: 4.1.1
      images:
        - name: localhost/train:1
          id: 9a99bb3ddd041e66bf5350a7b075efd07ca8a6295cdaddcb6a7696a1156efea0
      nics:
        - name: ens1f0
          driver: mlx5_core
          model: MT2892 Family [ConnectX-6 Dx]
          speed_mbit: 100000
          mtu: 9000
          firmware: 22.35.1012 (MT_0000000359)
          address: 02:00:00:00:00:01
      ssh:
        - holder: host
          kind: host
          key_id: host@gpu07
          serial: 1795277506461
          principals: [gpu07, 198.18.20.17]
          authority: SHA256:LwRGr5dGxAWdSNO84LLh6RhYEotZgtFbijqL1t3aE0g
          trusts: ["SHA256:LwRGr5dGxAWdSNO84LLh6RhYEotZgtFbijqL1t3aE0g"]
          valid_from: 2026-11-20 16:11 UTC
          valid_until: 2027-11-21 16:11 UTC
          days_left: 364
          problem: ""
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import step


def main() -> None:
    """Read and answer."""
    module = AnsibleModule(argument_spec=step.SPEC, supports_check_mode=True)
    module.exit_json(**step.run_step(module.run_command, module.params))


if __name__ == "__main__":
    main()
