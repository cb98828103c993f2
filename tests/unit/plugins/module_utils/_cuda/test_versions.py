# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which toolkits are wanted."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.filter.cuda_plan import cuda_plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda import versions


def test_a_package_and_a_folder_for_each_release() -> None:
    found = cuda_plan({"versions": ["13.0.2", "12.8"], "default": "12.8"})
    assert found == {
        "packages": [
            {"name": "cuda-toolkit-13-0", "version": "13.0.2", "variable": "cuda_toolkit_versions"},
            {"name": "cuda-toolkit-12-8", "version": "12.8", "variable": "cuda_toolkit_versions"},
        ],
        "releases": ["13.0", "12.8"],
        "default": "12.8",
    }
    assert versions.Toolkit("13.0", "13.0.2").path == "/usr/local/cuda-13.0"


@pytest.mark.parametrize(("default", "chosen"), [("", "13.0"), ("13.0", "13.0"), ("13.0.2", "13.0"), ("12.8", "12.8")])
def test_the_default_is_the_first_unless_another_is_chosen(default: str, chosen: str) -> None:
    assert cuda_plan({"versions": ["13.0.2", "12.8"], "default": default})["default"] == chosen


def test_no_toolkits() -> None:
    assert cuda_plan({"versions": [], "default": ""}) == {"packages": [], "releases": [], "default": ""}


def test_everything_wrong_is_named_at_once() -> None:
    with pytest.raises(AnsibleFilterError) as error:
        cuda_plan({"versions": [12.1, "13", "cuda-13-0", "13.0", "13.0.2"], "default": "12.4"})
    lines = str(error.value).splitlines()
    assert lines[0] == "Nothing was changed." and len(lines) == 5
    assert "cuda_toolkit_versions[0] = 12.1: without quotes YAML takes it for a number, and 12.10 for 12.1" in lines[1]
    assert "cuda_toolkit_versions[1] = '13': no version of CUDA" in lines[2]
    assert "cuda_toolkit_versions[2] = 'cuda-13-0': no version of CUDA" in lines[3]
    assert "the release 13.0 is in the list twice, and it has one package, cuda-toolkit-13-0" in lines[4]
    assert "keep one of 13.0 and 13.0.2" in lines[4]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"versions": ["13.0"], "default": "12.4"},
            "cuda_toolkit_default = '12.4': no such toolkit is in cuda_toolkit_versions. Fix: add it there, or choose "
            "one of 13.0.",
        ),
        ({"versions": [], "default": "13.0"}, "no such toolkit is in cuda_toolkit_versions"),
        ({"versions": ["13.0"], "default": 13.0}, "cuda_toolkit_default = 13.0: without quotes"),
        ({"versions": "13.0", "default": ""}, "cuda_toolkit_versions = '13.0': a list of versions is expected"),
        ({"versions": ["13.0.1"], "default": "13.0.2"}, "no such toolkit"),
    ],
)
def test_wrong_wishes(params: dict[str, Any], words: str) -> None:
    with pytest.raises(AnsibleFilterError) as error:
        cuda_plan(params)
    assert words in str(error.value)
