# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers under SELinux that enforces: what it denies to container_t, and that the page's wrapper has all files.

container_t is that of the reference policy (see lab_container_policy), and not that of CentOS's container-selinux.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import lab_container_policy
import pytest
from lab_cluster import Cluster
from lab_containers import MAKE_TINY, TINY, block
from lab_launcher import write
from lab_selinux import NODE, denials, now, session

pytestmark = pytest.mark.long
#: Where the policy expects no data of a container.
FOLDER = "/srv/lab-volume"
STORAGE = "/home/train/.local/share/containers/storage/overlay"
LABEL = "/proc/self/attr/current"
WRAPPER = "/usr/local/bin/in-container"
#: Without --init: the reference policy lets no program of the host be the first one of a container.
BARE = "cd / && podman run --rm --pull=never --network=host --userns=keep-id"
#: It gives a container's output to no pipe of the user either, as CentOS's policy does.
SAY = f"cat {LABEL} {FOLDER}/x > {FOLDER}/said"
PREPARE = f"""
install -d -o train -g train -m 0700 ~train/.ssh
install -o train -g train -m 0600 ~root/.ssh/authorized_keys ~train/.ssh
mkdir -p {FOLDER}
echo outside > {FOLDER}/x
chown -R train: {FOLDER}
restorecon -R /home/train
{MAKE_TINY}
"""
FORGET = f"""
su - train -c 'cd /; podman rm --all --force --time 0; podman rmi --force {TINY}; podman system migrate'
rm -rf {FOLDER} {WRAPPER} ~train/.ssh /data
true
"""


def ssh(machine: Cluster, command: str) -> str:
    """What root's command prints in a session of ssh, whose domain is that of people."""
    return machine.lab("ssh", NODE, command, deadline=600)


def bare(machine: Cluster, volume: str) -> subprocess.CompletedProcess[str]:
    """A container that keeps its label and says it, and the host's file, into the host's folder."""
    return session(machine, f"{BARE} --volume {FOLDER}:{volume} {TINY} sh -c '{SAY}'", deadline=600)


@pytest.fixture(scope="module", autouse=True)
def podman(machine: Cluster) -> Iterator[None]:
    """container_t in the machine's policy, where it stays, and an image of the machine's own programs."""
    lab_container_policy.install(machine)
    try:
        ssh(machine, PREPARE)
        yield
    finally:
        ssh(machine, FORGET)


def test_a_container_is_denied_what_has_no_label_for_it(machine: Cluster) -> None:
    """Its storage and its volume need one; until then the denials are explained."""
    ssh(machine, f"chcon -R -t user_home_t {STORAGE}")
    since = now(machine)
    assert bare(machine, f"{FOLDER}:z").returncode != 0
    said = [one for one in denials(machine, since)["denials"] if one["path"].endswith(".so.6")]
    assert said and all(":container_t:" in one["scontext"] for one in said), said

    ssh(machine, f"restorecon -R /home/train; restorecon -RF {FOLDER}")
    since = now(machine)
    refused = bare(machine, FOLDER)
    assert refused.returncode != 0, refused
    said = [one for one in denials(machine, since)["denials"] if one["comm"] == "sh" and one["tclass"] == "dir"]
    assert said and all(":container_t:" in one["scontext"] for one in said), said
    for words in ("start the container with --security-opt label=disable", "give its volume the option :z"):
        assert all(words in one["sentence"] for one in said), said

    allowed = bare(machine, f"{FOLDER}:z")
    assert allowed.returncode == 0, allowed
    label, text = ssh(machine, f"cat {FOLDER}/said").split("\0")
    assert ":container_t:" in label and text == "outside\n"
    assert ":container_file_t:" in ssh(machine, f"ls -Z {FOLDER}/x")


def test_the_wrapper_of_the_page_has_the_hosts_files_as_they_are(machine: Cluster) -> None:
    """With the page's option the container has the label of who started it, and files keep theirs."""
    write(machine, NODE, WRAPPER, block("# /data/bin/in-container "))
    ssh(machine, f"chmod 0755 {WRAPPER}; mkdir -p /data; echo outside > /data/x; chown -R train: /data")
    label = ssh(machine, "ls -Z /data/x")
    since = now(machine)
    ended = session(machine, f"cd /data && in-container {TINY} cat {LABEL} /data/x", deadline=600)
    assert ended.returncode == 0 and ended.stdout.endswith("outside\n"), ended
    assert ":unconfined_t:" in ended.stdout, ended
    assert ssh(machine, "ls -Z /data/x") == label and "container" not in label
    assert [one["sentence"] for one in denials(machine, since)["denials"] if "container" in one["scontext"]] == []
