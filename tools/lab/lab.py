# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a lab of real nodes on this machine: `lab.py up --nodes 3`, `lab.py down`. docs/lab.md tells the rest."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

if __package__ in (None, ""):
    # As a script, this folder is first on the path, and `lab` would be this very file.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from lab import cleanup, host, image, job_image, network, nodes, saved_nodes, state
from lab.settings import FIRST_NODES, JOB_IMAGE_LOCK, MAIN, MAX_NODES, OUTSIDER_LOCK, Node, Paths, here
from lab.settings import nodes as numbered
from lab.shell import LabError, say

NOT_UP = "the lab of this checkout is not up: run `make lab`"


def up(paths: Paths, count: int, name: str = MAIN, *, from_saved: bool = False) -> None:
    """Bring one inventory to this many nodes; the nodes of the others stay as they are.

    From what `save` has kept for this tree, all of them are new and as the roles left them then.
    """
    host.require_root()
    host.install_packages()
    with state.lock():
        changed = _clear_what_is_not_ours(paths)
        host.prepare_run_folder()
        state.write_owner(paths)
        paths.wheels.mkdir(parents=True, exist_ok=True)
        paths.images.mkdir(parents=True, exist_ok=True)
        paths.image_cache.mkdir(parents=True, exist_ok=True)
        changed |= image.ensure(paths)
        inventories = {**state.read_inventories(paths), name: numbered(count, FIRST_NODES[name])}
        _refuse_overlap(inventories, name)
        wanted = inventories[name]
        others = [node for other, members in inventories.items() if other != name for node in members]
        changed |= network.ensure_bridges()
        host.note_settings()
        changed |= host.raise_inotify(len(wanted) + len(others))
        reference = image.node_reference(paths.flavour)
        images = dict.fromkeys(wanted, reference)
        if from_saved:
            images = saved_nodes.images(paths, name, wanted)
            for node in wanted:
                nodes.remove(paths, node)
        altered, keys = nodes.reconcile(paths, images, others)
        if from_saved:
            saved_nodes.restore_certificates(paths, name)
        written = state.write_lab(paths, inventories, keys, reference)
        if altered:
            for node in wanted:
                nodes.check_ssh(paths, node)
        changed |= altered or written
    print(f"lab is up: {count} nodes, {'changed' if changed else 'nothing to do'}")


def _refuse_overlap(inventories: Mapping[str, Sequence[Node]], name: str) -> None:
    """Two inventories never list the same node, and no node has a number above the highest."""
    if inventories[name][-1].number > MAX_NODES:
        most = MAX_NODES + 1 - FIRST_NODES[name]
        raise LabError(f"inventories/{name} begins with {inventories[name][0].name}: it takes at most {most} nodes")
    for other, members in inventories.items():
        if other != name and (taken := [node.name for node in members if node in inventories[name]]):
            raise LabError(
                f"inventories/{other} has {', '.join(taken)}: ask for fewer nodes, or run `lab.py down "
                f"--inventory {other}` first"
            )


def _clear_what_is_not_ours(paths: Paths) -> bool:
    """Make room: a lab of another checkout or cache, or what an unclean end has left."""
    owner = state.owner()
    if owner == paths:
        if host.ready():
            return False
        say("the last lab ended uncleanly: removing what it left")
    elif owner is not None:
        say(f"replacing the lab that was started from {owner.checkout}")
    elif left := cleanup.leftovers():
        say(f"the last lab ended uncleanly: removing what it left ({', '.join(left)})")
    elif not paths.state.exists() and not paths.storage.exists():
        return False
    cleanup.clear(owner or paths)
    return bool(owner)


def down(paths: Paths, *, with_image: bool) -> None:
    """Remove the whole lab, whatever its state."""
    host.require_root()
    with state.lock():
        present = _remove(paths)
        if with_image:
            image.remove_cache(paths)
    print("lab is down" if present else "lab is down: nothing to do")


def _remove(paths: Paths) -> bool:
    """Whether there was anything of a lab."""
    owner = state.owner()
    listed = any(paths.hosts_file(name).exists() for name in FIRST_NODES)
    if owner is not None and owner.checkout != paths.checkout:
        say(f"this lab was started from {owner.checkout}")
    if not (cleanup.leftovers() or paths.state.exists() or listed):
        return False
    cleanup.clear(owner or paths)
    state.remove_lab(paths)
    return True


def down_inventory(paths: Paths, name: str) -> None:
    """Remove the nodes of one inventory; the last of them takes the rest of the lab along."""
    host.require_root()
    with state.lock():
        inventories = state.read_inventories(paths) if state.owner() == paths else {}
        going = inventories.pop(name, [])
        present = _remove_nodes(paths, name, going, inventories) if inventories else _remove(paths)
    print(f"the nodes of inventories/{name} are down{'' if present else ': nothing to do'}")


