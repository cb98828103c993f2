# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command explain: why a job failed, by its logs."""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import codes, hosts, output, why
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import explain, job_logs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.explain import Cluster, Explanation
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import (
    UNLIMITED,
    Known,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.names import (
    is_address,
    spelled,
    without_domain,
)

NAME = "explain"
PROGRAM = "gpu-cluster-explain"
ABOUT = "say why a job failed, by its logs: the cause, the node, and the repair"
EXAMPLES = """\
examples:
  gpu-cluster-check.pyz explain ~/gpu-cluster-logs/20260301-101500-3fa9c2
  gpu-cluster-check.pyz explain slurm-1234.out --hosts gpu01=192.0.2.11,gpu02=192.0.2.12
  mpirun ... 2>&1 | gpu-cluster-check.pyz explain -
"""
#: Exit codes of this command: sysexits.h has EX_USAGE.
EXPLAINED, NOTHING_KNOWN, USAGE = 0, 1, 64
#: What role launcher writes on every member.
CLUSTER_FILE = "/etc/gpu-cluster/cluster.json"
#: A person reads so many lines of all causes; --json has them all.
MOST_LINES = 8
#: Files of a folder, and bytes of a file: more is no log of a job.  Of a longer file the end is read.
MOST_FILES = 20_000
MOST_BYTES = 256 << 20
STANDARD_INPUT = "-"
#: Files of PyTorch's flight recorder, which are no text, stand beside the logs.
RECORDS = "flight-recorder-rank"
#: Where gpu-cluster-run keeps the logs of a user's jobs.
LOGS = "~/gpu-cluster-logs"

ERR_NO_LOG = "no LOG is given, and %s cannot be used: %s; see --help"
ERR_READ = "%s cannot be read: %s"
ERR_EMPTY = "%s holds no file with text"
ERR_MANY = f"%s holds more than {MOST_FILES} files"
NOTHING = "no line of these logs is a text that is known; see the first error of each process"
NO_ERROR = "no line of these logs looks like an error"


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "logs",
        metavar="LOG",
        nargs="*",
        help="file or folder of logs, or - for standard input (default: the newest job below ~/gpu-cluster-logs)",
    )
    parser.add_argument("--hosts", metavar="LIST", action="append", default=[], help="members, as NAME=ADDRESS,...")
    parser.add_argument("--address-file", metavar="FILE", help="members, one NAME ADDRESS per line")


def run(args: argparse.Namespace) -> int:
    """Explain, print, and return the exit code."""
    members = _members(args)
    read = list(_files(args.logs or [_newest()], set(members.values())))
    known = Known(members=members)
    found = explain.explain(job_logs.processes(read, set(members.values())), Cluster(known, _own_limits(read)))
    if args.json:
        output.result(json.dumps([_as_dict(one) for one in found], indent=1) + "\n")
    else:
        output.result(text(found))
    return EXPLAINED if any(one.cause != explain.UNKNOWN for one in found) else NOTHING_KNOWN


def text(found: Sequence[Explanation]) -> str:
    """For a person: the first cause with its evidence and its repair, and one line for each further one."""
    errors = [one for one in found if one.severity == "error"] or list(found)
    if not errors:
        return f"{NO_ERROR}\n"
    first, *more = errors
    where = f"{first.file}:{first.line}" if first.file != STANDARD_INPUT else f"line {first.line}"
    lines = [f"{first.cause}: {_short(first.title)}", f"  seen: {where}: {_short(first.text)}", f"  fix: {first.fix}"]
    lines += [f"  run: {first.command}"] if first.command else []
    lines += [f"  look: {first.look}"] if first.look else []
    lines += [f"  more: docs/findings/{first.finding}.md"] if first.finding else [f"  {NOTHING}"]
    room = MOST_LINES - len(lines)
    lines += [f"also {one.cause}: {_short(one.title)}" for one in more[: room - (len(more) > room)]]
    lines += [f"and {len(more) - room + 1} more; --json lists all"] if len(more) > room else []
    return "\n".join(lines) + "\n"


