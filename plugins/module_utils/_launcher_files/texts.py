# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher's files as texts, and how a file of ours is told from one of somebody else. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import paths
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.cluster import SCHEMA, Cluster

OURS = "Managed by Ansible, role launcher of baremetal.gpu_cluster"
#: Stands in the head of the program.
OUR_PROGRAM = "baremetal.gpu_cluster"
OUR_CLUSTER = '"schema"'


class File(NamedTuple):
    """One wanted file; ``mark`` is in every text of ours. An empty text is no file."""

    path: str
    text: str
    mode: int
    mark: str


def files(
    cluster: Cluster,
    shared: Mapping[str, str],
    node: Mapping[str, str],
    profile: bool,
    programs: Mapping[str, str],
    torchrun: Mapping[str, str],
) -> list[File]:
    """All files of a node.

    shared: the environment that all members have.  node: that of this one.  programs: path to text.
    torchrun: the name in torchrun's folder to text.
    """
    return [
        File(paths.ENVIRONMENT, environment_text(node), 0o644, OURS),
        File(paths.HOSTFILE, hostfile_text(cluster), 0o644, OURS),
        File(paths.CLUSTER, cluster_text(cluster, shared), 0o644, OUR_CLUSTER),
        *(File(path, text, 0o755, OUR_PROGRAM) for path, text in programs.items()),
        *(File(f"{paths.TORCHRUN}/{name}", text, 0o644, OUR_PROGRAM) for name, text in torchrun.items()),
        File(paths.PROFILE, profile_text(node) if profile else "", 0o644, OURS),
    ]


def environment_text(variables: Mapping[str, str]) -> str:
    """NAME=value lines, as ``podman run --env-file`` and ``EnvironmentFile=`` of systemd read them."""
    head = f"# {OURS}.\n# What jobs on this node get. NAME=value; the value as it stands, without quotes.\n"
    return head + "".join(f"{name}={value}\n" for name, value in variables.items())


def profile_text(variables: Mapping[str, str]) -> str:
    """For login shells, any POSIX one and zsh, also under ``set -eu``. What is set already stays: a job's values win.

    No value holds a quote, ``environment`` refuses them. All are quoted, because zsh expands what begins with ``=``.
    """
    head = f"# {OURS}.\n# What is set already stays: a login shell inside a job must not change the job.\n"
    line = "[ \"${{{0}+set}}\" = set ] || export {0}='{1}'\n"
    lines = [line.format(name, value) for name, value in variables.items()]
    return head + "".join(lines)


def hostfile_text(cluster: Cluster) -> str:
    """Open MPI's form; the order is that of the ranks."""
    lines = [f"{member.address} slots={member.slots}\n" for member in cluster.members]
    return f"# {OURS}.\n" + "".join(lines)


def cluster_text(cluster: Cluster, shared: Mapping[str, str]) -> str:
    """What gpu-cluster-run reads; the same bytes on all members."""
    rendezvous = {"first": cluster.first, "last": cluster.last, "default": cluster.default_port()}
    members = [
        {"name": member.name, "address": member.address, "network": member.network, "slots": member.slots}
        for member in cluster.members
    ]
    document = {
        "schema": SCHEMA,
        "user": cluster.user,
        "python": cluster.python,
        "mpirun": cluster.mpirun,
        "ssh_port": cluster.ssh_port,
        "rendezvous": rendezvous,
        "members": members,
        "environment": dict(shared),
    }
    if cluster.etcd:
        document["etcd"] = {"endpoints": list(cluster.etcd), **paths.ETCD_TLS}
    return json.dumps(document, indent=2) + "\n"
