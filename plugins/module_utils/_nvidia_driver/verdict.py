# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a driver, why a node has to reboot, and what a person has to do, in sentences. Pure.

``facts`` are those of the module gpu_node_facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import cuda
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.readings import (
    ENROLLED,
    REQUESTED,
)

NOT_COMPARED = -1
#: Xids that mean a broken GPU, memory or link rather than a failed program: double-bit ECC error (48), NVLink (74),
#: fallen off the bus (79), uncontained ECC error (95), GSP (119, 120). docs.nvidia.com/deploy/xid-errors
HARDWARE_XIDS = (48, 74, 79, 95, 119, 120)

#: What helps where the open modules and the kernel's memory management do not fit together.
FIX_HMM = (
    "write `options nvidia_uvm uvm_disable_hmm=1` to a file of /etc/modprobe.d of the host and reboot it, or set "
    "nvidia_driver_kind: proprietary"
)
FIX_CUDA = "`journalctl -k -g NVRM` of the host may say why; a reboot may help"
FIX_NO_DEVICE = (
    "look whether /dev/nvidia0 and the others are there and open to users (`nvidia-modprobe -c 0 -u` makes them), and "
    "whether CUDA_VISIBLE_DEVICES is set for everybody"
)
FIX_FABRIC = "restart nvidia-fabricmanager, and look at its journal: it has not set up the NVSwitches"
FIX_COMPAT = (
    "let every program load the driver's own libcuda.so.1: take the package cuda-compat and other copies out of "
    "LD_LIBRARY_PATH and /etc/ld.so.conf.d, and run ldconfig"
)
#: By the result of cuInit().
FIXES_CUDA = {100: FIX_NO_DEVICE, 802: FIX_FABRIC, 803: FIX_COMPAT, 804: FIX_COMPAT}

STEP_IMPORT = "run `mokutil --import {certificate}` on the host, and choose a password for one use"
STEP_CONSOLE = (
    "reboot with its console at hand, and in the blue MOK manager choose Enroll MOK, Continue, Yes and enter that "
    "password within ten seconds"
)
STEP_AGAIN = "run the playbook again"


def fits(pin: str, version: str) -> bool:
    """Whether a version is the pinned one, or begins with the pinned parts: ``580`` and ``580.95.05``."""
    return f"{version}.".startswith(f"{pin}.")


def reasons(driver: Mapping[str, Any], version: str, kind: str, target: str) -> list[str]:
    """Why the installed driver does not run yet. ``driver`` also says which kernel is ``running``."""
    if not version:
        return []
    found = []
    loaded = driver["loaded"]
    if driver["nouveau_loaded"]:
        found.append("nouveau is loaded")
    if not loaded:
        found.append(f"the driver {version} is installed and not loaded")
    elif loaded != version:
        found.append(f"the driver {loaded} is loaded, and {version} is installed")
    elif driver["kind"] not in ("", kind):
        found.append(f"the {driver['kind']} modules are loaded, and the {kind} ones are installed")
    if found and driver["running"] != target:
        found.append(f"the kernel {driver['running']} runs, and {target} boots next")
    return found


def reasons_after_removal(driver: Mapping[str, Any]) -> list[str]:
    """Why a removed driver is still there."""
    return [f"the driver {driver['loaded']} is removed and still loaded"] if driver["loaded"] else []


def secure_boot_steps(certificate: str, state: str) -> list[str]:
    """What a person must do before a kernel with Secure Boot loads a module that DKMS has signed."""
    if state == ENROLLED:
        return []
    if state == REQUESTED:
        return [
            f"Secure Boot is on, and the key {certificate} waits to be confirmed: {STEP_CONSOLE}; {STEP_AGAIN}",
        ]
    steps = [STEP_IMPORT.format(certificate=certificate), STEP_CONSOLE, STEP_AGAIN]
    numbered = "; ".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
    return [f"Secure Boot is on, and the firmware does not know the key with which DKMS signs the module: {numbered}"]


