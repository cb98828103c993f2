# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The curve of the check's cost."""

from __future__ import annotations

from xml.etree import ElementTree

import bench_check
import pytest

SVG = "{http://www.w3.org/2000/svg}"


def test_the_plot_is_an_image_with_one_point_for_each_number_of_nodes() -> None:
    seconds = {2: 8.0, 4: 9.0, 8: 11.0, 64: 84.0}
    image = ElementTree.fromstring(bench_check.plot(seconds, "title"))
    circles = image.findall(f"{SVG}circle")
    assert [one.findtext(f"{SVG}title") for one in circles] == [
        "2 nodes: 8.0 s",
        "4 nodes: 9.0 s",
        "8 nodes: 11.0 s",
        "64 nodes: 84.0 s",
    ]
    places = [(float(one.get("cx", "")), float(one.get("cy", ""))) for one in circles]
    # More nodes are further right, more seconds higher up, and everything is inside of the frame.
    assert [x for x, _y in places] == sorted({x for x, _y in places})
    assert [y for _x, y in places] == sorted({y for _x, y in places}, reverse=True)
    assert all(bench_check.LEFT <= x <= bench_check.WIDTH for x, _y in places)
    assert all(bench_check.TOP <= y <= bench_check.HEIGHT - bench_check.BOTTOM for _x, y in places)
    # Twice as many nodes are as far away everywhere: 2 to 4 as 4 to 8.
    assert places[1][0] - places[0][0] == pytest.approx(places[2][0] - places[1][0], abs=0.2)


@pytest.mark.parametrize(("value", "step"), [(1, 1), (1.2, 2), (3, 5), (16.8, 20), (0.07, 0.1), (60, 100)])
def test_steps_are_round_numbers(value: float, step: float) -> None:
    assert bench_check.nice(value) == pytest.approx(step)
