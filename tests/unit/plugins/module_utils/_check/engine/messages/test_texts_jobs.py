# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of torchrun, Horovod, Slurm and Python as their releases print them, and what the tables make of them."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import NOBODY

#: Text, cause, and the names in it.  Addresses and host names were replaced by those of documentation.
RECORDED = [
    ("gpu-cluster-run: this rank ended with signal 9 (SIGKILL)", causes.RESOURCES, {}),
    # Python and the shell.
    ("Fatal Python error: init_fs_encoding: failed to get the Python codec", causes.PYTORCH, {}),
    ("ModuleNotFoundError: No module named 'encodings'", causes.PYTORCH, {}),
    ("ModuleNotFoundError: No module named 'flash_attn'", causes.PYTORCH, {}),
    ("ModuleNotFoundError: No module named 'my_models'", causes.FILES, {}),
    ("/opt/gpu-cluster/torch/bin/python3: No module named train", causes.FILES, {}),
    ("ImportError: cannot import name 'AutoModel' from 'transformers' (/opt/venv/x/__init__.py)", causes.VERSIONS, {}),
    (
        "AttributeError: partially initialized module 'random' has no attribute 'seed' (most likely due to a "
        "circular import)",
        causes.FILES,
        {},
    ),
    (
        "/usr/bin/python3: can't open file '/home/train/job/train.py': [Errno 2] No such file or directory",
        causes.FILES,
        {},
    ),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/data/imagenet/train'", causes.FILES, {}),
    ("OSError: [Errno 116] Stale file handle: '/home/train/out'", causes.FILES, {}),
    ("cat: /data/list: Stale NFS file handle", causes.FILES, {}),
    ("OSError: [Errno 107] Transport endpoint is not connected: '/mnt/data'", causes.FILES, {}),
    ("OSError: [Errno 30] Read-only file system: '/data/out'", causes.FILES, {}),
    ("OSError: [Errno 122] Disk quota exceeded: '/home/train/x.pt'", causes.RESOURCES, {}),
    ("OSError: [Errno 5] Input/output error: '/data/shard-00.tar'", causes.FILES, {}),
    ("PermissionError: [Errno 13] Permission denied: '/data/out/checkpoint.pt'", causes.FILES, {}),
    ("bash: ./train.sh: Permission denied", causes.FILES, {}),
    ("/bin/sh: 1: ./train.sh: Permission denied", causes.FILES, {}),
    ("/var/spool/slurmd/job00123/slurm_script: line 12: ./train.sh: Permission denied", causes.FILES, {}),
    ("slurmstepd: error: execve(): /home/train/train.sh: Permission denied", causes.FILES, {}),
    ("slurmstepd: error: execve(): python: No such file or directory", causes.FILES, {}),
    (
        "slurmstepd: error: couldn't chdir to `/home/train/job': No such file or directory: going to /tmp instead",
        causes.FILES,
        {},
    ),
    ("bash: ./train.py: /usr/bin/python3.12: bad interpreter: No such file or directory", causes.FILES, {}),
    ("bash: line 1: torchrun: command not found", causes.PYTORCH, {}),
    ("sh: 1: python: not found", causes.PYTORCH, {}),
    (
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        causes.FILES,
        {},
    ),
    ("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", causes.FILES, {}),
    ('exec: "torchrun": executable file not found in $PATH', causes.PYTORCH, {}),
    ("/home/train/train.sh: line 4: cd: /scratch/train: No such file or directory", causes.FILES, {}),
    ("slurmstepd: error: Could not open stdout file /home/train/out: No such file or directory", causes.FILES, {}),
    ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", causes.FILES, {}),
    ("OSError: [Errno 99] Cannot assign requested address", causes.INTERFACE, {}),
    (
        "python3: error while loading shared libraries: libpython3.11.so.1.0: cannot open shared object file: No "
        "such file",
        causes.FILES,
        {},
    ),
    ("PermissionError: [Errno 1] Operation not permitted", causes.FILES, {}),
    ("EOFError: Ran out of input", causes.FILES, {}),
    ("Fatal Python error: Bus error", causes.RESOURCES, {}),
    ("train.sh: line 3: 4711 Bus error (core dumped) python train.py", causes.RESOURCES, {}),
    ("OSError: [Errno 98] Address already in use", causes.PORT, {}),
    ("Fatal Python error: Segmentation fault", causes.PYTORCH, {}),
    ("Fatal Python error: Aborted", causes.STOPPED, {}),
    ("Fatal Python error: _PyErr_NormalizeException: Cannot recover from MemoryErrors", causes.RESOURCES, {}),
    ("Fatal Python error: Cannot recover from stack overflow.", causes.STOPPED, {}),
    ("train.sh: line 3: 4711 Killed python train.py", causes.RESOURCES, {}),
    ("Killed", causes.RESOURCES, {}),
    # torchrun.
    ("RuntimeError: local_rank 4 exceeds available GPUs in CUDA_VISIBLE_DEVICES=0,1,2,3", causes.DISAGREE, {}),
    (
        "[default] Worker pid=4711 stuck in uninterruptible sleep (D-state) for 62.0s (>= 60.0s); marking worker "
        "group UNHEALTHY "
        "and disabling restarts.",
        causes.GPU,
        {},
    ),
    (
        "ValueError: The hostname of the rendezvous endpoint 'gpu_01:29400' must be a dot-separated list of labels, "
        "an IPv4 "
        "address, or an IPv6 address.",
        causes.NAMES,
        {},
    ),
    (
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 1",
        causes.STOPPED,
        {},
    ),
    ("W1128 10:00:00.0 torch/distributed/elastic/agent] Received Signals.SIGHUP death signal", causes.STOPPED, {}),
    (
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 15",
        causes.STOPPED,
        {},
    ),
    ("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", causes.STOPPED, {}),
    (
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has "
        "failed. See "
        "inner exception for details.",
        causes.STOPPED,
        {},
    ),
    (
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The rendezvous of the job 1 cannot be "
        "reached: no member of etcd answered for 15 seconds.",
        causes.STOPPED,
        {},
    ),
    ("  192.0.2.11:2379: Connection refused", causes.STOPPED, {"addresses": ("192.0.2.11",), "ports": (2379,)}),
    ("torch.distributed.elastic.rendezvous.api.RendezvousClosedError", causes.STOPPED, {}),
    (
        "WARNING: The node 'gpu02_3140_0' has failed to shutdown the rendezvous '304' due to an error of type "
        "RendezvousConnectionError.",
        causes.STOPPED,
        {},
    ),
    ("traceback : Signal 7 (SIGBUS) received by PID 4711", causes.RESOURCES, {}),
    (
        "E1128 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -9) local_rank: 3 (pid: 4711) "
        "of "
        "binary: /opt/venv/bin/python",
        causes.RESOURCES,
        {},
    ),
    ("exitcode  : -4 (pid: 4711)", causes.PYTORCH, {}),
    ("exitcode  : -11 (pid: 4711)", causes.PYTORCH, {}),
    ("traceback : Signal 6 (SIGABRT) received by PID 4711", causes.STOPPED, {}),
    (
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 4711) of "
        "binary: python",
        causes.STOPPED,
        {},
    ),
    ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", causes.STOPPED, {}),
    ("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with exit code 1", causes.STOPPED, {}),
    # Horovod.
    (
        "horovod.runner.common.util.network.NoValidAddressesFound: Horovod was unable to connect to horovod task "
        "service #1 on "
        "any of the following addresses: {'lo': [('127.0.0.1', 20456)], 'docker0': [('172.17.0.1', 20456)]}.",
        causes.INTERFACE,
        {"addresses": ()},
    ),
    (
        "NoValidAddressesFound: No available network interface found matching user provided interface: {'eth9'}",
        causes.INTERFACE,
        {"interfaces": ("eth9",)},
    ),
    (
        "Exception: Unable to find a set of common task-to-task communication interfaces: [(0, {'eno1': []}), (1, {})]",
        causes.INTERFACE,
        {},
    ),
    ("ssh not successful for host gpu02:", causes.SSH, {"addresses": ("gpu02",)}),
    ("RuntimeError: could not connect to some hosts via ssh", causes.SSH, {}),
    (
        "ValueError: Gloo support has not been built.  If this is not expected, ensure CMake is installed",
        causes.PYTORCH,
        {},
    ),
    ("ImportError: Extension horovod.torch has not been built: /opt/venv/x not found", causes.PYTORCH, {}),
    (
        "HorovodInternalError: Mismatched allreduce tensor shapes: One rank sent a tensor of shape [2, 3], but "
        "another rank sent",
        causes.DISAGREE,
        {},
    ),
    ("Stalled ranks:1 [DistributedOptimizer_Allreduce]", causes.STOPPED, {"ranks": (1,)}),
    ("Missing ranks: 2: [allreduce.layer1, allreduce.layer2 ...]", causes.STOPPED, {"ranks": (2,)}),
    ("Stalled ranks:", causes.STOPPED, {"ranks": ()}),
    (
        "[W stall_inspector.cc:107] One or more tensors were submitted to be reduced, gathered or broadcasted by "
        "subset of ranks "
        "and are waiting for remainder of ranks for more than 60 seconds.",
        causes.STOPPED,
        {},
    ),
    (
        "[http_store.cc:54] Wait timeout after 30 seconds for key(s): 1. You may want to increase the timeout via "
        "HOROVOD_GLOO_TIMEOUT_SECONDS",
        causes.STOPPED,
        {},
    ),
    ("[E] HTTP GET request failed too many times, aborting. See exception message above.", causes.BLOCKED, {}),
    (
        "horovod.runner.common.util.timeout.TimeoutException: Timed out waiting for tasks to start. Please check "
        "connectivity "
        "between servers. You may need to increase the --start-timeout parameter",
        causes.BLOCKED,
        {},
    ),
    (
        "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception "
        "on one of "
        "the ranks",
        causes.STOPPED,
        {},
    ),
    # Slurm.
    (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=123.batch. Some of the step tasks have been OOM "
        "Killed.",
        causes.RESOURCES,
        {},
    ),
    (
        "slurmstepd: error: Detected 2 oom-kill event(s) in step 123.0 cgroup. Some of your processes may have been "
        "killed by the "
        "cgroup out-of-memory handler.",
        causes.RESOURCES,
        {},
    ),
    ("slurmstepd: error: Step 123.0 exceeded memory limit (8400000 > 8388608), being killed", causes.RESOURCES, {}),
    ("srun: error: gpu02: task 1: Out Of Memory", causes.RESOURCES, {"addresses": ("gpu02",)}),
    ("srun: error: gpu[02-03]: tasks 8-15: Out Of Memory", causes.RESOURCES, {"addresses": ()}),
    ("srun: error: gpu02: task 1: Bus error (core dumped)", causes.RESOURCES, {"addresses": ("gpu02",)}),
    (
        "slurmstepd: error: *** STEP 123.0 ON gpu02 UNCORRECTABLE MEMORY ERROR AT 2026-11-28T10:00:00 ***",
        causes.GPU,
        {},
    ),
    (
        "slurmstepd: error: *** JOB 123 ON gpu01 CANCELLED AT 2026-11-28T10:00:00 DUE TO TIME LIMIT ***",
        causes.STOPPED,
        {"addresses": ()},
    ),
    ("srun: error: Node failure on gpu03", causes.STOPPED, {"addresses": ("gpu03",)}),
    (
        "slurmstepd: error: *** STEP 123.0 ON gpu01 CANCELLED AT 2026-11-28T10:00:00 DUE TO NODE FAILURE, SEE "
        "SLURMCTLD LOG FOR "
        "DETAILS ***",
        causes.STOPPED,
        {"addresses": ()},
    ),
    (
        "slurmstepd: error: *** JOB 123 ON gpu01 CANCELLED AT 2026-11-28T10:00:00 DUE TO PREEMPTION ***",
        causes.STOPPED,
        {},
    ),
    (
        "srun: error: Task launch for StepId=123.0 failed on node gpu02: Communication connection failure",
        causes.BLOCKED,
        {"addresses": ("gpu02",)},
    ),
    (
        "srun: error: Task launch for StepId=123.0 failed on node gpu02: Invalid job credential",
        causes.DISAGREE,
        {},
    ),
    ("srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files", causes.VERSIONS, {}),
    ("srun: error: timeout waiting for task launch, started 8 of 16 tasks", causes.STOPPED, {}),
    (
        "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)",
        causes.BLOCKED,
        {},
    ),
    (
        "srun: error: Unable to create step for job 123: More processors requested than permitted",
        causes.DISAGREE,
        {},
    ),
    ('srun: error: Unable to resolve "gpu02": Unknown host', causes.NAMES, {"addresses": ("gpu02",)}),
    (
        "srun: error: fwd_tree_thread: can't find address for host gpu02, check slurm.conf",
        causes.NAMES,
        {"addresses": ("gpu02",)},
    ),
    (
        "srun: error: Unable to allocate resources: Requested node configuration is not available",
        causes.DISAGREE,
        {},
    ),
    ("srun: error: gpu02: task 1: Killed", causes.STOPPED, {"addresses": ("gpu02",)}),
    ("srun: error: gpu02: tasks 0-7: Exited with exit code 1", causes.STOPPED, {"addresses": ("gpu02",)}),
    ("srun: error: gpu02: task 3: Segmentation fault (core dumped)", causes.STOPPED, {"addresses": ("gpu02",)}),
    ("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.", causes.STOPPED, {}),
    (
        "slurmstepd: error: *** STEP 123.0 ON gpu01 CANCELLED AT 2026-11-28T10:00:00 ***",
        causes.STOPPED,
        {"addresses": ()},
    ),
    ("slurm_load_jobs error: Socket timed out on send/recv operation", causes.BLOCKED, {}),
]


