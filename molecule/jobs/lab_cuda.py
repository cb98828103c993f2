# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for NVIDIA's CUDA toolkits and NCCL: the scriptlets of the real ones, and small programs and libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab_mirror import run
from lab_packages import StandIn

NVCC = """\
#!/bin/sh
echo "nvcc: NVIDIA (R) Cuda compiler driver"
echo "Cuda compilation tools, release {release}, V{version}"
"""
#: As NVIDIA's packages do (github.com/NVIDIA/libnvidia-container/issues/117): registered when they come, taken out
#: when they go. In an upgrade the old one goes before the new one registers, which loses a choice made by hand.
REGISTER = "update-alternatives --install /usr/local/cuda cuda /usr/local/cuda-{release} {priority} >/dev/null"
TAKE_OUT = "update-alternatives --remove cuda /usr/local/cuda-{release} >/dev/null 2>&1"
LIBRARY = """\
int ncclGetVersion(int *version) { *version = CODE; return 0; }
"""
#: What stands in for libtorch_cuda.so: linked with NCCL, and found through nothing but its own path.
TORCH = """\
int ncclGetVersion(int *version);
int nccl_of_torch(void) { int version = 0; ncclGetVersion(&version); return version; }
"""
#: Where torch's wheel has its libraries, and NCCL's wheel beside it.
TORCH_FOLDER, NCCL_FOLDER = "torch/lib", "nvidia/nccl/lib"
#: DT_RPATH of libtorch_cuda.so in torch 2.13.0 from PyPI (cp311, manylinux_2_28_x86_64), the part with NCCL.
TORCH_RPATH = "$ORIGIN/../../nvidia/nccl/lib"


def toolkit(version: str) -> list[StandIn]:
    """A toolkit, as the package that is asked for and one below it that has the programs.

    The real one takes newer packages below it too; here an upgrade is one of both.
    """
    major, minor, _patch = version.split(".")
    release, name = f"{major}.{minor}", f"{major}-{minor}"
    words = {"release": release, "priority": int(major) * 10 + int(minor)}
    take_out = TAKE_OUT.format(**words)
    folder = f"/usr/local/cuda-{release}"
    nvcc: dict[str, bytes | Path | str] = {
        f"{folder}/": b"",
        f"{folder}/bin/": b"",
        f"{folder}/bin/nvcc": NVCC.format(release=release, version=version).encode(),
    }
    return [
        StandIn(
            f"cuda-toolkit-{name}",
            f"{version}-1",
            requires=(f"cuda-nvcc-{name} = {version}",),
            post=REGISTER.format(**words),
            preun=f"{take_out}; [ $1 = 0 ] || {REGISTER.format(**words)}",
        ),
        StandIn(f"cuda-nvcc-{name}", f"{version}-1", files=nvcc),
    ]


def meta_packages(version: str) -> list[StandIn]:
    """The packages that must never be asked for: they bring a driver."""
    name = "-".join(version.split(".")[:2])
    return [
        StandIn("cuda", f"{version}-1", requires=(f"cuda-{name} >= {version}",)),
        StandIn(f"cuda-{name}", f"{version}-1", requires=(f"cuda-toolkit-{name}", "nvidia-open")),
        StandIn("nvidia-open", "3:580.95.05-1", requires=("nvidia-driver",)),
        StandIn("nvidia-driver", "3:580.95.05-1"),
    ]


def nccl(version: str, cuda: str, library: Path) -> list[StandIn]:
    """NCCL in one build, with a library. The lab's loader looks into /usr/lib64 only when told to, and then last.

    The links are the package's own (-X): in a downgrade ldconfig would still see the newer file.
    """
    evr = f"{version}-1+cuda{cuda}"
    files: dict[str, bytes | Path | str] = {
        f"/usr/lib64/libnccl.so.{version}": library,
        "/usr/lib64/libnccl.so.2": f"libnccl.so.{version}",
        "/etc/ld.so.conf.d/zz-lab-lib64.conf": b"/usr/lib64\n",
    }
    return [
        StandIn("libnccl", evr, files=files, post="/sbin/ldconfig -X"),
        StandIn("libnccl-devel", evr, requires=(f"libnccl = {evr}",), files={"/usr/include/nccl.h": b"/* NCCL */\n"}),
    ]


def library(folder: Path, version: str) -> Path:
    """A library that says it is this version of NCCL."""
    major, minor, patch = (int(part) for part in version.split("."))
    file = folder / f"libnccl-{version}.so"
    return compiled(file, LIBRARY.replace("CODE", str(major * 10000 + minor * 100 + patch)), "-Wl,-soname,libnccl.so.2")


def torch(folder: Path, version: str, *, tag: str) -> Path:
    """A tree as pip makes it, whose torch is linked with the NCCL of its own beside it.

    ``tag`` is ``--disable-new-dtags`` for DT_RPATH, or ``--enable-new-dtags`` for DT_RUNPATH.
    """
    for name in (TORCH_FOLDER, NCCL_FOLDER):
        (folder / name).mkdir(parents=True)
    own = library(folder, version).rename(folder / NCCL_FOLDER / "libnccl.so.2")
    compiled(folder / TORCH_FOLDER / "libtorch_cuda.so", TORCH, str(own), f"-Wl,{tag}", f"-Wl,-rpath,{TORCH_RPATH}")
    return folder


def compiled(file: Path, source: str, *options: str) -> Path:
    """A shared library."""
    code = file.with_suffix(".c")
    code.write_text(source)
    libraries: Sequence[str] = [option for option in options if not option.startswith("-")]
    flags = [option for option in options if option.startswith("-")]
    run("gcc", "-shared", "-fPIC", "-O1", "-o", str(file), str(code), *libraries, *flags)
    code.unlink()
    return file
