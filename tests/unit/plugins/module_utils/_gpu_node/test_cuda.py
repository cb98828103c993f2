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
    "does not": "int cuInit(unsigned flags) { return 3; }",
    "unknown number": "int cuInit(unsigned flags) { return 12345; }",
    "no such function": "int other(void) { return 0; }",
    "crashes": "int cuInit(unsigned flags) { return *(volatile int *)0; }",
}


def said(library: str) -> str:
    argv = [sys.executable, "-I", "-c", cuda.PROGRAM, library]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return cuda.problem(done.stdout, f"ended with {done.returncode}" if done.returncode else "")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("starts", ""),
        ("does not", "cuInit() of libcuda.so.1 ends with 3 (CUDA_ERROR_NOT_INITIALIZED)"),
        ("unknown number", "cuInit() of libcuda.so.1 ends with 12345"),
        ("no such function", "undefined symbol: cuInit"),
        ("crashes", "has ended the program that called it, or did not end: ended with -11"),
    ],
)
def test_what_the_library_says(tmp_path: Path, source: str, expected: str) -> None:
    library = tmp_path / "libcuda.so.1"
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is one of the things that the tests expect of a machine"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-x", "c", "-o", str(library), "-"], input=SOURCES[source], text=True, check=True
    )
    found = said(str(library))
    assert (found == "") == (expected == "") and expected in found, found


def test_a_node_without_the_library() -> None:
    assert said("libcuda-that-nobody-has.so.1").startswith("libcuda.so.1 cannot be loaded: ")


@pytest.mark.parametrize("text", ["", "\n", "[]", "3", '{"result": null}', '{"other": 1}', "no JSON"])
def test_an_answer_that_is_none(text: str) -> None:
    assert cuda.problem(text, "").endswith("or did not end: no answer")


def test_the_known_case() -> None:
    text = cuda.problem('{"result": 3}', "")
    assert cuda.is_hmm(text, "open") and cuda.is_hmm(text, "") and not cuda.is_hmm(text, "proprietary")
    assert not cuda.is_hmm(cuda.problem('{"result": 802}', ""), "open")
