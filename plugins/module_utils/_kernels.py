# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of kernels, as ``uname -r`` prints them: which is newer, and which of those installed is the newest."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.rpm_versions import compare


def compare_kernels(left: str, right: str) -> int:
    """Below, equal to or above zero as the first release (``uname -r``) is older, the same or newer."""
    (version, _dash, release), (other_version, _dash, other_release) = left.partition("-"), right.partition("-")
    return compare(version, other_version) or compare(release, other_release)


def _flavour(kernel: str) -> str:
    """``debug`` of ``5.14.0-503.el9.x86_64+debug``: such a kernel is no newer one of the others."""
    return kernel.partition("+")[2]


def newest_kernel(running: str, installed: Sequence[str]) -> str:
    """The newest installed kernel of the running one's kind, empty when there is none."""
    same = [kernel for kernel in installed if _flavour(kernel) == _flavour(running)]
    return max(same, key=functools.cmp_to_key(compare_kernels), default="")
