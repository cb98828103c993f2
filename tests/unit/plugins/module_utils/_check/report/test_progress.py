# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines that a person reads while the check is under way."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import progress

NOTE = {"backend": "gloo", "size_bytes": 16 << 20, "number": 3, "of": 5, "iterations": 40, "at_most": 65}


@pytest.mark.parametrize(
    ("note", "idle", "text"),
    [
        (None, 0.2, "collective: the ranks import PyTorch"),
        (None, 4.4, "collective: the ranks import PyTorch, 4 s"),
        ({"backend": "gloo"}, 12.0, "gloo: rank 0 waits until all ranks are connected, 12 s"),
        (NOTE, 0.0, "gloo 16 MiB 3/5, iterations 40/65"),
        (NOTE, 2.9, "gloo 16 MiB 3/5, iterations 40/65"),
        (NOTE, 6.0, "gloo 16 MiB 3/5, iterations 40/65: no progress for 6 s"),
        (dict(NOTE, size_bytes=4, iterations=0), 0.0, "gloo 4 B 3/5, iterations 0/65"),
    ],
)
def test_the_line_says_progress_note_the_ranks_are(note: Any, idle: float, text: str) -> None:
    assert progress.collective(note, idle).text == text


@pytest.mark.parametrize("note", [[], "gloo", 7, {"backend": "\x1b[2J"}, {"backend": ["gloo"]}, {"backend": "a" * 40}])
def test_what_no_rank_has_written_reaches_no_terminal(note: Any) -> None:
    assert progress.collective(note, 0).text == "collective: the ranks import PyTorch"


@pytest.mark.parametrize("value", ["\x1b[2J", None, 1.5, [1]])
def test_only_whole_numbers_are_shown(value: Any) -> None:
    line = progress.collective(dict(NOTE, iterations=value), 0).text
    assert line == "gloo: rank 0 waits until all ranks are connected"


def test_progress_is_what_changes_from_look_to_look() -> None:
    watch = progress.Collective(100.0)
    assert watch.line(None, 101.0).text == "collective: the ranks import PyTorch, 1 s"
    assert watch.line(NOTE, 110.0).text == "gloo 16 MiB 3/5, iterations 40/65"
    assert watch.line(dict(NOTE), 114.0).text.endswith(": no progress for 4 s")
    # A look that came upon a note while it was written.
    assert watch.line(None, 115.0).text.endswith("iterations 40/65: no progress for 5 s")
    assert watch.line(dict(NOTE, iterations=41), 116.0).text == "gloo 16 MiB 3/5, iterations 41/65"


def test_a_log_has_a_line_for_each_size_and_every_ten_seconds_without_progress() -> None:
    watch = progress.Collective(0.0)
    notes = [dict(NOTE, number=number, iterations=done) for number in (1, 2) for done in range(0, 65, 5)]
    notes += [notes[-1]] * 25
    assert len({watch.line(note, float(second)).key for second, note in enumerate(notes)}) == 4


@pytest.mark.parametrize(
    ("done", "idle", "text"), [(41, 0.0, "mesh 41/56 links"), (49, 7.0, "mesh 49/56 links: no progress for 7 s")]
)
def test_the_mesh_counts_links(done: int, idle: float, text: str) -> None:
    assert progress.mesh(done, 56, idle).text == text


def test_the_mesh_has_a_line_in_a_log_for_each_number() -> None:
    assert progress.mesh(7, 56, 1.0).key == progress.mesh(7, 56, 9.0).key
    assert len({progress.mesh(7, 56, 1.0).key, progress.mesh(14, 56, 1.0).key, progress.mesh(7, 56, 10.0).key}) == 3
