# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that people paste."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("word", ['a"b', "$(x)", "`x`", "a\\b", "a!b", "a\nb", "{{ x }}", "{% x %}", ""])
def test_what_a_shell_or_ansible_would_read_makes_no_command(word: str) -> None:
    assert fixes.run(["n1"], word) == ""
    assert fixes.run([], "true") == ""


def test_a_command_of_the_tables_runs_on_its_nodes() -> None:
    assert fixes.at(["n1"], "modprobe x && true") == (
        'ansible n1 -i <inventory> --become -m ansible.builtin.shell -a "modprobe x && true"'
    )
    assert fixes.at(["n1"], fixes.site("nccl")) == fixes.site("nccl") and fixes.at([], "modprobe x") == ""


def test_a_variable_is_taken_out_of_a_file_in_each_way_to_write_it(tmp_path: Path) -> None:
    file = tmp_path / "environment"
    file.write_text("A=1\nexport  B = 2\nBB=3\n  B=4\nC=B=5\n# B=6\n")
    command = fixes.run(["n1"], fixes.without_variable(str(file), ["B", "A"]))
    subprocess.run(["sh", "-c", command.partition('-a "')[2].rstrip('"')], check=True)
    assert file.read_text() == "BB=3\nC=B=5\n# B=6\n"
