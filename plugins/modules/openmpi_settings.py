#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module openmpi_settings: the parameter files that an installed Open MPI really reads, verified by asking it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openmpi_settings
short_description: Set network, ports, transport and launcher of an installed Open MPI 4.1 or 5, and verify them
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Asks the installation which files it reads, and writes a block of parameters at the end of each. Version 4.1 has one
    file. Version 5 has a second one for its launcher, PRRTE, which knows nothing of the first.
  - Networks are written in CIDR form, so that members may name their cards differently.
  - The program that mpirun starts on other members gets an absolute path, so it is found without modules and profiles.
  - Afterwards the installation is asked for the values in force. When one differs, all files are put back, and the
    message says which value it is and what sets it.
  - Lines of others in these files stay. Those that the block outvotes are named. Those with which Open MPI could run
    no job, or would leave the port plan, are refused before anything changes.
  - What libraries read from the environment of jobs is a block in C(/etc/environment), which PAM gives to every
    session.
options:
  prefix:
    description: The folder above C(bin/mpirun).
    type: path
    required: true
  networks:
    description:
      - Networks in CIDR form for the data of MPI, and for its launcher. Host bits are ignored. The node must have an
        address in each. Empty leaves the choice to Open MPI.
      - Open MPI understands no IPv6 network. The node's interface in it is written instead.
      - When all are of one family, the other one is turned off for data.
    type: list
    elements: str
    default: []
  ports:
    description:
      - C(btl_tcp_port_min_v4) and C(btl_tcp_port_min_v6) are the first of the data ports, 1024 to 65535.
        C(btl_tcp_port_range_v4) and C(btl_tcp_port_range_v6) say how many there are.
      - What is for IPv6 is left out where the build has no IPv6.
    type: dict
    required: true
  ephemeral:
    description:
      - C(first) and C(last) of the ports that the plan has for the daemons. They come from the kernel, whose
        C(net.ipv4.ip_local_port_range) must lie inside. Empty checks nothing.
    type: dict
    default: {}
  ssh_port:
    description: The port of sshd on the members, 1 to 65535. With 22, ssh is called without one.
    type: int
    default: 22
  transport:
    description:
      - With V(tcp), data goes over TCP (C(pml ob1) with C(btl self,vader,tcp) or C(self,sm,tcp)).
      - With V(ucx), data goes over UCX (C(pml ucx)), which takes RDMA where there is any.
    type: str
    choices: [tcp, ucx]
    default: tcp
  ucx_devices:
    description:
      - Devices that UCX may use, as C(mlx5_0:1) or the name of an interface. Empty takes the interfaces in
        O(networks), and the RDMA devices of their cards.
    type: list
    elements: str
    default: []
  omp_num_threads:
    description: C(OMP_NUM_THREADS) of every session; 0 sets nothing.
    type: int
    default: 0
  openblas_num_threads:
    description: C(OPENBLAS_NUM_THREADS) of every session; 0 sets nothing.
    type: int
    default: 0
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details:
      - Before a change that check mode only announces, nothing can be verified. What the node lacks then is a warning,
        and so is an Open MPI that is not there yet.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with iproute2.
"""

EXAMPLES = r"""
- name: Keep Open MPI on the data network and inside the port plan
  baremetal.gpu_cluster.openmpi_settings:
    prefix: /usr/lib64/openmpi
    networks: [192.0.2.0/24]
    ports:
      btl_tcp_port_min_v4: 61000
      btl_tcp_port_range_v4: 4000
      btl_tcp_port_min_v6: 61000
      btl_tcp_port_range_v6: 4000
    ssh_port: 2222
"""

RETURN = r"""
version:
  description: The version of Open MPI; empty in check mode when it is not installed yet.
  returned: success
  type: str
  sample: 4.1.4
files:
  description: The files with our values, each with its names and values.
  returned: success
  type: dict
  sample:
    /etc/openmpi-x86_64/openmpi-mca-params.conf:
      pml: ob1
      btl: self,vader,tcp
      btl_tcp_if_include: 192.0.2.0/24
overridden:
  description: Lines of others in these files that have no effect any more, one sentence each.
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

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import trust
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    replace_file,
    restore_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import (
    installation,
    node,
    parameter_files,
    settings,
    spec,
)

