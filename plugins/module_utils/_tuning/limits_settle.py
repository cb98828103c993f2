# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring limits to what is wanted: compare, refuse, write, put in force, read back, or put everything back."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text, restore_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.limits_node import Node, login_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.limits_overrides import Found, overrides
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.limits_read_back import Wanted

NOT_CHANGED = "Refused, nothing was changed:\n%s"
NOT_IN_FORCE = "All files are as wanted, but:\n%s"
PUT_BACK = "Failed, everything was put back:\n%s"
FAILED = "Failed:\n%s"
NOT_PUT_BACK = "The old state could not be put back: %s"
NOT_READ = "kernel_tuning_login_user is empty: the limits were not read back through an ssh session"
LOGIN_USER = "kernel_tuning_login_user"

ERR_NO_USER = "there is no such user on this node"
NOT_READ_YET = "there is no user %s on this node yet: a run that changes things makes it, and reads the limits back"


class Plan(NamedTuple):
    """What shall be in force and in the files. ``unreachable``: the limits that this node cannot reach, each with why.

    ``found`` is what files of others decide.
    """

    state: Wanted
    texts: dict[str, str]
    found: Found
    unreachable: list[Problem]

    def overridden(self) -> list[dict[str, str]]:
        """The form in which the module returns it."""
        return [override.as_dict() for override in self.found.all()]


def settle(module: AnsibleModule) -> dict[str, Any]:
    """Do it all. The result of the module."""
    node = Node(module)
    plan = make_plan(module, node)
    state, texts = plan.state, plan.texts
    before = {path: (read_text(path), os.path.exists(path)) for path in texts}
    stale = [path for path, text in texts.items() if before[path][0] != text]
    try:
        manager = limits.SYSTEM_PATH in stale or bool(state.manager_failures())
        logind = limits.LOGIND_PATH in stale or bool(state.logind_failures())
        changed = bool(stale) or manager or logind
        failures = [] if changed else state.failures()
    except OSError as error:
        module.fail_json(msg=NOT_CHANGED % error)
    if failures:
        module.fail_json(msg=NOT_IN_FORCE % "\n".join(failures), overridden=plan.overridden())
    if changed and not module.check_mode:
        apply(node, state, {path: texts[path] for path in stale}, before, manager=manager, logind=logind)
    for sentence in warnings(plan, module.params["login_user"]):
        module.warn(sentence)
    return {
        "changed": changed,
        "session": limits.by_item(state.limits, state.session),
        "service": limits.by_item(state.limits, state.service),
        "unsettable": [problem.sentence() for problem in plan.unreachable],
        "overridden": plan.overridden(),
        "reported": state.reported,
        "diff": [
            {"before_header": path, "after_header": path, "before": before[path][0], "after": texts[path]}
            for path in stale
        ],
    }


def make_plan(module: AnsibleModule, node: Node) -> Plan:
    """Compare what is asked for with what this node can have; ends the module where that is refused."""
    params = module.params
    asked, problems = limits.read_limits(params["limits"])
    login = None
    if params["login_user"]:
        login, unknown = who_logs_in(module, params["login_user"])
        problems += unknown
    ceilings = [(limit, node.ceiling(limit)) for limit in asked]
    unreachable = [limit.unreachable(ceiling) for limit, ceiling in ceilings if ceiling]
    if params["unsettable"] == "fail":
        problems += unreachable
    beyond = [limit for limit, ceiling in ceilings if ceiling]
    wanted = [limit for limit in asked if limit not in beyond]
    texts = limits.texts(wanted, keep_ipc=params["keep_ipc"])
    found = overrides(wanted, texts, [limits.ANYBODY, limits.ROOT, *([login] if login else [])])
    if params["overridden"] == "fail":
        problems += [override.problem(limits.LIMITS) for override in found.all()]
    state = Wanted(node, wanted, found, keep_ipc=params["keep_ipc"], user=login.name if login else "")
    plan = Plan(state, texts, found, unreachable)
    if problems:
        module.fail_json(
            msg=NOT_CHANGED % "\n".join(problem.sentence() for problem in problems),
            problems=[problem.as_dict() for problem in problems],
            overridden=plan.overridden(),
        )
    return plan


def who_logs_in(module: AnsibleModule, name: str) -> tuple[limits.Login | None, list[Problem]]:
    """The user through whose session the limits are read back, and the problem when there is none."""
    login = login_of(name)
    if login is not None:
        return login, []
    if module.check_mode:
        # The role that makes the user has only said what it would do.
        module.warn(NOT_READ_YET % name)
        return None, []
    return None, [Problem(LOGIN_USER, shown(name), ERR_NO_USER, "create the user first, or name another one")]


def warnings(plan: Plan, login_user: str) -> list[str]:
    """What is otherwise than asked for and no failure, one sentence each."""
    return [
        *(problem.sentence() for problem in plan.unreachable),
        *(f"{override.variable} = {override.wanted}: {override.sentence()}" for override in plan.found.all()),
        *plan.state.reported,
        *([NOT_READ] if plan.state.limits and not login_user else []),
    ]


def apply(
    node: Node,
    state: Wanted,
    texts: dict[str, str],
    before: dict[str, tuple[str, bool]],
    *,
    manager: bool,
    logind: bool,
) -> None:
    """Write, put in force and read back; when that fails, put everything back and fail."""

    def put_back() -> list[str]:
        """As it was; what could not be put back."""
        try:
            for path in texts:
                restore_file(node.module, path, *before[path])
            node.reload(manager=manager, logind=logind)
        except OSError as error:
            return [NOT_PUT_BACK % error]
        return []

    try:
        for path, text in texts.items():
            restore_file(node.module, path, text, bool(text))
        node.reload(manager=manager, logind=logind)
        failures = state.failures()
    except OSError as error:
        failures = [str(error)]
    except SystemExit:
        # A file could not be moved to its place, which ends a module at once.
        put_back()
        raise
    if failures:
        left = put_back()
        node.module.fail_json(msg=(FAILED if left else PUT_BACK) % "\n".join(failures + left))
