# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: containers that boot, get their cables and answer on ssh."""

from __future__ import annotations

import io
import json
import tarfile
import time
import uuid
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lab import host, network, state
from lab.settings import CGROUP_PARENT, Node, Paths
from lab.shell import LabError, run

BOOT_SECONDS = 90
SHARED_MEMORY = "1g"
WORKERS = 4

MANAGEMENT_PROFILE = """\
[connection]
id=eth0
uuid={uuid}
type=ethernet
interface-name=eth0

[ipv4]
method=manual
address1={address}/24

[ipv6]
method=link-local
"""


@dataclass(frozen=True)
class Found:
    """A container of the lab, as podman and the kernel see it."""

    node: Node
    identifier: str
    state: str
    image: str
    alive: bool

    @property
    def sound(self) -> bool:
        return self.alive and self.state in ("running", "paused") and network.attached(self.node)


def _alive(pid: int) -> bool:
    """A zombie is dead, even where nobody reaps it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _process_of(pid: int, container: str) -> bool:
    """Whether this process is the container's: podman goes on naming a pid that died or was given to another."""
    try:
        return _alive(pid) and container in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False


def _runs(pid: int, name: str) -> bool:
    try:
        return _alive(pid) and Path(f"/proc/{pid}/comm").read_text().strip() == name
    except OSError:
        return False


def find(paths: Paths) -> dict[int, Found]:
    """The nodes that podman lists, by number."""
    names = host.podman(paths, "ps", "--all", "--quiet").stdout.split()
    if not names:
        return {}
    found = {}
    for record in json.loads(host.podman(paths, "inspect", "--type", "container", *names).stdout):
        label = record["Config"].get("Labels") or {}
        if "gpulab.node" not in label:
            continue
        status = record["State"]
        node = Node(int(label["gpulab.node"]))
        alive = _process_of(status.get("Pid", 0), record["Id"]) and _runs(status.get("ConmonPid", 0), "conmon")
        found[node.number] = Found(node, record["Id"], status["Status"], label.get("gpulab.image", ""), alive)
    return found


