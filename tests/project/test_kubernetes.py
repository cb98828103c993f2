# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests for Kubernetes, compared with the published models of the objects. No Kubernetes runs here.

TrainJob, TrainingRuntime and everything of a pod: PyPI's kubeflow-trainer-api, which reads an object and writes what it
knows of it. PyTorchJob: the types in PyPI's kubeflow-training. Nobody publishes a model of MPIJob v2beta1: its fields
are those of pkg/apis/kubeflow/v2beta1/swagger.json in github.com/kubeflow/mpi-operator at v0.8.0.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import setup
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.filter.kubernetes_files import kubernetes_files

HOSTS = ["gpu01", "gpu02", "gpu03"]
#: With GPUs and RDMA, and without both.
FULL = {"gpu_cluster_gpus": 8, "nccl_ib_hcas": ["mlx5_0", "mlx5_1"], "launcher_environment": {"NCCL_ALGO": "Ring"}}
BARE = {"gpu_cluster_gpus": 0}
OPTIONS = {"image": "registry.example.com/train:1"}
WITH_RDMA = {**OPTIONS, "rdma_resource": "rdma/hca_shared_devices_a", "command": "-m trainer.main --lr 0.1"}
VARIANTS = [pytest.param(FULL, WITH_RDMA, id="rdma"), pytest.param(BARE, OPTIONS, id="cpu")]

#: Type, in the words of the models below, by field; what stands in braces is another table.
MPI: dict[str, dict[str, str]] = {
    "MPIJob": {"apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": "MPIJobSpec"},
    "MPIJobSpec": {
        "launcherCreationPolicy": "str",
        "mpiImplementation": "str",
        "mpiReplicaSpecs": "dict(str, ReplicaSpec)",
        "runLauncherAsWorker": "bool",
        "runPolicy": "RunPolicy",
        "slotsPerWorker": "int",
        "sshAuthMountPath": "str",
    },
    "ReplicaSpec": {"replicas": "int", "restartPolicy": "str", "template": "V1PodTemplateSpec"},
    "RunPolicy": {
        "activeDeadlineSeconds": "int",
        "backoffLimit": "int",
        "cleanPodPolicy": "str",
        "managedBy": "str",
        "schedulingPolicy": "object",
        "suspend": "bool",
        "ttlSecondsAfterFinished": "int",
    },
}
PLAIN = {"str": str, "int": int, "bool": bool, "object": dict}
#: Models of Kubernetes itself, by their name in kubeflow-training.
OF_PODS = {
    "V1PodTemplateSpec": ("io_k8s_api_core_v1_pod_template_spec", "IoK8sApiCoreV1PodTemplateSpec"),
    "V1ObjectMeta": ("io_k8s_apimachinery_pkg_apis_meta_v1_object_meta", "IoK8sApimachineryPkgApisMetaV1ObjectMeta"),
}


@pytest.fixture(scope="module", name="models")
def unpacked_models() -> Iterator[Path]:
    folder = setup.fetch_kubernetes_models()
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


