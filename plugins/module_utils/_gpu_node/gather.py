# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read everything that the facts of a GPU node are made of, below a root. The only part that knows all sources."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import (
    commands,
    cuda,
    driver,
    environment,
    images,
    kernel_log,
    nics,
    pci,
    rdma,
    smi,
    ssh,
    toolkit,
    tree,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._kernels import compare_kernels, newest_kernel

TORCH_PREFIX = "/opt/gpu-cluster/torch"
#: Where the package of EL is.
OPENMPI_PREFIX = "/usr/lib64/openmpi"
#: Deadlines in seconds. nvidia-smi hangs on a broken GPU; without the persistence daemon it wakes each GPU up first,
#: which takes 1 to 3 s for each (docs.nvidia.com/deploy/driver-persistence, overview).
SMI_SECONDS = 30.0
COMMAND_SECONDS = 2.0
IMPORT_SECONDS = 60.0
#: UEFI specification 2.10, 3.3: the variable and its GUID. In efivarfs four bytes of attributes, then one of value.
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#: The package was renamed with branch 580 (facts of the role nvidia_driver).
FABRIC_MANAGER_PACKAGES = ("nvidia-fabricmanager", "nvidia-fabric-manager")
FABRIC_MANAGER = "nvidia-fabricmanager.service"
PERSISTENCE = "nvidia-persistenced.service"
UNIT_FOLDERS = ("usr/lib/systemd/system", "etc/systemd/system")

ERR_HIDDEN = "the kernel log has Xid %s of %s, which nvidia-smi does not show"
ERR_NO_SMI = "a driver is loaded, but there is no nvidia-smi to ask"
ERR_NO_GPU = "nvidia-smi shows no GPU"

Ask = Callable[[Sequence[str], float], commands.Answer]


class Node:
    """The tree and the commands of one node. A command that the node does not have answers with a problem."""

    def __init__(self, root: str = "/", ask: Ask = commands.ask) -> None:
        self.root = root
        self._ask = ask

    def ask(
        self, *words: str, seconds: float = COMMAND_SECONDS, folders: Sequence[str] = commands.FOLDERS
    ) -> commands.Answer:
        """Run a command of this tree."""
        path = commands.find(self.root, words[0], folders)
        if not path:
            return commands.Answer(problem=f"there is no command {words[0]}")
        return self._ask([path, *words[1:]], seconds)

    def read(self, path: str) -> str:
        """The text of a file, empty when it cannot be read."""
        return tree.read(self.root, path)


def gather(
    node: Node, torch_prefix: str = TORCH_PREFIX, import_torch: bool = False, openmpi_prefix: str = OPENMPI_PREFIX
) -> tuple[dict[str, Any], list[str]]:
    """All facts, and what could not be done although it was asked for."""
    the_kernel = kernel(node)
    devices = tree.nvidia_devices(node.root)
    cards = network_cards(node)
    names = _device_names(node, devices, cards)
    the_driver = drivers(node, the_kernel)
    logged = xids(node) if the_driver["loaded"] or pci.gpus(devices) else {}
    graphics, cuda_of_driver, problem = ask_gpus(node, logged) if the_driver["loaded"] else ([], "", "")
    trouble, by_cuda = ask_cuda(node) if graphics and not problem else ("", [])
    torch, warnings = torch_of(node, torch_prefix, import_torch)
    active = _active(node, (FABRIC_MANAGER, PERSISTENCE))
    return {
        "kernel": the_kernel,
        "secure_boot": secure_boot(tree.read_bytes(node.root, SECURE_BOOT)),
        "pci": {
            "gpus": [
                {
                    "address": one.address,
                    "device": one.device,
                    "model": names.get((one.vendor, one.device), ""),
                    "driver": one.driver,
                }
                for one in pci.gpus(devices)
            ],
            "nvswitches": [{"address": one.address, "device": one.device} for one in pci.nvswitches(devices)],
        },
        "driver": the_driver,
        "gpus": graphics,
        "smi_problem": problem,
        "cuda_problem": trouble,
        "cuda_gpus": [{"capability": one.capability, "mode": one.mode} for one in by_cuda],
        "rdma": rdma_devices(node, [one.address for one in pci.gpus(devices)]),
        "fabric_manager": {"version": fabric_manager(node), "active": active[FABRIC_MANAGER]},
        "persistence_active": active[PERSISTENCE],
        "cuda": dict(toolkits(node), driver_supports=cuda_of_driver),
        "nccl": {"system": system_nccl(node), "torch": torch.nccl},
        "torch": {"version": torch.version, "cuda": torch.cuda, "prefix": torch_prefix if torch.version else ""},
        "openmpi": openmpi(node, openmpi_prefix),
        "images": images.images(node.read),
        "nics": [
            {key: value for key, value in card.items() if key != "pci"}
            | {"model": names.get(card["pci"], "") if card["pci"] else ""}
            for card in cards
        ],
        "ssh": ssh.certificates(node.read, lambda path: tree.names(node.root, path), time.time()),
    }, warnings


