# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the driver, the kernel and the C library say, whatever program prints it.  Pure."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    DISK,
    PEER,
    REPORTED,
    SELF,
    Text,
)

TEXTS = (
    Text(
        r"Driver/library version mismatch",
        causes.GPU,
        SELF,
        "the libraries of the driver were updated and the old module is still loaded: reboot",
        known=REPORTED,
    ),
    Text(
        r"(?:Error 802|system not yet initialized)",
        causes.GPU,
        SELF,
        "the Fabric Manager does not run, or is of another release than the driver",
        known=REPORTED,
    ),
    Text(
        r"Error 80[34]\b|unsupported display driver / cuda driver combination|forward compatibility was attempted",
        causes.GPU,
        SELF,
        "libcuda and the loaded module are of different releases",
        known=REPORTED,
    ),
    Text(
        r"NVIDIA-SMI has failed|No devices were found|GPU is lost|fallen off the bus",
        causes.GPU,
        SELF,
        "the driver does not reach the GPU",
        known=REPORTED,
    ),
    Text(r"CUDA error: |CUDA-capable device\(s\) is/are busy", causes.GPU, SELF, "CUDA failed", known=REPORTED),
    Text(
        r"Too many open files",
        causes.RESOURCES,
        SELF,
        "the limit nofile of this user is too low",
    ),
    Text(
        r"Cannot allocate memory|can't allocate memory|MemoryError|std::bad_alloc|[Oo]ut of memory|oom-kill",
        causes.RESOURCES,
        SELF,
        "the memory is full, or its limit is reached",
    ),
    Text(r"No space left on device", causes.RESOURCES, SELF, "a file system is full", command=DISK),
    Text(
        r"Resource temporarily unavailable|can't start new thread|Cannot fork",
        causes.RESOURCES,
        SELF,
        "the limit nproc of this user is too low",
    ),
    Text(
        r"Temporary failure in name resolution|Name or service not known",
        causes.NAMES,
        SELF,
        "a name does not resolve on this node",
    ),
    Text(r"No route to host|Network is unreachable", causes.BLOCKED, PEER, "a node can't be reached, or rejects"),
    Text(r"Connection refused", causes.BLOCKED, PEER, "nothing listens there, or a firewall answers with a reset"),
    Text(r"Connection timed out", causes.BLOCKED, PEER, "a node drops the connection"),
    Text(r"Connection reset by peer|Broken pipe", causes.STOPPED, PEER, "another process ended"),
)
