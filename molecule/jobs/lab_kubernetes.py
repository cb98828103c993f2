# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a manifest under podman on the nodes, with what the operators of Kubernetes would add to them.

A pod is the containers, volumes and variables of its template. Names that Kubernetes would resolve are lines of its
hosts file. Sources of what the operators add: github.com/kubeflow/training-operator v1.9.0
pkg/controller.v1/pytorch/envvar.go and master.go; github.com/kubeflow/trainer 2.3
pkg/runtime/framework/plugins/torch/torch.go; github.com/kubeflow/mpi-operator v0.8.0
pkg/controller/mpi_job_controller.go.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from lab_cluster import Cluster

IMAGE = "localhost/train:1"
FOLDER = "/var/tmp/lab-pods"
#: Where nodes have archives of images.
ARCHIVES = "/srv/images/train-*.tar"
#: As the user of jobs: what is root in a container has no right on the node.
USER = "train"
MPI_FILES = ("id_rsa", "id_rsa.pub", "authorized_keys")


class Pod(NamedTuple):
    """One pod on a node. files: further ones by path, with their texts."""

    node: str
    name: str
    spec: dict[str, Any]
    environment: dict[str, str]
    files: Mapping[str, str] = MappingProxyType({})


def of_pytorch_job(job: dict[str, Any], nodes: Sequence[str]) -> tuple[list[Pod], dict[str, str]]:
    """The pods, and which node a name stands for."""
    spec, name = job["spec"], job["metadata"]["name"]
    replicas = spec["pytorchReplicaSpecs"]
    total = sum(one["replicas"] for one in replicas.values())
    master = f"{name}-master-0"
    (port,) = [
        one["containerPort"]
        for one in replicas["Master"]["template"]["spec"]["containers"][0]["ports"]
        if one["name"] == "pytorchjob-port"
    ]
    pods = []
    for rank, node in enumerate(nodes[:total]):
        kind = "Worker" if rank else "Master"
        environment = {
            "PYTHONUNBUFFERED": "1",
            "MASTER_PORT": str(port),
            "PET_MASTER_PORT": str(port),
            "MASTER_ADDR": master,
            "PET_MASTER_ADDR": master,
            "WORLD_SIZE": str(total * int(spec["nprocPerNode"])),
            "RANK": str(rank),
            "PET_NODE_RANK": str(rank),
            "PET_NPROC_PER_NODE": spec["nprocPerNode"],
            "PET_NNODES": str(total),
        }
        pods.append(Pod(node, f"{name}-{kind.lower()}", replicas[kind]["template"]["spec"], environment))
    return pods, {master: nodes[0]}


