# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is made of, as far as nodes of one cluster should agree in it. Reads only; runs on the node."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import commands
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.gather import OPENMPI_PREFIX, Node, gather

RPM_SECONDS = 60.0
UNITS_SECONDS = 20.0
RPM_FORMAT = "%{NAME}.%{ARCH}\\t%{EVR}\\n"
SYSCTL = "etc/sysctl.d/90-gpu-cluster.conf"
HOSTS = "etc/hosts"
#: Where role cluster_firewall keeps the addresses of the members, one file for each family.
PEERS = "etc/firewalld/ipsets/gpu-peers*.xml"


def packages(out: str) -> dict[str, str]:
    """Name and architecture to version, from ``rpm -qa`` in RPM_FORMAT. Several versions of one are joined."""
    found: dict[str, list[str]] = {}
    for line in out.splitlines():
        name, _tab, version = line.partition("\t")
        # Signing keys are packages of rpm's own, without an architecture.
        if version and not name.startswith("gpg-pubkey."):
            found.setdefault(name, []).append(version)
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}


def wheels(names: Sequence[str]) -> dict[str, str]:
    """Python packages by the names of their ``*.dist-info`` folders (PEP 427: name-version, no other hyphen)."""
    found = (re.match(r"(.+)-([^-]+)\.dist-info$", name) for name in names)
    return {match.group(1).lower().replace("_", "-"): match.group(2) for match in found if match}


def sysctl_keys(text: str) -> list[str]:
    """The keys that a file of sysctl.d sets."""
    keys = [line.partition("=")[0].strip().lstrip("-") for line in text.splitlines() if not line.startswith(("#", ";"))]
    return [key for key in keys if key]


def enabled_units(out: str) -> dict[str, str]:
    """The units that start at boot, from ``systemctl list-unit-files``."""
    return {line.split()[0]: "enabled" for line in out.splitlines() if line.split()[1:2] == ["enabled"]}


def stack(facts: Mapping[str, Any], interface: str) -> dict[str, str]:
    """The facts of the GPU stack that should agree, each as one text. Empty ones are left out."""
    models = sorted(str(one["model"]) for one in facts["gpus"])
    counted = [f"{models.count(model)} x {model}" for model in dict.fromkeys(models)]
    values: dict[str, Any] = {
        "kernel": facts["kernel"]["running"],
        "kernel after a reboot": facts["kernel"]["boots"],
        "GPUs": ", ".join(counted),
        "driver": facts["driver"]["loaded"],
        "driver kind": facts["driver"]["kind"],
        "Fabric Manager": facts["fabric_manager"]["version"],
        "CUDA toolkits": ", ".join(facts["cuda"]["versions"]),
        "default CUDA toolkit": facts["cuda"]["default"],
        "NCCL of the system": facts["nccl"]["system"],
        "NCCL of PyTorch": facts["nccl"]["torch"],
        "PyTorch": facts["torch"]["version"],
        "Open MPI": facts["openmpi"],
    }
    for card in facts["nics"]:
        if card["name"] == interface:
            values["card of the data network"] = " ".join(filter(None, (card["driver"], card["model"])))
            values["its firmware"] = card["firmware"]
            values["its MTU"] = card["mtu"]
            values["its speed in Mbit/s"] = card["speed_mbit"]
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


def unknown_addresses(members: Sequence[Mapping[str, Any]], hosts: str, peers: str | None) -> list[str]:
    """The addresses of ``members`` that the hosts file or the firewall of this node does not have, in words.

    ``peers`` is the text of the firewall's sets, None where this node has none of ours.
    """
    pairs = {(fields[0], name) for fields in map(str.split, hosts.splitlines()) if fields for name in fields[1:]}
    listed = set(re.findall(r"<entry>([^<]+)</entry>", peers or ""))
    missing = []
    for member in members:
        if (member["fabric_address"], member["name"]) not in pairs:
            missing.append(f"{member['fabric_address']} as {member['name']} in /etc/hosts")
        if peers is not None:
            gone = [address for address in member["addresses"] if address not in listed]
            missing += [f"{address} of {member['name']} in the firewall" for address in gone]
    return missing


def take(
    node: Node,
    torch_prefix: str,
    interface: str,
    members: Sequence[Mapping[str, Any]],
    openmpi_prefix: str = OPENMPI_PREFIX,
) -> dict[str, Any]:
    """Everything, in one go. What could not be read has a sentence in ``problems``."""
    facts, problems = gather(node, torch_prefix, openmpi_prefix=openmpi_prefix)
    rpm = _ask(node, problems, RPM_SECONDS, "rpm", "-qa", "--queryformat", RPM_FORMAT)
    units = _ask(node, problems, UNITS_SECONDS, "systemctl", "list-unit-files", "--state=enabled", "--no-legend")
    dist_info = glob.glob(os.path.join(torch_prefix, "lib", "python3*", "site-packages", "*.dist-info"))
    keys = sysctl_keys(node.read(SYSCTL))
    sets = [node.read(os.path.relpath(path, node.root)) for path in glob.glob(os.path.join(node.root, PEERS))]
    values = {key: " ".join(node.read(f"proc/sys/{key.replace('.', '/')}").split()) for key in keys}
    return {
        "stack": stack(facts, interface),
        "package": packages(rpm),
        "Python package": wheels([os.path.basename(path) for path in dist_info]),
        "sysctl": values,
        "service at boot": enabled_units(units),
        "unknown_addresses": unknown_addresses(members, node.read(HOSTS), "\n".join(sets) if sets else None),
        "problems": problems,
    }


def _ask(node: Node, problems: list[str], seconds: float, *words: str) -> str:
    answer: commands.Answer = node.ask(*words, seconds=seconds)
    if answer.problem:
        problems.append(answer.problem)
    return answer.out
