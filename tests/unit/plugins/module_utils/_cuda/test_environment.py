# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of sessions: lines of the site stay, and come back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda import environment

OURS = (
    "# BEGIN gpu-cluster CUDA toolkit\nCUDA_HOME=/usr/local/cuda\nPATH={path}:/usr/local/cuda/bin\n"
    "# END gpu-cluster CUDA toolkit\n"
)
DEFAULT = "/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin"


@pytest.mark.parametrize(
    ("site", "text"),
    [
        ("", OURS.format(path=DEFAULT)),
        ("LANG=C.UTF-8\n# a comment", "LANG=C.UTF-8\n# a comment\n" + OURS.format(path=DEFAULT)),
        (
            'PATH="/opt/site/bin:/usr/bin"  # ours\nCUDA_HOME=/opt/cuda\nLANG=C\n',
            '#gpu-cluster-aside PATH="/opt/site/bin:/usr/bin"  # ours\n#gpu-cluster-aside CUDA_HOME=/opt/cuda\nLANG=C\n'
            + OURS.format(path="/opt/site/bin:/usr/bin"),
        ),
        (
            "export PATH=/a\n PATH=/b\n",
            "#gpu-cluster-aside export PATH=/a\n#gpu-cluster-aside  PATH=/b\n" + OURS.format(path="/b"),
        ),
        ("PATH=\n", "#gpu-cluster-aside PATH=\n" + OURS.format(path=DEFAULT)),
    ],
)
def test_lines_of_the_site_stay_and_its_path_is_the_beginning(site: str, text: str) -> None:
    assert environment.with_block(site) == text
    assert environment.with_block(text) == text
    assert environment.without_block(text) == site + ("\n" if site and not site.endswith("\n") else "")


def test_a_file_without_our_lines_is_left_alone_to_the_last_byte() -> None:
    assert environment.without_block("LANG=C") == "LANG=C"
    assert environment.wanted("LANG=C", present=False)[environment.ENVIRONMENT_PATH] == "LANG=C"


def test_a_path_that_the_site_adds_later_counts() -> None:
    text = environment.with_block("PATH=/a\n") + "PATH=/b\n"
    again = environment.with_block(text)
    assert again.endswith(OURS.format(path="/b")) and again.count("\nPATH=") == 1


def test_the_toolkit_is_in_the_path_once() -> None:
    assert "PATH=/usr/local/cuda/bin:/usr/bin\n" in environment.with_block("PATH=/usr/local/cuda/bin:/usr/bin\n")


def test_lines_that_pam_would_stumble_over() -> None:
    fits = "PATH=" + "x" * 1018
    assert environment.too_long(f"{fits}\n") == []
    assert environment.too_long(f"{fits}x\nLANG=C\n") == [f"{fits}x"]
    assert environment.too_long("A=" + "\u00e4" * 511) == ["A=" + "\u00e4" * 511]


@pytest.mark.parametrize(
    ("given", "path", "home"),
    [
        ({"PATH": "/usr/bin:/bin"}, "/usr/bin:/bin:/usr/local/cuda/bin", "/usr/local/cuda"),
        ({"PATH": "/usr/local/cuda/bin:/usr/bin:/bin"}, "/usr/local/cuda/bin:/usr/bin:/bin", "/usr/local/cuda"),
        (
            {"PATH": "/usr/bin:/bin", "CUDA_HOME": "/usr/local/cuda-12.8"},
            "/usr/bin:/bin:/usr/local/cuda/bin",
            "/usr/local/cuda-12.8",
        ),
    ],
)
def test_a_login_shell(tmp_path: Path, given: dict[str, str], path: str, home: str) -> None:
    """The real text in a real shell, with errors for unset variables."""
    file = tmp_path / "cuda.sh"
    file.write_text(environment.SH_TEXT)
    said = subprocess.run(
        ["/bin/sh", "-euc", f'. {file}; . {file}; echo "$PATH $CUDA_HOME"'],
        env=given,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert said == f"{path} {home}\n"
