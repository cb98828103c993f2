# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that has imported torch once and becomes a rank as often as a test wants one: importing takes seconds.

    rank_starter.py

Standard input is a socket. Each message is a request in JSON, with three open files: the rank's standard input, its
standard output, and what it listens on. The answer is the process id of the rank, which runs the program that the
request names, as a Python of its own would run it.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import traceback
from typing import Any

#: A request is one packet, and so is the answer.
MOST_BYTES = 1 << 16


def become(request: dict[str, Any], files: list[int]) -> None:
    """Run the program of the request with its own files; never returns."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        stdin, stdout, listener = files
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(listener, request["listen_fd"], inheritable=True)
        for file in files:
            os.close(file)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        os.environ.update(request["environment"])
        sys.argv = request["argv"]
        if sys.argv[0] == "-m":
            del sys.argv[0]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    import torch.distributed

    torch.set_num_threads(1)
    # Nobody waits for the ranks: whoever reads what they print sees their end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=0) as requests:
        while True:
            text, files, _flags, _address = socket.recv_fds(requests, MOST_BYTES, 3)
            if not text:
                return
            pid = os.fork()
            if pid == 0:
                requests.detach()
                become(json.loads(text), list(files))
            for file in files:
                os.close(file)
            requests.send(str(pid).encode())


if __name__ == "__main__":
    main()
