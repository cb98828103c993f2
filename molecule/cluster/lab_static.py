# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the nodes say of themselves to the check, before it judges that."""

from __future__ import annotations

import json
from typing import Any

import yaml
from lab_cluster import PROJECT, Cluster


def looks(cluster: Cluster, *arguments: str) -> dict[str, dict[str, Any]]:
    """What the example of the module reads, of each node."""
    source = (PROJECT / "plugins/modules/collective_static.py").read_text()
    example = yaml.safe_load(source.split('EXAMPLES = r"""')[1].split('"""')[0])
    cluster_facts = {"name": "baremetal.gpu_cluster.common", "tasks_from": "cluster"}
    keep = {"content": "{{ static.static | to_json }}", "dest": f"{cluster.reports}/{{{{ inventory_hostname }}}}.json"}
    play = {
        "hosts": "gpu_cluster",
        "gather_facts": False,
        "become": True,
        "tasks": [
            {"ansible.builtin.import_role": cluster_facts},
            *example,
            {"ansible.builtin.copy": keep, "delegate_to": "localhost", "become": False},
        ],
    }
    book = cluster.reports / "look.yml"
    book.write_text(yaml.safe_dump([play]))
    ended = cluster.play(str(book), *arguments)
    assert ended.code == 0, ended.text
    return {name: json.loads((cluster.reports / f"{name}.json").read_text()) for name in cluster.hosts}
