# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run site.yml on the lab with every promised ansible-core, as every kind of user: `make compat`.

Each row is an ansible-core with a way in.  The nodes of the lab are those of an earlier row, so every row but the first
repairs what is right already; `--fresh` takes new nodes for each.  The table at the end is for docs/support.md.

    tools/compat.py --only 2.16          all rows of ansible-core 2.16
    tools/compat.py --only 2.19/sudo     one row
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import project
import setup

#: Whatever the newest installed Python gets.
NEWEST = "newest"
#: The promised releases, oldest first, and the oldest Python that each runs on.
CORES = {"2.16": (3, 10), "2.17": (3, 10), "2.18": (3, 11), "2.19": (3, 11), NEWEST: (3, 11)}
#: What the lab's image has for tests: a user without rights.
USER = "train"
INVENTORY = project.ROOT / "inventories" / "lab"
LAB = [sys.executable, "tools/lab/lab.py"]
SUDOERS = "/etc/sudoers.d/compat"
LIMIT_SECONDS = 3600


class CompatError(Exception):
    """What is wrong and what to do, in one sentence."""


class Way(NamedTuple):
    """How Ansible gets onto the nodes and with which settings.  rule: for sudo, empty for root."""

    name: str
    about: str
    rule: str = ""
    settings: str = ""


#: The switch that every configuration needs, see SECURITY.md.
SAFE = "[defaults]\ninject_facts_as_vars = False\n"
OURS = (project.ROOT / "ansible.cfg").read_text(encoding="utf-8")
WAYS = (
    Way("root", "root, this collection's ansible.cfg", settings=OURS),
    Way("sudo", "a user with sudo without a password", rule="NOPASSWD: ALL", settings=OURS),
    Way("password", "a user whose sudo asks for a password", rule="ALL", settings=OURS),
    Way("no-pipelining", "root, pipelining = False", settings=OURS.replace("pipelining = True", "pipelining = False")),
    # Ansible's defaults in all but the one setting without which the playbooks refuse to run.
    Way("empty", "root, an ansible.cfg with inject_facts_as_vars = False alone", settings=SAFE),
)


class Row(NamedTuple):
    """One run."""

    core: str
    way: Way

    @property
    def name(self) -> str:
        return f"{self.core}/{self.way.name}"


class Result(NamedTuple):
    """What came of it.  core and python: the exact versions that ran."""

    row: Row
    core: str
    python: str
    outcome: str
    seconds: float


def rows(only: Sequence[str]) -> list[Row]:
    """The rows that were asked for by release, way or both; all without a wish."""
    every = [Row(core, way) for core in CORES for way in WAYS]
    known = {word for row in every for word in (row.core, row.way.name, row.name)}
    if unknown := [word for word in only if word not in known]:
        raise CompatError(f"--only {' '.join(unknown)}: there is no such row; write one of {', '.join(sorted(known))}")
    return [row for row in every if not only or {row.core, row.way.name, row.name} & set(only)]


def python_for(core: str, pythons: Mapping[tuple[int, int], str]) -> str:
    """The oldest installed Python that a release runs on, the newest one for the newest; empty where there is none."""
    fitting = sorted(version for version in pythons if version >= CORES[core])
    return pythons[fitting[-1 if core == NEWEST else 0]] if fitting else ""


