# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Open MPI prints: releases 4.1.4 and 5.0.11 were seen, without GPU.  Pure."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    DISK,
    NOBODY,
    PEER,
    READ,
    SELF,
    Text,
)

FOUR = ("4.1.4",)
BOTH = ("4.1.4", "5.0.11")

#: mpirun says it, and ends all ranks then.
LOST_DAEMON = Text(
    r"(?:PRTE|ORTE) has lost communication with a remote daemon.*?Remote daemon ?: \S+ on node (?P<host>\S+)",
    causes.STOPPED,
    PEER,
    "that node ended, or the connection to it did",
    versions=FOUR,
)

TEXTS = (
    Text(
        r"An invalid value was given for btl_tcp_if_include.*?Value: (?P<interface>\S+)",
        causes.INTERFACE,
        SELF,
        "btl_tcp_if_include names an interface that is not there",
        versions=BOTH,
    ),
    Text(
        r"An invalid value was given for \w+_if_(?:in|ex)clude|Unknown interface name",
        causes.INTERFACE,
        SELF,
        "a variable of Open MPI names an interface that is not there",
        versions=BOTH,
    ),
    Text(
        r"ssh: Could not resolve hostname (?P<host>[^\s:]+)",
        causes.NAMES,
        SELF,
        "that name does not resolve on the node that started the job",
        versions=BOTH,
    ),
    Text(
        r"(?:Host key for|host key is known for) (?P<host>\S+) (?:has changed|and you have requested)",
        causes.NAMES,
        PEER,
        "the host key or certificate of that node is not one that is trusted",
        versions=BOTH,
    ),
    Text(
        r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED",
        causes.NAMES,
        PEER,
        "the host key of a node is not the one that is known of it: it was installed again, or it is another machine",
        versions=BOTH,
    ),
    Text(
        r"(?:\S+@(?P<host>[^\s:]+): )?Permission denied \(publickey",
        causes.NAMES,
        PEER,
        "a node does not let this user in",
        versions=BOTH,
    ),
    Text(
        # A shell says it in the language of its node: of other languages the form is enough.
        r"(?:orted|prted): (?:command not found|No such file or directory|Permission denied)|no orted and no prted in"
        r"|sh: (?:(?:\S+ )?\d+: )?\S*(?:orted|prted): ",
        causes.NAMES,
        PEER,
        "Open MPI's daemon is not where ssh looks for it there: not in the PATH, or under another prefix",
        versions=BOTH,
    ),
    Text(
        r"(?:orted|prted)(?:: error while loading shared libraries| --help ended with \d)",
        causes.VERSIONS,
        PEER,
        "Open MPI's daemon can't run there: a library that it needs is missing, or the program itself is damaged",
        versions=FOUR,
    ),
    Text(
        r"PRTE detected a mismatch in versions|version mismatch.*(?:orted|prted)",
        causes.VERSIONS,
        NOBODY,
        "the nodes have different releases of Open MPI's launcher",
        known=READ,
    ),
    Text(
        r"modex_recv: failed with return value=-46|pml-add-procs-fail",
        causes.VERSIONS,
        NOBODY,
        "the ranks are linked to different releases of Open MPI",
        versions=BOTH,
    ),
    Text(
        r"did not receive (?:the )?full (?:magic id string|connection information)",
        causes.PORT,
        NOBODY,
        "something that is not this job, or another release of Open MPI, answers on a port of the BTL",
        known=READ,
    ),
    Text(
        r"ssh: connect to host (?P<host>\S+) port (?P<port>\d+): ",
        causes.BLOCKED,
        PEER,
        "sshd of that node does not answer, or its port is blocked",
        versions=BOTH,
    ),
    Text(
        r"Open MPI failed to TCP connect to a peer.*?connect\(\) to (?P<address>\S+?):(?P<port>\d+) failed",
        causes.BLOCKED,
        PEER,
        "a data connection to that node was dropped, rejected or refused",
        versions=BOTH,
    ),
    Text(
        r"daemon failed to report back after being spawned",
        causes.STOPPED,
        NOBODY,
        "a daemon could not be started, or could not connect back to mpirun",
        versions=("5.0.11",),
    ),
    Text(
        r"A process or daemon was unable to complete a TCP connection.*?Local host: (?P<local>\S+) "
        r"Remote host: (?P<host>\S+)",
        causes.BLOCKED,
        PEER,
        "a connection between these two nodes was dropped or rejected",
        versions=FOUR,
    ),
    Text(
        r"At least one pair of MPI processes are unable to reach each other",
        causes.BLOCKED,
        NOBODY,
        "two ranks have no network in common, by their settings or because it is blocked",
        versions=BOTH,
    ),
    Text(
        r"PMIX ERROR: OUT-OF-RESOURCE",
        causes.RESOURCES,
        SELF,
        "Open MPI has no room for its temporary files (TMPDIR, else /tmp)",
        versions=FOUR,
        command=DISK,
    ),
    Text(
        r"MPI communication peer process has unexpectedly disconnected.*?Peer host: (?P<host>\S+)",
        causes.STOPPED,
        PEER,
        "the rank on that node ended",
        versions=BOTH,
    ),
    LOST_DAEMON,
    Text(
        r"(?:PRTE|ORTE) has lost communication with a remote daemon"
        r"|ORTE was unable to reliably start one or more daemons",
        causes.STOPPED,
        PEER,
        "the daemon of a node could not be started, or the connection to it was lost",
        versions=FOUR,
    ),
)
