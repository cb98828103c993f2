# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Open MPI 4 and 5 print, and what the table makes of it."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    NOBODY,
    PEER,
    SELF,
)

INVALID = (
    "WARNING: An invalid value was given for {}.  This\nvalue will be ignored.\n\n  Local host: n2\n  Value:      {}\n"
)
CONNECT = (
    "WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\nshould not happen.\n\nYour Open MPI job may "
    "now hang or fail.\n\n  Local host: n1\n  PID:        49\n  Message:    connect() to 192.0.2.12:1026 failed\n"
    "  Error:      {}\n"
)
DROPPED = (
    "Open MPI detected an inbound MPI TCP connection request from a peer\nthat appears to be part of this MPI "
    "job (i.e., "
    "it identified itself as\npart of this Open MPI job), but it is from an IP address that is\nunexpected.  This is "
    "highly unusual.\n\nThe inbound connection has been dropped, and the peer should simply\ntry again with a "
    "different "
    "IP interface (i.e., the job should\nhopefully be able to continue).\n\n  Local host:          n3\n  Local "
    "PID:      "
    "     389375\n  Peer hostname:       n1 ([[19416,1],0])\n  Source IP of socket: 198.18.40.1\n  {}\n\t198.18.50.1\n"
)
UNREACHABLE = (
    "At least one pair of MPI processes are unable to reach each other for\nMPI communications.  This means "
    "that no Open "
    "MPI device has indicated\nthat it can be used to communicate between these processes.\n\n"
    "  Process 1 ([[23172,1],0]) is on host: n1\n  Process 2 ([[23172,1],1]) is on host: n2\n  BTLs attempted: "
    "self tcp\n"
)
REPORT_BACK = (
    "A daemon failed to report back after being spawned. This could\nbe due to several factors, including inability to "
    "find the\ndaemon executable, or the executable was unable to find its\nrequired supporting libraries.\n\n"
    "  Local host:    n1\n  Remote host:   n3\n  Daemon exit status: {}\n\nThis may also be caused by a "
    "firewall on the "
    "remote host.\n"
)
MISMATCH = (
    '{} detected a mismatch in versions between two processes.  This\ntypically means that you executed "mpirun" (or '
    '"mpiexec") from one\nversion of it on on node\n\n  Local host:             n1\n  Local process name:     '
    "[[1,0],0]\n  Peer host:              n2\n  Peer process name:      [[1,0],1]\n"
)
ROUTE = (
    "{} does not know how to route a message to the specified daemon\nlocated on the indicated node:\n\n  my "
    "node:   n1\n"
    "  target node:  n3\n\nThis is usually an internal programming error that should be\nreported to the developers.\n"
)
RELIABLY = (
    "{} was unable to reliably start one or more daemons.\nThis usually is caused by:\n\n* not finding the required"
)
SIGNAL = "mpirun noticed that process rank 3 with PID 4711 on node n2 exited on signal {}."
START = "while attempting to start process rank 2.\n"

