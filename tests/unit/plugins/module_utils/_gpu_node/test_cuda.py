# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether CUDA starts, asked of libraries that are compiled here and answer as NVIDIA's does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import cuda

#: As in cuda.h.
SOURCES = {
    "starts": "int cuInit(unsigned flags) { return 0; }",
    "shows two": """
        int cuInit(unsigned flags) { return 0; }
        int cuDeviceGetCount(int *count) { *count = 2; return 0; }
        int cuDeviceGet(int *device, int number) { *device = 7 + number; return 0; }
        int cuDeviceGetAttribute(int *value, int what, int device) {
            *value = what == 75 ? 9 : what == 76 ? 0 : what == 20 ? (device == 8 ? 3 : 0) : -1;
            return 0;
        }
    """,
    "does not count": """
        int cuInit(unsigned flags) { return 0; }
        int cuDeviceGetCount(int *count) { return 999; }
    """,
    "does not": "int cuInit(unsigned flags) { return 3; }",
    "unknown number": "int cuInit(unsigned flags) { return 12345; }",
    "no such function": "int other(void) { return 0; }",
    "crashes": "int cuInit(unsigned flags) { return *(volatile int *)0; }",
}


def answer(library: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-I", "-c", cuda.PROGRAM, library]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def said(library: str) -> str:
    done = answer(library)
    return cuda.problem(done.stdout, f"ended with {done.returncode}" if done.returncode else "")


def compiled(folder: Path, source: str) -> str:
    library = folder / "libcuda.so.1"
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is one of the things that the tests expect of a machine"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-x", "c", "-o", str(library), "-"], input=SOURCES[source], text=True, check=True
    )
    return str(library)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("starts", ""),
        ("shows two", ""),
        ("does not count", ""),
        ("does not", "cuInit() of libcuda.so.1 ends with 3 (CUDA_ERROR_NOT_INITIALIZED)"),
        ("unknown number", "cuInit() of libcuda.so.1 ends with 12345"),
        ("no such function", "undefined symbol: cuInit"),
        ("crashes", "has ended the program that called it, or did not end: ended with -11"),
    ],
)
def test_what_the_library_says(tmp_path: Path, source: str, expected: str) -> None:
    found = said(compiled(tmp_path, source))
    assert (found == "") == (expected == "") and expected in found, found


def test_the_gpus_that_the_library_shows(tmp_path: Path) -> None:
    found = cuda.gpus(answer(compiled(tmp_path, "shows two")).stdout)
    assert found == [cuda.Gpu("9.0", "default"), cuda.Gpu("9.0", "exclusive process")]


@pytest.mark.parametrize("source", ["starts", "does not count", "does not", "crashes"])
def test_a_library_that_shows_none(tmp_path: Path, source: str) -> None:
    assert cuda.gpus(answer(compiled(tmp_path, source)).stdout) == []


@pytest.mark.parametrize(
    "text", ["", "3", "{}", '{"devices": 3}', '{"devices": [[9, 0]]}', '{"devices": [["x", 0, 0]]}']
)
def test_gpus_of_another_form_are_none(text: str) -> None:
    assert cuda.gpus(text) == []


@pytest.mark.parametrize(
    ("capability", "code", "runs"),
    [
        # torch 2.13 for CUDA 13.0, on H100, L40S, B200, RTX 5090, A100, V100.
        *(
            (capability, "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120", runs)
            for capability, runs in {"9.0": True, "8.9": True, "10.0": True, "12.0": True, "7.0": False}.items()
        ),
        # Binary code is for one major version, from its minor one on.
        ("8.0", "sm_86", False),
        ("9.0", "sm_80 sm_86", False),
        # PTX is for all newer ones, and for none that is older.
        ("12.1", "sm_80 compute_90", True),
        ("8.9", "sm_90 compute_90", False),
        # That GPU alone, and its family.
        ("9.0", "sm_90a", True),
        ("10.3", "sm_100a", False),
        ("12.0", "compute_90a", False),
        ("10.3", "sm_100f", True),
        ("12.0", "compute_100f", False),
        # Nobody knows.
        ("9.0", "", None),
        ("9.0", "gfx90a gfx942", None),
        ("9.0", "sm_80 sm_x", None),
    ],
)
def test_code_that_runs_on_a_gpu(capability: str, code: str, runs: bool | None) -> None:
    assert cuda.runs_on(capability, code.split()) is runs


def test_a_node_without_the_library() -> None:
    assert said("libcuda-that-nobody-has.so.1").startswith("libcuda.so.1 cannot be loaded: ")


@pytest.mark.parametrize("text", ["", "\n", "[]", "3", '{"result": null}', '{"other": 1}', "no JSON"])
def test_an_answer_that_is_none(text: str) -> None:
    assert cuda.problem(text, "").endswith("or did not end: no answer")


def test_the_known_case() -> None:
    text = cuda.problem('{"result": 3}', "")
    assert cuda.is_hmm(text, "open") and cuda.is_hmm(text, "") and not cuda.is_hmm(text, "proprietary")
    assert not cuda.is_hmm(cuda.problem('{"result": 802}', ""), "open")
