# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our block in files of others."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda import environment
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import parameter_files as files

THEIRS = "# a comment\nosc = ^ucx,pt2pt\npml=^ucx"
WANTED = {"pml": "ob1", "btl": "self,tcp"}


def test_the_block_comes_last_and_goes_again() -> None:
    text = files.with_block(THEIRS, WANTED)
    assert text == f"{THEIRS}\n{files.BEGIN}\npml = ob1\nbtl = self,tcp\n{files.END}\n"
    assert files.with_block(text, WANTED) == text
    assert files.with_block(text + "late = 1\n", WANTED).endswith(f"late = 1\n{text[len(THEIRS) + 1 :]}")
    assert files.with_block(text, {}) == THEIRS + "\n"
    assert files.with_block(THEIRS, {}) == THEIRS, "nothing of ours, so not even a line end is touched"
    assert files.with_block("", {}) == ""


def test_the_block_in_the_environment_stays_where_it_is_beside_that_of_cuda() -> None:
    values = {"OMP_NUM_THREADS": "4"}
    text = files.with_block("EDITOR=vi\n", values, separator="=", first=True)
    assert text == f"{files.BEGIN}\nOMP_NUM_THREADS=4\n{files.END}\nEDITOR=vi\n"
    both = environment.with_block(text)
    assert files.with_block(both, values, separator="=", first=True) == both == environment.with_block(both)


def test_lines_that_are_outvoted_are_named() -> None:
    assert files.overridden("/etc/x", files.with_block(THEIRS, WANTED), WANTED) == [
        "/etc/x: pml = ^ucx, which ob1 takes the place of"
    ]
    assert files.overridden("/etc/x", "pml = cm\n pml =ob1 \n", WANTED) == [], "of two lines the last one counts"


@pytest.mark.parametrize(
    ("line", "wanted", "rule"),
    [
        ("btl_tcp_if_exclude = lo", {"btl_tcp_if_include": "x"}, files.ERR_EXCLUDE % "btl_tcp_if_include"),
        ("oob_tcp_if_exclude=lo", {"oob_tcp_if_include": "x"}, files.ERR_EXCLUDE % "oob_tcp_if_include"),
        ("prte_if_exclude = lo", {"prte_if_include": "x"}, files.ERR_EXCLUDE % "prte_if_include"),
        ("btl_tcp_if_exclude = lo", WANTED, ""),
        ("# btl_tcp_if_exclude = lo", {"btl_tcp_if_include": "x"}, ""),
        ("oob_tcp_dynamic_ipv4_ports = 50000-50010", WANTED, files.ERR_DAEMON_PORTS),
        ("prte_static_ipv6_ports = 50000", {}, files.ERR_DAEMON_PORTS),
    ],
)
def test_lines_with_which_no_job_would_run_are_refused(line: str, wanted: dict[str, str], rule: str) -> None:
    found = files.conflicts("/etc/x", f"{line}\n", wanted)
    assert [problem.rule for problem in found] == ([rule] if rule else [])
    assert all(problem.variable == f"/etc/x: {line.split('=')[0].strip()}" for problem in found)


def test_a_name_that_the_site_gives_to_all_sessions_is_refused() -> None:
    (found,) = files.conflicts(files.ENVIRONMENT_PATH, "export OMP_NUM_THREADS=8\n", {"OMP_NUM_THREADS": "4"})
    assert (found.value, found.rule) == ("8", files.ERR_ENVIRONMENT)
    ours = files.with_block("", {"OMP_NUM_THREADS": "8"}, separator="=", first=True)
    assert files.conflicts(files.ENVIRONMENT_PATH, ours, {"OMP_NUM_THREADS": "4"}) == []
