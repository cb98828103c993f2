# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of Open MPI as they are wanted: compared, written, and verified with what Open MPI says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    replace_file,
    restore_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import (
    installation,
    parameter_files,
    settings,
    spec,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi.ask import Node

NOT_CHANGED = "Nothing was changed.\n%s"
NOT_IN_FORCE = "Open MPI does not use what was written, so all files are as before: %s"
NO_ANSWER = "Open MPI below %s cannot be asked: %s"
ERR_UNFINISHED = "not all of it could be written"
ERR_NO_MPI = "there is no Open MPI: %s is missing"
WARN_LATER = "it is not installed yet, so check mode cannot tell its settings: %s is missing"
WARN_LIBRARIES = "%s finds its libraries only when mpirun is called with its full path: %s"


def settle(module: AnsibleModule) -> dict[str, Any]:
    """Check, ask, apply. The result of the module."""
    wanted, problems = spec.read(module.params)
    if problems:
        refuse(module, problems)
    program = os.path.join(wanted.prefix, "bin", "ompi_info")
    if not os.path.exists(program):
        if not module.check_mode:
            fix = "install it, or name its folder"
            refuse(module, [Problem("openmpi_prefix", wanted.prefix, ERR_NO_MPI % program, fix)])
        module.warn(WARN_LATER % program)
        return {"changed": True, "version": "", "files": {}, "overridden": []}
    try:
        here = Node(wanted)
    except CommandError as error:
        module.fail_json(msg=NO_ANSWER % (wanted.prefix, error))
    return apply(module, here)


def apply(module: AnsibleModule, here: Node) -> dict[str, Any]:
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
    texts = changed(files, current)
    overridden = [line for path in files for line in parameter_files.overridden(path, current[path], files[path])]
    warnings = what_to_know(here, lacks, overridden if texts else [])
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
    return {
        "changed": bool(texts),
        "version": here.found.version,
        "files": {path: values for path, values in files.items() if values},
        "overridden": overridden,
        "diff": diff if diff else {},
    }


def refuse(module: AnsibleModule, problems: list[Problem]) -> NoReturn:
    """Stop with all of them."""
    sentences = "\n".join(problem.sentence() for problem in problems)
    module.fail_json(msg=NOT_CHANGED % sentences, problems=[problem.as_dict() for problem in problems])
    raise AssertionError("fail_json returned")


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


def changed(files: dict[str, dict[str, str]], current: dict[str, str]) -> dict[str, tuple[str, str]]:
    """The files that change, with their texts before and after."""
    afterwards = {path: block(path, current[path], values) for path, values in files.items()}
    return {path: (current[path], after) for path, after in afterwards.items() if after != current[path]}


def what_to_know(here: Node, lacks: Sequence[Problem], overridden: Sequence[str]) -> list[str]:
    """What a person should know, one sentence each."""
    libraries = here.without_libraries()
    warnings = [*(problem.sentence() for problem in lacks), *overridden]
    return warnings + ([WARN_LIBRARIES % (here.daemon, libraries)] if libraries else [])


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
