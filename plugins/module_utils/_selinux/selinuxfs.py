# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What selinuxfs shows of the running kernel, its mode and its policy, and other small files of the kernel."""

from __future__ import annotations

import os

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import mode

KERNEL = "/sys/fs/selinux"


def read_whole(path: str) -> str:
    """A small file of the kernel; empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read().strip("\0\n ")
    except OSError:
        return ""


def read_kernel(name: str) -> str:
    """What the running policy says."""
    return read_whole(f"{KERNEL}/{name}")


def read_mode() -> str:
    """The mode of the running kernel."""
    return mode.ENFORCING if read_kernel("enforce") == "1" else mode.PERMISSIVE


def booleans() -> list[str]:
    """The booleans that the running policy has."""
    return os.listdir(f"{KERNEL}/booleans")


def unknown_types(types: list[str]) -> list[str]:
    """The types that the running policy does not have: it refuses a context with one."""
    unknown = []
    for name in types:
        try:
            with open(f"{KERNEL}/context", "wb", buffering=0) as stream:
                stream.write(f"system_u:object_r:{name}:s0\0".encode())
        except OSError:
            unknown.append(name)
    return unknown


def set_running(enforce: bool) -> None:
    """What setenforce does."""
    with open(f"{KERNEL}/enforce", "w", encoding="ascii") as stream:
        stream.write("1" if enforce else "0")
