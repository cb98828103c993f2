# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the process of a virtual machine has let go of its disk."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from lab import vm

#: Its first thread ends, and another one goes on: the process has no command line then, and all of its files.
HALF = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_is_over_when_all_of_its_threads_are() -> None:
    process = subprocess.Popen([sys.executable, "-c", HALF])
    try:
        end = time.monotonic() + 60
        while Path(f"/proc/{process.pid}/cmdline").read_bytes() or not Path(f"/proc/{process.pid}/task").is_dir():
            assert time.monotonic() < end
            time.sleep(0.01)
        assert not vm.is_over(process.pid)
        process.kill()
        while not vm.is_over(process.pid):
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert vm.is_over(process.pid)
