# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module launcher_files as Ansible runs it, on a real file system: all files or none, files of others, check mode."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import paths, plan, replacement
from ansible_collections.baremetal.gpu_cluster.plugins.modules import launcher_files

PROGRAM = "#!/usr/bin/python3\n# baremetal.gpu_cluster\n"
PATHS = (paths.ENVIRONMENT, paths.HOSTFILE, paths.CLUSTER, paths.PROGRAM, paths.PROFILE)
ARGUMENTS = {
    "node": "gpu01",
    "members": [
        {"name": "gpu01", "fabric_address": "192.0.2.11", "fabric_prefix": 24, "fabric_interface": "ens1"},
        {"name": "gpu02", "fabric_address": "192.0.2.12", "fabric_prefix": 24},
    ],
    "user": "train",
    "python": "/opt/torch/bin/python",
    "mpirun": "/usr/bin/mpirun",
    "rendezvous": {"first": 29400, "last": 29599},
    "program": PROGRAM,
}


def link(
    name: str = "fab0", address: str = "192.0.2.11", flags: tuple[str, ...] = ("UP", "LOWER_UP")
) -> dict[str, Any]:
    """One entry of what ip prints."""
    return {"ifname": name, "flags": list(flags), "addr_info": [{"local": address}]}


#: The disk is full when this file has been written, or it cannot be put into its place.
FULL_DISK = """
files = iter({paths!r})
def full(descriptor):
    if next(files) == {path!r}:
        raise OSError(28, "No space left on device")
replacement.os.fsync = full
"""
STUCK = """
really = replacement.commit
def stuck(mover, change, temporary):
    really(mover, change, temporary)
    if change.file.path.endswith({path!r}):
        raise OSError(1, "Operation not permitted")
replacement.commit = stuck
"""


