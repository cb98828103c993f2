# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver branch, CUDA, NCCL and PyTorch go together. Data only: every row names its source.

``_inventory/versions.py`` refuses what these tables rule out, and nothing else. docs/versions.md shows them.
A row without a source does not belong here. All sources were read in November 2026.
"""

from __future__ import annotations

from typing import NamedTuple

COMPATIBILITY = "docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html, table 1"
INSTALLERS = "file names of NVIDIA's installers, developer.download.nvidia.com/compute/cuda/<version>/local_installers"
GUIDE_610 = "docs.nvidia.com/datacenter/tesla/driver-installation-guide/610/kernel-modules.html"
GUIDE_620 = (
    "docs.nvidia.com/datacenter/tesla/driver-installation-guide/620/pdf/Driver_Installation_Guide.pdf, "
    "chapter Recent Updates: Proprietary Kernel Modules Removed"
)
FABRIC = "comments in install_nvidia_fabric_manager.sh of github.com/Azure/azhpc-images"
PYPI = "names and metadata of the x86_64 wheels of torch on pypi.org"
PREVIOUS = "pytorch.org/get-started/previous-versions"
INDEX = "listing of download.pytorch.org/whl/torch in github.com/replicate/cog, pkg/config/torch_compatibility.json"
CU129 = f"{PREVIOUS}, and for cu129, which it leaves out, wheels in download.pytorch.org/whl/cu129"
REDIST = "developer.nvidia.com/w/compute/redist/nccl/v2.30.7, the whole listing"
REPOSITORY = "packages that public build scripts install from developer.download.nvidia.com/compute/cuda/repos"


class CudaMajor(NamedTuple):
    """All toolkits of one major version, and the oldest driver branch that runs what they build."""

    major: int
    branch: int
    sources: tuple[str, ...]


class Branch(NamedTuple):
    """The CUDA version that came out with a driver branch."""

    branch: int
    cuda: str
    sources: tuple[str, ...]


class Change(NamedTuple):
    """What is different from a driver branch on."""

    branch: int
    what: str
    sources: tuple[str, ...]


class Torch(NamedTuple):
    """One release of PyTorch, all its patch releases.

    ``oldest_python``, ``newest_python``: what there are wheels for. ``tag``, ``cuda`` and ``nccl``: of the wheel on
    pypi.org. ``builds``: all CUDA builds, named as in download.pytorch.org/whl/cu130; empty: no whole list is known.
    """

    release: str
    oldest_python: str
    newest_python: str
    tag: str
    cuda: str
    nccl: str
    builds: str
    sources: tuple[str, ...]


class Nccl(NamedTuple):
    """One release of NCCL and the CUDA versions that its packages are built for; ``whole``: there are no others."""

    version: str
    builds: str
    whole: bool
    sources: tuple[str, ...]


#: A newer driver runs older CUDA; an older one runs what was built with any toolkit of its own major version.
CUDA_MAJORS = (
    CudaMajor(11, 450, (COMPATIBILITY,)),
    CudaMajor(12, 525, (COMPATIBILITY,)),
    CudaMajor(13, 580, (COMPATIBILITY,)),
)

BRANCHES = (
    Branch(570, "12.8", (INSTALLERS,)),
    Branch(575, "12.9", (INSTALLERS,)),
    Branch(580, "13.0", (INSTALLERS,)),
    Branch(595, "13.2", (INSTALLERS,)),
)

#: The first branch with open kernel modules, and the first without proprietary ones.
OPEN_MODULES_FROM = 515
NO_PROPRIETARY_FROM = 620
CHANGES = (
    Change(OPEN_MODULES_FROM, "open kernel modules exist, for GPUs of Turing and newer", (GUIDE_610,)),
    Change(560, "open kernel modules are NVIDIA's default", (GUIDE_610,)),
    Change(580, "the package of Fabric Manager is nvidia-fabricmanager, before nvidia-fabric-manager", (FABRIC,)),
    Change(NO_PROPRIETARY_FROM, "no proprietary kernel modules: no Maxwell, Pascal or Volta", (GUIDE_620,)),
)

TORCH = (
    Torch("2.5", "3.9", "3.13", "manylinux1", "12.4", "2.21.5", "cu118 cu121 cu124", (PYPI, PREVIOUS)),
    Torch("2.6", "3.9", "3.13", "manylinux1", "12.4", "2.21.5", "cu118 cu124 cu126", (PYPI, PREVIOUS)),
    Torch("2.7", "3.9", "3.13", "manylinux_2_28", "12.6", "2.26.2", "cu118 cu126 cu128", (PYPI, PREVIOUS)),
    Torch("2.8", "3.9", "3.13", "manylinux_2_28", "12.8", "2.27.3", "cu126 cu128 cu129", (PYPI, PREVIOUS)),
    Torch("2.9", "3.10", "3.14", "manylinux_2_28", "12.8", "2.27.5", "cu126 cu128 cu129 cu130", (PYPI, CU129)),
    Torch("2.10", "3.10", "3.14", "manylinux_2_28", "12.8", "2.27.5", "cu126 cu128 cu129 cu130", (PYPI, CU129)),
    Torch("2.11", "3.10", "3.14", "manylinux_2_28", "13.0", "2.28.9", "cu126 cu128 cu129 cu130", (PYPI, CU129)),
    Torch("2.12", "3.10", "3.14", "manylinux_2_28", "13.0", "2.29.7", "cu126 cu129 cu130 cu132", (PYPI, INDEX)),
    Torch("2.13", "3.10", "3.14", "manylinux_2_28", "13.0", "2.29.7", "", (PYPI,)),
    Torch("2.14", "3.10", "3.14", "manylinux_2_28", "13.0", "2.30.7", "", (PYPI,)),
    Torch("2.15", "3.11", "3.15", "manylinux_2_28", "13.2", "2.30.7", "", (PYPI,)),
)

NCCL = (
    Nccl("2.25.1", "12.2 12.4 12.8", False, (REPOSITORY,)),
    Nccl("2.27.7", "12.4 12.9 13.0", False, (REPOSITORY,)),
    Nccl("2.28.9", "12.9 13.0", False, (REPOSITORY,)),
    Nccl("2.29.7", "12.9 13.2", False, (REPOSITORY,)),
    Nccl("2.30.7", "12.9 13.3", True, (REDIST,)),
)
