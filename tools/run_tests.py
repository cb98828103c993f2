# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks of this project: all of them, or the parts and groups that are named.

A part that fails does not hide the others. The last line says how many single checks passed and failed.
docs/testing.md lists the parts, what each needs and how long it takes.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import checks
import el9_python
import imports
import machine
import project
import sanity
import scenarios
import scheduler
import setup
from checks import Tally
from scheduler import Outcome, Part

PLUGINS = f"ansible_collections.{project.COLLECTION}.plugins"
SHELL_SCRIPTS = (
    ".ci/run",
    "tools/lab/container/customize.sh",
    "tools/lab/vm/init",
    "tools/lab/vm/lab-console",
    "tools/lab/vm/prepare.sh",
    "tools/evidence/look.sh",
    "docs/examples/slurm/prolog-slurmctld",
    "docs/examples/slurm/train.sbatch",
)
REAL_PLAYBOOKS = "tests/ansible_core"
LAUNCHER = f"{PLUGINS}.module_utils._launcher"
# mypy's oldest; compiling with the modules' real floor is ansible-test's part.
OLDEST_PYTHON = "3.10"
#: Which nodes a part has to itself: those of an inventory of the lab, or the virtual machine.
LAB, JOBS, MACHINE = (frozenset({need}) for need in ("inventories/lab", "inventories/jobs", "inventories/vm"))
#: The virtual machine goes before others: programs on it give up after seconds of its clock, which are full seconds
#: only while its emulated processor has a real one. It waits for the end of ``cluster``, which is ahead of ``jobs``.
NICE = {MACHINE: -5, LAB: -2}


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
                *("mypy", "--strict", "--python-version", OLDEST_PYTHON, "--package", LAUNCHER),
            ),
            checks.command("shellcheck", "shellcheck", *SHELL_SCRIPTS),
            checks.command("yamllint", "yamllint", "--strict", "."),
            checks.command("ansible-lint", "ansible-lint", "--offline", "--strict"),
        ]
    )


def unit() -> Tally:
    """The pure core of plugins and tools."""
    return checks.pytest("-m", scenarios.SHORT, "tests/unit", "tests/gpu")


def unit_long() -> Tally:
    """Those of the unit tests that show in another way what a shorter one shows."""
    return checks.pytest("-m", scenarios.LONG, "tests/unit", "tests/project")


def parity() -> Tally:
    """What must agree across files, and what a built collection holds."""
    return checks.pytest("-m", scenarios.SHORT, "tests/project")


def newest() -> Tally:
    """Real playbooks through every module and action, with the pinned ansible-core."""
    return checks.pytest(REAL_PLAYBOOKS)


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
            checks.command("page of variables", sys.executable, "tools/variables_page.py", "--check"),
        ]
    )


def oldest() -> Tally:
    """Unit tests, real playbooks and every playbook's syntax, with the oldest ansible-core that is supported."""
    venv = project.ROOT / ".venv-oldest"
    setup.install_tools(venv, setup.OLDEST)
    program = [str(venv / "bin" / "ansible-playbook"), "--syntax-check", "-i", "prod"]
    playbooks = ["site.yml", *(f"{project.COLLECTION}.{path.stem}" for path in project.playbooks())]
    syntax = [checks.command(f"syntax of {name}", *program, name) for name in playbooks]
    return checks.pytest(*of_ansible(), REAL_PLAYBOOKS, python=str(venv / "bin" / "python")) + checks.total(syntax)


def on_el9() -> Tally:
    """The unit tests of what runs on nodes, with the Python of EL 9, and with more draws where they draw by lot."""
    folders = [f"tests/unit/plugins/{name}" for name in ("module_utils", "modules")]
    return checks.pytest(*folders, python=str(el9_python.install()), SWEEP_TIMES="5")


def of_ansible() -> list[str]:
    """The unit tests of plugins in which another ansible-core can make a difference.

    Most of module_utils is plain Python that knows nothing of Ansible, and has been tested with this Python already.
    """
    plugins = project.ROOT / "tests" / "unit" / "plugins"
    plain = plugins / "module_utils"
    others = sorted(path for path in plugins.glob("[a-z]*") if path != plain)
    reaching = imports.reaching("ansible", sorted(plain.rglob("test_*.py")))
    return [str(path.relative_to(project.ROOT)) for path in [*others, *reaching]]


