#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module launcher_files: what jobs and gpu-cluster-run need on a node, as five files."""

from __future__ import annotations

DOCUMENTATION = r"""
module: launcher_files
short_description: Write the environment, the host file and the program with which jobs start
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Writes C(/etc/gpu-cluster/environment), C(/etc/gpu-cluster/hostfile), C(/etc/gpu-cluster/cluster.json),
    C(/etc/profile.d/gpu-cluster.sh) and C(/usr/local/bin/gpu-cluster-run), each whole and in one step.
  - The interface is the one that has the node's address of the data network, so nodes may name their cards differently.
    A node on which no interface has it, or whose interface is down or has no carrier, is refused.
  - C(hostfile) and C(cluster.json) follow from the options alone and are the same on all members.
  - All that is wrong is refused at once, before anything is changed. When a file cannot be written, those written
    before it are put back.
  - A file that somebody else has written is kept beside it, which a warning says.
options:
  node:
    description: The name of this node in O(members).
    type: str
    required: true
  members:
    description:
      - All members in the order of the ranks, each with C(name), C(fabric_address) and C(fabric_prefix), as the filter
        P(baremetal.gpu_cluster.cluster_members#filter) lists them. Other keys are ignored.
    type: list
    elements: dict
    required: true
  fabric_address:
    description: The node's own address of the data network, a prefix length is ignored. Empty takes that in O(members).
    type: str
    default: ""
  user:
    description: The user who runs jobs, without rights.
    type: str
    required: true
  python:
    description: Absolute path of the Python that has torch.
    type: str
    required: true
  mpirun:
    description: Absolute path of Open MPI's C(mpirun).
    type: str
    required: true
  ssh_port:
    description: The port of sshd on all members.
    type: int
    default: 22
  rendezvous:
    description:
      - The ports at which the ranks of a job meet, with C(first) and C(last).
      - Jobs that choose none take 29500 where it is among them, and the first one otherwise.
    type: dict
    required: true
  slots:
    description:
      - How many ranks a node takes, one number for all or a dictionary with the members' names.
      - V(0), no GPUs, gives one.
      - V(-1), nobody has counted them in this run, keeps the number in the node's own C(cluster.json). Where that has
        none, the member gets what most of the others take, which a warning says.
    type: raw
    default: 1
  ib_disabled:
    description: Whether NCCL leaves RDMA alone and uses TCP (C(NCCL_IB_DISABLE)).
    type: bool
    default: false
  environment:
    description: Names and values that jobs get on all members. They must be the same on all of them.
    type: dict
    default: {}
  host_environment:
    description: Names and values for jobs on this node alone. They win over O(environment).
    type: dict
    default: {}
  profile_enabled:
    description:
      - Whether login shells get the environment too. Otherwise the file in C(/etc/profile.d) goes, if it is ours.
    type: bool
    default: true
  program:
    description: The text of C(gpu-cluster-run).
    type: str
    required: true
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details:
      - Where no interface has the node's address yet, check mode takes the name that the inventory gives it, with a
        warning, because the network may be what the same run would set first.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with iproute.
"""

EXAMPLES = r"""
- name: Tell jobs where they run
  baremetal.gpu_cluster.launcher_files:
    node: "{{ inventory_hostname }}"
    members:
      - {name: gpu01, fabric_address: 192.0.2.11, fabric_prefix: 24}
      - {name: gpu02, fabric_address: 192.0.2.12, fabric_prefix: 24}
    user: train
    python: /opt/gpu-cluster/torch/bin/python
    mpirun: /usr/lib64/openmpi/bin/mpirun
    rendezvous: {first: 29400, last: 29599}
    slots: 8
    environment:
      NCCL_DEBUG: WARN
    program: "{{ lookup('ansible.builtin.file', 'gpu-cluster-run') }}"
"""

RETURN = r"""
interface:
  description: The interface with the node's address of the data network.
  returned: success
  type: str
  sample: ens1f0
environment:
  description: What jobs on this node get.
  returned: success
  type: dict
  sample: {MASTER_ADDR: 192.0.2.11, GLOO_SOCKET_IFNAME: ens1f0, NCCL_SOCKET_IFNAME: =ens1f0}
kept:
  description: Where files of somebody else are now.
  returned: success
  type: list
  elements: str
  sample: []
problems:
  description: Why nothing was changed, each with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
"""

import os
import stat
import tempfile
from typing import Any, NamedTuple, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import (
    cluster,
    environment,
    fabric,
    paths,
    texts,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    make_folder,
    read_text,
    replace_file,
)

