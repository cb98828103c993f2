# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time a second run of the site against bare Ansible calls, on the lab that is running. It does not judge."""

from __future__ import annotations

import subprocess
import sys
import time

import project

INVENTORY = project.ROOT / "inventories" / "lab"
GROUP = "gpu_cluster"
COMMANDS = {
    "ansible -m ping": ["ansible", GROUP, "-m", "ping"],
    "ansible -m setup": ["ansible", GROUP, "-m", "setup"],
    "site.yml, nothing to change, without the check": ["ansible-playbook", "site.yml", "--skip-tags", "check"],
}


def measure(command: list[str]) -> float:
    """Seconds of wall time; a command that fails has no time."""
    started = time.monotonic()
    process = subprocess.run(
        [str(project.BIN / command[0]), *command[1:], "-i", str(INVENTORY)],
        cwd=project.ROOT,
        env=project.tool_environment(),
        check=False,
        capture_output=True,
        text=True,
    )
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with exit code {process.returncode}:\n{process.stdout}{process.stderr}")
    return time.monotonic() - started


def main() -> None:
    """Measure each command once warm, print a table."""
    if not (INVENTORY / "hosts.yml").exists():
        sys.exit("No lab is running: make lab, then make demo once, then make bench.")
    times = {}
    for name, command in COMMANDS.items():
        measure(command)
        times[name] = measure(command)
        print(f"{times[name]:8.1f} s  {name}", flush=True)
    site, setup = times["site.yml, nothing to change, without the check"], times["ansible -m setup"]
    print(f"{site / setup:8.1f} x  the site against a bare setup of the same nodes")


if __name__ == "__main__":
    main()
