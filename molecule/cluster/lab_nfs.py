# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file server of NFS on the virtual machine, which mounts from itself; and a playbook of steps, one after another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lab_cluster import Cluster
from lab_selinux import NODE

SERVER = "198.18.30.11"
EXPORT = "/export/data"
#: One that gives root the rights of nobody, which is the server's default.
SQUASHED = "/export/squashed"
DATA = {"path": "/data", "source": f"{SERVER}:{EXPORT}", "type": "nfs4", "writable": True}
#: Version 4 alone, as EL's clients take it, and without the 90 s in which a server that was started lets nobody in.
SERVE = f"""
mkdir -p {EXPORT} {SQUASHED} /etc/nfs.conf.d
chmod 1777 {EXPORT}
install -d -o train -g train -m 0700 {SQUASHED}
printf '[nfsd]\\nvers3=n\\ngrace-time=5\\nlease-time=5\\n' > /etc/nfs.conf.d/lab.conf
echo '{EXPORT} *(rw,no_root_squash,no_subtree_check,fsid=11)' > /etc/exports
echo '{SQUASHED} *(rw,no_subtree_check,fsid=12)' >> /etc/exports
systemctl start nfs-server
"""
#: Packets to the server get lost, also those of the machine to itself.
DROP = (
    "nft add table inet lab_nfs && nft 'add chain inet lab_nfs in { type filter hook input priority -300; }' && "
    "nft add rule inet lab_nfs in tcp dport 2049 drop"
)
PASS = "nft delete table inet lab_nfs 2>/dev/null || true"
CLEAN = f"""
{PASS}
systemctl disable --quiet --now gpu-cluster-storage-retry.timer 2>/dev/null
for path in /data/sub /data /lab-home; do umount -l $path 2>/dev/null; done
rm -f /etc/systemd/system/data*.mount /etc/systemd/system/lab*home.mount /etc/systemd/system/*.wants/data*.mount
rm -f /etc/systemd/system/*.wants/lab*home.mount /etc/systemd/system/gpu-cluster-storage-retry.*
systemctl disable --quiet nfs-server 2>/dev/null
systemctl stop nfs-server nfs-mountd nfsdcld rpcbind.socket rpcbind 2>/dev/null
systemctl daemon-reload; systemctl reset-failed
rm -rf /export /etc/exports /etc/nfs.conf.d/lab.conf /run/gpu-cluster-shared-storage
rmdir /data /lab-home 2>/dev/null
true
"""


def shell(command: str) -> dict[str, Any]:
    """A step that runs a command as root."""
    return {"ansible.builtin.shell": command}


def mounts(*wanted: dict[str, Any], user: str = "train", seconds: int = 30, **more: Any) -> dict[str, Any]:
    """A step that does what the role does, without its packages."""
    given = {"mounts": list(wanted), "user": user, "timeout_seconds": seconds, **more}
    return {"baremetal.gpu_cluster.shared_mounts": given}


def go(machine: Cluster, steps: Sequence[dict[str, Any]], deadline: float = 300) -> list[dict[str, Any]]:
    """Run the steps in one play, also after one that fails. Gives the result of each."""
    names = [f"step_{number}" for number in range(len(steps))]
    tasks = [
        {"name": name, "register": name, "ignore_errors": True, **step} for name, step in zip(names, steps, strict=True)
    ]
    kept = machine.reports / "steps.json"
    keep = {
        "name": "Keep the results",
        "ansible.builtin.copy": {"dest": str(kept), "content": f"{{{{ [{', '.join(names)}] | to_json }}}}"},
        "delegate_to": "localhost",
    }
    play = {"name": "Steps", "hosts": NODE, "gather_facts": False, "tasks": [*tasks, keep]}
    book = machine.reports / "steps.yml"
    book.write_text(json.dumps([play]))
    ended = machine.play(str(book), deadline=deadline)
    assert ended.code == 0, ended.text
    return list(json.loads(kept.read_text()))
