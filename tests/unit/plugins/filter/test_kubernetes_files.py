# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests from an inventory: what depends on members and port plan, and what is refused."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from role_readmes import read_defaults

from ansible_collections.baremetal.gpu_cluster.plugins.filter.kubernetes_files import kubernetes_files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import kubernetes_cluster

ROOT = Path(__file__).resolve().parents[4]
HOSTS = ["gpu01", "gpu02", "gpu03"]
TORCHRUN = ["python3", "-m", "torch.distributed.run"]
IMAGE = {"image": "registry.example.com/train:1"}


def hostvars(**changes: Any) -> dict[str, dict[str, Any]]:
    """Three members with eight GPUs; changes: variables of all, or of one member under its name."""
    shared = {name: value for name, value in changes.items() if name not in HOSTS}
    return {
        name: {
            "gpu_cluster_fabric_address": f"10.9.0.{number}/24",
            "gpu_cluster_fabric_interface": "ens1f0",
            "gpu_cluster_gpus": 8,
            **shared,
            **changes.get(name, {}),
        }
        for number, name in enumerate(HOSTS, 1)
    }


def files(variables: dict[str, dict[str, Any]] | None = None, **options: Any) -> dict[str, str]:
    made = kubernetes_files(variables or hostvars(), HOSTS, {**IMAGE, **options}, "print(1)\n")
    assert made["problems"] == []
    found: dict[str, str] = made["files"]
    return found


def objects(variables: dict[str, dict[str, Any]] | None = None, **options: Any) -> dict[str, dict[str, Any]]:
    """All objects by kind."""
    texts = files(variables, **options)
    documents = [one for name, text in texts.items() if name != "labels.sh" for one in yaml.safe_load_all(text)]
    return {one.get("kind", "ports"): one for one in documents}


def problems(variables: dict[str, dict[str, Any]] | None = None, **options: Any) -> list[tuple[str, str]]:
    made = kubernetes_files(variables or hostvars(), HOSTS, {**IMAGE, **options})
    assert made["files"] == {} or made["problems"] == []
    return [(one["host"], one["variable"]) for one in made["problems"]]


