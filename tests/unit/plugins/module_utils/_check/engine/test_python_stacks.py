# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stacks as the interpreters and py-spy write them."""

from __future__ import annotations

import random

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import python_stacks

TORCH = "/opt/gpu-cluster/torch/lib/python3.11/site-packages/torch"
#: Written by Python 3.11 with torch 2.13, in the lab.  So do 3.9 to 3.13.
WAITS = f"""\
Current thread 0x00007f1be2bfd6c0 (most recent call first):
  File "/tmp/gpu-cluster-run-4000/j.hang/sitecustomize.py", line 86 in dump
  File "/tmp/gpu-cluster-run-4000/j.hang/sitecustomize.py", line 97 in wait_for_questions

Thread 0x00007f1bf98a9040 (most recent call first):
  File "{TORCH}/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "{TORCH}/distributed/c10d_logger.py", line 83 in wrapper
  File "/data/train.py", line 13 in step
  File "/data/train.py", line 20 in <module>
"""
#: traceback.c of 3.14 writes the name of a thread.
NAMED = """\
Thread 0x00007f1be2bfd6c0 [pin [memory]] (most recent call first):
  File "/usr/lib/python3.14/threading.py", line 1041 in _bootstrap_inner

Current thread 0x00007f1bf98a9040 [python] (most recent call first):
  File "/usr/lib/python3.14/selectors.py", line 398 in select
  File "/data/loader.py", line 7 in wait_for_data
  File "/data/train.py", line 20 in <module>
"""
#: Written by py-spy 0.4.
SPY = """\
Process 6232: /opt/python -u /data/train.py
Python v3.11.7 (/opt/python3.11)

Thread 6232 (idle): "MainThread"
    stuck (train.py:5)
    <module> (train.py:9)
Thread 6240 (idle): "Thread-1 (work)"
    wait (threading.py:320)
    <module> (other.py:1)
"""


@pytest.mark.parametrize(
    ("text", "own", "collective"),
    [
        (WAITS, "step (train.py:13)", "all_reduce"),
        (NAMED, "wait_for_data (loader.py:7)", ""),
        (SPY, "stuck (train.py:5)", ""),
        ("", "", ""),
        ("Fatal Python error: Aborted\n\nno stack\n", "", ""),
    ],
)
def test_the_main_thread_is_found(text: str, own: str, collective: str) -> None:
    frames = python_stacks.main_thread(text)
    found = python_stacks.own(frames)
    assert (found.text if found else "") == own
    assert python_stacks.collective(frames) == collective


def test_a_call_of_one_collective_by_another_has_the_name_of_the_outer_one() -> None:
    text = WAITS.replace(
        "in all_reduce", "in barrier\n" + f'  File "{TORCH}/distributed/distributed_c10d.py", line 9 in _x'
    )
    assert python_stacks.collective(python_stacks.main_thread(text)) == "barrier"


def test_work_that_is_waited_for_is_a_collective() -> None:
    text = WAITS.replace("in all_reduce", "in wait")
    assert python_stacks.collective(python_stacks.main_thread(text)) == "wait"


def test_no_text_breaks_the_reader_or_the_terminal() -> None:
    rng = random.Random(37)
    for _once in range(500):
        text = list(rng.choice([WAITS, NAMED, SPY]))
        for _change in range(rng.randrange(1, 20)):
            text[rng.randrange(len(text))] = rng.choice(["\x1b", "\n", "\0", "(", ")", '"', "9" * 30, "\u202e", "File"])
        frame = python_stacks.own(python_stacks.main_thread("".join(text)))
        assert frame is None or (frame.text.isprintable() and len(frame.text) < 300)


def test_the_number_of_threads_and_frames_is_bounded() -> None:
    many = WAITS.splitlines()[-1] + "\n"
    assert len(python_stacks.main_thread(WAITS + many * 100_000)) <= python_stacks.MOST_FRAMES
    assert len(python_stacks.threads(WAITS * 10_000)) <= python_stacks.MOST_THREADS
