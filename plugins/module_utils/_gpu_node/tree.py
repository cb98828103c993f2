# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the files of a node below a root; nothing here raises for what is missing or not readable."""

from __future__ import annotations

import glob
import os

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci

MAXIMUM_LINKS = 16


def read(root: str, path: str) -> str:
    """The text of a file without white space around it, empty when it cannot be read."""
    try:
        # sysfs answers EINVAL for what makes no sense, such as the speed of a card without a link.
        with open(os.path.join(root, path.lstrip("/")), encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def read_bytes(root: str, path: str) -> bytes:
    """The same for a file that is no text."""
    try:
        with open(os.path.join(root, path.lstrip("/")), "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def names(root: str, path: str) -> list[str]:
    """The sorted names in a folder, empty when there is none."""
    try:
        return sorted(os.listdir(os.path.join(root, path.lstrip("/"))))
    except OSError:
        return []


def exists(root: str, path: str) -> bool:
    """Whether something is there, a link that leads nowhere included."""
    return os.path.lexists(os.path.join(root, path.lstrip("/")))


def target_name(root: str, path: str) -> str:
    """The last part of what a link names, empty where it is no link: ``nvidia`` of a device's link ``driver``."""
    try:
        return os.path.basename(os.readlink(os.path.join(root, path.lstrip("/"))))
    except OSError:
        return ""


def resolve(root: str, path: str) -> str:
    """Follow the links of the last part of a path, with absolute targets below the root."""
    for _number in range(MAXIMUM_LINKS):
        try:
            target = os.readlink(os.path.join(root, path.lstrip("/")))
        except OSError:
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return path


def installed_kernels(root: str = "/") -> list[str]:
    """The releases of all kernels that could be booted, without rescue images."""
    found = {os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(root, "lib/modules/*/vmlinuz"))}
    found |= {os.path.basename(path)[len("vmlinuz-") :] for path in glob.glob(os.path.join(root, "boot/vmlinuz-*"))}
    return sorted(name for name in found if not name.startswith("0-rescue"))


def nvidia_devices(root: str = "/") -> list[pci.Device]:
    """NVIDIA's PCI devices, and nobody else's."""
    found = []
    for name in names(root, pci.DEVICES):
        folder = f"{pci.DEVICES}/{name}"
        # A virtual function (SR-IOV) names the card that it belongs to, and is no GPU of its own.
        is_virtual = exists(root, f"{folder}/physfn")
        if pci.is_address(name) and not is_virtual and pci.number(read(root, f"{folder}/vendor")) == pci.NVIDIA:
            found.append(
                pci.Device(
                    address=name,
                    vendor=pci.NVIDIA,
                    device=pci.number(read(root, f"{folder}/device")),
                    kind=pci.number(read(root, f"{folder}/class")),
                    driver=target_name(root, f"{folder}/driver"),
                )
            )
    return found
