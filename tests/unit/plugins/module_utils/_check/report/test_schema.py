# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The published shape of a report, and the check of it that needs nothing but the standard library."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import project
import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import ranks_results, verdict
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import REPORT_VERSION
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    compact,
    files,
    rails,
    schema,
)

#: Every key that reports of this version have had.
PUBLISHED = Path(__file__).parent / f"keys_of_version_{REPORT_VERSION}.txt"


def as_read(value: Any) -> Any:
    return json.loads(json.dumps(value))


def as_written(report: samples.Report) -> Any:
    """What a reader finds in report.json."""
    return json.loads(files.contents(report)[files.JSON])


@pytest.mark.parametrize("name", samples.all_samples())
def test_samples_fit(name: str) -> None:
    report = samples.all_samples()[name]
    for one in (report, samples.hostile(report)):
        assert list(schema.violations(as_written(one))) == [] and list(compact.problems(as_written(one))) == []


@pytest.mark.parametrize("name", samples.all_samples())
def test_samples_have_no_key_that_is_not_documented(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the oldest environment has no jsonschema")
    jsonschema.validate(as_written(samples.all_samples()[name]), samples.closed(schema.SCHEMA))


def test_the_schema_is_one() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the oldest environment has no jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema.SCHEMA)


def test_a_finding_of_the_code_fits() -> None:
    bare = Finding("GC-NET-001", ("n1",), "cause", "fix")
    full = Finding("GC-NET-001", (), "cause", "fix", subject=Subject("link", ("a", "b"), ports=((1, 2),)))
    for finding in (bare, full):
        assert list(schema.violations(as_read(finding.as_dict()), schema.FINDING)) == []
        assert set(finding.as_dict()) == set(schema.FINDING["properties"])
        assert set(finding.as_dict()["subject"]) == set(schema.SUBJECT["properties"])


def test_what_the_diagnosis_writes_is_what_is_documented() -> None:
    """Key by key: a field without a description, or the other way round."""

    def names(kind: Any) -> set[str]:
        return {one.name for one in dataclasses.fields(kind)}

    own = names(verdict.Report) - set(rails.OWN) | {"culprits", "schema_version", "links"}
    assert own == set(schema.SCHEMA["properties"])
    assert names(ranks_results.SizeResult) == set(schema.SIZE["properties"])
    assert names(verdict.Stage) == set(schema.STAGE["properties"])
    answers = {verdict.PASSED, verdict.FAILED, verdict.NOT_VALIDATED}
    assert answers == set(schema.SCHEMA["properties"]["verdict"]["enum"])


def keys(node: Any, place: str = "") -> set[str]:
    """The keys that a report of this schema has, with their places."""
    found: set[str] = set()
    for name, below in node.get("properties", {}).items():
        found |= {f"{place}{name}"} | keys(below, f"{place}{name}.")
    for word in ("items", "additionalProperties"):
        if isinstance(node.get(word), dict):
            found |= keys(node[word], f"{place}{word}.")
    return found


def test_within_one_version_keys_are_added_and_none_is_removed() -> None:
    """A new key goes into the list as well; one that has to go needs the next version, with a list of its own."""
    published = set(PUBLISHED.read_text(encoding="utf-8").split())
    assert published - keys(schema.SCHEMA) == set(), "removed"
    assert keys(schema.SCHEMA) - published == set(), f"not in {PUBLISHED.name} yet"


def test_the_results_of_links_are_documented() -> None:
    for result in (
        probe_ports.OK,
        probe_ports.TIMEOUT,
        probe_ports.UNREACHABLE,
        probe_ports.REFUSED,
        probe_ports.STALLED,
        probe_ports.FOREIGN,
    ):
        assert result in schema.RESULT["description"]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of everything in a report."""
    yield path
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(one, (*path, key))


def damaged(report: Any, path: tuple[Any, ...], dice: random.Random) -> Any:
    """The report with one thing removed or replaced."""
    broken = copy.deepcopy(report)
    inside = broken
    for key in path[:-1]:
        inside = inside[key]
    if isinstance(inside, dict) and dice.random() < 0.5:
        del inside[path[-1]]
    else:
        inside[path[-1]] = dice.choice([None, True, -1, 1.5, 7, "text", [], {}, "GC-X", "error"])
    return broken


def test_the_own_validator_agrees_with_jsonschema() -> None:
    """On 150 damaged reports, of which many are wrong and many are not."""
    jsonschema = pytest.importorskip("jsonschema", reason="the oldest environment has no jsonschema")
    validator = jsonschema.Draft202012Validator(schema.SCHEMA)
    report = as_written(samples.faulty())
    dice = random.Random(7)
    paths = [path for path in leaves(report) if path]
    wrong = 0
    for path in dice.sample(paths, 150):
        broken = damaged(report, path, dice)
        own = list(schema.violations(broken))
        assert bool(own) != validator.is_valid(broken), (path, own)
        wrong += bool(own)
    assert 40 < wrong < 140, wrong


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("verdict",), "MAYBE", "report.verdict is 'MAYBE', expected one of"),
        (("schema_version",), 1, "report.schema_version is 1, expected 3"),
        (("world_size",), True, "report.world_size is bool, expected integer"),
        (("findings", 0, "confidence"), 1.5, "report.findings[0].confidence is 1.5, out of range"),
        (("findings", 0, "subject", "ports", 0), [1], "report.findings[0].subject.ports[0] has 1 items"),
        (("links", "mesh", "rows", "gpu01"), 3, "report.links.mesh.rows.gpu01 is int, expected string"),
    ],
)
def test_a_violation_names_its_place(path: tuple[Any, ...], value: object, text: str) -> None:
    report = as_written(samples.faulty())
    inside = report
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    (only,) = schema.violations(report)
    assert only.startswith(text)


def test_what_is_published_is_up_to_date() -> None:
    """If not: python3 tools/report_samples.py"""
    for path, text in samples.written():
        assert path.read_text() == text, path.relative_to(project.ROOT)
