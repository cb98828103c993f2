# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registry, code and pages have the same findings, and what a page tells people to write or to run exists."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import findings_index
import project
import pytest
import report_samples
import text_pages
import yaml
from findings_index import Page

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import FINDINGS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.plan_overrides import HANDED_OVER

PATHS = sorted(findings_index.FOLDER.glob("GC-*.md"))
NAMES = [path.stem for path in PATHS]
each_page = pytest.mark.parametrize("path", PATHS, ids=NAMES)
#: Fallbacks of ansible itself that a fix may name.
OF_ANSIBLE = {"ansible_host", "ansible_port", "ansible_user"}
#: In a module that gives variables to other findings: rows of the matrix without settings, and what no rule explains.
WITHOUT_VARIABLES = {
    *("GC-NET-005", "GC-NET-008", "GC-NET-009", "GC-NET-011", "GC-VER-004", "GC-VER-010"),
    *("GC-VER-013", "GC-VER-014", "GC-VER-015", "GC-VER-016", "GC-VER-017"),
    "GC-VER-019",
}
#: How findings, and functions that make them, call their variables.
NAME = "variables"
#: Where tests break nodes and run playbooks on them.
ON_NODES = ("molecule/", "tests/faults/")
#: A call of ansible or ansible-playbook, or the beginning of one that is put together.
COMMAND = r"\bansible(-playbook | (\S+ )?-\w| $)"


@cache
def plugin_files() -> tuple[Path, ...]:
    """The Python files of the collection's plugins."""
    files = [file for file in project.source_files() if file.parts[0] == "plugins" and file.suffix == ".py"]
    return tuple(project.ROOT / file for file in files)


def code() -> list[str]:
    """The code of the plugins, without the registry."""
    files = [path for path in plugin_files() if path.parts[-2:] != ("engine", "registry.py")]
    return [path.read_text(encoding="utf-8") for path in files]


def raised_in(source: str) -> set[str]:
    """The ids that stand as whole strings in Python code and are compared with nothing: how a finding gets its id."""
    tree = ast.parse(source)
    return ids_in(tree, {part for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)})


def ids_in(tree: ast.AST, but: Collection[ast.AST] = ()) -> set[str]:
    """All that stand in a part of it, but for those in other parts."""
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in but]
    return {value for value in constants if isinstance(value, str) and re.fullmatch(findings_index.ID, value)}


def naming_variables(source: str) -> set[str]:
    """The ids of a module that get ``variables``: those in the call that gives them, or all where none is in it.

    A function that takes ``variables`` and hands them on counts where it is called with them.
    """
    tree = ast.parse(source)
    places: dict[str, int] = {}
    handing_on: set[ast.AST] = set()
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        parameters = [one.arg for one in function.args.args]
        if NAME in parameters:
            places[function.name] = parameters.index(NAME)
            handing_on.update(ast.walk(function))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node not in handing_on]
    giving = [
        call
        for call in calls
        if any(one.arg == NAME for one in call.keywords)
        or len(call.args) > places.get(ast.unparse(call.func), len(call.args))
    ]
    return set().union(*(ids_in(call) or ids_in(tree) for call in giving))


def functions_of(path: Path) -> set[str]:
    """The functions of a test file, of its classes too."""
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def unknown_tests(page: Page, root: Path = project.ROOT) -> list[str]:
    """The tests of a finding that are not there."""
    return [f"{file}::{name}" for file, name in page.tests if name not in functions_of(root / file)]


@cache
def variables() -> frozenset[str]:
    """Every variable that an inventory may set: the defaults of the roles, and those of the whole cluster."""
    found = set(OF_ANSIBLE)
    for defaults in project.ROOT.glob("roles/*/defaults/main.yml"):
        found |= set(yaml.safe_load(defaults.read_text(encoding="utf-8")) or {})
    for folder, pattern in (("roles", "*.yml"), ("playbooks", "*.yml"), ("plugins", "*.py")):
        for file in (project.ROOT / folder).rglob(pattern):
            found |= set(re.findall(r"\bgpu_cluster_[a-z_]+\b", file.read_text(encoding="utf-8")))
    return frozenset(found)


