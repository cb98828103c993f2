# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that has imported Ansible and the check once and becomes ansible-playbook as often as a test wants one.

Each line of standard input is a run in JSON: its arguments, environment, folder, and the files for its output.  The
answer is a line with the exit code.  Importing takes a third of the time of a run.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from importlib import import_module
from typing import Any

import ansible.cli
import ansible.executor.playbook_executor
import ansible.plugins.strategy.linear  # imported before the forks, for all of them
from ansible import constants
from ansible.cli.playbook import PlaybookCLI
from ansible.plugins.loader import init_plugin_loader


def become(run: dict[str, Any]) -> None:
    """Be one run; never returns."""
    code: Any = 1
    os.environ.clear()
    os.environ.update(run["environment"])
    os.chdir(run["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, path in zip((1, 2), run["output"], strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    # Ansible has made one folder for temporary files in the process that started this one.
    constants.DEFAULT_LOCAL_TMP = os.path.join(run["temporary"], f"ansible-local-{os.getpid()}")
    os.makedirs(constants.DEFAULT_LOCAL_TMP, 0o700)
    try:
        PlaybookCLI.cli_executor(["ansible-playbook", *run["arguments"]])
    except SystemExit as ended:
        code = ended.code
    shutil.rmtree(constants.DEFAULT_LOCAL_TMP, ignore_errors=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def main() -> None:
    init_plugin_loader()
    ansible.cli.init_plugin_loader = lambda *_given: None
    for name in ("check", "check_step"):
        import_module(f"ansible_collections.baremetal.gpu_cluster.plugins.action.{name}")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(json.loads(line))
        _pid, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
