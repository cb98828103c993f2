# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks of this project: all of them, or the parts that are named.

A part that fails does not hide the later ones. The last line says how many single checks passed and failed.
The virtual machine is emulated and leaves a core idle: its part runs beside those that need no nodes.
The scenarios of the lab wait for their nodes most of the time: one of them runs beside the others, on nodes of its own,
and begins when the parts without nodes have ended, whether or not the virtual machine has.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import checks
import imports
import machine
import project
import sanity
import setup
from checks import Tally

PLUGINS = f"ansible_collections.{project.COLLECTION}.plugins"
SHELL_SCRIPTS = (".ci/run", "tools/lab/vm/init", "tools/lab/vm/lab-console", "tools/lab/vm/prepare.sh")
LAUNCHER = "roles/launcher/files/gpu-cluster-run"
# mypy's oldest; compiling with the modules' real floor is ansible-test's part.
OLDEST_PYTHON = "3.10"
#: The scenario that needs no lab of nodes but a virtual machine.
VM = "vm"
#: The scenario that has nodes of its own and runs beside the other scenarios of the lab.
OWN_NODES = "jobs"
#: The scenario that takes too long for every run, and those of which some tests do.
FAULTS = "faults"
WITH_LONG_TESTS = ("cluster", OWN_NODES, VM)
#: The tests of a scenario, as pytest chooses them by the mark that pyproject.toml describes.
SHORT, LONG = "not long", "long"


class Part(NamedTuple):
    """A named group of checks."""

    name: str
    about: str
    run: Callable[[], Tally]
    #: It brings up nodes or a virtual machine, with bridges and a raised limit on this machine.
    has_nodes: bool = False


class Outcome(NamedTuple):
    """What became of a part."""

    name: str
    tally: Tally
    seconds: float


def lint() -> Tally:
    """Every linter over everything it understands."""
    return checks.total(
        [
            checks.command("ruff", "ruff", "check"),
            checks.command("formatting", "ruff", "format", "--diff"),
            checks.command("types of plugins", "mypy", "--python-version", OLDEST_PYTHON, "--package", PLUGINS),
            checks.command("types of tools", "mypy", "tools"),
            checks.command(
                "types of the launcher",
                *("mypy", "--strict", "--python-version", OLDEST_PYTHON, "--scripts-are-modules", LAUNCHER),
            ),
            checks.command("shellcheck", "shellcheck", *SHELL_SCRIPTS),
            checks.command("yamllint", "yamllint", "--strict", "."),
            checks.command("ansible-lint", "ansible-lint", "--offline", "--strict"),
        ]
    )


def unit() -> Tally:
    """The pure core of plugins and tools."""
    return checks.pytest("tests/unit", "tests/gpu")


def parity() -> Tally:
    """What must agree across files, and what a built collection holds."""
    return checks.pytest("tests/project")


def docs() -> Tally:
    """Documentation that users read: plugins, roles, changelog."""
    return checks.total(
        [
            checks.command(
                "plugin and role documentation",
                *("antsibull-docs", "lint-collection-docs", ".", "--plugin-docs"),
                *("--validate-collection-refs=all", "--disallow-unknown-collection-refs"),
            ),
            checks.command("changelog", "antsibull-changelog", "lint"),
            checks.command("variable tables", sys.executable, "tools/role_readmes.py", "--check"),
        ]
    )


def oldest() -> Tally:
    """Unit tests and every playbook's syntax, with the oldest ansible-core that is supported."""
    venv = project.ROOT / ".venv-oldest"
    setup.install_tools(venv, setup.OLDEST)
    program = [str(venv / "bin" / "ansible-playbook"), "--syntax-check", "-i", "prod"]
    playbooks = ["site.yml", *(f"{project.COLLECTION}.{path.stem}" for path in project.playbooks())]
    syntax = [checks.command(f"syntax of {name}", *program, name) for name in playbooks]
    return checks.pytest(*of_ansible(), python=str(venv / "bin" / "python")) + checks.total(syntax)


def of_ansible() -> list[str]:
    """The unit tests of plugins in which another ansible-core can make a difference.

    Most of module_utils is plain Python that knows nothing of Ansible, and has been tested with this Python already.
    """
    plugins = project.ROOT / "tests" / "unit" / "plugins"
    plain = plugins / "module_utils"
    others = sorted(path for path in plugins.glob("[a-z]*") if path != plain)
    reaching = imports.reaching("ansible", sorted(plain.rglob("test_*.py")))
    return [str(path.relative_to(project.ROOT)) for path in [*others, *reaching]]