# --- the kernel -----------------------------------------------------------------------------------------------------


def kernel(node: Node) -> dict[str, Any]:
    """Which kernel runs, which one would after a reboot, and which ones there are."""
    running = node.read("proc/sys/kernel/osrelease")
    installed = tree.installed_kernels(node.root)
    boots = ""
    if installed:
        answer = node.ask("grubby", "--default-kernel")
        image = os.path.basename(answer.out.strip()) if not answer.problem else ""
        boots = image[len("vmlinuz-") :] if image.startswith("vmlinuz-") else newest_kernel(running, installed)
        boots = boots or max(installed, key=_Release)
    return {"running": running, "boots": boots, "installed": installed, "arguments": node.read("proc/cmdline")}


class _Release:
    """A kernel release, ordered as rpm orders versions."""

    def __init__(self, release: str) -> None:
        self.release = release

    def __lt__(self, other: _Release) -> bool:
        return compare_kernels(self.release, other.release) < 0


def secure_boot(variable: bytes) -> bool | None:
    """Out of the firmware's variable; None where there is none: no UEFI, or a container."""
    return bool(variable[4]) if len(variable) == 5 else None


# --- the driver and the GPUs ----------------------------------------------------------------------------------------


def drivers(node: Node, the_kernel: Mapping[str, Any]) -> dict[str, Any]:
    """The loaded driver, the libraries, and the module that each installed kernel would load."""
    loaded, kind = driver.parse_proc_version(node.read(driver.PROC_VERSION))
    loaded = loaded or node.read("sys/module/nvidia/version")
    modules = {}
    for release in the_kernel["installed"]:
        base = [] if node.root == "/" else ["-b", node.root]
        modules[release], its_kind = driver.parse_modinfo(node.ask("modinfo", *base, "-k", release, "nvidia").out)
        if not loaded and release == the_kernel["boots"]:
            kind = its_kind
    user_space = ""
    for folder in driver.LIBRARY_FOLDERS:
        linked = tree.resolve(node.root, f"{folder}/{driver.LIBRARY}.1")
        user_space = user_space or driver.library_version(tree.names(node.root, folder), linked)
    return {
        "loaded": loaded,
        "kind": kind,
        "user_space": user_space,
        "modules": modules,
        "nouveau_loaded": tree.exists(node.root, "sys/module/nouveau"),
    }


def xids(node: Node) -> dict[str, list[int]]:
    """The Xids since boot, as far as this user may read the kernel's log."""
    answer = node.ask("journalctl", "-k", "-b", "--no-pager", "-q", "-o", "cat", "-g", kernel_log.PATTERN)
    # 1 without a message: nothing matched.
    text = answer.out if answer.out.strip() else node.ask("dmesg").out
    return kernel_log.xids(text)