def _remove_nodes(paths: Paths, name: str, going: Sequence[Node], staying: Mapping[str, Sequence[Node]]) -> bool:
    """The nodes of one inventory, beside those of others."""
    present = state.remove_inventory(paths.hosts_file(name))
    for node in going:
        nodes.remove(paths, node)
    state.write_lab(paths, staying, state.read_host_keys(paths), image.node_reference(paths.flavour))
    return present or bool(going)


def _node(paths: Paths, name: str) -> Node:
    """A node of the running lab."""
    listed = {node.name: node for members in state.read_inventories(paths).values() for node in members}
    if state.owner() != paths or not listed:
        raise LabError(NOT_UP)
    if name not in listed:
        raise LabError(f"the lab has no node {name!r}: it has {', '.join(listed)}")
    return listed[name]


def ssh(paths: Paths, name: str, command: list[str]) -> int:
    argv = nodes.ssh_argv(paths, _node(paths, name))
    return subprocess.run([*argv, *command], check=False).returncode


def exec_argv(paths: Paths, name: str, command: Sequence[str], *options: str) -> list[str]:
    """What runs a command beside a node's sshd. Tests run it some thousand times, and spare this program's start."""
    variables = (f"{variable}={value}" for variable, value in host.podman_variables(paths).items())
    argv = host.podman_argv(paths, ["exec", *options, _node(paths, name).container, *command])
    return ["env", "--chdir=/", *variables, *argv]


def execute(paths: Paths, name: str, command: list[str]) -> int:
    host.require_root()
    terminal = ["--interactive", "--tty"] if sys.stdin.isatty() else ["--interactive"]
    return subprocess.run(exec_argv(paths, name, command, *terminal), check=False).returncode


def pause(paths: Paths, name: str, verb: str) -> None:
    host.require_root()
    node = _node(paths, name)
    with state.lock():
        entry = nodes.find(paths).get(node.number)
        before = "running" if verb == "pause" else "paused"
        if entry is not None and entry.state == before:
            host.podman(paths, verb, node.container)
            print(f"{name}: {verb}d")
        else:
            print(f"{name}: nothing to do")


def cable(paths: Paths, name: str, interface: str, *, pull: bool) -> None:
    """A further network card on the fabric."""
    host.require_root()
    node = _node(paths, name)
    if not re.fullmatch(r"[a-z]{1,3}[0-9]", interface):
        raise LabError(f"expected a card's name such as fab1, found {interface!r}")
    with state.lock():
        pid = int(host.podman(paths, "inspect", "--format", "{{.State.Pid}}", node.container).stdout)
        done = network.plug(node, pid, interface, pull=pull)
    print(f"{name}: {('pulled out' if pull else 'plugged in') if done else 'nothing to do'}")


def recreate(paths: Paths, name: str) -> None:
    """A reimage: empty disk, new host keys, the same network cards."""
    host.require_root()
    node = _node(paths, name)
    with state.lock():
        reference = image.node_reference(paths.flavour)
        if not image.exists(paths, reference):
            raise LabError("the image's recipe has changed since the lab came up: run `make lab` first")
        nodes.create(paths, node, reference, state.ensure_key(paths))
        keys = state.read_host_keys(paths)
        keys[name] = nodes.wait(paths, node)
        state.write(paths.known_hosts, state.known_hosts([Node(int(key[1:])) for key in keys], keys))
        nodes.check_ssh(paths, node)
    print(f"{name}: recreated")


def save(paths: Paths, name: str) -> None:
    """Keep the nodes of one inventory as what the roles of this checkout lead to."""
    host.require_root()
    with state.lock():
        members = state.read_inventories(paths).get(name, []) if state.owner() == paths else []
    if not members:
        raise LabError(NOT_UP)
    # Takes a while, touches these nodes alone, and lets others use theirs.
    saved_nodes.save(paths, name, members)
    print(f"the nodes of inventories/{name} are saved")


def has_saved(paths: Paths, name: str, count: int) -> int:
    """Exit status 0 when the cache has these nodes as the roles of this checkout leave them."""
    host.require_root()
    host.install_packages()
    with state.lock():
        borrowed = state.owner() is None
        host.prepare_run_folder()
        paths.image_cache.mkdir(parents=True, exist_ok=True)
        found = saved_nodes.exist(paths, name, numbered(count, FIRST_NODES[name]))
        if borrowed:
            cleanup.clear(paths)
    print(f"the nodes of inventories/{name}: {'saved' if found else 'not saved'}")
    return 0 if found else 1


def build_image(paths: Paths) -> None:
    host.require_root()
    host.install_packages()
    with state.lock():
        borrowed = state.owner() is None
        host.prepare_run_folder()
        built = image.ensure(paths)
        if borrowed:
            cleanup.clear(paths)
    print(f"{image.node_reference(paths.flavour)}: {'built' if built else 'cached'}")


def build_job_image(paths: Paths) -> None:
    host.require_root()
    if state.owner() != paths:
        raise LabError(NOT_UP)
    # Takes minutes in which others may use their nodes.
    with state.lock(JOB_IMAGE_LOCK):
        built = job_image.ensure(paths)
    print(f"{job_image.archive(paths)}: {'built' if built else 'cached'}")


