# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether CUDA starts: the driver's library is asked, as every CUDA program does first. Pure.

nvidia-smi does not use CUDA, so it works on nodes on which no job can begin.
"""

from __future__ import annotations

import json

LIBRARY = "libcuda.so.1"
#: Loads the library by its name alone, as programs do. One line of JSON. No context is made, and no GPU is occupied.
PROGRAM = """\
import ctypes, json, sys
try:
    print(json.dumps({"result": ctypes.CDLL(sys.argv[1]).cuInit(0)}))
except (OSError, AttributeError) as error:
    print(json.dumps({"error": str(error)}))
"""
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


def is_hmm(said: str, kind: str) -> bool:
    """Whether this problem is the known one of open modules with the kernels of EL 9.6 and EL 10.0.

    Their heterogeneous memory management (HMM) keeps CUDA from starting: NVIDIA/open-gpu-kernel-modules, issues 901
    and 947, with drivers of the branches 570, 575 and 580. ``kind`` is empty where nobody can tell.
    """
    return kind != "proprietary" and RESULTS[NOT_INITIALIZED] in said
