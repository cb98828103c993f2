# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether CUDA starts, and what its GPUs can do: the driver's library is asked, as every CUDA program does. Pure.

nvidia-smi does not use CUDA, so it works on nodes on which no job can begin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

LIBRARY = "libcuda.so.1"
#: Loads the library by its name alone, as programs do. One line of JSON. No context is made, and no GPU is occupied.
#: 75 and 76 are the compute capability, 20 is the compute mode (cuda.h, CUdevice_attribute). GPUs in the order of
#: nvidia-smi.
PROGRAM = """\
import ctypes, json, os, sys
os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
def devices(cuda):
    value, found = ctypes.c_int(), []
    def ask(call, *given):
        if call(ctypes.byref(value), *given):
            raise ValueError(call)
        return value.value
    try:
        for number in range(ask(cuda.cuDeviceGetCount)):
            device = ask(cuda.cuDeviceGet, number)
            found.append([ask(cuda.cuDeviceGetAttribute, what, device) for what in (75, 76, 20)])
    except (AttributeError, ValueError):
        return []
    return found
try:
    cuda = ctypes.CDLL(sys.argv[1])
    result = cuda.cuInit(0)
    print(json.dumps({"result": result, "devices": [] if result else devices(cuda)}))
except (OSError, AttributeError) as error:
    print(json.dumps({"error": str(error)}))
"""
#: cuda.h, CUcomputemode.
DEFAULT, PROHIBITED = "default", "prohibited"
MODES = {0: DEFAULT, 2: PROHIBITED, 3: "exclusive process"}
#: Results of cuInit() by their names in cuda.h (CUDA Driver API, CUresult).
NOT_INITIALIZED = 3
RESULTS = {
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    NOT_INITIALIZED: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    304: "CUDA_ERROR_OPERATING_SYSTEM",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "CUDA_ERROR_UNKNOWN",
}
_RESULT = re.compile(r" ends with (\d+)\b")
ERR_RESULT = "cuInit() of %s ends with %s"
ERR_NOT_LOADED = "%s cannot be loaded: %s"
ERR_SAID_NOTHING = "cuInit() of %s has ended the program that called it, or did not end: %s"


def problem(text: str, ended: str) -> str:
    """What is wrong, empty when nothing is. ``ended``: what is wrong with the end of the program."""
    try:
        answer = json.loads(text.splitlines()[-1])
        if "error" in answer:
            return ERR_NOT_LOADED % (LIBRARY, answer["error"])
        result = int(answer["result"])
    except (ValueError, IndexError, KeyError, TypeError):
        return ERR_SAID_NOTHING % (LIBRARY, ended or "no answer")
    name = f" ({RESULTS[result]})" if result in RESULTS else ""
    return ERR_RESULT % (LIBRARY, f"{result}{name}") if result else ""


@dataclass(frozen=True)
class Gpu:
    """A GPU as CUDA sees it.  capability: ``9.0``.  mode: one of ``MODES``, empty for another one."""

    capability: str
    mode: str


def gpus(text: str) -> list[Gpu]:
    """The GPUs in the answer of the program, none where CUDA does not start or the library does not say."""
    try:
        rows = [[int(number) for number in row] for row in json.loads(text.splitlines()[-1])["devices"]]
        return [Gpu(f"{major}.{minor}", MODES.get(mode, "")) for major, minor, mode in rows]
    except (ValueError, IndexError, KeyError, TypeError):
        return []


_CODE = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def runs_on(capability: str, code: Iterable[str]) -> bool | None:
    """Whether a program with this code runs on a GPU of this compute capability, None where nobody can tell.

    code: as nvcc names it, ``sm_90`` or ``compute_120``.  Binary code runs on GPUs of its major version from its minor
    one on, PTX (``compute``) is compiled for all that are newer; with ``a`` both are for that GPU alone, and with
    ``f`` for its family (CUDA C++ Programming Guide, "Compute Capabilities", "PTX Compatibility").
    """
    own = tuple(int(part) for part in capability.split("."))
    listed = list(code)
    found = [match.groups() for match in map(_CODE.fullmatch, listed) if match]
    if not found or len(found) < len(listed):
        return None
    for kind, major, minor, only in found:
        built = (int(major), int(minor))
        if only == "a":
            fits = own == built
        elif kind == "sm" or only == "f":
            fits = own[0] == built[0] and own >= built
        else:
            fits = own >= built
        if fits:
            return True
    return False


def result(said: str) -> int | None:
    """The number in a problem, None where cuInit() gave none."""
    found = _RESULT.search(said)
    return int(found.group(1)) if found else None


def is_hmm(said: str, kind: str) -> bool:
    """Whether this problem is the known one of open modules with the kernels of EL 9.6 and EL 10.0.

    Their heterogeneous memory management (HMM) keeps CUDA from starting: NVIDIA/open-gpu-kernel-modules, issues 901
    and 947, with drivers of the branches 570, 575 and 580. ``kind`` is empty where nobody can tell.
    """
    return kind != "proprietary" and result(said) == NOT_INITIALIZED
