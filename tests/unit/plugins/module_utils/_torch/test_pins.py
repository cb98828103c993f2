# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exactly pinned packages."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import pins


def test_pins() -> None:
    found = pins.parse_requirements(["torch==2.13.0", " Typing_Extensions == 4.12.2 ", "a[b,c]==1!2.0+cu130"])
    assert [(item.name, item.version, item.text) for item in found] == [
        ("torch", "2.13.0", "torch==2.13.0"),
        ("typing-extensions", "4.12.2", "Typing_Extensions==4.12.2"),
        ("a", "1!2.0+cu130", "a[b,c]==1!2.0+cu130"),
    ]


def test_all_input_problems_at_once() -> None:
    with pytest.raises(pins.InputError) as caught:
        pins.parse_requirements(["torch", "torch>=2", "-r file", "a==1", "A==2", "b==1.*"])
    assert caught.value.problems == [
        "requirements[0]: expected exactly one version, such as 'torch==2.13.0', found 'torch'",
        "requirements[1]: expected exactly one version, such as 'torch==2.13.0', found 'torch>=2'",
        "requirements[2]: expected exactly one version, such as 'torch==2.13.0', found '-r file'",
        "requirements[4]: a is listed more than once",
        "requirements[5]: expected exactly one version, such as 'torch==2.13.0', found 'b==1.*'",
    ]
    with pytest.raises(pins.InputError, match="expected at least one"):
        pins.parse_requirements([])


@pytest.mark.parametrize(
    ("pin", "version", "accepted"),
    [
        ("torch==2.13.0", "2.13.0", True),
        ("torch==2.13.0", "2.13.0+cpu", True),
        ("torch==2.13.0", "2.13.1", False),
        ("torch==2.13.0+cu130", "2.13.0+cpu", False),
        ("torch==2.13.0+cu130", "2.13.0+cu130", True),
        ("torch==2.13.0", "", False),
    ],
)
def test_a_pin_without_a_local_part_takes_any_build(pin: str, version: str, accepted: bool) -> None:
    assert pins.parse_requirements([pin])[0].accepts(version) is accepted


def test_missing_packages() -> None:
    wanted = pins.parse_requirements(["torch==2.13.0", "numpy==2.0"])
    assert pins.missing_packages(wanted, {"torch": "2.13.0+cpu"}) == ["wanted numpy==2.0, found nothing"]
    assert pins.missing_packages(wanted[:1], {"torch": "2.12.0"}) == ["wanted torch==2.13.0, found 2.12.0"]
