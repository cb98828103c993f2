# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests for Kubernetes as dictionaries: an MPIJob, a PyTorchJob, and a TrainJob with its TrainingRuntime. Pure.

Where the fields come from, and what the operators add to the pods:

* PyTorchJob: github.com/kubeflow/training-operator 1.9, pkg/apis/kubeflow.org/v1/pytorch_types.go and
  pkg/controller.v1/pytorch/envvar.go and master.go.
* TrainJob: github.com/kubeflow/trainer 2.3, pkg/runtime/framework/plugins/torch/torch.go.
* MPIJob: github.com/kubeflow/mpi-operator 0.8, pkg/apis/kubeflow/v2beta1/types.go and
  pkg/controller/mpi_job_controller.go.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff.kubernetes_cluster import Cluster
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff.kubernetes_options import (
    NONE,
    SCRIPT,
    Options,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import settings

GPU = "nvidia.com/gpu"
#: Names of one job, of the prefix that all labels here have.
PREFIX = "gpu-cluster"
JOB = f"{PREFIX}/job"
MEMBER = "member"
NCCL_CONF, SSH_CONFIG, SSHD_CONFIG, TRAIN = "nccl.conf", "ssh_config", "sshd_config", "train.py"
SSHD_PATH = "/gpu-cluster/sshd_config"
#: The operator mounts the key of the job here, as id_rsa, id_rsa.pub and authorized_keys: root's home in the image, the
#: only folder in which the key gets the mode that ssh wants.
SSH = os.path.join("/root", ".ssh")
HOSTFILE = "/etc/mpi/hostfile"
KNOWN_HOSTS = "/tmp/known_hosts"
ALIAS = "gpu-cluster-job"
#: A name is known some seconds after its pod has started, and mpirun does not try again.
RESOLVED = f'while read -r name _; do until getent hosts "$name" > /dev/null; do sleep 1; done; done < {HOSTFILE}; '
#: Of the shell that a rank of an MPIJob begins with.
OF_A_RANK = {
    "RANK": "OMPI_COMM_WORLD_RANK",
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
    "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
}
PYTHON = "python3"
TORCHRUN = (PYTHON, "-m", "torch.distributed.run")
#: So many names stand in one command.
NODES_IN_A_LINE = 50


def config_map(cluster: Cluster, options: Options, example: str) -> dict[str, Any]:
    """The files that pods mount."""
    data = {NCCL_CONF: settings.render(cluster.nccl), SSH_CONFIG: _ssh_config(options)}
    data[SSHD_CONFIG] = _sshd_config(options)
    if options.is_example:
        data[TRAIN] = example
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _named(_files(options), options), "data": data}


def pytorch_job(cluster: Cluster, options: Options) -> dict[str, Any]:
    """One Master and the Workers; the operator tells torchrun the rest by PET_ variables."""
    # Under the network of the host, a port of a container is a port of the node: the scheduler keeps it free.
    port = {"name": "pytorchjob-port", "containerPort": cluster.master_port}
    master = _container("pytorch", cluster, options, _torchrun(options), ports=[port])
    worker = _container("pytorch", cluster, options, _torchrun(options))
    replicas = {"Master": (1, master)}
    if len(cluster.nodes) > 1:
        replicas["Worker"] = (len(cluster.nodes) - 1, worker)
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": _named(options.name, options),
        "spec": {
            "nprocPerNode": str(cluster.ranks_per_node),
            "runPolicy": {"cleanPodPolicy": "Running"},
            "pytorchReplicaSpecs": _replicas(replicas, options),
        },
    }


def training_runtime(cluster: Cluster, options: Options) -> dict[str, Any]:
    """What the pods of a TrainJob are; its Trainer adds the port of rank 0, and PET_ variables."""
    container = _container("node", cluster, options, [])
    pod = {"restartPolicy": "Never", **_pod(options, container)}
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": 0, "template": _template(options, pod)},
        },
    }
    named = _named(options.name, options)
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {**named, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": len(cluster.nodes), "torch": {}},
            "template": {"spec": {"replicatedJobs": [job]}},
        },
    }


def train_job(cluster: Cluster, options: Options) -> dict[str, Any]:
    """The job that uses the runtime of the same name."""
    resources = _resources(cluster, options)
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": _named(options.name, options),
        "spec": {
            "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": options.name},
            "trainer": {
                "image": options.image,
                "command": _torchrun(options),
                "numNodes": len(cluster.nodes),
                "numProcPerNode": cluster.ranks_per_node,
                **({"resourcesPerNode": resources} if resources else {}),
            },
        },
    }


