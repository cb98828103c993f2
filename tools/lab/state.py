# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab writes down: who runs it, the key, the host keys, and the inventory."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab import flavour
from lab.settings import FIRST_NODES, LOCK, OWNER_FILE, Node, Paths
from lab.shell import LabError, run

LOCK_SECONDS = 600
#: Where the collection keeps the authority that signs the keys of an inventory's nodes, beside the inventory.
CERTIFICATES = ".ssh_ca"


def write(path: Path, text: str, mode: int = 0o644) -> bool:
    """Replace a file in one step, so that nobody reads half of it; False when it already says this."""
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)
    return True


@contextlib.contextmanager
def lock(path: Path = LOCK) -> Iterator[None]:
    """One lab command at a time on this machine; the others wait."""
    path.parent.mkdir(exist_ok=True)
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            if time.monotonic() > deadline:
                raise LabError(f"another lab command has been at work on this machine for {LOCK_SECONDS} s") from error
            time.sleep(0.5)
            continue
        # Whoever held it before may have removed the file between our open and our lock.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                break
        os.close(descriptor)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def owner() -> Paths | None:
    """The checkout and cache of the lab that this machine carries, as far as it says so."""
    try:
        data = json.loads(OWNER_FILE.read_text())
        return Paths(checkout=Path(data["checkout"]), cache=Path(data["cache"]), el=flavour.major(str(data["el"])))
    except (OSError, ValueError, KeyError, TypeError, LabError):
        return None


def write_owner(paths: Paths) -> None:
    record = {"checkout": str(paths.checkout), "cache": str(paths.cache), "el": paths.el}
    write(OWNER_FILE, json.dumps(record) + "\n")


def ensure_key(paths: Paths) -> str:
    """The lab's own ssh key; returns the public half."""
    paths.state.mkdir(mode=0o700, exist_ok=True)
    public = paths.key.with_suffix(".pub")
    if not (paths.key.exists() and public.exists()):
        paths.key.unlink(missing_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpulab", "-f", str(paths.key)])
    return public.read_text()


def read_host_keys(paths: Paths) -> dict[str, list[str]]:
    """Host keys by node name, from known_hosts lines of the form `name,address type key`."""
    keys: dict[str, list[str]] = {}
    if paths.known_hosts.exists():
        for line in paths.known_hosts.read_text().splitlines():
            names, _space, key = line.partition(" ")
            keys.setdefault(names.partition(",")[0], []).append(key)
    return keys


def known_hosts(nodes: Sequence[Node], keys: Mapping[str, Sequence[str]]) -> str:
    return "".join(
        f"{node.name},{node.management_address} {key}\n" for node in nodes for key in keys.get(node.name, [])
    )


def ssh_options(paths: Paths) -> list[str]:
    """Strict checking against the lab's own list. ssh reads the value once more: the quotes are for it."""
    return ["-o", f'UserKnownHostsFile="{paths.known_hosts}"', "-o", "StrictHostKeyChecking=yes"]


def inventory(nodes: Sequence[Node], paths: Paths) -> str:
    """One inventory of the running lab; the variables of all live in inventories/lab/group_vars."""
    lines = [
        "---",
        "# Written by `lab.py up`, removed by `down`. Settings belong into group_vars beside this file.",
        "gpu_cluster:",
        "  hosts:",
    ]
    for node in nodes:
        lines += [
            f"    {node.name}:",
            f"      ansible_host: {node.management_address}",
            f"      gpu_cluster_fabric_address: {node.fabric_address}",
        ]
    lines += [
        "  vars:",
        "    ansible_user: root",
        "    ansible_python_interpreter: /usr/bin/python3",
        f"    ansible_ssh_private_key_file: {json.dumps(str(paths.key))}",
        f"    ansible_ssh_common_args: {json.dumps(shlex.join(ssh_options(paths)))}",
        f"    gpu_cluster_known_hosts: {json.dumps(str(paths.known_hosts))}",
        # The default, said aloud: molecule adds an inventory of its own.
        f'    ssh_mesh_ca_dir: "{{{{ inventory_dir }}}}/{CERTIFICATES}"',
    ]
    return "\n".join(lines) + "\n"


def read_inventories(paths: Paths) -> dict[str, list[Node]]:
    """The nodes of the running lab, by inventory."""
    try:
        found = json.loads(paths.state_file.read_text()).get("inventories", {})
        return {name: [Node(number) for number in numbers] for name, numbers in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def write_lab(
    paths: Paths, inventories: Mapping[str, Sequence[Node]], keys: Mapping[str, Sequence[str]], image: str
) -> bool:
    """Write everything that others read; known_hosts before the inventories that point at it."""
    record = {"inventories": {name: [node.number for node in nodes] for name, nodes in inventories.items()}}
    every = sorted((node for nodes in inventories.values() for node in nodes), key=lambda node: node.number)
    changed = [
        write(paths.known_hosts, known_hosts(every, keys)),
        write(paths.state_file, json.dumps({**record, "image": image}, indent=2) + "\n"),
        *(write(paths.hosts_file(name), inventory(nodes, paths)) for name, nodes in inventories.items()),
    ]
    return any(changed)


def remove_inventory(hosts_file: Path) -> bool:
    """Nobody is to be sent to nodes that are going away, or to trust what the collection has signed for them."""
    present = hosts_file.exists()
    hosts_file.unlink(missing_ok=True)
    shutil.rmtree(hosts_file.with_name(CERTIFICATES), ignore_errors=True)
    return present


def remove_lab(paths: Paths) -> bool:
    """Forget a lab, its inventories first."""
    present = [remove_inventory(paths.hosts_file(name)) for name in FIRST_NODES]
    present.append(paths.state.exists())
    shutil.rmtree(paths.state, ignore_errors=True)
    return any(present)
