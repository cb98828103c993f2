# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/reading-a-report.md says is what the reports are."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import project
import pytest
import report_samples
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    console,
    files,
    prometheus,
    words,
)

GUIDE = (project.ROOT / report_samples.GUIDE).read_text()
EXAMPLE = json.loads((project.ROOT / report_samples.EXAMPLE_FILE).read_text())
QUERY = re.compile(r"^\| .+\? \| `(.+?)` \| `(.+)` \|$", re.MULTILINE)
QUERIES = QUERY.findall(GUIDE)
IMAGE = re.compile(r"!\[.+?\]\((.+?)\)")
LARGEST_IMAGE_BYTES = 200_000


def test_the_table_of_queries_is_read() -> None:
    """Every row of it, or a query could be wrong without being noticed."""
    table = GUIDE.split("| question | query | answer |")[1].split("\n\n")[0]
    assert len(QUERIES) == len(table.strip().splitlines()) - 1 > 10


@pytest.mark.parametrize(("query", "answer"), QUERIES, ids=[query for query, _answer in QUERIES])
def test_queries_give_the_answers_of_the_table(query: str, answer: str) -> None:
    jmespath = pytest.importorskip("jmespath", reason="the oldest environment has no jmespath")
    assert jmespath.search(query, EXAMPLE) == json.loads(answer)


def test_the_files_of_the_table_are_those_that_are_written() -> None:
    table = GUIDE.split("| file | for |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(.+?)`", table, re.MULTILINE)) == set(files.contents(EXAMPLE))


def test_the_letters_of_the_table_are_those_of_the_grid() -> None:
    table = GUIDE.split("| letter | meaning |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(.)` \|", table, re.MULTILINE) == list(words.MEANING)


def test_the_texts_it_shows_are_printed() -> None:
    """The lines of its finding and its grid, in their order; it leaves some out."""
    printed = iter(console.lines(EXAMPLE))
    for block in re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL):
        for line in block.splitlines():
            assert any(line == one for one in printed), line


def test_the_alerts_use_metrics_that_exist() -> None:
    (alerts,) = [block for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL) if "alert:" in block]
    rules = yaml.safe_load(alerts)["groups"][0]["rules"]
    names = {name for rule in rules for name in re.findall(rf"{prometheus.PREFIX}(\w+)", rule["expr"])}
    assert names and names <= set(prometheus.METRICS)


def size_of(image: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its first chunk (PNG specification, IHDR)."""
    head = image.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


@pytest.mark.parametrize("name", IMAGE.findall(GUIDE))
def test_pictures_are_there_and_small(name: str) -> None:
    image = project.ROOT / "docs" / name
    width, height = size_of(image)
    assert width >= 800 and height >= 300 and image.stat().st_size < LARGEST_IMAGE_BYTES


def test_there_are_pictures() -> None:
    assert len(IMAGE.findall(GUIDE)) >= 2
