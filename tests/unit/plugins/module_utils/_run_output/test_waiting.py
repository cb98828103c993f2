# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run waits for."""

from __future__ import annotations

import re

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output.waiting import Waiting


def test_the_task_the_hosts_and_since_when() -> None:
    waiting = Waiting()
    assert waiting.text(5) == "" and waiting.seconds(5) == 0
    waiting.task("t1", "gpu: nvidia_driver: Build")
    for second, host in enumerate(("n1", "n2", "n3")):
        waiting.began("t1", host, second)
    waiting.ended("t1", "n2")
    text = waiting.text(70)
    assert re.fullmatch(
        r"gpu: nvidia_driver: Build: waiting for n1, n3 since \d\d:\d\d:\d\d \(1 min 10 s, 1 done\)", text
    ), text
    waiting.again("n3", "failed, attempts left: 4")
    assert waiting.text(70).endswith("(1 min 10 s, 1 done, failed, attempts left: 4)")
    waiting.ended("t1", "n1")
    waiting.ended("t1", "n3")
    assert waiting.text(71) == "" and waiting.hosts == set()
    assert waiting.between() == "gpu: nvidia_driver: Build: ended, the next task is being prepared"
    assert Waiting().between() == ""


def test_hosts_that_are_still_in_an_earlier_task() -> None:
    """With the strategy free: the oldest is named."""
    waiting = Waiting()
    waiting.task("t1", "one")
    waiting.began("t1", "n1", 0)
    waiting.task("t2", "two")
    waiting.began("t2", "n2", 3)
    assert waiting.text(9).startswith("one: waiting for n1 since ") and waiting.hosts == {"n1", "n2"}
    waiting.ended("t1", "n1")
    assert waiting.text(9).startswith("two: waiting for n2 since ") and waiting.seconds(9) == 6
    waiting.forget()
    assert waiting.text(10) == ""
