# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command on a machine that is busy with something else: all its processes stop for a second, again and again.

    tools/stalled.py .venv/bin/python -m pytest -q tests/unit

A test that fails only here promises that something takes less time than a busy machine needs. STALLED_SEED repeats the
pauses of an earlier run; processes in a session of their own go on.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

#: How long the command stops, and how long it runs in between, in seconds; the second is drawn.
STOPPED = 1.2
RUNNING = (0.2, 2.2)


def run(argv: list[str], seed: int) -> int:
    """Run it to its end; its exit status."""
    draws = random.Random(seed)
    process = subprocess.Popen(argv, start_new_session=True)
    while True:
        try:
            return process.wait(timeout=draws.uniform(*RUNNING))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGSTOP)
            time.sleep(STOPPED)
            os.killpg(process.pid, signal.SIGCONT)
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)


if __name__ == "__main__":
    chosen = int(os.environ.get("STALLED_SEED") or time.time_ns() % 1_000_000)
    print(f"STALLED_SEED={chosen}", flush=True)
    sys.exit(run(sys.argv[1:], chosen))