def run(root: Path, *links: dict[str, Any], failing: str = "", **changes: Any) -> dict[str, Any]:
    """Run the module with its files below this folder, on a node with these interfaces."""
    answer = root.parent / "links.json"
    answer.write_text(json.dumps(list(links) or [link()]))
    given = json.dumps({"ANSIBLE_MODULE_ARGS": {**ARGUMENTS, **changes}})
    # 2.19 wants to be told how its arguments are written.
    start = (
        "import sys; from ansible.module_utils import basic; basic._ANSIBLE_ARGS = sys.stdin.buffer.read();"
        "basic._ANSIBLE_PROFILE = 'legacy'; "
        f"import {launcher_files.__name__} as module, {plan.__name__} as plan, {replacement.__name__} as replacement; "
        f"plan.ROOT = {str(root)!r}; plan.fabric.COMMAND = ['cat', {str(answer)!r}]\n"
        f"{failing}\n"
        "module.main()"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(entry for entry in sys.path if entry))
    done = subprocess.run(
        [sys.executable, "-c", start], input=given.encode(), capture_output=True, check=False, env=environment
    )
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def tree(root: Path) -> dict[str, tuple[str, int]]:
    """All files with their text and mode."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {f"/{path.relative_to(root)}": (path.read_text(), stat.S_IMODE(path.stat().st_mode)) for path in files}


@pytest.fixture(name="root")
def fixture_root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def test_users_read_it_under_a_strict_umask(root: Path) -> None:
    before = os.umask(0o077)
    try:
        run(root)
    finally:
        os.umask(before)
    folder = root / paths.CLUSTER[1:]
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o755
    assert stat.S_IMODE(folder.stat().st_mode) == 0o644


def test_written_once(root: Path) -> None:
    announced = run(root, _ansible_check_mode=True)
    assert announced["changed"] is True and tree(root) == {}
    done = run(root)
    assert done["changed"] is True and done["diff"] == announced["diff"] and done["interface"] == "fab0"
    files = tree(root)
    assert sorted(files) == sorted(PATHS)
    assert {path: mode for path, (_text, mode) in files.items() if mode != 0o644} == {paths.PROGRAM: 0o755}
    assert files[paths.PROGRAM][0] == PROGRAM
    assert "NCCL_SOCKET_IFNAME==fab0\n" in files[paths.ENVIRONMENT][0]
    before = {path: (root / path[1:]).stat().st_mtime_ns for path in files}
    again = run(root)
    assert again["changed"] is False and again["diff"] == []
    assert before == {path: (root / path[1:]).stat().st_mtime_ns for path in files}


def test_nodes_may_name_their_cards_differently_and_share_the_rest(root: Path, tmp_path: Path) -> None:
    run(root)
    other = tmp_path / "other"
    other.mkdir()
    run(other, link("lo", "127.0.0.1"), link("ens1f0", "192.0.2.12"), node="gpu02")
    first, second = tree(root), tree(other)
    assert {path for path in first if first[path] != second[path]} == {paths.ENVIRONMENT, paths.PROFILE}
    assert "GLOO_SOCKET_IFNAME=ens1f0\nNCCL_SOCKET_IFNAME==ens1f0\n" in second[paths.ENVIRONMENT][0]


def test_a_mode_that_was_changed_is_put_right(root: Path) -> None:
    run(root)
    (root / paths.PROGRAM[1:]).chmod(0o777)
    assert run(root)["changed"] is True
    assert tree(root)[paths.PROGRAM][1] == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_program_that_belongs_to_a_user_is_taken_back(root: Path) -> None:
    run(root)
    os.chown(root / paths.PROGRAM[1:], 4000, 4000)
    assert run(root)["changed"] is True
    assert (root / paths.PROGRAM[1:]).stat().st_uid == 0


def test_the_profile_can_be_left_out(root: Path) -> None:
    run(root)
    assert run(root, profile_enabled=False)["changed"] is True
    assert paths.PROFILE not in tree(root)
    assert run(root, profile_enabled=False)["changed"] is False


def test_files_of_somebody_else_are_kept_and_named(root: Path) -> None:
    program = root / paths.PROGRAM[1:]
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho mine\n")
    result = run(root)
    assert result["kept"] == [f"{program}{replacement.KEPT_SUFFIX}"]
    assert "was not ours" in json.dumps(result["warnings"])
    assert Path(result["kept"][0]).read_text() == "#!/bin/sh\necho mine\n" and program.read_text() == PROGRAM
    # A second one would overwrite the first.
    program.write_text("#!/bin/sh\necho mine too\n")
    refused = run(root)
    assert refused["failed"] is True and "is there already" in refused["msg"]
    assert program.read_text() == "#!/bin/sh\necho mine too\n"


def test_a_foreign_profile_stays_where_none_is_wanted(root: Path) -> None:
    profile = root / paths.PROFILE[1:]
    profile.parent.mkdir(parents=True)
    profile.write_text("export MINE=1\n")
    run(root, profile_enabled=False)
    assert profile.read_text() == "export MINE=1\n"


@pytest.mark.parametrize("what", ["folder", "link", "no folder above"])
def test_what_is_no_plain_file_is_refused(root: Path, what: str) -> None:
    path = root / paths.PROGRAM[1:]
    path.parent.parent.mkdir(parents=True)
    if what == "no folder above":
        path.parent.write_text("")
    else:
        path.parent.mkdir()
    if what == "folder":
        path.mkdir()
    elif what == "link":
        path.symlink_to("/nonexistent")
    before = tree(root)
    result = run(root)
    assert result["failed"] is True and replacement.ERR_NO_FILE in result["msg"]
    assert tree(root) == before


@pytest.mark.parametrize("failing", [FULL_DISK, STUCK], ids=["full", "stuck"])
@pytest.mark.parametrize("path", PATHS)
def test_a_file_that_cannot_be_written_leaves_none_changed(root: Path, path: str, failing: str) -> None:
    run(root)
    # One that only has another mode, one that is missing, and one of somebody else.
    (root / paths.HOSTFILE[1:]).chmod(0o600)
    (root / paths.PROFILE[1:]).unlink()
    (root / paths.PROGRAM[1:]).write_text("mine\n")
    before = tree(root)
    result = run(root, failing=failing.format(path=path, paths=PATHS), slots=4)
    assert result["failed"] is True and result["msg"].startswith(f"{root}{path} could not be written: ")
    assert tree(root) == before


@pytest.mark.parametrize(
    ("links", "rule"),
    [
        ([link("eth0", "198.51.100.1")], "no interface of this node has this address, it has eth0 198.51.100.1"),
        ([link(flags=())], "fab0 has this address and is down"),
    ],
)
def test_a_node_without_its_address_is_refused(root: Path, links: list[dict[str, Any]], rule: str) -> None:
    result = run(root, *links)
    assert result["failed"] is True and rule in result["msg"]
    assert tree(root) == {}


def test_check_mode_takes_the_name_of_the_inventory_before_the_network_is_there(root: Path) -> None:
    result = run(root, link("lo", "127.0.0.1"), _ansible_check_mode=True)
    assert result["changed"] is True and result["interface"] == "ens1"
    assert "no interface has 192.0.2.11 yet" in json.dumps(result["warnings"])


def test_everything_wrong_is_named_and_nothing_changes(root: Path) -> None:
    result = run(
        root,
        user="root",
        environment={"RANK": 0},
        host_environment={"A-B": 1},
        program="#!/bin/sh\n",
    )
    assert result["msg"].startswith("Nothing was changed.\n")
    assert [problem["variable"] for problem in result["problems"]] == [
        "launcher_user",
        "launcher_environment[RANK]",
        "launcher_host_environment[A-B]",
        "launcher_program",
    ]
    assert tree(root) == {}


def test_what_contradicts_the_node_is_refused_too(root: Path) -> None:
    result = run(root, fabric_address="192.0.2.99/24", host_environment={"GLOO_SOCKET_IFNAME": "eth9"})
    assert [problem["variable"] for problem in result["problems"]] == [
        "launcher_fabric_address",
        "launcher_host_environment[GLOO_SOCKET_IFNAME]",
        "launcher_host_environment[GLOO_SOCKET_IFNAME]",
    ]


def test_the_example_of_the_documentation(root: Path) -> None:
    (task,) = yaml.safe_load(launcher_files.EXAMPLES)
    given = dict(task["baremetal.gpu_cluster.launcher_files"], node="gpu01", program=PROGRAM)
    result = run(root, **given)
    assert result["changed"] is True
    assert result["environment"]["WORLD_SIZE"] == "16" and result["environment"]["NCCL_DEBUG"] == "WARN"


def slots_in(root: Path) -> list[int]:
    """What the written file has for each member."""
    found = json.loads((root / paths.CLUSTER[1:]).read_text())
    return [member["slots"] for member in found["members"]]


def test_a_run_that_counts_on_some_members_keeps_the_numbers_of_the_others(root: Path) -> None:
    run(root, slots={"gpu01": 8, "gpu02": 4})
    again = run(root, slots={"gpu01": 8, "gpu02": -1})
    assert not again["changed"] and not again.get("warnings") and slots_in(root) == [8, 4]
    assert not run(root, slots=-1)["changed"]
    run(root, slots={"gpu01": 2, "gpu02": -1})
    assert slots_in(root) == [2, 4]


def test_a_new_node_takes_its_own_number_for_the_others_and_says_so(root: Path) -> None:
    result = run(root, slots={"gpu01": 8, "gpu02": -1})
    assert slots_in(root) == [8, 8]
    (warning,) = map(str, result["warnings"])
    assert "counted the GPUs of gpu02" in warning and "8 rank(s)" in warning and "gpu_cluster_gpus" in warning
