# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: its options, and hints for those of torchrun and mpirun."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.refusal import (
    EXIT_INPUT,
    EXIT_LOST,
    EXIT_NO_HOROVOD,
    EXIT_UNUSABLE,
    Refused,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import GRACE, LOST_AFTER, SILENCE

#: That of the collection.
VERSION = "0.1.0"
MODES = ("torchrun", "elastic", "env", "mpirun", "horovod")
#: Of Horovod: through what ranks find each other, and what carries tensors of the CPU.
CONTROLLERS = ("mpi", "gloo")


class Script(argparse.Action):
    """The script and what is for it, as typed: argparse would take a ``--`` out."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        if values[0] == "--":
            values = values[1:]
        if not values:
            parser.error("the script is missing")
        namespace.script, namespace.arguments = values[0], values[1:]


#: Options of torchrun and mpirun, by which people look for those of ours.
OF_OTHERS = {
    "--nnodes": "--num-nodes N, or --nodes A,B",
    "--nproc_per_node": "--nproc-per-node N",
    "--node_rank": "nothing: the order of --nodes is that of the ranks",
    "--node-rank": "nothing: the order of --nodes is that of the ranks",
    "--master_addr": "nothing: the first node has the rendezvous, or in mode elastic --rendezvous-host NODE",
    "--master-addr": "nothing: the first node has the rendezvous, or in mode elastic --rendezvous-host NODE",
    "--rdzv-backend": "--rendezvous c10d or etcd, with --mode elastic",
    "--rdzv_backend": "--rendezvous c10d or etcd, with --mode elastic",
    "--rdzv-endpoint": "--rendezvous-host NODE, or --rendezvous etcd://A,B,C, with --mode elastic",
    "--rdzv_endpoint": "--rendezvous-host NODE, or --rendezvous etcd://A,B,C, with --mode elastic",
    "--master_port": "nothing: a free port of the port plan is taken",
    "--master-port": "nothing: a free port of the port plan is taken",
    "--hostfile": "--nodes A,B",
    "-np": "--num-nodes N and --nproc-per-node N",
}


class Parser(argparse.ArgumentParser):
    """Ends with our code for bad input; argparse's own, 2, could be the code of a script."""

    def error(self, message: str) -> Any:
        self.print_usage(sys.stderr)
        hints = [f"for {name} give {ours}" for name, ours in OF_OTHERS.items() if name in re.split(r"[ =]", message)]
        raise Refused(EXIT_INPUT, [message, *hints])


def make_parser() -> Parser:
    parser = Parser(
        prog="gpu-cluster-run",
        allow_abbrev=False,
        description="Run a training script on the nodes of the cluster. Options stand before the script.",
        epilog="`gpu-cluster-run explain LOG ...` says why a job failed, by its logs, and `gpu-cluster-run why [JOB]` "
        "for whom the ranks of a running job wait; ps, nodes, logs JOB and stop JOB show and end jobs. "
        f"Exit code: the script's own, 128 + the signal that ended it, {EXIT_INPUT} bad input, {EXIT_UNUSABLE} "
        f"a node can't be used, {EXIT_LOST} a node was lost, {EXIT_NO_HOROVOD} no Horovod.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    parser.add_argument("--mode", choices=MODES, default="torchrun", help="how ranks start (default: torchrun)")
    nodes = parser.add_mutually_exclusive_group()
    nodes.add_argument(
        "--nodes", metavar="A,B", help="these nodes, in the order of ranks (default: all), also gpu[01-12]"
    )
    nodes.add_argument("--num-nodes", type=int, metavar="N", help="the first N nodes of the inventory")
    parser.add_argument("--exclude", metavar="A,B", help="without these nodes")
    parser.add_argument("--nproc-per-node", type=int, metavar="N", help="ranks per node (default: its GPUs, else 1)")
    parser.add_argument("--min-nodes", type=int, metavar="N", help="elastic: go on with so many (default: 1)")
    parser.add_argument("--max-nodes", type=int, metavar="N", help="elastic: use no more (default: all chosen)")
    parser.add_argument("--max-restarts", type=int, metavar="N", help="elastic: failures to survive (default: 3)")
    parser.add_argument(
        "--rendezvous", metavar="WHAT", help="elastic: c10d (default), etcd, or etcd://A,B,C[:PORT] for other members"
    )
    parser.add_argument(
        "--rendezvous-host", metavar="NODE", help="elastic: a member without ranks that holds the rendezvous"
    )
    parser.add_argument(
        "--spares", type=int, metavar="N", help="elastic: the last N nodes wait until one is lost or fails"
    )
    parser.add_argument("--controller", choices=CONTROLLERS, help="horovod: mpirun (default), or horovodrun for gloo")
    parser.add_argument("--python", metavar="PATH", help="interpreter of the script (default: the cluster's torch)")
    parser.add_argument("--image", metavar="IMG", help="run the ranks in containers of this image, with podman")
    parser.add_argument(
        "--volume", action="append", default=[], metavar="A:B", help="with --image: folder A is B in the containers"
    )
    parser.add_argument("--log-dir", metavar="DIR", help="folder of the logs (default: ~/gpu-cluster-logs)")
    parser.add_argument("--env", action="append", default=[], metavar="K=V", help="for the script; K alone: from here")
    parser.add_argument(
        "--lost-after", type=int, default=LOST_AFTER, metavar="S", help="silence that means lost (20 s)"
    )
    parser.add_argument("--grace", type=int, default=GRACE, metavar="S", help="seconds from SIGTERM to SIGKILL (10)")
    parser.add_argument("--share", action="store_true", help="start also where others use the GPUs")
    parser.add_argument("--only-rank", type=int, metavar="N", help="show the lines of this rank alone; logs have all")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module, as of python -m")
    parser.add_argument(
        "--silence",
        type=int,
        default=SILENCE,
        metavar="S",
        help="look for a hang after S silent seconds (600), 0: never",
    )
    parser.add_argument(
        "--no-hang-help", action="store_true", help="load nothing into the ranks that says where they hang"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would run where")
    parser.add_argument(
        "script",
        nargs=argparse.PARSER,
        action=Script,
        metavar="script",
        help="the script, and what is for it; another program when it does not end in .py",
    )
    return parser
