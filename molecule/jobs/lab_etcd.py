# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""torchrun with the rendezvous in etcd, started by hand on every node."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import threading
import time
from typing import Any

from lab_cluster import PROJECT, Cluster, patience

FOLDER = "/var/tmp/lab-etcd"
UNIT = "gpu-cluster-etcd.service"
TLS = "/etc/gpu-cluster/etcd"
PLUGIN = "/usr/local/lib/gpu-cluster/torchrun"
END = re.compile(r"rank (\d) weights (\w+) same on (\d) ranks, loss ([\d.]+) to ([\d.]+)")


def settings(cluster: Cluster) -> str:
    """The variables of the role, for -e. The authority is not beside the inventory, so that nothing stays there."""
    variables: dict[str, Any] = {"etcd_members": list(cluster.hosts), "gpu_cluster_ports": {"etcd": "2379-2380"}}
    return json.dumps({**variables, "etcd_ca_dir": str(cluster.reports / "etcd_ca")})


def curl(cluster: Cluster, node: str, path: str, *, port: int = 2379, cert: bool = True, asker: str = "") -> str:
    """What a member answers to curl on another node, or what curl says."""
    tls = f"--cacert {TLS}/ca.crt" + (f" --cert {TLS}/client.crt --key {TLS}/client.key" if cert else "")
    url = f"https://{cluster.fabric_address(node)}:{port}{path}"
    return cluster.shell(asker or node, f"curl -sS -m 5 {tls} -d '{{}}' {url} 2>&1; true")


def members(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    """The members that etcd itself lists."""
    found: list[dict[str, Any]] = json.loads(curl(cluster, node, "/v3/cluster/member/list"))["members"]
    return found


class Agent:
    """torchrun on one node, as the user of jobs."""

    def __init__(self, cluster: Cluster, node: str, job: str, *arguments: str, conf: str = "") -> None:
        self.cluster, self.node = cluster, node
        etcd = json.loads(cluster.shell(node, "cat /etc/gpu-cluster/cluster.json"))["etcd"]
        conf = conf or ",".join(f"{name}={etcd[name]}" for name in ("ca", "cert", "key")) + ",last_call_timeout=3"
        torchrun = ["/opt/gpu-cluster/torch/bin/python", "-m", "torch.distributed.run", "--nnodes", "2:3"]
        torchrun += ["--nproc-per-node", "1", "--max-restarts", "5", "--rdzv-backend", "gpu-cluster-etcd"]
        torchrun += ["--rdzv-endpoint", ",".join(etcd["endpoints"]), "--rdzv-id", job, "--rdzv-conf", conf]
        torchrun += ["--local-addr", cluster.fabric_address(node), f"{FOLDER}/train.py", *arguments]
        shell = f". /etc/profile.d/gpu-cluster.sh; export OMP_NUM_THREADS=1 PYTHONPATH={PLUGIN}; cd {FOLDER} && exec "
        argv = cluster.lab_argv("exec", node, "su", "train", "-s", "/bin/sh", "-c", shell + shlex.join(torchrun))
        self.process = subprocess.Popen(
            argv, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line.rstrip("\n") for line in iter(self.process.stdout.readline, ""))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def end(self, deadline: float = 120) -> int:
        """The exit status."""
        code = self.process.wait(deadline * patience())
        self.reader.join(10)
        return code


class Training:
    """The example's training on all nodes."""

    def __init__(self, cluster: Cluster, job: str, *, epochs: int, pause: float = 0.0) -> None:
        self.cluster = cluster
        arguments = ("--epochs", str(epochs), "--pause", str(pause), "--checkpoint", f"{FOLDER}/{job}.pt")
        self.agents = {name: Agent(cluster, name, job, *arguments) for name in cluster.hosts}

    @property
    def text(self) -> str:
        return "\n".join(f"[{name}] {line}" for name, agent in self.agents.items() for line in list(agent.lines))

    def epochs(self, ranks: int) -> list[int]:
        """The epochs that so many ranks have ended."""
        return [int(epoch) for epoch in re.findall(rf"epoch (\d+) loss \S+ ranks {ranks}$", self.text, re.M)]

    def seen(self, ranks: int, epoch: int, deadline: float = 120) -> None:
        """Wait until so many ranks have ended this epoch."""
        end = time.monotonic() + deadline * patience()
        while not any(one >= epoch for one in self.epochs(ranks)):
            assert time.monotonic() < end, self.text
            assert any(agent.process.poll() is None for agent in self.agents.values()), self.text
            time.sleep(0.1)

    def trained(self, *nodes: str) -> int:
        """All agents of these nodes end well and have the same weights; how many ranks there were."""
        for name in nodes:
            assert self.agents[name].end() == 0, self.text
        found = [END.search(self.agents[name].text) for name in nodes]
        assert all(found), self.text
        weights = {one.group(2) for one in found if one}
        counts = {int(one.group(3)) for one in found if one}
        assert len(weights) == 1 and len(counts) == 1, self.text
        return counts.pop()


def prepare(cluster: Cluster) -> None:
    script = (PROJECT / "docs" / "examples" / "train.py").read_text()
    for name in cluster.hosts:
        write = f"mkdir -p {FOLDER} && cat > {FOLDER}/train.py && chown -R train: {FOLDER}"
        subprocess.run(
            cluster.lab_argv("exec", name, "sh", "-c", write),
            input=script,
            text=True,
            check=True,
            cwd=PROJECT,
            timeout=60 * patience(),
            capture_output=True,
        )


def clean(cluster: Cluster) -> None:
    """Nothing of etcd stays on the nodes."""
    paths = f"{FOLDER} {TLS} /run/gpu-cluster-etcd /var/lib/gpu-cluster-etcd /etc/systemd/system/{UNIT}"
    cluster.everywhere(
        f"pkill -KILL -u train; systemctl disable --now {UNIT} 2>/dev/null; rm -rf {paths}; "
        "rpm -q etcd > /tmp/lab-etcd && rpm -e etcd; rm -f /tmp/lab-etcd; systemctl daemon-reload; true"
    )
