# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Elastic jobs: how many nodes and spares, and where their torchruns meet."""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.cluster import (
    CLUSTER_FILE,
    Cluster,
    Etcd,
    Member,
    endpoint,
    expand,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.etcd import ETCD_PORT, PLUGIN_BACKEND

#: What torchrun waits for further nodes once it has enough of them.  Its own default is 30.
LAST_CALL = 5
#: Ranks that start again must not find the addresses of those before them in a store that has stayed
#: (github.com/pytorch/pytorch/issues/135712; seen with torch 2.13 as "connectFullMesh failed ... refused").
ELASTIC_VARIABLES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
#: The store of a rendezvous on a host without ranks.  It is torch's own, so the interpreter of the job runs it.  In a
#: container it is given the agent's socket, and ends with the agent: podman's monitor is no child of ours.
STORE = """\
import signal, socket, sys
from torch.distributed import TCPStore
store = TCPStore(sys.argv[1], int(sys.argv[2]), is_master=True, wait_for_workers=False)
for path in sys.argv[3:]:
    agent = socket.socket(socket.AF_UNIX)
    agent.connect(path)
    agent.recv(1)
    sys.exit("the agent has ended")
while True:
    signal.pause()
"""


def check_elastic(options: argparse.Namespace, nodes: int) -> list[str]:
    """What is wrong with the numbers of an elastic job, or with giving them for another."""
    wrong = []
    given = {
        "--min-nodes": options.min_nodes,
        "--max-nodes": options.max_nodes,
        "--max-restarts": options.max_restarts,
        "--rendezvous": options.rendezvous,
        "--rendezvous-host": options.rendezvous_host,
        "--spares": options.spares,
    }
    if options.mode != "elastic":
        return [f"{name} needs --mode elastic" for name, value in given.items() if value is not None]
    spares = options.spares or 0
    if options.spares is not None and not 0 <= spares < nodes:
        return [f"--spares {spares}: give 0 to {nodes - 1}, at least one of the {nodes} nodes has ranks"]
    least, most = options.min_nodes or 1, options.max_nodes or nodes - spares
    if options.max_nodes is not None and options.spares is not None:
        wrong.append("--max-nodes and --spares: give one of them, nodes without spares are the most that have ranks")
    elif options.max_nodes is not None and not 1 <= most <= nodes:
        wrong.append(f"--max-nodes {most}: give 1 to {nodes}, the nodes of this job")
    if options.min_nodes is not None and not 1 <= options.min_nodes <= most:
        wrong.append(f"--min-nodes {options.min_nodes}: give 1 to {most}, the most nodes of this job")
    if least > nodes and not wrong:
        wrong.append(f"--min-nodes {least}: the job has {nodes} nodes")
    if options.max_restarts is not None and options.max_restarts < 0:
        wrong.append(f"--max-restarts {options.max_restarts}: give 0 or more")
    return wrong


def read_rendezvous(
    cluster: Cluster, options: argparse.Namespace, chosen: Sequence[Member]
) -> tuple[Member | None, Etcd | None, list[str]]:
    """The host of the rendezvous or the etcd, both None where the first node has it, and what is wrong with them."""
    if options.mode != "elastic":
        return None, None, []
    known = {member.name: member for member in cluster.members}
    scheme, _colon, rest = (options.rendezvous or "c10d").partition("://")
    if scheme not in ("c10d", "etcd") or (rest and scheme != "etcd"):
        return None, None, [f"--rendezvous {options.rendezvous!r}: give c10d, etcd, or etcd://A,B,C[:PORT]"]
    name, wrong = options.rendezvous_host, []
    if name is not None and name not in known:
        wrong.append(f"--rendezvous-host: {name!r} is no member, these are: {', '.join(known)}")
    elif name is not None and name in [member.name for member in chosen]:
        wrong.append(
            f"--rendezvous-host: {name} would have ranks too, and its loss would end both: take it out of the nodes "
            f"(--exclude {name}), or give a member that is not among them"
        )
    if scheme == "c10d":
        return known.get(name or ""), None, wrong
    if name is not None:
        wrong.append("--rendezvous-host and --rendezvous etcd: give one of them")
    if cluster.etcd is None:
        wrong.append(
            f"--rendezvous {options.rendezvous}: this cluster has no etcd (no key `etcd` in {CLUSTER_FILE}): set "
            "etcd_members and run site.yml with --tags cluster_firewall,etcd,launcher, or give --rendezvous-host NODE"
        )
        return None, None, wrong
    hosts, _colon, port = rest.rpartition(":") if re.search(r":\d+$", rest) else (rest, "", str(ETCD_PORT))
    if not rest:
        return None, cluster.etcd, wrong
    endpoints = []
    for host in expand(hosts):
        address = known[host].address if host in known else host
        try:
            endpoints.append(endpoint(str(ipaddress.ip_address(address)), int(port)))
        except ValueError:
            wrong.append(f"--rendezvous: {host!r} is neither a member nor an address; members: {', '.join(known)}")
    if not 1 <= int(port) <= 65535:
        wrong.append(f"--rendezvous: port {port} is none, give 1 to 65535")
    return None, cluster.etcd._replace(endpoints=tuple(endpoints)), wrong


def rendezvous_options(job: Mapping[str, Any], port: int, turn: int) -> list[str]:
    """Where the torchruns of an elastic job meet, and under which name: a new one when all of them start again."""
    name = f"{job['id']}.{turn}" if turn else str(job["id"])
    conf = {"last_call_timeout": str(LAST_CALL)}
    if job["etcd"]:
        backend, where = PLUGIN_BACKEND, ",".join(job["etcd"]["endpoints"])
        conf.update((part, job["etcd"][part]) for part in ("ca", "cert", "key"))
    else:
        backend, where = "c10d", endpoint(job["master"], port)
        conf = {"is_host": "true" if job["holds"] else "false", **conf}
    settings = ",".join(f"{key}={value}" for key, value in conf.items())
    return ["--rdzv-backend", backend, "--rdzv-endpoint", where, "--rdzv-id", name, "--rdzv-conf", settings]