def ask_gpus(node: Node, logged: Mapping[str, list[int]]) -> tuple[list[dict[str, Any]], str, str]:
    """What nvidia-smi shows: the GPUs, the CUDA that the driver supports, and what is wrong."""
    if not commands.find(node.root, "nvidia-smi"):
        return [], "", ERR_NO_SMI
    answer = node.ask("nvidia-smi", *smi.QUERY, seconds=SMI_SECONDS)
    # It may print its rows and end badly all the same, for example with a damaged infoROM.
    found, problems = smi.parse_rows(answer.out)
    if answer.problem:
        problems = [answer.problem]
    cuda = ""
    if not answer.problem:
        header = node.ask("nvidia-smi", *smi.HEADER, seconds=SMI_SECONDS)
        cuda = smi.parse_cuda(header.out)
        if not found and not problems:
            problems = [ERR_NO_GPU]
    shown = {one.pci_address for one in found}
    problems += [
        ERR_HIDDEN % (", ".join(str(number) for number in numbers), address)
        for address, numbers in logged.items()
        if address not in shown
    ]
    gpus = [
        {
            "index": one.index,
            "uuid": one.uuid,
            "model": one.model,
            "memory_mib": one.memory_mib,
            "pci_address": one.pci_address,
            "ecc": one.ecc,
            "mig": one.mig,
            "xids": logged.get(one.pci_address, []),
        }
        for one in found
    ]
    return gpus, cuda, "; ".join(problems)


def ask_cuda(node: Node) -> tuple[str, list[cuda.Gpu]]:
    """Why CUDA does not start on GPUs that nvidia-smi shows, and the GPUs that it shows where it does.

    Nothing where no Python can be asked.
    """
    if not commands.find(node.root, "python3"):
        return "", []
    answer = node.ask("python3", "-I", "-c", cuda.PROGRAM, cuda.LIBRARY, seconds=SMI_SECONDS)
    return cuda.problem(answer.out, answer.problem), cuda.gpus(answer.out)


def rdma_devices(node: Node, gpus: Sequence[str]) -> dict[str, Any]:
    """The RDMA devices, and on a node with GPUs what is between these and them."""
    names = tree.names(node.root, rdma.DEVICES)
    ports = []
    if names and gpus:
        ways = [rdma.chain(tree.resolve(node.root, f"{pci.DEVICES}/{one}")) for one in gpus]
        others = [
            rdma.chain(
                tree.resolve(node.root, f"{pci.DEVICES}/{tree.target_name(node.root, f'{rdma.DEVICES}/{one}/device')}")
            )
            for one in names
        ]
        ports = rdma.ports_between(ways, others)
    return {
        "devices": names,
        "peer_memory": any(tree.exists(node.root, path) for path in rdma.PEER_MEMORY),
        "redirecting_ports": [
            port for port in ports if rdma.redirects(tree.read_bytes(node.root, f"{pci.DEVICES}/{port}/config"))
        ],
    }


def fabric_manager(node: Node) -> str:
    """The version of the installed Fabric Manager, which must be the driver's own."""
    if not any(tree.exists(node.root, f"{folder}/{FABRIC_MANAGER}") for folder in UNIT_FOLDERS):
        return ""
    # rpm says 1 when one of several packages is missing, and prints a sentence for it.
    answer = node.ask("rpm", "-q", "--qf", "=%{VERSION}\\n", *FABRIC_MANAGER_PACKAGES)
    return next((line[1:] for line in answer.out.splitlines() if line.startswith("=")), "")


def _active(node: Node, units: Iterable[str]) -> dict[str, bool | None]:
    """Whether services run; None for one that is not installed, or where systemd does not answer."""
    there = [unit for unit in units if any(tree.exists(node.root, f"{folder}/{unit}") for folder in UNIT_FOLDERS)]
    result: dict[str, bool | None] = dict.fromkeys(units)
    if there:
        states = node.ask("systemctl", "is-active", *there).out.split()
        if len(states) == len(there):
            result.update({unit: state == "active" for unit, state in zip(there, states)})
    return result


# --- what runs on them ----------------------------------------------------------------------------------------------


