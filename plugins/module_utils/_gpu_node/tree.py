# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the files of a node below a root; nothing here raises for what is missing or not readable."""

from __future__ import annotations

import glob
import os
import stat

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci

MAXIMUM_LINKS = 16
#: pci.ids, the largest of them, has 1.5 MB.
MOST_BYTES = 16 << 20
PART_BYTES = 1 << 16


def read(root: str, path: str) -> str:
    """The text of a file without white space around it, empty when it cannot be read."""
    return read_bytes(root, path).decode("utf-8", "replace").strip()


def read_bytes(root: str, path: str) -> bytes:
    """The beginning of a file, as it is.  In an environment of a user a pipe may have its name, or a link to a device.

    sysfs answers EINVAL for what makes no sense, such as the speed of a card without a link.
    """
    try:
        handle = os.open(os.path.join(root, path.lstrip("/")), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = bytearray()
            while stat.S_ISREG(os.fstat(handle).st_mode) and len(found) < MOST_BYTES:
                # /proc/sys refuses to be read in parts of some MiB.
                part = os.read(handle, PART_BYTES)
                if not part:
                    break
                found += part
            return bytes(found)
        finally:
            os.close(handle)
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