def _seed(node: Node, public_key: str) -> bytes:
    """A tar of the files that make a container this node: its management address, and who may log in."""
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, f"{node.name}.{CGROUP_PARENT}")
    profile = MANAGEMENT_PROFILE.format(uuid=identity, address=node.management_address)
    files = {
        "etc/NetworkManager/system-connections/eth0.nmconnection": profile,
        "root/.ssh/authorized_keys": public_key,
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folder = tarfile.TarInfo("root/.ssh")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(folder)
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o600
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def create(paths: Paths, node: Node, image: str, public_key: str) -> None:
    """Make the container, plug it in, boot it. It is not waited for."""
    remove(paths, node)
    host.podman(
        paths,
        "create",
        f"--name={node.container}",
        f"--hostname={node.name}",
        f"--label=gpulab.node={node.number}",
        f"--label=gpulab.image={image}",
        f"--label=gpulab.checkout={paths.checkout}",
        "--systemd=always",
        f"--cgroup-parent={CGROUP_PARENT}",
        *host.cgroup_arguments(),
        *host.capability_arguments(),
        "--security-opt=seccomp=unconfined",
        "--security-opt=unmask=/proc/sys",
        *host.limit_arguments(),
        "--pids-limit=-1",
        f"--shm-size={SHARED_MEMORY}",
        "--network=none",
        "--no-hosts",
        f"--volume={paths.wheels}:/srv/wheels:ro",
        f"--volume={paths.images}:/srv/images:ro",
        *host.device_arguments(),
        "--pull=never",
        image,
        "/sbin/init",
    )
    host.podman(paths, "cp", "-", f"{node.container}:/", stdin=_seed(node, public_key))
    # The network namespace exists from `init` on and systemd runs from `start` on: both cables are there at boot.
    host.podman(paths, "init", node.container)
    pid = int(host.podman(paths, "inspect", "--format", "{{.State.Pid}}", node.container).stdout)
    host.join_unified(pid)
    network.attach(node, pid)
    host.podman(paths, "start", node.container)


def remove(paths: Paths, node: Node) -> None:
    argv = ("rm", "--force", "--ignore", "--time=0", node.container)
    # The first attempt on a container whose processes were killed only makes podman notice that.
    if host.podman(paths, *argv, check=False).returncode != 0:
        host.podman(paths, *argv)
    network.detach(node)


def wait(paths: Paths, node: Node) -> list[str]:
    """Wait until the node has booted and answers on ssh; returns its host keys."""
    said = _booted(paths, node, time.monotonic() + BOOT_SECONDS)
    if said != "running":
        raise LabError(
            f"{node.name} did not boot within {BOOT_SECONDS} s: systemd says {said!r}\n{journal(paths, node)}"
        )
    script = "cat /etc/ssh/ssh_host_*_key.pub"
    lines = host.podman(paths, "exec", node.container, "sh", "-c", script).stdout.splitlines()
    return [" ".join(line.split()[:2]) for line in lines if line.strip()]


def _booted(paths: Paths, node: Node, deadline: float) -> str:
    """What systemd says once it has settled, or at the deadline."""
    argv = ("exec", node.container, "systemctl", "is-system-running")
    while (left := deadline - time.monotonic()) > 0:
        try:
            done = host.podman(paths, *argv, "--wait", check=False, timeout=left)
        except LabError:
            break
        if (said := done.stdout.strip()) in ("running", "degraded"):
            return said
        # Right after the start there is no systemd yet that could be waited for.
        time.sleep(0.2)
    done = host.podman(paths, *argv, check=False)
    return done.stdout.strip() or done.stderr.strip()


def journal(paths: Paths, node: Node) -> str:
    """What a person would ask for next when a node failed."""
    script = "systemctl --failed --no-legend --plain; journalctl --boot --no-pager --lines=25"
    try:
        done = host.podman(paths, "exec", node.container, "sh", "-c", script, check=False, timeout=20)
    except LabError as error:
        return str(error)
    return (done.stdout + done.stderr).strip()


def ssh_argv(paths: Paths, node: Node) -> list[str]:
    options = ["-i", str(paths.key), "-o", "IdentitiesOnly=yes", *state.ssh_options(paths)]
    return ["ssh", *options, f"root@{node.management_address}"]


def check_ssh(paths: Paths, node: Node) -> None:
    """Log in as Ansible will: with the lab's key and the strict list of host keys."""
    argv = ssh_argv(paths, node)
    argv[1:1] = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=3"]
    deadline = time.monotonic() + 20
    while True:
        done = run([*argv, "true"], check=False, timeout=20)
        if done.returncode == 0:
            return
        if time.monotonic() > deadline:
            raise LabError(
                f"{node.name} booted but does not answer on ssh: {done.stderr.strip()}\n{journal(paths, node)}"
            )
        time.sleep(0.3)


def reconcile(
    paths: Paths, images: Mapping[Node, str], others: Collection[Node] = ()
) -> tuple[bool, dict[str, list[str]]]:
    """Bring the machine to exactly these nodes, each from its image, and leave the others alone.

    Returns whether anything changed, and all host keys.
    """
    found = find(paths)
    keys = state.read_host_keys(paths)
    public_key = state.ensure_key(paths)
    surplus = [entry.node for entry in found.values() if entry.node not in {*images, *others}]
    fresh, paused = [], []
    for node, image in images.items():
        entry = found.get(node.number)
        if entry is None or not entry.sound or entry.image != image or not keys.get(node.name):
            fresh.append(node)
        elif entry.state == "paused":
            paused.append(node)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda node: remove(paths, node), surplus))
        list(pool.map(lambda node: host.podman(paths, "unpause", node.container), paused))
        made = pool.map(lambda node: _make(paths, node, images[node], public_key), fresh)
        keys.update(zip((node.name for node in fresh), made, strict=True))
    return bool(surplus or fresh or paused), {
        node.name: keys[node.name] for node in (*images, *others) if node.name in keys
    }


def _make(paths: Paths, node: Node, image: str, public_key: str) -> list[str]:
    create(paths, node, image, public_key)
    return wait(paths, node)
