# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a node's clock is from the controller's, as far as a call over ssh can tell.  Pure."""

from __future__ import annotations


def compared(before: float, epoch: float, seconds: float, after: float) -> dict[str, float]:
    """Offset and its uncertainty, in seconds.

    before, after: the controller's clock around the call.  epoch: the node's clock when its look began, which took
    ``seconds``.  The look began no earlier than ``before`` and ended no later than ``after``, so the true offset lies
    between two bounds; given is their middle, and half their distance as the uncertainty.
    """
    most = epoch - before
    least = epoch + seconds - after
    return {
        "offset_seconds": round((most + least) / 2, 3),
        # Not below zero: a clock that was set during the call can turn the bounds round.
        "uncertainty_seconds": round(max(0.0, most - least) / 2, 3),
    }