SPEC: dict[str, dict[str, Any]] = {
    "node": {"type": "str", "required": True},
    "members": {"type": "list", "elements": "dict", "required": True},
    "fabric_address": {"type": "str", "default": ""},
    "user": {"type": "str", "required": True},
    "python": {"type": "str", "required": True},
    "mpirun": {"type": "str", "required": True},
    "ssh_port": {"type": "int", "default": 22},
    "rendezvous": {"type": "dict", "required": True},
    "slots": {"type": "raw", "default": 1},
    "ib_disabled": {"type": "bool", "default": False},
    "environment": {"type": "dict", "default": {}},
    "host_environment": {"type": "dict", "default": {}},
    "profile_enabled": {"type": "bool", "default": True},
    "program": {"type": "str", "required": True},
}
#: Put before every path; empty on a node.
ROOT = ""
SHARED = "launcher_environment"
OWN = "launcher_host_environment"
KEPT_SUFFIX = ".before-gpu-cluster"

NOT_CHANGED = "Nothing was changed.\n%s"
NOT_WRITTEN = "%s could not be written: %s. All files are as they were."
WARN_KEPT = "%s was not ours; it is now %s, and nothing of it is in force"
WARN_LINK = "check mode: no interface has %s yet; taken is %s, as the inventory calls it"
WARN_UNCOUNTED = (
    "nobody has counted the GPUs of %s in this run; each takes %d rank(s) here. "
    "Set gpu_cluster_gpus for them, or run site.yml for all members, which counts"
)
ERR_NO_FILE = "it is a link, a folder or something else that is no plain file, or what is above it is no folder"
ERR_KEPT = "it is not ours, and %s is there already"
ERR_PROGRAM = "it does not say that it is one of " + texts.OUR_PROGRAM
ERR_ADDRESS = "it is not the address that launcher_members has for this node, %s"


class Current(NamedTuple):
    """A file as it is; without a mode there is none."""

    text: str = ""
    mode: int | None = None
    owner: int = 0


class Change(NamedTuple):
    """One file that is to be replaced or taken away."""

    file: texts.File
    before: Current
    foreign: bool