#: Asking takes a second at most, also on a node that boots.
ASK_SECONDS = 60
DAEMONS = {"4.1": "orted", "5": "prted"}
ARGUMENTS = {
    "prefix": {"type": "path", "required": True},
    "networks": {"type": "list", "elements": "str", "default": []},
    "ports": {"type": "dict", "required": True},
    "ephemeral": {"type": "dict", "default": {}},
    "ssh_port": {"type": "int", "default": 22},
    "transport": {"type": "str", "choices": ["tcp", "ucx"], "default": "tcp"},
    "ucx_devices": {"type": "list", "elements": "str", "default": []},
    "omp_num_threads": {"type": "int", "default": 0},
    "openblas_num_threads": {"type": "int", "default": 0},
}

NOT_CHANGED = "Nothing was changed.\n%s"
NOT_IN_FORCE = "Open MPI does not use what was written, so all files are as before: %s"
NO_ANSWER = "Open MPI below %s cannot be asked: %s"
ERR_UNFINISHED = "not all of it could be written"
ERR_NO_MPI = "there is no Open MPI: %s is missing"
WARN_LATER = "it is not installed yet, so check mode cannot tell its settings: %s is missing"
WARN_LIBRARIES = "%s finds its libraries only when mpirun is called with its full path: %s"


class Node:
    """What the installation and the node say, and the files as they are."""

    def __init__(self, module: AnsibleModule, wanted: spec.Wishes) -> None:
        self.module = module
        self.wanted = wanted
        self.found = self._ask()
        text = run(["ip", "-json", "address"], ASK_SECONDS, "ip address")
        self.addresses = node.addresses(text)

    def program(self, name: str) -> str:
        """A program of the installation; PRRTE may be a package of its own."""
        folders = [os.path.join(self.wanted.prefix, "bin"), "/usr/bin"]
        paths = [os.path.join(folder, name) for folder in folders]
        return next(filter(os.path.exists, paths), paths[0])

    def _asked(self, program: str, *arguments: str) -> str:
        """An answer that no user and no environment has coloured."""
        libraries = os.path.join(self.wanted.prefix, "lib")
        clean = [f"HOME={installation.NO_HOME}", "LC_ALL=C", f"LD_LIBRARY_PATH={libraries}"]
        argv = trust.harmless(["/usr/bin/env", "-i", *clean, program, *arguments], program)
        return run(argv, ASK_SECONDS, os.path.basename(program))

    def _ask(self) -> installation.Installation:
        path = os.path.join(self.wanted.prefix, "bin", "ompi_info")
        found = installation.parse_mpi(self._asked(path, "--all", "--parsable"))
        prte = self.program("prte_info")
        if found.generation == "5" and os.path.exists(prte):
            file, values = installation.parse_prte(self._asked(prte, "--all"))
            found = found._replace(prte_file=file, prte_values=values)
        return found

    def again(self) -> None:
        """Ask once more, after files have changed."""
        self.found = self._ask()

    @property
    def daemon(self) -> str:
        """What mpirun starts on other members."""
        return self.program(DAEMONS[self.found.generation])

    def without_libraries(self) -> str:
        """What a session without any settings says when it starts the daemon; empty when it can."""
        try:
            run(trust.harmless(["/usr/bin/env", "-i", self.daemon, "--help"], self.daemon), ASK_SECONDS, self.daemon)
        except CommandError as error:
            return str(error) if "shared libraries" in str(error) else ""
        return ""

    def parameters(self) -> settings.Parameters:
        """Everything that is wanted, by places."""
        devices = list(self.wanted.ucx_devices)
        if not devices:
            interfaces = dict.fromkeys(map(self._interface, self.wanted.networks))
            for interface in interfaces:
                devices += [*node.rdma_devices(interface), interface]
        return settings.parameters(self.wanted, self.found, self.daemon, self._interface, devices)

    def _interface(self, network: str) -> str:
        one = node.interface_of(network, self.addresses)
        return one.interface if one else network

    def lacks(self) -> list[Problem]:
        """What of the node itself does not fit."""
        text = read_text(node.PORT_RANGE)
        return node.unreached(self.wanted.networks, self.addresses) + node.outside(self.wanted.ephemeral, text)

    def not_in_force(self, wanted: settings.Parameters) -> list[str]:
        """What the installation says differently."""
        sentences = settings.differences(wanted.mpi, self.found.values, self.found.sources)
        return sentences + settings.differences(wanted.prte, self.found.prte_values, {})


