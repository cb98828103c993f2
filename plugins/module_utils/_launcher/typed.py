# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person has typed: a job, a look at its logs or ranks, or the queue view."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.arguments import make_parser
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.cluster import read_cluster
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.dry_run import describe
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.launcher import Launcher
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.messages import printable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import EXPLAINER
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.plan import plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.refusal import (
    EXIT_INPUT,
    EXIT_UNUSABLE,
    Refused,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.users import become


def working_folder() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise Refused(EXIT_INPUT, [f"the folder you are in can't be used ({error.strerror}): cd elsewhere"]) from error


def launch(arguments: Sequence[str]) -> int:
    try:
        options = make_parser().parse_args(arguments)
        cluster = read_cluster()
        cwd = working_folder()
        become(cluster.user)
        jobs = plan(cluster, options, os.environ, cwd)
        if options.dry_run:
            sys.stdout.write(f"{describe(jobs)}\n")
            return 0
        return Launcher(jobs, cluster.ssh_port).run()
    except Refused as refused:
        for reason in refused.reasons:
            sys.stderr.write(f"gpu-cluster-run: {printable(reason)}\n")
        sys.stderr.write(f"gpu-cluster-run: nothing was started; exit code {refused.code}\n")
        return refused.code


def explain(arguments: Sequence[str]) -> int:
    """Why a job failed, by its logs."""
    try:
        os.execv(EXPLAINER, [EXPLAINER, *arguments])
    except OSError as error:
        sys.stderr.write(f"gpu-cluster-run: {EXPLAINER} can't be started ({error.strerror}): run role launcher again\n")
    return EXIT_UNUSABLE


def as_user(program: str, arguments: Sequence[str]) -> int:
    """Another program of the launcher, as the cluster's user: only that user gets to the members and their ranks."""
    try:
        become(read_cluster().user)
        os.execv(program, [program, *arguments])
    except Refused as refused:
        for reason in refused.reasons:
            sys.stderr.write(f"gpu-cluster-run: {printable(reason)}\n")
        return refused.code
    except OSError as error:
        sys.stderr.write(f"gpu-cluster-run: {program} can't be started ({error.strerror}): run role launcher again\n")
    return EXIT_UNUSABLE
