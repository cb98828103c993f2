# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The call of mpirun and its environment, the same for Open MPI 4.1 and 5.  Pure.

Networks, ports, transport and where the daemons are stand in Open MPI's own files, as for every job: no option of ours
may set what a job would miss.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import mpi_program

#: Bytes of a buffer to iterations: one packet, more than btl tcp sends in one go (its eager limit is 64 KiB), and a
#: size that fills the network.  Python fills and compares the buffers, which is what takes the time.
SIZES = {4: 20, 65536: 10, 4194304: 3}
#: No parameter of Open MPI: both generations hand unknown ones on to their daemons, whose command lines then name the
#: run that they belong to.
MARK = "gpu_cluster_check"
#: The same as variables, which both generations hand on to ranks.
MARKS = tuple(f"{family}_MCA_{MARK}" for family in ("OMPI", "PRTE"))
#: What every mpirun takes for its own node.
LOCAL = "localhost"
#: mpirun refuses root without these; PRRTE 3 knows those of Open MPI too.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def packed() -> str:
    """The program, in letters that neither mpirun nor a shell on the way takes for its own."""
    return base64.b64encode(payload.packed([mpi_program])).decode("ascii")


def argv(mpirun: str, python: str, addresses: Sequence[str], *, prefix: str, seconds: int) -> list[str]:
    """One rank on each node, in this order; the options are those of ``gpu-cluster-run --mode mpirun``.

    python: the same on all nodes.  prefix: the folder above bin/mpirun.  seconds: after which a rank ends itself.
    """
    job = {
        "prefix": prefix,
        "sizes_bytes": list(SIZES),
        "iterations": list(SIZES.values()),
        "seconds": seconds,
    }
    # mpirun runs on the first node. PRRTE 3 counts no slots for an address of its own node (openpmix/prrte, 2258).
    others = [f"[{one}]:1" if ":" in one else f"{one}:1" for one in addresses[1:]]
    hosts = ",".join([f"{LOCAL}:1", *others])
    return [
        *(mpirun, "--host", hosts, "-np", str(len(addresses)), "--map-by", "slot", "--bind-to", "none"),
        *(python, "-I", "-S", "-c", payload.RUNNER, packed(), mpi_program.__name__, json.dumps(job)),
    ]


def environment(run_id: str, login: Mapping[str, str], given: Mapping[str, str], as_root: bool) -> dict[str, str]:
    """What mpirun gets: the login, what the node gives to jobs, and the marks of this run."""
    return {**login, **given, **(AS_ROOT if as_root else {}), **dict.fromkeys(MARKS, run_id)}
