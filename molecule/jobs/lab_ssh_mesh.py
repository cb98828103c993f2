# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ssh mesh on the lab: logins of the cluster's user, the authority, and hosts that pretend to be others."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lab_cluster import PROJECT, Cluster, Ended, environment

USER = "train"
SSH = "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null"
SERVER = "/etc/ssh/sshd_config.d/40-gpu-cluster.conf"
HOST_CERTIFICATE = "/etc/ssh/gpu-cluster/ssh_host_key-cert.pub"
USER_CA = "/etc/ssh/gpu-cluster/user_ca.pub"
USER_FOLDER = "/etc/gpu-cluster/ssh"
#: A port that is open to the members, for an sshd of a test.
OTHER_PORT = 42299
#: A second sshd, with the host key and the certificate of the arguments, for one login.
PRETENDER = (
    "rm -rf /run/pretender; mkdir -p /run/pretender; cd /run/pretender; {prepare}; "
    "/usr/sbin/sshd -f /dev/null -o PidFile=none -o UsePAM=no -p {port} {options} -E /run/pretender/log"
)
#: Undoes it.
STOP = "pkill -f '[s]shd -f /dev/null'; rm -rf /run/pretender; true"


def inventory_folder(cluster: Cluster) -> Path:
    """Where the inventory lies, and the authority beside it."""
    return PROJECT / cluster.inventory


def authority(cluster: Cluster) -> Path:
    return inventory_folder(cluster) / ".ssh_ca"


def management(cluster: Cluster, name: str) -> str:
    return str(cluster.hosts[name]["ansible_host"])


def names_of(cluster: Cluster, name: str) -> list[str]:
    """Everything by which the hosts file knows a member."""
    return [name, f"{name}-mgmt", cluster.fabric_address(name), management(cluster, name)]


def as_user(cluster: Cluster, node: str, command: str) -> str:
    """What a shell command prints as the cluster's user, errors included."""
    return cluster.shell(node, f"runuser -u {USER} -- sh -c {shlex.quote(command)} 2>&1; true")


def everywhere(cluster: Cluster, commands: Mapping[str, str]) -> dict[str, str]:
    """What the user's commands print on several nodes, all at once."""
    with ThreadPoolExecutor(len(commands)) as pool:
        asked = {node: pool.submit(as_user, cluster, node, command) for node, command in commands.items()}
        return {node: answer.result() for node, answer in asked.items()}


def logins(
    cluster: Cluster, nodes: Sequence[str], targets: Sequence[str], options: str = ""
) -> dict[str, dict[str, str]]:
    """Who is reached: node to target to the host name there, or what ssh said."""
    loop = f'for to in {" ".join(targets)}; do echo "$to $({SSH} {options} $to hostname 2>&1 | tail -n 1)"; done'
    said = everywhere(cluster, dict.fromkeys(nodes, loop))
    return {node: dict(line.split(" ", 1) for line in text.splitlines()) for node, text in said.items()}


def apply(cluster: Cluster, *arguments: str, playbook: str = "baremetal.gpu_cluster.base") -> Ended:
    """The shipped playbook, for this role alone."""
    argv = cluster.command(playbook, "--tags", "ssh_mesh", *arguments)
    return cluster.run(argv, variables={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})


def sign(cluster: Cluster, public_key: str, folder: Path, kind: str, *words: str) -> str:
    """A certificate of the lab's authority, made by hand."""
    path = folder / f"{kind}.pub"
    path.write_text(public_key)
    argv = ["ssh-keygen", "-q", "-s", str(authority(cluster) / f"{kind}_ca"), *words, str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, timeout=120)
    return (folder / f"{kind}-cert.pub").read_text()


@contextmanager
def vaulted(cluster: Cluster, folder: Path) -> Iterator[list[str]]:
    """The authority's private keys are encrypted meanwhile; yields the arguments that give the password."""
    password = folder / "password"
    password.write_text("of the lab\n")
    with_password = ["--vault-password-file", str(password)]
    plain = {path: path.read_bytes() for path in (authority(cluster) / name for name in ("host_ca", "user_ca"))}
    argv = ["ansible-vault", "encrypt", *with_password, *map(str, plain)]
    try:
        subprocess.run(argv, cwd=PROJECT, env=environment(), check=True, capture_output=True, timeout=240)
        yield with_password
    finally:
        for path, data in plain.items():
            path.write_bytes(data)
            path.chmod(0o600)


def put(cluster: Cluster, node: str, path: str, text: str) -> None:
    """Write a file of a node, which keeps its owner and mode."""
    cluster.shell(node, f"printf %s {shlex.quote(text)} > {path}")


def pretend(cluster: Cluster, node: str, prepare: str, options: str) -> None:
    """Start another sshd on a member's addresses."""
    stop_pretending(cluster, node)
    cluster.shell(node, PRETENDER.format(prepare=prepare, options=options, port=OTHER_PORT))


def stop_pretending(cluster: Cluster, node: str) -> None:
    cluster.shell(node, STOP)


def states(cluster: Cluster, nodes: Sequence[str]) -> dict[str, list[str]]:
    """Every file below /etc of some nodes with its times, mode, owner and digest."""
    listed = "find /etc -type f -printf '%p %T@ %C@ %m %U\\n'; find /etc -type f -exec sha256sum {} +"
    return {node: sorted(text.splitlines()) for node, text in cluster.on_each(nodes, listed).items()}
