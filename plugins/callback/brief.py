# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""See DOCUMENTATION; the page docs/run-output.md says what a line means."""

from __future__ import annotations

DOCUMENTATION = r"""
name: brief
type: stdout
short_description: One line for each phase and role, and every problem once
version_added: 0.1.0
description:
  - Prints one line for each role of a play with the number of hosts, the time and the changes. Equal problems of
    several hosts are printed once, in a table at the end, with the names of the hosts folded.
  - While nothing is printed for some seconds, a line names the task and the hosts that it waits for. On a terminal that
    line is written again each second, and erased.
  - Prints the verdict of M(baremetal.gpu_cluster.check) and, as the last line, the path of its report.
  - Messages of M(ansible.builtin.debug), ignored errors, differences of C(--diff), warnings and deprecations are shown.
    Text of hosts is printed without control characters, and results with C(no_log) are not printed.
  - With C(-v) and above it prints what P(ansible.builtin.default#callback) prints.
options:
  display_failed_stderr:
    description: Print the table of problems to standard error.
  display_skipped_hosts:
    description: Print lines of roles that all hosts have skipped.
  display_ok_hosts:
    description: Print lines of roles that have changed nothing.
  show_per_host_start:
    description: Only with C(-v).
  show_task_path_on_failure:
    description: Only with C(-v).
  check_mode_markers:
    description: Only with C(-v).
  progress_seconds:
    description: Seconds without output after which the line about the task under way is printed. With V(0) it never is.
    type: float
    default: 8
    env:
      - name: GPU_CLUSTER_PROGRESS_SECONDS
    ini:
      - key: progress_seconds
        section: callback_brief
requirements:
  - Set as C(stdout_callback) below C([defaults]) of C(ansible.cfg).
extends_documentation_fragment:
  - ansible.builtin.default_callback
  - ansible.builtin.result_format_callback
"""

import atexit
import textwrap
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible import context
from ansible.playbook.block import Block
from ansible.playbook.task_include import TaskInclude
from ansible.plugins.callback.default import CallbackModule as Default

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import console
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output import grouping, texts, waiting
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output.units import (
    CHANGED,
    FAILED,
    OK,
    UNREACHABLE,
    Unit,
)
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _status, _stdout

COLLECTION = "baremetal.gpu_cluster."
PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
#: The playbook that every phase begins with. It belongs to the first phase, and is told once.
INVENTORY = "inventory"
FIRST_PHASE = "preflight"
#: A role of this collection that only works out what others need.
HELPER = "common"
COLORS = {OK: C.COLOR_OK, CHANGED: C.COLOR_CHANGED, FAILED: C.COLOR_ERROR, UNREACHABLE: C.COLOR_UNREACHABLE}
#: They wait for a person, and the terminal is hers.
ASKING = ("pause", "ansible.builtin.pause", "ansible.legacy.pause")
#: It runs for every role, also where no tag selects anything else of it.
VALIDATING = ("validate_argument_spec", "ansible.builtin.validate_argument_spec")
NO_MESSAGE = "All assertions passed"


def parts(result: Any) -> tuple[str, Any, Any]:
    """Host, task and data of a result; ansible-core before 2.19 has them by other names."""
    if hasattr(result, "result"):
        return result.host.get_name(), result.task, result.result
    return result._host.get_name(), result._task, result._result


