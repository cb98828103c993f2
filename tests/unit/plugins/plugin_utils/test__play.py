# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The strategy of a play is found from a task of it, however many blocks and includes are between them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _play

PLAY = SimpleNamespace(strategy="ansible.builtin.host_pinned")


@pytest.mark.parametrize(
    ("parent", "strategy"),
    [
        (SimpleNamespace(_play=PLAY), "ansible.builtin.host_pinned"),
        (SimpleNamespace(_play=None, _parent=SimpleNamespace(_parent=SimpleNamespace(_play=PLAY))), PLAY.strategy),
        (SimpleNamespace(_play=None, _parent=None), ""),
        (None, ""),
    ],
)
def test_the_strategy_is_that_of_the_play_above(parent: Any, strategy: str) -> None:
    assert _play.strategy(SimpleNamespace(_parent=parent)) == strategy
