# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpu-cluster-run: launcher, agent or rank."""

from __future__ import annotations

import os
import sys
import threading

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import EXPLAINER, QUEUE

QUEUE_COMMANDS = ("ps", "nodes", "stop", "logs")


def main() -> int:
    # Each of the three programs imports its own part alone: it is compiled whenever one of them starts.
    if sys.argv[1:2] == ["--agent"]:
        from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.agent import Agent

        return Agent().run()
    if sys.argv[1:] == ["--rank"]:
        from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.rank import run_rank

        return run_rank()
    from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.typed import as_user, explain, launch

    if sys.argv[1:2] == ["explain"]:
        return explain(sys.argv[2:])
    if sys.argv[1:2] and sys.argv[1] in QUEUE_COMMANDS:
        return as_user(QUEUE, sys.argv[1:])
    if sys.argv[1:2] == ["why"]:
        return as_user(EXPLAINER, sys.argv[1:])
    return launch(sys.argv[1:])


def leave(code: int) -> None:
    """A thread that waits for a stopped terminal holds its lock, over which the interpreter would abort."""
    if threading.active_count() > 1:
        os._exit(code)
    raise SystemExit(code)


if __name__ == "__main__":
    leave(main())