def mpi_job(cluster: Cluster, options: Options) -> dict[str, Any]:
    """A launcher that runs mpirun and the ranks of its own node, and workers that run an sshd.

    mpirun takes a host whose address is its own for its own node. With the network of the host, a launcher beside a
    worker would start that worker's ranks in its own container, which has no GPU.
    """
    port = {"name": "sshd", "containerPort": options.sshd_port}
    sshd = _with_host_key(["/usr/sbin/sshd", "-De", "-f", SSHD_PATH])
    worker = _container("worker", cluster, options, sshd, ports=[port], ssh=True)
    worker["readinessProbe"] = {"tcpSocket": {"port": options.sshd_port}, "periodSeconds": 2}
    launcher = _container("launcher", cluster, options, _mpirun(cluster, options), ssh=True)
    launcher["env"] = launcher["env"] + _listed(_of_open_mpi(cluster))
    replicas = {"Launcher": (1, launcher)}
    if len(cluster.nodes) > 1:
        replicas["Worker"] = (len(cluster.nodes) - 1, worker)
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": _named(options.name, options),
        "spec": {
            "slotsPerWorker": cluster.ranks_per_node,
            "runLauncherAsWorker": True,
            "sshAuthMountPath": SSH,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "mpiImplementation": "OpenMPI",
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
            "mpiReplicaSpecs": _replicas(replicas, options),
        },
    }


def labels(cluster: Cluster, options: Options) -> str:
    """Commands that mark the members, and unmark nodes that are none any more."""
    label = _label(options)
    lines = [
        "# Labels the members, so that the jobs of this folder run on them and on no other node: sh labels.sh",
        "set -eu",
        "# Nodes of an earlier run. Where there are none, kubectl may end with an error.",
        f"kubectl label nodes --selector {label} {label}- || :",
    ]
    for first in range(0, len(cluster.nodes), NODES_IN_A_LINE):
        names = " ".join(shlex.quote(name) for name in cluster.nodes[first : first + NODES_IN_A_LINE])
        lines.append(f"kubectl label nodes --overwrite {names} {label}={MEMBER}")
    return "\n".join(lines) + "\n"


def _named(name: str, options: Options) -> dict[str, Any]:
    return {"name": name, "namespace": options.namespace}


def _files(options: Options) -> str:
    return f"{options.name}-files"


def _label(options: Options) -> str:
    return f"{PREFIX}/{options.name}"


def _listed(environment: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in environment.items()]


def _environment(cluster: Cluster) -> dict[str, str]:
    """Without NCCL's settings, which it reads from its file."""
    return {"GLOO_SOCKET_IFNAME": cluster.interface, **dict(sorted(cluster.environment.items()))}


def _resources(cluster: Cluster, options: Options) -> dict[str, Any]:
    """Kubernetes takes a limit of such a resource for its request, too."""
    limits: dict[str, str] = {}
    if cluster.gpus:
        limits[GPU] = str(cluster.gpus)
    if options.rdma_resource not in ("", NONE):
        limits[options.rdma_resource] = "1"
    return {"limits": limits} if limits else {}


def _container(
    name: str,
    cluster: Cluster,
    options: Options,
    command: Sequence[str],
    ports: Sequence[dict[str, Any]] = (),
    ssh: bool = False,
) -> dict[str, Any]:
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}, _mount("/etc/nccl.conf", NCCL_CONF)]
    if options.is_example:
        mounts.append(_mount(SCRIPT, TRAIN))
    if ssh:
        # In the place of the image's own, which need not be there.
        mounts += [_mount("/etc/ssh/ssh_config", SSH_CONFIG), _mount(SSHD_PATH, SSHD_CONFIG)]
    resources = _resources(cluster, options)
    return {
        "name": name,
        "image": options.image,
        # An image that was loaded on the nodes is not asked for at a registry.
        "imagePullPolicy": "IfNotPresent",
        **({"command": list(command)} if command else {}),
        "env": _listed(_environment(cluster)),
        **({"ports": list(ports)} if ports else {}),
        **({"resources": resources} if resources else {}),
        # Locks memory past the limit that the container runtime gives.
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": mounts,
    }


