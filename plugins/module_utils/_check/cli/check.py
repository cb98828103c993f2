# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command check: ask the nodes over ssh, and print the verdict."""

from __future__ import annotations

import argparse
import json
import signal
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import (
    codes,
    options,
    output,
    transport,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.course import Course
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.nodes import Nodes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.progress import Progress
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Report
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    compact,
    console,
    delivery,
    folder,
)

NAME = "check"
ABOUT = "check a cluster over ssh: its nodes, the mesh of all ports, and an exact all_reduce over all members"
EXAMPLES = """\
examples:
  gpu-cluster-check.pyz check --hosts 'gpu[01-12]' --interface ens1f0 --user root
  gpu-cluster-check.pyz check --hosts n1,n2,n3 --interface eth1 --user admin --sudo --set user=train \\
      --set torch_python=/opt/torch/bin/python --report-dir ./reports
  gpu-cluster-check.pyz check --hosts n1=198.18.20.1,n2=198.18.20.2 --interface eth1 --local n1 \\
      --ssh-option ProxyJump=bastion --set 'sizes_bytes=[4096, 1048576]' --json
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    options.add(parser)


def run(args: argparse.Namespace) -> int:
    """Check, print, and return the exit code."""
    wanted = options.read(args)
    where = wanted.settings.report_dir
    # Before the check costs time. It only warns: the verdict needs no file.
    problem = folder.problem(where, len(wanted.settings.members)) if where else ""
    output.warn([f"{problem}. The check goes on and prints its verdict."] if problem else [])
    before = {number: signal.signal(number, _interrupt) for number in SIGNALS}
    sockets = transport.make_folder()
    try:
        ssh = transport.Ssh(sockets, wanted.user, wanted.ssh_port, wanted.ssh_options, wanted.sudo)
        ways: dict[str, transport.Transport] = dict.fromkeys(wanted.play.hosts, ssh)
        if wanted.local:
            ways[wanted.local] = transport.Local(wanted.sudo)
        nodes = Nodes(ways, wanted.python, wanted.play.forks)
        report = _checked(Course(wanted, nodes, Progress(wanted.settings.progress)))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        transport.close(sockets)
    report = delivery.with_origin(report, args.hosts)
    if where:
        report, _missing = delivery.with_files(report, where)
    found = compact.same(report.as_dict())
    told = [json.dumps(compact.pack(found))] if args.json else console.lines(found)
    output.result("".join(f"{line}\n" for line in told))
    return codes.OF_VERDICT[report.verdict]


def _checked(course: Course) -> Report:
    """The report.  Interrupted, it ends on the nodes what is at work there; another signal ends that too."""
    try:
        return course.run()
    except codes.Interrupted:
        output.warn(["interrupted: ending the check on the nodes; interrupt again to leave that to the time limit"])
        course.end()
        raise


def _interrupt(number: int, _frame: Any) -> None:
    raise codes.Interrupted(number)
