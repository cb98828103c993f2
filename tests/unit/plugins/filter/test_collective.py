# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the check takes from the inventory to compare it with the nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.filter import collective


class Broken(dict[str, Any]):
    """Variables of which one cannot be templated."""

    def __getitem__(self, name: str) -> Any:
        if name == "nccl_version":
            raise ValueError("'site_nccl' is undefined")
        return super().__getitem__(name)


def test_wishes_of_each_host() -> None:
    hostvars = {
        "n1": {
            "gpu_cluster_gpus": 8,
            "nvidia_driver_version": "580",
            "nvidia_driver_state": "absent",
            "launcher_environment": {"NCCL_ALGO": "Ring"},
            "ansible_host": "192.0.2.11",
        },
        "n2": Broken(gpu_cluster_gpus=4, nccl_version="{{ site_nccl }}"),
        "n3": {},
    }
    assert collective.collective_pins(hostvars, ["n1", "n2", "n3"]) == {
        "n1": {
            "gpu_cluster_gpus": 8,
            "nvidia_driver_version": "580",
            "nvidia_driver_state": "absent",
            "launcher_environment": {"NCCL_ALGO": "Ring"},
        },
        "n2": {"gpu_cluster_gpus": 4},
        "n3": {},
    }


def test_the_address_book_is_text_in_which_nothing_is_a_template() -> None:
    named = {"first": 1, "last": 9, "name": "{{ 7 * 6 }}{% raw %}{#{{{"}
    launch = {host: {"state": "waiting", "address": host, "ports": [], "ranges": [named]} for host in ("n1", "n2")}
    book = collective.collective_book(launch, ["n2", "n1"])
    assert [(one["host"], one["ranges"]) for one in json.loads(book)] == [("n2", [named]), ("n1", [named])]
    assert not any(begin in book for begin in ("{{", "{%", "{#"))
    results: Any = []
    with pytest.raises(AnsibleFilterError, match="needs a dict of host to launch result, got list"):
        collective.collective_book(results, [])


def test_limits_are_judged_by_the_sizes_of_the_run() -> None:
    limits = {"sizes": [{"size_bytes": 8, "milliseconds_max": 5}], "links": {"retransmits_max": -1}}
    assert collective.collective_limit_problems({}, [4]) == []
    assert collective.collective_limit_problems(limits, ["4", 4096]) == [
        "cluster_check_limits.sizes, size_bytes = 8: no such size is measured, cluster_check_sizes_bytes has 4, 4096. "
        "Fix: add it to cluster_check_sizes_bytes, or name one of these.",
        "cluster_check_limits.links.retransmits_max = -1: expected a whole number, 0 or more. "
        "Fix: write a plain number; the unit is in the name.",
    ]


def test_numbers_that_no_node_takes_are_told_with_their_variable() -> None:
    assert collective.collective_value_problems({"warmup": "5", "size_seconds": 0.5, "sizes_bytes": [4, "8"]}) == []
    values = {"warmup": "-1", "size_seconds": "nan", "timeout_seconds": 1e20, "sizes_bytes": [4, "3"]}
    assert collective.collective_value_problems(values) == [
        "cluster_check_warmup is -1, expected 0 to 1000.",
        "cluster_check_size_seconds is nan, expected 0 to 3600.",
        "cluster_check_timeout_seconds is 1e+20, expected 0.1 to 3600.",
        "cluster_check_sizes_bytes is 3, expected 4 to 8589934592.",
    ]


def test_a_job_of_open_mpi_is_made_of_the_results_of_the_other_steps() -> None:
    tools = {"prefix": "/usr", "python": "/opt/python", "mpirun": True, "key": True}
    launch = {host: {"address": f"192.0.2.{host[1:]}", "openmpi": tools} for host in ("n1", "n2", "n3")}
    collect = {host: {"state": "finished"} for host in launch}
    pairs = {"rounds": [{"pairs": [{"nodes": ["n1", "n2"], "lost": ["n1"]}]}]}
    job = collective.collective_mpi_job(launch, {"hosts": list(launch)}, collect, True, pairs, "train")
    assert (job["host"], job["wanted"], [one["address"] for one in job["nodes"]]) == (
        "n2",
        "true",
        ["192.0.2.2", "192.0.2.3"],
    )
    with pytest.raises(AnsibleFilterError, match="expected auto, true, false"):
        collective.collective_mpi_job(launch, {"hosts": []}, {}, "sometimes")
