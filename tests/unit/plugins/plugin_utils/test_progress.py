# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where progress is shown, and where it is not."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from ansible import constants as C
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.progress import Shown
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _progress

ERASE = "\r\x1b[K"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What goes to standard error and to the screen only."""
    found: list[str] = []

    def display(_self: Any, text: str, stderr: bool, screen_only: bool, newline: bool) -> None:
        assert stderr and screen_only
        found.append(text + ("\n" if newline else ""))

    monkeypatch.setattr(Display, "display", display)
    return found


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At a terminal of 20 columns."""
    monkeypatch.setattr(_progress, "COLUMNS", 20)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(C, "DEFAULT_STDOUT_CALLBACK", "default")
    monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    monkeypatch.setattr(Display(), "verbosity", 0)


def test_a_terminal_has_one_line_that_fits(person: None, written: list[str]) -> None:
    line = _progress.line("auto")
    assert line is not None
    line.show(Shown("gloo 16 MiB 3/5, iterations 40/65", (1,)))
    line.show(Shown("gloo", (1,)))
    line.erase()
    assert written == [f"{ERASE}gloo 16 MiB 3/5, it\r", f"{ERASE}gloo\r", ERASE]


def test_a_log_has_a_line_for_each_key(written: list[str]) -> None:
    line = _progress.line("always")
    assert line is not None
    for key, text in ((1, "one"), (1, "two"), (2, "three")):
        line.show(Shown(text, (key,)))
    line.erase()
    assert written == ["one\n", "three\n"]


@pytest.mark.parametrize("wanted", ["never", "", "None", "other"])
def test_who_wants_none_gets_none(person: None, wanted: str) -> None:
    assert _progress.line(wanted) is None


@pytest.mark.usefixtures("person")
class TestNobodyIsThere:
    """Each of these alone is enough."""

    def test_without_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_progress, "COLUMNS", 0)
        assert _progress.line("auto") is None

    @pytest.mark.parametrize(("value", "shown"), [("true", False), ("1", False), ("false", True), ("", True)])
    def test_in_a_ci_with_a_terminal(self, monkeypatch: pytest.MonkeyPatch, value: str, shown: bool) -> None:
        monkeypatch.setenv("CI", value)
        assert (_progress.line("auto") is not None) is shown

    @pytest.mark.parametrize("name", ["ansible.posix.json", "json", "awx_display"])
    def test_with_output_for_a_program(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        monkeypatch.setattr(C, "DEFAULT_STDOUT_CALLBACK", name)
        assert _progress.line("auto") is None

    @pytest.mark.parametrize(("verbosity", "shown"), [(2, True), (3, False)])
    def test_with_a_line_for_each_connection(
        self, monkeypatch: pytest.MonkeyPatch, verbosity: int, shown: bool
    ) -> None:
        monkeypatch.setattr(Display(), "verbosity", verbosity)
        assert (_progress.line("auto") is not None) is shown


@pytest.mark.parametrize(
    ("streams", "term", "columns"),
    [
        ({"stdout", "stderr"}, "xterm", "72"),
        ({"stdout", "stderr"}, "dumb", "0"),
        ({"stdout"}, "xterm", "0"),
        ({"stderr"}, "xterm", "0"),
    ],
)
def test_a_terminal_is_where_both_streams_end(tmp_path: Path, streams: set[str], term: str, columns: str) -> None:
    """Forced colours and a width in the environment do not make one."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
    program = f"import sys; from {_progress.__name__} import COLUMNS; open(sys.argv[1], 'w').write(str(COLUMNS))"
    environment = dict(os.environ, TERM=term, ANSIBLE_FORCE_COLOR="1", PYTHONPATH=os.pathsep.join(sys.path))
    with (tmp_path / "pipe").open("w") as other:
        chosen = {name: theirs if name in streams else other for name in ("stdout", "stderr")}
        argv = [sys.executable, "-c", program, str(tmp_path / "found")]
        subprocess.run(argv, **chosen, env=environment, check=True, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (tmp_path / "found").read_text() == columns


def is_open(path: Path) -> bool:
    """Whether this process has the file open."""
    file = path.stat()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(int(name)), file):
                return True
    return False


def wait_for(written: list[str]) -> None:
    """Until something is written."""
    end = time.monotonic() + 60
    while not written and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.usefixtures("person")
class TestCounted:
    """Hosts in processes of their own add to one number."""

    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_progress, "TICK_SECONDS", 0.02)

    def test_one_of_them_shows_the_number_of_all(self, written: list[str]) -> None:
        both = threading.Barrier(2, timeout=60)

        def host() -> None:
            links = _progress.Sum("mesh-run")
            with _progress.counted(_progress.Line(40), links, 4):
                both.wait()
                wait_for(written)
                time.sleep(0.2)
                links.add(2)

        began = time.monotonic()
        threads = [threading.Thread(target=host) for _number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        shown = [text.strip("\r").removeprefix("\x1b[K") for text in written]
        assert "mesh 0/4 links" in shown and "mesh 4/4 links" in shown
        # Two that show it would have shown twice as many; each erases the line before its result comes.
        assert shown.count("mesh 0/4 links") <= took / 0.02 + 1
        assert shown[-1] == "" and shown.count("") == 2

    def test_the_line_is_erased_and_the_file_closed_when_the_task_breaks_off(
        self, written: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_progress, "TICK_SECONDS", 600)
        links = _progress.Sum("mesh-run")
        assert is_open(tmp_path / "mesh-run")
        with pytest.raises(KeyboardInterrupt), _progress.counted(_progress.Line(40), links, 4):
            raise KeyboardInterrupt
        assert written == [ERASE]
        assert not is_open(tmp_path / "mesh-run")

    def test_without_news_it_says_since_when(self, written: list[str], tmp_path: Path) -> None:
        (tmp_path / "mesh-run").write_bytes(b"..")
        os.utime(tmp_path / "mesh-run", (time.time() - 8, time.time() - 8))
        with _progress.counted(_progress.Line(60), _progress.Sum("mesh-run"), 4):
            wait_for(written)
        seconds = re.fullmatch(r"mesh 2/4 links: no progress for (\d+) s\r", written[0].removeprefix(ERASE))
        assert seconds and int(seconds[1]) >= 8, written[0]
