# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of hosts, from the inventory's variables and groups."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import host_labels

HOSTS = ["n1", "n2", "n3"]


def test_labels_are_texts_and_every_host_has_an_entry() -> None:
    variables = {"n1": {"gpu_cluster_labels": {"rack": "r3", "row": 7}}, "n2": {}}
    assert host_labels.host_labels(variables, HOSTS) == {"n1": {"rack": "r3", "row": "7"}, "n2": {}, "n3": {}}


def test_groups_that_part_the_hosts_are_labels() -> None:
    variables = {
        "n1": {"group_names": ["gpu_cluster", "blue", "alone"]},
        "n2": {"group_names": ["gpu_cluster", "blue"]},
        "n3": {"group_names": ["gpu_cluster"]},
        "other": {"group_names": ["gpu_cluster"]},
    }
    labels = host_labels.host_labels(variables, HOSTS)
    assert labels == {"n1": {"group:blue": "blue"}, "n2": {"group:blue": "blue"}, "n3": {}}


def test_what_is_no_label_is_left_to_the_inventory_check() -> None:
    variables = {"n1": {"gpu_cluster_labels": "rack=r3", "group_names": None}}
    assert host_labels.host_labels(variables, ["n1"]) == {"n1": {}}
