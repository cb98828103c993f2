# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command that is stopped again and again."""

from __future__ import annotations

import sys

import stalled

#: Ends with 7 once it has stood still for a second.
PROGRAM = """
import sys, time
begin = last = time.monotonic()
while last - begin < 60:
    time.sleep(0.01)
    now = time.monotonic()
    if now - last > 1:
        sys.exit(7)
    last = now
"""


def test_a_command_stands_still_and_its_exit_status_is_returned() -> None:
    assert stalled.run([sys.executable, "-c", PROGRAM], 1) == 7
