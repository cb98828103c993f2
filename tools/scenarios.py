# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one molecule scenario, from bare nodes or from the state that its roles have led to before."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import checks
import project
import yaml
from checks import Tally

#: The tests of a scenario, as pytest chooses them by the mark that pyproject.toml describes.
SHORT, LONG = "not long", "long"
VM = "vm"
VERIFY, DESTROY = "verify", "destroy"


class Keeper(NamedTuple):
    """The program that makes a scenario's nodes, and keeps them in the cache as its converge left them."""

    program: str
    options: tuple[str, ...] = ()

    def argv(self, verb: str, *words: str) -> list[str]:
        return [sys.executable, self.program, verb, *self.options, *words]

    def has_saved(self) -> bool:
        """Whether there are nodes that this very tree has led to."""
        return subprocess.run(self.argv("saved"), cwd=project.ROOT, check=False).returncode == 0


#: The scenarios whose nodes are kept. Those of `canary` never are: nobody has configured them.
KEEPERS = {
    VM: Keeper("tools/lab/vm.py"),
    "cluster": Keeper("tools/lab/lab.py", ("--inventory", "lab")),
    "jobs": Keeper("tools/lab/lab.py", ("--inventory", "jobs")),
}


def obstacle(name: str, tun: Path = Path("/dev/net/tun")) -> str:
    """Why this machine cannot run a scenario; empty when it can."""
    if name != VM:
        return ""
    if platform.machine() != "x86_64":
        return f"the virtual machine is an x86_64, and this machine is {platform.machine()}"
    return "" if tun.exists() else f"this machine has no {tun}, which the virtual machine's network cards need"


def test_sequence(name: str) -> list[str]:
    """The steps of a scenario, as its molecule.yml lists them."""
    settings = yaml.safe_load((project.ROOT / "molecule" / name / "molecule.yml").read_text(encoding="utf-8"))
    return [str(step) for step in settings["scenario"]["test_sequence"]]


def steps(name: str, keeper: Keeper, *, has_saved: bool) -> list[list[str]]:
    """The commands until the nodes are ready for their tests."""

    def molecule(step: str) -> list[str]:
        return ["molecule", step, "-s", name]

    if has_saved:
        return [molecule(DESTROY), keeper.argv("up", "--saved")]
    sequence = test_sequence(name)
    return [*(molecule(step) for step in sequence[: sequence.index(VERIFY)]), keeper.argv("save")]


def _run(commands: Sequence[Sequence[str]], environment: dict[str, str]) -> Tally:
    """Run one after the other until one fails; together they are one check."""
    for argv in commands:
        if (tally := checks.command(" ".join(argv[-3:]), *argv, env=environment)).failed:
            return tally
    return checks.PASSED


def _sequence(name: str, environment: dict[str, str]) -> Tally:
    """All steps of a scenario, which count as one check."""
    keeper = KEEPERS.get(name)
    if keeper is None:
        return checks.command(f"molecule {name}", "molecule", "test", "-s", name, env=environment)
    has_saved = keeper.has_saved()
    if has_saved:
        checks.say(f"{name}: the nodes are in the cache as this tree leaves them, so it is not run on bare ones again")
    verify = ["molecule", VERIFY, "-s", name]
    tally = _run([*steps(name, keeper, has_saved=has_saved), verify], environment)
    destroyed = _run([["molecule", DESTROY, "-s", name]], environment)
    return tally if tally.failed else destroyed


def run(name: str, chosen: str = SHORT) -> Tally:
    """One scenario; the chosen tests of its verify step count one by one, the rest of it once."""
    if reason := obstacle(name):
        checks.say(f"molecule {name} SKIPPED: {reason}")
        return checks.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        environment = project.tool_environment(
            MOLECULE_GLOB="molecule/*/molecule.yml",
            PYTEST_ADDOPTS=f"{os.environ.get('PYTEST_ADDOPTS', '')} -m '{chosen}' --junitxml={results}".strip(),
        )
        sequence = _sequence(name, environment)
        verified = checks.read_junit(results)
    return verified if verified.failed else verified + sequence
