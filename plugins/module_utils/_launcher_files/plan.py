# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's jobs get and which files say so; the node is asked for its interface, and nothing is changed."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import (
    cluster,
    environment,
    fabric,
    paths,
    texts,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.replacement import Current, current

#: Put before every path; empty on a node.
ROOT = ""
SHARED = "launcher_environment"
OWN = "launcher_host_environment"

NOT_CHANGED = "Nothing was changed.\n%s"
WARN_LINK = "check mode: no interface has %s yet; taken is %s, as the inventory calls it"
#: A name in torchrun's folder, at most one folder down.
PLUGIN_FILE = re.compile(r"([a-z0-9_.-]*[a-z0-9]/)?[A-Za-z0-9_][A-Za-z0-9_.]*")
WARN_UNCOUNTED = (
    "nobody has counted the GPUs of %s in this run; each takes %d rank(s) here. "
    "Set gpu_cluster_gpus for them, or run site.yml for all members, which counts"
)
ERR_PROGRAM = "it does not say that it is one of " + texts.OUR_PROGRAM
ERR_PLUGIN = "it is no file of torchrun's plugin"
ERR_ADDRESS = "it is not the address that launcher_members has for this node, %s"


def plan(module: AnsibleModule) -> tuple[str, dict[str, str], list[texts.File]]:
    """The interface, the environment and the files of this node; ends the module where something is wrong."""
    given = dict(module.params, slots=slots(module))
    whole, problems = cluster.read(given, given["node"])
    shared, found = environment.names(given["environment"], SHARED)
    own, further = environment.names(given["host_environment"], OWN)
    problems += found + further
    if texts.OUR_PROGRAM not in given["program"]:
        problems.append(Problem("launcher_program", "", ERR_PROGRAM, "take the program of the collection"))
    for name, text in given["torchrun"].items():
        if not PLUGIN_FILE.fullmatch(name) or texts.OUR_PROGRAM not in str(text):
            problems.append(Problem("launcher_torchrun", shown(name), ERR_PLUGIN, "take the files of the collection"))
    interface = ""
    if whole is not None:
        interface, found = ask(module, whole.member(given["node"]), {SHARED: shared, OWN: own})
        problems += found
    if problems or whole is None:
        refuse(module, problems)
    everywhere = environment.of_cluster(given["ib_disabled"], shared)
    node = environment.of_node(whole, interface, everywhere, own)
    programs = {paths.PROGRAM: given["program"], paths.EXPLAINER: given["explainer"], paths.QUEUE: given["queue"]}
    files = texts.files(whole, everywhere, node, given["profile_enabled"], programs, given["torchrun"])
    return interface, node, [file._replace(path=ROOT + file.path) for file in files]


def slots(module: AnsibleModule) -> Any:
    """How many ranks each member takes, also one whose GPUs nobody has counted in this run."""
    names = [str(member.get("name")) for member in module.params["members"]]
    before = current(ROOT + paths.CLUSTER) or Current()
    settled, guessed = cluster.settled_slots(module.params["slots"], names, cluster.kept_slots(before.text))
    for count in sorted({settled[name] for name in guessed}):
        module.warn(WARN_UNCOUNTED % (", ".join(guessed), count))
    return settled


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
