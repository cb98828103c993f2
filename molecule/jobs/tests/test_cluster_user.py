# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user who runs jobs: made once, never renumbered, and foretold by check mode where there is none yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_cluster import Cluster

NEW = {"cluster_user_name": "trainee", "cluster_user_uid": 4711, "cluster_user_gid": 4711}
CASES: dict[str, dict[str, Any]] = {
    "adopted and missing": {**NEW, "cluster_user_state": "adopted"},
    "made": NEW,
    "again": NEW,
    "other number": {**NEW, "cluster_user_uid": 4712},
    "number of another": {"cluster_user_name": "newcomer", "cluster_user_uid": 4711, "cluster_user_gid": 4713},
    "adopted": {**NEW, "cluster_user_state": "adopted"},
}


@pytest.fixture(scope="module", name="node")
def fixture_node(cluster: Cluster) -> Iterator[str]:
    name = list(cluster.hosts)[0]  # noqa: RUF015
    yield name
    cluster.shell(
        name, "userdel --remove trainee 2>/dev/null; groupdel trainee 2>/dev/null; groupdel newcomer 2>/dev/null; true"
    )


def test_check_mode_foretells_the_user_on_a_bare_host(cluster: Cluster, node: str) -> None:
    settings = "gpu_cluster_user=trainee cluster_user_uid=4711 cluster_user_gid=4711"
    tags = "cluster_user,kernel_tuning,selinux_policy"
    ended = cluster.play("site.yml", "--check", "--limit", node, "--tags", tags, "-e", settings)
    assert ended.code == 0, ended.text
    assert "there is no user trainee on this node yet" in ended.text
    assert "changed: [" in ended.text.split("cluster_user : Make the user]")[1].split("TASK")[0], ended.text
    assert cluster.shell(node, "getent passwd trainee || true") == ""


def test_made_once_and_never_renumbered(cluster: Cluster, node: str, tmp_path: Path) -> None:
    play = {
        "hosts": node,
        "gather_facts": False,
        "become": True,
        "tasks": [
            {
                "block": [
                    {"ansible.builtin.include_role": {"name": "baremetal.gpu_cluster.cluster_user"}, "vars": variables},
                    {"ansible.builtin.debug": {"msg": f"CASE {case}: accepted"}},
                ],
                "rescue": [{"ansible.builtin.debug": {"msg": f"CASE {case}: {{{{ ansible_failed_result.msg }}}}"}}],
            }
            for case, variables in CASES.items()
        ],
    }
    playbook = tmp_path / "users.yml"
    playbook.write_text(yaml.safe_dump([play], sort_keys=False))
    ended = cluster.play(str(playbook))
    said = {
        line.split("CASE ")[1].split(": ")[0]: line.split("CASE ")[1].split(": ", 1)[1]
        for line in ended.text.replace("\n        ", " ").splitlines()
        if "msg: " in line and "CASE " in line
    }
    assert list(said) == list(CASES), ended.text
    assert [case for case in said if said[case].startswith("accepted")] == ["made", "again", "adopted"], said
    assert "no such user, and cluster_user_state is adopted" in said["adopted and missing"]
    assert "this host has the user with uid 4711 and gid 4711, expected 4712 and 4711" in said["other number"]
    assert "has given the number to trainee" in said["number of another"]
    # The group and the user, once.
    assert "changed=2 " in ended.text, ended.text
    # The lab's login.defs gives new passwords a last day.
    ages = cluster.shell(node, "grep -c '^PASS_MAX_DAYS' /etc/login.defs; getent shadow trainee | cut -d: -f5")
    assert ages == "1\n\n"
    entry = cluster.shell(node, "getent passwd trainee; stat -c %U:%G /home/trainee; getent group newcomer || true")
    assert entry.split() == ["trainee:x:4711:4711::/home/trainee:/bin/bash", "trainee:trainee"]
