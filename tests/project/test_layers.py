# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which package may import which, and which files each program takes to a node.

A package is the first folder or file below ``plugins/module_utils``, and for ``_check`` the second.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import project
import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import command, payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    hang_prelude,
    job_question,
    launch,
    mpi_program,
    nccl_question,
    programs,
    progress_note,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import nodes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import read as discovery
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.change import FIREWALL
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.change import NETWORK
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import question

PLUGINS = project.ROOT / "plugins"
UTILS = PLUGINS / "module_utils"
BASE, PROTOCOL, AGENT, ENGINE, REPORT = "_base", "_check.protocol", "_check.agent", "_check.engine", "_check.report"
CLI = "_check.cli"
#: A layer to those that it may import.
BELOW = {
    BASE: set[str](),
    PROTOCOL: {BASE},
    AGENT: {BASE, PROTOCOL},
    ENGINE: {BASE, PROTOCOL},
    REPORT: {BASE, PROTOCOL, ENGINE},
    CLI: {BASE, PROTOCOL, AGENT, ENGINE, REPORT},
}
#: These layers also import readers and constants of the packages for drivers, NCCL, ssh and so on.
WITH_DOMAINS = {AGENT, ENGINE, CLI}
#: Imports of a layer that are not of the standard library.
THIRD_PARTY = {AGENT: {"torch"}}
#: What the engine, and all that it imports, takes of the standard library.
PURE = {
    *("__future__", "base64", "binascii", "bisect", "calendar", "collections", "dataclasses", "datetime", "difflib"),
    *("errno", "fnmatch", "functools"),
    *("hashlib", "heapq", "ipaddress", "itertools", "json", "math", "re", "shlex", "statistics", "struct"),
    *("traceback", "typing"),
}
#: A module that can do more: to who may import it all the same, and why.
IMPURE = {
    "os": ({"coordinator", "diagnosis", "fixes"}, "os.path, which cuts the text of a path"),
    "posixpath": ({"sshd"}, "the same"),
    "signal": ({"ranks_start", "unfinished_ranks"}, "names and numbers of signals"),
    "socket": ({"probe_ports"}, "the listeners of a node; the engine takes its constants"),
    "time": ({"probe_ports"}, "the same"),
}
#: Of these modules the engine uses nothing else.
USED = {"os.path", "signal.SIGKILL", "signal.Signals"}

PINNED = Path(__file__).parent / "node_programs.yml"
HEAD = """\
---
# The files below plugins/module_utils that each program takes to a node, where they are compiled in every run.
# After a change that is meant, write this file anew:
# PYTHONPATH=.ansible/collections:tools .venv/bin/python tests/project/test_layers.py
"""
#: Where a program is made ready for a node: the name of the program to the modules that it starts with.
SITES: dict[str, dict[str, list[ModuleType]]] = {
    "action/check_step.py": {f"sent {name}": [step, command] for name, step in programs.SENT.items()},
    "action/discover_node.py": {"sent discovery": [discovery, command]},
    "action/gpu_node_facts.py": {"sent facts": [programs.SENT["facts"], command]},
    "plugin_utils/_follow.py": {"progress of the ranks": [progress_note]},
    "module_utils/_check/cli/nodes.py": {f"sent {name}": [step, command] for name, step in nodes.SENT.items()},
    "module_utils/_check/cli/why.py": {"what a rank loads to be asked": [hang_prelude]},
    "module_utils/_check/agent/facts_job.py": {"look of a job": [job_question]},
    "module_utils/_shared_storage/silence.py": {"question to storage": [question]},
    "module_utils/_check/agent/facts_nccl.py": {"question to NCCL": [nccl_question]},
    "module_utils/_check/agent/launch.py": {"worker, ranks and steps": list(launch.PROGRAMS)},
    "module_utils/_check/agent/mpi_command.py": {"rank of mpirun": [mpi_program]},
    "module_utils/_firewall/change.py": {"change of the firewall": [FIREWALL.worker]},
    "module_utils/_network/change.py": {"change of the network": [NETWORK.worker]},
    # What the others call.
    "module_utils/_commit_confirm/change.py": {},
    "plugin_utils/_node_program.py": {},
}
SITE = re.compile(
    r"payload\.(packed|write|source)\(|_node_program\.Program\(|^[A-Z]+ = Change\(|progress_note\.__name__", re.M
)


def package(module: str) -> str:
    """Of a module below plugins/."""
    return re.sub(r"^(_check\.\w+|\w+).*", r"\1", module.removeprefix("module_utils."))