def unknown_variables(block: str, known: Iterable[str]) -> list[str]:
    """The keys of a block of YAML that are no variables: its own, or those below the name of a host or group."""
    content = yaml.safe_load(block)
    if not isinstance(content, Mapping):
        return [f"not a mapping: {block.strip()}"]
    wrong = []
    for key, value in content.items():
        if key not in known:
            below = list(value) if isinstance(value, Mapping) and value else [key]
            wrong += [str(name) for name in below if name not in known]
    return wrong


@cache
def tags() -> frozenset[str]:
    """Every tag that a playbook gives to something."""
    found: set[str] = set()

    def collect(node: Any) -> None:
        if isinstance(node, Mapping):
            given = node.get("tags", [])
            found.update([given] if isinstance(given, str) else given)
            for value in node.values():
                collect(value)
        elif isinstance(node, list):
            for value in node:
                collect(value)

    for playbook in project.playbooks():
        collect(yaml.safe_load(playbook.read_text(encoding="utf-8")))
    return frozenset(found)


def wrong_commands(block: str, known_tags: Iterable[str], playbooks: Iterable[str]) -> list[str]:
    """Commands of ansible-playbook that name a playbook or a tag that does not exist."""
    wrong = []
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["ansible-playbook"]:
            continue
        wrong += [line] if len(words) < 2 or words[1] not in playbooks else []
        given = [words[number + 1] for number, word in enumerate(words[:-1]) if word == "--tags"]
        wrong += [f"{line}: {tag}" for tag in ",".join(given).split(",") if tag and tag not in known_tags]
    return wrong


def playbooks() -> set[str]:
    """How playbooks of the collection are called."""
    return {"site.yml"} | {f"{project.COLLECTION}.{playbook.stem}" for playbook in project.playbooks()}


def commands_in(source: str) -> list[str]:
    """The texts of Python code in which a program of Ansible is called, also those that are put together."""
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and re.search(COMMAND, text)]


def keys_in(source: str, pattern: str) -> set[str]:
    """The keys of dictionaries in Python code that match: words, or constants of that file that hold a word."""
    nodes = list(ast.walk(ast.parse(source)))
    constants = {
        ast.unparse(node.targets[0]): node.value.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    keys = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys if key is not None]
    words = [key.value if isinstance(key, ast.Constant) else constants.get(ast.unparse(key)) for key in keys]
    return {word for word in words if isinstance(word, str) and re.fullmatch(pattern, word)}


def without_inventory(report: Mapping[str, Any]) -> list[str]:
    """The commands in the findings of a report that name no inventory."""
    return [
        command
        for finding in report["findings"]
        for command in (finding["command"], finding["look"], finding["reproduce"])
        if command.startswith("ansible") and " -i " not in command
    ]


def test_one_file_knows_how_a_command_is_written() -> None:
    """So that none of them lacks the inventory."""
    folders = ("_check", "_packet_filter")
    files = [path for path in plugin_files() if set(folders) & set(path.parts)]
    written_in = {path.name for path in files if commands_in(path.read_text(encoding="utf-8"))}
    assert written_in == {"fixes.py"}


def test_every_variable_that_a_finding_names_is_one_of_the_collection() -> None:
    roles = "|".join(path.name for path in project.ROOT.glob("roles/*"))
    named = {
        (path.name, key)
        for path in plugin_files()
        if {"_check", "_packet_filter"} & set(path.parts)
        for key in keys_in(path.read_text(encoding="utf-8"), rf"({roles}|gpu_cluster)_[a-z0-9_]+")
    }
    assert {
        ("packet_filter.py", "cluster_firewall_ipv6_rpfilter"),
        ("gpu_health.py", "nvidia_driver_reboot_ok"),
    } <= named
    assert [one for one in sorted(named) if one[1] not in variables()] == []
    # An inventory that repeats the port plan in another variable contradicts the next plan.
    assert [one for one in sorted(named) if one[1] in HANDED_OVER] == []


