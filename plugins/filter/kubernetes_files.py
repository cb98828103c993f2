# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter kubernetes_files: manifests that run a training on the members. The rules live in module_utils/_handoff."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.filter.handoff_members import handoff_members
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import (
    kubernetes,
    kubernetes_cluster,
    kubernetes_options,
    kubernetes_ports,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    VARIABLE,
    PortPlanError,
    make_port_plan,
)

DOCUMENTATION = r"""
name: kubernetes_files
short_description: Write manifests that run a training on the members
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Renders a PyTorchJob, an MPIJob, and a TrainJob with its TrainingRuntime, from the members and the port plan of the
    inventory, with a ConfigMap, commands that label the nodes, and the port plan with the ports of Kubernetes.
  - Refuses options that Kubernetes would refuse, members that differ in what a job has one value for, and ports of
    Kubernetes that the plan has for something else. All problems are listed at once.
positional: _input, hosts, options, example
options:
  _input:
    description: C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of all members, usually C(groups['gpu_cluster']).
    type: list
    elements: str
    required: true
  options:
    description:
      - The variables of the playbook without C(kubernetes_). They are C(image), C(command), C(hosts), C(name),
        C(namespace), C(rdma_resource), C(cni), C(control_plane), C(node_ports) and C(sshd_port). One that is empty has
        its default.
    type: dict
    required: true
  example:
    description: The text of the training script that runs without C(command).
    type: str
    default: ""
seealso:
  - module: baremetal.gpu_cluster.handoff_files
"""

EXAMPLES = r"""
- name: Show the names of the files
  ansible.builtin.debug:
    msg: "{{ (hostvars | baremetal.gpu_cluster.kubernetes_files(groups['gpu_cluster'], options)).files | list }}"
  vars:
    options: {image: "registry.example.com/train:1"}
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(files) has the text of each file by its name, empty with problems.
    - C(problems), as P(baremetal.gpu_cluster.inventory_problems#filter) returns them.
    - C(missing) has the ports that C(extra_ports) of the port plan does not have yet, such as C(10250/tcp).
  type: dict
"""

HEADERS = {
    "files.yml": "Files that the pods of all jobs mount. Apply it first.",
    "pytorchjob.yml": "For the training operator (kubeflow.org/v1).",
    "mpijob.yml": "For the MPI operator (kubeflow.org/v2beta1).",
    "trainjob.yml": "For Kubeflow Trainer 2 (trainer.kubeflow.org/v1alpha1).",
    "ports.yml": (
        "The port plan of the inventory with the ports of Kubernetes. Put it in the place of gpu_cluster_ports in\n"
        "# group_vars, and run site.yml again: it opens them to members only."
    ),
}
PAGE = "docs/kubernetes.md explains every part."


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def kubernetes_files(
    hostvars: Mapping[str, Any], hosts: Sequence[str], options: Mapping[str, Any], example: str = ""
) -> dict[str, Any]:
    """Return the texts, or the problems."""
    # An expression for something that is not set gives an empty text.
    given = {str(name): _plain(value) for name, value in options.items() if value not in (None, "")}
    chosen, problems = kubernetes_options.read({name: value for name, value in given.items() if name != "hosts"})
    told = handoff_members(hostvars, hosts, given.get("hosts"), "kubernetes_hosts")
    names = [one["name"] for one in told["members"]]
    variables = {name: read_variables(hostvars, name, kubernetes_cluster.VARIABLES.__contains__) for name in names}
    own = read_variables(hostvars, str(hosts[0]), VARIABLE.__eq__) if hosts else {}
    overrides = own.get(VARIABLE) or {}
    try:
        plan = make_port_plan(overrides)
    except PortPlanError as error:
        wrong = [problem.on("inventory").as_dict() for problem in error.problems]
        return _refused([problem.as_dict() for problem in problems] + told["problems"] + wrong)
    cluster, found = kubernetes_cluster.read(told["members"], variables, plan, chosen)
    if problems or found or told["problems"] or cluster is None:
        return _refused([problem.as_dict() for problem in problems] + told["problems"] + _told(found))
    missing = [port.span.firewall() for port in kubernetes_ports.missing(plan, cluster.ports)]
    files = {
        "labels.sh": kubernetes.labels(cluster, chosen),
        "files.yml": _document("files.yml", kubernetes.config_map(cluster, chosen, str(example))),
        "pytorchjob.yml": _document("pytorchjob.yml", kubernetes.pytorch_job(cluster, chosen)),
        "mpijob.yml": _document("mpijob.yml", kubernetes.mpi_job(cluster, chosen)),
        "trainjob.yml": _document(
            "trainjob.yml", kubernetes.training_runtime(cluster, chosen), kubernetes.train_job(cluster, chosen)
        ),
        "ports.yml": _document("ports.yml", {VARIABLE: _plan(overrides, missing)}),
    }
    return {"files": files, "problems": [], "missing": missing}


def _plain(value: Any) -> Any:
    """Without Ansible's own types of texts and numbers, which YAML's writer does not know."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        # str() alone leaves texts of ansible-core before 2.19 as they are.
        return str.__str__(value)
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _told(problems: Sequence[Problem]) -> list[dict[str, str]]:
    return [problem.as_dict() for problem in problems]


def _refused(problems: list[dict[str, str]]) -> dict[str, Any]:
    return {"files": {}, "problems": problems, "missing": []}


def _plan(overrides: Mapping[str, Any], missing: Sequence[str]) -> dict[str, Any]:
    """What the inventory says, with further ports."""
    there = overrides.get("extra_ports", [])
    if isinstance(there, str):
        there = [part.strip() for part in there.split(",") if part.strip()]
    listed = list(there) if isinstance(there, (list, tuple)) else [there]
    return {**overrides, "extra_ports": [*listed, *missing]}


def _document(name: str, *documents: Any) -> str:
    texts = [
        yaml.dump(_plain(document), Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
        for document in documents
    ]
    return f"# {HEADERS[name]} {PAGE}\n" + "".join(f"---\n{text}" for text in texts)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"kubernetes_files": kubernetes_files}
