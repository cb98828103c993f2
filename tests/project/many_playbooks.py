# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program: runs ansible-playbook many times, and starts Python and imports Ansible and our plugins once.

Standard input is a list of commands as JSON: the arguments, further environment variables, and the file for all output.
Standard output is the list of their exit codes. As many run at the same time as there are processors.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import ansible.cli
import ansible.executor.playbook_executor
import ansible.plugins.strategy.linear  # imported before the forks, for all of them
from ansible import constants
from ansible.cli.playbook import PlaybookCLI
from ansible.plugins.loader import init_plugin_loader

PLUGINS = Path(__file__).parents[2] / "plugins"


def start(command: dict[str, Any]) -> int:
    """One run, in a process of its own; its number."""
    sys.stdout.flush()
    number = os.fork()
    if number:
        return number
    os.environ.update(command["environment"])
    output = os.open(command["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # Ansible has made one folder for temporary files in this process, and each of its children would remove it.
    constants.DEFAULT_LOCAL_TMP = f"{command['output']}-tmp"
    os.mkdir(constants.DEFAULT_LOCAL_TMP, 0o700)
    code: Any = 0
    try:
        PlaybookCLI.cli_executor(["ansible-playbook", *command["arguments"]])
    except SystemExit as ended:
        code = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def main() -> None:
    """Run what standard input lists."""
    init_plugin_loader()
    ansible.cli.init_plugin_loader = lambda *_given: None
    for path in [*PLUGINS.glob("filter/*.py"), *PLUGINS.glob("action/*.py")]:
        import_module(f"ansible_collections.baremetal.gpu_cluster.plugins.{path.parent.name}.{path.stem}")
    commands = json.load(sys.stdin)
    codes = [0] * len(commands)
    running: dict[int, int] = {}
    waiting = list(enumerate(commands))
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            index, command = waiting.pop(0)
            running[start(command)] = index
        number, status = os.wait()
        codes[running.pop(number)] = os.waitstatus_to_exitcode(status)
    json.dump(codes, sys.stdout)


if __name__ == "__main__":
    main()
