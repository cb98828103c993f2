# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages a group has locked."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import locks
from ansible_collections.baremetal.gpu_cluster.plugins.modules.locked_packages import names


def test_names_come_from_the_groups_own_lines() -> None:
    ours = ["cuda-toolkit-12-8-0:12.8.1-1.*", "cuda-toolkit-13-0-0:13.0.2-1.*"]
    block = [locks.BEGIN.format("cuda_toolkit"), *ours, locks.END.format("cuda_toolkit")]
    text = "\n".join(["cuda-toolkit-12-9-0:12.9.1-1.*", *block, "horovod-0:0.28.1-1.*"]) + "\n"
    assert names(text, "cuda_toolkit") == ["cuda-toolkit-12-8", "cuda-toolkit-13-0"]
    assert names(text, "nccl") == []
    assert names("", "cuda_toolkit") == []
