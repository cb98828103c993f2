# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The library that the loader finds."""

from __future__ import annotations

import ctypes.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import library
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl.library import Found

PATH = "/usr/lib64/libnccl.so.2.28.9"
#: ldconfig -p of glibc 2.34.
LISTING = """\
412 libs found in cache `/etc/ld.so.cache'
\tlibnccl.so.2 (libc6,x86-64) => /usr/local/lib/libnccl.so.2
\tlibnccl.so.2 (libc6,x86-64) => /lib64/libnccl.so.2
\tlibnccl.so (libc6,x86-64) => /lib64/libnccl.so
\tlibnccl-net.so (libc6,x86-64) => /lib64/libnccl-net.so
"""


@pytest.mark.parametrize(
    ("code", "version"), [(22809, "2.28.9"), (23007, "2.30.7"), (2804, "2.8.4"), (21005, "2.10.5")]
)
def test_the_number_that_the_library_returns(code: int, version: str) -> None:
    assert library.version_of(code) == version


def test_answers() -> None:
    said = "noise\n" + json.dumps({"path": PATH, "result": 0, "code": 22809}) + "\n"
    assert library.parse(said) == Found(PATH, "2.28.9")
    assert "failed with 1" in library.parse(json.dumps({"path": PATH, "result": 1, "code": 0})).error
    assert "cannot load libnccl.so.2: no such" in library.parse('{"error": "no such"}').error
    assert library.cached(LISTING) == ["/usr/local/lib/libnccl.so.2", "/lib64/libnccl.so.2"]
    assert library.cached("0 libs found in cache\n") == []


@pytest.mark.parametrize(
    ("found", "owner", "sentence"),
    [
        (Found(PATH, "2.28.9"), "libnccl 2.28.9-1+cuda13.0", ""),
        (
            Found(PATH, "2.27.7"),
            "libnccl 2.28.9-1+cuda13.0",
            f"{PATH} says it is NCCL 2.27.7, and its package is 2.28.9-1+cuda13.0: the file was replaced",
        ),
        (
            Found("/usr/local/lib/libnccl.so.2", "2.27.7"),
            "",
            "programs get /usr/local/lib/libnccl.so.2, which says it is NCCL 2.27.7 and belongs to no package, instead "
            "of the library of the package libnccl; the loader knows: /a, /b",
        ),
        (Found("/opt/libnccl.so.2", "2.28.9"), "other-nccl 1-1", "belongs to the package other-nccl-1-1"),
        (Found(PATH, "2.27.7"), "libnccl 2.27.7-1+cuda13.0", f"{PATH} is NCCL 2.27.7, and wanted is 2.28.9"),
        (Found(error="why"), "", "why"),
    ],
)
def test_verdicts(found: Found, owner: str, sentence: str) -> None:
    problems = library.problems(found, owner, ["/a", "/b"], "2.28.9")
    assert problems == [] if not sentence else len(problems) == 1 and sentence in problems[0]


def test_the_program_loads_by_name_and_says_from_where(tmp_path: Path) -> None:
    """The real program with a library that every machine has, which has no such function."""
    name = ctypes.util.find_library("c") or "libc.so.6"
    argv = [*library.program(sys.executable)[:-1], name]
    assert argv[:5] == ["/usr/bin/env", "-u", "LD_LIBRARY_PATH", "-u", "LD_PRELOAD"]
    said = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60, cwd=tmp_path).stdout
    assert "undefined symbol: ncclGetVersion" in library.parse(said).error
    said = subprocess.run(
        [*argv[:-1], "libno-such.so.2"], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert "libno-such.so.2: cannot open shared object file" in library.parse(said).error