@each_page
def test_no_page_repeats_the_port_plan_in_a_variable_that_stands_in_its_place(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [name for name in HANDED_OVER if re.search(rf"^\s*{name}:", text, re.MULTILINE)] == []


def test_every_finding_that_can_name_variables_has_a_test_that_applies_them() -> None:
    """Or says why there is none: its rows in the table of tests."""
    files = [path for path in plugin_files() if {"_check", "_packet_filter"} & set(path.parts)]
    can = set().union(*(naming_variables(path.read_text(encoding="utf-8")) for path in files))
    listed = {page.id for page in findings_index.pages() if page.variables}
    assert can - listed == WITHOUT_VARIABLES, "no row with a variable"
    assert listed - can == set(), "nothing gives it variables"


@each_page
def test_the_variables_of_a_finding_are_applied_on_nodes(path: Path) -> None:
    for variable, applied in findings_index.read(path).variables:
        assert variable.strip("`") in variables()
        assert [file for file, _name in findings_index.TEST.findall(applied) if not file.startswith(ON_NODES)] == []


@pytest.mark.parametrize("name", report_samples.all_samples())
def test_every_command_of_a_sample_names_the_inventory(name: str) -> None:
    assert without_inventory(report_samples.all_samples()[name]) == []


@each_page
def test_every_command_of_a_page_names_the_inventory(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.match(r"ansible(-playbook)? ", line)]
    assert [line for line in lines if " -i " not in line] == []


def test_every_finding_has_a_page_and_every_page_a_finding() -> None:
    assert sorted(set(FINDINGS) - set(NAMES)) == [], "findings without a page"
    assert sorted(set(NAMES) - set(FINDINGS)) == [], "pages without a finding"


def test_every_id_in_code_is_declared_and_every_declared_one_is_made() -> None:
    named = set().union(*(ids_in(ast.parse(source)) for source in code()))
    made = set().union(*map(raised_in, code()))
    assert sorted(named - set(FINDINGS)) == [], "ids that the registry does not declare"
    assert sorted(set(FINDINGS) - made) == [], "declared, and made nowhere"


def test_no_text_of_a_plugin_names_a_finding_that_does_not_exist() -> None:
    named = {
        (str(path.relative_to(project.ROOT)), one)
        for path in plugin_files()
        for one in re.findall(findings_index.ID, path.read_text(encoding="utf-8"))
    }
    assert sorted(entry for entry in named if entry[1] not in FINDINGS) == []


def test_the_index_is_current() -> None:
    """`tools/findings_index.py` writes it."""
    index = (findings_index.FOLDER / "index.md").read_text(encoding="utf-8")
    assert findings_index.with_table(index) == index


def test_the_pages_of_texts_are_current() -> None:
    """`tools/text_pages.py` writes them."""
    stale = [str(path) for path, text in text_pages.wanted().items() if path.read_text(encoding="utf-8") != text]
    assert stale == []


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ("Address already in use|EADDRINUSE", ["Address already in use", "EADDRINUSE"]),
        (r"Connect to (?P<address>[^\s<>]+)<(?P<port>\d+)> failed", ["Connect to <address><<port>> failed"]),
        (r"(?:Host key for|key for) (?P<host>\S+) has changed", ["Host key for <host> has changed"]),
        (r"wait \d+ms, keys: .*cpu//\d+/(?P<rank>\d+)", ["wait <number>ms, keys: ... cpu//<number>/<number>"]),
        (r"Bootstrap ?: no socket(?! there)\b", ["Bootstrap: no socket"]),
        (r"a \(local\) address\.", ["a (local) address."]),
        (r"PyTorch \S+ sees [01] of \[x\]", ["PyTorch ... sees 0 of [x]"]),
    ],
)
def test_an_expression_is_shown_as_the_text_that_it_matches(words: str, texts: list[str]) -> None:
    assert text_pages.shown(words) == texts


@each_page
def test_the_tests_of_a_finding_exist(path: Path) -> None:
    assert unknown_tests(findings_index.read(path)) == []


def test_every_row_of_the_tests_is_that_of_a_page() -> None:
    assert sorted(set(findings_index.rows()) - set(NAMES)) == []


@each_page
def test_the_fix_of_a_page_can_be_written_and_run(path: Path) -> None:
    """Its variables are variables, its commands name playbooks and tags that exist."""
    page = findings_index.read(path)
    blocks = page.blocks("Fix", "yaml")
    assert [wrong for block in blocks for wrong in unknown_variables(block, variables())] == []
    commands = page.blocks("Fix", "sh") + page.blocks("Fix", "console")
    assert [wrong for block in commands for wrong in wrong_commands(block, tags(), playbooks())] == []


