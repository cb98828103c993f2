# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a job fails or hangs, by gpu-cluster-explain: what it is given, and when it is asked."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import EXPLAINER
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import EXPLAIN, SETTLE

#: Lines of all ranks that are kept for the explanation: the first ones that may be errors, and the last ones.
KEPT_SUSPICIOUS = 5_000
KEPT_LAST = 5_000
KEPT_CHARACTERS = 2_000
SUSPICIOUS = re.compile(r"warn|error|fail|fatal|refuse|timed? ?out|can.?not|can't|unable|denied|killed|exception", re.I)
#: Seconds for a look at all ranks.
LOOK = 60.0
#: What ranks write that have waited too long.
TIMED_OUT = re.compile(
    r"Watchdog caught collective operation timeout|collective operation timeout|Timed out waiting \d+ms"
    r"|Timed out after \d+ms waiting|DistBackendError.*[Tt]imed? ?out|Application timeout caused pair closure"
)


class Heard:
    """What the ranks have written, as far as it may explain a failure; the logs have all of it."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: list[tuple[int, str]] = []
        self.last: collections.deque[tuple[int, str]] = collections.deque(maxlen=KEPT_LAST)

    def add(self, line: str, *, keep: bool = False) -> None:
        self.count += 1
        numbered = (self.count, line[:KEPT_CHARACTERS])
        self.last.append(numbered)
        if keep or (len(self.kept) < KEPT_SUSPICIOUS and SUSPICIOUS.search(numbered[1])):
            self.kept.append(numbered)

    def text(self) -> str:
        """Each line once, in the order in which they came."""
        return "".join(f"{line}\n" for _number, line in sorted({*self.kept, *self.last}))


def explanation(lines: str) -> list[str]:
    """The lines of what gpu-cluster-explain makes of those of a job; none where it is not there."""
    try:
        ended = subprocess.run(
            [EXPLAINER, "-"], input=lines.encode("utf-8", "replace"), capture_output=True, timeout=EXPLAIN, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return ended.stdout.decode("utf-8", "replace").splitlines() if ended.returncode in (0, 1) else []


class Look:
    """Where the ranks of a job stand, by ``gpu-cluster-explain why``, in a thread: the heartbeat goes on."""

    def __init__(self, job_id: str, nodes: Sequence[str], ended: set[int], said: Any) -> None:
        self.argv = [EXPLAINER, "why", job_id, "--nodes", ",".join(nodes), "--ended"]
        self.ended = ended
        self.said = said
        self.process: subprocess.Popen[bytes] | None = None
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        """The exit code says whether it has found a cause; without a line it has found none."""
        time.sleep(SETTLE)  # Ranks that have waited for the same give up together.
        argv = [*self.argv, ",".join(map(str, sorted(self.ended)))]
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            printed = self.process.communicate(timeout=LOOK)[0]
        except OSError:
            return
        except subprocess.TimeoutExpired:
            self.end()
            return
        lines = printed.decode("utf-8", "replace").splitlines()
        if lines and self.process.returncode in (0, 1):
            self.said(lines)

    def end(self) -> None:
        """Nothing of it stays behind when the launcher ends, its ssh connections included."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def running(self) -> bool:
        return self.thread.is_alive()