RECORDED: list[tuple[str, str, dict[str, tuple[object, ...]]]] = [
    ('[n2][[1,1],1][btl_tcp_component.c:1114:create_instances] invalid interface "eth9"', causes.INTERFACE, {}),
    # Addresses and interfaces.
    (
        INVALID.format("btl_tcp_if_include", "eth9") + "  Message:    Unknown interface name",
        causes.INTERFACE,
        {"interfaces": ("eth9",)},
    ),
    (
        INVALID.format("oob_tcp_if_include", "10.0.2.0/24")
        + "  Message:    Did not find interface matching this subnet",
        causes.INTERFACE,
        {"interfaces": ()},
    ),
    (
        INVALID.format("btl_tcp_if_exclude", "10.0.2/24x") + "  Message:    Invalid specification (inet_pton() failed)",
        causes.INTERFACE,
        {},
    ),
    (INVALID.format("btl_tcp_if_exclude", "eth9") + "  Message:    Unknown interface name", causes.INTERFACE, {}),
    (
        "None of the TCP networks specified to be included for out-of-band communications\ncould be found:\n\n"
        "  Value given: 192.168.7.0/24\n\nPlease revise the specification and try again.",
        causes.INTERFACE,
        {"interfaces": ("192.168.7.0/24",)},
    ),
    (
        "No network interfaces were found for out-of-band communications. We require\nat least one available "
        "network for "
        "out-of-band messaging.",
        causes.INTERFACE,
        {},
    ),
    (
        "The specified list of networks to be excluded for TCP out-of-band communications\nresulted in no "
        "networks being "
        "available:\n\n  Value given: eth0",
        causes.INTERFACE,
        {},
    ),
    ("The specified network is not parseable. Since we cannot determine\nyour desired intent,", causes.INTERFACE, {}),
    ("Both TCP interface include and exclude lists were specified:\n\n  Include: eth0", causes.INTERFACE, {}),
    (
        CONNECT.format("Network is unreachable (101)"),
        causes.INTERFACE,
        {"addresses": ("192.0.2.12",), "ports": (1026,)},
    ),
    (CONNECT.format("Invalid argument (22)"), causes.INTERFACE, {"addresses": ("192.0.2.12",)}),
    (
        "[n1][[30101,1],0][btl_tcp_endpoint.c:795:mca_btl_tcp_endpoint_start_connect] from n1 to: n2 Unable to "
        "connect to "
        "the peer 192.0.2.12 on port 1024: Network is unreachable",
        causes.INTERFACE,
        {"addresses": ("192.0.2.12",), "ports": (1024,)},
    ),
    (
        "[n1][[30101,1],0][btl_tcp_endpoint.c:733:mca_btl_tcp_endpoint_start_connect] bind on local address "
        "(192.0.2.11:0) failed: Cannot assign requested address (99)",
        causes.INTERFACE,
        {"addresses": ("192.0.2.11",)},
    ),
    # Open MPI 4, and 5, which counts the addresses.
    (DROPPED.format("Known IPs of peer:   "), causes.INTERFACE, {"addresses": ("198.18.40.1", "n1", "n3")}),
    (DROPPED.format("Known IPs of peer (1):   "), causes.INTERFACE, {"addresses": ("198.18.40.1", "n1", "n3")}),
    (
        "[n1:28731] 3 more processes have sent help message help-mpi-btl-tcp.txt / dropped inbound connection",
        causes.INTERFACE,
        {},
    ),
    (
        "[n1][[54886,1],0][btl_tcp_endpoint.c:626:mca_btl_tcp_endpoint_recv_connect_ack] received unexpected process "
        "identifier [[54886,1],2]",
        causes.INTERFACE,
        {},
    ),
    (UNREACHABLE, causes.INTERFACE, {"addresses": ("n1", "n2")}),
    (
        "MPI_INIT has failed because at least one MPI process is unreachable\nfrom another.  This *usually* "
        "means that an "
        "underlying communication\nplugin -- such as a BTL or an MTL -- has either not loaded or not\nallowed itself",
        causes.INTERFACE,
        {},
    ),
    (
        "It looks like MPI_INIT failed for some reason; your parallel process is likely to abort.\n\n  PML add procs "
        'failed\n  --> Returned "Unreachable" (-12) instead of "Success" (0)',
        causes.INTERFACE,
        {},
    ),
    # Daemons.
    ("bash: line 1: mpirun: command not found", causes.FILES, {}),
    ("env: prted: No such file or directory", causes.NAMES, {}),
    ("bash: line 1: /opt/openmpi/bin/orted: No such file or directory", causes.NAMES, {}),
    (
        'The rsh PLS component was not able to find the executable "orted" in\nyour PATH or in the directory '
        "where Open "
        "MPI/OpenRTE was initially installed,",
        causes.NAMES,
        {},
    ),
    (
        'The singleton application was not able to find the executable "orted" in\nyour PATH or in the directory',
        causes.NAMES,
        {},
    ),
    ("Open MPI's mpirun command was unable to find an underlying prterun\ncommand to execute.", causes.NAMES, {}),
    (
        'The value of the MCA parameter "plm_rsh_agent" was set to a path\nthat could not be found:\n\n  '
        "plm_rsh_agent: "
        "ssh : rsh",
        causes.SSH,
        {},
    ),
    (MISMATCH.format("PRTE"), causes.VERSIONS, {"addresses": ("n2",)}),
    (MISMATCH.format("Open MPI"), causes.VERSIONS, {"addresses": ("n2",)}),
    ("PRTE did not receive version information when connecting between two\nprocesses.", causes.VERSIONS, {}),
    ("[n1:1] [[1,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file", causes.VERSIONS, {}),
    ("[n1:20121] PMIX ERROR: UNPACK-INADEQUATE-SPACE in file", causes.VERSIONS, {}),
    (
        "A compressed message was received by the Open MPI run time system\n(PMIx) that could not be "
        "decompressed.  This "
        "means\n\n  node without compression support:  n2\n",
        causes.VERSIONS,
        {"addresses": ("n2",)},
    ),
    ("A version of PMIx was detected that is too old:\n\n  Version:      2.1", causes.VERSIONS, {}),
    (
        'The application appears to have been direct launched using "srun",\nbut OMPI was not built with SLURM\'s PMI '
        "support and therefore cannot\nexecute.",
        causes.VERSIONS,
        {},
    ),
    (
        'The application appears to have been direct launched using "srun",\nbut OMPI was not built with SLURM '
        "support.",
        causes.VERSIONS,
        {},
    ),
    ("PMIx_Init failed for the following reason:\n\n  PMIX_ERR_UNREACH\n\nOpen MPI requires", causes.VERSIONS, {}),
    ("srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files", causes.VERSIONS, {}),
    (
        "No PMIx server was reachable, but a PMI1/2 was detected.\nIf srun is being used to launch application,  4 "
        "singletons will be started.",
        causes.DISAGREE,
        {},
    ),
    (
        "ORTE is unable to establish a communication connection to the\nspecified daemon located on the "
        "indicated node:\n"
        "\n  my node:   n1\n  target node:  n3\n\nThis is usually due to a lack of common network interfaces",
        causes.BLOCKED,
        {"addresses": ("n3", "n1")},
    ),
    ("No sockets were able to be opened on the available protocols\n(IPv4 and/or IPv6).", causes.PORT, {}),
    (
        "While attempting to build a map of this job, a node\nwas detected to be missing a daemon:\n\n  Node:  "
        "n2\n\nThis "
        "usually indicates a mismatch between what the\nallocation provided for the node name versus what "
        "was\nactually",
        causes.NAMES,
        {},
    ),
    ("A daemon has no recorded node:\n\n  Daemon:  [[1,0],2]\n  Reported from nodename:  n3", causes.NAMES, {}),
    ("The user (1007) is unknown to the system (i.e. there is no corresponding\nentry", causes.FILES, {}),
    (REPORT_BACK.format(127), causes.NAMES, {"addresses": ("n3",)}),
    (REPORT_BACK.format(255), causes.STOPPED, {"addresses": ()}),
    ("A daemon (pid 17112) died unexpectedly with status 127 while attempting\nto launch so we", causes.NAMES, {}),
    ("A daemon died unexpectedly with status 255 while attempting\nto launch so we are aborting.", causes.STOPPED, {}),
    ("A daemon died unexpectedly on signal 11 (with core) while\nattempting to launch", causes.STOPPED, {}),
    ("An PRTE daemon has unexpectedly failed after launch and before\ncommunicating", causes.STOPPED, {}),
    (RELIABLY.format("ORTE"), causes.STOPPED, {"addresses": ()}),
    (RELIABLY.format("prterun"), causes.STOPPED, {"addresses": ()}),
    (ROUTE.format("ORTE"), causes.STOPPED, {"addresses": ()}),
    (ROUTE.format("PRTE"), causes.STOPPED, {"addresses": ()}),
    (
        "An attempt was made to send a message to a process whose\naddress is unknown:\n\n  Sender:     [[1,0],0]",
        causes.STOPPED,
        {"addresses": ()},
    ),
    # Connections of the BTL.
    (CONNECT.format("No route to host (113)"), causes.BLOCKED, {"addresses": ("192.0.2.12",), "ports": (1026,)}),
    # No limit of processes: EAGAIN of connect().
    (CONNECT.format("Resource temporarily unavailable (11)"), causes.BLOCKED, {"addresses": ("192.0.2.12",)}),
    (
        CONNECT.replace("192.0.2.12:", "2001:db8::12:").format("Connection refused (111)"),
        causes.BLOCKED,
        {"addresses": ("2001:db8::12",), "ports": (1026,)},
    ),
    (
        "from n1 to: n2 Unable to connect to the peer 192.0.2.12 on port 1024: Connection refused",
        causes.BLOCKED,
        {"addresses": ("192.0.2.12",), "ports": (1024,)},
    ),
    (
        "[n1][[1,1],0][btl_tcp_endpoint.c:818:mca_btl_tcp_endpoint_complete_connect] connect() to 192.0.2.12 "
        "failed: No "
        "route to host (113)",
        causes.BLOCKED,
        {"addresses": ("192.0.2.12",)},
    ),
    (
        "[n1][[1,1],0][btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv failed: "
        "Connection reset by "
        "peer (104)",
        causes.STOPPED,
        {},
    ),
    ("[n2][[1,1],3][btl_tcp.c:559:mca_btl_tcp_recv_blocking] recv(17) failed: Connection reset", causes.STOPPED, {}),
    ("  Message:    did not receive entire connect ACK from peer", causes.STOPPED, {}),
    (
        "WARNING: Open MPI accepted a TCP connection from what appears to be a\nanother Open MPI process but "
        "cannot find "
        "a corresponding process\nentry for that peer.",
        causes.PORT,
        {},
    ),
    (
        "WARNING: Open MPI accepted a TCP connection but did not receive the\nexpected network identification "
        "indicating "
        "that the peer is an Open\nMPI process.",
        causes.PORT,
        {},
    ),
    ("bind() failed: no port available in the range [61000..61063]", causes.PORT, {}),
    (
        "WARNING: An invalid value was given for the btl_tcp_port_min_v4. Legal\nvalues are in the range",
        causes.PORT,
        {},
    ),
    # The program and its nodes.
    (
        "This installation of Open MPI was configured without support for\nheterogeneous architectures, but at "
        "least one "
        "node in the allocation\nwas detected to have a different architecture. The detected node was:\n\nNode: n4",
        causes.VERSIONS,
        {"addresses": ("n4",)},
    ),
    (
        "A requested component was not found, or was unable to be opened.  This\nmeans that this component is "
        "either not "
        "installed\n\nHost:      n2\nFramework: pml\nComponent: ucx",
        causes.VERSIONS,
        {},
    ),
    ("No components were able to be opened in the pml framework.", causes.VERSIONS, {}),
    ("[n2:04711] PML ucx cannot be selected", causes.VERSIONS, {}),
    (
        "[n1:04711] [[27661,1],0] selected pml ob1, but peer [[27661,1],1] on n2 selected pml ucx",
        causes.RDMA,
        {"addresses": ("n2",)},
    ),
    (
        "There are not enough slots available in the system to satisfy the 8\nslots that were requested by the "
        "application:\n\n  train",
        causes.DISAGREE,
        {},
    ),
    (
        "Either there are not enough slots available in the system to launch\nthe 8 processes that were "
        "requested by the "
        "application, or there are\nnot enough CPUs to bind them as requested:",
        causes.DISAGREE,
        {},
    ),
    ("All nodes which are allocated for this job are already filled.", causes.DISAGREE, {}),
    ("The requested number of processes exceeds the allocated\nnumber of slots:", causes.DISAGREE, {}),
    (
        "A request was made to bind to that would result in binding more\nprocesses than cpus on a "
        "resource:\n\n   Bind "
        "to:     CORE\n   Node:        n1",
        causes.DISAGREE,
        {},
    ),
    (
        "At least one of the requested hosts is not included in the current allocation.\n\nMissing requested "
        "host: n9\n",
        causes.DISAGREE,
        {"addresses": ("n9",)},
    ),
    (
        "A hostfile was provided that contains at least one node not\npresent in the allocation:\n\n  hostfile: "
        " hosts\n"
        "  node:      n9\n",
        causes.DISAGREE,
        {"addresses": ("n9",)},
    ),
    ("Open RTE was unable to open the hostfile:\n    hosts\nCheck to make sure the path", causes.FILES, {}),
    ("PRTE was unable to open the hostfile:\n\n   hosts\n", causes.FILES, {}),
    (
        "mpirun was unable to launch the specified application as it could not\nchange to the specified working "
        "directory:\n\nWorking directory: /data/job\nNode: n2\n\n" + START,
        causes.FILES,
        {"addresses": ("n2",)},
    ),
    (
        "prterun was unable to launch the specified application as it could not find\nthe specified working "
        "directory:\n\n"
        "   Working directory: /data/job\n   Node: n2\n\n" + START,
        causes.FILES,
        {"addresses": ("n2",)},
    ),
    (
        "mpirun was unable to find the specified executable file, and therefore\ndid not launch the job.  This "
        "error was "
        "first reported for process\nrank 0; it may have occurred for other processes as well.\n\nNode:       n2\n"
        "Executable: ./train",
        causes.FILES,
        {"addresses": ("n2",)},
    ),
    (
        "mpirun was unable to launch the specified application as it could not access\nor execute an executable:\n\n"
        "Executable: ./train\nNode: n2\n\n" + START,
        causes.FILES,
        {"addresses": ("n2",)},
    ),
    (
        "prterun was unable to launch the specified application as it could not\naccess an executable:\n\n   "
        "Executable: "
        "./train\n   Node: n2\n\n" + START,
        causes.FILES,
        {"addresses": ("n2",)},
    ),
    (
        'Open MPI tried to fork a new process via the "execve" system call but\nfailed.\n\n  Local host:        n2\n'
        "  Working dir:       /data\n  Application name:  /data\n  Error:             Permission denied",
        causes.FILES,
        {"addresses": ("n2",)},
    ),
    (
        "mpirun was unable to launch the specified application as it encountered an error:\n\nError: system limit "
        "exceeded on number of pipes that can be open\nNode: n2\n\nwhen attempting to start process rank 12.",
        causes.RESOURCES,
        {"addresses": ("n2",)},
    ),
    (
        "WARNING: The accept(3) system call failed on a TCP socket.  While this\nshould generally never "
        "happen\n\n  * The "
        "operating system ran out of memory\n\n  Errno:      24 (Too many open files)",
        causes.RESOURCES,
        {},
    ),
    ("[n2:05662] PMIX ERROR: PMIX_ERR_OUT_OF_RESOURCE in file dstore_segment.c", causes.RESOURCES, {}),
    (
        "It appears as if there is not enough space for /tmp/ompi.n1.1000/jf.0/1/shared_mem.n1 (the shared-memory "
        "backing\nfile). It is likely that your MPI job will now either abort",
        causes.RESOURCES,
        {},
    ),
    ("[n2:04711] Signal: Bus error (7)", causes.RESOURCES, {}),
    (
        "[n2:4711 :0:4711] Caught signal 7 (Bus error: nonexistent physical address)",
        causes.RESOURCES,
        {},
    ),
    (
        "A call to mkdir was unable to create the desired directory:\n\n  Directory: /scratch/ompi.n2.1007\n  "
        "Error:     "
        "Permission denied\n",
        causes.FILES,
        {},
    ),
    (
        "A call to mkdir was unable to create the desired directory:\n\n  Directory: /scratch/ompi.n2.1007\n  "
        "Error:     "
        "No space left on device\n",
        causes.RESOURCES,
        {},
    ),
    (
        "The call to pmix_init_server() failed. This may be due to your\nsystem's restriction for Unix's socket's "
        "path-length.",
        causes.FILES,
        {},
    ),
    ("mpirun has detected an attempt to run as root.\n\nRunning as root is *strongly* discouraged", causes.FILES, {}),
    ("prterun has detected an attempt to run as root.", causes.FILES, {}),
    ("[n1:04711] *** MPI_ERR_TRUNCATE: message truncated", causes.DISAGREE, {}),
    ("Read -1, expected 32768, errno = 1", causes.RESOURCES, {}),
    ("[n1:04711] CMA read -1, expected 32768, errno = 1", causes.RESOURCES, {}),
    (
        "ERROR: Linux kernel CMA support was requested via the\nbtl_vader_single_copy_mechanism MCA variable, but CMA "
        "support is\nnot available due to different user namespaces.",
        causes.RESOURCES,
        {},
    ),
    (
        "WARNING: Linux kernel CMA support was requested via the\nbtl_vader_single_copy_mechanism MCA variable, "
        "but CMA "
        "support is\nnot available due to restrictive ptrace settings.",
        causes.RESOURCES,
        {},
    ),
    (
        "A system call failed during shared memory initialization that should\nnot have.\n\n  System call: unlink(2) "
        "/tmp/ompi.n1/vader_segment.n1.1\n  Error:       No such file or directory (errno 2)",
        causes.RESOURCES,
        {},
    ),
    (
        "WARNING: Open MPI will create a shared memory backing file in a\ndirectory that appears to be mounted on a "
        "network filesystem.",
        causes.FILES,
        {},
    ),
    ("PRTE tried to bind a new process, but something went wrong.", causes.RESOURCES, {}),
    (
        "A request to bind the processes to a core was made, but the operation\nresulted in the processes being "
        "unbound.",
        causes.RESOURCES,
        {},
    ),
    (
        "The library attempted to open the following supporting CUDA libraries,\nbut each of them failed.  CUDA-aware "
        "support is disabled.\nlibcuda.so.1: cannot open shared object file: No such file or directory",
        causes.GPU,
        {},
    ),
    ("The call to cuIpcOpenMemHandle failed. This is an unrecoverable error", causes.GPU, {}),
    (SIGNAL.format("7 (Bus error)"), causes.RESOURCES, {"addresses": ("n2",), "ranks": (3,)}),
    (SIGNAL.format("9 (Killed)"), causes.STOPPED, {"addresses": ("n2",), "ranks": (3,)}),
    (SIGNAL.format("6 (Aborted)"), causes.STOPPED, {"addresses": ("n2",), "ranks": (3,)}),
    (
        "mpirun has exited due to process rank 1 with PID 4711 on\nnode n2 exiting improperly.",
        causes.STOPPED,
        {"addresses": ("n2",), "ranks": (1,)},
    ),
    ("MPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD", causes.STOPPED, {"ranks": (5,)}),
    (
        "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be "
        "terminated. "
        "The first process to do so was:\n\n  Process name: [[45551,1],3]\n  Exit code:    1\n",
        causes.STOPPED,
        {"ranks": (3,)},
    ),
    (
        "prterun detected that one or more processes exited with non-zero status,\nthus causing the job to be "
        "terminated. "
        "The first process to do so was:\n\n   Process name: [prterun-n1-4711@1,3]\n   Exit code:    1\n",
        causes.STOPPED,
        {"ranks": (3,)},
    ),
    ("Primary job  terminated normally, but 1 process returned\na non-zero exit code.", causes.STOPPED, {}),
    ("[n1:04711] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,", causes.STOPPED, {}),
    ("[n2:04711] Signal: Segmentation fault (11)", causes.STOPPED, {}),
    # RDMA.
    (
        "The OpenFabrics (openib) BTL failed to initialize while trying to\nallocate some locked memory.  This "
        "typically "
        "can indicate that the\nmemlock limits are set too low.",
        causes.RESOURCES,
        {},
    ),
    (
        "WARNING: It appears that your OpenFabrics subsystem is configured to only\nallow registering part of your "
        "physical memory.",
        causes.RESOURCES,
        {},
    ),
    (
        "The InfiniBand retry count between two MPI processes has been\nexceeded.\n\n  Local host:   n1\n  "
        "Local device: "
        "mlx5_0\n  Peer host:    n2\n",
        causes.RDMA,
        {"addresses": ("n2",)},
    ),
    (
        'The OpenFabrics "receiver not ready" retry count on a per-peer\nconnection between two MPI processes has been '
        "exceeded.\n\n  Local host:   n1\n  Local device: mlx5_0\n  Peer host:    n2\n",
        causes.RDMA,
        {"addresses": ("n2",)},
    ),
    (
        "[[24733,1],0][btl_openib_component.c:3685:handle_wc] from n1 to: n2 error polling LP CQ with status RETRY "
        "EXCEEDED ERROR status number 12 for wr_id 0 opcode 0  vendor error 129 qp_idx 0",
        causes.RDMA,
        {},
    ),
    (
        "WARNING: There is at least non-excluded one OpenFabrics device found,\nbut there are no active ports detected "
        "(or Open MPI was unable to use\nthem).",
        causes.RDMA,
        {},
    ),
    ("The OpenFabrics stack has reported an unknown network error event.", causes.RDMA, {}),
    (
        "Open MPI tried to use a GID index that was too large for an\nOpenFabrics device (i.e., the GID index does not "
        "exist",
        causes.RDMA,
        {},
    ),
    (
        "The Open MPI receive queue configuration for the OpenFabrics devices\non two nodes are incompatible",
        causes.RDMA,
        {},
    ),
    ("PSM2 was unable to open an endpoint. Please make sure that the network link is\nactive", causes.RDMA, {}),
    (
        "The OFI MTL was not able to find endpoint information for a remote\nendpoint.\n\n  Local host: n1\n  "
        "Remote host: "
        "n2\n",
        causes.RDMA,
        {"addresses": ("n2",)},
    ),
    ("Open MPI failed an OFI Libfabric library call (fi_endpoint).  This is highly\nunusual", causes.RDMA, {}),
    ("WARNING: No preset parameters were found for the device that Open MPI\ndetected:", causes.RDMA, {}),
    (
        "By default, for Open MPI 4.0 and later, infiniband ports on a device\nare not used by default.  The "
        "intent is to "
        "use UCX for these devices.",
        causes.RDMA,
        {},
    ),
    (
        "[[1,1],0]: A high-performance Open MPI point-to-point messaging module\nwas unable to find any "
        "relevant network "
        "interfaces:\n\nModule: OpenFabrics (openib)\n  Host: n1",
        causes.RDMA,
        {},
    ),
]


