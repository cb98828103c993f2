# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of the GPU stack and the number of GPUs, on a node that is shown the PCI tree of a machine that lost a card.

The tree is a recorded one (lab_gpus.py). A driver, and nvidia-smi, are not in the lab: their outputs are in unit tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from lab_cluster import Cluster
from lab_gpus import shown_devices

SEVEN = ("1b", "43", "52", "61", "9d", "d1", "df")
MODULE = "baremetal.gpu_cluster.gpu_node_facts"


@pytest.fixture
def lost_a_card(cluster: Cluster) -> Iterator[str]:
    """The last node, with seven GPUs where there were eight."""
    name = list(cluster.hosts)[-1]
    with shown_devices(cluster, name, "h100_7.lspci"):
        yield name


def facts(cluster: Cluster, name: str, *arguments: str) -> dict[str, Any]:
    """What the module reads on a node."""
    argv = ["ansible", name, "-i", cluster.inventory, "-m", MODULE, *arguments]
    ended = cluster.run(argv, variables={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})
    assert ended.code == 0, ended.text
    found = json.JSONDecoder().raw_decode(ended.text.partition("SUCCESS => ")[2])[0]
    assert found["changed"] is False
    return dict(found["ansible_facts"]["gpu_node"])


def test_facts_are_what_the_node_itself_says_also_for_a_user_without_rights(cluster: Cluster, lost_a_card: str) -> None:
    found = facts(cluster, lost_a_card, "--become", "--become-user", "train", "-e", "ansible_remote_tmp=/tmp")
    asked = cluster.shell(
        lost_a_card,
        "uname -r; cat /sys/class/net/fab0/mtu /sys/class/net/fab0/address; "
        "/opt/gpu-cluster/torch/bin/python -c 'import importlib.metadata as m; print(m.version(\"torch\"))'; "
        "PATH=/usr/lib64/openmpi/bin:$PATH ompi_info --version | head -1",
    )
    kernel, mtu, address, torch, openmpi = asked.splitlines()
    assert found["kernel"]["running"] == kernel and found["kernel"]["boots"] == "", (
        "no kernel is installed in a container"
    )
    (fabric,) = [card for card in found["nics"] if card["name"] == "fab0"]
    assert (str(fabric["mtu"]), fabric["address"]) == (mtu, address)
    assert found["torch"] == {"version": torch, "cuda": "", "prefix": "/opt/gpu-cluster/torch"}
    assert f"Open MPI v{found['openmpi']}" == openmpi
    assert [one["address"] for one in found["pci"]["gpus"]] == [f"0000:{bus}:00.0" for bus in SEVEN]
    assert len(found["pci"]["nvswitches"]) == 4
    # Cards without a driver are no GPUs that work.
    assert found["driver"]["loaded"] == "" and found["gpus"] == [] and found["smi_problem"] == ""


def test_a_node_that_shows_seven_of_eight_gpus_is_refused(cluster: Cluster, lost_a_card: str) -> None:
    overlay = cluster.reports / "gpus.json"
    overlay.write_text(json.dumps({"gpu_cluster": {"hosts": {lost_a_card: {"gpu_cluster_gpus": 8}}}}))
    ended = cluster.play("baremetal.gpu_cluster.preflight", "-i", str(overlay))
    there = ", ".join(f"0000:{bus}:00.0" for bus in SEVEN)
    assert ended.code != 0, ended.text
    sentence = re.escape(f"gpu_cluster_gpus = 8: expected 8 GPUs, found 7: {there}. Fix: compare the PCI addresses")
    assert re.search(rf"^ *{lost_a_card} +{sentence}", ended.text, re.MULTILINE), ended.text
    assert set(re.findall(r"changed=(\d+)", ended.text)) == {"0"}, ended.text