@pytest.mark.parametrize(("text", "cause", "names"), RECORDED)
def test_a_recorded_text_leads_to_its_cause(text: str, cause: str, names: dict[str, tuple[object, ...]]) -> None:
    found = lookup.match(text)
    assert found is not None and found.id == cause, found
    assert {field: getattr(found.names, field) for field in names} == names


@pytest.mark.parametrize(
    "text",
    [
        "srun: error: gpu02: task 1: Killed",
        "srun: error: gpu02: tasks 0-7: Exited with exit code 1",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        "slurmstepd: error: *** STEP 123.0 ON gpu01 CANCELLED AT 2026-11-28T10:00:00 ***",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "Fatal Python error: Aborted",
        "Fatal Python error: Segmentation fault",
        "traceback : Signal 15 (SIGTERM) received by PID 4711",
        "HorovodInternalError: Horovod has been shut down.",
        "Killed",
    ],
)
def test_what_only_follows_an_error_gives_way_to_any_other_text(text: str) -> None:
    found = lookup.match(text)
    assert found is not None and found.text.weak, found


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        # Of ssh and of Open MPI's daemon.
        ("train@gpu02: Permission denied (publickey).", causes.SSH),
        ("bash: line 1: /opt/openmpi/bin/prted: Permission denied", causes.NAMES),
        ("bash: orted: command not found", causes.NAMES),
        # Of the memory, whoever ends for it.
        ("OSError: [Errno 12] Cannot allocate memory", causes.RESOURCES),
        ("ModuleNotFoundError: No module named 'torch'", causes.PYTORCH),
    ],
)
def test_a_text_of_another_table_stays_with_it(text: str, cause: str) -> None:
    found = lookup.match(text)
    assert found is not None and found.id == cause and found.software != "jobs", found


@pytest.mark.parametrize(
    "text",
    [
        "Fatal Python error: Aborted",
        "Fatal Python error: Cannot recover from stack overflow.",
        "traceback : Signal 6 (SIGABRT) received by PID 4711",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    ],
)
def test_the_end_of_a_process_says_less_than_what_it_waited_for(text: str) -> None:
    """The watchdog's line came first; what ends the process then accuses no node."""
    found = lookup.match(text)
    assert found is not None and found.text.about == NOBODY, found


def test_a_full_dev_shm_is_no_damaged_environment() -> None:
    found = lookup.match("Fatal Python error: Bus error")
    assert found is not None and "/dev/shm" in found.fix and "df -h" in found.look


@pytest.mark.parametrize(
    "text",
    [
        "srun: job 123 queued and waiting for resources",
        "srun: job 123 has been allocated resources",
        "INFO: [default] Starting worker group",
        "epoch 3, step 120, 98 Killed by dropout",
        "loading module named model from /data",
        "run id 304504801270300669882724678499925037384",
    ],
)
def test_a_line_that_reports_no_fault_matches_nothing(text: str) -> None:
    assert lookup.match(text) is None
