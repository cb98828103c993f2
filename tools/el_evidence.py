# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report about Enterprise Linux, to be pasted into an issue: what this project has not seen itself.

    make el-evidence ARGS="-i INVENTORY"                           # real machines; nothing is changed there
    LAB_IMAGE=quay.io/centos/centos:stream9 make el-evidence       # make test on a lab of that image

Read it before you send it: it holds host names and versions, and no addresses or keys.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import project
import yaml

FOLDER = project.ROOT / "tools" / "evidence"
REPORT = project.ROOT / "dist" / "el-evidence.md"
#: What is kept of a machine's answer and of a command's output, which come from outside.
MAX_LINES, MAX_CHARACTERS = 200, 300
RULE = "SELinux rule "


def rules() -> list[dict[str, str]]:
    """The questions about the policy."""
    found: list[dict[str, str]] = yaml.safe_load((FOLDER / "selinux-rules.yml").read_text(encoding="utf-8"))
    return found


def script() -> str:
    """What runs on each machine: the look, then a question to sesearch for each rule."""
    lines = [(FOLDER / "look.sh").read_text(encoding="utf-8"), "if have sesearch; then"]
    lines += [f"line '{RULE}{number}' sesearch {rule['sesearch']}" for number, rule in enumerate(rules(), 1)]
    return "\n".join([*lines, "fi"]) + "\n"


def clean(text: str) -> str:
    """A line without what a terminal or a table would take for its own."""
    return (
        "".join(letter if letter.isprintable() else " " for letter in text[:MAX_CHARACTERS]).replace("|", "\\|").strip()
    )


def answers(text: str) -> dict[str, str]:
    """What a machine said, by name."""
    lines = [line.partition("\t") for line in text.splitlines()[:MAX_LINES] if "\t" in line]
    return {clean(name): clean(value).rstrip("; ") for name, _tab, value in lines}


def verdict(rule: Mapping[str, str], answer: str | None) -> str:
    """Whether the policy of a machine has a rule."""
    if answer is None:
        return "not asked: no sesearch there (dnf install setools-console)"
    # A rule may name an attribute of the types that were asked for.
    return "there" if rule.get("expect", "allow") in answer.replace(";", " ").split() else f"MISSING: {answer}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)] + [""]


def machines(said: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The tables of what was seen: a row a name, a column a machine."""
    names = list(dict.fromkeys(name for one in said.values() for name in one if not name.startswith(RULE)))
    hosts = sorted(said)
    seen = [[name, *(said[host].get(name, "") for host in hosts)] for name in names]
    asked = [
        [
            f"{rule['why']}: `sesearch {rule['sesearch']}`",
            *(verdict(rule, said[host].get(f"{RULE}{number}")) for host in hosts),
        ]
        for number, rule in enumerate(rules(), 1)
    ]
    return [*table(["", *hosts], seen), *table(["SELinux", *hosts], asked)]


def run(title: str, argv: Sequence[str], environment: Mapping[str, str], last_lines: int) -> list[str]:
    """A command with its exit code and the last lines that it printed."""
    started = time.monotonic()
    shown = shlex.join(argv).replace(str(project.ROOT), ".")
    print(f"evidence: {shown}", file=sys.stderr, flush=True)
    done = subprocess.run(
        argv,
        cwd=project.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [clean(line) for line in done.stdout.splitlines()[-last_lines:]]
    head = f"## {title}: exit code {done.returncode} after {time.monotonic() - started:.0f} s"
    return [head, "", f"`{shown}`", "", "```text", *lines, "```", ""]


def of_machines(inventory: str) -> list[str]:
    """What real machines say. Only commands that change nothing."""
    environment = project.tool_environment(ANSIBLE_NOCOLOR="1")
    with tempfile.TemporaryDirectory() as folder:
        look, said = Path(folder) / "look", Path(folder) / "said"
        look.write_text(script(), encoding="utf-8")
        said.mkdir()
        values = {"script": str(look), "folder": str(said)}
        words = [word for name, value in values.items() for word in ("-e", f"{name}={value}")]
        playbook = [str(project.BIN / "ansible-playbook"), "-i", inventory]
        found = run("Look", [*playbook, *words, str(FOLDER / "look.yml")], environment, 12)
        texts = {clean(path.name): answers(path.read_text(errors="replace")) for path in said.iterdir()}
    checks: list[tuple[str, list[str], int]] = [
        ("The inventory and the hosts", ["baremetal.gpu_cluster.preflight"], 60),
        ("What site.yml would change", ["site.yml", "--check"], 60),
    ]
    return [
        *machines(texts),
        *found,
        *(line for name, words, kept in checks for line in run(name, [*playbook, *words], environment, kept)),
    ]


def of_this_checkout() -> list[str]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=project.ROOT, capture_output=True, text=True, check=False
    )
    rows: list[Any] = [
        ["commit", commit.stdout.strip() or "unknown"],
        ["ansible-core", importlib.metadata.version("ansible-core")],
        ["Python of the controller", platform.python_version()],
        ["date", time.strftime("%Y-%m-%d")],
    ]
    return ["# Evidence about Enterprise Linux", "", *table(["", ""], rows)]


def main() -> int:
    """Print the report, and keep it in dist."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-i", "--inventory", help="of real machines")
    arguments = parser.parse_args()
    image = os.environ.get("LAB_IMAGE", "")
    if not arguments.inventory and not image:
        parser.error("expected -i INVENTORY with real machines, or LAB_IMAGE with a CentOS image of a registry")
    report = of_this_checkout()
    if arguments.inventory:
        report += of_machines(arguments.inventory)
    if image:
        report += run(f"make test with LAB_IMAGE={clean(image)}", ["make", "test"], os.environ, 80)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join(report), encoding="utf-8")
    print("\n".join(report))
    print(f"evidence: written to {REPORT.relative_to(project.ROOT)}; read it before you send it", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