@cache
def imports() -> dict[str, set[str]]:
    """The modules of plugins/module_utils to what they import: ours by their names below plugins/, others as such."""
    found = {}
    for path in UTILS.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        names = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
        for node in (node for node in nodes if isinstance(node, ast.ImportFrom)):
            assert node.module and not node.level, f"{path}: a relative import"
            names |= {module_of(f"{node.module}.{one.name}") for one in node.names}
        found[".".join(path.relative_to(PLUGINS).with_suffix("").parts)] = names
    return found


def module_of(name: str) -> str:
    """The module of a name that is imported from it; a folder is none."""
    below = name.removeprefix(payload.COLLECTION)
    is_module = (PLUGINS / below.replace(".", "/")).with_suffix(".py").is_file()
    return below if is_module else below.rpartition(".")[0]


def of_layer(layer: str) -> list[tuple[str, str]]:
    """Each module of a layer with each of its imports."""
    return [
        (module, name)
        for module, names in sorted(imports().items())
        if package(module) == layer
        for name in sorted(names)
    ]


def is_ours(name: str) -> bool:
    return name.partition(".")[0] in ("module_utils", "plugin_utils")


@pytest.mark.parametrize("layer", BELOW)
def test_a_layer_imports_only_what_is_below_it(layer: str) -> None:
    known = {layer, *BELOW[layer]}
    others = {one for one in map(package, imports()) if not one.startswith("_check")}
    known |= others if layer in WITH_DOMAINS else set()
    edges = of_layer(layer)
    assert edges
    assert [(module, name) for module, name in edges if is_ours(name) and package(name) not in known] == []
    theirs = sys.stdlib_module_names | THIRD_PARTY.get(layer, set())
    assert [one for one in edges if not is_ours(one[1]) and one[1].partition(".")[0] not in theirs] == []


def test_nothing_imports_the_program_without_ansible() -> None:
    assert of_layer(CLI)
    assert {package(module) for module, names in imports().items() if CLI in map(package, names)} == {CLI}


def test_no_package_imports_in_a_circle() -> None:
    graph = defaultdict(set)
    for module, names in imports().items():
        graph[package(module)] |= {package(name) for name in names if is_ours(name)} - {package(module)}
    # It raises CycleError, which names the circle.
    assert {BASE, ENGINE} < set(TopologicalSorter(graph).static_order())


def test_the_engine_does_no_input_or_output() -> None:
    """Nor does anything that it imports, which would come with it."""
    waiting = [module for module in imports() if package(module) == ENGINE]
    reached: set[str] = set()
    while waiting:
        module = waiting.pop()
        reached.add(module)
        waiting += [name for name in imports()[module] if is_ours(name) and name not in reached]
    used = {(name.partition(".")[0], module) for module in reached for name in imports()[module] if not is_ours(name)}
    more = [(name, module.rpartition(".")[2]) for name, module in sorted(used) if name not in PURE]
    assert sorted(more) == sorted((name, module) for name, (modules, _why) in IMPURE.items() for module in modules)
    for module in sorted(one for one in reached if package(one) == ENGINE):
        nodes = list(ast.walk(ast.parse((PLUGINS / module.replace(".", "/")).with_suffix(".py").read_text())))
        parts = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
        assert {one for one in parts if re.fullmatch(r"(os|signal)\.\w+", one)} <= USED, module
        assert "open" not in {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}, module


def node_programs() -> dict[str, list[str]]:
    """Program to its files."""
    programs_of_all = {name: modules for site in SITES.values() for name, modules in site.items()}
    start = f"{payload.COLLECTION}module_utils."
    return {
        name: [f"{module.removeprefix(start).replace('.', '/')}.py" for module in payload.needed(modules)]
        for name, modules in programs_of_all.items()
    }


def test_each_program_takes_the_same_files_to_a_node() -> None:
    assert node_programs() == yaml.safe_load(PINNED.read_text(encoding="utf-8"))


def test_every_program_is_pinned() -> None:
    files = {path.relative_to(PLUGINS).as_posix(): path.read_text(encoding="utf-8") for path in PLUGINS.rglob("*.py")}
    assert {file for file, text in files.items() if SITE.search(text)} == SITES.keys()


if __name__ == "__main__":
    lines = [
        line for name, files in node_programs().items() for line in (f"{name}:", *(f"  - {file}" for file in files))
    ]
    PINNED.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
