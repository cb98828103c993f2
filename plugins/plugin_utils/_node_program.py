# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of a check on a node without a module: a program that is there already, or one that is sent.

Packing, sending and unpacking a module costs the controller and the node 0.2 s of a processor, most of it for Ansible's
own code on the node; a program that is sent costs 0.05 s besides its work, one that is there less.  What can't be done
in this way, its module does: in check mode unless it only reads, with arguments that are wrong, as long as no module
has found a Python on the node, and over connections that pass no standard input.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import command as node_command
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload, sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import run_state, steps
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _answers


class Program:
    """A program that is sent.  To be made where an action is loaded, which Ansible's main process does once.

    module: full name of the module in whose place it is.  step: has ``SPEC``, ``RESULTS``, ``run_step``, and ``FACTS``
    where it returns facts; _base/payload.py says more.  reads_only: it is the same in check mode.  program: its name,
    where the module is one for several programs.
    """

    def __init__(self, module: str, step: ModuleType, reads_only: bool = False, program: str = "") -> None:
        self._module, self._step, self._reads_only, self._program = module, step, reads_only, program
        self._packed = payload.packed([step, node_command])

    def run(self, action: ActionBase, task_vars: dict[str, Any]) -> dict[str, Any]:
        """The result of the module."""
        params = None
        if (self._reads_only or not action._task.check_mode) and takes_input(action):
            params = valid(action, self._step.SPEC)
        where = python(action, task_vars) if params is not None else ""
        if where:
            names = {"program": self._step.__name__, "command": node_command.__name__}
            head = json.dumps({**names, "arguments": params}).encode()
            try:
                answer = _called(
                    action, shlex.join([where, "-I", "-S", "-c", payload.READER]), head + b"\n" + self._packed
                )
            except ValueError:
                pass
            else:
                return self._listed(answer)
        arguments = of_module(self._program, action._task.args)
        return self._listed(sanitize.from_node(action._execute_module(self._module, arguments, task_vars=task_vars)))

    def _listed(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        return _answers.listed(answer, self._step.RESULTS, getattr(self._step, "FACTS", ()))


def of_module(program: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a module.  program: the one that it is to run, empty where it is for one only."""
    return {"program": program, "arguments": dict(arguments)} if program else dict(arguments)


def takes_input(action: ActionBase) -> bool:
    """Whether a command on the node can be given standard input; some ways to become root need a terminal for it."""
    connection = action._connection
    become = connection.become
    # Become plugins have the attribute since ansible-core 2.19; before it, Ansible knew su by its name.
    return bool(connection.has_pipelining and (not become or getattr(become, "pipelining", become.name != "su")))


def valid(action: ActionBase, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments of the task as a module would have them; None where only the module can tell.

    That is what is wrong with them, and what ``~`` and ``$HOME`` in a path are on the node.
    """
    paths = [str(action._task.args.get(name)) for name, option in spec.items() if option["type"] == "path"]
    if any(path.startswith("~") or "$" in path for path in paths):
        return None
    try:
        _result, params = action.validate_argument_spec(argument_spec=spec)
    except AnsibleActionFail:
        return None
    return dict(params)


def _called(action: ActionBase, command: str, data: bytes | None) -> dict[str, Any]:
    """What a command answers, with the ``environment`` of the task.  ValueError where it is no JSON."""
    command = f"{action._compute_environment_string()} {command}".strip()
    # Not in the folder of the user who logs in: -m looks for modules where it is started.
    return sanitize.from_node(last_object(action._low_level_execute_command(command, chdir="/", in_data=data)))


def python(action: ActionBase, task_vars: Mapping[str, Any]) -> str:
    """The Python of the modules on the node; empty as long as no module has found it."""
    wanted = action._templar.template(C.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars))
    if not wanted or str(wanted).startswith("auto"):
        wanted = (task_vars.get("ansible_facts") or {}).get("discovered_interpreter_python", "")
    return str(wanted or "")


def last_object(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object in the last line that a command has printed.  ValueError where there is none."""
    lines = str(answer.get("stdout", "")).strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else None
    except RecursionError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"no JSON object: {answer}")
    return found


def step(
    action: ActionBase,
    module: str,
    program: str,
    task_vars: dict[str, Any],
    arguments: Mapping[str, Any],
    piped: bool = False,
) -> dict[str, Any]:
    """Take a step of ``steps.STEPS`` with the program that launch has left: the result of its module.

    module: the full name of the module.  program: the name of the step.  arguments: in place of those of the task.
    piped: through standard input, because they are too long for a command, and for the log of sudo.
    """
    params = None
    if not action._task.check_mode and (not piped or takes_input(action)):
        params = valid(action, steps.SPECS[program])
    where = python(action, task_vars) if params is not None else ""
    if where and params is not None:
        text = json.dumps({**params, **arguments})
        try:
            words = [where, "-S", "-m", steps.__name__, program, "-" if piped else text]
            folder = f"{run_state.run_dir(params['run_id'])}/payload"
            command = f"env PYTHONPATH={folder} PYTHONDONTWRITEBYTECODE=1 {shlex.join(words)}"
            answer = _called(action, command, text.encode() if piped else None)
        except (ValueError, run_state.UnitError):
            pass
        else:
            return _answers.listed(answer, steps.RESULTS[program])
    arguments = of_module(program, {**action._task.args, **arguments})
    answer = sanitize.from_node(action._execute_module(module, arguments, task_vars=task_vars))
    return _answers.listed(answer, steps.RESULTS[program])
