# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts with the names of our variables are refused by name."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks, facts

SPECS = {"ssh_mesh": {"ssh_mesh_ca_dir": {"type": "str"}}}


def refused(*names: str) -> str:
    found = checks.fact_problems({"n1": ["distribution", "gpu_node"], "n2": list(names)}, SPECS)
    assert [problem.host for problem in found] == (["n2"] if found else [])
    return ", ".join(problem.value for problem in found)


def test_facts_of_ansible_and_of_this_collection_are_no_problem() -> None:
    names = ("distribution", "gpu_node", "getent_passwd", "discovered_interpreter_python", "ssh_mesh_of_another")
    assert refused(*names) == ""


def test_every_name_of_ours_is_refused() -> None:
    ours = ["__own", "common_members", "gpu_cluster_anything", "gpu_cluster_fabric_address", "ssh_mesh_ca_dir"]
    assert refused(*reversed(ours)) == ", ".join(ours)


def test_a_name_that_the_node_made_up_reaches_no_terminal_and_there_is_an_end() -> None:
    assert refused("gpu_cluster_\x1b[2J") == "1 more"
    assert refused(*(f"gpu_cluster_{number}" for number in range(5000))).endswith(f", {5000 - facts.MAX_SHOWN} more")
