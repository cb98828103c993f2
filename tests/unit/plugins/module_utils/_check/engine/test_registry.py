# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A finding takes its severity from the registry, and none is made that is not declared there."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import (
    ERROR,
    FINDINGS,
    ROWS,
    WARNING,
    Entry,
)

#: One that is always an error, and one that is usually one.
ALWAYS, USUALLY = "GC-NODE-003", "GC-NODE-004"
STAGES = ("static", "mesh", "collective", "openmpi", "facts", "all")


def made(number: str, severity: str = "") -> Finding:
    return Finding(number, ("n1",), "a cause", "a fix", severity=severity)


@pytest.mark.parametrize("number", ["GC-NODE-903", "GC-NDOE-003", "gc-node-003", "GC-NODE-03", ""])
def test_a_typo_in_an_id_fails_at_once(number: str) -> None:
    with pytest.raises(ValueError, match=f"no finding {number} is declared"):
        made(number)


def test_the_severity_is_that_of_the_registry() -> None:
    assert made(ALWAYS).severity == ERROR and made("GC-NODE-006").severity == WARNING
    assert made(USUALLY).severity == ERROR and made(USUALLY, WARNING).severity == WARNING
    assert replace(made(USUALLY), severity=WARNING).severity == WARNING
    assert replace(made(USUALLY, WARNING), cause="another").severity == WARNING


@pytest.mark.parametrize("severity", [WARNING, "fatal"])
def test_no_severity_is_chosen_that_is_not_declared(severity: str) -> None:
    with pytest.raises(ValueError, match=f"{ALWAYS} is declared as error, not as {severity}"):
        made(ALWAYS, severity)
    with pytest.raises(ValueError, match=f"{ALWAYS} is declared as error, not as {severity}"):
        replace(made(ALWAYS), severity=severity)


def test_both_severities_in_words() -> None:
    assert FINDINGS[USUALLY].when == "error; warning when only the prefix length differs"
    assert FINDINGS["GC-CLOCK-001"].when == "warning; error above 300 s"
    assert FINDINGS[ALWAYS].when == "error"


def test_the_table_has_each_id_and_each_title_once_and_in_order() -> None:
    assert [row[0] for row in ROWS] == sorted(FINDINGS)
    assert len({entry.title for entry in FINDINGS.values()}) == len(FINDINGS)


@pytest.mark.parametrize("entry", FINDINGS.values(), ids=list(FINDINGS))
def test_every_row_is_whole(entry: Entry) -> None:
    assert re.fullmatch(r"GC-[A-Z]+-[0-9]{3}", entry.id)
    assert entry.severity in (ERROR, WARNING) and entry.stage in STAGES
    assert entry.title and entry.subject and "|" not in f"{entry.title}{entry.subject}{entry.other_when}"
