# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forms of issues: GitHub shows one that breaks its rules to nobody, and tells nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import project
import pytest
import yaml

FOLDER = project.ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(set(FOLDER.glob("*.yml")) - {FOLDER / "config.yml"})
#: What a part of a form has to have, by its type.
NEEDED = {"markdown": {"value"}, "textarea": {"label"}, "input": {"label"}, "dropdown": {"label", "options"}}
KNOWN = {"label", "description", "placeholder", "value", "render", "options"}


def problems(form: dict[str, Any]) -> list[str]:
    """Why GitHub would not show a form."""
    found = [f"{key} is missing" for key in ("name", "description", "body") if not form.get(key)]
    found += [f"{key} is unknown" for key in set(form) - {"name", "description", "title", "labels", "body"}]
    parts = form.get("body", [])
    names = [part["id"] for part in parts if "id" in part]
    for part in parts:
        attributes = part.get("attributes", {})
        if part.get("type") not in NEEDED or NEEDED[part["type"]] - set(attributes) or set(attributes) - KNOWN:
            found.append(f"not a part of a form: {part}")
        if part.get("type") != "markdown" and names.count(part.get("id")) != 1:
            found.append(f"no id of its own: {part}")
    if not any(part.get("type") != "markdown" for part in parts):
        found.append("it asks nothing")
    return found


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_github_shows_the_form(path: Path) -> None:
    assert problems(yaml.safe_load(path.read_text(encoding="utf-8"))) == []


def test_bugs_questions_and_faults_have_a_form() -> None:
    assert {path.stem for path in FORMS} == {"bug", "question", "unnamed-fault"}
    bug = yaml.safe_load((FOLDER / "bug.yml").read_text(encoding="utf-8"))
    assert "report.json" in str([part for part in bug["body"] if part.get("id") == "report"])


def test_a_broken_form_is_told() -> None:
    part = {"type": "textarea", "id": "a", "attributes": {"label": "A"}}
    good = {"name": "A", "description": "B", "body": [part]}
    assert problems(good) == []
    assert problems({**good, "body": [{"type": "markdown", "attributes": {"value": "x"}}]}) == ["it asks nothing"]
    for broken in (
        {**part, "type": "text"},
        {**part, "attributes": {}},
        {**part, "id": "b", "extra": 1} | {"type": ""},
    ):
        assert problems({**good, "body": [broken]})
    assert problems({**good, "body": [part, part]}) and problems({**good, "about": "x"}) and problems({})
