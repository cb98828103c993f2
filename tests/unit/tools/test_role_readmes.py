# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables table of a role's README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import role_readmes

SPEC = """---
argument_specs:
  main:
    options:
      web_port:
        type: int
        default: 80
        description: The port, see O(web_hosts) and V(a\\)b).
      web_hosts:
        type: list
        elements: dict
        required: true
        description: [First sentence., Second | sentence.]
        options:
          name:
            description: A name.
            choices: [x, y, ""]
      web_text:
        default: ""
        description: Nothing.
"""
TABLE = """| Variable | Type | Default | Description |
| --- | --- | --- | --- |
| `web_port` | int | `80` | The port, see `web_hosts` and `a)b`. |
| `web_hosts` | list of dict | *required* | First sentence. Second \\| sentence. |
| `web_hosts[].name` | str |  | A name. One of `x`, `y`, `""`. |
| `web_text` | str | `""` | Nothing. |"""


def make_role(folder: Path, spec: str) -> Path:
    """A role of which only the spec exists."""
    (folder / "meta").mkdir()
    (folder / "meta" / "argument_specs.yml").write_text(spec, encoding="utf-8")
    return folder


def test_table_shows_every_option(tmp_path: Path) -> None:
    """Types, defaults, nested options, markup, and what would break a Markdown table."""
    assert role_readmes.table(role_readmes.read_options(make_role(tmp_path, SPEC))) == TABLE


def test_entry_points_must_agree(tmp_path: Path) -> None:
    """One name, one meaning."""
    more = "  other:\n    options:\n      web_port: {type: int, default: 81}\n"
    with pytest.raises(role_readmes.ReadmeError, match="web_port is described differently in entry point other"):
        role_readmes.read_options(make_role(tmp_path, SPEC + more))


def test_only_the_table_is_replaced() -> None:
    """Text around it stays, and writing twice changes nothing."""
    readme = f"# web\n{role_readmes.BEGIN}\nold\n{role_readmes.END}\nmore\n"
    once = role_readmes.with_table(readme, "new")
    assert once == f"# web\n{role_readmes.BEGIN}\nnew\n{role_readmes.END}\nmore\n"
    assert role_readmes.with_table(once, "new") == once


@pytest.mark.parametrize("readme", ["", role_readmes.BEGIN, f"{role_readmes.END}\n{role_readmes.BEGIN}"])
def test_readme_without_markers_is_refused(readme: str) -> None:
    """Else the table would go nowhere."""
    with pytest.raises(role_readmes.ReadmeError, match="once each"):
        role_readmes.with_table(readme, "new")


@pytest.mark.parametrize(
    ("option", "shown"),
    [({}, ""), ({"default": []}, "`[]`"), ({"default": None}, "`null`"), ({"default": True}, "`true`")],
)
def test_defaults_as_in_an_inventory(option: dict[str, Any], shown: str) -> None:
    """Not as Python writes them."""
    assert role_readmes.default_of(option) == shown
