# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exit codes of the program.  docs/standalone.md documents them."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import verdict

PASSED, FAILED, USAGE, NO_VERDICT = 0, 1, 2, 3
#: Added to the number of the signal that ended the program, as a shell does.
SIGNAL = 128
OF_VERDICT = {verdict.PASSED: PASSED, verdict.FAILED: FAILED, verdict.NOT_VALIDATED: NO_VERDICT}


class Interrupted(BaseException):
    """By a signal.  Not for those who catch every exception."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = SIGNAL + number


class UsageError(Exception):
    """Nothing was started.  problems: a sentence for each thing that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
