# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The README is short, in the order of what a reader needs, and each of its commands is run by a test."""

from __future__ import annotations

import re

import project
import pytest
import yaml

TEXT = (project.ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 149
HEADINGS = [
    "Quick start: a real cluster",
    "Run a job, read a report, rebuild a node",
    "Phases and roles",
    "Support",
    "Documentation by task",
    "Help, security, contributing",
]
TRANSCRIPT = "docs/first-hour.md"
#: Command of the README to a text in a file: that of a test which runs it, or that of a transcript which a test runs.
RUN_BY = {
    "make demo": ("tools/run_tests.py", '"make", "demo"'),
    "make test": (".ci/run", "make test"),
    "make lab-down": ("tools/other_debian.py", "make --silent lab-down"),
    "make docs": ("tools/run_tests.py", "docs_site.py"),
    "make setup && . .venv/bin/activate": (TRANSCRIPT, ". .venv/bin/activate"),
    "ansible-playbook baremetal.gpu_cluster.init": (
        TRANSCRIPT,
        "$ ansible-playbook baremetal.gpu_cluster.init -e dest=",
    ),
    "cd mycluster": (TRANSCRIPT, "$ cd ../mycluster"),
    "ansible-playbook baremetal.gpu_cluster.discover": (
        TRANSCRIPT,
        "$ ansible-playbook baremetal.gpu_cluster.discover -i prod -e rebuild_accept_host_keys=true",
    ),
    "ansible-playbook site.yml -i prod --tags preflight": (TRANSCRIPT, "$ ansible-playbook site.yml -i prod --tags"),
    "ansible-playbook site.yml -i prod --check --diff": ("molecule/canary/tests/test_canary.py", '"--check"'),
    "ansible-playbook site.yml -i prod": (TRANSCRIPT, "$ ansible-playbook site.yml -i prod\n"),
    "ansible-playbook baremetal.gpu_cluster.check": ("molecule/cluster/lab_cluster.py", "baremetal.gpu_cluster.check"),
    "ansible-playbook baremetal.gpu_cluster.rebuild": ("molecule/jobs/tests/test_rebuild.py", "rebuild_hosts"),
    "ansible-playbook baremetal.gpu_cluster.revoke": ("molecule/jobs/tests/test_ssh_mesh.py", "revoke"),
    "gpu-cluster-run train.py": ("molecule/jobs/tests/test_launcher_training.py", "def test_"),
    "gpu-cluster-run why": ("molecule/jobs/tests/test_launcher_hangs.py", "gpu-cluster-run why"),
    "gpu-cluster-run explain": ("molecule/jobs/tests/test_launcher_explains.py", "gpu-cluster-run explain"),
}


def commands() -> set[str]:
    """In console blocks, and between back quotes."""
    found = re.findall(r"^\$ ([^#\n]+)", TEXT, re.MULTILINE)
    found += re.findall(r"`((?:make|ansible-playbook|gpu-cluster-run) [^`]+)`", TEXT)
    return {one.strip() for one in found}


def known(command: str) -> list[str]:
    """The keys of the table that a command is: that key, or one with options and arguments behind it."""
    if command in RUN_BY:
        return [command]
    playbook = re.match(r"ansible-playbook baremetal\.gpu_cluster\.\w+|gpu-cluster-run \w+", command)
    return [playbook[0]] if playbook and playbook[0] in RUN_BY else []


def test_it_is_short_and_in_the_order_of_what_is_needed() -> None:
    assert len(TEXT.splitlines()) <= MOST_LINES
    assert re.findall(r"^## (.+)", TEXT, re.MULTILINE) == HEADINGS


def test_what_shows_and_tests_everything_is_above_the_fold() -> None:
    top = TEXT.splitlines()[:25]
    assert any(line.startswith("$ make demo") for line in top) and any(line.startswith("$ make test") for line in top)
    assert "docs/images/report-failed.png" in TEXT.partition("## ")[0]


def test_each_command_is_run_by_a_test() -> None:
    assert [command for command in sorted(commands()) if not known(command)] == []
    assert {key for command in commands() for key in known(command)} == set(RUN_BY)


@pytest.mark.parametrize("command", RUN_BY)
def test_the_test_of_a_command_is_there(command: str) -> None:
    name, text = RUN_BY[command]
    path = project.ROOT / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    assert any(text in file.read_text(encoding="utf-8") for file in files)


def test_the_inventory_is_the_example() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    example = (project.ROOT / "docs" / "examples" / "minimal" / "hosts.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(block) == yaml.safe_load(example)
