# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command that a finding prints is run against its fault on the lab, or there is a reason why not.

The unit tests of the engine hold the same for every finding that they see (`engine/conftest.py`).
"""

from __future__ import annotations

import ast
import re

import findings_index
import project
import pytest
from lab_printed_commands import ELSEWHERE, FAULTS, NONE, TRIED, is_complete

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import FINDINGS

NAME = "command"
#: Programs that change something.  What begins otherwise only looks, and belongs into ``look``.
MENDING = ("ansible-playbook site.yml ", "dnf install -y ", "modprobe ", "nvidia-smi --compute-mode=", "echo options ")


def gives_commands(source: str) -> bool:
    """Whether a module gives a command to something."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return any(one.arg == NAME and ast.unparse(one.value) != "''" for call in calls for one in call.keywords)


def looking(source: str) -> list[str]:
    """What is given as a command and only looks."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    given = [one.value for call in calls for one in call.keywords if one.arg == NAME]
    # As the second one of Remedy(fix, command).
    given += [call.args[1] for call in calls if ast.unparse(call.func) == "Remedy" and len(call.args) > 1]
    return [text for text in map(ast.unparse, given) if ".look(" in text]


def ids(source: str) -> set[str]:
    """The findings that a module makes: their ids stand there as whole strings, and are compared with nothing."""
    tree = ast.parse(source)
    compared = {part for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)}
    words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in compared]
    return {word for word in words if isinstance(word, str) and re.fullmatch(findings_index.ID, word)}


def sources() -> list[str]:
    files = [file for file in project.source_files() if file.parts[0] == "plugins" and "_check" in file.parts]
    return [(project.ROOT / file).read_text(encoding="utf-8") for file in files if file.suffix == ".py"]


def test_every_finding_with_a_command_is_tried_or_has_a_reason() -> None:
    can = set().union(*(ids(source) for source in sources() if gives_commands(source)))
    assert can - TRIED - set(ELSEWHERE) - set(NONE) == set(), "not in molecule/cluster/lab_printed_commands.py"
    assert (TRIED | set(ELSEWHERE) | set(NONE)) - can == set(), "no module gives it a command"
    assert TRIED & set(ELSEWHERE) == set() and (TRIED | set(ELSEWHERE)) & set(NONE) == set()
    assert set(ELSEWHERE) <= set(FINDINGS) and all(reason.strip() for reason in ELSEWHERE.values())


def test_faults_have_names_of_their_own() -> None:
    names = [fault.name for fault in FAULTS]
    assert sorted(set(names)) == sorted(names) and all(fault.make and fault.undo for fault in FAULTS)


def test_no_command_only_looks() -> None:
    assert [text for source in sources() for text in looking(source)] == []


@pytest.mark.parametrize(
    ("source", "looks"),
    [
        ('Finding("GC-NET-001", command=fixes.look(hosts, "df"))', True),
        ('Remedy(FIX, repair.look(hosts, "df"))', True),
        ('Remedy(FIX, look=repair.look(hosts, "df"))', False),
        ('Finding("GC-NET-001", command=fixes.site("nccl"), look=fixes.look(hosts, "df"))', False),
    ],
)
def test_a_command_that_only_looks_is_found(source: str, looks: bool) -> None:
    assert bool(looking(source)) == looks
    assert gives_commands(source) == ("command=" in source)


def test_the_commands_of_texts_mend_and_are_complete() -> None:
    texts = [text for table in lookup.TABLES.values() for text in table]
    commands = {one.command for one in (*causes.CAUSES.values(), *texts) if one.command}
    assert [one for one in sorted(commands) if not one.startswith(MENDING)] == []
    assert [one for one in sorted(commands) if not is_complete(one)] == []
    assert any(one.look for one in texts)


@pytest.mark.parametrize("command", ["umount -l FOLDER && mount FOLDER", "chage -E -1 USER", "ip route del <address>"])
def test_a_placeholder_is_found(command: str) -> None:
    assert not is_complete(command) and is_complete(f"ansible n1 -i <inventory> {command.split()[0]}")
