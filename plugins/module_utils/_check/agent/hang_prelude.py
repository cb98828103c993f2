# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rank of gpu-cluster-run loads as ``sitecustomize``: it can then be asked where it hangs.

The launcher puts the folder of this file first on PYTHONPATH of a Python script.  This module takes the folder out
again, so the script and its children see the variables and the path that they would have seen without it, and then
imports the ``sitecustomize`` that the node has.  It never raises: a rank without this help is better than no rank.

* When torch.distributed is imported, a thread waits at a named pipe.  It writes the stacks of all threads, and what the
  flight recorder holds.
* A signal that no script takes makes faulthandler write the stacks, also where no thread can.  It interrupts system
  calls: the store of torch then says so and tries again, so it is only sent where nobody answers at the pipe.
* The flight recorder gets its variables, under the names of this release of torch, where the user has not set them.

It stands alone and imports only what a starting interpreter has.  The names of files are those of ``hang_stacks``.
"""

from __future__ import annotations

import os
import sys

#: The folder of the job, and where the flight recorder writes by itself.
FOLDER, RECORDS = "GPU_CLUSTER_RUN_HANG", "GPU_CLUSTER_RUN_RECORDS"
#: A real-time signal: neither torch, NCCL nor MPI takes it.
SIGNAL = 61
#: A collective takes some 500 bytes in a dump.
BUFFER_SIZE = "2000"
#: From this release on the recorder has names of its own, and warns about the older ones.
NEW_NAMES = (2, 8)


def leave_no_trace(own: str) -> None:
    """Take the own folder out of the path, and import the sitecustomize that it has hidden."""
    sys.path[:] = [one for one in sys.path if one != own]
    left = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one != own]
    if left and left != [""]:
        os.environ["PYTHONPATH"] = os.pathsep.join(left)
    else:
        os.environ.pop("PYTHONPATH", None)
    mine = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if mine is not None:
            sys.modules["sitecustomize"] = mine


def offer_stacks(folder: str) -> str:
    """The name of the file holds its descriptor: who asks can see whether the script has closed it."""
    import faulthandler

    path = os.path.join(folder, f"{os.getpid()}.new")
    stream = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    faulthandler.register(SIGNAL, file=stream, all_threads=True, chain=False)
    stacks = os.path.join(folder, f"{os.getpid()}-{stream}.stacks")
    os.rename(path, stacks)
    return stacks


def recorder_variables(version: str, records: str) -> dict[str, str]:
    """What the flight recorder needs: releases up to 2.10 record nothing by default."""
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    new = tuple(numbers) >= NEW_NAMES
    names = ("TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE")
    size, target = names if new else ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
    found = {size: BUFFER_SIZE, "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"}
    if records:
        found[target] = records
    return found


def dump(folder: str, stacks: str) -> None:
    """The stacks, and then the records of all recorders of this process, as a list in JSON."""
    import faulthandler

    stream = int(stacks.rpartition("-")[2].partition(".")[0])
    if os.path.samestat(
        os.fstat(stream), os.stat(stacks)
    ):  # Else the script has closed it, and has another file there.
        faulthandler.dump_traceback(stream, all_threads=True)
    binding = sys.modules.get("torch._C._distributed_c10d")
    functions = [getattr(binding, name, None) for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json")]
    texts = [function(True, False) for function in functions if function is not None]
    parts = [one if isinstance(one, bytes) else one.encode() for one in texts]
    path = os.path.join(folder, f"{os.getpid()}.records")
    with open(f"{path}.new", "wb") as file:
        file.write(b"[" + b",".join(parts) + b"]")
    os.rename(f"{path}.new", path)


def wait_for_questions(folder: str, stacks: str, pipe: int) -> None:
    """In a thread of its own."""
    while os.read(pipe, 64):
        try:
            dump(folder, stacks)
        except Exception:
            continue


def offer_records(folder: str, stacks: str) -> None:
    """Of the threads of the script nobody sees this one: the module threading does not count it."""
    import _thread

    torch = sys.modules.get("torch")
    version = str(getattr(torch, "__version__", ""))
    for name, value in recorder_variables(version, os.environ.get(RECORDS, "")).items():
        os.environ.setdefault(name, value)
    path = os.path.join(folder, f"{os.getpid()}.ask")
    os.mkfifo(path, 0o600)
    pipe = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # Also to write, or a reader would see the end of each question.
    _thread.start_new_thread(wait_for_questions, (folder, stacks, pipe))


class Watcher:
    """Finds no module; sees that torch.distributed is imported."""

    def __init__(self, folder: str, stacks: str) -> None:
        self.folder = folder
        self.stacks = stacks
        self.process = os.getpid()

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == "torch.distributed" and self.folder and os.getpid() == self.process:
            folder, self.folder = self.folder, ""
            try:
                offer_records(folder, self.stacks)
            except Exception:
                return


def start() -> None:
    folder = os.environ.get(FOLDER, "")
    try:
        if folder:
            sys.meta_path.insert(0, Watcher(folder, offer_stacks(folder)))
    except Exception:
        folder = ""
    leave_no_trace(os.path.dirname(os.path.abspath(__file__)))


if __name__ == "sitecustomize":
    start()
