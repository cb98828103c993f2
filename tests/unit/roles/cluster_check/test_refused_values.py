# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that no node would take are refused by the role itself, all at once, and no host is needed for that."""

from __future__ import annotations

from typing import Any

import pytest

HOSTS = ["n1", "n2"]
PLAY: dict[str, Any] = {
    "hosts": "all",
    "gather_facts": False,
    "tasks": [{"ansible.builtin.include_role": {"name": "baremetal.gpu_cluster.cluster_check"}}],
}


def refuse(playbook: Any, **variables: Any) -> str:
    """What the role says of these variables."""
    play = dict(PLAY, vars={"cluster_check_members": HOSTS, **variables})
    done = playbook.run([play], "-i", ",".join(HOSTS))
    assert "UNREACHABLE" not in done.stdout
    assert done.returncode == 2, done.stdout + done.stderr
    # The lines of the terminal are cut.
    return " ".join((done.stdout + done.stderr).split())


def test_all_values_that_no_node_takes_are_refused_at_once(playbook: Any) -> None:
    said = refuse(
        playbook,
        cluster_check_warmup=-1,
        cluster_check_samples="33",
        cluster_check_sizes_bytes=[4, 2],
        cluster_check_probe_timeout_seconds=1e20,
        cluster_check_openmpi_deadline_seconds=0,
        cluster_check_rendezvous_first=29599,
        cluster_check_rendezvous_last=29500,
    )
    for text in (
        "cluster_check_warmup is -1, expected 0 to 1000.",
        "cluster_check_samples is 33, expected 1 to 32.",
        "cluster_check_sizes_bytes is 2, expected 4 to 8589934592.",
        "cluster_check_probe_timeout_seconds is 1e+20, expected 0.1 to 3600.",
        "cluster_check_openmpi_deadline_seconds = 0, expected 1 to 7200.",
        "cluster_check_rendezvous_first = 29599 is above cluster_check_rendezvous_last = 29500",
    ):
        assert text in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("warmup", 1001, marks=pytest.mark.long),
        pytest.param("rendezvous_last", 1001, marks=pytest.mark.long),
        ("openmpi_deadline_seconds", 7201),
    ],
)
def test_one_of_them_is_enough(playbook: Any, name: str, value: int) -> None:
    assert f"cluster_check_{name} " in refuse(playbook, **{f"cluster_check_{name}": value})
