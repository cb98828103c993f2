# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""torch and its NCCL by the names and texts of an environment."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import environment
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.environment import Torch

#: What the build of torch writes (tools/generate_torch_version.py of pytorch/pytorch).
VERSION_PY = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']
__version__ = '2.13.0+cu130'
debug = False
cuda: Optional[str] = '13.0'
git_version = '0000000000000000000000000000000000000000'
hip: Optional[str] = None
xpu: Optional[str] = None
"""


@pytest.mark.parametrize(
    ("packages", "version_py", "conda", "expected"),
    [
        # PyPI: the local part stands in the file only.
        (
            ["numpy-2.3.0.dist-info", "nvidia_nccl_cu13-2.29.7.dist-info", "torch-2.13.0.dist-info"],
            VERSION_PY,
            [],
            Torch("2.13.0+cu130", "13.0", "2.29.7"),
        ),
        # A build from its own index, and nothing but the names.
        (
            ["nvidia_nccl_cu12-2.27.5.dist-info", "torch-2.9.1+cu128.dist-info"],
            "",
            [],
            Torch("2.9.1+cu128", "12.8", "2.27.5"),
        ),
        (
            ["torch-2.9.1+cpu.dist-info"],
            "__version__ = '2.9.1+cpu'\ncuda: Optional[str] = None\n",
            [],
            Torch("2.9.1+cpu"),
        ),
        (
            ["torch-2.5.1-py3.12.egg-info"],
            "__version__ = '2.5.1'\ncuda: Optional[str] = '12.4'\n",
            ["nccl-2.21.5.1-h3a84f74_0.json", "python-3.12.3-h996f2a0_1.json"],
            Torch("2.5.1", "12.4", "2.21.5.1"),
        ),
        # Two releases at once: what pip lists is what was installed last.
        (["torch-2.14.0.dist-info"], VERSION_PY, [], Torch("2.14.0", "13.0")),
        (["torchvision-0.24.0.dist-info", "nvidia_nccl_cu12-2.27.5.dist-info"], VERSION_PY, [], Torch()),
        ([], "", [], Torch()),
    ],
)
def test_environments(packages: list[str], version_py: str, conda: list[str], expected: Torch) -> None:
    assert environment.parse(packages, version_py, conda) == expected


def test_what_an_import_printed() -> None:
    assert environment.parse_import('a warning\n["2.13.0+cu130", "13.0", "2.29.7"]\n') == Torch(
        "2.13.0+cu130", "13.0", "2.29.7"
    )


@pytest.mark.parametrize("text", ["", "Traceback", "[1, 2]", "null"])
def test_an_import_that_printed_something_else(text: str) -> None:
    assert environment.parse_import(text) is None
