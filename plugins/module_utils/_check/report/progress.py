# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person reads while the check is under way.  Pure: what was seen and the time in, one line out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape

#: Without news for this long, the line says so.
STALL_SECONDS = 3
#: As long as nothing moves, a log gets one more line in this time.
LOG_SECONDS = 10
BACKEND = re.compile(r"[a-z]{1,16}")


class Shown(NamedTuple):
    """One line, and what must differ from the line before for a log to have it as well."""

    text: str
    key: tuple[int, ...]


class Collective:
    """The lines of one collective, look by look.  now: seconds of any clock of the caller that only goes forward."""

    def __init__(self, now: float) -> None:
        self._note: Any = None
        self._since = now

    def line(self, note: Any, now: float) -> Shown:
        """note: what rank 0 wrote last, from a node that may be broken; None when nothing could be read."""
        if note is not None and note != self._note:
            self._note, self._since = note, now
        return collective(self._note, now - self._since)


def collective(note: Any, idle_seconds: float) -> Shown:
    """How far the ranks are.  idle_seconds: time since the note last changed."""
    fields = note if isinstance(note, Mapping) else {}
    backend = str(fields.get("backend", ""))
    if not BACKEND.fullmatch(backend):
        return waiting("collective: the ranks import PyTorch", 0, idle_seconds)
    names = ("size_bytes", "number", "of", "iterations", "at_most")
    size_bytes, number, of, iterations, at_most = (fields.get(name) for name in names)
    if not all(shape.count(fields.get(name)) for name in names):
        return waiting(f"{backend}: rank 0 waits until all ranks are connected", 1, idle_seconds)
    text = f"{backend} {human_bytes(float(size_bytes or 0))} {number}/{of}, iterations {iterations}/{at_most}"
    return Shown(text + stalled(idle_seconds), (2, int(number or 0), int(idle_seconds // LOG_SECONDS)))


def waiting(text: str, stage: int, idle_seconds: float) -> Shown:
    """A stage without steps that could be counted."""
    passed = f", {idle_seconds:.0f} s" if idle_seconds >= 1 else ""
    return Shown(text + passed, (stage, int(idle_seconds // LOG_SECONDS)))


def mesh(done: int, of: int, idle_seconds: float) -> Shown:
    """Directed links that have been probed.  idle_seconds: time since the last of them."""
    return Shown(f"mesh {done}/{of} links{stalled(idle_seconds)}", (done, int(idle_seconds // LOG_SECONDS)))


def stalled(seconds: float) -> str:
    """What is added to a line when nothing has moved for a while."""
    return f": no progress for {seconds:.0f} s" if seconds >= STALL_SECONDS else ""
