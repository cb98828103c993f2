# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The torch of a Python environment and the NCCL that it brings, without importing it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

#: Asks the environment's own interpreter. A build without CUDA has no torch.cuda.nccl.version().
IMPORT = """
import json, torch
try:
    nccl = ".".join(str(part) for part in torch.cuda.nccl.version())
except Exception:
    nccl = ""
print(json.dumps([str(torch.__version__), torch.version.cuda or "", nccl]))
"""

_TORCH = re.compile(r"^torch-([^-]+?)(?:-py[0-9.]+)?\.(?:dist-info|egg-info)$")
#: nvidia_nccl_cu13-2.28.9.dist-info: the wheel that torch's wheel depends on.
_NCCL = re.compile(r"^nvidia_nccl_cu\d+-([^-]+)\.dist-info$")
#: nccl-2.21.5.1-h3a84f74_0.json in the folder conda-meta of a conda environment.
_CONDA_NCCL = re.compile(r"^nccl-([^-]+)-[^-]+\.json$")
_VERSION = re.compile(r"^__version__\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)
_CUDA = re.compile(r"^cuda\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)
_LOCAL = re.compile(r"\+cu(\d+)(\d)$")


@dataclass(frozen=True)
class Torch:
    """Version of torch, the CUDA that it was built for (``12.8``), and the NCCL that it loads; empty when unknown."""

    version: str = ""
    cuda: str = ""
    nccl: str = ""


def parse(packages: Iterable[str], version_py: str, conda_meta: Iterable[str] = ()) -> Torch:
    """Torch out of the names in ``site-packages``, the text of ``torch/version.py``, and the names in ``conda-meta``.

    ``version.py`` says more than the name of the folder: the wheels of PyPI have no local part in their name.
    """
    listed = list(packages)
    version = _first(_TORCH, listed)
    if not version:
        return Torch()
    said = _VERSION.search(version_py)
    # Only when it is the same release: the file of a half-removed package says nothing about the other one.
    if said and said.group(1).split("+")[0] == version.split("+")[0]:
        version = said.group(1)
    cuda = _CUDA.search(version_py)
    local = _LOCAL.search(version)
    built = cuda.group(1) if cuda else f"{local.group(1)}.{local.group(2)}" if local else ""
    return Torch(version, built, _first(_NCCL, listed) or _first(_CONDA_NCCL, list(conda_meta)))


def _first(pattern: re.Pattern[str], names: Iterable[str]) -> str:
    matches = (pattern.match(name) for name in names)
    return next((match.group(1) for match in matches if match), "")


def parse_import(text: str) -> Torch | None:
    """What ``IMPORT`` printed on its last line, None when it is something else."""
    try:
        version, cuda, nccl = json.loads(text.strip().splitlines()[-1])
    except (ValueError, TypeError, IndexError):
        return None
    return Torch(str(version), str(cuda), str(nccl))