@pytest.mark.parametrize("path", sorted(findings_index.FOLDER.glob("*.md")), ids=lambda path: path.stem)
def test_the_links_of_a_page_lead_somewhere(path: Path) -> None:
    found = re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8"))
    targets = [target.split("#")[0] for target in found if "://" not in target]
    assert [target for target in targets if target and not (findings_index.FOLDER / target).exists()] == []


HEAD = findings_index.head(FINDINGS["GC-NET-001"])
BODY = """
## Symptom

It fails.

## Fix

```sh
ansible-playbook site.yml
```

## Cause

A rule.

## Details

```text
## this is no heading
```
"""
GOOD = HEAD + BODY
ROWS = f"""# Tests

{findings_index.TESTS_HEADING}
| --- | --- | --- |
| GC-NET-001 | | `tests/unit/test_x.py::test_y` |
| GC-NET-001 | | not shown: a switch |
| GC-NET-002 | `torch_version` | not shown: another finding |
| GC-NET-001 | `nccl_version` | `molecule/faults/tests/test_x.py::test_z`: more |
| GC-NET-001 | `openmpi_version` | not shown: it needs a GPU |
"""


def written(folder: Path, text: str, rows: str = ROWS) -> Path:
    """A page, with the table of tests beside it."""
    (folder / findings_index.TESTS).write_text(rows, encoding="utf-8")
    path = folder / "GC-NET-001.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_page_is_read(tmp_path: Path) -> None:
    page = findings_index.read(written(tmp_path, GOOD))
    assert page.id == "GC-NET-001" and tuple(page.sections) == findings_index.SECTIONS
    assert page.tests == [("tests/unit/test_x.py", "test_y"), ("molecule/faults/tests/test_x.py", "test_z")]
    assert page.variables == [
        ("`nccl_version`", "`molecule/faults/tests/test_x.py::test_z`: more"),
        ("`openmpi_version`", "not shown: it needs a GPU"),
    ]


def test_a_test_that_is_missing_is_found(tmp_path: Path) -> None:
    page = findings_index.read(written(tmp_path, GOOD))
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "tests" / "unit" / "test_x.py").write_text("def test_y() -> None: ...\n", encoding="utf-8")
    assert unknown_tests(page, tmp_path) == ["molecule/faults/tests/test_x.py::test_z"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("# GC-NET-001: ", "# GC-NET-002: ", "expected this head"),
        ("connections of nodes fail", "connections of a node fail", "expected this head"),
        ("| severity | subject | stage |", "| severity | subject |", "expected this head"),
        ("| error | node", "| warning | node", "expected this head"),
        ("| error | node", "| error | link", "expected this head"),
        ("| mesh |", "| static |", "expected this head"),
        ("## Cause\n\nA rule.\n\n", "", "expected the sections"),
        ("\nA rule.\n", "", "empty"),
        ("```sh", "```yaml", "no command"),
    ],
)
def test_a_page_of_another_form_is_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in GOOD
    with pytest.raises(findings_index.PageError, match=problem):
        findings_index.read(written(tmp_path, GOOD.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("| id | variable |", "| id | name |", "expected one table"),
        ("GC-NET-001 |", "GC-NET-003 |", "has no test"),
        ("`tests/unit/test_x.py::test_y`", "by hand", "needs a test"),
        ("| GC-NET-001 | |", "| GC-NET-01 | |", "needs a test"),
        ("| GC-NET-002 |", "\n| GC-NET-002 |", "needs a test"),
        ("not shown: it needs a GPU", "not shown: ", "needs a test"),
        ("not shown: it needs a GPU", "by hand: it needs a GPU", "needs a test"),
        ("`nccl_version`", "nccl", "needs a test"),
        (" | `nccl_version`", "", "needs a test"),
    ],
)
def test_rows_of_another_form_are_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in ROWS
    with pytest.raises(findings_index.PageError, match=problem):
        findings_index.read(written(tmp_path, GOOD, ROWS.replace(old, new)))


def test_pages_are_those_that_are_there_and_those_that_the_registry_wants(tmp_path: Path) -> None:
    for page in findings_index.FOLDER.glob("*.md"):
        (tmp_path / page.name).write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    assert [page.id for page in findings_index.pages(tmp_path)] == sorted(FINDINGS)
    (tmp_path / "GC-NET-001.md").rename(tmp_path / "GC-NET-099.md")
    with pytest.raises(findings_index.PageError, match=r"GC-NET-001\.md: the finding has no page"):
        findings_index.pages(tmp_path)
    (tmp_path / "GC-NET-001.md").write_text(GOOD, encoding="utf-8")
    with pytest.raises(findings_index.PageError, match=r"GC-NET-099\.md: the registry declares no finding"):
        findings_index.pages(tmp_path)


