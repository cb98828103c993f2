# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all pods of a job have in common, from the members and the variables of the roles nccl and launcher. Pure.

A job has one template for its pods, so what differs between members is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import kubernetes_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff.kubernetes_options import NONE, Options
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.gpus import GPUS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import environment
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import PortPlan

#: Variables of the inventory that pods need, with the defaults of their roles.
ENVIRONMENT = "launcher_environment"
NCCL: dict[str, Any] = {"socket_interfaces": None, "ib_hcas": [], "ib_disabled": False, "debug": "WARN", "settings": {}}
VARIABLES = (ENVIRONMENT, *(f"nccl_{name}" for name in NCCL))
#: The port on which rank 0 listens: the Trainer has no option for it (ContainerTrainerPort in
#: github.com/kubeflow/trainer pkg/constants/constants.go, 2.3).
TRAINER_PORT = 29500
#: What the operators set themselves. torchrun reads PET_ variables as its options.
_OF_OPERATORS = re.compile(r"PET_.*|OMPI_MCA_.*|PYTHONUNBUFFERED")
_NODE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")

ERR_DIFFERS = "differs from %s of most members, and the pods of a job have one template"
FIX_HOSTS = "write the same for all, or name members that are alike with -e kubernetes_hosts=NAME,NAME"
ERR_NODE = "is no name of a node of Kubernetes: lower-case letters, digits, - and ."
FIX_NODE = "rename the member, or leave it out with -e kubernetes_hosts=NAME,NAME"
ERR_RDMA = "is set, and a pod sees no RDMA device without a resource of a device plugin"
FIX_RDMA = f"add -e kubernetes_rdma_resource=rdma/NAME, or kubernetes_rdma_resource={NONE} for TCP"
ERR_RESOURCE = "has no use while nccl_ib_disabled is true"
FIX_RESOURCE = "leave it out, or turn RDMA on"
ERR_TRAINER = f"does not have {TRAINER_PORT}, the port of a TrainJob, which cannot be moved"
FIX_TRAINER = f"let the range contain {TRAINER_PORT}, as the default does"
ERR_OPERATOR = "the operators of Kubernetes set it themselves"


@dataclass(frozen=True)
class Cluster:
    """The members as nodes of Kubernetes."""

    nodes: tuple[str, ...]
    interface: str
    gpus: int
    nccl: dict[str, str]
    environment: dict[str, str]
    plan: PortPlan
    ports: tuple[kubernetes_ports.Port, ...]

    @property
    def ranks_per_node(self) -> int:
        """As gpu-cluster-run counts: a member without GPUs takes one rank."""
        return max(self.gpus, 1)

    @property
    def master_port(self) -> int:
        """The port at which ranks meet, where it can be chosen."""
        meeting = self.plan.rendezvous
        return TRAINER_PORT if meeting.first <= TRAINER_PORT <= meeting.last else meeting.first


def read(
    members: Sequence[Mapping[str, Any]],
    variables: Mapping[str, Mapping[str, Any]],
    plan: PortPlan,
    options: Options,
) -> tuple[Cluster | None, list[Problem]]:
    """The common values, or all reasons why there are none. variables: those of ``VARIABLES``, by member."""
    problems = [
        Problem("inventory_hostname", shown(one["name"]), ERR_NODE, FIX_NODE).on(one["name"])
        for one in members
        if not _NODE.fullmatch(one["name"].lower()) or len(one["name"]) > 253
    ]
    interfaces = {one["name"]: one["fabric_interface"] for one in members}
    gpus = {one["name"]: one["gpus"] for one in members if "gpus" in one}
    nccl, environments = {}, {}
    for one in members:
        own = variables.get(one["name"], {})
        nccl[one["name"]], found = _nccl(own, one["fabric_interface"], options)
        problems += [problem.on(one["name"]) for problem in found]
        environments[one["name"]], found = _environment(own.get(ENVIRONMENT, {}))
        problems += [problem.on(one["name"]) for problem in found]
    problems += _differing("gpu_cluster_fabric_interface", interfaces)
    problems += _differing(GPUS, gpus)
    problems += _differing(ENVIRONMENT, environments)
    # Whoever has another interface has another list of them as well.
    problems += [] if problems else _differing("the settings of the role nccl", nccl)
    wanted = kubernetes_ports.ports(options.node_ports, options.sshd_port, options.cni, options.control_plane)
    ports = [problem.on("inventory") for problem in kubernetes_ports.conflicts(plan, wanted)]
    if not plan.rendezvous.first <= TRAINER_PORT <= plan.rendezvous.last:
        span = shown(plan.rendezvous.text())
        ports.append(Problem("gpu_cluster_ports.rendezvous", span, ERR_TRAINER, FIX_TRAINER).on("inventory"))
    if problems or ports or len(gpus) != len(members) or not members:
        return None, problems + ports
    first = members[0]["name"]
    return Cluster(
        nodes=tuple(one["name"].lower() for one in members),
        interface=interfaces[first],
        gpus=gpus[first],
        nccl=nccl[first],
        environment=environments[first],
        plan=plan,
        ports=tuple(wanted),
    ), []


def _nccl(own: Mapping[str, Any], interface: str, options: Options) -> tuple[dict[str, str], list[Problem]]:
    """The settings of a member, as the role nccl makes them."""
    values: dict[str, Any] = {name: own.get(f"nccl_{name}", default) for name, default in NCCL.items()}
    wrong = [value.problem(f"nccl_{name}") for name, value in values.items() if isinstance(value, Unreadable)]
    if wrong:
        return {}, wrong
    if values["socket_interfaces"] is None:
        values["socket_interfaces"] = [interface]
    values["ib_disabled"] = str(values["ib_disabled"]).lower() in ("true", "yes", "on", "1")
    if options.rdma_resource == NONE:
        values.update(ib_disabled=True, ib_hcas=[])
    problems = []
    if values["ib_hcas"] and not values["ib_disabled"] and not options.rdma_resource:
        problems.append(Problem("nccl_ib_hcas", shown(values["ib_hcas"]), ERR_RDMA, FIX_RDMA))
    if values["ib_disabled"] and options.rdma_resource not in ("", NONE):
        problems.append(Problem("kubernetes_rdma_resource", shown(options.rdma_resource), ERR_RESOURCE, FIX_RESOURCE))
    # Its packages do not matter here.
    made, found = settings.plan({**values, "version": "", "cuda": "13"})
    return made["settings"], problems + found


def _environment(given: Any) -> tuple[dict[str, str], list[Problem]]:
    if isinstance(given, Unreadable):
        return {}, [given.problem(ENVIRONMENT)]
    found, problems = environment.names(given, ENVIRONMENT)
    for name, value in found.items():
        if _OF_OPERATORS.fullmatch(name):
            problems.append(Problem(f"{ENVIRONMENT}[{name}]", shown(value), ERR_OPERATOR, "remove it"))
    return found, problems


def _differing(variable: str, values: Mapping[str, Any]) -> list[Problem]:
    """The members whose value is not that of most of them."""
    counted = Counter(shown(value) for value in values.values())
    if len(counted) < 2:
        return []
    usual = counted.most_common(1)[0][0]
    return [
        Problem(variable, shown(value), ERR_DIFFERS % usual, FIX_HOSTS).on(name)
        for name, value in values.items()
        if shown(value) != usual
    ]
