# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SELinux on the virtual machine: the role, what was denied, and what the machine says of itself."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from lab_cluster import PROJECT, Cluster, Ended

NODE = "vm1"
VARIABLES = "molecule/vm/variables.yml"
#: A second member, which the shipped playbooks want.
PEER = "molecule/vm/peer.yml"
#: Somewhere where the policy expects no keys.
KEYS = "/keys"
SSHD_KEYS = "/etc/ssh/sshd_config.d/keys.conf"


def base(machine: Cluster, *arguments: str, **variables: Any) -> Ended:
    """The role as base.yml calls it."""
    given = json.dumps(variables)
    base_alone = machine.without_guard("base")
    argv = machine.command(base_alone, "-i", VARIABLES, "--tags", "selinux_policy", "-e", given)
    return machine.run([*argv, *arguments], variables={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})


def denials(machine: Cluster, since: str = "boot") -> dict[str, Any]:
    """What the module says about this machine."""
    argv = ["ansible", NODE, "-i", machine.inventory, "-m", "baremetal.gpu_cluster.selinux_denials"]
    variables = {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
    ended = machine.run([*argv, "-a", json.dumps({"since": since})], variables=variables)
    assert ended.code == 0, ended.text
    return dict(json.JSONDecoder().raw_decode(ended.text.partition("=> ")[2])[0])


def kind(denial: dict[str, Any]) -> tuple[Any, ...]:
    """What makes two denials the same, for the comparison with those before the roles: the rule of the policy."""
    contexts = (denial[name].split(":")[2] for name in ("scontext", "tcontext"))
    return *contexts, denial["tclass"], *denial["permissions"]


def new_denials(machine: Cluster, since: str = "") -> list[str]:
    """What was denied since then (the first role, when not given) and had not been denied before: sentences."""
    before = json.loads(machine.shell(NODE, "cat /srv/denials-before.json"))
    known = {kind(denial) for denial in before["denials"]}
    found = denials(machine, since or str(before["until"]))["denials"]
    return [denial["sentence"] for denial in found if kind(denial) not in known]


def now(machine: Cluster) -> str:
    return machine.shell(NODE, "date +%s").strip()


def state(machine: Cluster) -> dict[str, str]:
    """What the roles have set, as the machine itself says it to somebody who logs in."""
    commands = {
        "mode": "getenforce",
        "next boot": "grep ^SELINUX= /etc/selinux/config",
        "labels": "semanage port --list --noheading | grep ^ssh_port_t",
        "buffers": "sysctl -n net.core.rmem_max net.core.wmem_max",
        "ephemeral": "sysctl -n net.ipv4.ip_local_port_range",
        "firewall": "firewall-cmd --state; firewall-cmd --info-policy=gpu-cluster-peers | grep -v active",
        "limits of a service": "systemd-run --quiet --wait --pipe --uid=train sh -c 'ulimit -l; ulimit -n'",
        "address": "ip -o -4 address show dev eth1 | awk '{print $4}'",
        "torch": "/opt/gpu-cluster/torch/bin/python -c 'import torch; print(torch.__version__)'",
        "wrong labels": "restorecon -nRv /opt/gpu-cluster /etc /home /var/lib/gpu-cluster /usr/local",
    }
    # Not over the console: it writes to files of its own, which Debian's policy denies to some of these programs.
    script = "".join(f"echo '== {name}'; {command}; " for name, command in commands.items())
    text = machine.lab("ssh", NODE, script)
    parts = (part.partition("\n") for part in text.split("== ")[1:])
    return {name: printed.strip() for name, _line, printed in parts}


def session(machine: Cluster, command: str, *, deadline: float = 240) -> subprocess.CompletedProcess[str]:
    """A command in a session without a terminal, as jobs are started: with the user's real limits and label."""
    host = machine.hosts[NODE]["ansible_host"]
    lab = PROJECT / ".lab-vm"
    options = ["-o", f"UserKnownHostsFile={lab / 'known_hosts'}", "-o", "BatchMode=yes", "-i", str(lab / "id_ed25519")]
    argv = ["ssh", "-F", "none", *options, f"train@{host}", command]
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=deadline)


def login(machine: Cluster, command: str) -> list[str]:
    """What a command prints in such a session."""
    ended = session(machine, command)
    ended.check_returncode()
    return ended.stdout.split()


def mode(machine: Cluster) -> list[str]:
    return machine.shell(NODE, "getenforce; grep ^SELINUX= /etc/selinux/config").split()