def molecule() -> Tally:
    """Every scenario on a lab of nodes."""
    with Beside(scenario_part(OWN_NODES)) as own_nodes:
        return scenarios(of_the_lab(), own_nodes)


def molecule_vm() -> Tally:
    """The scenario on a machine with a kernel of its own."""
    return scenarios([VM])


def faults() -> Tally:
    """The check against faults, on nodes of a lab and in network namespaces; and what else takes long."""
    return scenarios([FAULTS]) + scenarios(WITH_LONG_TESTS, chosen=LONG) + checks.pytest("tests/faults")


def of_the_lab() -> list[str]:
    """The scenarios that share the nodes of a lab; each brings them up and takes them down."""
    names = {path.parent.name for path in (project.ROOT / "molecule").glob("*/molecule.yml")}
    return sorted(names - {VM, OWN_NODES, FAULTS})


def scenarios(names: Sequence[str], beside: Beside | None = None, chosen: str = SHORT) -> Tally:
    """These scenarios one after the other, and one that runs beside them."""
    outcomes = [run_part(scenario_part(name, chosen)) for name in names]
    if beside:
        outcomes.append(beside.ended())
    for outcome in outcomes:
        checks.say(f"{outcome.name}: {outcome.tally} in {outcome.seconds:.0f} s")
    return checks.total([outcome.tally for outcome in outcomes])


def scenario_part(name: str, chosen: str = SHORT) -> Part:
    """One scenario, to be run and judged like any part."""
    about = f"molecule/{name}, tests that are {chosen}"
    return Part(f"{SCENARIO}{name}", about, lambda: scenario(name, chosen), has_nodes=True)


def take_labs_down() -> None:
    """A lab that is up has bridges and a raised limit on this machine, which the first scenario would take away."""
    for program in ("lab.py", "vm.py"):
        subprocess.run([sys.executable, f"tools/lab/{program}", "down"], cwd=project.ROOT, check=True)


def watched(parts: Sequence[Part], run: Callable[[], list[Outcome]]) -> list[Outcome]:
    """Run parts and, where they have nodes, the proof that this machine is as it was before, as a part of its own.

    Once for all of them: while one has nodes, the machine is not as it was before another.
    """
    with_nodes = {part.name for part in parts if part.has_nodes}
    if not with_nodes:
        return run()
    take_labs_down()
    before = machine.settings()
    outcomes = run()
    # A scenario that broke off leaves its nodes, with their bridges, for whoever looks into it.
    if any(outcome.tally.failed for outcome in outcomes if outcome.name in with_nodes):
        return outcomes
    about = "nothing has changed on this machine itself"
    return [*outcomes, run_part(Part("machine", about, lambda: left_alone(before, machine.settings())))]


def left_alone(before: Mapping[str, str], after: Mapping[str, str]) -> Tally:
    """One check: the tests have changed nothing on the machine that they ran on."""
    changed = machine.differences(before, after)
    checks.say(f"this machine's own sysctl values and firewall: {len(before)} settings, {len(changed)} changed")
    for line in changed:
        checks.say(f"this machine FAILED: {line}")
    return checks.FAILED if changed else checks.PASSED


def obstacle(name: str, tun: Path = Path("/dev/net/tun")) -> str:
    """Why this machine cannot run a scenario; empty when it can."""
    if name != VM:
        return ""
    if platform.machine() != "x86_64":
        return f"the virtual machine is an x86_64, and this machine is {platform.machine()}"
    return "" if tun.exists() else f"this machine has no {tun}, which the virtual machine's network cards need"


def scenario(name: str, chosen: str = SHORT) -> Tally:
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
        sequence = checks.command(f"molecule {name}", "molecule", "test", "-s", name, env=environment)
        verified = checks.read_junit(results)
    return verified if verified.failed else verified + sequence


PARTS = (
    Part("lint", "ruff, mypy, shellcheck, yamllint, ansible-lint", lint),
    Part("unit", "unit tests of plugins and tools", unit),
    Part("parity", "role specs, defaults and READMEs agree; the built collection", parity),
    Part("docs-check", "plugin documentation, changelog, variable tables", docs),
    Part("sanity", "ansible-test sanity", sanity.run),
    Part("oldest", "unit tests and syntax with the oldest supported ansible-core", oldest),
    Part("molecule", "the scenarios, on nodes of a lab", molecule, has_nodes=True),
    Part("molecule-vm", "the scenario on a virtual machine", molecule_vm, has_nodes=True),
)
#: Not among those that run when none is named: it takes too long.
ON_DEMAND = (Part(FAULTS, "the check against faults that are made for real", faults, has_nodes=True),)
#: This one runs beside those without nodes, and then beside the scenario that has nodes of its own. Beside two of them
#: on two cores, promised times would not be kept by any.
BESIDE = "molecule-vm"
#: How a single scenario is called among the parts.
SCENARIO = "scenario "