def test_the_table_is_made_of_the_registry() -> None:
    index = f"text\n{findings_index.BEGIN}\nstale\n{findings_index.END}\nmore\n"
    made = findings_index.with_table(index)
    assert (
        "| [GC-NET-003](GC-NET-003.md) | error | directed link; or both directions of it | mesh | a link is closed |"
        in made
    )
    assert "| [GC-CLOCK-001](GC-CLOCK-001.md) | warning; error above 300 s | node; none when" in made
    assert made.startswith("text\n") and made.endswith("\nmore\n") and "stale" not in made
    with pytest.raises(findings_index.PageError):
        findings_index.with_table("no markers")


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        ('Finding("GC-NET-001", variables=v)\nFinding("GC-NET-002")', {"GC-NET-001"}),
        ('ID = "GC-NET-001"\nFinding(ID, variables=v)', {"GC-NET-001"}),
        ('X = {"a": "GC-NET-001"}\nreplace(one, variables=v)', {"GC-NET-001"}),
        (
            "def make(number, variables=None):\n    return Finding(number, variables=variables)\n"
            'make("GC-NET-001", v)\nmake("GC-NET-002")\nmake("GC-NET-003", variables=v)',
            {"GC-NET-001", "GC-NET-003"},
        ),
        ('Finding("GC-NET-001")', set()),
    ],
)
def test_who_names_variables_is_read_out_of_code(source: str, ids: set[str]) -> None:
    assert naming_variables(source) == ids


def test_ids_are_read_out_of_code_and_not_out_of_texts() -> None:
    source = '"""About GC-NET-001."""\nID = "GC-NET-002"\nTEXT = "see GC-NET-003"\n'
    source += 'one.id == "GC-NET-002" or one.id in ("GC-NET-004",)'
    assert raised_in(source) == {"GC-NET-002"}
    assert ids_in(ast.parse(source)) == {"GC-NET-002", "GC-NET-004"}


def test_what_a_fix_may_say() -> None:
    known = ["nccl_version"]
    assert unknown_variables("nccl_version: 2.28.9", known) == []
    assert unknown_variables("n3:\n  nccl_version: 2.28.9\n", known) == []
    assert unknown_variables("nccl_versoin: 2.28.9", known) == ["nccl_versoin"]
    assert unknown_variables("n3:\n  nccl_versoin: 2.28.9\n", known) == ["nccl_versoin"]
    assert unknown_variables("- nccl_version", known) != []
    assert wrong_commands("ansible-playbook site.yml --tags nccl --limit n3\n", ["nccl"], ["site.yml"]) == []
    assert wrong_commands("ansible-playbook site.yml \\\n  --tags ncl\n", ["nccl"], ["site.yml"]) != []
    assert wrong_commands("ansible-playbook sites.yml\n", ["nccl"], ["site.yml"]) != []
    assert {"nccl_version", "gpu_cluster_ports", "gpu_cluster_fabric_interface"} <= variables()
    assert {"nccl", "cluster_firewall", "check"} <= tags()


def test_a_command_is_found_however_it_is_put_together() -> None:
    for one in (
        '"ansible-playbook site.yml --tags nccl"',
        "f'ansible {hosts} -m ping'",
        "'ansible n1 -m ping'",
        "'ansible-playbook {}'.format(name)",
        'f"it is: ansible-playbook {playbook} -i x"',
    ):
        assert commands_in(one) != [], one
    assert commands_in('"this collection of ansible is for machines"\n"ansible.builtin.command"') == []


def test_a_command_without_inventory_is_found() -> None:
    finding = {
        "command": "ansible-playbook site.yml --tags nccl",
        "look": "ansible n1 -a ip",
        "reproduce": "ansible n1 -m ping",
    }
    assert without_inventory({"findings": [finding]}) == list(finding.values())
    assert without_inventory({"findings": [{"command": "", "look": "ibstat", "reproduce": ""}]}) == []