def status(paths: Paths) -> int:
    host.require_root()
    owner = state.owner()
    if owner is None:
        left = cleanup.leftovers()
        print(f"lab is down{', but left behind: ' + ', '.join(left) if left else ''}")
        return 1
    if owner != paths:
        print(f"a lab is up that was started from {owner.checkout} with the cache {owner.cache}")
        return 1
    for _number, entry in sorted(nodes.find(paths).items()):
        condition = entry.state if entry.sound else "broken"
        print(f"{entry.node.name}  {condition:8} {entry.node.management_address}  {entry.node.fabric_address}")
    return 0


def outsider(address: str, command: list[str]) -> int:
    host.require_root()
    with state.lock(OUTSIDER_LOCK):
        return network.with_outsider(address, lambda enter: subprocess.run([*enter, *command], check=False).returncode)


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MAX_NODES:
        raise argparse.ArgumentTypeError(f"expected a number of nodes from 1 to {MAX_NODES}, found {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab.py", description=__doc__)
    commands = parser.add_subparsers(dest="verb", required=True)
    one = commands.add_parser("up", help="bring the lab to this many nodes")
    one.add_argument(
        "--nodes", type=_count, default=os.environ.get("LAB_NODES", "3"), help="1 to 16 (default: LAB_NODES or 3)"
    )
    one.add_argument("--inventory", choices=FIRST_NODES, default=MAIN, help=f"which nodes (default: {MAIN})")
    one.add_argument("--saved", action="store_true", help="new ones, as `save` has kept them for this tree")
    one = commands.add_parser("save", help="keep nodes in the cache as what the roles of this tree lead to")
    one.add_argument("--inventory", choices=FIRST_NODES, default=MAIN, help=f"which nodes (default: {MAIN})")
    one = commands.add_parser("saved", help="tell by the exit status whether the cache has the nodes of this tree")
    one.add_argument("--nodes", type=_count, default=os.environ.get("LAB_NODES", "3"), help="as with `up`")
    one.add_argument("--inventory", choices=FIRST_NODES, default=MAIN, help=f"which nodes (default: {MAIN})")
    one = commands.add_parser("down", help="remove the lab from this machine")
    which = one.add_mutually_exclusive_group()
    which.add_argument("--image", action="store_true", help="and the cached image")
    which.add_argument("--inventory", choices=FIRST_NODES, help="only the nodes of this one")
    for verb, text in (
        ("ssh", "log in as root, or run a command"),
        ("exec", "run a command beside sshd, through podman"),
    ):
        one = commands.add_parser(verb, help=text)
        one.add_argument("node")
        one.add_argument("command", nargs=argparse.REMAINDER)
    for verb, text in (
        ("pause", "stop a node in its tracks: it answers nothing"),
        ("unpause", "let it go on"),
        ("recreate", "reimage it: empty disk, new host keys"),
    ):
        commands.add_parser(verb, help=text).add_argument("node")
    one = commands.add_parser("cable", help="give it a further card on the fabric, until it is recreated")
    one.add_argument("node")
    one.add_argument("interface", help="the card's name in the node, such as fab1")
    one.add_argument("--pull", action="store_true", help="take it out again")
    commands.add_parser("image", help="build the image, unless it is cached")
    commands.add_parser("job-image", help="build the image for jobs in containers, unless it is cached")
    commands.add_parser("status", help="list the nodes")
    one = commands.add_parser("outsider", help="run a command on the fabric as a host that is no member")
    one.add_argument("--address", required=True, help="its address with prefix, such as 198.18.20.200/24")
    one.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def _dispatch(arguments: argparse.Namespace) -> int:
    paths = here()
    verb: str = arguments.verb
    command = list(getattr(arguments, "command", []))
    command = command[1:] if command[:1] == ["--"] else command
    if verb in ("exec", "outsider") and not command:
        raise LabError(f"`lab.py {verb}` needs a command to run")
    if verb == "ssh":
        return ssh(paths, arguments.node, command)
    if verb == "exec":
        return execute(paths, arguments.node, command)
    if verb == "outsider":
        return outsider(arguments.address, command)
    if verb == "status":
        return status(paths)
    if verb == "saved":
        return has_saved(paths, arguments.inventory, arguments.nodes)
    if verb == "up":
        up(paths, arguments.nodes, arguments.inventory, from_saved=arguments.saved)
    elif verb == "save":
        save(paths, arguments.inventory)
    elif verb == "down" and arguments.inventory:
        down_inventory(paths, arguments.inventory)
    elif verb == "down":
        down(paths, with_image=arguments.image)
    elif verb == "recreate":
        recreate(paths, arguments.node)
    elif verb == "cable":
        cable(paths, arguments.node, arguments.interface, pull=arguments.pull)
    elif verb == "image":
        build_image(paths)
    elif verb == "job-image":
        build_job_image(paths)
    else:
        pause(paths, arguments.node, verb)
    return 0


def main() -> int:
    arguments = _parser().parse_args()
    try:
        return _dispatch(arguments)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