def run_part(part: Part) -> Outcome:
    """Run one part, whatever happens in it."""
    print(f"\n=== {part.name}: {part.about}", flush=True)
    started = time.monotonic()
    try:
        tally = part.run()
    except Exception as error:
        checks.say(f"{part.name} FAILED: {type(error).__name__}: {error}")
        tally = checks.FAILED
    if tally.checked == 0:
        checks.say(f"{part.name} FAILED: it checked nothing")
        tally = checks.FAILED
    return Outcome(part.name, tally, time.monotonic() - started)


class Beside:
    """A part that runs in a process of its own; its output is shown when it has ended."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.folder = tempfile.TemporaryDirectory()
        self.outcome = Path(self.folder.name) / "outcome.json"
        self.log = Path(self.folder.name) / "output.txt"
        self.started = time.monotonic()
        checks.say(f"{part.name} starts now; its output follows at its end")
        argv = [sys.executable, __file__, part.name, "--outcome", str(self.outcome)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(argv, cwd=project.ROOT, stdout=log, stderr=subprocess.STDOUT)

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_error: object) -> None:
        """It has nodes: whatever became of the others, it takes them down before anything else begins."""
        self.process.wait()
        self.folder.cleanup()

    def ended(self) -> Outcome:
        """Wait for it and show what it printed."""
        returncode = self.process.wait()
        print(self.log.read_text(errors="replace"), flush=True)
        try:
            found = json.loads(self.outcome.read_text())
            return Outcome(self.part.name, Tally(**found["tally"]), found["seconds"])
        except (OSError, ValueError):
            checks.say(f"{self.part.name} FAILED: it ended with exit code {returncode} and without a result")
            return Outcome(self.part.name, checks.FAILED, time.monotonic() - self.started)


def run_all() -> list[Outcome]:
    """Every part: those without nodes beside the virtual machine, then those of the lab, one of them at once."""
    (machine_part,) = [part for part in PARTS if part.name == BESIDE]
    (lab_part,) = [part for part in PARTS if part.has_nodes and part is not machine_part]
    with Beside(machine_part) as virtual_machine:
        outcomes = [run_part(part) for part in PARTS if not part.has_nodes]
        with Beside(scenario_part(OWN_NODES)) as own_nodes:
            outcomes.append(virtual_machine.ended())
            rest = lab_part._replace(run=lambda: scenarios(of_the_lab(), own_nodes))
            return [*outcomes, run_part(rest)]


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """One line for each part, then the closing line."""
    lines = [f"{outcome.name:<12} {outcome.seconds:8.1f} s  {outcome.tally}" for outcome in outcomes]
    lines.append(f"{'all':<12} {seconds:8.1f} s")
    lines.append(str(checks.total([outcome.tally for outcome in outcomes])))
    return "\n".join(lines)


def named(names: Sequence[str]) -> list[Part]:
    """The parts of these names, in their order here. A single scenario is one when ``scenarios`` asks for it."""
    known = {part.name: part for part in PARTS + ON_DEMAND}
    for name in names:
        if name.startswith(SCENARIO):
            known[name] = scenario_part(name.removeprefix(SCENARIO))
    if unknown := [name for name in names if name not in known]:
        every = ", ".join(part.name for part in PARTS + ON_DEMAND)
        sys.exit(f"there is no part {', '.join(unknown)}; there are {every}")
    return [part for name, part in known.items() if name in names]


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(part.name for part in PARTS))
    parser.add_argument(
        "--outcome",
        type=Path,
        help="where to write the result, as JSON, of the one part: it runs beside others, which watch the machine",
    )
    arguments = parser.parse_args()
    started = time.monotonic()
    if arguments.outcome:
        outcomes = [run_part(part) for part in named(arguments.parts)]
    elif arguments.parts:
        parts = named(arguments.parts)
        outcomes = watched(parts, lambda: [run_part(part) for part in parts])
    else:
        outcomes = watched(PARTS, run_all)
    print(f"\n{summary(outcomes, time.monotonic() - started)}", flush=True)
    if arguments.outcome:
        result = {"tally": asdict(outcomes[0].tally), "seconds": outcomes[0].seconds}
        arguments.outcome.write_text(json.dumps(result))
    return 1 if any(outcome.tally.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
