# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of pip, and what its failures mean."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import pip

GOT = "d" * 64
#: What pip 23.0.1 and 23.2.1 print on standard error, shortened in the middle.
FILE = "file:///srv/wheels/torch-2.13.0%2Bcpu-py3-none-any.whl"
MISMATCH = f"""\
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, ...
    torch==2.13.0+cpu from {FILE} (from -r /x/gpu-cluster-lock.txt (line 4)):
        Expected sha256 {"a" * 64}
        Expected     or {"b" * 64}
             Got        {GOT}
"""


def test_a_folder_excludes_every_index() -> None:
    command = pip.install_command("/p", "/tmp/w", pip.Source(find_links="/srv/wheels"), "/lock")
    assert command[:3] == ["/usr/bin/env", "TMPDIR=/tmp/w", "PIP_CONFIG_FILE=/dev/null"]
    assert {"--isolated", "--no-index", "--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(command)
    assert command[command.index("--find-links") + 1] == "/srv/wheels"
    assert command[command.index("--requirement") + 1] == "/lock"


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        (pip.Source(), []),
        (pip.Source(index_url="https://i.example.com"), ["--index-url", "https://i.example.com"]),
        (
            pip.Source(index_url="https://i.example.com", proxy="http://p.example.com:3128"),
            ["--proxy", "http://p.example.com:3128", "--index-url", "https://i.example.com"],
        ),
        (pip.Source(find_links="https://w.example.com"), ["--no-index", "--find-links", "https://w.example.com"]),
    ],
)
def test_other_sources_leave_the_settings_of_the_node_in_force(source: pip.Source, arguments: list[str]) -> None:
    assert source.arguments() == arguments
    command = pip.resolve_command("/p", "/tmp/w", source, "/report", ["torch==2.13.0"])
    assert "--isolated" not in command
    assert "PIP_CONFIG_FILE=/dev/null" not in command
    assert command[-1] == "torch==2.13.0"
    assert {"--dry-run", "--ignore-installed", "--only-binary=:all:"} <= set(command)


@pytest.mark.parametrize(
    ("answer", "old"),
    [
        ("pip 21.2.3 from /x/pip (python 3.9)", True),
        ("pip 22.1 from /x/pip (python 3.9)", True),
        ("pip 22.2 from /x/pip (python 3.11)", False),
        ("pip 23.2.1 from /x/pip (python 3.12)", False),
        ("no pip", True),
    ],
)
def test_the_oldest_pip_that_resolves(answer: str, old: bool) -> None:
    assert bool(pip.old_pip(answer, "/usr/bin/python3.9")) is old


def test_an_old_pip_is_named_with_the_way_out() -> None:
    said = pip.old_pip("pip 21.2.3 from /x/pip (python 3.9)", "/usr/bin/python3.9")
    assert said.startswith("pip 21.2.3 of /usr/bin/python3.9 cannot resolve")
    assert "Fix: choose a newer interpreter" in said


def test_a_tampered_file_is_named() -> None:
    said = pip.tampered(f"pip install failed (1): {MISMATCH}")
    path = "file:///srv/wheels/torch-2.13.0%2Bcpu-py3-none-any.whl"
    assert said.startswith(
        f"the file {path} of torch==2.13.0+cpu is not the one in the lock: its sha256 is {GOT}. Fix:"
    )


def test_another_kind_of_node_is_thought_of_before_the_lock_is_changed() -> None:
    """Without the file, members that have the old wheel would only write its hash again."""
    _cause, fix = pip.tampered(MISMATCH).split("Fix: ")
    assert fix == (
        "when this node differs in processor or Python from the one that resolved the lock, give its kind a lock file "
        "of its own; else find out first who changed the file, and when the new one is right, write this sha256 "
        "into the lock file"
    )


def test_a_tampered_file_of_an_index_is_named_without_its_promise() -> None:
    said = pip.tampered(MISMATCH.replace("py3-none-any.whl ", "py3-none-any.whl#sha256=0 "))
    assert "any.whl of torch==2.13.0+cpu" in said


def test_other_complaints_are_left_as_they_are() -> None:
    assert pip.tampered("ERROR: No matching distribution found for torch==2.13.0") == ""
