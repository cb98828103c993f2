# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that the controller and the programs on the nodes share.  It imports nothing: it goes with every program."""

from __future__ import annotations

#: The backend of torch.distributed that needs GPUs.
NCCL = "nccl"
#: All that a check can use; rank_gpu.py has what each needs.
BACKENDS = ("gloo", NCCL)
#: In every line of a rank of Open MPI, so that no other JSON on standard output is taken for ours.
MPI_MARK = "gpu_cluster_mpi"
#: The state of an interface that carries packets, and of one that is set down.
UP, DOWN = "up", "down"
#: The range whose first listener becomes rank 0's store.
RENDEZVOUS = "rendezvous"
#: So much of what a rank wrote to standard error is kept.
STDERR_BYTES = 4096
#: The error of a worker whose time was over before there was a job; the seconds follow.
NO_JOB = "no job came from the controller within"
#: A limit of a login that is none.
UNLIMITED = -1
#: The file with the variables that PAM gives to every session.
OF_SESSIONS = "/etc/environment"
#: ausearch(8) calls the last ten minutes "recent": what a run of the site playbook just before has caused.
DENIAL_MINUTES = 10
#: Sysctls that decide how fast a TCP connection can be and how soon it is there; all nodes have the same of them,
#: whatever their memory (Documentation/networking/ip-sysctl.rst of the kernel).
SYSCTLS_OF_TCP = (
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syn_retries",
    "net.ipv4.tcp_retries2",
)
