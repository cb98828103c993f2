# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that people paste."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes


def test_the_commands() -> None:
    assert fixes.site("ssh_mesh", ["n1", "n2"]) == (
        "ansible-playbook site.yml -i <inventory> --tags ssh_mesh --limit n1,n2"
    )
    assert fixes.check() == "ansible-playbook baremetal.gpu_cluster.check -i <inventory>"
    assert fixes.check(["n1"], only_look=True).endswith("gpu_cluster.check -i <inventory> --check --limit n1")
    assert fixes.look(["n1", "n2"], "ss -Hltnp") == (
        'ansible n1,n2 -i <inventory> --become -m ansible.builtin.command -a "ss -Hltnp"'
    )
    assert fixes.ping(["n1"]) == "ansible n1 -i <inventory> -m ping"


def test_a_long_list_of_hosts_is_left_out() -> None:
    hosts = [f"n{number}" for number in range(1, fixes.LISTED + 2)]
    assert "--limit" not in fixes.check(hosts)
    assert fixes.check(hosts[:-1]).endswith(f"--limit {','.join(hosts[:-1])}")


def test_the_inventory_is_named_as_it_would_be_typed() -> None:
    assert fixes.inventory([], "/home/me") == fixes.INVENTORY
    assert fixes.inventory(["/home/me/prod", "/home/me/my site/hosts"], "/home/me") == "-i prod -i 'my site/hosts'"
    assert fixes.inventory(["/etc/ansible/hosts", "n1,n2,"], "/home/me") == "-i /etc/ansible/hosts -i n1,n2,"
