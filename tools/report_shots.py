# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pictures of reports in the documentation, of sample reports in Chromium: docs/images/report-*.png.

Run as a program it writes them: `python3 tools/report_shots.py`, or into another folder: `python3 tools/report_shots.py
DIR`.  It needs Chromium, and uses pngquant where it is installed.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import browser
import project

if __name__ == "__main__":
    sys.path.insert(0, str(project.COLLECTIONS))

import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import files

IMAGES = project.ROOT / "docs" / "images"
WIDE = browser.Setting("wide", 1180, 900)
#: Beside some lines of a terminal, at the top of the README.
SMALL = browser.Setting("small", 1000, 600)
#: Height of a desktop where the settings stand side by side, and the gap between them.
HALF, GAP = 384, 12
SORT = (
    "document.querySelectorAll('.every')[1].open = true; (one => { one.selectedIndex = 1; "
    "one.dispatchEvent(new Event('change')); })(document.querySelector('#order select'))"
)


def of_part(page: browser.Page, first: str, last: str) -> bytes:
    """A picture from the top of one element to the bottom of another."""
    rect = "(one => [one.left, one.top + scrollY, one.width, one.bottom + scrollY])"
    left, top, width, _bottom = page.ask(f"{rect}(document.querySelector({first!r}).getBoundingClientRect())")
    bottom = page.ask(f"{rect}(document.querySelector({last!r}).getBoundingClientRect())")[3]
    return page.picture((max(0, left - 16), max(0, top - 16), width + 32, bottom - top + 32))


def pictures(page: browser.Page, folder: Path) -> Iterator[tuple[str, bytes]]:
    """File name to picture.  folder: for the pages."""
    paths = {}
    for name, report in {**samples.all_samples(), "racks": samples.racks()}.items():
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(files.contents(report)["report.html"], encoding="utf-8")
    page.open(paths["faulty"], SMALL)
    yield "report-failed.png", page.picture()
    page.open(paths["faulty"], WIDE)
    yield "report-findings.png", of_part(page, "header", "#finding-3")
    yield "report-maps.png", of_part(page, "#mesh", "#all-reduce")
    page.open(paths["railed"], WIDE)
    yield "report-rails.png", of_part(page, "#rail-2", "#rail-2")
    page.open(paths["racks"], WIDE)
    page.ask(SORT)
    yield "report-large.png", of_part(page, "#mesh", "#mesh")
    settings = []
    for setting in browser.SETTINGS:
        page.open(paths["faulty"], setting)
        settings.append(page.picture())
    yield "report-settings.png", together(page, settings, folder)


def together(page: browser.Page, parts: list[bytes], folder: Path) -> bytes:
    """The settings in one picture: desktop above dark, beside them telephone and paper."""
    desktop, phone, dark, paper = (
        f'<img src="data:image/png;base64,{base64.b64encode(one).decode("ascii")}">' for one in parts
    )
    path = folder / "settings.html"
    path.write_text(
        f"<style>body, div {{ display: flex; gap: {GAP}px; align-items: flex-start; background: #ddd }}"
        f"body {{ margin: 0; padding: {GAP}px; width: max-content }} div {{ flex-direction: column }}"
        f"img {{ height: {2 * HALF + GAP}px; outline: 1px solid #999 }} div img {{ height: {HALF}px }}</style>"
        f"<body><div>{desktop}{dark}</div>{phone}{paper}"
    )
    page.open(path, browser.Setting("all", 4000, 2 * HALF + 3 * GAP))
    return page.picture((0, 0, page.ask("document.body.offsetWidth"), 2 * HALF + 3 * GAP))


def smaller(picture: bytes) -> bytes:
    """The same with fewer colours, where pngquant is installed."""
    program = shutil.which("pngquant")
    if not program:
        return picture
    command = [program, "--speed", "1", "--strip", "64", "-"]
    return subprocess.run(command, input=picture, capture_output=True, check=True).stdout


def main(target: Path) -> None:
    """Write them."""
    with browser.running() as page, tempfile.TemporaryDirectory() as folder:
        for name, picture in pictures(page, Path(folder)):
            (target / name).write_bytes(smaller(picture))
            print(f"{name}: {(target / name).stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
