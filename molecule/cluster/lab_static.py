# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the nodes say of themselves to the check, before it judges that."""

from __future__ import annotations

import json
from typing import Any

import yaml
from lab_cluster import Cluster

#: A check needs two members, and there may be one node only.
SETTINGS = {
    "members": "{{ common_members | map(attribute='name') | list + ['nobody'] }}",
    "known_members": "{{ common_members }}",
    "port_plan": "{{ common_port_plan }}",
    "user": "train",
}
ANSWER = "check.folder ~ '/answers-0/' ~ inventory_hostname ~ '.json'"
KEPT = f"{{{{ (lookup('ansible.builtin.file', {ANSWER}) | from_json).static }}}}"


def looks(cluster: Cluster, *arguments: str) -> dict[str, dict[str, Any]]:
    """What the first step of a check reads, of each node."""
    cluster_facts = {"name": "baremetal.gpu_cluster.common", "tasks_from": "cluster"}
    begin = {"baremetal.gpu_cluster.check": {"settings": SETTINGS}, "register": "check", "run_once": True}
    keep = {"content": "{{ kept | to_json }}", "dest": f"{cluster.reports}/{{{{ inventory_hostname }}}}.json"}
    play = {
        "hosts": "gpu_cluster",
        "gather_facts": False,
        "become": True,
        "tasks": [
            {"ansible.builtin.import_role": cluster_facts},
            begin,
            {"baremetal.gpu_cluster.check_step": {"folder": "{{ check.folder }}"}},
            {"ansible.builtin.copy": keep, "delegate_to": "localhost", "become": False, "vars": {"kept": KEPT}},
        ],
    }
    book = cluster.reports / "look.yml"
    book.write_text(yaml.safe_dump([play]))
    ended = cluster.play(str(book), *arguments)
    assert ended.code == 0, ended.text
    return {name: json.loads((cluster.reports / f"{name}.json").read_text()) for name in cluster.hosts}
