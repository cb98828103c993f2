# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that a launched run has left on its node, called over the connection of an action, without a module.

Packing, sending and unpacking a module costs 0.4 s of a processor and four round trips; this costs 0.1 s and one.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.run import steps, unit


def python(action: ActionBase, task_vars: Mapping[str, Any]) -> str:
    """The Python of the modules on the node; empty as long as no module has found it."""
    wanted = action._templar.template(C.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars))
    if not wanted or str(wanted).startswith("auto"):
        wanted = (task_vars.get("ansible_facts") or {}).get("discovered_interpreter_python", "")
    return str(wanted or "")


def last_object(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object in the last line that a command has printed.  ValueError where there is none."""
    lines = str(answer.get("stdout", "")).strip().splitlines()
    found = json.loads(lines[-1]) if lines else None
    if not isinstance(found, dict):
        raise ValueError(f"no JSON object: {answer}")
    return found


def step(action: ActionBase, module: str, task_vars: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Take a step of ``steps.STEPS`` on the node: the result of its module.

    module: the full name of the module, which is called itself where the program can't be: in check mode, with
    arguments that are wrong, without a Python that is known, and for a node on which the run has left no program.
    """
    command = "" if action._task.check_mode else _command(action, module, task_vars, arguments)
    if command:
        try:
            # Not in the folder of the user who logs in: -m looks for modules where it is started.
            answer = last_object(action._low_level_execute_command(command, chdir="/"))
        except ValueError:
            pass
        else:
            # A module's result is cleaned of what Ansible would act on, such as facts; here nothing else is let in.
            return {key: answer[key] for key in steps.RESULTS[_name(module)] if key in answer}
    return dict(action._execute_module(module, {**action._task.args, **arguments}, task_vars=task_vars))


def _name(module: str) -> str:
    """The step of a module."""
    return module.rpartition("collective_")[2]


def _command(action: ActionBase, module: str, task_vars: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What takes the step on the node; empty where only the module can say what is wrong, or find the Python."""
    name = _name(module)
    where = python(action, task_vars)
    try:
        _result, given = action.validate_argument_spec(argument_spec=steps.SPECS[name])
        payload = f"{unit.run_dir(given['run_id'])}/payload"
    except (AnsibleActionFail, unit.UnitError):
        return ""
    words = [where, "-S", "-m", steps.__name__, name, json.dumps({**given, **arguments})]
    return f"env PYTHONPATH={payload} PYTHONDONTWRITEBYTECODE=1 {shlex.join(words)}" if where else ""
