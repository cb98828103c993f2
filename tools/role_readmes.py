# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the variables table of every role's README from its argument spec; with --check only say which are stale."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import project
import yaml

BEGIN = "<!-- begin variables -->"
END = "<!-- end variables -->"
HEADING = "| Variable | Type | Default | Description |\n| --- | --- | --- | --- |"


class ReadmeError(Exception):
    """A README that cannot take a table."""


def role_folders(root: Path = project.ROOT) -> list[Path]:
    """Every role of the collection."""
    return sorted(path for path in (root / "roles").iterdir() if path.is_dir())


def read_defaults(role: Path) -> dict[str, Any]:
    """The defaults that Ansible would load."""
    return yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8")) or {}


def read_options(role: Path) -> dict[str, dict[str, Any]]:
    """The variables of a role: those of all its entry points together."""
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    options: dict[str, dict[str, Any]] = {}
    for entry_point, spec in specs.items():
        for name, option in (spec.get("options") or {}).items():
            if options.setdefault(name, option) != option:
                raise ReadmeError(f"{role.name}: {name} is described differently in entry point {entry_point}.")
    return options


def table(options: Mapping[str, Mapping[str, Any]]) -> str:
    """The whole table, in the order of the spec."""
    if not options:
        return "This role has no variables."
    return "\n".join([HEADING, *(row for name, option in options.items() for row in rows(name, option))])


def rows(name: str, option: Mapping[str, Any]) -> Iterator[str]:
    """The row of a variable, then those of what is inside it."""
    cells = [f"`{name}`", type_of(option), default_of(option), description_of(option)]
    yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    inside = f"{name}[]" if option.get("type") == "list" else name
    for key, inner in (option.get("options") or {}).items():
        yield from rows(f"{inside}.{key}", inner)


def type_of(option: Mapping[str, Any]) -> str:
    """The type in words."""
    kind = str(option.get("type", "str"))
    return f"list of {option['elements']}" if kind == "list" and "elements" in option else kind


def default_of(option: Mapping[str, Any]) -> str:
    """The default as one would write it in an inventory."""
    if option.get("required"):
        return "*required*"
    if "default" not in option:
        return ""
    value = option["default"]
    return f"`{value if isinstance(value, str) and value else json.dumps(value)}`"


def description_of(option: Mapping[str, Any]) -> str:
    """The description as Markdown on one line, with the choices."""
    text = option.get("description", "")
    sentences = [text] if isinstance(text, str) else list(text)
    if "choices" in option:
        choices = [choice if choice != "" else '""' for choice in option["choices"]]
        sentences.append("One of " + ", ".join(f"C({choice})" for choice in choices) + ".")
    return markdown(" ".join(" ".join(sentences).split()))


def markdown(text: str) -> str:
    """Ansible's semantic markup as Markdown."""
    text = re.sub(r"\bB\(([^)]*)\)", r"**\1**", text)
    text = re.sub(r"\bI\(([^)]*)\)", r"*\1*", text)
    text = re.sub(r"\bL\(([^,)]*), *([^)]*)\)", r"[\1](\2)", text)
    text = re.sub(r"\bU\(([^)]*)\)", r"<\1>", text)
    return re.sub(r"\b(?:C|E|M|O|P|RV|V)\(((?:\\.|[^)\\])*)\)", literal, text)


def literal(match: re.Match[str]) -> str:
    """A name or value, without the escapes of the markup."""
    return "`" + re.sub(r"\\(.)", r"\1", match.group(1)) + "`"


def with_table(readme: str, new_table: str) -> str:
    """The README with its table replaced."""
    if readme.count(BEGIN) != 1 or readme.count(END) != 1 or readme.index(BEGIN) > readme.index(END):
        raise ReadmeError(f"the README must hold the lines {BEGIN} and {END} once each, in this order.")
    before, rest = readme.split(BEGIN)
    return f"{before}{BEGIN}\n{new_table}\n{END}{rest.split(END)[1]}"


def updated(role: Path) -> str:
    """What a role's README should say."""
    readme = (role / "README.md").read_text(encoding="utf-8")
    try:
        defaults = read_defaults(role)
        # A spec cannot hold a default that is computed: it stands in the role's defaults only.
        complete = {
            name: {"default": defaults[name]} | option if name in defaults else option
            for name, option in read_options(role).items()
        }
        return with_table(readme, table(complete))
    except ReadmeError as error:
        raise ReadmeError(f"roles/{role.name}/README.md: {error}") from error


def main() -> int:
    """Write or check every README."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail when a table is not current")
    checking = parser.parse_args().check
    problems = []
    for role in role_folders():
        try:
            wanted = updated(role)
        except (OSError, KeyError, ReadmeError) as error:
            problems.append(f"{role.name}: {error}")
            continue
        readme = role / "README.md"
        if readme.read_text(encoding="utf-8") == wanted:
            continue
        if checking:
            problems.append(f"roles/{role.name}/README.md: the table is not current, run tools/role_readmes.py")
        else:
            readme.write_text(wanted, encoding="utf-8")
            print(f"wrote {readme.relative_to(project.ROOT)}")
    print("\n".join(problems) or f"{len(role_folders())} role READMEs are current")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
