# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Coordinate a check on the controller: begin it, give the next orders, and in the end the verdict and its reports."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import coordinator, fixes, settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    compact,
    console,
    delivery,
    files,
    folder,
    place,
)
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _check_folder, _play, _stdout

ARGUMENT_SPEC = {
    "folder": {"type": "path", "default": ""},
    "settings": {"type": "dict", "default": {}},
    "hosts": {"type": "dict", "default": {}},
}
WARNING = "on the controller: %s. The check goes on and gives its verdict on the terminal."
WHERE = "report: %s"
NOWHERE = "no report files: %s (set cluster_check_report_dir to a folder that can be written)"
ERR_FOLDER = "the controller cannot keep the check in %s: %s"


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        variables = task_vars or {}
        try:
            result.update(
                changed=False, **(self._next(given, variables) if given["folder"] else self._begin(given, variables))
            )
        except settings.SettingsError as error:
            result.update(failed=True, msg=str(error))
        except OSError as error:
            result.update(failed=True, msg=ERR_FOLDER % (error.filename, error.strerror))
        return result

    def _begin(self, given: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
        play = settings.Play(
            hosts=[str(host) for host in variables["ansible_play_hosts"]],
            selected=[str(host) for host in variables["ansible_play_hosts_all"]],
            batch=len(variables["ansible_play_batch"]),
            forks=int(variables["ansible_forks"]),
            strategy=_play.strategy(self._task),
        )
        wanted = {**self._variables(variables), **given["settings"]}
        own = self._own_folder(wanted, variables)
        trouble = folder.problem(own, len(wanted.get("members") or ())) if own else ""
        found = settings.read({**wanted, "report_dir": "" if trouble else own} if own else wanted, play)
        now = time.time()
        state = coordinator.begin(
            found,
            play,
            run_id=f"{time.strftime('%Y%m%dt%H%M%Sz', time.gmtime(now))}-{secrets.token_hex(3)}",
            nonce=secrets.token_hex(16),
            now=now,
            own=settings.read_hosts(given["hosts"]),
            check_mode=bool(self._task.check_mode),
        )
        # Before the check costs time. It only warns: the verdict needs no file.
        problem = trouble or (folder.problem(found.report_dir, len(found.members)) if found.report_dir else "")
        warnings = {"warnings": [WARNING % problem]} if problem else {}
        kept = _check_folder.Folder.made()
        return {**self._orders(kept, state, {}, 0, variables), **warnings}

    def _own_folder(self, wanted: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
        """The folder for the files of this run where nobody named one: not for the same files as a whole run."""
        usual = place.beside([str(source) for source in variables.get("ansible_inventory_sources") or ()], os.getcwd())
        if not usual or str(wanted.get("report_dir") or "") != usual:
            return ""
        limited = set(variables["ansible_play_hosts_all"]) < set(wanted.get("members") or ())
        return place.part(usual, check_mode=bool(self._task.check_mode), limited=limited)

    def _variables(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that the variables of the role hold."""
        names = {name: f"{settings.PREFIX}{name}" for name in settings.READERS}
        return {name: self._templar.template(variables[one]) for name, one in names.items() if one in variables}

    def _next(self, given: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
        kept = _check_folder.Folder(given["folder"])
        step = kept.step()
        return self._orders(kept, kept.state(), kept.answers(step), step.number + 1, variables)

    def _orders(
        self,
        kept: _check_folder.Folder,
        state: coordinator.State,
        answers: coordinator.Answers,
        number: int,
        variables: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The next orders, or the verdict."""
        state, orders = coordinator.advance(state, answers, time.time())
        if orders is None:
            state = kept.whole(state)
            kept.remove()
            return {"done": True, **self._verdict(state, variables)}
        kept.save(state, _check_folder.Step(number, orders))
        told = {name: getattr(orders, name) for name in ("step", "title", "timeout_seconds", "timeouts")}
        return {"done": False, "folder": kept.path, **told}

    def _verdict(self, state: coordinator.State, variables: Mapping[str, Any]) -> dict[str, Any]:
        judged = time.time()
        found = coordinator.with_times(coordinator.judge(state), state, judged, time.time())
        sources = variables.get("ansible_inventory_sources") or []
        found = delivery.with_inventory(found, fixes.inventory(sources, os.getcwd()))
        found = delivery.with_origin(found, [fixes.below(str(source), os.getcwd()) for source in sources])
        missing: list[str] = []
        where = state["settings"]["report_dir"]
        if where:
            found, missing = delivery.with_files(found, where)
        report = compact.same(found.as_dict())
        page = os.path.abspath(os.path.join(where, files.PAGE)) if where and files.PAGE not in missing else ""
        if not _stdout.shows_verdict:
            for line in [*console.lines(report), *self._last_line(page, variables)]:
                Display().display(sanitize.clean(line))
        return {
            "verdict": found.verdict,
            "headline": sanitize.sentence(found.headline),
            "culprits": {host: sanitize.sentence(causes) for host, causes in found.culprits.items()},
            "missing_files": missing,
            "report_file": page,
            "report": compact.pack(report),
            # The report is on the console already; the full data is for later tasks, not for -v to print a second time.
            "_ansible_verbose_override": True,
        }

    def _last_line(self, page: str, variables: Mapping[str, Any]) -> list[str]:
        """Where the report is, or why there is none; nothing where none was wanted."""
        if page:
            return ["", WHERE % page]
        wanted = self._variables(variables)
        own = self._own_folder(wanted, variables)
        trouble = folder.problem(own, len(wanted.get("members") or ())) if own else ""
        return ["", NOWHERE % trouble] if trouble else []
