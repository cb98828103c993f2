# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a role says about its variables must agree: argument spec, defaults, README."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import project
import pytest
import role_readmes
import yaml

MISSING = object()
ROLES = role_readmes.role_folders()
FILES = ("README.md", "defaults/main.yml", "meta/argument_specs.yml", "meta/main.yml")
# A variable without a default stands in defaults/main.yml as a comment: "# role_variable: example"
COMMENTED = re.compile(r"^#\s?([a-z_][a-z0-9_]*):(?:\s|$)", re.MULTILINE)


def is_missing(option: dict[str, Any], value: object) -> bool:
    """Whether a spec leaves out a default that it could not hold."""
    return "default" not in option and isinstance(value, str) and "{{" in value


def commented_defaults(role: Path) -> set[str]:
    """The role's own variables that are only described."""
    names = COMMENTED.findall((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    return {name for name in names if name.startswith(f"{role.name}_")}


def test_there_are_roles() -> None:
    """An empty list would make every test below pass."""
    assert ROLES


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
class TestRole:
    """One role."""

    @pytest.mark.parametrize("name", FILES)
    def test_has_the_file(self, role: Path, name: str) -> None:
        """Every role has the same first page."""
        assert (role / name).is_file(), f"roles/{role.name}/{name} is missing"

    def test_has_a_row_in_the_table_of_where_it_ran(self, role: Path) -> None:
        text = (role.parents[1] / "docs" / "support.md").read_text(encoding="utf-8")
        assert len(re.findall(rf"^\| `{role.name}` \|.*\|$", text, re.MULTILINE)) == 1

    def test_every_entry_point_has_tasks(self, role: Path) -> None:
        """An entry point that is described exists, and main is described where it exists."""
        specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
        missing = [name for name in specs if not (role / "tasks" / f"{name}.yml").is_file()]
        assert not missing, f"roles/{role.name}/tasks has no {missing}"
        assert "main" in specs or not (role / "tasks" / "main.yml").exists()

    def test_spec_and_defaults_name_the_same_variables(self, role: Path) -> None:
        """Whoever reads either knows every input."""
        in_defaults = set(role_readmes.read_defaults(role)) | commented_defaults(role)
        in_spec = set(role_readmes.read_options(role))
        assert in_defaults - in_spec == set(), "in defaults/main.yml, but not in meta/argument_specs.yml"
        assert in_spec - in_defaults == set(), "in meta/argument_specs.yml, but not in defaults/main.yml"

    def test_spec_and_defaults_give_the_same_values(self, role: Path) -> None:
        """The documentation shows the default that is in force; one that is computed may be missing in the spec."""
        options = role_readmes.read_options(role)
        differing = {
            name: {"defaults": value, "spec": options[name].get("default", "no default")}
            for name, value in role_readmes.read_defaults(role).items()
            if name in options
            and options[name].get("default", MISSING) != value
            and not is_missing(options[name], value)
        }
        assert not differing

    def test_required_variables_have_no_default(self, role: Path) -> None:
        """A default would hide that nobody set them."""
        required = {name for name, option in role_readmes.read_options(role).items() if option.get("required")}
        assert required & set(role_readmes.read_defaults(role)) == set()

    def test_variables_carry_the_role_in_their_name(self, role: Path) -> None:
        """Role variables are global."""
        names = set(role_readmes.read_defaults(role)) | set(role_readmes.read_options(role))
        assert [name for name in names if not name.startswith(f"{role.name}_")] == []

    def test_readme_table_is_current(self, role: Path) -> None:
        """The table is written by make readmes."""
        assert (role / "README.md").read_text(encoding="utf-8") == role_readmes.updated(role), "run make readmes"


def test_no_role_calls_another() -> None:
    """What one role needs from another travels through variables that the playbook hands over."""
    calls = re.compile(r"(?:ansible\.builtin\.)?(?:include|import)_role:|^dependencies:\s*\n\s*-", re.MULTILINE)
    callers = [
        str(file.relative_to(project.ROOT))
        for role in ROLES
        for folder in ("tasks", "handlers", "meta")
        for file in sorted((role / folder).rglob("*.yml"))
        if calls.search(file.read_text(encoding="utf-8"))
    ]
    assert callers == []
