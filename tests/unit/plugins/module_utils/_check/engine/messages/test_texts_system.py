# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel, the C library and the shell say, and what the table makes of it."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    NOBODY,
    PEER,
    SELF,
)

NPROC = [
    "bash: fork: retry: Resource temporarily unavailable",
    "bash: fork: Resource temporarily unavailable",
    "-bash: fork: retry: No child processes",
    "libgomp: Thread creation failed: Resource temporarily unavailable",
    "OpenBLAS blas_thread_init: pthread_create failed for thread 12 of 64: Resource temporarily unavailable",
    "OpenBLAS blas_thread_init: RLIMIT_NPROC 4096 current, 4096 max",
    "  what():  Resource temporarily unavailable",
    "terminate called after throwing an instance of 'std::system_error' what():  Resource temporarily unavailable",
    "RuntimeError: can't start new thread",
    "Failed to create a thread: Resource temporarily unavailable",
    "error: fork: Resource temporarily unavailable",
    "OMP: Error #34: System unable to allocate necessary resources for OMP thread:",
]

RECORDED: list[tuple[str, str, dict[str, tuple[object, ...]]]] = [
    *((text, causes.RESOURCES, {}) for text in NPROC),
    ("accept: Too many open files in system", causes.RESOURCES, {}),
    ("OSError: [Errno 24] Too many open files: '/data/shard-0001'", causes.RESOURCES, {}),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=12.0.", causes.RESOURCES, {}),
    ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0.", causes.RESOURCES, {}),
    ("kernel: Out of memory: Killed process 4711 (python3) total-vm:1kB", causes.RESOURCES, {}),
    ("kernel: Memory cgroup out of memory: Killed process 4711 (python3)", causes.RESOURCES, {}),
    ("OSError: [Errno 12] Cannot allocate memory", causes.RESOURCES, {}),
    ("terminate called after throwing an instance of 'std::bad_alloc'", causes.RESOURCES, {}),
    ("OSError: [Errno 28] No space left on device: '/dev/shm/x'", causes.RESOURCES, {}),
    ("OSError: [Errno 122] Disk quota exceeded", causes.RESOURCES, {}),
    ("BlockingIOError: [Errno 11] Resource temporarily unavailable", causes.RESOURCES, {}),
    ("Bus error (core dumped)", causes.RESOURCES, {}),
    ("/var/spool/job: line 12:  4711 Bus error               (core dumped) python3 train.py", causes.RESOURCES, {}),
    ("OSError: [Errno 105] No buffer space available", causes.RESOURCES, {}),
    ("socket.gaierror: [Errno -3] Temporary failure in name resolution", causes.NAMES, {}),
    ("socket.gaierror: [Errno -2] Name or service not known", causes.NAMES, {}),
    ("OSError: [Errno 116] Stale file handle: '/home/train/x'", causes.FILES, {}),
    ("cp: cannot stat 'x': Stale NFS file handle", causes.FILES, {}),
    ("OSError: [Errno 30] Read-only file system: '/data/out'", causes.FILES, {}),
    ("OSError: [Errno 5] Input/output error", causes.FILES, {}),
    ("cat: /data/shard-0001: Input/output error", causes.FILES, {}),
    ("PermissionError: [Errno 13] Permission denied: '/data/out'", causes.FILES, {}),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'", causes.FILES, {}),
    ("./train: error while loading shared libraries: libmpi.so.40: cannot open shared object file", causes.FILES, {}),
    ("OSError: [Errno 101] Network is unreachable", causes.INTERFACE, {}),
    ("connect: Network is unreachable", causes.INTERFACE, {}),
    ("connect() failed: Invalid argument", causes.INTERFACE, {}),
    ("the frobnicator says: Network is down", causes.INTERFACE, {}),
    ("OSError: [Errno 99] Cannot assign requested address", causes.INTERFACE, {}),
    ("connect: Operation not permitted", causes.BLOCKED, {}),
    ("OSError: [Errno 113] No route to host", causes.BLOCKED, {}),
    ("ConnectionRefusedError: [Errno 111] Connection refused", causes.BLOCKED, {}),
    ("TimeoutError: [Errno 110] Connection timed out", causes.BLOCKED, {}),
    ("ConnectionResetError: [Errno 104] Connection reset by peer", causes.STOPPED, {}),
]


@pytest.mark.parametrize(("text", "cause", "names"), RECORDED)
def test_a_recorded_text_leads_to_its_cause(text: str, cause: str, names: dict[str, tuple[object, ...]]) -> None:
    found = lookup.match(text)
    assert found is not None and found.id == cause, found
    for field, value in names.items():
        assert getattr(found.names, field) == value, found.names


@pytest.mark.parametrize("text", NPROC)
def test_a_refused_fork_is_a_limit_of_processes(text: str) -> None:
    found = lookup.match(text)
    assert found is not None and "nproc" in found.what and not found.text.weak


@pytest.mark.parametrize(
    "text",
    [
        "connect to n2: Resource temporarily unavailable",
        "recv: Resource temporarily unavailable",
        "thread 5: recv: Resource temporarily unavailable",
        "could not lock the database (Resource temporarily unavailable)",
    ],
)
def test_a_busy_socket_or_lock_is_none(text: str) -> None:
    assert lookup.match(text) is None


@pytest.mark.parametrize(
    ("text", "about", "weak"),
    [
        ("OSError: [Errno 101] Network is unreachable", SELF, False),
        ("the frobnicator says: Network is unreachable", NOBODY, False),
        ("OSError: [Errno 113] No route to host", PEER, False),
        ("BrokenPipeError: [Errno 32] Broken pipe", PEER, True),
        ("Killed", SELF, True),
    ],
)
def test_whom_a_text_accuses_and_whether_it_only_follows(text: str, about: str, weak: bool) -> None:
    found = lookup.match(text)
    assert found is not None and (found.text.about, found.text.weak) == (about, weak)


def test_an_answer_of_the_own_kernel_opens_no_ports() -> None:
    for text in ("Network is unreachable", "connect: Invalid argument", "connect: Operation not permitted"):
        found = lookup.match(text)
        assert found is not None and "cluster_firewall" not in found.command, found
    both = lookup.match("OSError: [Errno 113] No route to host")
    assert both is not None and "route" in both.fix and "firewall" in both.fix


@pytest.mark.parametrize(
    "text", ["Killed by signal 15.", "terminated", "Aborting now is not needed", "retry 3 of 5", "Exit 1"]
)
def test_a_line_that_says_nothing_is_not_explained(text: str) -> None:
    assert lookup.match(text) is None
