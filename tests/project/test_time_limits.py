# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test that waits for a real program or thread waits long enough for a busy machine: it ends as soon as that does."""

from __future__ import annotations

import re

import project
import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import service
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import torch_analyser
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import gather
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import horovod

#: Beside `make test` on two slow cores an import of torch has taken more than 20 s.
LEAST_SECONDS = 60
#: The loop that waits for something, and the calls that do. ``Event().wait(5)`` stands in for something slow.
WAITS = (
    re.compile(r"time\.monotonic\(\) \+ (\d+)$", re.MULTILINE),
    re.compile(
        r"(?:subprocess\.\w+\(|\bcommunicate\(|\bBarrier\(|(?<!Event\(\))\.wait\(|\.join\()[^\n]*?timeout=(\d+)\b"
    ),
    re.compile(r"(?<!Event\(\))\.(?:wait|join)\((\d+)\)"),
    re.compile(r"^ +timeout=(\d+),$", re.MULTILINE),
)


def too_short(text: str) -> list[str]:
    """The waits of a test that give up before a busy machine has done what they wait for."""
    found = [match for pattern in WAITS for match in pattern.finditer(text)]
    return [match[0].strip() for match in found if int(match[1]) < LEAST_SECONDS]


def test_waits_of_unit_tests_outlast_a_busy_machine() -> None:
    found = {}
    for path in sorted((project.ROOT / "tests" / "unit").rglob("*.py")):
        if short := too_short(path.read_text(encoding="utf-8")):
            found[str(path.relative_to(project.ROOT))] = short
    assert found == {}


@pytest.mark.parametrize(
    ("line", "short"),
    [
        ("    end = time.monotonic() + 20\n", True),
        ("    end = time.monotonic() + 60\n", False),
        ("    subprocess.run(argv, check=True, timeout=30)\n", True),
        ("    process.communicate(timeout=120)\n", False),
        ("        timeout=10,\n", True),
        ("    assert process.wait(15) == 0\n", True),
        ("    thread.join(60)\n", False),
        ("    threading.Event().wait(5)\n", False),
    ],
)
def test_a_short_wait_is_seen(line: str, short: bool) -> None:
    assert bool(too_short(line)) is short


def test_what_starts_a_slow_program_gives_it_time() -> None:
    imports_of_torch = (torch_analyser.SECONDS, gather.IMPORT_SECONDS, horovod.STEP_SECONDS)
    assert min(imports_of_torch) >= 60 and service.START_SECONDS >= 30