def scenario(
    name: str, budget: int, needs: frozenset[str], chosen: str = scenarios.SHORT, title: str | None = None
) -> Part:
    """A molecule scenario; its long tests are a part of their own."""
    title = title or (name if chosen == scenarios.SHORT else f"{name}-long")
    about = f"molecule/{name}, tests that are {chosen}"
    return Part(title, about, lambda: scenarios.run(name, chosen), budget, needs, NICE.get(needs, 0))


def stalled() -> Tally:
    """The unit tests on a machine that stops for a second again and again, as a busy one does."""
    tests = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit")
    return checks.command("unit tests with pauses", sys.executable, "tools/stalled.py", *tests)


def namespaces() -> Tally:
    """The check against faults, on nodes that are network namespaces of this machine."""
    return checks.pytest("tests/faults")


def el_10() -> Tally:
    """All scenarios again on the lab's other flavour."""
    names = ("cluster", "jobs", "vm", "canary")
    environment = project.tool_environment(LAB_EL="10")
    return checks.command("EL 10", sys.executable, "tools/run_tests.py", *names, env=environment)


def site() -> Tally:
    """The documentation as a site, without a warning and a dead link."""
    return checks.command("site", sys.executable, "tools/docs_site.py")


def galaxy() -> Tally:
    """The archive as Galaxy imports it, and an execution environment."""
    return checks.command("galaxy", sys.executable, "tools/galaxy_check.py")


def first_hour() -> Tally:
    """The transcript for newcomers, again."""
    return checks.pytest("tests/first_hour")


def debian() -> Tally:
    """From a fresh machine to a verdict on the Debian release after the one that the lab is made of."""
    return checks.command("demo on Debian 13", sys.executable, "tools/other_debian.py", "trixie", "make", "demo")


#: Those that run when none is named. The virtual machine keeps one processor busy, so it comes last of those with
#: nodes: the others share what is left. The budgets are for two slow cores.
PARTS = (
    scenario("cluster", 1200, LAB),
    scenario("jobs", 1200, JOBS),
    scenario("vm", 900, MACHINE),
    scenario("canary", 120, LAB),
    Part("sanity", "ansible-test sanity, without what lint, docs-check and oldest test too", sanity.run, 240),
    Part("unit", "unit tests of plugins and tools", unit, 540),
    Part("lint", "ruff, mypy, shellcheck, yamllint, ansible-lint", lint, 220),
    Part("oldest", "unit tests, real playbooks and syntax with the oldest ansible-core", oldest, 220),
    Part("parity", "role specs, defaults and READMEs agree; the built collection; guards", parity, 360),
    Part("docs-check", "plugin documentation, changelog, variable tables", docs, 80),
)
#: Those that take too long for every run. What is timed most closely runs alone.
LONG_PARTS = (
    scenario("faults", 4800, LAB, title="faults-lab"),
    scenario("cluster", 1500, LAB, scenarios.LONG),
    scenario("jobs", 1500, JOBS, scenarios.LONG),
    scenario("vm", 1800, MACHINE, scenarios.LONG),
    Part(
        "sanity-long",
        "ansible-test sanity: pylint, pep8, ansible-doc, import, Python 3.12",
        sanity.run_longest,
        400,
    ),
    Part("site", "the documentation as a site: no warning, no dead link", site, 120),
    Part("galaxy", "the archive in galaxy-importer and in the context of an execution environment", galaxy, 150),
    Part("unit-long", "tests of the parts unit and parity that are long", unit_long, 300),
    Part("newest", "real playbooks with the pinned ansible-core", newest, 120),
    Part("el9-python", "unit tests of module_utils and modules with Python 3.9", on_el9, 600),
    Part("stalled", "unit tests, stopped for a second again and again", stalled, 1500),
    Part("namespaces", "the check against faults, between network namespaces", namespaces, 5400, LAB | JOBS | MACHINE),
    Part("el-10", "cluster, jobs, vm and canary on nodes that stand in for EL 10", el_10, 4000, LAB | JOBS | MACHINE),
    Part("first-hour", "docs/first-hour.md on five bare nodes", first_hour, 900, LAB),
    Part("debian-13", "make demo on a root file system of Debian 13", debian, 600, LAB | JOBS | MACHINE),
)
#: Names for several parts.
GROUPS: dict[str, tuple[str, ...]] = {
    "molecule": ("cluster", "jobs", "canary"),
    "molecule-vm": ("vm",),
    "faults": tuple(part.name for part in LONG_PARTS),
}


