# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One file of the collection knows addresses of the internet, so a site that replaces those is asked for no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import project
import pytest
import yaml

CATALOGUE = Path("plugins/module_utils/_package_sources/catalogue.py")
#: The host of an address. A name of one word stands for one, as HOST in a message.
ADDRESS = re.compile(r"\b(?:https?|ftp)://((?:[\w-]+\.)+[a-z]{2,})", re.IGNORECASE)
#: Names of formats that look like addresses, and are asked by nobody.
NAMES = {"json-schema.org", "linux.duke.edu"}
DOCUMENTED = {"DOCUMENTATION", "EXAMPLES", "RETURN"}


def texts_of_python(source: str) -> Iterator[str]:
    """Every text of a program but those that describe it."""
    tree = ast.parse(source)
    described = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            described.add(node.value)
        if isinstance(node, ast.Assign) and {getattr(one, "id", "") for one in node.targets} & DOCUMENTED:
            described |= {one for one in ast.walk(node.value) if isinstance(one, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in described:
            yield node.value


def texts_of_yaml(value: Any) -> Iterator[str]:
    """Every text in a file of a role or a playbook, keys included."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield str(key)
            yield from texts_of_yaml(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts_of_yaml(one)
    else:
        yield str(value)


def hosts(texts: Iterator[str]) -> set[str]:
    found = {host.lower() for text in texts for host in ADDRESS.findall(text)}
    return {host for host in found if host not in NAMES and "example" not in host.split(".")}


def shipped() -> Iterator[tuple[Path, set[str]]]:
    for file in project.source_files():
        path = project.ROOT / file
        of_role = file.parts[0] == "roles" and file.parent.name == "files"
        if of_role or (file.parts[0] == "plugins" and file.suffix == ".py"):
            yield file, hosts(texts_of_python(path.read_text(encoding="utf-8")))
        elif file.parts[0] in ("roles", "playbooks") and file.suffix == ".yml" and file.parent.name != "meta":
            yield file, hosts(texts_of_yaml(yaml.safe_load(path.read_text(encoding="utf-8"))))


def test_one_file_knows_addresses_of_the_internet() -> None:
    found = {str(file): sorted(names) for file, names in shipped() if names}
    assert list(found) == [str(CATALOGUE)], found


@pytest.mark.parametrize(
    "source",
    [
        'URL = "https://pypi.org/simple"',
        'def ask():\n    """It asks."""\n    get(f"http://{x}.site.example.org/", "https://a.fedoraproject.org/{}".format(1))',
    ],
)
def test_an_address_in_code_is_found(source: str) -> None:
    assert hosts(texts_of_python(source))


def test_what_describes_a_program_is_no_address() -> None:
    source = '"""See https://pytorch.org."""\nEXAMPLES = r"""\n- url: https://pytorch.org\n"""\nFIX = "http://HOST"\n'
    assert not hosts(texts_of_python(source))
    assert hosts(texts_of_yaml([{"a": ["see https://pytorch.org"]}])) == {"pytorch.org"}
