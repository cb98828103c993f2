# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task does not know of its play, as Ansible has no variable for it."""

from __future__ import annotations

from typing import Any


def strategy(task: Any) -> str:
    """The strategy of the play that a task belongs to; empty when it cannot be known.

    Ansible has no variable for it. A task knows the block or include that it is in, and that one knows the play.
    """
    block = getattr(task, "_parent", None)
    while block is not None:
        play = getattr(block, "_play", None)
        if play is not None:
            return str(play.strategy)
        block = getattr(block, "_parent", None)
    return ""
