# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Open MPI and its launchers, ORTE (release 4) and PRRTE (5), print.

Releases 4.1.4 and 5.0.11 were seen, without GPU; the texts of the others were read in the sources of 4.0.0 to 4.1.8, of
5.0.0 to 5.0.10, and of PRRTE 3.0.0 to 4.1.0.  Pure.
"""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    DISK,
    NOBODY,
    PEER,
    READ,
    REPORTED,
    SELF,
    Text,
)

FOUR = (*(f"4.0.{patch}" for patch in range(8)), *(f"4.1.{patch}" for patch in range(9)))
FIVE = tuple(f"5.0.{patch}" for patch in range(12))
BOTH = (*FOUR, *FIVE)
#: Those with PRRTE 3.0.12 or later.
REPORTING = FIVE[9:]

#: An address and a port as the BTL prints them.
CONNECT = r"connect\(\) to (?P<address>\S{1,60}?):(?P<port>\d+) failed"
#: Answers of the node's own kernel, which no other node was asked for.
OWN_KERNEL = r"(?:Network is unreachable|Network is down|Invalid argument|Cannot assign requested address)"
SAME_NETWORK = (
    "set btl_tcp_if_include, and oob_tcp_if_include or prte_if_include, on all nodes to the data network in the form "
    "address/bits: the role openmpi writes them"
)
ROUTE = "give this node an address and a route of that network, or set btl_tcp_if_include to one that all nodes share"
SAME_PREFIX = (
    "install Open MPI under the same prefix on all nodes, or start mpirun by its full path or with --prefix, so that "
    "ssh finds the daemon without a login shell"
)
SLOTS = (
    "start fewer ranks, give the nodes their slots (slots=N in the hostfile, :N behind a name of --host), or let nodes "
    "hold more with --map-by :OVERSUBSCRIBE"
)
EARLIER = "read what ssh and the daemons printed above it: that names the cause"
LOG_OF_RANK = "look at what that rank printed before it ended"
SHORT_DIRECTORY = (
    "set TMPDIR on all nodes to a local folder with a short name that the job's user may write, such as /tmp"
)
NO_BINDING = "start with --bind-to none, or give the job the processors that it asks for (its cpuset)"
USE_UCX = "let UCX use these ports (--mca pml ucx --mca btl ^openib), which is what Open MPI 4 and later mean for them"

#: mpirun says it, and ends all ranks then.
LOST_DAEMON = Text(
    r"(?:PRTE|ORTE) has lost communication with a remote daemon.*?Remote daemon ?: \S+ on node (?P<host>\S+)",
    causes.STOPPED,
    PEER,
    "that node ended, or the connection to it did",
    versions=BOTH,
)

INTERFACES = (
    Text(
        r"An invalid value was given for btl_tcp_if_include.*?Value: (?P<interface>[^\s/]+) Message",
        causes.INTERFACE,
        SELF,
        "btl_tcp_if_include names an interface that is not there",
        versions=BOTH,
    ),
    Text(
        r"An invalid value was given for \w+_(?:if|ipaddr)_(?:in|ex)clude.*?(?:matching this subnet"
        r"|Invalid specification)",
        causes.INTERFACE,
        SELF,
        "a variable of Open MPI names a network in which this node has no address",
        known=READ,
        versions=BOTH,
        fix=SAME_NETWORK,
        look="ip -brief address",
    ),
    Text(
        r"An invalid value was given for \w+_if_(?:in|ex)clude|Unknown interface name|\] invalid interface \"",
        causes.INTERFACE,
        SELF,
        "a variable of Open MPI names an interface that is not there",
        versions=BOTH,
    ),
    Text(
        r"None of the TCP networks specified to be included for out-of-band communications could be found:"
        r"(?: Value given: (?P<interface>\S+))?",
        causes.INTERFACE,
        SELF,
        "this node has none of the interfaces or networks that oob_tcp_if_include or prte_if_include names",
        known=READ,
        versions=BOTH,
        fix=SAME_NETWORK,
        look="ip -brief address",
    ),
    Text(
        r"No network interfaces were found for out-of-band|networks to be excluded for TCP out-of-band communications "
        r"resulted in no networks|The specified network is not parseable"
        r"|Both TCP interface include and exclude lists were specified",
        causes.INTERFACE,
        SELF,
        "the settings of the launcher (*_if_include, *_if_exclude) leave no interface of this node to use",
        known=READ,
        versions=BOTH,
        fix=SAME_NETWORK,
        look="ip -brief address",
    ),
    Text(
        rf"Open MPI failed to TCP connect to a peer.{{0,300}}?{CONNECT}.{{0,60}}?Error: {OWN_KERNEL}",
        causes.INTERFACE,
        SELF,
        "this node has no route to an address that another rank published",
        known=READ,
        versions=BOTH,
        fix=ROUTE,
        look="ip -brief address; ip route",
    ),
    Text(
        rf"Unable to connect to the peer (?P<address>\S+) on port (?P<port>\d+): {OWN_KERNEL}",
        causes.INTERFACE,
        SELF,
        "this node has no route to an address that another rank published",
        known=READ,
        versions=BOTH,
        fix=ROUTE,
        look="ip -brief address; ip route",
    ),
    Text(
        r"bind on local address \((?P<address>\S+?):\d+\) failed",
        causes.INTERFACE,
        SELF,
        "an interface lost its address after the rank had started",
        known=READ,
        versions=BOTH,
        look="ip -brief address",
        fix="give the interface its address for good: another service changed it while the job ran",
    ),
    Text(
        r"inbound MPI TCP connection request from a peer.*?unexpected.*?Local host: (?P<local>\S+).*?"
        r"Peer hostname: (?P<host>\S+).*?Source IP of socket: (?P<address>\S+)",
        causes.INTERFACE,
        PEER,
        "that node has several addresses, and connects from one that it did not tell the others",
        known=READ,
        versions=BOTH,
        fix=SAME_NETWORK,
        command=fixes.site("openmpi"),
    ),
    Text(
        r"received unexpected process identifier",
        causes.INTERFACE,
        NOBODY,
        "another rank answers than the one that was called: two nodes hold the same address (docker0, virbr0)",
        known=READ,
        versions=BOTH,
        fix=SAME_NETWORK,
        command=fixes.site("openmpi"),
    ),
    Text(
        r"At least one pair of MPI processes are unable to reach each other(?:.*?Process 1 \(\S+\) is on host: "
        r"(?P<host>\S+) Process 2 \(\S+\) is on host: (?P<local>\S+))?",
        causes.INTERFACE,
        NOBODY,
        "two ranks have no network in common by their settings (btl, btl_tcp_if_include); none was tried yet",
        versions=BOTH,
        fix=SAME_NETWORK,
        command=fixes.site("openmpi"),
    ),
)

DAEMONS = (
    Text(
        # A shell says it in the language of its node: of other languages the form is enough.
        r"\borted: (?:command not found|No such file or directory|Permission denied)|no orted and no prted in"
        r"|\bprted: (?:command not found|No such file or directory|Permission denied)"
        r"|sh: (?:(?:\S+ )?\d+: )?\S*(?:orted|prted): |env: \S*(?:orted|prted)\S*: ",
        causes.NAMES,
        PEER,
        "Open MPI's daemon is not where ssh looks for it there: not in the PATH, or under another prefix",
        versions=BOTH,
        fix=SAME_PREFIX,
        command=fixes.site("openmpi"),
    ),
    Text(
        r"PLS component was not able to find the executable \"orted\"|not able to find the executable \"orted\" in your"
        r"|unable to find an underlying prterun|could not execute the underlying prterun",
        causes.NAMES,
        SELF,
        "mpirun does not find its own daemon or prterun on this node",
        known=READ,
        versions=BOTH,
        fix=SAME_PREFIX,
        command=fixes.site("openmpi"),
    ),
    Text(
        r"\bmpirun: (?:command )?not found|\bmpiexec: (?:command )?not found|\bprterun: (?:command )?not found"
        r"|\bmpirun: No such file or directory|\bmpiexec: No such file or directory",
        causes.FILES,
        SELF,
        "Open MPI is not installed on this node, or not in the PATH",
        known=REPORTED,
        fix="install Open MPI (--tags openmpi), or load its module: module load mpi",
        look="ls -d /usr/lib64/openmpi/bin /opt/*mpi*/bin 2>/dev/null",
    ),
    Text(
        r"\"?plm_(?:rsh|ssh)_agent\"? was set to a path that could not be found",
        causes.SSH,
        SELF,
        "mpirun finds no ssh on this node",
        known=READ,
        versions=BOTH,
        fix="install the package of the ssh client on this node (openssh-clients, openssh-client), or unset "
        "plm_rsh_agent",
        look="command -v ssh",
    ),
    Text(
        r"orted: error while loading shared libraries|prted: error while loading shared libraries"
        r"|ted --help ended with \d",
        causes.VERSIONS,
        PEER,
        "Open MPI's daemon can't run there: a library that it needs is missing, or the program itself is damaged",
        versions=BOTH,
    ),
    Text(
        r"(?:PRTE|Open MPI) detected a mismatch in versions between two processes.*?Peer host: (?P<host>\S+)",
        causes.VERSIONS,
        PEER,
        "that node has another release of Open MPI's launcher",
        known=READ,
        versions=BOTH,
    ),
    Text(
        r"(?:PRTE|Open MPI) detected a mismatch in versions|version mismatch.{0,80}(?:orted|prted)"
        r"|received different version from|PRTE did not receive version information",
        causes.VERSIONS,
        NOBODY,
        "the nodes have different releases of Open MPI's launcher",
        known=READ,
    ),
    Text(
        r"Data unpack (?:would read past end of buffer|had inadequate space|failed)|UNPACK-(?:INADEQUATE-SPACE"
        r"|PAST-END)",
        causes.VERSIONS,
        NOBODY,
        "the parts of Open MPI or PMIx do not understand each other: different releases in one job",
        known=REPORTED,
    ),
    Text(
        r"could not be decompressed.*?node without compression support: (?P<host>\S+)",
        causes.VERSIONS,
        PEER,
        "Open MPI of that node was built without the compression (zlib) that the others use",
        known=READ,
        versions=FOUR[10:],
    ),
    Text(
        r"A version of PMIx was detected that is too old|An unexpected version of PMIx was loaded",
        causes.VERSIONS,
        SELF,
        "this node loads another PMIx than Open MPI was built for",
        known=READ,
        versions=FOUR,
    ),
    Text(
        r"OMPI was not built with SLURM(?:'s PMI)? support|PMIx_Init failed for the following reason"
        r"|PMI2_Init failed|Invalid MPI type '?pm",
        causes.VERSIONS,
        SELF,
        "srun started the ranks, and its PMI and that of Open MPI do not fit",
        known=READ,
        versions=BOTH,
        fix="start with mpirun inside the allocation, or with srun --mpi=pmix where both were built with PMIx",
        look="srun --mpi=list; ompi_info | grep -i pmi",
    ),
    Text(
        r"No PMIx server was reachable, but a PMI1/2 was detected",
        causes.DISAGREE,
        SELF,
        "srun started the ranks without PMIx, so each is a job of its own with one rank",
        known=READ,
        versions=FIVE,
        fix="start with mpirun inside the allocation, or with srun --mpi=pmix",
        look="srun --mpi=list",
    ),
    Text(
        r"is unable to establish a communication connection to the specified daemon.*?my node: (?P<local>\S+) "
        r"target node: (?P<host>\S+)",
        causes.BLOCKED,
        PEER,
        "the daemons of these two nodes can't connect: no network in common, or it is blocked",
        known=READ,
        versions=BOTH,
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
        r"no active out-of-band transports|No sockets were able to be opened on the available protocols",
        causes.PORT,
        SELF,
        "the launcher could not open a port: all of oob_tcp_*_ports or prte_*_ports are taken, or no address is up",
        known=READ,
        versions=BOTH,
        look="ss -ltnp; ip -brief address",
        fix="end what holds the ports of the launcher, or give it more of them",
    ),
    Text(
        r"usually indicates a mismatch between what the allocation provided for the node name"
        r"|A daemon has no recorded node",
        causes.NAMES,
        NOBODY,
        "a node calls itself by another name than the one that it was started with",
        known=READ,
        versions=BOTH,
        fix="give each node the host name that the hostfile or the allocation has for it",
        look="hostname; hostname -f",
    ),
    Text(
        r"The user \(\d+\) is unknown to the system|Open MPI was unable to obtain the username",
        causes.FILES,
        SELF,
        "the job's user is not known on this node",
        known=READ,
        versions=BOTH,
        fix="create the user with the same number on all nodes, or repair the directory service (sssd, LDAP)",
        command=fixes.site("cluster_user"),
    ),
    LOST_DAEMON,
    Text(
        r"daemon failed to report back after being spawned.*?Remote host: (?P<host>\S+) Daemon exit status: 127",
        causes.NAMES,
        PEER,
        "Open MPI's daemon is not where ssh looks for it there",
        known=READ,
        versions=REPORTING,
        fix=SAME_PREFIX,
        command=fixes.site("openmpi"),
    ),
    Text(
        # It names the node of the daemon, and the one that rejects may as well be mpirun's.
        r"daemon failed to report back after being spawned",
        causes.STOPPED,
        NOBODY,
        "a daemon could not be started, or could not connect back to mpirun",
        versions=REPORTING,
        weak=True,
        fix=EARLIER,
    ),
    Text(
        r"A daemon (?:\(pid \S+\) )?died unexpectedly with status 127",
        causes.NAMES,
        NOBODY,
        "Open MPI's daemon is not where ssh looks for it on a node",
        known=READ,
        versions=BOTH,
        weak=True,
        fix=SAME_PREFIX,
        command=fixes.site("openmpi"),
    ),
    Text(
        r"(?:PRTE|ORTE) has lost communication with a remote daemon"
        r"|was unable to reliably start one or more daemons"
        r"|A daemon (?:\(pid \S+\) )?died unexpectedly|daemon has unexpectedly failed after launch"
        r"|detected that a required daemon terminated during execution",
        causes.STOPPED,
        NOBODY,
        "the daemon of a node could not be started, or the connection to it was lost",
        versions=BOTH,
        weak=True,
        fix=EARLIER,
    ),
    Text(
        r"does not know how to route a message to the specified daemon|message to a process whose address is unknown"
        r"|sent to a process whose contact information is unknown|PMIX ERROR: (?:PMIX_ERR_)?UNREACH",
        causes.STOPPED,
        NOBODY,
        "a daemon that mpirun wants to reach never reported, or is gone; the text does not say why",
        known=READ,
        versions=BOTH,
        weak=True,
        fix=f"{EARLIER}; with nothing above it, run again with --mca plm_base_verbose 5, and compare the releases of "
        "Open MPI on the nodes",
    ),
)

CONNECTIONS = (
    Text(
        r"did not receive (?:the )?full (?:magic id string|connection information)"
        r"|connection from what appears to be a another Open MPI process"
        r"|connection from what appears to be a valid peer"
        r"|did not receive the expected network identification|closed socket without sending BTL TCP magic ID"
        r"|send us an incorrect Open MPI magic ID",
        causes.PORT,
        NOBODY,
        "something that is not this job, or another release of Open MPI, connects to a port of the BTL",
        known=READ,
        versions=BOTH,
        fix="keep other programs and port scanners off the ports of the BTL, and take the same Open MPI on all nodes",
        look="ss -tnp",
    ),
    Text(
        r"bind6?\(\) failed: no port available in the range|An invalid value was given for the btl_tcp_port_min",
        causes.PORT,
        SELF,
        "the ports of btl_tcp_port_min_v4 and btl_tcp_port_range_v4 are taken, or are none",
        known=READ,
        versions=BOTH,
        look="ss -ltnp",
        fix="widen btl_tcp_port_range_v4 (the ports of the plan), or end what holds these ports",
    ),
    Text(
        rf"Open MPI failed to TCP connect to a peer.{{0,300}}?{CONNECT}.{{0,60}}?Error: No route to host",
        causes.BLOCKED,
        PEER,
        "that node rejects the connection, or it does not answer in its network at all",
        versions=BOTH,
        fix="see whether that node is up in the data network (ping, ip neigh), then open the ports of the plan on it",
        command=fixes.site("cluster_firewall"),
    ),
    Text(
        rf"Open MPI failed to TCP connect to a peer.{{0,300}}?{CONNECT}",
        causes.BLOCKED,
        PEER,
        "a data connection to that node was dropped, rejected or refused",
        versions=BOTH,
    ),
    Text(
        r"Unable to connect to the peer (?P<address>\S+) on port (?P<port>\d+): ",
        causes.BLOCKED,
        PEER,
        "a data connection to that node was dropped, rejected or refused",
        known=READ,
        versions=BOTH,
    ),
    Text(
        r"connect\(\) to (?P<address>[0-9a-f.:]+) failed: ",
        causes.BLOCKED,
        PEER,
        "a data connection to that node was dropped, rejected or refused",
        known=REPORTED,
    ),
    Text(
        r"MPI communication peer process has unexpectedly disconnected.*?Peer host: (?P<host>\S+)",
        causes.STOPPED,
        PEER,
        "the rank on that node ended",
        versions=BOTH,
        weak=True,
        fix=LOG_OF_RANK,
    ),
    Text(
        r"dropped inbound connection",
        causes.INTERFACE,
        NOBODY,
        "a node has several addresses, and connects from one that it did not tell the others",
        known=READ,
        versions=BOTH,
        weak=True,
        fix=SAME_NETWORK,
        command=fixes.site("openmpi"),
    ),
    Text(
        r"mca_btl_tcp_frag_(?:recv: readv|send: writev) (?:failed|error)|\brecv\(\d+\) failed: "
        r"|did not receive entire connect ACK from peer|connect ACK failed to send",
        causes.STOPPED,
        PEER,
        "a connection to another rank broke: that rank or its node ended",
        known=READ,
        versions=BOTH,
        weak=True,
        fix="look for the rank that ended first, and whether its node is still up",
    ),
    Text(
        r"at least one MPI process is unreachable from another|PML add procs failed",
        causes.INTERFACE,
        NOBODY,
        "two ranks found no way to each other",
        known=READ,
        versions=BOTH,
        weak=True,
        fix=f"{EARLIER}; else: {SAME_NETWORK}",
    ),
)

PROGRAM = (
    Text(
        r"modex_recv: failed with return value=-46|pml-add-procs-fail",
        causes.VERSIONS,
        NOBODY,
        "the ranks are linked to different releases of Open MPI",
        versions=BOTH,
    ),
    Text(
        r"heterogeneous architectures, but at least one node.*?Node: (?P<host>\S+)",
        causes.VERSIONS,
        PEER,
        "that node has processors of another kind",
        known=READ,
        versions=BOTH,
        fix="start the job on nodes of one architecture",
    ),
    Text(
        r"A requested component was not found, or was unable to be opened|No components were able to be opened in the"
        r"|PML \S+ cannot be selected",
        causes.VERSIONS,
        SELF,
        "Open MPI of this node lacks a component that was asked for (--mca pml, btl), or it has nothing to work "
        "with here",
        known=READ,
        versions=BOTH,
        fix="install the same build of Open MPI, with UCX, on all nodes, or do not ask for that component",
        look="ompi_info | grep -E ' (pml|btl|mtl):'",
    ),
    Text(
        r"selected pml \S+, but peer \S+ on (?P<host>\S+) selected pml",
        causes.RDMA,
        PEER,
        "these two nodes chose different transports: on one UCX or its RDMA port is missing or down",
        known=READ,
        versions=BOTH,
        fix="compare ucx_info -d and ibstat of both nodes; until then name one pml for all (--mca pml ob1)",
        look="ucx_info -d | grep -E 'Transport|Device'; ibstat",
    ),
    Text(
        r"There are not enough slots available in the system"
        r"|All nodes which are allocated for this job are already filled"
        r"|The requested number of process(?:es|ors) exceeds|conflicting number of processes for the application"
        r"|more processes than cpus on a resource|No nodes are available for this job"
        r"|There are no allocated resources for the application|we found no available cpus",
        causes.DISAGREE,
        NOBODY,
        "the job asks for more ranks than its nodes have slots or processors",
        known=READ,
        versions=BOTH,
        fix=SLOTS,
    ),
    Text(
        r"not included in the current allocation(?:\. Missing requested host: (?P<host>\S+))?"
        r"|at least one node not present in the allocation:(?: hostfile: \S+ node: (?P<local>\S+))?",
        causes.DISAGREE,
        NOBODY,
        "the job names a node that is not in its allocation, or by another name",
        known=READ,
        versions=BOTH,
        fix="take the names of nodes as the allocation or the hostfile has them",
    ),
    Text(
        r"was unable to open the hostfile|a parse error in the hostfile|a bad parameter in the hostfile",
        causes.FILES,
        SELF,
        "mpirun can't read the hostfile",
        known=READ,
        versions=BOTH,
        fix="give the right path of the hostfile, and one node a line in it: name slots=N",
    ),
    Text(
        r"could not (?:change to|find|access) the specified working directory:"
        r"(?: Working directory: \S+ Node: (?P<host>\S+))?",
        causes.FILES,
        PEER,
        "the folder that the job starts in is not on that node, or not for this user",
        known=READ,
        versions=BOTH,
        fix="start from a folder that all nodes have (a shared file system), or name one with --wdir",
    ),
    Text(
        r"was unable to find the specified executable file(?:.*?Node: (?P<host>\S+) Executable:)?",
        causes.FILES,
        PEER,
        "the program is not on that node, or not in its PATH; or an option of mpirun was misspelled",
        known=READ,
        versions=BOTH,
        fix="give the program by its full path, at the same place on all nodes, and check the options before it",
    ),
    Text(
        r"could not access (?:or execute )?an executable:(?: Executable: \S+ Node: (?P<host>\S+))?",
        causes.FILES,
        PEER,
        "the program on that node can't be read or started by this user",
        known=READ,
        versions=BOTH,
        fix="make the program readable and executable for the job's user on that node (ls -l, noexec of its "
        "file system)",
    ),
    Text(
        r"new process via the \"execve\" system call(?:.*?Local host: (?P<host>\S+))?",
        causes.FILES,
        PEER,
        "the program can't be started on that node: it is a folder, not executable, or for other processors",
        known=READ,
        versions=BOTH,
        fix="start the program there by hand: its own message says what is wrong with it",
    ),
    Text(
        r"system limit exceeded on number of (?:pipes|network connections|processes)(?:.*?Node: (?P<host>\S+))?",
        causes.RESOURCES,
        PEER,
        "on that node the limit of open files (nofile) or of processes (nproc) is too low",
        known=READ,
        versions=BOTH,
    ),
    Text(
        r"The accept\(3\) system call failed on a TCP socket",
        causes.RESOURCES,
        SELF,
        "this process has no file descriptor or memory left for a connection",
        known=READ,
        versions=BOTH,
        fix="raise the limit nofile of the job's user",
        command=fixes.site("kernel_tuning"),
    ),
    Text(
        r"PMIX ERROR: (?:PMIX_ERR_)?OUT[-_]OF[-_]RESOURCE|not enough space for \S+ \(the shared-memory backing"
        r"|WARNING: not enough space on \S+ to meet request",
        causes.RESOURCES,
        SELF,
        "Open MPI has no room for its temporary files (TMPDIR, else /tmp; /dev/shm)",
        versions=BOTH,
        fix="free what is full (TMPDIR, /tmp, /dev/shm), or set TMPDIR to a local folder with room",
        look=DISK,
    ),
    Text(
        r"Signal: Bus error|Signal code: Non-existant physical address|Caught signal 7 \(Bus error",
        causes.RESOURCES,
        SELF,
        "a file in memory could not grow: /dev/shm or TMPDIR is full",
        known=REPORTED,
        fix="free /dev/shm and TMPDIR on this node, or make /dev/shm larger",
        look=DISK,
    ),
    Text(
        r"unable to create the desired directory: Directory: \S+ Error: (?!No space)"
        r"|Unable to create the sub-directory|directories required by Open MPI is on the list of prohibited locations"
        r"|pmix_init_server\(\) failed|restriction for Unix's socket's path-length",
        causes.FILES,
        SELF,
        "Open MPI can't make its temporary folder on this node: TMPDIR is not there, not for this user, or too long",
        known=READ,
        versions=BOTH,
        fix=SHORT_DIRECTORY,
        look='ls -ld "${TMPDIR:-/tmp}"; df -h "${TMPDIR:-/tmp}"',
    ),
    Text(
        r"detected an attempt to run as root|cannot provide the help message when run as root",
        causes.FILES,
        SELF,
        "mpirun refuses to run as root",
        known=READ,
        versions=BOTH,
        fix="start mpirun as the job's user, or with --allow-run-as-root",
    ),
    Text(
        r"MPI_ERR_TRUNCATE",
        causes.DISAGREE,
        NOBODY,
        "a rank sent more than another one expects: the ranks do not run the same steps",
        known=REPORTED,
        fix="make all ranks call the same collectives with the same sizes",
    ),
    Text(
        r"(?:Read|Wrote|CMA (?:read|wrote)) -?\d+, expected \d+, errno = 1\b|due to different user namespaces",
        causes.RESOURCES,
        SELF,
        "ranks of one node may not read each other's memory: containers without the right to (CAP_SYS_PTRACE)",
        known=READ,
        versions=BOTH,
        fix="start with --mca btl_vader_single_copy_mechanism none (release 4) or --mca smsc ^cma (5), or the "
        "containers "
        "with --cap-add=SYS_PTRACE in one user namespace",
    ),
    Text(
        r"due to restrictive ptrace settings",
        causes.RESOURCES,
        SELF,
        "kernel.yama.ptrace_scope keeps ranks of one node from each other's memory: slower copies, no error",
        known=READ,
        versions=FOUR,
        weak=True,
        fix="leave it, or set kernel.yama.ptrace_scope=0 on all nodes",
        look="sysctl kernel.yama.ptrace_scope",
    ),
    Text(
        r"(?:vader )?shared memory (?:BTL )?initialization that should not have",
        causes.RESOURCES,
        SELF,
        "Open MPI could not make its shared memory on this node",
        known=READ,
        versions=BOTH,
        weak=True,
        fix="see whether /dev/shm and TMPDIR are full, or not for this user",
        look=DISK,
    ),
    Text(
        r"shared memory backing file in a directory that appears to be mounted on a network filesystem",
        causes.FILES,
        SELF,
        "TMPDIR of this node is on a network file system: slow, and no error",
        known=READ,
        versions=BOTH,
        weak=True,
        fix=SHORT_DIRECTORY,
    ),
    Text(
        r"(?:Open MPI|PRTE) tried to bind (?:a new process|memory)|processor binding support is not available"
        r"|request to bind .{0,120}(?:being unbound|could not be completed)"
        r"|failed to bind internal memory to a specific NUMA",
        causes.RESOURCES,
        SELF,
        "processes can't be bound to processors or memory on this node",
        known=READ,
        versions=BOTH,
        weak=True,
        fix=NO_BINDING,
        look="grep -E '(Cpus|Mems)_allowed_list' /proc/self/status",
    ),
    Text(
        r"The call to cu[A-Z]\w+ failed",
        causes.GPU,
        SELF,
        "a call of the CUDA driver failed in Open MPI",
        known=READ,
        versions=BOTH,
        weak=True,
        fix="look up the number that it returned in cuda.h, and look at the kernel's log of this node",
        look="nvidia-smi; dmesg | grep -i -E 'xid|nvrm' | tail",
    ),
    Text(
        r"Signal: Segmentation fault|Caught signal 11 \(Segmentation fault",
        causes.STOPPED,
        SELF,
        "this rank crashed",
        known=REPORTED,
        weak=True,
        fix="look at the stack that it printed: the library in its topmost frames is the one that failed",
    ),
    Text(
        r"noticed that process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal 7\b",
        causes.RESOURCES,
        PEER,
        "that rank ended because a file in memory could not grow: /dev/shm or TMPDIR of that node is full",
        known=READ,
        versions=BOTH,
        weak=True,
        fix="free /dev/shm and TMPDIR on that node, or make /dev/shm larger",
        look=DISK,
    ),
    Text(
        r"noticed that process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal 9\b",
        causes.STOPPED,
        PEER,
        "that rank was killed: by the kernel for want of memory, or by somebody",
        known=READ,
        versions=BOTH,
        weak=True,
        fix="look in the kernel's log of that node whether memory was full when the rank ended",
        look="journalctl -k | grep -i -E 'oom|out of memory' | tail",
    ),
    Text(
        r"noticed that process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal"
        r"|due to process rank (?P<ranks>\d+) with PID \d+ on node (?P<local>\S+) (?:exiting|calling)",
        causes.STOPPED,
        PEER,
        "that rank ended by itself",
        known=READ,
        versions=BOTH,
        weak=True,
        fix=LOG_OF_RANK,
    ),
    Text(
        r"MPI_ABORT was invoked on rank (?P<rank>\d+)"
        r"|with non-zero status, thus causing the job to be terminated(?:.*?Process name: \S+?[],](?P<ranks>\d+)\]? )?",
        causes.STOPPED,
        PEER,
        "that rank ended by itself",
        known=READ,
        versions=BOTH,
        weak=True,
        fix=LOG_OF_RANK,
    ),
    Text(
        r"job terminated normally, but \d+ process|job \S+ terminated normally, but \d+"
        r"|time limit for job execution has been reached|MPI_ERRORS_ARE_FATAL",
        causes.STOPPED,
        NOBODY,
        "a rank ended with an error of its own, or did not end in time",
        known=READ,
        versions=BOTH,
        weak=True,
        fix="look at what the ranks printed before it",
    ),
)

RDMA = (
    Text(
        r"trying to allocate some locked memory|allow registering part of your physical memory"
        r"|A process failed to create a queue pair",
        causes.RESOURCES,
        SELF,
        "memory can't be locked for RDMA: the limit memlock of this user, or of the driver, is too low",
        known=READ,
        versions=FOUR,
        fix="set the limit memlock of the job's user to unlimited, for ssh and systemd too",
        command=fixes.site("kernel_tuning"),
    ),
    Text(
        r"InfiniBand retry count between two MPI processes.*?Peer host: (?P<host>\S+)"
        r"|\"receiver not ready\" retry count.*?Peer host: (?P<local>\S+)",
        causes.RDMA,
        PEER,
        "the RDMA port of that node does not answer any more: link, fabric, or its process",
        known=READ,
        versions=FOUR,
    ),
    Text(
        r"error polling (?:LP|HP) CQ with",
        causes.RDMA,
        NOBODY,
        "an RDMA operation failed: status 12 is retries exceeded (link, fabric), 5 only follows another error",
        known=READ,
        versions=FOUR,
    ),
    Text(
        r"no active ports detected \(or Open MPI was unable to use them\)|failed to (?:open"
        r"|query) an OpenFabrics device"
        r"|OpenFabrics stack has reported an? (?:unknown )?network error event"
        r"|nonexistent OpenFabrics devices/ports were specified",
        causes.RDMA,
        SELF,
        "an RDMA port of this node is down, missing, or can't be opened",
        known=READ,
        versions=FOUR,
    ),
    Text(
        r"GID index that was too large for an OpenFabrics device",
        causes.RDMA,
        SELF,
        "btl_openib_gid_index is none of this port's",
        known=READ,
        versions=FOUR,
        fix="set btl_openib_gid_index to one of the port, or unset it",
        look="ibv_devinfo -v | grep GID",
    ),
    Text(
        r"OpenFabrics devices on two nodes are incompatible|two different OpenFabrics transport types",
        causes.RDMA,
        NOBODY,
        "two nodes have RDMA cards of different kinds",
        known=READ,
        versions=FOUR,
        fix=USE_UCX,
        look="ibv_devinfo",
    ),
    Text(
        r"PSM2 was unable to open an endpoint|Initialization of PSM2 library failed|hfi_userinit|PSM2 can't open hfi",
        causes.RDMA,
        SELF,
        "the Omni-Path port of this node can't be opened: link down, no rights, or all contexts in use",
        known=READ,
        versions=BOTH,
        fix="look at the state of the port and at who uses it; without Omni-Path start with --mca mtl ^psm2",
        look="opainfo; ls -l /dev/hfi1*",
    ),
    Text(
        r"OFI MTL was not able to find endpoint information for a remote.*?Remote host: (?P<host>\S+)",
        causes.RDMA,
        PEER,
        "that node could not start its libfabric card",
        known=READ,
        versions=BOTH[8:],
        fix="run fi_info on that node and compare it with the others",
        look="fi_info",
    ),
    Text(
        r"Open MPI failed an OFI Libfabric library call|Open MPI failed to register your buffer",
        causes.RDMA,
        SELF,
        "libfabric failed on this node",
        known=READ,
        versions=BOTH,
        fix="look at fi_info of this node; without such a card start with --mca mtl ^ofi --mca btl ^ofi",
        look="fi_info",
    ),
    Text(
        r"No preset parameters were found for the device|infiniband ports on a device are not used by default"
        r"|There was an error initializing an OpenFabrics device|No OpenFabrics connection schemes reported"
        r"|unable to find any relevant network interfaces: Module: OpenFabrics|default subnet GID prefix was detected"
        r"|No OpenFabrics devices of the right type",
        causes.RDMA,
        SELF,
        "Open MPI's old driver for RDMA (btl openib) does not use a port of this node: a warning, the job goes on",
        known=READ,
        versions=FOUR,
        weak=True,
        fix=USE_UCX,
        look="ompi_info | grep -E ' (pml|btl):'; ibstat",
    ),
)

TEXTS = (*INTERFACES, *DAEMONS, *CONNECTIONS, *PROGRAM, *RDMA)
