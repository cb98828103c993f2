# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's devices out of the PCI tree of sysfs, without ``lspci``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DEVICES = "sys/bus/pci/devices"
NAMES = "usr/share/hwdata/pci.ids"
NVIDIA = "10de"
#: The first four digits of the class: VGA and 3D controllers are GPUs; "other bridge" of this vendor is an NVSwitch
#: (and on chipsets of before 2010 a network card, which no machine of this collection has).
#: pci-ids.ucw.cz, list of device classes; a DGX H100 in tests/unit/plugins/module_utils/_gpu_node/data/README.md.
GPU_CLASSES = ("0300", "0302")
NVSWITCH_CLASS = "0680"

_ADDRESS = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")


@dataclass(frozen=True)
class Device:
    """One PCI device; the numbers in lower case without ``0x``, ``kind`` as six digits of the class."""

    address: str
    vendor: str
    device: str
    kind: str
    driver: str


def number(text: str) -> str:
    """``10de`` of ``0x10DE``."""
    text = text.strip().lower()
    return text[2:] if text.startswith("0x") else text


def is_address(name: str) -> bool:
    """Whether it is the name of a device in sysfs."""
    return _ADDRESS.match(name) is not None


def address(text: str) -> str:
    """An address as sysfs spells it: ``0000:1b:00.0`` of ``00000000:1B:00.0``, the spelling of nvidia-smi."""
    domain, _colon, rest = text.strip().lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def gpus(devices: Iterable[Device]) -> list[Device]:
    """The GPUs, by address."""
    return sorted((one for one in devices if is_gpu(one)), key=lambda one: one.address)


def is_gpu(device: Device) -> bool:
    """Whether it is a GPU of NVIDIA."""
    return device.vendor == NVIDIA and device.kind[:4] in GPU_CLASSES


def nvswitches(devices: Iterable[Device]) -> list[Device]:
    """The NVSwitches, by address."""
    found = (one for one in devices if one.vendor == NVIDIA and one.kind[:4] == NVSWITCH_CLASS)
    return sorted(found, key=lambda one: one.address)


def device_names(text: str, wanted: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
    """Names of devices (vendor, device) out of ``pci.ids``: vendors start a line, devices follow after one tab."""
    missing = set(wanted)
    vendors = {vendor for vendor, _device in missing}
    found: dict[tuple[str, str], str] = {}
    vendor = ""
    for line in text.splitlines():
        if not line or line.startswith(("#", "\t\t")):
            continue
        if not line.startswith("\t"):
            vendor = line[:4]
            continue
        key = (vendor, line[1:5])
        if vendor in vendors and key in missing:
            found[key] = line[5:].strip()
    return found
