# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is printed where: results, warnings, progress."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import output, progress

COLLECTIONS = Path(__file__).parents[6] / ".ansible/collections"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, wanted: str, stream: io.StringIO) -> str:
    """What a step of two hosts writes."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "12")
    monkeypatch.setattr(sys, "stderr", stream)
    line = progress.Progress(wanted)
    line.step("Ask all", 2)
    line.count(1)
    line.erase()
    return stream.getvalue()


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    erase = "\r\x1b[K"
    # One column is left for the cursor.
    assert shown(monkeypatch, "auto", Terminal()) == f"{erase}Ask all: 0/{erase}Ask all: 1/{erase}"
    assert shown(monkeypatch, "auto", io.StringIO()) == "" and shown(monkeypatch, "never", Terminal()) == ""
    assert shown(monkeypatch, "always", Terminal()) == "Ask all: 2 host(s)\n"
    monkeypatch.setenv("CI", "true")
    assert shown(monkeypatch, "auto", Terminal()) == ""


def test_a_terminal_that_knows_only_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    output.result("a\ufffdb\n")
    assert stream.buffer.getvalue() == b"a\\ufffdb\n"


def test_a_reader_that_has_gone() -> None:
    read, write = os.pipe()
    os.close(read)
    script = f"import sys; from {output.__name__} import result; result('x' * 100000); sys.exit(1)"
    environment = {**os.environ, "PYTHONPATH": str(COLLECTIONS)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.warn(["a\n\x1b[31mb"])
    assert capsys.readouterr().err == "gpu-cluster-check: a \ufffd[31mb\n"
