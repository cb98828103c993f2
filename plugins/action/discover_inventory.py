# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the inventory that describes the machines which discover_node has asked, and print what is left to decide."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import files, sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import table_lines
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import answers, hosts_file, inventory
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.plan import plan
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _generated_file, _inventory_sources

NAME = "baremetal.gpu_cluster.discover"
ARGUMENT_SPEC = {
    "group": {"type": "str", "required": True},
    "asked": {"type": "dict", "required": True},
    "host_keys": {"type": "dict", "default": {}},
    "leave_out": {"type": "list", "elements": "str", "default": []},
}
#: Decided elsewhere, such as in group_vars: not written a second time.
DECIDED = (*inventory.OWN, inventory.BECOME, inventory.PYTHON, inventory.PORTS)
#: So many lines of a difference are printed.
MOST_LINES = 200

ERR_UNKNOWN = "discover_leave_out names %s, which %s no member of the group %s. Nothing was written"
ERR_SILENT = (
    "%d of %d machines did not answer; nothing was written, so that no machine is missing by accident.\n%s\n"
    "Mend them and repeat the command, or leave them out of the inventory with -e discover_leave_out=%s"
)
LIMITED = (
    "%d of %d machines were not asked (--limit): nothing is written, because the inventory would lose them. Repeat the "
    "command without --limit, or leave machines out with -e discover_leave_out=NAME,NAME"
)
ERR_FEW = "only %d machine answered; a cluster has at least 2. Nothing was written"
ERR_EDITED = "%s was edited since discover wrote it, and stays. Move it away, and repeat the command"
UNCHANGED = "%s: nothing to add, nothing changed"
EDITED = "%s was edited, and stays as it is. What discover would write is in %s:"
#: Without the mark: what a person has written stays decided.
TAKE = "Take it over with: tail -n +2 %s > %s"
TAKE_OTHER = "To take it over, put what follows its first line into a hosts.yml in the place of %s"


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        variables = task_vars or {}
        group, members = given["group"], [str(one) for one in variables["groups"].get(given["group"], [])]
        unknown = [name for name in given["leave_out"] if name not in members]
        if unknown:
            text = ERR_UNKNOWN % (listed(unknown), "is" if len(unknown) == 1 else "are", group)
            return {**result, "failed": True, "msg": sanitize.clean(text)}
        wanted = [host for host in members if host not in given["leave_out"]]
        hosts = [host for host in wanted if host in given["asked"]]
        where = {host: str(variables["hostvars"][host].get(inventory.WHERE) or host) for host in members}
        machines, problems = answers.machines(hosts, where, given["asked"], given["host_keys"])
        result.update(changed=False, questions=0, path="")
        result["_ansible_verbose_override"] = True
        target = _inventory_sources.target(variables.get("ansible_inventory_sources") or [])
        before = _inventory_sources.read(target.path)
        edited = not _generated_file.is_unedited(before)
        sources = _inventory_sources.Sources(variables["hostvars"], DECIDED, edited)
        text, questions = "", list[str]()
        if machines:
            found, told = plan(
                machines,
                {one.host: sources.kept(one.host) for one in machines},
                {one.host: python() | sources.decided(one.host) for one in machines},
                "gpu_cluster" if group in ("all", "ungrouped") else group,
                [str(name) for name in variables["groups"]],
                # Files of host_vars have the names of hosts.
                written=edited or _inventory_sources.has_host_files(target.path),
            )
            found.lost = {name: sources.lost(host) for host, name in found.renamed.items()}
            found.left_out = sources.left_out(
                hosts_file.NOT_MEMBERS, given["leave_out"], variables["groups"], where, found.names
            )
            text = (
                _generated_file.mark(hosts_file.text(found), NAME)
                if found.adds or given["leave_out"] or not edited
                else before
            )
            questions = [line for number, one in enumerate(found.questions, 1) for line in one.lines(number)]
            result["questions"] = len(found.questions)
            show(told)
        limited = len(hosts) < len(wanted)
        refusal = _refusal(problems, hosts) or (ERR_FEW % len(machines) if len(machines) < 2 and not limited else "")
        if refusal:
            return {**result, "failed": True, "msg": sanitize.clean(refusal)}
        if limited:
            result["msg"] = LIMITED % (len(wanted) - len(hosts), len(wanted))
        else:
            result.update(self._write(target, before, text))
        show([*questions, str(result["msg"])])
        return result

    def _write(self, target: _inventory_sources.Target, before: str, text: str) -> dict[str, Any]:
        """Replace the file that nobody has edited, or write beside it; what the task returns."""
        if before == text:
            return {"path": target.path, "msg": UNCHANGED % target.path}
        if _generated_file.is_unedited(before):
            return self._replaced(target.path, before, text, f"{target.path}: {self._done()}")
        beside = _inventory_sources.read(target.beside)
        if beside and not _generated_file.is_unedited(beside):
            return {"failed": True, "msg": ERR_EDITED % target.beside}
        said = f"{target.beside}: {self._done()}"
        if before:
            lines = difflib.unified_diff(
                before.splitlines(), text.splitlines(), target.path, target.beside, lineterm="", n=1
            )
            shown = [line for line, _number in zip(lines, range(MOST_LINES))]
            is_yaml = target.path.endswith((".yml", ".yaml"))
            take = (
                TAKE % (shlex.quote(target.beside), shlex.quote(target.path)) if is_yaml else TAKE_OTHER % target.path
            )
            said = "\n".join([EDITED % (target.path, target.beside), *shown, take])
        if beside == text:
            return {"path": target.beside, "msg": f"{said}\n{UNCHANGED % target.beside}"}
        return self._replaced(target.beside, beside, text, said)

    def _done(self) -> str:
        return "would be written" if self._task.check_mode else "written"

    def _replaced(self, path: str, before: str, text: str, said: str) -> dict[str, Any]:
        found: dict[str, Any] = {"changed": True, "path": path, "msg": said}
        if not self._task.check_mode:
            try:
                real = os.path.realpath(path)
                files.replace(real, text, os.stat(real).st_mode & 0o7777 if os.path.exists(real) else 0o644)
            except OSError as error:
                return {"failed": True, "msg": f"{path} cannot be written: {error.strerror}. Nothing was written"}
        if self._task.diff:
            found["diff"] = {"before": before, "after": text, "before_header": path, "after_header": path}
        return found


def python() -> dict[str, str]:
    """The Python of the modules, where ansible.cfg names one."""
    path = str(constants.config.get_config_value("INTERPRETER_PYTHON") or "auto")
    return {} if path.startswith("auto") else {inventory.PYTHON: path}


def show(lines: Sequence[str]) -> None:
    """Print them."""
    for line in lines:
        Display().display(sanitize.clean(line))


def _refusal(problems: Mapping[str, Any], hosts: Sequence[str]) -> str:
    """The machines without an answer, each once with the reason."""
    silent = [problems[host] for host in hosts if host in problems]
    table = "\n".join(table_lines([one.as_dict() for one in silent]))
    return ERR_SILENT % (len(silent), len(hosts), table, ",".join(one.host for one in silent)) if silent else ""
