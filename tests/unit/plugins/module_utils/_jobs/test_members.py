# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which members are asked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import ask, members, processes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.members import Cluster, Member
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher import cluster, variables
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher import paths as run_paths
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import paths

THREE = Cluster((Member("n1", "192.0.2.11"), Member("n2", "192.0.2.12"), Member("n3", "192.0.2.13")), 22)


def test_all_or_those_of_a_range() -> None:
    assert members.chosen(THREE, None) == list(THREE.members)
    assert [one.name for one in members.chosen(THREE, "n[2-3],n2,n1")] == ["n2", "n3", "n1"]


@pytest.mark.parametrize(
    ("text", "words"), [("n[3-4]", "'n4' is no member, these are: n1, n2, n3"), ("", "at least one")]
)
def test_no_members(text: str, words: str) -> None:
    with pytest.raises(members.BadInputError) as caught:
        members.chosen(THREE, text)
    assert len(caught.value.problems) == 1 and words in caught.value.problems[0]


def function(name: str, text: str) -> str:
    """The body of a function."""
    found = re.search(rf"^def {name}\(.*?^    (?!\"\"\")(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found.group(1).strip().replace("MAX_NODES", "MOST")


def test_ranges_are_those_of_gpu_cluster_run() -> None:
    assert function("expand", Path(cluster.__file__).read_text()) == function(
        "expand", Path(members.__file__).read_text()
    )


def test_both_programs_know_each_other() -> None:
    assert ask.PROGRAM == paths.QUEUE == run_paths.QUEUE
    assert processes.MARK.decode() == f"{variables.MARK}="
    assert paths.PROGRAM.endswith(f"/{processes.PROGRAM}")


def test_the_members_of_this_node(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    found = {"schema": 1, "ssh_port": 2222, "members": [{"name": "n1", "address": "192.0.2.11", "slots": 8}]}
    path.write_text(json.dumps(found))
    assert members.read(str(path)) == Cluster((Member("n1", "192.0.2.11"),), 2222)
    for broken in (
        "{",
        "[]",
        json.dumps({**found, "schema": 2}),
        json.dumps({**found, "members": []}),
        '{"schema": 1}',
    ):
        path.write_text(broken)
        with pytest.raises(members.BadInputError, match="--tags launcher"):
            members.read(str(path))
    with pytest.raises(members.BadInputError, match="No such file"):
        members.read(str(tmp_path / "away"))