def refuse(module: AnsibleModule, problems: list[Problem]) -> None:
    """Stop with all of them."""
    sentences = "\n".join(problem.sentence() for problem in problems)
    module.fail_json(msg=NOT_CHANGED % sentences, problems=[problem.as_dict() for problem in problems])


def places(found: installation.Installation, wanted: settings.Parameters) -> dict[str, dict[str, str]]:
    """The files that matter, with our values."""
    files = {found.mpi_file: wanted.mpi, parameter_files.ENVIRONMENT_PATH: wanted.environment}
    if found.prte_file:
        files[found.prte_file] = wanted.prte
    return files


def block(path: str, text: str, wanted: dict[str, str]) -> str:
    """The file as it is to be."""
    if path == parameter_files.ENVIRONMENT_PATH:
        return parameter_files.with_block(text, wanted, separator="=", first=True)
    return parameter_files.with_block(text, wanted)


def write(module: AnsibleModule, here: Node, wanted: settings.Parameters, texts: dict[str, tuple[str, str]]) -> None:
    """Replace the files, and put them back when Open MPI does not take them."""
    existed = {path: os.path.exists(path) for path in texts}
    wrong = [ERR_UNFINISHED]
    try:
        for path, (_before, after) in texts.items():
            replace_file(module, path, after)
        here.again()
        wrong = here.not_in_force(wanted)
    except (CommandError, OSError) as error:
        wrong = [str(error)]
    finally:
        # Also when Ansible's own code ends the module in the middle.
        for path, (before, _after) in texts.items():
            if wrong and read_text(path) != before:
                restore_file(module, path, before, existed[path])
    if wrong:
        module.fail_json(msg=NOT_IN_FORCE % "; ".join(wrong))


def apply(module: AnsibleModule, here: Node) -> None:
    """Compare, write, verify, answer."""
    problems = settings.unusable(here.wanted, here.found)
    if problems:
        refuse(module, problems)
    wanted = here.parameters()
    files = places(here.found, wanted)
    current = {path: read_text(path) for path in files}
    for path, values in files.items():
        problems += parameter_files.conflicts(path, current[path], values)
    lacks = here.lacks()
    if problems or (lacks and not module.check_mode):
        refuse(module, problems + lacks)
    afterwards = {path: block(path, current[path], values) for path, values in files.items()}
    texts = {path: (current[path], after) for path, after in afterwards.items() if after != current[path]}
    overridden = [line for path in files for line in parameter_files.overridden(path, current[path], files[path])]
    libraries = here.without_libraries()
    warnings = [problem.sentence() for problem in lacks] + (overridden if texts else [])
    warnings += [WARN_LIBRARIES % (here.daemon, libraries)] if libraries else []
    if texts and not module.check_mode:
        write(module, here, wanted, texts)
    elif not texts and (wrong := here.not_in_force(wanted)):
        module.fail_json(msg=NOT_IN_FORCE % "; ".join(wrong))
    for sentence in warnings:
        module.warn(sentence)
    diff = [
        {"before_header": path, "after_header": path, "before": before, "after": after}
        for path, (before, after) in texts.items()
    ]
    named = {path: values for path, values in files.items() if values}
    module.exit_json(
        changed=bool(texts), version=here.found.version, files=named, overridden=overridden, diff=diff if diff else {}
    )


def main() -> None:
    """Check, ask, apply."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    wanted, problems = spec.read(module.params)
    if problems:
        refuse(module, problems)
    program = os.path.join(wanted.prefix, "bin", "ompi_info")
    if not os.path.exists(program):
        if not module.check_mode:
            fix = "install it, or name its folder"
            refuse(module, [Problem("openmpi_prefix", wanted.prefix, ERR_NO_MPI % program, fix)])
        module.warn(WARN_LATER % program)
        module.exit_json(changed=True, version="", files={}, overridden=[])
    try:
        here = Node(module, wanted)
    except CommandError as error:
        module.fail_json(msg=NO_ANSWER % (wanted.prefix, error))
    apply(module, here)


if __name__ == "__main__":
    main()