def installed_pythons(which: Callable[[str], str | None] = shutil.which) -> dict[tuple[int, int], str]:
    """The Pythons of this machine, by version.  One that only says that it is not there counts for nothing."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in range(10, 20):
        path = which(f"python3.{minor}")
        if path and subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            found.setdefault((3, minor), path)
    return found


def outcome(returncode: int, text: str) -> str:
    """What a run came to, in a few words: the verdict, and whether a task failed."""
    verdicts = re.findall(r"^\s*(PASSED|FAILED|NOT VALIDATED)\b", text, re.MULTILINE)
    verdict = verdicts[-1] if verdicts else "no verdict"
    if returncode == 0 and verdict == "PASSED":
        return "passed"
    return f"FAILED: {verdict}, exit code {returncode}"


def table(results: Sequence[Result], day: str) -> str:
    """The rows of docs/support.md."""
    lines = ["| ansible-core | Python | user and configuration | result | seconds | date |", "| --- " * 6 + "|"]
    lines += [
        f"| {one.core} | {one.python} | {one.row.way.about} | {one.outcome} | {one.seconds:.0f} | {day} |"
        for one in results
    ]
    return "\n".join(lines)


def install(core: str, python: str) -> Path:
    """An environment with the newest ansible-core of a release, in the cache."""
    folder = project.cache_dir() / "compat" / core
    if core == NEWEST or not (folder / "bin" / "ansible-playbook").exists():
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True)
        own = str(project.BIN / "python")
        wanted = "ansible-core" if core == NEWEST else f"ansible-core~={core}.0"
        target = str(folder / "bin" / "python")
        subprocess.run([own, "-m", "pip", "--python", target, "install", "-q", wanted], check=True)
    return folder


def versions(folder: Path) -> tuple[str, str]:
    """Of ansible-core and of its Python."""
    program = "import ansible.release, platform; print(ansible.release.__version__, platform.python_version())"
    done = subprocess.run([str(folder / "bin" / "python"), "-c", program], check=True, capture_output=True, text=True)
    core, python = done.stdout.split()
    return core, python


def on_nodes(nodes: Sequence[str], script: str) -> None:
    """Run a shell script as root on each node of the lab."""
    for node in nodes:
        subprocess.run([*LAB, "exec", node, "sh", "-c", script], cwd=project.ROOT, check=True)


@contextlib.contextmanager
def way_in(way: Way, nodes: Sequence[str], password: str) -> Iterator[list[str]]:
    """What the nodes need for this way, and the options of ansible-playbook; taken back at the end."""
    if not way.rule:
        yield []
        return
    make = (
        f"set -e; echo '{USER} ALL=(ALL) {way.rule}' > {SUDOERS}; chmod 440 {SUDOERS}; "
        f"echo '{USER}:{password}' | chpasswd; "
        f"home=$(getent passwd {USER} | cut -d: -f6); install -d -m 700 -o {USER} $home/.ssh; "
        f"install -m 600 -o {USER} ~root/.ssh/authorized_keys $home/.ssh/authorized_keys"
    )
    on_nodes(nodes, make)
    options = ["-e", f"ansible_user={USER}"]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as secret:
        if way.rule == "ALL":
            json.dump({"ansible_become_password": password}, secret)
            secret.flush()
            options += ["-e", f"@{secret.name}"]
        try:
            yield options
        finally:
            on_nodes(nodes, f"rm -rf {SUDOERS} $(getent passwd {USER} | cut -d: -f6)/.ssh; passwd -q -l {USER}")


def run(row: Row, folder: Path, nodes: Sequence[str]) -> Result:
    """site.yml, as somebody types it who has this release."""
    core, python = versions(folder)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name, way_in(row.way, nodes, secrets.token_hex(8)) as options:
        settings = Path(name) / "ansible.cfg"
        settings.write_text(row.way.settings, encoding="utf-8")
        environment = project.tool_environment(
            ANSIBLE_CONFIG=str(settings), ANSIBLE_COLLECTIONS_PATH=str(project.COLLECTIONS)
        )
        argv = [str(folder / "bin" / "ansible-playbook"), "site.yml", "-i", str(INVENTORY), *options]
        print(f"--- {row.name}: ansible-core {core}, Python {python}, {row.way.about}", flush=True)
        done = subprocess.run(
            argv, cwd=project.ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
        )
    text = done.stdout + done.stderr
    found = Result(row, core, python, outcome(done.returncode, text), time.monotonic() - began)
    print(text if found.outcome != "passed" else f"passed in {found.seconds:.0f} s", flush=True)
    return found


def same(results: Sequence[Result], row: Row, core: str, python: str) -> Result | None:
    """The row that ran with these very versions in the same way: on an older Python the newest is none of its own."""
    mine = (core, python, row.way)
    return next((one for one in results if (one.core, one.python, one.row.way) == mine), None)


def lab_nodes(count: int, fresh: bool) -> list[str]:
    """The nodes of the lab, new ones where they are asked for."""
    if fresh:
        subprocess.run([*LAB, "down", "--inventory", "lab"], cwd=project.ROOT, check=True)
    subprocess.run([*LAB, "up", "--nodes", str(count)], cwd=project.ROOT, check=True)
    return [f"n{number}" for number in range(1, count + 1)]


def main() -> int:
    """Run the rows, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="such as 2.16, sudo, 2.19/password")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and run nothing")
    parser.add_argument("--fresh", action="store_true", help="new nodes for every row")
    parser.add_argument("--nodes", type=int, default=3)
    arguments = parser.parse_args()
    wanted = rows(arguments.only)
    if arguments.list:
        print("\n".join(row.name for row in wanted))
        return 0
    if os.geteuid() != 0:
        raise CompatError("the lab needs root: run this as root")
    pythons, results = installed_pythons(), []
    for row in wanted:
        python = python_for(row.core, pythons)
        if not python:
            oldest = ".".join(map(str, CORES[row.core]))
            results.append(Result(row, row.core, "none", f"not run: no Python {oldest} or newer here", 0))
            continue
        folder = install(row.core, python)
        if earlier := same(results, row, *versions(folder)):
            results.append(
                earlier._replace(row=row, outcome=f"not run again: it is {earlier.row.core} here", seconds=0)
            )
            continue
        nodes = lab_nodes(arguments.nodes, arguments.fresh)
        results.append(run(row, folder, nodes))
    print(table(results, datetime.date.today().isoformat()))
    return 1 if any(one.outcome.startswith("FAILED") for one in results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (CompatError, setup.SetupError) as error:
        sys.exit(f"compat: {error}")
