# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in the place of its Python: it answers the programs of a check as a healthy node does, or as it was told to.

    fake_node.py FOLDER HOST [arguments of a Python]

FOLDER holds ``faults.json``: host to step to what it does there, ``{"answer": {...}}``, ``{"more": {...}}``, which is
added to its answer, ``{"sleep": seconds}``, ``{"exit": code}`` or ``{"kill": true}``, which ends the controller.  What
it was asked is added to ``asked.jsonl``, one line each.  ``static-HOST.json`` is what it reads of itself.  A module is
run by a real Python.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

SIZE = {"size_bytes": 4096, "seconds": [0.01, 0.02, 0.03], "checked": 5, "settled": True, "wrong": None}
FINE = [
    {"event": "ready", "at": 0.5, "torch": "2.13.0+cpu", "code": [], "seconds": 0.5},
    {"event": "store", "at": 0.6},
    {"event": "joined", "at": 0.7},
    {"event": "size", "at": 0.8, **SIZE},
    {"event": "done", "at": 0.9},
]
#: What mpirun gave on nodes of the same names.
MPI = Path(__file__).parents[2] / "plugins/module_utils/_check/engine/recorded_mpi.json"
PROGRAMS = {
    "addresses_step": "addresses",
    "facts_step": "static",
    "begin": "launch",
    "mpi_step": "mpi",
    "step": "facts",
}


def asked(argv: list[str]) -> tuple[str, dict[str, Any]]:
    """The program and its arguments; no program for what is no step."""
    if "-c" in argv:
        head = json.loads(sys.stdin.buffer.readline())
        sys.stdin.buffer.read()
        return next(name for end, name in PROGRAMS.items() if head["program"].endswith(f".{end}")), head["arguments"]
    if "-m" in argv:
        name, text = argv[-2:]
        return name, json.loads(sys.stdin.read() if text == "-" else text)
    return "", {}


def step_of(program: str, given: dict[str, Any]) -> str:
    """As the coordinator calls it."""
    if program == "probe" and given["wait"] is False:
        return "probe_begin"
    if program == "mpi":
        return "openmpi_clear" if given["clear"] else "openmpi"
    return f"pair_{program}" if "-p" in given.get("run_id", "") else program


def answer(folder: str, host: str, program: str, given: dict[str, Any]) -> dict[str, Any]:
    if program == "addresses":
        return {"interfaces": {"fab0": [f"192.0.2.{host[1:]}/24"], "eth0": ["198.51.100.9/24"]}}
    if program == "static":
        known = Path(folder, f"static-{host}.json")
        found = json.loads(known.read_text()) if known.exists() else {}
        return {"static": {**found, "epoch": time.time(), "seconds": 0.0}}
    if program == "launch":
        return {
            "state": "waiting",
            "hostname": host,
            "address": given["address"],
            "kernel": "5.14.0",
            "ports": [{"range": "rendezvous", "port": 29500}],
            "rails": [],
            "taken": [],
            "ranges": [],
            "other_runs": [],
            "stopped_runs": [],
            "ephemeral_range": [32768, 60999],
            "openmpi": {"prefix": "/opt/openmpi", "python": given["torch_python"], "mpirun": True, "key": True},
        }
    if program == "probe":
        if given["wait"] is False:
            Path(folder, f"book-{host}").write_text(json.dumps([one["host"] for one in given["book"]]))
            return {"started": True}
        book = json.loads(Path(folder, f"book-{host}").read_text())
        link = {"probes": 1, "milliseconds": 0.1, "bytes_per_second": 10**9, "retransmits": 0}
        lists: dict[str, list[Any]] = {name: [] for name in ("failures", "blocked", "searched", "unheard")}
        return {"started": True, "links": [{"host": one, **link, **lists} for one in book if one != host], "rails": []}
    if program == "go":
        return {"started": True}
    if program == "collect":
        rank = {"local_rank": 0, "events": FINE, "exit_code": 0, "process_state": "", "stderr_tail": ""}
        ports = [{"range": "rendezvous", "port": 29500}]
        return {
            "state": "finished",
            "run_id": given["run_id"],
            "hostname": host,
            "ranks": [rank],
            "ports": ports,
            "rails": [],
            "taken": [],
        }
    if program == "mpi":
        return {"ended": []} if given["clear"] else json.loads(MPI.read_text())["4.1.4 healthy"]
    return {"ansible_facts": {"gpu_node": {}}}


def controller(pid: int) -> int:
    """The first process of ansible-playbook, above this one."""
    above = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    found = controller(above) if above > 1 else 0
    return found or (pid if b"ansible-playbook" in Path(f"/proc/{pid}/cmdline").read_bytes() else 0)


def main() -> None:
    folder, host, *argv = sys.argv[1:]
    program, given = asked(argv)
    if not program:
        os.execv(sys.executable, [sys.executable, *argv])
    step = step_of(program, given)
    with open(Path(folder, "asked.jsonl"), "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"host": host, "step": step, "given": given}) + "\n")
    fault = json.loads(Path(folder, "faults.json").read_text()).get(host, {}).get(step, {})
    time.sleep(fault.get("sleep", 0))
    if fault.get("kill"):
        os.kill(controller(os.getpid()), signal.SIGKILL)
    if "exit" in fault:
        sys.stderr.write(f"ssh: connect to host {host} port 22: Connection timed out\n")
        sys.exit(fault["exit"])
    made = fault.get("answer") or answer(folder, host, program, given)
    print(json.dumps({"changed": False, **made, **fault.get("more", {})}))


if __name__ == "__main__":
    main()
