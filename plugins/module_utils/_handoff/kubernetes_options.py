# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbook kubernetes is told on the command line, read and checked. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    FIRST_PORT,
    LAST_PORT,
    whole_number,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import kubernetes_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff.members import COMMAND_LINE
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_ranges import PortRange

#: Where the example is in the pods.
SCRIPT = "/gpu-cluster/train.py"
SSHD_PORT = 2022
DEFAULTS: dict[str, Any] = {
    "image": "",
    "command": None,
    "name": "train",
    "namespace": "default",
    "rdma_resource": "",
    "cni": "none",
    "control_plane": False,
    "node_ports": kubernetes_ports.NODE_PORTS,
    "sshd_port": SSHD_PORT,
}
#: So that also NAME-worker-999 and NAME-launcher are names of hosts, with 63 characters at most.
LONGEST_NAME = 40
NONE = "none"
_NAME = re.compile(rf"[a-z]([a-z0-9-]{{0,{LONGEST_NAME - 2}}}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_RESOURCE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_RANGE = re.compile(r"\s*([0-9]{1,5})\s*-\s*([0-9]{1,5})\s*")

ERR_IMAGE_UNSET = "not set, and every pod needs an image with PyTorch"
ERR_IMAGE = "expected the name of an image, without blanks"
FIX_IMAGE = "add -e kubernetes_image=registry.example.com/train:1 to the command"
ERR_COMMAND = "expected a script or program with its arguments, as one text or as a list"
ERR_QUOTES = "cannot be taken apart into words: %s"
FIX_COMMAND = 'write it like "/data/train.py --epochs 10"'
ERR_NAME = f"expected lower-case letters, digits and -, a letter first, up to {LONGEST_NAME} characters"
ERR_NAMESPACE = "expected lower-case letters, digits and -, up to 63 characters"
ERR_RESOURCE = f"expected a resource such as rdma/hca_shared_devices_a, or {NONE}"
ERR_CNI = "expected one of {}".format(", ".join(kubernetes_ports.CNI))
ERR_BOOL = "expected true or false"
ERR_NODE_PORTS = "expected a range of ports written as FIRST-LAST, or none"
ERR_PORT = f"expected a port from {FIRST_PORT} to {LAST_PORT}"
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Options:
    """What was asked for. ``command``: the words, a script or program first."""

    image: str
    command: tuple[str, ...]
    is_example: bool
    name: str
    namespace: str
    rdma_resource: str
    cni: str
    control_plane: bool
    node_ports: PortRange | None
    sshd_port: int


def read(given: Mapping[str, Any]) -> tuple[Options, list[Problem]]:
    """The options by their names without kubernetes_; with problems they must not be used."""
    values = {**DEFAULTS, **{name: value for name, value in given.items() if value is not None}}
    problems: list[Problem] = []

    def refuse(name: str, rule: str, fix: str) -> None:
        problems.append(Problem(f"kubernetes_{name}", shown(values[name]), rule, fix).on(COMMAND_LINE))

    def text(name: str, form: re.Pattern[str], rule: str, fix: str) -> str:
        value = values[name]
        if not isinstance(value, str) or not form.fullmatch(value):
            refuse(name, rule, fix)
            return ""
        return str(value)

    if values["image"] == "":
        refuse("image", ERR_IMAGE_UNSET, FIX_IMAGE)
    image = "" if values["image"] == "" else text("image", _IMAGE, ERR_IMAGE, FIX_IMAGE)
    command, reason = _command(values["command"])
    if reason:
        refuse("command", reason, FIX_COMMAND)
    cni = str(values["cni"])
    if cni not in kubernetes_ports.CNI:
        near = nearest(cni, kubernetes_ports.CNI)
        refuse("cni", ERR_CNI, f"write {near}" if near else "leave it out, and add its ports to extra_ports")
    truth = str(values["control_plane"]).lower()
    if truth not in (*_TRUE, *_FALSE):
        refuse("control_plane", ERR_BOOL, "write true where members are control-plane nodes, too")
    sshd = whole_number(values["sshd_port"])
    if sshd is None or not FIRST_PORT <= sshd <= LAST_PORT:
        refuse("sshd_port", ERR_PORT, f"write it like {SSHD_PORT}")
    node_ports = _node_ports(values["node_ports"])
    if node_ports is None and values["node_ports"] != NONE:
        refuse("node_ports", ERR_NODE_PORTS, f"write it like {kubernetes_ports.NODE_PORTS}")
    resource = values["rdma_resource"]
    options = Options(
        image=image,
        command=tuple(command),
        is_example=values["command"] is None,
        name=text("name", _NAME, ERR_NAME, "write it like train"),
        namespace=text("namespace", _NAMESPACE, ERR_NAMESPACE, "write it like default"),
        rdma_resource=(
            str(resource)
            if resource in ("", NONE)
            else text("rdma_resource", _RESOURCE, ERR_RESOURCE, "name the resource of the RDMA device plugin")
        ),
        cni=cni if cni in kubernetes_ports.CNI else "none",
        control_plane=truth in _TRUE,
        node_ports=node_ports,
        sshd_port=sshd or SSHD_PORT,
    )
    return options, problems


def _command(given: Any) -> tuple[list[str], str]:
    """The words of a command, or why there are none."""
    if given is None:
        return [SCRIPT], ""
    if isinstance(given, str):
        try:
            words = shlex.split(given)
        except ValueError as error:
            return [], ERR_QUOTES % str(error).lower()
    elif isinstance(given, (list, tuple)) and all(
        isinstance(word, (str, int, float)) and not isinstance(word, bool) for word in given
    ):
        words = [str(word) for word in given]
    else:
        return [], ERR_COMMAND
    is_whole = bool(words) and words != ["-m"] and all(word.isprintable() for word in words)
    return (words, "") if is_whole else ([], ERR_COMMAND)


def _node_ports(given: Any) -> PortRange | None:
    match = _RANGE.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        return None
    span = PortRange(int(match.group(1)), int(match.group(2)))
    return span if FIRST_PORT <= span.first <= span.last <= LAST_PORT else None
