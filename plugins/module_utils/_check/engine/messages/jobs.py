# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What launchers of jobs print: torchrun, Horovod, Slurm, and Python itself.

torchrun's texts were read in PyTorch 1.13.1 to 2.14.1, Horovod's in 0.13.0 to 0.28.1, Slurm's in 19.05 to 26.05.  Pure.
"""

from __future__ import annotations

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

#: What of a job was killed for want of memory.
OOM = "journalctl -k | grep -i -e oom-kill -e 'out of memory'"
#: What Slurm knows of a job.
ACCOUNT = "sacct -j JOB -o JobID,State,ExitCode,NodeList,ReqMem,MaxRSS,Timelimit,Elapsed"
#: For the members of etcd that role ``etcd`` runs, on each of them.
ETCD = (
    "start etcd on its members, or run site.yml with --tags etcd; if it runs on most of them, see whether they reach "
    "each other"
)
ETCD_STATUS = "systemctl status gpu-cluster-etcd"
#: ``srun: error: n2: task 3: ...``; several nodes are written ``n[1-3]``, and named by no group then.
TASK = r"srun: error: (?:(?P<host>[\w.-]+)|[^\s:]+): tasks? [\d,-]+: "
#: A shell at the beginning of what it says, with the line of its script.
SHELL = r"(?:\b(?:ba|da|k)?sh|slurm_script): (?:(?:line )?\d+: )?(?!\S*(?:orted|prted|ssh)\b)"

PYTHON = (
    Text(
        r"No module named '?encodings|Fatal Python error: (?:init|Py_Initialize|Failed to import encodings)",
        causes.PYTORCH,
        SELF,
        "Python does not find its own library: PYTHONHOME is set, or the environment is damaged or not on this node",
        known=REPORTED,
        fix="unset PYTHONHOME and PYTHONPATH, and look whether the environment is at the same path on this node",
        look="env | grep PYTHON; ls -l $(which python)",
    ),
    Text(
        r"No module named '?(?:torchvision|torchaudio|triton|numpy|nvidia|apex|flash_attn|deepspeed|transformers"
        r"|accelerate"
        r"|horovod|xformers|bitsandbytes|datasets|lightning|megatron)\b",
        causes.PYTORCH,
        SELF,
        "a package of the job is not installed for the Python that runs on this node",
        fix="install that package in the environment of this node, or start the job with the Python that has it",
        look="which python; python -m pip list",
    ),
    Text(
        r"(?:ModuleNotFoundError|ImportError): No module named|python[\d.]*: No module named",
        causes.FILES,
        SELF,
        "a module of the job is not found on this node: its folder is not there, not in PYTHONPATH, or it is not "
        "installed",
        fix="give this node the module at the path that the other nodes have, or install it in the environment there",
        look="python -c 'import sys; print(sys.path)'",
    ),
    Text(
        r"ImportError: cannot import name '",
        causes.VERSIONS,
        SELF,
        "a package of this node is of another release than the program expects",
        known=REPORTED,
        fix="install the same releases of the packages on this node as on those where it works",
        look="python -m pip list",
    ),
    Text(
        r"partially initialized module '",
        causes.FILES,
        SELF,
        "a file of the job has the name of a package, and is imported in its place",
        known=REPORTED,
        fix="rename the file of the job that has the name of that package",
    ),
    Text(
        r"can't open file '|FileNotFoundError: \[Errno 2\]|NotADirectoryError: \[Errno 20\]",
        causes.FILES,
        SELF,
        "a file or folder that the job needs is not on this node",
        fix="give this node the file at the same path, or mount the file system that holds it (findmnt)",
        look="findmnt; ls -ld FOLDER",
    ),
    Text(
        r"Stale (?:NFS )?file handle|\[Errno 116\]",
        causes.FILES,
        SELF,
        "the file server no longer knows a file that this node has open: it was removed elsewhere, or the server "
        "changed",
        known=REPORTED,
        fix="mount that file system again on this node, and start the job again",
        look="findmnt -t nfs,nfs4",
    ),
    Text(
        r"Transport endpoint is not connected: '|Cannot send after transport endpoint shutdown|\[Errno 108\]",
        causes.FILES,
        SELF,
        "this node has lost its file server",
        known=REPORTED,
        fix="mount that file system again on this node, and look at its network and at the file server",
        look="findmnt; dmesg | tail -50",
    ),
    Text(
        r"Read-only file system|\[Errno 30\]",
        causes.FILES,
        SELF,
        "the file system may not be written on this node: it is mounted read-only, or the kernel made it so after an "
        "error",
        known=REPORTED,
        fix="look in the kernel log why it is read-only, then mount it for writing, or let the job write elsewhere",
        look="findmnt -O ro; dmesg | grep -i -e remount -e 'I/O error'",
    ),
    Text(
        r"Disk quota exceeded|\[Errno 122\]",
        causes.RESOURCES,
        SELF,
        "the user's quota on that file system is used up",
        known=REPORTED,
        fix="remove files of this user there, or raise the quota",
        look="quota -s",
    ),
    Text(
        r"OSError: \[Errno 5\]|: Input/output error",
        causes.FILES,
        SELF,
        "a disk or a file server of this node failed",
        known=REPORTED,
        fix="look at the kernel log of this node: a disk, or the connection to the file server",
        look="dmesg | grep -i -e 'I/O error' -e nfs -e nvme | tail",
    ),
    Text(
        r"PermissionError: \[Errno 13\] Permission denied: ",
        causes.FILES,
        SELF,
        "the job's user may not read or write that file or folder on this node",
        fix="give the job's user the right to it (owner, mode, number of the user on this node, SELinux label)",
        look="id; namei -l FILE; ls -lZ FILE",
    ),
    Text(
        rf"{SHELL}[^\s:]+: Permission denied|{SHELL}[^\s:]+: cannot execute|execve\(\): [^:]+: Permission denied",
        causes.FILES,
        SELF,
        "the job's script may not be executed on this node: its mode, or a file system that is mounted noexec",
        known=REPORTED,
        fix="make the script executable (chmod +x), or start it through its interpreter; look for noexec",
        look="ls -l FILE; findmnt -T FILE",
    ),
    Text(
        r"bad interpreter|Exec format error|execve\(\): [^:]+: No such file or directory|couldn't chdir to"
        r"|launch failed: Slurmd could not (?:chdir|execve)",
        causes.FILES,
        SELF,
        "the program, its interpreter or the working folder is not on this node, or is for other processors",
        known=READ,
        fix="give this node the program and the working folder at the same path, or mount the file system that holds "
        "them",
        look="findmnt; file PROGRAM",
    ),
    Text(
        r"\b(?:torchrun|python3?|accelerate|deepspeed|horovodrun): (?:command )?not found",
        causes.PYTORCH,
        SELF,
        "the environment of PyTorch is not in the PATH here: a shell without terminal reads no .bashrc",
        known=REPORTED,
        fix="start the program by its full path, or activate the environment in the script of the job",
        look="which python torchrun; echo $PATH",
    ),
    Text(
        r"executable file not found in \$PATH|/env: .(?:python3?|torchrun).: No such file or directory",
        causes.PYTORCH,
        SELF,
        "the program is not in the PATH here: the environment is not active, or the container has it not",
        known=REPORTED,
        fix="start the program by its full path, or activate the environment in the script of the job",
        look="echo $PATH",
    ),
    Text(
        r"\bcd: [^:]+: No such file or directory|Could not open std(?:out|err|in) file|Unable to create TMPDIR \[",
        causes.FILES,
        SELF,
        "the job's folder is not on this node, or its user may not write there",
        known=REPORTED,
        fix="make the folder on this node at the same path, with the job's user as owner, or mount what holds it",
        look="findmnt; namei -l FOLDER",
    ),
    Text(
        r"LocalEntryNotFoundError|couldn't connect to 'https://huggingface|does not appear to have a file named",
        causes.FILES,
        SELF,
        "a model or data set is not in this node's cache, and the node does not reach where it comes from",
        known=REPORTED,
        fix="load it beforehand into a folder that all nodes have, and give the job HF_HOME there with "
        "HF_HUB_OFFLINE=1",
        look="env | grep -e ^HF_ -e PROXY -i",
    ),
    Text(
        r"\[Errno 99\] Cannot assign requested address",
        causes.INTERFACE,
        SELF,
        "the program uses an address that this node does not have",
        known=REPORTED,
        fix="give it an address of this node's data network, or let it listen at all addresses",
        look="ip -br address",
    ),
    Text(
        r"PytorchStreamReader failed|EOFError: Ran out of input|unexpected EOF, expected \d+ more bytes"
        r"|invalid header or archive is corrupted"
        r"|SafetensorError: |MetadataIncompleteBuffer|HeaderTooLarge|_pickle\.UnpicklingError",
        causes.FILES,
        SELF,
        "a checkpoint or file of data is cut short or damaged on this node",
        known=REPORTED,
        fix="compare that file's size and sum on the nodes, and copy it again",
        look="ls -l FILE; sha256sum FILE",
    ),
    Text(
        r"Fatal Python error: Bus error|line \d+: \d+ Bus error\b|^Bus error\b",
        causes.RESOURCES,
        SELF,
        "the process touched memory that is backed by nothing: /dev/shm is full, or a file that it maps was cut short",
        fix="make room in /dev/shm (a container: --shm-size or --ipc=host), and look at files that the job maps",
        look=DISK,
    ),
    Text(
        r"(?<!bind failed: )(?<!bind failed : )Address already in use",
        causes.PORT,
        SELF,
        "a port is taken on this node",
        look="ss -ltnp",
        fix="end the program that holds it, or give this job another port (MASTER_PORT, --rdzv-endpoint)",
    ),
    Text(
        r"PermissionError: \[Errno 1",
        causes.FILES,
        SELF,
        "the kernel refused something to the job's user; the lines above tell what",
        fix="read in the lines above what was refused: a file, a device, or a port below 1024",
        look="id",
        weak=True,
    ),
    Text(
        r"Fatal Python error: Segmentation fault|line \d+: \d+ Segmentation fault\b|^Segmentation fault\b",
        causes.PYTORCH,
        SELF,
        "a library of this process broke; the stack below that line names it",
        fix="read the first lines of the stack below, and compare the releases of that library with the other nodes'",
        look="python -m pip list; journalctl -k | grep segfault",
        weak=True,
    ),
    Text(
        r"Fatal Python error: Aborted|line \d+: \d+ Aborted\b|^Aborted\b",
        causes.STOPPED,
        NOBODY,
        "a library ended this process; its reason stands above",
        fix="read what this process printed before: that is the reason",
        weak=True,
    ),
    Text(
        r"Fatal Python error: ",
        causes.STOPPED,
        NOBODY,
        "Python ended this process; the reason is in that line and above",
        known=REPORTED,
        fix="read what this process printed before, and the stack below",
        weak=True,
    ),
    Text(
        r"^Killed$|line \d+: \d+ Killed\b",
        causes.RESOURCES,
        SELF,
        "the process was killed from outside, mostly by the kernel because the memory was full",
        known=REPORTED,
        fix="look for oom-kill in the kernel log of that node; if there is none, somebody or the launcher killed it",
        look=OOM,
        weak=True,
    ),
)

TORCHRUN = (
    Text(
        r"local_rank \d+ exceeds available GPUs in CUDA_VISIBLE_DEVICES=",
        causes.DISAGREE,
        SELF,
        "torchrun is to start more ranks on this node than it may see GPUs",
        known=READ,
        fix="set --nproc-per-node to the number of GPUs that CUDA_VISIBLE_DEVICES names on this node",
        look="nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES",
    ),
    Text(
        r"uninterruptible (?:sleep|kernel sleep)",
        causes.GPU,
        SELF,
        "a process of this node hangs in the kernel: a driver, the GPU, the network card or a file system",
        known=READ,
        fix="look at where the kernel holds it and at its log; most often only a reboot of this node helps",
        look="cat /proc/PID/stack; dmesg | tail -50",
    ),
    Text(
        r"(?:hostname|port number) of the rendezvous endpoint '",
        causes.NAMES,
        SELF,
        "--rdzv-endpoint is no name or address with a port",
        known=READ,
        fix="write --rdzv-endpoint as HOST:PORT, with a host that all nodes resolve",
    ),
    Text(
        r"got signal: (?:1|Signals\.SIGHUP)\b|Received (?:1|Signals\.SIGHUP) death signal",
        causes.STOPPED,
        SELF,
        "the terminal or ssh session that started torchrun was closed",
        known=READ,
        fix="start it in tmux, with nohup or as a unit of systemd, so that it outlives the session",
    ),
    Text(
        r"RendezvousTimeoutError",
        causes.STOPPED,
        PEER,
        "fewer nodes than --nnodes started torchrun in time",
        known=READ,
        fix="start torchrun on every node with the same --nnodes, --rdzv-id and --rdzv-endpoint, and look which one "
        "is missing",
    ),
    Text(
        r"exitcode ?: -7\b|Signal 7 \(SIGBUS\)|terminated with signal SIGBUS",
        causes.RESOURCES,
        SELF,
        "a rank touched memory that is backed by nothing: /dev/shm is full, or a file that it maps was cut short",
        known=READ,
        fix="make room in /dev/shm (a container: --shm-size or --ipc=host), and look at files that the job maps",
        look=DISK,
    ),
    Text(
        r"exitcode ?: -9\b|Signal 9 \(SIGKILL\)|terminated with signal SIGKILL",
        causes.RESOURCES,
        SELF,
        "a rank was killed from outside, mostly by the kernel because the memory was full",
        known=READ,
        fix="look for oom-kill in the kernel log of this node; if there is none, somebody killed it",
        look=OOM,
    ),
    Text(
        r"exitcode ?: -4\b|Signal 4 \(SIGILL\)|terminated with signal SIGILL",
        causes.PYTORCH,
        SELF,
        "a library was built for other processors than those of this node",
        known=READ,
        fix="install a build for the processors of this node (lscpu), or keep the job off it",
        look="lscpu",
    ),
    Text(
        r"exitcode ?: -11\b|Signal 11 \(SIGSEGV\)|terminated with signal SIGSEGV",
        causes.PYTORCH,
        SELF,
        "a library of a rank broke",
        known=READ,
        fix="start with PYTHONFAULTHANDLER=1 for the stack, and compare the releases of its libraries with the other "
        "nodes'",
        look="journalctl -k | grep segfault",
        weak=True,
    ),
    Text(
        r"no member of etcd (?:answered for|accepts the connection|answers for a majority)",
        causes.STOPPED,
        NOBODY,
        "most members of etcd, which holds the rendezvous, are down or are not reached",
        fix=ETCD,
        look=ETCD_STATUS,
    ),
    Text(
        r"(?<![\w.:])\[?(?P<address>[0-9a-f.:]+?)\]?:(?P<port>2379): Connection refused",
        causes.STOPPED,
        PEER,
        "etcd has ended on that node: nothing listens at its port",
        fix=ETCD,
        look=ETCD_STATUS,
    ),
    Text(
        r"The connection to the C10d store has failed|RendezvousConnectionError",
        causes.STOPPED,
        PEER,
        "torchrun has no connection to the node of --rdzv-endpoint: torchrun does not run there any more, or is not "
        "reached",
        known=READ,
        fix="look whether torchrun runs on the node of --rdzv-endpoint and listens there (ss -ltn), then at what is "
        "between",
        look="ss -ltnp",
        weak=True,
    ),
    Text(
        r"RendezvousClosedError|RendezvousGracefulExitError|has failed to (?:shutdown"
        r"|send a keep-alive heartbeat to) the rendezv"
        r"|Error waiting on exit barrier",
        causes.STOPPED,
        PEER,
        "torchrun of another node ended first",
        known=READ,
        fix="look for the first error in the logs of the other nodes; use a new --rdzv-id for a new start",
        weak=True,
    ),
    Text(
        r"got signal: \d+|Received \S+ death signal|Signal \d+ \(SIG\w+\) received by PID|terminated with signal SIG"
        r"|exitcode ?: -\d+",
        causes.STOPPED,
        NOBODY,
        "this process was ended by a signal: by another one's end, by the launcher or by somebody",
        known=READ,
        fix="look for what ended first: an error of another rank, the limit of the job, or who sent the signal",
        weak=True,
    ),
    Text(
        r"ChildFailedError|failed \(exitcode: \d+\) local_rank|terminated with exit code \d+"
        r"|Root Cause \(first observed failure\)",
        causes.STOPPED,
        NOBODY,
        "a rank of this node ended with an error, which it printed itself",
        known=READ,
        fix="read the rank's own error, above in this log or in its file (--log-dir, --redirects)",
        weak=True,
    ),
)

HOROVOD = (
    Text(
        r"No available network interface found matching user provided interface: (?:\{|\[)?'?(?P<interface>[\w.@-]*)",
        causes.INTERFACE,
        SELF,
        "this node has no interface of the name that Horovod is given",
        known=READ,
        fix="give horovodrun --network-interfaces with the names of the data network's interface on all nodes",
        look="ip -br address",
    ),
    Text(
        r"Neither MPI nor Gloo support has been built|(?:Gloo|MPI) support has not been built|Gloo support is required"
        r"|Extension horovod\.\w+ has not been built",
        causes.PYTORCH,
        SELF,
        "this Horovod was built without what the job needs",
        known=READ,
        fix="install Horovod again with HOROVOD_WITH_PYTORCH=1 and HOROVOD_WITH_GLOO=1 or HOROVOD_WITH_MPI=1",
        look="horovodrun --check-build",
    ),
    Text(
        r"was unable to connect to .{0,60} on any of the following addresses"
        r"|Unable to find a set of common task-to-task communication interfaces",
        causes.INTERFACE,
        NOBODY,
        "the nodes have no interface of one name on which they reach each other",
        known=REPORTED,
        fix="give horovodrun --network-interfaces with the data network's interface; its name must be the same on "
        "all nodes",
        look="ip -br address",
    ),
    Text(
        r"ssh not successful for host (?P<host>[^\s:]+)",
        causes.SSH,
        PEER,
        "horovodrun does not get into that node without a password",
        known=READ,
    ),
    Text(
        r"could not connect to some hosts via ssh",
        causes.SSH,
        PEER,
        "horovodrun does not get into some nodes without a password",
        known=READ,
        weak=True,
    ),
    Text(
        r"Mismatched (?:data types|operations|prescale|reduction operation|\w+ (?:tensor shapes|root ranks"
        r"|CPU/GPU device))",
        causes.DISAGREE,
        NOBODY,
        "the ranks gave Horovod different tensors or operations under one name",
        known=READ,
        fix="give all ranks the same program, configuration and checkpoint",
    ),
    Text(
        r"(?:Stalled|Missing) ranks:(?: ?(?P<ranks>\d[\d, ]*))?|\[missing ranks: (?P<rank>\d+)",
        causes.STOPPED,
        PEER,
        "those ranks did not submit a tensor that others wait for",
        known=READ,
        fix="look at what those ranks do: an error, a longer epoch, a step that only some ranks take",
    ),
    Text(
        r"One or more tensors were submitted to be reduced",
        causes.STOPPED,
        PEER,
        "some ranks did not submit a tensor that others wait for; the lines below name them",
        known=READ,
        fix="look at what the ranks below do: an error, a longer epoch, a step that only some ranks take",
    ),
    Text(
        r"Wait timeout (?:after \d+ seconds )?for key\(s\)",
        causes.STOPPED,
        PEER,
        "another rank never published its address",
        known=READ,
        fix="look which rank did not start, then raise HOROVOD_GLOO_TIMEOUT_SECONDS if it is only slow",
    ),
    Text(
        r"HTTP GET request failed too many times|what\(\): HTTP request failed|(?:Read data from"
        r"|Put data input) KVStore server",
        causes.BLOCKED,
        PEER,
        "the rendezvous server of horovodrun is not reached: it has ended, or its port is blocked",
        known=READ,
        fix="look whether horovodrun still runs, then at what filters between this node and its",
    ),
    Text(
        r"Timed out waiting for .{0,80}Please check (?:connectivity between servers|that you have enough resources)",
        causes.BLOCKED,
        NOBODY,
        "the nodes did not all answer horovodrun in time",
        known=READ,
        fix="look at the interfaces and filters between the nodes, then raise --start-timeout if they are only slow",
    ),
    Text(
        r"Horovod has been shut ?down|Launching horovod task function was not successful|HorovodInternalError"
        r"|Horovod detected that one or more processes exited"
        r"|has been removed from elastic job",
        causes.STOPPED,
        PEER,
        "another rank ended; its own error came first",
        known=READ,
        fix="look for the first error of all ranks: that is the reason",
        weak=True,
    ),
)

SLURM = (
    Text(
        r"Detected \d+ oom[-_]kill event|exceeded (?:job|step) memory limit|exceeded memory limit \(\d+",
        causes.RESOURCES,
        SELF,
        "Slurm's limit of memory for this job was reached on this node, and the kernel killed processes of it",
        known=READ,
        fix="ask for more memory (--mem, --mem-per-gpu), or use less: fewer workers of the DataLoader, smaller batches",
        look=ACCOUNT,
    ),
    Text(
        # It is what that node says; as what it says of itself, it comes before the bare words of the C library.
        rf"{TASK}Out Of Memory",
        causes.RESOURCES,
        SELF,
        "Slurm's limit of memory for this job was reached on that node",
        known=READ,
        fix="ask for more memory (--mem, --mem-per-gpu), or use less: fewer workers of the DataLoader, smaller batches",
        look=ACCOUNT,
    ),
    Text(
        rf"{TASK}Bus error",
        causes.RESOURCES,
        PEER,
        "a rank there touched memory that is backed by nothing: /dev/shm is full, or a file that it maps was cut short",
        known=READ,
        fix="make room in /dev/shm of that node, and look at files that the job maps",
        look=DISK,
    ),
    Text(
        r"UNCORRECTABLE MEMORY ERROR AT",
        causes.GPU,
        SELF,
        "the memory of this node has an error that can't be corrected",
        known=READ,
        fix="drain this node and have its memory changed; the driver is not to blame",
        look="dmesg | grep -i -e mce -e edac; ras-mc-ctl --errors",
    ),
    Text(
        r"DUE TO TIME LIMIT",
        causes.STOPPED,
        NOBODY,
        "Slurm ended the job at its time limit",
        known=READ,
        fix="ask for more time (--time), or go on from the last checkpoint; if it hung, look at what the ranks "
        "waited for",
        look=ACCOUNT,
    ),
    Text(
        r"srun: error: Node failure on (?P<host>[\w.-]+)",
        causes.STOPPED,
        PEER,
        "Slurm lost that node",
        known=READ,
        fix="look at that node: its kernel log, its power, its network",
        look="sinfo -R; scontrol show node NODE",
    ),
    Text(
        r"DUE TO NODE FAILURE|Job killed due node failure",
        causes.STOPPED,
        PEER,
        "Slurm lost a node of the job",
        known=READ,
        fix="look which node Slurm lost, then at its kernel log, power and network",
        look="sinfo -R; scontrol show job JOB",
    ),
    Text(
        r"DUE TO (?:PREEMPTION|JOB REQUEUE)",
        causes.STOPPED,
        NOBODY,
        "Slurm took the nodes for another job, or queued this one again",
        known=READ,
        fix="let Slurm start it again and go on from the last checkpoint, or take a partition without preemption",
    ),
    Text(
        r"Task launch for \S+ failed on node (?P<host>[\w.-]+): (?:Communication connection failure"
        r"|Unable to contact|Socket timed"
        r" out|Zero Bytes)",
        causes.BLOCKED,
        PEER,
        "srun does not reach slurmd of that node",
        known=READ,
        fix="look whether slurmd runs there, then at its ports and those of srun (SrunPortRange) between the nodes",
        look="scontrol show node NODE; scontrol ping",
    ),
    Text(
        r"Munge (?:decode|encode) failed|Invalid job credential|Job credential (?:expired|replayed)"
        r"|Protocol authentication error|(?:Expired|Rewound) credential|authentication credential",
        causes.DISAGREE,
        NOBODY,
        "the nodes do not believe each other's messages: their clocks or keys of munge differ",
        known=READ,
        fix="give all nodes the same /etc/munge/munge.key and the same time (chronyc tracking)",
        look="munge -n | ssh NODE unmunge; chronyc tracking",
    ),
    Text(
        r"Incompatible versions of client and server code|Couldn't find (?:the specified )?plugin name for mpi/"
        r"|cannot find plugin for mpi/|Invalid MPI plugin name",
        causes.VERSIONS,
        NOBODY,
        "srun and slurmd, or Slurm and the MPI of the job, do not fit each other",
        known=READ,
        fix="install the same release of Slurm on all nodes; of MPI plugins take one that 'srun --mpi=list' names",
        look="srun --version; srun --mpi=list",
    ),
    Text(
        r"timeout waiting for task launch, started \d+ of \d+ tasks",
        causes.STOPPED,
        NOBODY,
        "not all nodes started their ranks in time",
        known=READ,
        fix="look which node started none: its slurmd, its prolog, its file systems",
        look="scontrol show job JOB; sinfo -R",
    ),
    Text(
        r"srun: error: Unable to resolve \"(?P<host>[^\"]+)\"|can't find address for host (?P<address>[\w.-]+)",
        causes.NAMES,
        SELF,
        "the name of a node of the job does not resolve for Slurm here",
        known=READ,
    ),
    Text(
        r"Unable to allocate resources: |Batch job submission failed: ",
        causes.DISAGREE,
        NOBODY,
        "Slurm refuses what the job asks for; the line says why",
        known=READ,
        fix="ask for what the partition has and this account may take",
        look="sinfo; scontrol show partition; sacctmgr show assoc user=$USER",
        weak=True,
    ),
    Text(
        r"Unable to contact slurm controller|Unable to confirm allocation for job",
        causes.BLOCKED,
        PEER,
        "slurmctld does not answer this node",
        known=READ,
        fix="look whether slurmctld runs, then at what filters its port from this node",
        look="scontrol ping",
    ),
    Text(
        r"Unable to create step for job \d+: (?:More processors|Requested node|Memory required"
        r"|Invalid generic resource|Task count"
        r"|Invalid Trackable)",
        causes.DISAGREE,
        NOBODY,
        "srun asks for more ranks, processors, memory or GPUs than the job has",
        known=READ,
        fix="ask in srun for no more than the job was given (--ntasks, --cpus-per-task, --gpus, --mem)",
        look="scontrol show job JOB",
    ),
    Text(
        rf"{TASK}Killed",
        causes.STOPPED,
        PEER,
        "a rank there was killed: by srun after another one's end, or by the kernel because the memory was full",
        known=READ,
        fix="look which task of the job ended first, and for oom-kill in the kernel log of that node",
        look=OOM,
        weak=True,
    ),
    Text(
        rf"{TASK}(?:Exited with exit code \d+|Segmentation fault|Aborted|Illegal instruction|Terminated|Hangup"
        rf"|User defined)",
        causes.STOPPED,
        PEER,
        "a rank there ended; its own error stands in its output",
        known=READ,
        fix="read what the first task that ended has printed",
        weak=True,
    ),
    Text(
        r"ON \S+ CANCELLED AT |ON \S+ FAILED \(non-zero|Job step aborted|srun: Force Terminated"
        r"|Job allocation \S+ has been revoked|Application launch failed|slurm_step_launch",
        causes.STOPPED,
        NOBODY,
        "Slurm ended the job, after an error of one rank or because somebody asked it to",
        known=READ,
        fix="look for the first error above; if there is none, somebody cancelled it (sacct shows who)",
        look=ACCOUNT,
        weak=True,
    ),
    Text(
        r"Socket timed out on send/recv operation",
        causes.BLOCKED,
        PEER,
        "a daemon of Slurm did not answer in time",
        known=READ,
        fix="look whether slurmctld and slurmd are up and not overloaded, then at what is between",
        look="scontrol ping; sinfo -R",
        weak=True,
    ),
)

TEXTS: tuple[Text, ...] = (*PYTHON, *TORCHRUN, *HOROVOD, *SLURM)
