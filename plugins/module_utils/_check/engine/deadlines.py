# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long each step of a check may take, by the number of hosts and forks.  Pure; all times are in seconds.

A controller with fewer forks than hosts reaches them one after the other: what waits for all hosts waits that much
longer.  This difference between the first and the last host of one step is called skew here.
"""

from __future__ import annotations

import math

#: One round of forks; twice of what 64 hosts at 5 forks needed on 2 cores.
ROUND_SECONDS = 3
#: What a rank may need for the first use of its GPU, before it comes to the rendezvous: without nvidia-persistenced the
#: driver wakes all GPUs of a node one after the other, 1 to 3 s each (NVIDIA, Driver Persistence).
GPU_SECONDS = 30
#: Ports that a node probes at once, and how many timeouts each such window may take, as docs/check-protocol.md says.
PORTS_AT_ONCE = 4000
TIMEOUTS_EACH = 9
#: Ranges of the port plan: rendezvous, ephemeral, mpi and extra ports.
RANGES = 4
#: Search, quality and the second try of a probe, whatever the peers do; and the time to reach the node.
PROBE_EXTRA_SECONDS = 32
REACH_SECONDS = 20
#: No import of torch is waited for longer than this, nor into the last seconds of the probe.
READY_SECONDS = 60
READY_RESERVE_SECONDS = 30
#: Launch, the begin of the probe, its end, go and collect each have the skew.
STEPS_OF_A_LIFE = 5
STEPS_OF_A_ROUND = 4


def skew(hosts: int, forks: int) -> int:
    """Between the first and the last host of one step."""
    return ROUND_SECONDS * math.ceil(hosts / forks)


def gpu(backend: str) -> int:
    """For the first use of the GPUs."""
    return GPU_SECONDS if backend == "nccl" else 0


def join(skew_seconds: int, backend: str) -> int:
    """So long ranks wait for each other at the rendezvous."""
    return 10 + skew_seconds + gpu(backend)


def ranks(deadline_seconds: int, skew_seconds: int, backend: str) -> int:
    """After this time a worker kills its ranks.  The same for a round of pairs, with the deadline of that round."""
    return deadline_seconds + skew_seconds + gpu(backend)


def probe_most(members: int, samples: int, rails: int, timeout_seconds: float) -> int:
    """What the calls of a probe take at most.  rails: of the host with most of them, the first one included."""
    windows = math.ceil(members * samples * RANGES * rails / PORTS_AT_ONCE)
    return TIMEOUTS_EACH * int(timeout_seconds) * windows


def probe(members: int, samples: int, rails: int, timeout_seconds: float) -> int:
    """Until the results of a probe are there."""
    return probe_most(members, samples, rails, timeout_seconds) + PROBE_EXTRA_SECONDS + REACH_SECONDS


def ready(probe_seconds: int) -> int:
    """So long the probe waits for the imports, in what its time limit leaves.

    A rank that imports torch slowly would miss the rendezvous.
    """
    return min(READY_SECONDS, probe_seconds - READY_RESERVE_SECONDS)


def lifetime(probe_seconds: int, ranks_seconds: int, skew_seconds: int) -> int:
    """A worker that nobody collects ends itself after this time."""
    return 7 + probe_seconds + ranks_seconds + STEPS_OF_A_LIFE * skew_seconds


def pair_lifetime(pair_seconds: int, skew_seconds: int) -> int:
    """The same for the worker of one round of pairs, which none of the steps before it costs anything."""
    return 30 + pair_seconds + STEPS_OF_A_ROUND * skew_seconds


def openmpi(deadline_seconds: int, skew_seconds: int) -> int:
    """For mpirun, whose daemons need their time to start on many hosts."""
    return deadline_seconds + skew_seconds