def pods(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The specs of all pods."""
    torch = found["PyTorchJob"]["spec"]["pytorchReplicaSpecs"]
    mpi = found["MPIJob"]["spec"]["mpiReplicaSpecs"]
    (job,) = found["TrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"]
    templates = {**{f"torch {one}": torch[one]["template"] for one in torch}}
    templates |= {f"mpi {one}": mpi[one]["template"] for one in mpi}
    templates["trainer"] = job["template"]["spec"]["template"]
    return {name: template["spec"] for name, template in templates.items()}


def test_every_pod_uses_the_network_of_the_host_and_the_members_alone() -> None:
    for name, pod in pods(objects()).items():
        assert pod["hostNetwork"] is True and pod["dnsPolicy"] == "ClusterFirstWithHostNet", name
        assert pod["nodeSelector"] == {"gpu-cluster/train": "member"}
        (container,) = pod["containers"]
        assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
        assert {"name": "shm", "emptyDir": {"medium": "Memory"}} in pod["volumes"]
        assert {"name": "GLOO_SOCKET_IFNAME", "value": "ens1f0"} in container["env"]
        mounted = {one["mountPath"]: one.get("subPath") for one in container["volumeMounts"]}
        assert mounted["/dev/shm"] is None and mounted["/etc/nccl.conf"] == "nccl.conf"
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
        (rule,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert rule["labelSelector"] == {"matchLabels": {"gpu-cluster/job": "train"}}


def test_the_numbers_are_those_of_the_members() -> None:
    found = objects()
    torch = found["PyTorchJob"]["spec"]
    assert {name: one["replicas"] for name, one in torch["pytorchReplicaSpecs"].items()} == {"Master": 1, "Worker": 2}
    assert torch["nprocPerNode"] == "8"
    assert found["TrainJob"]["spec"]["trainer"]["numNodes"] == 3
    assert found["TrainJob"]["spec"]["trainer"]["numProcPerNode"] == 8
    mpi = found["MPIJob"]["spec"]
    assert mpi["slotsPerWorker"] == 8 and mpi["runLauncherAsWorker"] is True
    assert {name: one["replicas"] for name, one in mpi["mpiReplicaSpecs"].items()} == {"Launcher": 1, "Worker": 2}
    command = mpi["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]
    assert command[command.index("-n") + 1] == "24"


def test_members_without_gpus_take_one_rank_each_and_ask_for_none() -> None:
    found = objects(hostvars(gpu_cluster_gpus=0))
    assert found["PyTorchJob"]["spec"]["nprocPerNode"] == "1"
    assert all("resources" not in pod["containers"][0] for pod in pods(found).values())
    assert "resourcesPerNode" not in found["TrainJob"]["spec"]["trainer"]


def test_some_members() -> None:
    texts = files(hosts="gpu03,gpu01")
    assert "nodes --overwrite gpu01 gpu03 gpu-cluster/train=member" in texts["labels.sh"]
    found = objects(hosts="gpu02")
    assert list(found["PyTorchJob"]["spec"]["pytorchReplicaSpecs"]) == ["Master"]
    assert list(found["MPIJob"]["spec"]["mpiReplicaSpecs"]) == ["Launcher"]


def test_the_commands_that_label_nodes_are_words_of_a_shell() -> None:
    names = [f"gpu{number:03d}" for number in range(120)]
    variables = {
        name: {**hostvars()["gpu01"], "gpu_cluster_fabric_address": f"10.9.1.{number}/16"}
        for number, name in enumerate(names, 1)
    }
    text = kubernetes_files(variables, names, IMAGE)["files"]["labels.sh"]
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("kubectl label nodes --overwrite")]
    assert [word for command in commands for word in command[4:-1]] == names and len(commands) == 3


def test_rdma_is_a_resource_and_settings_of_nccl() -> None:
    rdma = {"nccl_ib_hcas": ["mlx5_0", "mlx5_1"], "nccl_settings": {"NCCL_IB_TC": 106}}
    found = objects(hostvars(**rdma), rdma_resource="rdma/hca_shared_devices_a")
    assert found["ConfigMap"]["data"]["nccl.conf"].splitlines()[2:] == [
        "NCCL_DEBUG=WARN",
        "NCCL_SOCKET_IFNAME==ens1f0",
        "NCCL_IB_HCA==mlx5_0,mlx5_1",
        "NCCL_IB_TC=106",
    ]
    assert pods(found)["torch Worker"]["containers"][0]["resources"]["limits"] == {
        "nvidia.com/gpu": "8",
        "rdma/hca_shared_devices_a": "1",
    }
    without = objects(hostvars(**rdma), rdma_resource="none")["ConfigMap"]["data"]["nccl.conf"]
    assert "NCCL_IB_DISABLE=1" in without and "NCCL_IB_HCA" not in without


def test_the_defaults_of_nccl_are_those_of_the_role() -> None:
    defaults = read_defaults(ROOT / "roles" / "nccl")
    own = {name: value for name, value in kubernetes_cluster.NCCL.items() if value is not None}
    assert {name: defaults[f"nccl_{name}"] for name in own} == own
    assert "gpu_cluster_fabric_interface" in defaults["nccl_socket_interfaces"]


def test_the_port_of_rank_0_is_within_the_plan() -> None:
    found = objects(hostvars(gpu_cluster_ports={"rendezvous": "29500-29519"}))
    (container,) = pods(found)["torch Master"]["containers"]
    assert container["ports"] == [{"name": "pytorchjob-port", "containerPort": 29500}]
    assert problems(hostvars(gpu_cluster_ports={"rendezvous": "28000-28099"})) == [
        ("inventory", "gpu_cluster_ports.rendezvous")
    ]


@pytest.mark.parametrize(
    ("command", "torchrun", "mpi"),
    [
        ("/data/train.py --lr 0.1", ["/data/train.py", "--lr", "0.1"], ["python3", "/data/train.py"]),
        ("-m trainer.main", ["-m", "trainer.main"], ["python3", "-m", "trainer.main"]),
        (["/opt/bin/train", 7], ["--no-python", "/opt/bin/train", "7"], ["/opt/bin/train", "7"]),
        ("'/data/my train.py'", ["/data/my train.py"], ["python3", "/data/my train.py"]),
    ],
)
def test_a_command_of_ones_own(command: Any, torchrun: list[str], mpi: list[str]) -> None:
    found = objects(command=command)
    assert found["TrainJob"]["spec"]["trainer"]["command"] == [*TORCHRUN, *torchrun]
    assert pods(found)["torch Worker"]["containers"][0]["command"] == [*TORCHRUN, *torchrun]
    words = pods(found)["mpi Launcher"]["containers"][0]["command"]
    assert words[words.index("sh", 5) + 4 :][: len(mpi)] == mpi
    assert "train.py" not in found["ConfigMap"]["data"]


def test_without_a_command_the_example_is_mounted() -> None:
    found = objects()
    assert found["ConfigMap"]["data"]["train.py"] == "print(1)\n"
    assert found["TrainJob"]["spec"]["trainer"]["command"] == [*TORCHRUN, "/gpu-cluster/train.py"]


def test_ports_of_kubernetes_join_the_plan_and_are_missing_no_more() -> None:
    made = kubernetes_files(hostvars(gpu_cluster_ports={"extra_ports": 4444}), HOSTS, {**IMAGE, "cni": "cilium"})
    assert made["missing"] == ["10250/tcp", "2022/tcp", "30000-32767/tcp", "30000-32767/udp", "8472/udp", "4240/tcp"]
    plan = yaml.safe_load(made["files"]["ports.yml"])["gpu_cluster_ports"]
    assert plan["extra_ports"] == [4444, *made["missing"]]
    again = kubernetes_files(hostvars(gpu_cluster_ports=plan), HOSTS, {**IMAGE, "cni": "cilium"})
    assert again["problems"] == [] and again["missing"] == [] and again["files"] == made["files"]
    whole = kubernetes_files(hostvars(), HOSTS, {**IMAGE, "control_plane": "true", "node_ports": "none"})
    assert whole["missing"] == ["10250/tcp", "2022/tcp", "6443/tcp", "2379-2380/tcp"]


@pytest.mark.parametrize(
    ("plan", "options", "variable", "rule"),
    [
        ({"ephemeral": "20000-60999", "rendezvous": "19400-19599"}, {}, "kubernetes_node_ports", "lies in"),
        ({"ssh": [22, 2022]}, {}, "kubernetes_sshd_port", "overlaps with gpu_cluster_ports.ssh (2022)"),
        ({"extra_ports": [30500]}, {}, "kubernetes_node_ports", "overlaps with gpu_cluster_ports.extra_ports (30500)"),
        ({"mpi": "10000-14999"}, {}, "the port of the kubelet", "overlaps with gpu_cluster_ports.mpi (10000-14999)"),
        ({}, {"node_ports": "29000-30000"}, "kubernetes_node_ports", "overlaps with gpu_cluster_ports.rendezvous"),
        ({}, {"sshd_port": 30022}, "kubernetes_node_ports", "overlaps with sshd of the pods"),
        ({}, {"sshd_port": 40000}, "kubernetes_sshd_port", "lies in gpu_cluster_ports.ephemeral"),
    ],
)
def test_ports_of_kubernetes_that_are_taken_are_named(
    plan: dict[str, Any], options: dict[str, Any], variable: str, rule: str
) -> None:
    made = kubernetes_files(hostvars(gpu_cluster_ports=plan), HOSTS, {**IMAGE, **options})
    assert made["files"] == {}
    found = [one for one in made["problems"] if one["variable"] == variable]
    assert found and rule in found[0]["rule"], made["problems"]


def test_reserved_ports_inside_the_ephemeral_range_are_no_conflict() -> None:
    plan = {"reserved": ["40000"]}
    assert problems(hostvars(gpu_cluster_ports=plan), sshd_port=40000) == []


def test_what_differs_between_members_is_refused_all_at_once() -> None:
    found = problems(
        hostvars(
            gpu02={"gpu_cluster_gpus": 4, "gpu_cluster_fabric_interface": "ens2f0"},
            gpu03={"launcher_environment": {"NCCL_ALGO": "Ring"}},
        )
    )
    assert found == [
        ("gpu02", "gpu_cluster_fabric_interface"),
        ("gpu02", "gpu_cluster_gpus"),
        ("gpu03", "launcher_environment"),
    ]
    assert problems(hostvars(gpu02={"gpu_cluster_gpus": 4}), hosts="gpu01,gpu03") == []
    assert problems(hostvars(gpu02={"nccl_debug": "INFO"})) == [("gpu02", "the settings of the role nccl")]


@pytest.mark.parametrize(
    ("changes", "variable"),
    [
        ({"gpu_cluster_gpus": -1}, "gpu_cluster_gpus"),
        ({"nccl_ib_hcas": ["mlx5_0"]}, "nccl_ib_hcas"),
        ({"nccl_settings": {"NCCL_SOCKET_NSOCKS_PERTHREAD": 2}}, "nccl_settings[NCCL_SOCKET_NSOCKS_PERTHREAD]"),
        ({"launcher_environment": {"PET_NNODES": "2"}}, "launcher_environment[PET_NNODES]"),
        ({"launcher_environment": {"RANK": "2"}}, "launcher_environment[RANK]"),
        ({"nccl_debug": "{{ nothing }}"}, "nccl_debug"),
    ],
)
def test_variables_that_no_pod_can_have(changes: dict[str, Any], variable: str) -> None:
    found = problems(hostvars(**changes))
    assert sorted(found) == [(name, variable) for name in HOSTS]


def test_a_name_that_is_none_in_kubernetes() -> None:
    variables = {"gpu_01" if name == "gpu01" else name: own for name, own in hostvars().items()}
    made = kubernetes_files(variables, list(variables), IMAGE)
    assert [(one["host"], one["value"]) for one in made["problems"]] == [("gpu_01", "'gpu_01'")]


@pytest.mark.parametrize(
    "options",
    [
        {"image": ""},
        {"image": "train 1"},
        {"image": 7},
        {"command": []},
        {"command": "'unclosed"},
        {"command": "-m"},
        {"command": {"a": 1}},
        {"command": ["a\nb"]},
        {"name": "Train"},
        {"name": "t" * 41},
        {"name": "1train"},
        {"namespace": "a.b"},
        {"rdma_resource": "hca"},
        {"cni": "calic"},
        {"control_plane": "perhaps"},
        {"node_ports": "32767-30000"},
        {"node_ports": "0-70000"},
        {"sshd_port": "ssh"},
        {"sshd_port": 70000},
        {"hosts": "gpu09"},
    ],
    ids=str,
)
def test_options_that_kubernetes_would_refuse(options: dict[str, Any]) -> None:
    (name,) = options
    assert problems(**options) == [("command line", f"kubernetes_{name}")]


def test_all_problems_come_together() -> None:
    found = problems(
        hostvars(gpu03={"gpu_cluster_gpus": 4}, gpu_cluster_ports={"ssh": 2022}), image="", name="T", cni="x"
    )
    assert found == [
        ("command line", "kubernetes_image"),
        ("command line", "kubernetes_cni"),
        ("command line", "kubernetes_name"),
        ("gpu03", "gpu_cluster_gpus"),
        ("inventory", "kubernetes_sshd_port"),
    ]


def test_a_contradictory_plan_is_told_as_the_inventory_tells_it() -> None:
    assert problems(hostvars(gpu_cluster_ports={"mpi": "1-2"}))[0] == ("inventory", "gpu_cluster_ports.mpi")
