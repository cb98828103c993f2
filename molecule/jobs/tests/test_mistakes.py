# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of docs/mistakes.md that need a node: each member of an inventory has one of them, and all come in one run.

The members are fewer nodes than names: ssh takes the address of a member from an option of its own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mistakes
import pytest
import yaml
from lab_cluster import PROJECT, TREE, Cluster

ROWS = mistakes.rows("node")
DAYS_AHEAD = "import time\n_time = time.time\ntime.time = lambda: _time() + 3 * 86400.0\n"
#: Users who can log in: one whose sudo asks for a password, one whose account has expired, and one without a shell.
USERS = {"asked": "usermod -s /bin/bash", "expired": "chage -E 0", "shellless": "usermod -s /sbin/nologin"}
ADD = (
    "useradd -m {0} && install -d -m 700 -o {0} ~{0}/.ssh && "
    "install -m 600 -o {0} ~root/.ssh/authorized_keys ~{0}/.ssh && {1} {0}"
)
#: What the home of root and the folders for temporary files are on a node whose only file system is full.
FULL = (
    "mkdir -p /run/lab-full && mount -t tmpfs -o size=64k none /run/lab-full && mkdir /run/lab-full/root && "
    "cp -a ~root/.ssh /run/lab-full/root && chmod 700 /run/lab-full/root && mkdir -m 1777 /run/lab-full/tmp; "
    "cat /dev/zero > /run/lab-full/filled 2>/dev/null; "
    "mount --bind /run/lab-full/root ~root && mount --bind /run/lab-full/tmp /tmp && "
    "mount --bind /run/lab-full/tmp /var/tmp"
)
EMPTIED = (
    "if [ -e /run/lab-full/filled ]; then umount /var/tmp; umount /tmp; umount ~root; umount /run/lab-full; "
    "rmdir /run/lab-full; fi"
)


@pytest.fixture(name="nodes")
def with_mistakes(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """The first has the users, the second lets nobody but root in, the third has no space left."""
    first, second, third = list(cluster.hosts)[:3]
    try:
        cluster.shell(first, " && ".join(ADD.format(*one) for one in USERS.items()))
        cluster.shell(second, f"{ADD.format('asked', 'true')} && echo 'Maintenance until nine' > /run/nologin")
        cluster.shell(third, FULL)
        yield first, second, third
    finally:
        cluster.on_each([first, second], f"for one in {' '.join(USERS)}; do userdel -f -r $one 2>/dev/null; done; true")
        cluster.shell(second, "rm -f /run/nologin")
        # sshd of EL 10 shuts out an address from which logins have failed, until it starts anew (PerSourcePenalties).
        cluster.on_each([first, second, third], "systemctl restart ssh")
        cluster.shell(third, EMPTIED)


def key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text().rsplit(" ", 1)[0]


def variables_of(cluster: Cluster) -> dict[str, Any]:
    """How the lab logs in."""
    described = yaml.safe_load((PROJECT / cluster.inventory / "hosts.yml").read_text(encoding="utf-8"))
    return dict(described["gpu_cluster"]["vars"])


def hosts(cluster: Cluster, nodes: tuple[str, str, str], folder: Path) -> dict[str, dict[str, Any]]:
    """The members by their mistakes."""
    usual = variables_of(cluster)
    addresses = [str(cluster.hosts[node]["ansible_host"]) for node in nodes]
    known, own_key = str(usual["gpu_cluster_known_hosts"]), str(usual["ansible_ssh_private_key_file"])
    (folder / "nobody").touch()
    (folder / "changed").write_text(f"{addresses[0]} {key(folder / 'foreign')}\n")
    shutil.copy(own_key, folder / "open")
    (folder / "open").chmod(0o644)

    def at(address: str, known_hosts: str = known, **more: Any) -> dict[str, Any]:
        options = f"-o HostName={address} -o UserKnownHostsFile={known_hosts} -o StrictHostKeyChecking=yes"
        return {"ansible_ssh_common_args": options, **more}

    key_file = "ansible_ssh_private_key_file"
    return {
        "wrong-user": at(addresses[0], ansible_user="rot"),
        "other-key": at(addresses[0], **{key_file: str(folder / "foreign")}),
        "missing-key": at(addresses[0], **{key_file: "/nowhere/id_ed25519"}),
        "open-key": at(addresses[0], **{key_file: str(folder / "open")}),
        "new-host-key": at(addresses[0], str(folder / "nobody")),
        "changed-host-key": at(addresses[0], str(folder / "changed")),
        "no-python": at(addresses[0], ansible_python_interpreter="/usr/bin/python3.99"),
        "asked-by-sudo": at(addresses[0], ansible_user="asked"),
        "expired": at(addresses[0], ansible_user="expired"),
        "without-shell": at(addresses[0], ansible_user="shellless"),
        "in-maintenance": at(addresses[1], ansible_user="asked"),
        "full": at(addresses[2]),
        "clock": at(addresses[0]),
        "nobody": {"ansible_host": "198.18.10.250"},
        "no-name": {"ansible_host": "gpu07.invalid"},
        # This machine, on which nothing listens there.
        "no-sshd": {"ansible_host": "127.0.0.2", "ansible_port": 1},
    }


def test_each_mistake_has_its_line(cluster: Cluster, nodes: tuple[str, str, str], tmp_path: Path) -> None:
    members = hosts(cluster, nodes, tmp_path)
    for number, member in enumerate(members.values(), 50):
        member["gpu_cluster_fabric_address"] = f"198.18.20.{number}/24"
    usual = variables_of(cluster)
    names = ("ansible_user", "ansible_python_interpreter", "ansible_ssh_private_key_file")
    common = {**{name: usual[name] for name in names}, "ansible_become": True, "gpu_cluster_fabric_interface": "fab0"}
    prod = tmp_path / "prod"
    prod.mkdir()
    (prod / "hosts.yml").write_text(json.dumps({"gpu_cluster": {"hosts": members, "vars": common}}, indent=1))
    (tmp_path / "sitecustomize.py").write_text(DAYS_AHEAD)
    before = cluster.everywhere(TREE)
    command = ["ansible-playbook", "site.yml", "-i", str(prod), "--tags", "preflight"]
    variables = {"PYTHONPATH": str(tmp_path), "ANSIBLE_SSH_CONTROL_PATH_DIR": str(tmp_path / "cp")}
    ended = cluster.run(command, deadline=90, variables=variables)
    said = ended.text.replace(f"{tmp_path}/", "")
    assert ended.code != 0, said
    assert [title for title, printed in ROWS.items() if mistakes.count(printed, said) != 1] == [], said
    # Nothing else is told, and Ansible adds no error of its own for a host.
    assert f"{len(ROWS)} problem(s) on the hosts; nothing was changed." in said and "UNREACHABLE" not in said, said
    assert cluster.everywhere(TREE) == before
