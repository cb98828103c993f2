# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of a job: as the kernel has them, and as a process gets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    facts_resources,
    guardian,
    service,
    session,
)

TEXT = """Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max stack size            8388608              unlimited            bytes
Max processes             96365                96365                processes
Max open files            1024                 524288               files
Max locked memory         unlimited            unlimited            bytes
"""
PARSED = {
    "STACK": "8388608:infinity",
    "NPROC": "96365:96365",
    "NOFILE": "1024:524288",
    "MEMLOCK": "infinity:infinity",
}


def test_the_limits_that_limits_conf_can_set_are_read() -> None:
    assert session.parsed(TEXT) == PARSED
    every = session.parsed(Path("/proc/self/limits").read_text())
    assert set(every) == set(session.LIMITS.values()), "the kernel calls one of them by another name"


def test_they_are_those_of_a_session_of_the_user() -> None:
    asked = []

    def run(argv: list[str]) -> tuple[int, str, str]:
        asked.append(argv)
        missing = "nobody-here" in argv
        return (1, TEXT, "runuser: user nobody-here does not exist") if missing else (0, TEXT, "")

    assert session.limits(run, "train") == PARSED
    assert session.limits(run, "nobody-here") == {} and session.limits(run, "") == {}
    assert asked == [facts_resources.limits_command(user) for user in ("train", "nobody-here")]


def test_the_unit_gets_them() -> None:
    argv = service.Systemd.argv("run-1", "/run/there", service.Program(["true"], "train", 95, PARSED))
    assert {"--property=LimitNOFILE=1024:524288", "--property=LimitMEMLOCK=infinity:infinity"} <= set(argv)
    assert not any(
        "Limit" in one
        for one in service.Systemd.argv("run-1", "/run/there", service.Program(["true"], "train", 95, {}))
    )


def test_what_a_guardian_starts_gets_them() -> None:
    # The last one has its soft limit above the hard one, which nobody can have; it stops nothing.
    wanted = {"NOFILE": "77:99", "CORE": "0:0", "NPROC": "200:100"}
    script = (
        "import json, subprocess, sys\n"
        f"from {guardian.__name__.rpartition('.')[0]} import guardian\n"
        "guardian.limit(json.loads(sys.argv[1]))\n"
        "subprocess.run(['cat', '/proc/self/limits'], check=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(wanted)],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = session.parsed(done.stdout)
    assert found["NOFILE"] == "77:99" and found["CORE"] == "0:0"