def gpu_count_problems(facts: Mapping[str, Any], gpus: int) -> list[str]:
    """Whether the PCI bus shows as many GPUs as the inventory says."""
    found = [gpu["address"] for gpu in facts["pci"]["gpus"]]
    if gpus in (NOT_COMPARED, len(found)):
        return []
    where = f" ({', '.join(found)})" if found else ""
    return [
        f"the inventory says {_gpus(gpus)} (nvidia_driver_gpus), and the PCI bus shows {len(found)}{where}; look at "
        "`lspci -d 10de:` and the host's management controller, or correct gpu_cluster_gpus"
    ]


def running_problems(facts: Mapping[str, Any], pin: str, kind: str) -> list[str]:
    """What is wrong with a driver that should be running: versions, nouveau, GPUs, memory, services."""
    driver = facts["driver"]
    loaded, user_space = driver["loaded"], driver["user_space"]
    if not loaded:
        return ["the driver is not loaded; `modprobe nvidia` and `dmesg` on the host say why"]
    found = []
    if loaded != user_space or not fits(pin, loaded):
        found.append(f"the module is {loaded}, the libraries are {user_space or 'missing'}, and {pin} is asked for")
    if driver["kind"] not in ("", kind):
        found.append(f"the loaded modules are {driver['kind']}, and {kind} ones are asked for")
    if driver["nouveau_loaded"]:
        found.append("nouveau is loaded as well")
    return [*found, *_gpu_problems(facts), *_service_problems(facts)]


def fix_of_cuda(problem: str, kind: str) -> str:
    """What to do about a ``cuda_problem`` of the facts.  kind: that of the loaded modules, empty when unknown."""
    return FIX_HMM if cuda.is_hmm(problem, kind) else FIXES_CUDA.get(cuda.result(problem) or 0, FIX_CUDA)


def _gpu_problems(facts: Mapping[str, Any]) -> list[str]:
    gpus: Sequence[Mapping[str, Any]] = facts["gpus"]
    found = [f"nvidia-smi: {facts['smi_problem']}"] if facts["smi_problem"] else []
    # Facts of an older version, out of a cache, have none.
    problem = facts.get("cuda_problem", "")
    if problem and not _service_problems(facts):
        found.append(f"no CUDA program starts: {problem}; {fix_of_cuda(problem, facts['driver']['kind'])}")
    shown = {gpu["pci_address"] for gpu in gpus}
    missing = [gpu["address"] for gpu in facts["pci"]["gpus"] if gpu["address"] not in shown]
    if missing:
        found.append(
            f"nvidia-smi shows {len(gpus)} of {_gpus(len(facts['pci']['gpus']))}; {', '.join(missing)} missing"
        )
    without_ecc = [str(gpu["index"]) for gpu in gpus if gpu["ecc"] is False]
    if without_ecc and len(without_ecc) < len(gpus):
        found.append(f"ECC is off on GPU {', '.join(without_ecc)} and on elsewhere; `nvidia-smi -e 1` turns it on")
    for gpu in gpus:
        xids = [str(xid) for xid in gpu["xids"] if xid in HARDWARE_XIDS]
        if xids:
            found.append(
                f"GPU {gpu['index']} ({gpu['uuid']}, {gpu['pci_address']}) reported Xid {', '.join(xids)} since boot; "
                "look at it (nvidia-smi -q), then reboot the host or take it out"
            )
    return found


def _service_problems(facts: Mapping[str, Any]) -> list[str]:
    found = []
    loaded, manager = facts["driver"]["loaded"], facts["fabric_manager"]
    if facts["persistence_active"] is not True:
        found.append("nvidia-persistenced does not run; `systemctl status nvidia-persistenced` says why")
    if facts["pci"]["nvswitches"]:
        if manager["version"] != loaded:
            version = manager["version"] or "missing"
            found.append(f"Fabric Manager is {version}, and must be {loaded}: without it CUDA does not start")
        elif manager["active"] is not True:
            found.append("Fabric Manager does not run; `systemctl status nvidia-fabricmanager` says why")
    return found


def _gpus(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"
