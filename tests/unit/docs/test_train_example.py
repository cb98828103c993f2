# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/examples/train.py makes of a checkpoint that a dying node has left. Tests of the lab run the whole."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make setup-torch")
TRAIN = Path(__file__).parents[3] / "docs" / "examples" / "train.py"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    return runpy.run_path(str(TRAIN))["read"]


def test_a_damaged_checkpoint_counts_as_none(read: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = tmp_path / "whole.pt"
    torch.save({"epoch": 3, "model": {"weight": torch.ones(200)}}, whole)
    content = whole.read_bytes()
    assert read(whole)[0] == content and read(whole)[1]["epoch"] == 3
    for size in range(0, len(content), 61):
        damaged = tmp_path / "damaged.pt"
        damaged.write_bytes(content[:size])
        assert read(damaged) == (b"", {"epoch": 0}), size
        assert f"rank 1: {damaged} is damaged" in capsys.readouterr().err, size


def test_without_a_checkpoint_the_training_begins(read: Any, tmp_path: Path) -> None:
    assert read(None) == read(tmp_path / "none.pt") == (b"", {"epoch": 0})


def test_a_checkpoint_that_may_not_be_read_is_an_error(read: Any, tmp_path: Path) -> None:
    """It is no reason to begin anew."""
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
