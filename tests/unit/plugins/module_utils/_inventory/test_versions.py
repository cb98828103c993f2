# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins that cannot be installed together, and those that nothing is known of."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import versions

WHEELS = "https://download.pytorch.org/whl"


def found(version: Any, python: str = "/usr/bin/python3.12", index: str = "", find_links: str = "") -> list[str]:
    values = {
        "torch_runtime_version": version,
        "torch_runtime_python": python,
        "torch_runtime_index_url": index,
        "torch_runtime_find_links": find_links,
    }
    problems = versions.pin_problems(values)
    assert all(problem.fix for problem in problems)
    return [problem.sentence().split(". Fix: ")[0] for problem in problems]


@pytest.mark.parametrize(
    ("version", "minimum", "too_old"),
    [
        ("2.8.0", "3.9", "3.8"),
        ("2.9.1", "3.10", "3.9"),
        ("2.11.0", "3.10", "3.9"),
        ("2.13.0", "3.10", "3.9"),
        ("2.13.0+cu130", "3.10", "3.9"),
        (2.9, "3.10", "3.9"),
        ("2.15.0", "3.11", "3.10"),
        ("2.15.0rc1", "3.11", "3.10"),
    ],
)
def test_an_interpreter_that_is_too_old(version: Any, minimum: str, too_old: str) -> None:
    assert found(version, f"/usr/bin/python{minimum}") == []
    assert found(version, f"/opt/python{too_old}") == [
        f"torch_runtime_python = '/opt/python{too_old}': PyTorch {version} needs Python {minimum} or newer"
    ]


@pytest.mark.parametrize(
    ("version", "python"),
    [
        ("2.5.1", "/usr/bin/python3.8"),
        ("2.14.0", "/usr/bin/python3.9"),
        ("2.16.0", "/usr/bin/python3.9"),
        ("3.0.0", "/usr/bin/python3.9"),
        ("latest", "/usr/bin/python3.9"),
        ("", "/usr/bin/python3.9"),
        (None, "/usr/bin/python3.9"),
        ("2.13.0", "/usr/bin/python3"),
        ("2.13.0", "/opt/site/bin/python"),
        ("2.13.0", "/usr/bin/python3.9/bin/pypy"),
    ],
)
def test_what_is_not_known_passes(version: Any, python: str) -> None:
    assert found(version, python) == []


@pytest.mark.parametrize(
    ("version", "index", "sentences"),
    [
        ("2.9.1", f"{WHEELS}/cu130", []),
        ("2.9.1", f"{WHEELS}/cpu", []),
        ("2.9.1", "https://pypi.example.org/simple", []),
        ("2.13.0", f"{WHEELS}/cu118", []),
        (
            "2.9.1",
            f"{WHEELS}/cu118/",
            [
                f"torch_runtime_index_url = '{WHEELS}/cu118/': "
                "PyTorch 2.9 has no build cu118; it has cu126, cu128, cu130"
            ],
        ),
        (
            "2.6.0",
            f"{WHEELS}/cu130",
            [f"torch_runtime_index_url = '{WHEELS}/cu130': PyTorch 2.6 has no build cu130; it has cu118, cu124, cu126"],
        ),
        (
            "2.9.1+cu118",
            "",
            ["torch_runtime_version = '2.9.1+cu118': PyTorch 2.9 has no build cu118; it has cu126, cu128, cu130"],
        ),
        ("2.9.1+cu128", f"{WHEELS}/cu128", []),
        ("2.9.1+cpu", f"{WHEELS}/cu128", []),
        (
            "2.13.0+cu128",
            f"{WHEELS}/cu130",
            [
                "torch_runtime_version = '2.13.0+cu128': "
                "names the build cu128, and torch_runtime_index_url the build cu130"
            ],
        ),
    ],
)
def test_a_build_that_does_not_exist(version: str, index: str, sentences: list[str]) -> None:
    assert found(version, index=index) == sentences


def test_an_index_that_is_not_used_is_not_compared() -> None:
    assert found("2.9.1", index=f"{WHEELS}/cu118", find_links="/srv/wheels") == []


def test_the_tables_are_in_order_and_do_not_overlap() -> None:
    spans = [(first, last) for first, last, _python in versions.MINIMUM_PYTHON]
    assert all(first <= last for first, last in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