def made(variables: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The objects by file."""
    hostvars = {
        name: {
            "gpu_cluster_fabric_address": f"10.9.0.{number}/24",
            "gpu_cluster_fabric_interface": "ens1f0",
            **variables,
        }
        for number, name in enumerate(HOSTS, 1)
    }
    found = kubernetes_files(hostvars, HOSTS, options, "print(1)\n")
    assert found["problems"] == []
    return {name: list(yaml.safe_load_all(text)) for name, text in found["files"].items() if name.endswith(".yml")}


def unknown(module: str, name: str, value: Any) -> list[str]:
    """What a model refuses, or does not know and so does not write again."""
    model = getattr(importlib.import_module(f"kubeflow_trainer_api.models.{module}"), name)
    try:
        written = model.from_dict(value).to_dict()
    except ValueError as error:
        return [str(error)]
    return lost(value, written)


def lost(value: Any, written: Any, place: str = "") -> list[str]:
    """What is not there any more; a default that a model has added does not matter."""
    if isinstance(value, dict) and isinstance(written, dict):
        return [text for name, one in value.items() for text in lost(one, written.get(name), f"{place}.{name}")]
    if isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        return [text for one, other in zip(value, written, strict=True) for text in lost(one, other, f"{place}[]")]
    return [] if value == written else [f"{place}: {value!r} is {written!r} in the model"]


def of_training(folder: Path) -> dict[str, dict[str, str]]:
    """The types of the fields in kubeflow-training, without importing it: it needs packages that are not there."""
    found = {}
    for path in (folder / "kubeflow" / "training" / "models").glob("kubeflow_org_v1_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                tables = {
                    target.id: ast.literal_eval(one.value)
                    for one in node.body
                    if isinstance(one, ast.Assign)
                    for target in one.targets
                    if isinstance(target, ast.Name) and target.id in ("openapi_types", "attribute_map")
                }
                types = tables["openapi_types"]
                found[node.name] = {name: types[own] for own, name in tables["attribute_map"].items()}
    return found


def differences(kind: str, value: Any, tables: dict[str, dict[str, str]], place: str = "") -> list[str]:
    """Where an object is not as its model."""
    if kind in OF_PODS:
        return [f"{place}: {text}" for text in unknown(*OF_PODS[kind], value)]
    if kind.startswith("dict(str, "):
        inner = kind[len("dict(str, ") : -1]
        return [text for name, one in value.items() for text in differences(inner, one, tables, f"{place}.{name}")]
    if kind in PLAIN:
        return [] if type(value) is PLAIN[kind] else [f"{place}: {value!r} is no {kind}"]
    fields = tables[kind]
    found = [f"{place}: no field {name}" for name in value if name not in fields]
    for name, one in value.items():
        if name in fields:
            found += differences(fields[name], one, tables, f"{place}.{name}")
    return found


@pytest.mark.parametrize(("variables", "options"), VARIANTS)
def test_a_train_job_and_its_runtime_are_as_their_models(
    models: Path, variables: dict[str, Any], options: dict[str, Any]
) -> None:
    assert models.is_dir()
    runtime, job = made(variables, options)["trainjob.yml"]
    assert unknown("trainer_v1alpha1_training_runtime", "TrainerV1alpha1TrainingRuntime", runtime) == []
    assert unknown("trainer_v1alpha1_train_job", "TrainerV1alpha1TrainJob", job) == []


@pytest.mark.parametrize(("variables", "options"), VARIANTS)
def test_a_pytorch_job_is_as_its_model(models: Path, variables: dict[str, Any], options: dict[str, Any]) -> None:
    (job,) = made(variables, options)["pytorchjob.yml"]
    assert differences("KubeflowOrgV1PyTorchJob", job, of_training(models)) == []


@pytest.mark.parametrize(("variables", "options"), VARIANTS)
def test_an_mpi_job_is_as_its_definition(models: Path, variables: dict[str, Any], options: dict[str, Any]) -> None:
    assert models.is_dir()
    (job,) = made(variables, options)["mpijob.yml"]
    assert differences("MPIJob", job, MPI) == []


def test_the_comparison_sees_a_wrong_name_and_a_wrong_type(models: Path) -> None:
    runtime, job = made(FULL, WITH_RDMA)["trainjob.yml"]
    job["spec"]["trainer"]["numNode"] = 3
    assert "numNode" in unknown("trainer_v1alpha1_train_job", "TrainerV1alpha1TrainJob", job)[0]
    pod = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["hostNetwork"] = "perhaps"
    assert "hostNetwork" in unknown("trainer_v1alpha1_training_runtime", "TrainerV1alpha1TrainingRuntime", runtime)[0]
    (other,) = made(FULL, WITH_RDMA)["pytorchjob.yml"]
    other["spec"]["nprocPerNode"] = 8
    other["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["dnsPolice"] = "Default"
    found = "\n".join(differences("KubeflowOrgV1PyTorchJob", other, of_training(models)))
    assert ".spec.nprocPerNode: 8 is no str" in found and "dnsPolice" in found
    (mpi,) = made(FULL, WITH_RDMA)["mpijob.yml"]
    mpi["spec"]["slotsPerWorkers"] = 8
    assert differences("MPIJob", mpi, MPI) == [".spec: no field slotsPerWorkers"]