def take_labs_down() -> None:
    """A lab that is up has bridges and a raised limit on this machine, which the first scenario would take away."""
    for program in ("lab.py", "vm.py"):
        subprocess.run([sys.executable, f"tools/lab/{program}", "down"], cwd=project.ROOT, check=True)


def run(parts: Sequence[Part]) -> list[Outcome]:
    """Run parts and, where they have nodes, the proof that this machine is as it was before, as a part of its own.

    Once for all of them: while one has nodes, the machine is not as it was before another.
    """
    with_nodes = {part.name for part in parts if part.needs}
    if with_nodes:
        take_labs_down()
    before = machine.settings() if with_nodes else {}
    alone = len(parts) == 1
    outcomes = [scheduler.run_part(parts[0])] if alone else scheduler.run_side_by_side(ordered(parts), Path(__file__))
    # A scenario that broke off leaves its nodes, with their bridges, for whoever looks into it.
    if not with_nodes or any(outcome.tally.failed for outcome in outcomes if outcome.name in with_nodes):
        return outcomes
    about = "nothing has changed on this machine itself"
    left = Part("machine", about, lambda: left_alone(before, machine.settings()), 30)
    return [*outcomes, scheduler.run_part(left)]


def ordered(parts: Sequence[Part]) -> list[Part]:
    """A virtual machine that has to be set up takes longest of all, so it begins."""
    emulated = [part for part in parts if part.needs == MACHINE]
    first = emulated if emulated and not scenarios.KEEPERS[scenarios.VM].has_saved() else []
    return [*first, *(part for part in parts if part not in first)]


def left_alone(before: Mapping[str, str], after: Mapping[str, str]) -> Tally:
    """One check: the tests have changed nothing on the machine that they ran on."""
    changed = machine.differences(before, after)
    checks.say(f"this machine's own sysctl values and firewall: {len(before)} settings, {len(changed)} changed")
    return checks.failure("this machine FAILED: " + "; ".join(changed)) if changed else checks.PASSED


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """Warnings of the parts that took too long, one line for each part, every failure once more, the closing line.

    The failures stand at the end because those who read a log of a CI often get no more than that.
    """
    lines = []
    for outcome in outcomes:
        if outcome.seconds > outcome.budget:
            lines.append(f"WARNING: {outcome.name} took {outcome.seconds:.0f} s, its budget is {outcome.budget} s")
            lines += [f"  {test.seconds:6.1f} s  {test.name}" for test in outcome.tally.slowest]
    lines += [
        f"{outcome.name:<12} {outcome.seconds:7.1f} s of {outcome.budget:4} s  {outcome.tally}" for outcome in outcomes
    ]
    lines.append(f"{'all':<12} {seconds:7.1f} s")
    lines += [f"{outcome.name}: {text}" for outcome in outcomes for text in outcome.tally.failures]
    lines.append(str(checks.total([outcome.tally for outcome in outcomes])))
    return "\n".join(lines)


def named(names: Sequence[str]) -> list[Part]:
    """The parts of these names, or of these groups; in the order in which they stand here."""
    every = [*PARTS, *LONG_PARTS]
    known = {*GROUPS, *(part.name for part in every)}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"there is no part {', '.join(unknown)}; there are {', '.join(part.name for part in every)}")
    wanted = {part for name in names for part in GROUPS.get(name, (name,))}
    return [part for part in every if part.name in wanted]


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
    # A shell starts what is in its background with this signal ignored, and tests interrupt programs with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.monotonic()
    parts = named(arguments.parts) if arguments.parts else list(PARTS)
    outcomes = [scheduler.run_part(part) for part in parts] if arguments.outcome else run(parts)
    print(f"\n{summary(outcomes, time.monotonic() - started)}", flush=True)
    if arguments.outcome:
        scheduler.write_outcome(outcomes[0], arguments.outcome)
    return 1 if any(outcome.tally.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
