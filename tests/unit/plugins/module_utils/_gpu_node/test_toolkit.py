# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA toolkits by the names of their folders."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import toolkit


@pytest.mark.parametrize(
    ("name", "version"), [("cuda-13.0", "13.0"), ("cuda-13", ""), ("cuda", ""), ("cuda-12.8x", "")]
)
def test_folders(name: str, version: str) -> None:
    assert toolkit.folder_version(name) == version


def test_ten_is_newer_than_nine() -> None:
    assert toolkit.ordered(["13.0", "12.10", "12.9"]) == ["12.9", "12.10", "13.0"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}, "cuda_cccl": {"version": "2.7.0"}}', "12.8"),
        ("{}", ""),
        ("[]", ""),
        ("no json", ""),
    ],
)
def test_version_json(text: str, version: str) -> None:
    assert toolkit.parse_version_json(text) == version
