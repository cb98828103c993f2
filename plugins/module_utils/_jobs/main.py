# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpu-cluster-jobs: ps, nodes, stop and logs of gpu-cluster-run, and what members ask each other."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import (
    answers,
    here,
    listing,
    log_files,
    members,
    overview,
    processes,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.ask import SECONDS, ask
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.logs import logs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.stop import stop

PROGRAM = "gpu-cluster-run"
DONE, USAGE, NOT_ALL = 0, 64, 69
#: Lines of each log that ``logs`` shows by itself.
LINES = 50
MOST_NUMBER = 1_000_000

ERR_JOB = "%r is no job; `gpu-cluster-run ps` lists them, such as 20260301-101500-3fa9c2"
ERR_NUMBER = f"%s: give 0 to {MOST_NUMBER}"


class Parser(argparse.ArgumentParser):
    """Ends with the code of gpu-cluster-run for bad input."""

    def error(self, message: str) -> Any:
        self.print_usage(sys.stderr)
        raise members.BadInputError([message])


def make_parser() -> Parser:
    parser = Parser(prog=PROGRAM, allow_abbrev=False, description="Who runs what where, without a scheduler.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, about: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        made.add_argument("--hosts", "--nodes", metavar="A,B", help="ask these members alone, also gpu[01-12]")
        return made

    for name, about in (("ps", "list the jobs on all members"), ("nodes", "list the members and who uses them")):
        command(name, about).add_argument("--json", action="store_true", help="print JSON")
    command("stop", "end a job, from any member").add_argument("job", metavar="JOB")
    shown = command("logs", "show what the ranks of a job have printed")
    shown.add_argument("job", metavar="JOB")
    shown.add_argument("--rank", type=int, metavar="N", help="of this rank alone")
    shown.add_argument(
        "--lines", type=int, default=LINES, metavar="N", help=f"the last N of each log ({LINES}), 0: all"
    )
    shown.add_argument("--follow", action="store_true", help="go on until the job has ended")
    return parser


def run(arguments: Sequence[str]) -> int:
    """A command of a person."""
    options = make_parser().parse_args(arguments)
    cluster = members.read()
    chosen = members.chosen(cluster, options.hosts)
    if options.command in ("stop", "logs") and not processes.JOB.fullmatch(options.job):
        raise members.BadInputError([ERR_JOB % options.job])
    if options.command == "stop":
        return stop(options.job, here.user_of(os.getuid()), chosen, cluster.port, say)
    if options.command == "logs":
        numbers = {"--rank": options.rank or 0, "--lines": options.lines}
        wrong = [ERR_NUMBER % name for name, value in numbers.items() if not 0 <= value <= MOST_NUMBER]
        if wrong:
            raise members.BadInputError(wrong)
        return logs(options.job, options.rank, options.lines, options.follow, chosen, cluster.port, write, say)
    words = ["here", "look", *(["--gpus"] if options.command == "nodes" else [])]
    found = ask(chosen, cluster.port, words, answers.LOOK, SECONDS)
    if options.json:
        write(json.dumps((listing if options.command == "ps" else overview).as_dict(found), indent=1) + "\n")
    else:
        write(listing.text(found, time.time()) if options.command == "ps" else overview.text(found))
    return DONE if all(one.found for one in found) else NOT_ALL


def at_home(arguments: Sequence[str]) -> int:
    """A command of another member, or of the agent of a job: one line of JSON about this node."""
    command, *words = arguments
    commands: dict[str, Callable[..., Any]] = {
        "look": lambda *given: here.look("--gpus" in given),
        "busy": here.busy,
        "end": lambda job, seconds: here.end(job, float(seconds)),
        "clean": lambda job, grace: here.clean(job, float(grace)),
        "logged": lambda job, node, rank: {"logs": len(log_files.names(log_files.folder_of(job), node, _rank(rank)))},
        "log": _log,
    }
    answer = commands[command](*words)
    if answer is not None:
        write(json.dumps(answer) + "\n")
    return DONE


def _rank(text: str) -> int | None:
    return None if text == "-" else int(text)


def _log(job: str, node: str, rank: str, lines: str, how: str) -> None:
    agents: list[int] = []

    def running() -> bool:
        if not any(os.path.exists(f"/proc/{pid}") for pid in agents):
            agents[:] = [pid for one in processes.jobs(processes.read()) if one.job == job for pid in one.agents]
        return bool(agents)

    log_files.show(
        job, node, _rank(rank), int(lines), how == "follow", running=running, write=lambda line: write(f"{line}\n")
    )


def write(text: str) -> None:
    """The result; what this terminal can't show is spelled."""
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
    sys.stdout.flush()


def say(text: str) -> None:
    """For a person, beside the result."""
    sys.stderr.write(f"{PROGRAM}: {sanitize.sentence(text)}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code."""
    try:
        return at_home(arguments[1:]) if arguments[:1] == ["here"] else run(arguments)
    except members.BadInputError as error:
        for problem in error.problems:
            say(problem)
        return USAGE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    # `gpu-cluster-run ps | head` is no error.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    raise SystemExit(main(sys.argv[1:]))
