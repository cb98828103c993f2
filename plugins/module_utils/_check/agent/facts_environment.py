# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gloo and NCCL would read from the environment of a job on this node."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import job_variables

PREFIXES = ("GLOO_", "NCCL_", "TORCH_NCCL_")
#: A key, which must not come into a report.
SECRET = "NCCL_PSK"


def of_libraries(paths: Sequence[str] = job_variables.FILES) -> dict[str, dict[str, str]]:
    """Name to ``value`` and ``source``, the file that sets it."""
    found = job_variables.read(paths)
    return {name: found[name]._asdict() for name in sorted(found) if name.startswith(PREFIXES) and name != SECRET}