def toolkits(node: Node) -> dict[str, Any]:
    """The toolkits side by side, and the one that /usr/local/cuda names."""
    versions = []
    for name in tree.names(node.root, toolkit.FOLDER):
        version = toolkit.folder_version(name)
        if version and any(tree.exists(node.root, f"{toolkit.FOLDER}/{name}/{mark}") for mark in toolkit.MARKS):
            versions.append(version)
    default = toolkit.folder_version(os.path.basename(tree.resolve(node.root, toolkit.DEFAULT)))
    default = default or toolkit.parse_version_json(node.read(f"{toolkit.DEFAULT}/version.json"))
    return {"versions": toolkit.ordered(versions), "default": default}


def system_nccl(node: Node) -> str:
    """The NCCL of the system, by the name of its library."""
    for folder in driver.LIBRARY_FOLDERS:
        linked = tree.resolve(node.root, f"{folder}/{toolkit.NCCL}.2")
        version = driver.library_version(tree.names(node.root, folder), linked, toolkit.NCCL)
        if version:
            return version
    return ""


def torch_of(node: Node, prefix: str, import_torch: bool) -> tuple[environment.Torch, list[str]]:
    """The torch of an environment, by its files, or by its own interpreter when that is asked for."""
    place = tree.resolve(node.root, prefix)
    found = environment.Torch()
    for library in ("lib64", "lib"):
        for python in tree.names(node.root, f"{place}/{library}"):
            if python.startswith("python3") and not found.version:
                packages = f"{place}/{library}/{python}/site-packages"
                found = environment.parse(
                    tree.names(node.root, packages),
                    node.read(f"{packages}/torch/version.py"),
                    tree.names(node.root, f"{place}/conda-meta"),
                )
    if not import_torch or not found.version:
        return found, []
    answer = node.ask(
        "python", "-I", "-c", environment.IMPORT, seconds=IMPORT_SECONDS, folders=[f"{place}/bin".lstrip("/")]
    )
    imported = environment.parse_import(answer.out)
    if imported is None:
        return found, [f"torch of {prefix} could not be asked: {answer.problem or 'it printed something unexpected'}"]
    return imported, []


def openmpi(node: Node, prefix: str) -> str:
    """The version of Open MPI, its own prefix first: EL's is on no path until a module is loaded."""
    folders = (os.path.join(prefix, "bin").lstrip("/"), *commands.FOLDERS)
    words = node.ask("ompi_info", "--version", folders=folders).out.split()
    # "Open MPI v4.1.1"
    return next((word[1:] for word in words if word.startswith("v") and word[1:2].isdigit()), "")


def network_cards(node: Node) -> list[dict[str, Any]]:
    """All interfaces but the loopback one; ``pci`` is what the name of a card is looked up with."""
    cards = []
    for name in tree.names(node.root, nics.FOLDER):
        folder = f"{nics.FOLDER}/{name}"
        if name == nics.LOOPBACK or not tree.exists(node.root, f"{folder}/address"):
            continue
        physical = tree.exists(node.root, f"{folder}/device")
        # The kernel is asked by name, so only on the machine that runs it, or in a recorded tree with its own command.
        said = nics.parse_ethtool(node.ask("ethtool", "-i", name).out) if physical else {}
        link = tree.target_name(node.root, f"{folder}/device/driver")
        vendor, device = (pci.number(node.read(f"{folder}/device/{key}")) for key in ("vendor", "device"))
        cards.append(
            {
                "name": name,
                "driver": link or said.get("driver", "") or nics.device_type(node.read(f"{folder}/uevent")),
                "speed_mbit": nics.integer(node.read(f"{folder}/speed")),
                "mtu": nics.integer(node.read(f"{folder}/mtu")),
                "firmware": said.get("firmware-version", ""),
                "address": node.read(f"{folder}/address"),
                "pci": (vendor, device) if vendor else None,
            }
        )
    return cards


def _device_names(
    node: Node, devices: Iterable[pci.Device], cards: Iterable[Mapping[str, Any]]
) -> Mapping[tuple[str, str], str]:
    """Names for what was found; the list of all names, 1.4 MB, is read only when there is something to look up."""
    wanted = {(one.vendor, one.device) for one in devices} | {card["pci"] for card in cards if card["pci"]}
    return pci.device_names(node.read(pci.NAMES), wanted) if wanted else {}