class CallbackModule(Default):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = f"{COLLECTION}brief"

    def __init__(self) -> None:
        super().__init__()
        self._play: Any = None
        #: The playbook of this collection that the play belongs to, empty for a play of somebody else.
        self._phase = ""
        #: What stands above the next line of a play of somebody else.
        self._header = ""
        #: Whether the roles of the play come one after the other, on all hosts.
        self._in_order = True
        self._asks = False
        self._units: dict[str, Unit] = {}
        self._titles: dict[str, str] = {}
        self._told: set[str] = set()
        self._messages: list[grouping.Told] = []
        #: Failures that a playbook of somebody else ignores, or rescues.
        self._excused: list[grouping.Told] = []
        self._problems: list[grouping.Told] = []
        self._verdicts: list[dict[str, Any]] = []
        self._report_file = ""
        self._answered: set[str] = set()
        #: Whether a task failed that one host runs for all, and errors that a playbook of somebody else ignored.
        self._failed_for_all = False
        self._ignored = 0
        self._waiting = waiting.Waiting()
        self._began = time.monotonic()
        self._status: Any = None

    @property
    def _full(self) -> bool:
        return bool(self._display.verbosity > 0)

    # What Ansible calls.  With -v all of it is left to its own callback.

    def v2_playbook_on_start(self, playbook: Any) -> None:
        if self._full:
            super().v2_playbook_on_start(playbook)
        elif self._status is None:
            _stdout.shows_verdict = True
            self._status = _status.Status(
                self._display,
                self._progress,
                self.get_option("progress_seconds"),
                lambda text: texts.without_excerpt(text, lambda path: PLAYBOOKS in Path(path).resolve().parents),
            )
            self._status.start()
            atexit.register(self._at_exit)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        before, self._play = self._play, play
        if self._full:
            super().v2_playbook_on_play_start(play)
            return
        with self._status.lock:
            self._waiting.forget()
            self._tell_messages()
            if before is not None and before._uuid == play._uuid:
                return
            phase = self._phase_of(play)
            if phase != self._phase or not phase:
                self._close()
            self._phase = phase
            name = sanitize.one_line(play.get_name())
            self._header = "" if phase else f"PLAY {name}".rstrip()
            self._in_order = not play.serial and str(play.strategy).rpartition(".")[2] in ("linear", "debug")
            self._asks = str(play.strategy).rpartition(".")[2] == "debug"

    def v2_playbook_on_vars_prompt(self, *arguments: Any, **keywords: Any) -> None:
        super().v2_playbook_on_vars_prompt(*arguments, **keywords)
        if not self._full:
            self._asks = True
            self._status.clear()

    def v2_playbook_on_no_hosts_matched(self) -> None:
        if self._full:
            super().v2_playbook_on_no_hosts_matched()
        elif not self._phase:
            self._head()
            self._say("  no hosts matched", C.COLOR_SKIP)

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        if self._full:
            super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_include(self, included_file: Any) -> None:
        if self._full:
            super().v2_playbook_on_include(included_file)

    def _task_start(self, task: Any, prefix: Any = None) -> None:
        # Ansible's callback calls it for tasks, handlers and, before 2.17, tasks that clean up.
        super()._task_start(task, prefix=prefix)
        if not self._full:
            with self._status.lock:
                self._tell_messages()
                self._head()
                self._unit(task)
                self._waiting.task(task._uuid, self._where(task))
                self._asks = task.action in ASKING or bool(getattr(task, "debugger", None)) or C.ENABLE_TASK_DEBUGGER

    def _print_task_banner(self, task: Any) -> None:
        if self._full:
            super()._print_task_banner(task)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        if self._full:
            super().v2_runner_on_start(host, task)
            return
        with self._status.lock:
            self._waiting.began(task._uuid, host.get_name(), time.monotonic())

    def v2_runner_retry(self, result: Any) -> None:
        if self._full:
            super().v2_runner_retry(result)
            return
        host, _task, data = parts(result)
        with self._status.lock:
            left = data.get("retries", 0) - data.get("attempts", 0)
            self._waiting.again(host, f"failed, attempts left: {left}")

    def v2_runner_on_ok(self, result: Any) -> None:
        if self._full:
            _host, task, data = parts(result)
            if task.action == f"{COLLECTION}check":
                self._report_file = str(data.get("report_file") or self._report_file)
            super().v2_runner_on_ok(result)
            return
        with self._status.lock:
            host, task, data, unit = self._ended(result)
            if isinstance(task, TaskInclude) or task.action in VALIDATING:
                return
            unit.ran.add(host)
            if data.get("changed"):
                unit.changes[host] = unit.changes.get(host, 0) + 1
            self._verdict(task, data)
            if not (task.loop and "results" in data):
                self._message(host, task, data)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        if self._full:
            super().v2_runner_item_on_ok(result)
            return
        with self._status.lock:
            host, task, data = parts(result)
            self._warn(result, data)
            self._message(host, task, data)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        # The result of the whole loop has it too.
        if self._full:
            super().v2_runner_item_on_failed(result)
        else:
            self._warn(result, parts(result)[2])

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        if self._full:
            super().v2_runner_item_on_skipped(result)
        else:
            self._warn(result, parts(result)[2])

    def v2_runner_on_skipped(self, result: Any) -> None:
        if self._full:
            super().v2_runner_on_skipped(result)
            return
        with self._status.lock:
            host, _task, _data, unit = self._ended(result)
            unit.skipped.add(host)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if self._full:
            super().v2_runner_on_failed(result, ignore_errors=ignore_errors)
            return
        with self._status.lock:
            host, task, data, unit = self._ended(result)
            unit.ran.add(host)
            self._verdict(task, data)
            what = "ignored" if ignore_errors else "rescued" if is_rescued(task) else FAILED
            if ignore_errors and data.get("changed"):
                unit.changes[host] = unit.changes.get(host, 0) + 1
            self._failed(what, host, task, texts.failure(data), unit.failed, result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        if self._full:
            super().v2_runner_on_unreachable(result)
            return
        with self._status.lock:
            host, task, data, unit = self._ended(result)
            unit.ran.add(host)
            what = "ignored" if task.ignore_unreachable else UNREACHABLE
            self._failed(what, host, task, texts.failure(data), unit.unreachable, result)

    def v2_runner_on_async_poll(self, result: Any) -> None:
        if self._full:
            super().v2_runner_on_async_poll(result)

    def v2_runner_on_async_ok(self, result: Any) -> None:
        if self._full:
            super().v2_runner_on_async_ok(result)

    def v2_runner_on_async_failed(self, result: Any) -> None:
        if self._full:
            super().v2_runner_on_async_failed(result)

    def v2_on_file_diff(self, result: Any) -> None:
        if self._full:
            super().v2_on_file_diff(result)
            return
        with self._status.lock:
            host, task, data = parts(result)
            loop = data.get("results") if task.loop else None
            for one in loop if isinstance(loop, list) else [data]:
                if isinstance(one, dict) and one.get("diff") and one.get("changed") and not texts.is_hidden(data):
                    diff = self._get_diff(sanitize.from_node({"diff": one["diff"]})["diff"])
                    self._note(host, task, diff.strip("\n"))

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if self._full:
            super().v2_playbook_on_stats(stats)
            if self._report_file:
                self._say(f"report: {sanitize.one_line(self._report_file)}")
            return
        with self._status.lock:
            self._waiting.forget()
            self._tell_messages()
            self._close()
            self._tell_problems()
            self._tell_custom(stats)
            self._recap(stats)
            self._tell_verdict()

    def _at_exit(self) -> None:
        """Tell what a run has found that ended early: Ctrl-C, or a play that could not begin."""
        self._status.stop()
        if not self._waiting.is_idle:
            self._say(f"stopped at {self._waiting.text(time.monotonic())}", C.COLOR_ERROR)
        self._waiting.forget()
        self._tell_messages()
        self._close()
        self._tell_problems()
        self._tell_verdict()

    # What happened.

    def _ended(self, result: Any) -> tuple[str, Any, Any, Unit]:
        host, task, data = parts(result)
        unit = self._unit(task)
        unit.ended = time.monotonic()
        self._waiting.ended(task._uuid, host)
        if self._waiting.is_idle:
            # Whoever asks a person next does not display it, and the line would be erased with the question.
            self._status.clear()
        if task.delegate_to is None and not task.run_once:
            self._answered.add(host)
        self._warn(result, data)
        return host, task, data, unit

    def _warn(self, result: Any, data: Any) -> None:
        """Leave warnings and deprecations to Ansible, with the text of hosts made clean."""
        found = {key: data[key] for key in ("warnings", "deprecations") if data.get(key)}
        if not found:
            return
        if hasattr(result, "result"):
            own = {key: result._return_data.get(key) for key in found}
            result._return_data.update(sanitize.from_node(own))
        else:
            data.update(sanitize.from_node(found))
        self._handle_warnings(data)

    def _failed(self, what: str, host: str, task: Any, text: str, hosts: set[str], result: Any) -> None:
        where = self._where(task, name=str(getattr(result, "task_name", "") or ""))
        if task.delegate_to and task.delegate_to != host:
            where = f"{where} (on {sanitize.one_line(task.delegate_to)})"
        if what not in (FAILED, UNREACHABLE):
            if self._is_ours(task):
                # A later task says what came of it.
                return
            self._ignored += what == "ignored"
            line = text.splitlines()[0] if text else ""
            self._excused.append(grouping.Told(host, "", f"{what}: {where}: {line}"))
            return
        about = "" if task.run_once and what == FAILED else host
        hosts.add(about)
        self._failed_for_all = self._failed_for_all or not about
        if not self._is_of_verdict(host, text):
            self._problems.append(grouping.Told(about, f"{what.upper()} {where}", text))

    def _is_of_verdict(self, host: str, text: str) -> bool:
        """Whether the findings of the check say it."""
        said = self._verdicts[-1] if self._verdicts else {}
        return text in (said.get("culprits", {}).get(host), said.get("headline"))

    def _verdict(self, task: Any, data: Any) -> None:
        if task.action == f"{COLLECTION}check" and data.get("verdict") and isinstance(data.get("report"), dict):
            self._tell_verdict()
            self._verdicts.append(data)

    def _message(self, host: str, task: Any, data: Any) -> None:
        """What a task prints by itself, such as debug."""
        if data.get("_ansible_verbose_always") is not True or data.get("_ansible_verbose_override"):
            return
        shown = dict(data)
        self._clean_results(shown, task.action)
        text = texts.message(shown, lambda one: textwrap.dedent(self._dump_results(one)))
        if text != NO_MESSAGE and not (self._verdicts and text == self._verdicts[-1].get("headline")):
            self._note(host, task, text)

    def _note(self, host: str, task: Any, text: str) -> None:
        unit = self._unit(task)
        about = "" if task.run_once or host == "localhost" else host
        if self._phase and self._role(task) and "\n" not in text:
            unit.notes.append(grouping.Told(about, "", text))
        else:
            if self._phase and not self._role(task):
                self._close(but=self._phase)
            self._messages.append(grouping.Told(about, "", text))

    # Lines.

    def _say(self, line: str, color: Any = None, stderr: bool = False) -> None:
        self._display.display(line, color=color, stderr=stderr)

    def _head(self) -> None:
        if self._header:
            self._say(self._header)
        self._header = ""

    def _tell_messages(self) -> None:
        groups = [*grouping.grouped(self._messages), *grouping.grouped(self._excused, alike=True)]
        self._messages, self._excused = [], []
        if groups:
            self._head()
        margin = "" if self._phase else "  "
        for group in groups:
            for line in grouping.lines(group, texts.hosts(group.hosts)):
                self._say(f"{margin}{line}")

    def _close(self, but: str = "") -> None:
        """Print the lines of what is over."""
        for title in [title for title in self._units if title != but]:
            unit = self._units.pop(title)
            hidden = unit.state == OK and not unit.notes and not self.get_option("display_ok_hosts")
            if not unit.ran and not unit.notes and not self.get_option("display_skipped_hosts"):
                hidden = True
            if hidden or not (unit.ran or unit.skipped) or self._is_quiet(unit):
                continue
            self._told.add(title)
            self._head()
            for line in unit.lines(bool(context.CLIARGS.get("check"))):
                self._say(line, COLORS[unit.state] if unit.ran else C.COLOR_SKIP)

    def _is_quiet(self, unit: Unit) -> bool:
        """Our own tasks beside the roles, and what every phase checks again: told when there is something to tell."""
        if not self._phase or unit.state != OK:
            return False
        if unit.title == FIRST_PHASE:
            return FIRST_PHASE in self._told
        return unit.title == self._phase

    def _tell_problems(self) -> None:
        problems, self._problems = self._problems, []
        if problems:
            stderr = bool(self.get_option("display_failed_stderr"))
            number = len(grouping.grouped(problems, alike=True))
            self._say(f"\n{texts.count(number, 'problem')}:", C.COLOR_ERROR, stderr)
            for line in grouping.table(problems):
                self._say(line, C.COLOR_ERROR, stderr)

    def _tell_verdict(self) -> None:
        for said in self._verdicts:
            report = said["report"]
            for line in console.brief(report, with_notes=not said.get("report_file")):
                self._say(line)
            headline = sanitize.sentence(said.get("headline", ""))
            if said.get("report_file") and report["notes"]:
                headline += f" ({texts.count(len(report['notes']), 'note')} in the report)"
            self._say(headline, C.COLOR_OK if said["verdict"] == "PASSED" else C.COLOR_ERROR)
            if said.get("report_file"):
                self._say(f"report: {sanitize.one_line(said['report_file'])}")
        self._verdicts = []

    def _tell_custom(self, stats: Any) -> None:
        if stats.custom and self.get_option("show_custom_stats"):
            for name in sorted(stats.custom):
                said = textwrap.dedent(self._dump_results(stats.custom[name])).strip("\n")
                title = "stats of the run" if name == "_run" else f"stats of {name}"
                for line in grouping.lines(grouping.Group([], "", sanitize.clean(said)), sanitize.one_line(title)):
                    self._say(line)

    def _recap(self, stats: Any) -> None:
        names = set(stats.processed)
        members = names - {"localhost"} or names
        failed, lost = set(stats.failures), set(stats.dark)
        changed = {host for host in stats.changed if stats.changed[host]}
        number = sum(stats.changed.values())
        check_mode = bool(context.CLIARGS.get("check"))
        good = [] if failed | lost else ["all ok" if len(members) > 1 else "ok"]
        bad = (
            [f"FAILED: {texts.hosts(failed)}"] if failed and not self._failed_for_all else ["FAILED"] if failed else []
        )
        bad += [f"UNREACHABLE: {texts.hosts(lost)}"] if lost else []
        rest = members - failed - lost
        bad += [f"ok: {texts.hosts(rest)}"] if bad and rest and not self._failed_for_all else []
        told = texts.count(number, "change") + (f" on {texts.hosts(changed)}" if number else "")
        told += " predicted (check mode)" if check_mode else ""
        more = [f"{texts.count(self._ignored, 'error')} ignored"] if self._ignored else []
        seconds = texts.duration(time.monotonic() - self._began)
        state = FAILED if failed else UNREACHABLE if lost else CHANGED if number else OK
        line = f"{texts.count(len(members), 'host')}: {'; '.join([*good, *bad, told, *more, seconds])}"
        self._say(f"\n{line}" if bad else line, COLORS[state])

    # Where it happened.

    @staticmethod
    def _phase_of(play: Any) -> str:
        path = Path(str(play.get_path()).rpartition(":")[0])
        if not path.name or path.resolve().parent != PLAYBOOKS:
            return ""
        return FIRST_PHASE if path.stem == INVENTORY else path.stem

    @staticmethod
    def _role(task: Any) -> str:
        """The role that the play has called, and not one that this role includes."""
        name, parent = "", task
        while parent is not None:
            role = getattr(parent, "_role", None)
            name = role.get_name() if role is not None else name
            parent = getattr(parent, "_parent", None)
        return sanitize.one_line(name).removeprefix(COLLECTION)

    def _is_ours(self, task: Any) -> bool:
        role = getattr(task, "_role", None)
        return bool(self._phase) or (role is not None and str(role.get_name()).startswith(COLLECTION))

    def _unit(self, task: Any) -> Unit:
        title = self._titles.get(task._uuid)
        if title is None:
            title = self._titles[task._uuid] = self._title(self._role(task))
        unit = self._units.get(title)
        if unit is None:
            if self._in_order and title != self._phase:
                self._close(but=self._phase)
            unit = self._units[title] = Unit(title, time.monotonic())
        return unit

    def _title(self, role: str) -> str:
        if not self._phase:
            return f"  {role or 'tasks'}"
        return self._phase if role in ("", HELPER, self._phase) else f"{self._phase}: {role}"

    def _where(self, task: Any, name: str = "") -> str:
        role = self._role(task)
        own = sanitize.one_line(name or task.name or task.action)
        return ": ".join(part for part in (self._title(role).strip() if self._phase or role else "", own) if part)

    def _progress(self) -> tuple[str, bool]:
        """What is waited for.  Nothing is written over before a host has answered: its ssh may ask for a password."""
        if self._asks:
            return "", False
        if self._waiting.is_idle:
            # A person may be asked whether to run the next task.
            text = "" if context.CLIARGS.get("step") else self._waiting.between()
            return sanitize.one_line(text), False
        return sanitize.one_line(self._waiting.text(time.monotonic())), self._waiting.hosts <= self._answered


def is_rescued(task: Any) -> bool:
    """Whether the failure of the task leads into a rescue."""
    child, parent = task, getattr(task, "_parent", None)
    while parent is not None:
        if isinstance(parent, Block) and parent.rescue and child._uuid in _uuids(parent.block):
            return True
        child, parent = parent, getattr(parent, "_parent", None)
    return False


def _uuids(tasks: Iterable[Any]) -> set[str]:
    return {one._uuid for one in tasks}