@pytest.mark.parametrize(("text", "cause", "names"), RECORDED)
def test_a_recorded_text_leads_to_its_cause(text: str, cause: str, names: dict[str, tuple[object, ...]]) -> None:
    found = lookup.match(text)
    assert found is not None and found.id == cause, found
    for field, value in names.items():
        assert getattr(found.names, field) == value, found.names


@pytest.mark.parametrize(
    ("text", "about", "weak"),
    [
        (ROUTE.format("ORTE"), NOBODY, True),
        (RELIABLY.format("prterun"), NOBODY, True),
        (REPORT_BACK.format(127), PEER, False),
        (REPORT_BACK.format(255), NOBODY, True),
        (SIGNAL.format("9 (Killed)"), PEER, True),
        (CONNECT.format("No route to host (113)"), PEER, False),
        (CONNECT.format("Network is unreachable (101)"), SELF, False),
    ],
)
def test_whom_a_text_accuses_and_whether_it_only_follows(text: str, about: str, weak: bool) -> None:
    found = lookup.match(text)
    assert found is not None and (found.text.about, found.text.weak) == (about, weak)


@pytest.mark.parametrize(
    "text",
    [
        "bash: orted: command not found",
        RELIABLY.format("ORTE"),
        ROUTE.format("ORTE"),
        "mpirun has detected an attempt to run as root.",
        UNREACHABLE,
        DROPPED.format("Known IPs of peer:   "),
    ],
)
def test_no_role_is_named_that_changes_nothing(text: str) -> None:
    found = lookup.match(text)
    assert found is not None
    assert not any(tag in found.command for tag in ("cluster_hosts", "cluster_firewall", "static_network", "ssh_mesh"))


@pytest.mark.parametrize(
    "text",
    [
        "App launch reported: 3 (out of 3) daemons - 4 (out of 4) procs",
        "[n1:04711] MCW rank 0 bound to socket 0[core 0[hwt 0]]: [B/.]",
        "NOTE: You can turn off this warning by setting the MCA parameter",
        '[n1:28731] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages',
        "Hello from rank 1 of 4 on node n2",
        "job-terminated normally",
    ],
)
def test_a_line_that_says_nothing_is_not_explained(text: str) -> None:
    assert lookup.match(text) is None