def _mount(path: str, key: str) -> dict[str, Any]:
    return {"name": "files", "mountPath": path, "subPath": key, "readOnly": True}


def _pod(options: Options, container: dict[str, Any]) -> dict[str, Any]:
    return {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "nodeSelector": {_label(options): MEMBER},
        "containers": [container],
        "volumes": [
            # A container has 64 MB otherwise, too little for NCCL and for data loaders.
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "files", "configMap": {"name": _files(options)}},
        ],
    }


def _template(options: Options, pod: dict[str, Any]) -> dict[str, Any]:
    """At most one pod of the job on a node."""
    own = {JOB: options.name}
    rule = {"labelSelector": {"matchLabels": own}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    return {"metadata": {"labels": own}, "spec": {**pod, "affinity": affinity}}


def _replicas(containers: dict[str, tuple[int, dict[str, Any]]], options: Options) -> dict[str, Any]:
    """The kinds of pods, each with its number and its container."""
    return {
        kind: {
            "replicas": number,
            "restartPolicy": "Never",
            "template": _template(options, _pod(options, container)),
        }
        for kind, (number, container) in containers.items()
    }


def _is_python(command: Sequence[str]) -> bool:
    return command[0] == "-m" or command[0].endswith(".py")


def _torchrun(options: Options) -> list[str]:
    """As a module: the program torchrun is in no folder of PATH in some images."""
    return [*TORCHRUN, *([] if _is_python(options.command) else ["--no-python"]), *options.command]


def _ssh_config(options: Options) -> str:
    """All pods of a job have one host key, which is the key of the job."""
    return "\n".join(
        [
            "# The sshd of the pods, which share the network of the host with its own.",
            "Host *",
            f"  Port {options.sshd_port}",
            f"  HostKeyAlias {ALIAS}",
            f"  UserKnownHostsFile {KNOWN_HOSTS}",
            "  StrictHostKeyChecking yes",
            "  LogLevel ERROR",
            "",
        ]
    )


def _with_host_key(command: Sequence[str], first: str = "") -> list[str]:
    """The command, after the host key of the job was written down. first: what the shell does before it."""
    # Without $( ), in which Kubernetes would look for a variable of its own.
    line = f"{{ printf '{ALIAS} '; cat {SSH}/id_rsa.pub; }} > {KNOWN_HOSTS}"
    return ["/bin/sh", "-c", f'{first}mkdir -p /run/sshd && {line} && exec "$@"', "sh", *command]


def _sshd_config(options: Options) -> str:
    return "\n".join(
        [
            "# The key of the job is the only one that logs in, and the host key of all pods.",
            f"Port {options.sshd_port}",
            f"HostKey {SSH}/id_rsa",
            f"AuthorizedKeysFile {SSH}/authorized_keys",
            "# The files of a Secret are links.",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin prohibit-password",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PidFile none",
            "",
        ]
    )


def _of_open_mpi(cluster: Cluster) -> dict[str, str]:
    """The network and the ports of Open MPI 4.1, and of the launcher of Open MPI 5. Each ignores other names."""
    return {
        "OMPI_MCA_btl_tcp_if_include": cluster.interface,
        **{f"OMPI_MCA_{name}": str(value) for name, value in cluster.plan.openmpi().items() if name.endswith("_v4")},
        "OMPI_MCA_oob_tcp_if_include": cluster.interface,
        "PRTE_MCA_prte_if_include": cluster.interface,
    }


def _mpirun(cluster: Cluster, options: Options) -> list[str]:
    """Rank 0 is in the launcher. An ssh session has no variable of the pod, so mpirun hands them over."""
    first = f"{options.name}-launcher.{options.name}.{options.namespace}.svc"
    meeting = {"MASTER_ADDR": first, "MASTER_PORT": str(cluster.master_port)}
    words = ["mpirun", "--allow-run-as-root", "--hostfile", HOSTFILE]
    words += ["-n", str(len(cluster.nodes) * cluster.ranks_per_node), "--bind-to", "none"]
    for name in ("PATH", *_environment(cluster)):
        words += ["-x", name]
    for name, value in meeting.items():
        words += ["-x", f"{name}={value}"]
    exported = " ".join(f"{name}=$" + value for name, value in OF_A_RANK.items())
    python = [PYTHON] if _is_python(options.command) else []
    return _with_host_key(
        [*words, "sh", "-c", f'export {exported}; exec "$@"', "sh", *python, *options.command], first=RESOLVED
    )
