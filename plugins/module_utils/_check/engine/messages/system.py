# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel and the C library say, whatever program prints it.  Pure."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    DISK,
    NOBODY,
    PEER,
    REPORTED,
    SELF,
    Text,
)

OWN_ROUTE = "see what this node's own routes say (ip route get ADDRESS), and repair the route or the interface"
ADDRESSES = "ip -brief address; ip route; ip rule"
KERNEL_MEMORY = "journalctl -k | grep -i -E 'oom|out of memory' | tail"

RESOURCES = (
    Text(
        r"Too many open files in system",
        causes.RESOURCES,
        SELF,
        "the limit of open files of the whole node (fs.file-max) is reached",
        known=REPORTED,
        fix="look for the program that holds them, and raise fs.file-max",
        look="sysctl fs.file-nr",
    ),
    Text(
        r"Too many open files",
        causes.RESOURCES,
        SELF,
        "the limit nofile of this user is too low",
    ),
    Text(
        r"oom[-_]kill|Out of memory: Killed process|Memory cgroup out of memory|killed by the cgroup out-of-memory",
        causes.RESOURCES,
        SELF,
        "the memory of the node, or of the job's cgroup, was full, and the kernel ended a process",
        known=REPORTED,
        fix="use less memory on this node (smaller batches, fewer workers of the data loader), or give the job more",
        look=KERNEL_MEMORY,
    ),
    Text(
        r"Cannot allocate memory|can't allocate memory|MemoryError|std::bad_alloc|[Oo]ut of memory",
        causes.RESOURCES,
        SELF,
        "the memory is full, or its limit is reached",
        fix="free memory on this node, or raise the limit that holds the job (ulimit -v, its cgroup, "
        "vm.overcommit_memory)",
        look="free -h; ulimit -a",
    ),
    Text(
        r"No space left on device",
        causes.RESOURCES,
        SELF,
        "a file system is full",
        fix="free the file system that is full, of data or of files; for watches of files it is "
        "fs.inotify.max_user_watches",
        look=DISK,
    ),
    Text(
        r"(?:\bfork|\bclone|pthread_create|posix_spawn)\b[^;]{0,60}: Resource temporarily unavailable"
        r"|(?:creat\w*|start|spawn) (?:a |new |the )*(?:\w+ )?threads?\b[^;]{0,40}: Resource temporarily unavailable"
        r"|Thread creation failed|can't start new thread|Cannot fork|fork: retry: |RLIMIT_NPROC"
        r"|(?:std::system_error.{0,40}|what\(\): )Resource temporarily unavailable"
        r"|Can't create a thread|failed to create new OS thread|OMP: Error #34",
        causes.RESOURCES,
        SELF,
        "the limit nproc of this user is too low, or that of its cgroup (pids.max)",
        fix="raise the limit nproc of the job's user, or start fewer threads (OMP_NUM_THREADS, workers of the "
        "data loader)",
        look='ulimit -u; ps -L -u "$USER" | wc -l; cat /sys/fs/cgroup/pids.max 2>/dev/null',
    ),
    Text(
        r"BlockingIOError: \[Errno 11\]",
        causes.RESOURCES,
        SELF,
        "fork was refused (limit nproc), or a lock or a socket was busy",
        known=REPORTED,
        weak=True,
        fix="see which call of the traceback it was; only for fork raise the limit nproc",
        look="ulimit -u",
    ),
    Text(
        r"No buffer space available",
        causes.RESOURCES,
        SELF,
        "the kernel has no room for packets, or for neighbours (net.ipv4.neigh.default.gc_thresh3)",
        known=REPORTED,
        look="sysctl net.ipv4.neigh.default; ip -s neigh | wc -l",
        fix="with hundreds of nodes in one network raise net.ipv4.neigh.default.gc_thresh1 to 3",
    ),
)

NAMES = (
    Text(
        r"Temporary failure in name resolution",
        causes.NAMES,
        SELF,
        "no name server answers this node",
        fix="repair the name servers of this node (/etc/resolv.conf), or write the names of all members with "
        "cluster_hosts",
        look="getent hosts $(hostname); cat /etc/resolv.conf",
    ),
    Text(
        r"Name or service not known|No address associated with hostname|nodename nor servname provided",
        causes.NAMES,
        SELF,
        "a name does not resolve on this node",
    ),
)

FILES = (
    Text(
        r"(?<!orted: )(?<!prted: )error while loading shared libraries: ",
        causes.FILES,
        SELF,
        "a library that the program needs is not on this node, or not where it is looked for",
        known=REPORTED,
        fix="install the package of that library, or set LD_LIBRARY_PATH for the job on all nodes",
        look="ldd PROGRAM | grep 'not found'",
    ),
)

NETWORK = (
    Text(
        r"(?:^|\[Errno 101\] |what\(\): )Network is unreachable|(?:^|\[Errno 100\] |what\(\): )Network is down"
        r"|connect(?:\(\))?(?: failed)?: (?:Network is unreachable|Network is down|Invalid argument)",
        causes.INTERFACE,
        SELF,
        "this node has no route to the other one, or its interface is down: its own kernel says so, no filter",
        known=REPORTED,
        fix=OWN_ROUTE,
        look=ADDRESSES,
    ),
    Text(
        r"connect(?:\(\))?(?: failed)?: Operation not permitted|sendto(?:\(\))?(?: failed)?: Operation not permitted",
        causes.BLOCKED,
        SELF,
        "this node's own packet filter does not let the packet out",
        known=REPORTED,
        fix="look at the output rules of this node",
        look="nft list ruleset; iptables-save",
    ),
    Text(
        r"Network is unreachable|Network is down",
        causes.INTERFACE,
        NOBODY,
        "a node has no route to the other one, or its interface is down: its own kernel says so, no filter",
        known=REPORTED,
        fix=OWN_ROUTE,
        look=ADDRESSES,
    ),
    Text(
        r"No route to host",
        causes.BLOCKED,
        PEER,
        "a node does not answer in its network, is not routed to, or rejects",
        fix="see whether that node is up and this one has a route to it (ip route get, ping, ip neigh); if so, "
        "its firewall "
        "rejects: open the ports of the plan",
        look=ADDRESSES,
    ),
    Text(
        r"Connection refused",
        causes.BLOCKED,
        PEER,
        "nothing listens there, or a firewall answers with a reset",
        fix="see whether the program at the other end still runs and listens; if it does, open the ports of the "
        "plan there",
        look="ss -ltnp",
    ),
    Text(
        r"Connection timed out",
        causes.BLOCKED,
        PEER,
        "a node drops the connection, or is down",
        fix="see whether that node is up (ping); if it is, open the ports of the plan, then look at what "
        "filters between",
        command=fixes.site("cluster_firewall"),
    ),
    Text(r"Connection reset by peer|Broken pipe", causes.STOPPED, PEER, "another process ended", weak=True),
)

TEXTS = (*RESOURCES, *NAMES, *FILES, *NETWORK)
