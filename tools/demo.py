# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a fresh machine to a verdict: tools, a lab of three nodes, site.yml, the all_reduce over all of them.

Arguments are handed on to ansible-playbook. The last line is the verdict.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import project

NODES = 3
INVENTORY = project.ROOT / "inventories" / "lab"
REPORT_DIR = project.ROOT / ".lab" / "report"
REPORT = REPORT_DIR / "report.txt"


def main(arguments: list[str]) -> int:
    """Run the steps, then print what they led to."""
    started = time.monotonic()
    REPORT.unlink(missing_ok=True)  # an earlier verdict says nothing about this run
    steps = (
        ("set-up", [sys.executable, "tools/setup.py", "--wheels"]),
        ("lab", [str(project.BIN / "python"), "tools/lab/lab.py", "up", "--nodes", str(NODES)]),
        ("site.yml", playbook(arguments)),
    )
    returncode, failed_step = run_steps(steps)
    text = verdict(REPORT)
    print(f"\nThe report: {REPORT}" if text else "\nThere is no report.")
    print(f"Total time: {time.monotonic() - started:.0f} s")
    if failed_step and not text:
        text = f"FAILED: no verdict was written; {failed_step} ended with exit code {returncode}"
    elif failed_step and text.startswith("PASSED"):
        text = f"FAILED: the check passed, but {failed_step} ended with exit code {returncode}"
    elif not text:
        returncode, text = 1, f"FAILED: no verdict was written to {REPORT}"
    print(text)
    return returncode


def playbook(arguments: list[str]) -> list[str]:
    """The command a user would type, with the report in a known place."""
    options = ["-i", str(INVENTORY), "-e", f"cluster_check_report_dir={REPORT_DIR}"]
    return [str(project.BIN / "ansible-playbook"), "site.yml", *options, *arguments]


def run_steps(steps: tuple[tuple[str, list[str]], ...]) -> tuple[int, str]:
    """Run one step after the other until one fails; its exit code and name."""
    for name, command in steps:
        began = time.monotonic()
        print(f"=== {name}: {' '.join(command)}", flush=True)
        returncode = subprocess.run(command, cwd=project.ROOT, env=project.tool_environment(), check=False).returncode
        print(f"=== {name}: {time.monotonic() - began:.0f} s", flush=True)
        if returncode != 0:
            return returncode, name
    return 0, ""


def verdict(report: Path) -> str:
    """The first line of the report, empty where there is none."""
    return report.read_text(encoding="utf-8").partition("\n")[0].strip() if report.is_file() else ""


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("FAILED: interrupted before a verdict was written")
