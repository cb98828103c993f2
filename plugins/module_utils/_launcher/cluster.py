# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members and the port plan, as role launcher describes them, and which members a job takes."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.refusal import EXIT_INPUT, Refused

CLUSTER_FILE = "/etc/gpu-cluster/cluster.json"
#: More is a slip of the pen in a range.
MAX_NODES = 4096


class Member(NamedTuple):
    """A node of the cluster."""

    name: str
    address: str
    slots: int


class Etcd(NamedTuple):
    """The etcd of the cluster, and the files with which its members let us in."""

    endpoints: tuple[str, ...]
    ca: str
    cert: str
    key: str


class Cluster(NamedTuple):
    """What the launcher has to know about the cluster."""

    user: str
    python: str
    mpirun: str
    ssh_port: int
    ports: tuple[int, int, int]  # first, last, the one to try first
    members: tuple[Member, ...]
    etcd: Etcd | None = None


def read_cluster(path: str = CLUSTER_FILE) -> Cluster:
    """The cluster as the role ``launcher`` describes it."""
    fix = f"write it again with `ansible-playbook site.yml --tags launcher`, which makes {path}"
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
        if found["schema"] != 1:
            raise Refused(EXIT_INPUT, [f"{path} has schema {found['schema']}, this program reads schema 1: {fix}"])
        ports = found["rendezvous"]
        return Cluster(
            user=str(found["user"]),
            python=str(found["python"]),
            mpirun=str(found["mpirun"]),
            ssh_port=int(found["ssh_port"]),
            ports=(int(ports["first"]), int(ports["last"]), int(ports["default"])),
            members=tuple(Member(str(m["name"]), str(m["address"]), int(m["slots"])) for m in found["members"]),
            etcd=read_etcd(found.get("etcd")),
        )
    except OSError as error:
        raise Refused(EXIT_INPUT, [f"{path} can't be read ({error.strerror}): is this a member? {fix}"]) from error
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(EXIT_INPUT, [f"{path} is not what this program reads ({error!r}): {fix}"]) from error


def read_etcd(found: Any) -> Etcd | None:
    """None in a cluster without role ``etcd``."""
    if not found:
        return None
    files = (str(found[name]) for name in ("ca", "cert", "key"))
    return Etcd(tuple(str(one) for one in found["endpoints"]), *files)


def expand(text: str) -> list[str]:
    """Names of nodes, of which one may have ranges as Slurm writes them: ``gpu[01-03,07],n1``."""
    found = []
    for word in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", text):
        before, bracket, rest = word.strip().partition("[")
        inside, _bracket, after = rest.partition("]")
        for part in inside.split(",") if bracket else [""]:
            first, dash, last = part.partition("-")
            if dash and first.isdecimal() and last.isdecimal() and int(first) <= int(last) < int(first) + MAX_NODES:
                numbers = [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
            else:
                numbers = [part]
            found += [f"{before}{number}{after}" for number in numbers]
    return found


def choose_members(
    cluster: Cluster, names: str | None, count: int | None, exclude: str | None = None
) -> tuple[list[Member], list[str]]:
    """The members of the job in the order of their ranks, and what is wrong with the choice."""
    known = {member.name: member for member in cluster.members}
    everybody = ", ".join(known)
    without = expand(exclude) if exclude is not None else []
    wrong = [f"--exclude: {name!r} is no member, these are: {everybody}" for name in without if name not in known]
    left = [member for member in cluster.members if member.name not in without]
    if names is not None:
        chosen = expand(names)
        wrong += [f"--nodes: {name!r} is no member, these are: {everybody}" for name in chosen if name not in known]
        wrong += [f"--nodes: {name!r} stands there twice" for name in sorted(set(chosen)) if chosen.count(name) > 1]
        left = [known[name] for name in chosen if name in known and name not in without]
    elif count is not None and not 1 <= count <= len(left):
        wrong.append(f"--num-nodes {count}: give 1 to {len(left)}, the nodes of the cluster")
    if not left and not wrong:
        wrong.append("--exclude: no node is left")
    return left[:count] if names is None else left, wrong


def endpoint(address: str, port: int) -> str:
    """``address:port``, with the brackets that IPv6 needs."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
