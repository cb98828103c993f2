# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on nodes that are programs of this machine, behind an ssh that runs everything here."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[6]
FAKE_NODE = PROJECT / "tests/unit/roles/cluster_check/fake_node.py"
MAIN = "ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.main"
#: The host is the word after --, and the command the last one.
SSH = """\
#!/bin/sh
echo "$@" >> {folder}/ssh.log
while [ $# -gt 2 ]; do shift; done
HOST_OF_TEST="$1"; export HOST_OF_TEST
exec sh -c "$2"
"""
#: This machine has no name from ssh.
PYTHON = """\
#!/bin/sh
exec {words} "${{HOST_OF_TEST:-n1}}" "$@"
"""


def healthy() -> dict[str, Any]:
    """Host to what it says of itself, as the tests of the engine have it."""
    spec = importlib.util.spec_from_file_location("sample", Path(__file__).parents[1] / "engine/conftest.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.Sample().static)


class Site:
    """folder: of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.faults: dict[str, dict[str, Any]] = {}
        self.python = folder / "python"
        self.code, self.out, self.err = -1, "", ""
        for host, said in healthy().items():
            (folder / f"static-{host}.json").write_text(json.dumps(said))
        words = shlex.join([sys.executable, str(FAKE_NODE), str(folder)])
        for name, text in (("ssh", SSH.format(folder=folder)), ("python", PYTHON.format(words=words))):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def start(self, *options: str) -> subprocess.Popen[str]:
        (self.folder / "faults.json").write_text(json.dumps(self.faults))
        (self.folder / "asked.jsonl").write_text("")
        (self.folder / "tmp").mkdir(exist_ok=True)
        return subprocess.Popen(
            [sys.executable, "-c", f"import sys; from {MAIN} import main; sys.exit(main(sys.argv[1:], '0'))", *options],
            env={
                **{name: value for name, value in os.environ.items() if name not in ("CI", "HOST_OF_TEST")},
                "PYTHONPATH": str(PROJECT / ".ansible/collections"),
                "PATH": f"{self.folder}:{os.environ['PATH']}",
                "TMPDIR": str(self.folder / "tmp"),
            },
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str) -> int:
        return self.end(self.start(*options))

    def end(self, process: subprocess.Popen[str]) -> int:
        self.out, self.err = process.communicate(timeout=120)
        self.code = process.returncode
        return self.code

    def options(self, *more: str) -> list[str]:
        """A check of three nodes."""
        return ["check", "--hosts", "n[1-3]", "--interface", "fab0", "--python", str(self.python), *more]

    def check(self, *more: str) -> int:
        return self.run(*self.options(*more))

    def interrupted(self, step: str, number: signal.Signals = signal.SIGINT) -> int:
        """The exit code of a check to which a signal comes in the middle of a step."""
        process = self.start(*self.options("--set", "progress=always"))
        self.wait_for(step)
        process.send_signal(number)
        return self.end(process)

    def wait_for(self, step: str) -> None:
        """Until a node is asked for it."""
        for _attempt in range(600):
            if any(one["step"] == step for one in self.asked):
                break
            time.sleep(0.1)

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What the nodes were asked, without lines that are being written."""
        lines = (self.folder / "asked.jsonl").read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def steps(self, host: str) -> list[str]:
        return [one["step"] for one in self.asked if one["host"] == host]

    @property
    def called(self) -> list[str]:
        """The arguments of ssh."""
        path = self.folder / "ssh.log"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)
