# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every text of the page can be read: its contrast is that of WCAG 2, level AA, in light and in dark."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import style

LEAST = 4.5
Colour = tuple[float, ...]


def parsed(text: str) -> Colour:
    return tuple(int(text[at : at + 2], 16) for at in (1, 3, 5))


def mixed(one: str, percent: int, other: str) -> Colour:
    """As color-mix(in srgb) of CSS Color 5."""
    return tuple((a * percent + b * (100 - percent)) / 100 for a, b in zip(parsed(one), parsed(other)))


def luminance(colour: Colour) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Colour, two: Colour) -> float:
    """Contrast ratio, as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_the_ratio_is_that_of_the_standard() -> None:
    assert contrast(parsed("#000000"), parsed("#ffffff")) == pytest.approx(21)
    assert contrast(parsed("#777777"), parsed("#ffffff")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("named", [style.LIGHT, style.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "card"])
@pytest.mark.parametrize("name", ["text", "soft", "good", "bad", "warn", "link"])
def test_texts(named: dict[str, str], ground: str, name: str) -> None:
    assert contrast(parsed(named[name]), parsed(named[ground])) >= LEAST


@pytest.mark.parametrize("named", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_cells_of_a_map(named: dict[str, str]) -> None:
    for ground in ("bad", "warn"):
        assert contrast(parsed(named["page"]), parsed(named[ground])) >= LEAST
    for shade in range(style.SHADES):
        ground = mixed(named["hot"], style.share(shade), named["card"])
        text = named["page"] if shade >= style.STRONG else named["text"]
        assert contrast(parsed(text), ground) >= LEAST, shade


def test_every_colour_is_used_and_named() -> None:
    assert style.LIGHT.keys() == style.DARK.keys()
    assert all(f"var(--{name})" in style.CSS for name in style.LIGHT)
