# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring kernel parameters to what is wanted: compare, refuse, write, set and read back, or put everything back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    replace_file,
    restore_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import boot, dropins, kernel, values
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters import (
    EXTRA,
    Parameter,
    file_text,
    wanted_parameters,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters_overrides import overrides
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.proc_sys import ProcSys

NOT_CHANGED = "Refused, nothing was changed:\n%s"
PUT_BACK = "Failed, everything was put back: %s"
LEFT = "%s is no longer in the list; the value that it has, %s, stays until the next boot"


class Comparison(NamedTuple):
    """The file as it is wanted and as it is, and what of the running kernel differs.

    ``overrides`` is what files of others decide.
    """

    parameters: list[Parameter]
    text: str
    before: str
    existed: bool
    plan: kernel.Plan
    overrides: list[dropins.Override]

    def overridden(self) -> list[dict[str, str]]:
        """The form in which the module returns it."""
        return [override.as_dict() for override in self.overrides]


def settle(module: AnsibleModule) -> dict[str, Any]:
    """Do it all. The result of the module."""
    running, path = ProcSys(), module.params["path"]
    found = compare(module, running)
    outcome = kernel.expected(found.plan) if module.check_mode else apply(module, running, found)
    for sentence in warnings(found, outcome, running):
        module.warn(sentence)
    return {
        "changed": outcome.changed or found.before != found.text,
        "unsettable": [asdict(entry) for entry in outcome.unsettable],
        "overridden": found.overridden(),
        "running": outcome.after,
        "diff": [
            {"before_header": path, "after_header": path, "before": found.before, "after": found.text},
            {
                "before_header": "running kernel",
                "after_header": "running kernel",
                "before": "".join(f"{key} = {value}\n" for key, value in outcome.before.items()),
                "after": "".join(f"{key} = {value}\n" for key, value in outcome.after.items()),
            },
        ],
    }


def compare(module: AnsibleModule, running: ProcSys) -> Comparison:
    """What has to change; ends the module where that is refused."""
    given = dict(module.params)
    path = given.pop("path")
    report, accept = given.pop("unsettable") == "report", given.pop("overridden") == "report"
    parameters, problems = wanted_parameters(**given)
    text, before, existed = file_text(parameters), read_text(path), os.path.exists(path)
    files = dropins.read(boot.FOLDERS)
    plan = kernel.compare(parameters, running)
    found = overrides(parameters, dropins.ConfFile(path, text), files)

    problems += boot.folder_problems(path)
    problems += boot.rails_problems(parameters, files)
    problems += kernel.congestion_problems(parameters, *running.congestion_controls())
    mistyped = kernel.mistyped_problems(parameters, running, running.keys(), report=report)
    problems += mistyped
    if not report:
        problems += kernel.unsettable_problems(parameters, plan.unsettable, [entry.variable for entry in mistyped])
    if not accept:
        problems += [override.problem(EXTRA) for override in found]
    compared = Comparison(parameters, text, before, existed, plan, found)
    if problems:
        module.fail_json(
            msg=NOT_CHANGED % "\n".join(problem.sentence() for problem in problems),
            problems=[problem.as_dict() for problem in problems],
            unsettable=[asdict(entry) for entry in plan.unsettable],
            overridden=compared.overridden(),
        )
    return compared


def apply(module: AnsibleModule, running: ProcSys, found: Comparison) -> kernel.Outcome:
    """Write the file and set what differs; the file as it was when the kernel refuses a value."""
    path = module.params["path"]
    # The file first: when it cannot be written, no running value was touched yet.
    if found.before != found.text:
        replace_file(module, path, found.text)
    try:
        return kernel.settle(found.plan, running, report=module.params["unsettable"] == "report")
    except kernel.RefusedError as error:
        restore_file(module, path, found.before, found.existed)
        module.fail_json(msg=PUT_BACK % error, unsettable=[asdict(entry) for entry in error.unsettable])
        raise AssertionError("fail_json returned") from error


def warnings(found: Comparison, outcome: kernel.Outcome, running: ProcSys) -> Iterator[str]:
    """What is otherwise than asked for and no failure, and what an earlier run has left, one sentence each."""
    for entry in outcome.unsettable:
        yield entry.sentence()
    for override in found.overrides:
        yield f"{override.variable} = {override.wanted}: {override.sentence()}"
    left = set(boot.parse(found.before)) - {one.path for one in found.parameters}
    for key in sorted(map(values.key_of, left)):
        yield LEFT % (key, running.read(key))
