# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of gpu-cluster-explain about a job that hangs: ``why`` asks all nodes, and ``stacks`` is their answer.

``hang-help FOLDER`` writes what a rank loads so that it can be asked.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload, sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import hang_prelude, hang_stacks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import codes, output, torch_analyser
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import hang, hang_ranks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import hang_answer

PROGRAM = "gpu-cluster-run why"
ABOUT = "say where the ranks of a running job stand, and for which of them the others wait"
WHY, STACKS, HELP = "why", "stacks", "hang-help"
COMMANDS = (WHY, STACKS, HELP)
#: As ``explain`` has them.
EXPLAINED, NOTHING_KNOWN, USAGE = 0, 1, 64
CLUSTER_FILE = "/etc/gpu-cluster/cluster.json"
EXPLAINER = "/usr/local/bin/gpu-cluster-explain"
#: Seconds for a node, of which ssh gets some for its connection.
SECONDS, CONNECT = 25, 5
#: Nodes that are asked at once.
AT_ONCE = 32
MOST_LINES = 8
MOST_CHARACTERS = 200
JOB = re.compile(r"[\w.-]{1,100}")

ERR_CLUSTER = "%s is not what role launcher writes: run site.yml with --tags launcher"
ERR_JOB = "%r is no name of a job: `gpu-cluster-run` prints it when the job starts"
ERR_NODE = "--nodes: %r is no member, these are: %s"
ERR_NOT_RUNNING = "job %s has no rank on the nodes that answer%s"
ERR_NO_JOB = "no job of this user runs on the nodes that answer"
ERR_WHICH = "several jobs run, give one of them: %s"


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog=PROGRAM, description=ABOUT, allow_abbrev=False)
    found.add_argument("job", metavar="JOB", nargs="?", default="", help="the job (default: the only one that runs)")
    found.add_argument("--json", action="store_true", help="print JSON")
    found.add_argument("--nodes", metavar="A,B", help="ask these members alone (default: all)")
    found.add_argument("--ended", metavar="N,N", default="", help="ranks that have ended because they waited too long")
    return found


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code."""
    command, *rest = arguments
    if command == HELP:
        return write_help(rest)
    if command == STACKS:
        return print_stacks(rest)
    try:
        return why(parser().parse_args(rest))
    except codes.UsageError as error:
        output.warn(error.problems, PROGRAM)
        return USAGE
    except SystemExit as ended:
        return EXPLAINED if ended.code in (None, 0) else USAGE


def write_help(rest: Sequence[str]) -> int:
    """The file that ranks load, in a folder of this user."""
    folder = rest[0] if rest else ""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is no private folder")
    with open(os.path.join(folder, "sitecustomize.py"), "x", encoding="utf-8") as stream:
        stream.write(payload.source(hang_prelude))
    return EXPLAINED


def print_stacks(rest: Sequence[str]) -> int:
    sys.stdout.write(json.dumps(hang_stacks.look(rest[0] if rest else "")) + "\n")
    return EXPLAINED


def why(args: argparse.Namespace) -> int:
    """Ask the nodes, judge, print."""
    if args.job and not JOB.fullmatch(args.job):
        raise codes.UsageError([ERR_JOB % args.job])
    members, port, python = cluster(args.nodes)
    ended = [int(one) for one in args.ended.split(",") if one.isdecimal() and len(one) < 8]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        nodes = list(pool.map(lambda member: ask(member[0], member[1], port, args.job), members))
    answers = [node.answer for node in nodes if node.answer is not None]
    if not any(answer["ranks"] for answer in answers):
        jobs = sorted({sanitize.one_line(job) for answer in answers for job in answer["jobs"]})
        silent = [f"{node.name} ({sanitize.one_line(node.reason)})" for node in nodes if node.answer is None]
        without = f"; without an answer: {hang_ranks.listed(silent)}" if silent else ""
        if jobs and not args.job:
            raise codes.UsageError([ERR_WHICH % ", ".join(jobs[:20])])
        raise codes.UsageError([ERR_NOT_RUNNING % (args.job, without) if args.job else ERR_NO_JOB + without])
    found = hang.judge(nodes, ended)
    if found.suspects and not ended:  # A job that ends does not wait for a second opinion.
        found.notes.extend(torch_analyser.opinion(python, [one for answer in answers for one in answer["ranks"]]))
    if args.json:
        listed = [{**one._asdict(), "about": [one.host] if one.host else []} for one in found.suspects]
        output.result(json.dumps({"suspects": listed, "notes": found.notes}, indent=1) + "\n")
    else:
        output.result(text(found))
    known = any(one.cause != hang_ranks.UNKNOWN for one in found.suspects)
    return EXPLAINED if known else NOTHING_KNOWN


def text(found: hang.Verdict) -> str:
    """For a person, in at most eight lines."""
    lines = []
    if found.suspects:
        first, *more = found.suspects
        lines = [f"{first.cause}: {_short(first.title)}"]
        lines += [f"  seen: {_short(first.text)}"] if first.text else []
        lines += [f"  fix: {_short(first.fix)}"] if first.fix else []
        lines += [f"  run: {_short(first.command)}"] if first.command else []
        room = MOST_LINES - len(lines) - min(2, len(found.notes))
        lines += [f"also {one.cause}: {_short(one.title)}" for one in more[:room]]
    lines += [_short(one) for one in found.notes[: MOST_LINES - len(lines)]]
    return "\n".join(lines) + "\n"


def _short(line: str) -> str:
    return line if len(line) <= MOST_CHARACTERS else line[: MOST_CHARACTERS - 3] + "..."


def cluster(names: str | None) -> tuple[list[tuple[str, str]], int, str]:
    """Name and address of the members to ask, the port of ssh, and the Python that has torch."""
    try:
        with open(CLUSTER_FILE, encoding="utf-8") as stream:
            found = json.load(stream)
        members = {str(one["name"]): str(one["address"]) for one in found["members"]}
        port, python = int(found["ssh_port"]), str(found.get("python", ""))
    except (OSError, ValueError, LookupError, TypeError):
        raise codes.UsageError([ERR_CLUSTER % CLUSTER_FILE]) from None
    chosen = names.split(",") if names is not None else list(members)
    wrong = [ERR_NODE % (name, ", ".join(members)) for name in chosen if name not in members]
    if wrong:
        raise codes.UsageError(wrong)
    return [(name, members[name]) for name in chosen], port, python


def ask(name: str, address: str, port: int, job: str) -> hang_ranks.Node:
    """What a node answers.  This one needs no network for it."""
    if name in (socket.gethostname(), socket.gethostname().partition(".")[0]):
        command = [sys.executable, "-I", EXPLAINER, STACKS, job]
    else:
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": str(CONNECT),
            "ControlMaster": "no",
            "ControlPath": "none",
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "LogLevel": "ERROR",
        }
        settings = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        # A job has no sign that a shell would read.
        command = ["ssh", "-T", *settings, "-p", str(port), address, f"exec {EXPLAINER} {STACKS} {job}"]
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return hang_ranks.Node(name, address, None, f"no answer in {SECONDS} seconds")
    except OSError as error:
        return hang_ranks.Node(name, address, None, f"{command[0]} cannot be started: {error.strerror}")
    answer = answer_of(ended.stdout[-hang_answer.MOST_ANSWER :])
    if answer is not None:
        return hang_ranks.Node(name, address, answer)
    said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return hang_ranks.Node(name, address, None, said[-1] if said else f"exit code {ended.returncode} without a word")


def answer_of(said: bytes) -> dict[str, Any] | None:
    """The last line, if it is an answer: the user's shell may have printed others before."""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        return None
    return found if hang_answer.ANSWER(found) else None
