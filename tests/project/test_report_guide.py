# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/reading-a-report.md says is what the reports are."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import project
import pytest
import report_samples
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    compact,
    console,
    drift,
    files,
    prometheus,
    words,
)

GUIDE = (project.ROOT / report_samples.GUIDE).read_text()
EXAMPLE = json.loads((project.ROOT / report_samples.EXAMPLE_FILE).read_text())
REPORT = drift.read(EXAMPLE)
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


def test_the_rows_it_explains_are_those_of_the_example() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    text = (project.ROOT / report_samples.EXAMPLE_FILE).read_text()
    assert all(f"  {line}\n" in text for line in shown.splitlines())


def commands(program: str) -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line.startswith(f"{program} ")]


@pytest.mark.skipif(not shutil.which("jq"), reason="no jq on this machine")
def test_jq_gives_the_links_of_a_report(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(files.contents(report_samples.railed())[files.JSON])
    folder = project.ROOT / "docs" / "examples"

    def run(*arguments: str) -> list[dict[str, object]]:
        told = [str(folder) if one == "docs/examples" else one for one in arguments]
        done = subprocess.run(["jq", *told], check=True, cwd=tmp_path, capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    railed = report_samples.railed()
    for key in ("mesh", "latency_ms", "bytes_per_second", "retransmits"):
        found = run("-c", "-L", "docs/examples", f'include "links"; links("{key}")', "report.json")
        assert {(one["from"], one["to"]): one["value"] for one in found} == {
            (source, target): value for source, row in railed[key].items() for target, value in row.items()
        }
    asked = commands("jq")
    assert len(asked) == 3
    unreached, speeds, slowest = (run(*one[1:]) for one in asked)
    assert unreached == [] and len(speeds) == 7
    values = [value for row in railed["rails"][0]["latency_ms"].values() for value in row.values()]
    assert [one["value"] for one in slowest] == [max(values)]
    (whole,) = re.findall(r"`jq -c '(.+?)' report.json`", GUIDE)
    assert {one["state"] for one in run("-c", whole, "report.json")} == {"finished"}


def test_python_gives_the_links_of_a_node(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(compact.pack(REPORT)))
    (program,) = re.findall(r"python3 -c '\n(.*?)'\n```", GUIDE, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"{REPORT['mesh']['gpu02']}\n"


def test_the_files_of_the_table_are_those_that_are_written() -> None:
    table = GUIDE.split("| file | for |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(.+?)`", table, re.MULTILINE)) == set(files.contents(REPORT))


def test_the_letters_of_the_table_are_those_of_the_grid() -> None:
    table = GUIDE.split("| letter | meaning |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(.)` \|", table, re.MULTILINE) == list(words.MEANING)


def test_the_texts_it_shows_are_printed() -> None:
    """The lines of its finding and its grid, in their order; it leaves some out."""
    printed = iter(console.lines(REPORT))
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