def current(path: str) -> Current | None:
    """The file at this path; nothing when what is there is no plain file."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return Current()
    except NotADirectoryError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Current(read_text(path), stat.S_IMODE(found.st_mode), found.st_uid)


def compare(files: list[texts.File]) -> tuple[list[Change], list[Problem]]:
    """What has to change, and what stands in the way."""
    changes, problems = [], []
    for file in files:
        before = current(file.path)
        if before is None:
            problems.append(Problem(file.path, "", ERR_NO_FILE, "move it away"))
            continue
        foreign = before.mode is not None and bool(before.text.strip()) and file.mark not in before.text
        if file.text:
            is_wanted = before == Current(file.text, file.mode, os.geteuid())
        else:
            is_wanted = foreign or before.mode is None
        if is_wanted:
            continue
        if foreign and os.path.lexists(file.path + KEPT_SUFFIX):
            problems.append(Problem(file.path, "", ERR_KEPT % (file.path + KEPT_SUFFIX), "move one of them away"))
        changes.append(Change(file, before, foreign))
    return changes, problems


def stage(file: texts.File) -> str:
    """Write the text beside the file, so that a full disk is met before anything has changed."""
    folder = os.path.dirname(file.path)
    make_folder(folder)
    handle, temporary = tempfile.mkstemp(prefix=".ansible-", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(file.text)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        os.unlink(temporary)
        raise
    return temporary


def commit(module: AnsibleModule, change: Change, temporary: str) -> None:
    """Put the new file in the place of the old one, or take it away when there is no new one."""
    path = change.file.path
    if change.foreign:
        os.rename(path, path + KEPT_SUFFIX)
    if not temporary:
        os.unlink(path)
        return
    # Keeps or sets the SELinux context. It also keeps owner and mode of what was there, so these come after.
    module.atomic_move(temporary, path)
    os.chown(path, os.geteuid(), -1)
    os.chmod(path, change.file.mode)


def write(module: AnsibleModule, changes: list[Change]) -> None:
    """Make all changes, or none."""
    staged: dict[str, str] = {}
    done: list[Change] = []
    path, reason = "", ""
    try:
        for change in changes:
            path = change.file.path
            if change.file.text:
                staged[path] = stage(change.file)
        for change in changes:
            path = change.file.path
            done.append(change)
            commit(module, change, staged.get(path, ""))
        done = []
    except OSError as error:
        reason = error.strerror or str(error)
    finally:
        # Also when Ansible's own code ends the module in the middle.
        for temporary in staged.values():
            if os.path.exists(temporary):
                os.unlink(temporary)
        for change in reversed(done):
            put_back(module, change)
    if reason:
        module.fail_json(msg=NOT_WRITTEN % (path, reason))


def put_back(module: AnsibleModule, change: Change) -> None:
    """The file as it was before."""
    path, before = change.file.path, change.before
    if change.foreign and os.path.lexists(path + KEPT_SUFFIX):
        os.replace(path + KEPT_SUFFIX, path)
    elif before.mode is None:
        if os.path.lexists(path):
            os.unlink(path)
    elif current(path) != before:
        replace_file(module, path, before.text, before.mode)
        os.chown(path, before.owner, -1)


def slots(module: AnsibleModule) -> Any:
    """How many ranks each member takes, also one whose GPUs nobody has counted in this run."""
    names = [str(member.get("name")) for member in module.params["members"]]
    before = current(ROOT + paths.CLUSTER) or Current()
    settled, guessed = cluster.settled_slots(module.params["slots"], names, cluster.kept_slots(before.text))
    for count in sorted({settled[name] for name in guessed}):
        module.warn(WARN_UNCOUNTED % (", ".join(guessed), count))
    return settled


def plan(module: AnsibleModule) -> tuple[str, dict[str, str], list[texts.File]]:
    """The interface, the environment and the files of this node; ends the module where something is wrong."""
    given = dict(module.params, slots=slots(module))
    whole, problems = cluster.read(given, given["node"])
    shared, found = environment.names(given["environment"], SHARED)
    own, further = environment.names(given["host_environment"], OWN)
    problems += found + further
    if texts.OUR_PROGRAM not in given["program"]:
        problems.append(Problem("launcher_program", "", ERR_PROGRAM, "take the program of the collection"))
    interface = ""
    if whole is not None:
        interface, found = ask(module, whole.member(given["node"]), {SHARED: shared, OWN: own})
        problems += found
    if problems or whole is None:
        refuse(module, problems)
    everywhere = environment.of_cluster(given["ib_disabled"], shared)
    node = environment.of_node(whole, interface, everywhere, own)
    files = texts.files(whole, everywhere, node, given["profile_enabled"], given["program"])
    return interface, node, [file._replace(path=ROOT + file.path) for file in files]


def ask(module: AnsibleModule, member: cluster.Member, site: dict[str, dict[str, str]]) -> tuple[str, list[Problem]]:
    """The node's interface, and what is wrong with it or with the site's lists of interfaces."""
    problems = []
    address = module.params["fabric_address"].partition("/")[0] or member.address
    if address != member.address:
        fix = "leave it empty, or correct gpu_cluster_fabric_address"
        problems.append(Problem("launcher_fabric_address", shown(address), ERR_ADDRESS % member.address, fix))
    module.run_command_environ_update = {"LANG": "C", "LC_ALL": "C"}
    links = fabric.parse(module.run_command(fabric.COMMAND, check_rc=True)[1])
    link = fabric.find(links, member.address)
    if link is None and module.check_mode and member.interface:
        module.warn(WARN_LINK % (member.address, member.interface))
        return member.interface, problems
    problems += fabric.problems(link, links, member.address)
    if link is not None:
        present = [one.name for one in links]
        for variable, values in site.items():
            problems += environment.interface_problems(values, link.name, present, variable)
    return link.name if link else "", problems


def refuse(module: AnsibleModule, problems: list[Problem]) -> NoReturn:
    """End the module, nothing changed."""
    sentences = "\n".join(problem.sentence() for problem in problems)
    module.fail_json(msg=NOT_CHANGED % sentences, problems=[problem.as_dict() for problem in problems])
    raise AssertionError("fail_json returned")


def shown_change(change: Change) -> dict[str, str]:
    """One file for --diff."""
    before, file = change.before, change.file
    return {
        "before_header": f"{file.path} ({'absent' if before.mode is None else oct(before.mode)})",
        "after_header": f"{file.path} ({oct(file.mode) if file.text else 'absent'})",
        "before": before.text,
        "after": file.text,
    }


def main() -> None:
    """Check, compare, write."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    interface, node, files = plan(module)
    changes, problems = compare(files)
    if problems:
        refuse(module, problems)
    if not module.check_mode:
        write(module, changes)
    kept = [change.file.path + KEPT_SUFFIX for change in changes if change.foreign]
    for path in kept:
        module.warn(WARN_KEPT % (path[: -len(KEPT_SUFFIX)], path))
    diff = [shown_change(change) for change in changes]
    module.exit_json(changed=bool(changes), interface=interface, environment=node, kept=kept, diff=diff)


if __name__ == "__main__":
    main()
