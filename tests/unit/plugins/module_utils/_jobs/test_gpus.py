# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia-smi prints of processes.  Rows as its documentation and public reports have them; none is a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import gpus
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.gpus import App, Card

CARDS = """0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 4096, 97
1, GPU-bbbb, NVIDIA H100 80GB HBM3, 81559, [N/A], [N/A]
"""
APPS = """GPU-bbbb, 4711, python, 4096
GPU-aaaa, 4712, /opt/a, b/python, [N/A]
GPU-aaaa, 4713, [Insufficient Permissions], 12
GPU-gone, 4714, [Not Found], 12
"""


def test_cards_and_processes() -> None:
    cards, problem = gpus.parse_cards(CARDS)
    assert problem == "" and cards == (
        Card(0, "GPU-aaaa", "NVIDIA H100 80GB HBM3", 81559, 4096, 97),
        Card(1, "GPU-bbbb", "NVIDIA H100 80GB HBM3", 81559, None, None),
    )
    assert gpus.parse_apps(APPS, cards) == (
        (
            App(1, 4711, "python", 4096),
            App(0, 4712, "/opt/a, b/python", None),
            App(0, 4713, "[Insufficient Permissions]", 12),
            App(-1, 4714, "[Not Found]", 12),
        ),
        "",
    )


@pytest.mark.parametrize("text", ["", "\n", "No devices were found\n"])
def test_nothing_is_nothing(text: str) -> None:
    assert gpus.parse_cards(text) == ((), "") and gpus.parse_apps(text, ()) == ((), "")


def test_a_line_that_is_not_understood_is_said() -> None:
    lost = "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error"
    cards, problem = gpus.parse_cards(f"{lost}\n{CARDS}")
    assert len(cards) == 2 and problem == gpus.ERR_LINE % lost
    apps, problem = gpus.parse_apps(f"{lost}\n{APPS}", cards)
    assert len(apps) == 4 and problem == gpus.ERR_LINE % lost


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in in the PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "nvidia-smi"


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_node_with_gpus(smi: Path) -> None:
    apps = APPS.replace("\n", "\\n")
    program(smi, f"case $1 in --query-gpu=*) printf '{CARDS}';; --query-compute-apps=*) printf '{apps}';; esac")
    found = gpus.look()
    assert [card.index for card in found.cards] == [0, 1] and len(found.apps) == 4 and found.problem == ""


def test_a_node_without_nvidia_smi_has_no_gpus_unless_a_driver_shows_some(smi: Path, tmp_path: Path) -> None:
    driver = tmp_path / "gpus"
    assert gpus.look(driver=str(driver)) == gpus.Gpus()
    driver.mkdir()
    assert gpus.look(driver=str(driver)) == gpus.Gpus()
    (driver / "0000:41:00.0").mkdir()
    assert gpus.look(driver=str(driver)) == gpus.Gpus(problem=gpus.ERR_NO_SMI)


def test_a_driver_that_does_not_work_is_a_problem(smi: Path) -> None:
    program(smi, 'echo "NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver."; exit 9')
    found = gpus.look()
    assert found.cards == () and "couldn't communicate with the NVIDIA driver" in found.problem


def test_a_driver_without_a_gpu_is_none(smi: Path) -> None:
    program(smi, "echo 'No devices were found'; exit 6")
    assert gpus.look() == gpus.Gpus()


def test_an_nvidia_smi_that_hangs_is_given_up(smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "SECONDS", 0.3)
    program(smi, "exec sleep 60")
    assert gpus.look().problem == "nvidia-smi did not end within 0.3 s"


def test_the_cards_stay_when_the_processes_can_not_be_asked(smi: Path) -> None:
    program(smi, f"case $1 in --query-gpu=*) printf '{CARDS}';; *) echo broken >&2; exit 3;; esac")
    found = gpus.look()
    assert len(found.cards) == 2 and found.apps == () and found.problem == "nvidia-smi failed (3): broken"
