# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether Open MPI is tried, and on which nodes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mpi_plan

HOSTS = ["n1", "n2", "n3"]


def launch(**changes: dict[str, Any]) -> dict[str, Any]:
    """The answers to the step launch; changes by host."""
    tools = {"prefix": "/usr", "python": "/opt/python", "mpirun": True, "key": True}
    return {
        host: {"address": f"192.0.2.{number}", "openmpi": {**tools, **changes.get(host, {})}}
        for number, host in enumerate(HOSTS, 1)
    }


def job(
    wanted: str = "auto",
    launched: dict[str, Any] | None = None,
    collect: dict[str, Any] | None = None,
    user: str = "train",
    **more: Any,
) -> dict[str, Any]:
    collected = {host: {"state": "finished"} for host in HOSTS} if collect is None else collect
    return mpi_plan.make_job(wanted, {"hosts": HOSTS}, launched or launch(), collected, user=user, **more)


def names(found: dict[str, Any]) -> list[str]:
    return [one["host"] for one in found["nodes"]]


def test_all_nodes_of_the_collective_and_the_first_of_them_starts_it() -> None:
    assert job() == {
        "wanted": "auto",
        "host": "n1",
        "nodes": [{"host": host, "address": f"192.0.2.{number}"} for number, host in enumerate(HOSTS, 1)],
        "prefix": "/usr",
        "python": "/opt/python",
        "why": "",
        "lacking": [],
    }


def test_a_node_that_was_lost_takes_no_part() -> None:
    answered = {host: {"state": "finished"} for host in ("n2", "n3")}
    assert names(job(collect={**answered, "n1": {"unreachable": True}})) == ["n2", "n3"]
    rounds = [{"pairs": [{"nodes": ["n1", "n2"], "lost": ["n2"]}]}]
    assert names(job(rounds=rounds)) == ["n1", "n3"]
    assert job(collect={"n2": {"state": "finished"}})["why"] == mpi_plan.TOO_FEW


def test_not_wanted() -> None:
    found = job("false")
    assert (found["host"], found["why"], found["lacking"]) == ("", mpi_plan.NOT_WANTED, [])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"n2": {"mpirun": False}}, "there is no /usr/bin/mpirun on n2"),
        ({"n3": {"key": False}}, "train has no key of the role ssh_mesh on n3"),
        (
            {"n3": {"prefix": "/opt"}},
            "cluster_check_openmpi_prefix is not the same on all nodes: /usr on n1, /opt on n3",
        ),
        (
            {"n2": {"python": "/b"}},
            "cluster_check_torch_python is not the same on all nodes: /opt/python on n1, /b on n2",
        ),
        ({host: {"mpirun": False, "prefix": ""} for host in HOSTS}, mpi_plan.NO_PREFIX),
    ],
)
def test_auto_tells_what_is_missing_and_accuses_nobody(changes: dict[str, Any], why: str) -> None:
    found = job(launched=launch(**changes))
    assert (found["host"], found["nodes"], found["why"], found["lacking"]) == ("", [], why, [])


def test_auto_runs_nothing_as_root() -> None:
    assert job(user="")["why"] == mpi_plan.NO_USER


def test_true_asks_for_no_key_and_names_the_node_without_mpirun() -> None:
    assert names(job("true", launch(n2={"key": False}), user="")) == HOSTS
    found = job("true", launch(n2={"mpirun": False}))
    assert (found["host"], found["lacking"]) == ("", ["n2"])


@pytest.mark.parametrize(("value", "choice"), [(True, "true"), ("False", "false"), ("auto", "auto"), ("yes", "true")])
def test_a_value_as_yaml_may_read_it(value: Any, choice: str) -> None:
    assert mpi_plan.wanted_value(value) == choice


def test_another_value_is_refused() -> None:
    with pytest.raises(ValueError, match="cluster_check_openmpi is 'maybe', expected auto, true, false"):
        mpi_plan.wanted_value("maybe")
