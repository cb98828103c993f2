# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exit codes of gpu-cluster-run, and how a job is refused."""

from __future__ import annotations

from collections.abc import Sequence

#: Exit codes of our own, as in sysexits.h.  Everything else is the code of the script, or 128 + the signal.
EXIT_INPUT = 64
EXIT_UNUSABLE = 69
EXIT_LOST = 75
EXIT_NO_HOROVOD = 78


class Refused(Exception):
    """The job does not start: an exit code, and every reason at once."""

    def __init__(self, code: int, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.code = code
        self.reasons = list(reasons)