def _short(text_of: str) -> str:
    return text_of if len(text_of) <= 200 else text_of[:197] + "..."


def _as_dict(one: Explanation) -> dict[str, object]:
    found = asdict(one)
    command = " ".join(filter(None, (found.pop("command"), found.pop("look"))))
    return {**found, "fix": f"{one.fix}: {command}" if command else one.fix}


def _members(args: argparse.Namespace) -> dict[str, str]:
    """Address to name of the members: what was given, else those of the machine's own cluster."""
    given, problems = hosts.read(args.hosts)
    addresses = given.addresses
    if args.address_file:
        found, wrong = hosts.read_file(args.address_file, _text(args.address_file))
        addresses, problems = {**addresses, **found}, problems + wrong
    if problems:
        raise codes.UsageError(problems)
    if not addresses and os.path.exists(CLUSTER_FILE):
        try:
            addresses = {one["name"]: one["address"] for one in json.loads(_text(CLUSTER_FILE))["members"]}
        except (ValueError, LookupError, TypeError):
            raise codes.UsageError([ERR_READ % (CLUSTER_FILE, "it is not what role launcher writes")]) from None
    return {spelled(address): name for name, address in addresses.items() if is_address(str(address))}


def _newest() -> str:
    """The folder of the last job of this user."""
    folder = os.path.expanduser(LOGS)
    try:
        jobs = [one.path for one in os.scandir(folder) if one.is_dir()]
    except OSError as error:
        raise codes.UsageError([ERR_NO_LOG % (LOGS, error.strerror)]) from None
    if not jobs:
        raise codes.UsageError([ERR_NO_LOG % (LOGS, "it holds no job")])
    return max(jobs, key=lambda one: os.stat(one).st_mtime)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(MOST_BYTES)
    except OSError as error:
        raise codes.UsageError([ERR_READ % (path, error.strerror)]) from None


def _files(paths: Sequence[str], members: set[str]) -> Iterator[tuple[str, job_logs.Origin, Iterable[str]]]:
    """Name, origin and lines of every log."""
    for path in paths:
        names = _below(path) if os.path.isdir(path) else [path]
        for name in names:
            origin = job_logs.of_file(os.path.basename(name), members) if name != STANDARD_INPUT else job_logs.Origin()
            yield name, origin, _lines(name)


def _below(folder: str) -> list[str]:
    found = sorted(
        os.path.join(where, name)
        for where, _folders, names in os.walk(folder)
        for name in names
        if not name.startswith(RECORDS)
    )
    if not found or len(found) > MOST_FILES:
        raise codes.UsageError([(ERR_MANY if found else ERR_EMPTY) % folder])
    return found


def _lines(path: str) -> Iterable[str]:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(MOST_BYTES).decode("utf-8", "replace").splitlines()
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - MOST_BYTES))
            return stream.read(MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise codes.UsageError([ERR_READ % (path, error.strerror)]) from None


def _own_limits(read: Sequence[tuple[str, job_logs.Origin, Iterable[str]]]) -> Mapping[str, Mapping[str, int]]:
    """The limits of this user, where this machine is a member: for the processes that ran here."""
    if not os.path.exists(CLUSTER_FILE):
        return {}
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    limits = {"memlock": UNLIMITED if soft == resource.RLIM_INFINITY else soft}
    name = socket.gethostname()
    alone = {origin.host for _file, origin, _lines_of in read} == {""}
    return dict.fromkeys((name, without_domain(name), *([""] if alone else [])), limits)


def main(arguments: Sequence[str]) -> int:
    """The command alone, as the program gpu-cluster-explain.  Returns its exit code."""
    if arguments and arguments[0] in why.COMMANDS:
        return why.main(arguments)
    parser = argparse.ArgumentParser(prog=PROGRAM, description=ABOUT, allow_abbrev=False)
    add(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    try:
        return run(parser.parse_args(arguments))
    except codes.UsageError as error:
        output.warn(error.problems, PROGRAM)
        return USAGE
    except SystemExit as ended:
        return EXPLAINED if ended.code in (None, 0) else USAGE


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
