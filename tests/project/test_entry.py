# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command users type, in a checkout before and after set-up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import project

COMMAND = [str(project.BIN / "ansible-playbook"), "site.yml", "-i", "prod", "--list-tasks"]


def type_it(checkout: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run it with nothing of the user's own configuration."""
    environment = project.tool_environment(HOME=str(home), ANSIBLE_NOCOLOR="1", ANSIBLE_FORCE_COLOR="0")
    del environment["ANSIBLE_CONFIG"]
    return subprocess.run(COMMAND, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_before_setup_it_names_make_setup(tmp_path: Path) -> None:
    """One sentence, in the first line that is an error, says what to do."""
    checkout = project.copy_sources(tmp_path / "checkout")
    done = type_it(checkout, tmp_path)
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if "ERROR" in line]
    assert "run make setup in this folder" in errors[0]
    assert len(errors) == 1


def test_after_setup_it_finds_the_tasks(tmp_path: Path) -> None:
    """With the link that set-up makes, every phase is there."""
    checkout = project.copy_sources(tmp_path / "checkout")
    link = checkout / ".ansible" / "collections" / "ansible_collections" / project.NAMESPACE / project.NAME
    link.parent.mkdir(parents=True)
    link.symlink_to("../../../..")
    done = type_it(checkout, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cluster_check : " in done.stdout
