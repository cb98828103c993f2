# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that end before they have PyTorch: the environment of jobs on one node breaks Python or shadows a module.

The verdict leads with the node, the last words of the rank, the file that is at fault, and what to do about it.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import results
from checking import check
from net_cluster import NetCluster

#: The first line of a report that a person reads.
MOST_HEADLINE = 160
RAISES = """
def load(number):
    if number:
        return load(number - 1)
    try:
        return {}["weights of the model, in a text that is long enough to fill more than one line of a terminal"]
    except KeyError as error:
        raise ValueError("no licence for this node") from error

load(12)
"""
GROUP = """
error = ExceptionGroup("two files", [OSError("no route to the file server"), ValueError("b")])
error.add_note("written by the site's own loader")
raise error
"""
#: Breaks the ranks alone: a node whose every program breaks would not even take the check.
CRASH = """
#include <signal.h>
#include <stdlib.h>
__attribute__((constructor)) static void crash(void) { if (getenv("LOCAL_RANK")) raise(SIGSEGV); }
"""


@dataclass(frozen=True)
class Broken:
    """What stands where. name: as in tools/fault_table.py. files: name to text in the folder of the fault. environment:
    a line of /etc/environment. words: what the cause has to contain, ``{folder}`` being that folder. fix: the same.
    """

    name: str
    files: dict[str, str]
    environment: str
    words: tuple[str, ...]
    fix: str


PATH = "PYTHONPATH={folder}"
TORCH = "took {folder}/torch.py for PyTorch: "
RENAME = "rename that file or unset PYTHONPATH"
LEAVES = "import sys\nsys.exit('the licence server is away')\n"
FAULTS = (
    Broken("torch-raises", {"torch.py": RAISES}, PATH, (TORCH, "ValueError: no licence for this node"), RENAME),
    Broken("torch-empty", {"torch.py": ""}, PATH, (TORCH, "ModuleNotFoundError: No module named"), RENAME),
    Broken("torch-group", {"torch.py": GROUP}, PATH, (TORCH, "ExceptionGroup: two files"), RENAME),
    Broken("torch-syntax", {"torch.py": "def broken(:\n"}, PATH, (TORCH, "SyntaxError: invalid syntax"), RENAME),
    Broken("torch-leaves", {"torch.py": LEAVES}, PATH, (TORCH, "the licence server is away"), RENAME),
    Broken("torch-silent", {"torch.py": "import os\nos._exit(0)\n"}, PATH, (TORCH, "exit code 0 without"), RENAME),
    Broken("torch-crash", {"torch.py": "import ctypes\nctypes.string_at(0)\n"}, PATH, (TORCH, "Segment"), RENAME),
    Broken("torch-hangs", {"torch.py": "import time\ntime.sleep(3600)\n"}, PATH, (TORCH, "it hung"), "rename that"),
    Broken(
        "random-shadowed",
        {"random.py": "seed = 7\n"},
        PATH,
        ("took {folder}/random.py for random: ", "ImportError: "),
        RENAME,
    ),
    Broken(
        "json-shadowed",
        {"json.py": "version = 1\n"},
        PATH,
        ("took {folder}/json.py for json: ", "AttributeError: module 'json'"),
        RENAME,
    ),
    Broken(
        "numpy-shadowed",
        {"numpy.py": "raise RuntimeError('our own numpy')\n"},
        PATH,
        ("took {folder}/numpy.py for numpy: ", "RuntimeError: our own numpy"),
        RENAME,
    ),
    Broken(
        "sitecustomize",
        {"sitecustomize.py": "import os\nos._exit(3)\n"},
        PATH,
        ("took {folder}/sitecustomize.py for sitecustomize: ", "exit code 3 without a word"),
        RENAME,
    ),
    Broken(
        "python-home",
        {},
        "PYTHONHOME={folder}",
        ("PYTHONHOME={folder}: ", "Fatal Python error"),
        "take PYTHONHOME out of /etc/environment",
    ),
    Broken(
        "preload",
        {"crash.c": CRASH},
        "LD_PRELOAD={folder}/crash.so",
        ("LD_PRELOAD={folder}/crash.so: killed by SIGSEGV",),
        "take LD_PRELOAD out of /etc/environment",
    ),
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, and only root's: the ranks are root's here."""
    made = Path(tempfile.mkdtemp(prefix="f", dir="/opt"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("broken", FAULTS, ids=lambda one: one.name)
def test_the_last_words_of_a_rank_lead(clean: NetCluster, rng: random.Random, folder: Path, broken: Broken) -> None:
    name = rng.choice(clean.names)
    print(broken.name, "on", name)
    for file, text in broken.files.items():
        (folder / file).write_text(text)
        if file == "crash.c":
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "crash.so", folder / file], check=True)
    environment = clean.folder / name / "environment"
    environment.write_text(broken.environment.format(folder=folder) + "\n")
    try:
        ended = check(clean)
    finally:
        environment.write_text("")
    assert ended.code != 0 and list(ended.report["culprits"]) == [name], ended.text
    first, headline = ended.report["findings"][0], ended.report["headline"]
    assert (first["id"], first["hosts"]) == ("GC-RUN-007", [name]), ended.text
    for words in broken.words:
        assert words.format(folder=folder) in first["cause"], first
    assert broken.fix.format(folder=folder) in first["fix"], first
    assert len(headline) < MOST_HEADLINE, f"{len(headline)} characters: {headline}"
    assert ended.report["unexplained"] == [] and ended.report["rounds"] == [], ended.text
    results.record(broken.name, "we", ended.seconds, headline)