def of_train_job(
    runtime: dict[str, Any], job: dict[str, Any], nodes: Sequence[str]
) -> tuple[list[Pod], dict[str, str]]:
    """The same. The trainer's command and image take the place of those in the runtime."""
    name, trainer = job["metadata"]["name"], job["spec"]["trainer"]
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    spec = replicated["template"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert (replicated["name"], container["name"]) == ("node", "node")
    assert replicated["template"]["metadata"]["labels"]["trainer.kubeflow.org/trainjob-ancestor-step"] == "trainer"
    changed = {**container, "command": trainer["command"], "image": trainer["image"]}
    master = f"{name}-node-0-0.{name}"
    pods = [
        Pod(
            node,
            f"{name}-node",
            {**spec, "containers": [changed]},
            {
                "PET_NNODES": str(trainer["numNodes"]),
                "PET_NPROC_PER_NODE": str(trainer["numProcPerNode"]),
                "PET_NODE_RANK": str(rank),
                "PET_MASTER_ADDR": master,
                "PET_MASTER_PORT": "29500",
            },
        )
        for rank, node in enumerate(nodes[: trainer["numNodes"]])
    ]
    return pods, {master: nodes[0]}


def of_mpi_job(
    job: dict[str, Any], nodes: Sequence[str], keys: Mapping[str, str]
) -> tuple[list[Pod], Pod, dict[str, str]]:
    """The workers, the launcher on the first node, and the names. keys: the files of the Secret of the job."""
    spec, metadata = job["spec"], job["metadata"]
    assert spec["runLauncherAsWorker"] is True and spec["mpiImplementation"] == "OpenMPI"
    name, slots = metadata["name"], spec["slotsPerWorker"]
    worker, launcher = (spec["mpiReplicaSpecs"][kind] for kind in ("Worker", "Launcher"))
    pods = [f"{name}-launcher", *(f"{name}-worker-{number}" for number in range(worker["replicas"]))]
    names = {
        f"{pod}.{name}.{metadata['namespace']}.svc": node for pod, node in zip(pods, nodes[: len(pods)], strict=True)
    }
    secret = {f"{spec['sshAuthMountPath']}/{file}": keys[file] for file in MPI_FILES}
    workers = [
        Pod(node, f"{name}-worker", worker["template"]["spec"], {"K_MPI_JOB_ROLE": "worker"}, secret)
        for node in nodes[1 : len(pods)]
    ]
    environment = {
        "K_MPI_JOB_ROLE": "launcher",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "OMPI_MCA_orte_set_default_slots": str(slots),
    }
    hostfile = {"/etc/mpi/hostfile": "".join(f"{one} slots={slots}\n" for one in names)}
    start = Pod(nodes[0], f"{name}-launcher", launcher["template"]["spec"], environment, {**secret, **hostfile})
    return workers, start, names


def command(pod: Pod, config_map: Mapping[str, str], hosts: Mapping[str, str], *options: str) -> str:
    """What starts the pod, for the shell of root on the node. hosts: addresses by name."""
    assert pod.spec["hostNetwork"] is True and pod.spec["dnsPolicy"] == "ClusterFirstWithHostNet"
    (container,) = pod.spec["containers"]
    folder = f"{FOLDER}/{pod.name}"
    volumes = {one["name"]: one for one in pod.spec["volumes"]}
    words = ["podman", "run", "--rm", "--name", pod.name, "--network=host", "--pull=never", *options]
    texts = dict(pod.files)
    for mount in container["volumeMounts"]:
        if "emptyDir" in volumes[mount["name"]]:
            assert volumes[mount["name"]]["emptyDir"] == {"medium": "Memory"}
            words += ["--tmpfs", mount["mountPath"]]
        else:
            texts[mount["mountPath"]] = config_map[mount["subPath"]]
    lines = ["set -e", f"mkdir -p {folder}"]
    for number, (path, text) in enumerate(texts.items()):
        lines.append(f"echo {base64.b64encode(text.encode()).decode()} | base64 -d > {folder}/{number}")
        words += ["--volume", f"{folder}/{number}:{path}:ro"]
    for name, address in hosts.items():
        words += ["--add-host", f"{name}:{address}"]
    for capability in container["securityContext"]["capabilities"]["add"]:
        words += ["--cap-add", capability]
    own = {one["name"]: one["value"] for one in container["env"]}
    # What an operator adds stands behind, and the last one of a name counts.
    for name, value in {**own, **pod.environment}.items():
        words += ["--env", f"{name}={value}"]
    first, *rest = container["command"]
    words += ["--entrypoint", first, container["image"], *rest]
    lines += [f"chmod -R u=rwX,go= {folder}", f"chown -R {USER} {FOLDER}"]
    return "\n".join([*lines, f"exec su - {USER} -c {shlex.quote('cd /; exec ' + shlex.join(words))} 2>&1"])


def load(cluster: Cluster, nodes: Sequence[str]) -> None:
    """Have the image on the nodes."""
    there = f"cd /; podman image exists {IMAGE} || podman load --quiet --input {ARCHIVES}"
    cluster.on_each(nodes, f"su - {USER} -c {shlex.quote(there)}")


def remove(cluster: Cluster, nodes: Sequence[str], names: Sequence[str]) -> None:
    """End these pods, whether they are there or not."""
    gone = f"cd /; podman rm --force --ignore --time 2 {shlex.join(names)}; podman system migrate"
    cluster.on_each(nodes, f"su - {USER} -c {shlex.quote(gone)}; rm -rf {FOLDER}")
