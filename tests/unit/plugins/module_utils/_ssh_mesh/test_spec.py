# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input, all of it at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import spec

GOOD: dict[str, Any] = {
    "members": [{"name": "n1"}, {"name": "n2"}],
    "extra_names": {"n1": ["n1.cluster.example", "fd00::11"]},
    "user": "train",
    "ports": [22, 2222],
    "validity_days": 365,
    "renew_days": 90,
    "max_startups": 256,
    "max_sessions": 128,
}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"user": "root"}, "ssh_mesh_user"),
    ({"user": "Train User"}, "ssh_mesh_user"),
    ({"ports": []}, "ssh_mesh_ports"),
    ({"ports": [22, 22]}, "ssh_mesh_ports"),
    ({"ports": [0]}, "ssh_mesh_ports"),
    ({"validity_days": 4000}, "ssh_mesh_validity_days"),
    ({"renew_days": -1}, "ssh_mesh_renew_days"),
    ({"renew_days": 365}, "ssh_mesh_renew_days"),
    ({"max_startups": 9}, "ssh_mesh_max_startups"),
    ({"max_sessions": 0}, "ssh_mesh_max_sessions"),
    ({"members": []}, "ssh_mesh_members"),
    ({"members": [{"name": "n2"}], "extra_names": {}}, "ssh_mesh_members"),
    ({"extra_names": {"n9": ["x"]}}, "ssh_mesh_extra_names[n9]"),
    ({"extra_names": {"n1": "alone"}}, "ssh_mesh_extra_names[n1]"),
    ({"extra_names": {"n1": ["a,b"]}}, "ssh_mesh_extra_names[n1]"),
    ({"extra_names": {"n1": ["*.example"]}}, "ssh_mesh_extra_names[n1]"),
    ({"extra_names": {"n1": ["N2"]}}, "ssh_mesh_extra_names[n1]"),
    ({"extra_names": {"n1": ["x"], "n2": ["x"]}}, "ssh_mesh_extra_names[n2]"),
]


def test_good_input() -> None:
    assert spec.problems(GOOD, "n1") == []


@pytest.mark.parametrize(("change", "variable"), BAD)
def test_bad_input(change: dict[str, Any], variable: str) -> None:
    (problem,) = spec.problems({**GOOD, **change}, "n1")
    assert problem.variable == variable
    assert problem.rule and problem.fix


def test_all_at_once() -> None:
    found = spec.problems({**GOOD, "user": "", "ports": [], "max_sessions": 0}, "n1")
    assert [problem.variable for problem in found] == ["ssh_mesh_user", "ssh_mesh_ports", "ssh_mesh_max_sessions"]


def test_where_the_authority_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ops")
    assert (
        spec.authority_folder("", "/srv/inventories/prod", ["/srv/inventories/prod"]) == "/srv/inventories/prod/.ssh_ca"
    )
    assert spec.authority_folder("/srv/ca", None, ["a", "b"]) == "/srv/ca"
    assert spec.authority_folder("~/ca", None, []) == "/home/ops/ca"


def test_hosts_in_folders_of_one_inventory_have_one_authority(tmp_path: Path) -> None:
    racks = [tmp_path / "rack1", tmp_path / "rack2"]
    found = [spec.authority_folder("", str(rack), [str(tmp_path)]) for rack in racks]
    assert found == [str(tmp_path / ".ssh_ca")] * 2
    file = tmp_path / "hosts.yml"
    file.write_text("")
    assert spec.authority_folder("", str(tmp_path), [str(file)]) == str(tmp_path / ".ssh_ca")


@pytest.mark.parametrize(
    ("given", "folder", "sources"), [("ca", "/srv", ["a"]), ("", None, ["n1,"]), ("", "/a", ["a", "b"])]
)
def test_nowhere_to_live(given: str, folder: Any, sources: list[str]) -> None:
    with pytest.raises(ValueError, match="ssh_mesh_ca_dir"):
        spec.authority_folder(given, folder, sources)
