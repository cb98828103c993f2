# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports lie beside every kind of inventory, and Ansible never reads them as one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import report_samples
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader

from ansible_collections.baremetal.gpu_cluster.plugins.filter.report_folder import report_folder
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import files, place

HOSTS = "gpu_cluster:\n  hosts:\n    n1:\n    n2:\n"


@pytest.fixture(name="site")
def a_folder_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a link to its inventory, an inventory of one file, and a folder that init has made."""
    for name in ("inventories/prod/hosts.yml", "flat/a.yml", "flat/b.yml", "made/prod/hosts.yml", "old/site.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(HOSTS)
    (tmp_path / "inventories/prod/group_vars").mkdir()
    (tmp_path / "prod").symlink_to("inventories/prod")
    (tmp_path / "made/ansible.cfg").touch()
    (tmp_path / "made/my.yml").write_text(HOSTS)
    (tmp_path / "made/group_vars").mkdir()
    (tmp_path / "old/group_vars").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("sources", "folder"),
    [
        (["inventories/prod"], "inventories/reports/prod"),
        (["prod"], "inventories/reports/prod"),
        (["prod/"], "inventories/reports/prod"),
        (["prod/hosts.yml"], "inventories/reports/prod"),
        (["flat/a.yml"], "flat/reports/a"),
        (["made/prod"], "made/reports/prod"),
        (["made/prod/hosts.yml"], "made/reports/prod"),
        (["made/my.yml"], "made/reports/my"),
        (["old/site.yml"], "reports/old"),
        (["flat/a.yml", "flat/b.yml"], "flat/reports/a+b"),
        (["n1,n2,", "flat/b.yml"], "flat/reports/b"),
        (["n1,n2,"], "reports/hosts"),
        ([*["flat/a.yml"] * 60], "flat/reports/" + "a+" * 50),
    ],
)
def test_where_the_reports_are(sources: list[str], folder: str, site: Path) -> None:
    assert report_folder([str(site / one) if "/" in one else one for one in sources]) == str(site / folder)
    assert place.beside(sources, str(site)) == str(site / folder)


def test_nothing_is_beside_nothing(site: Path) -> None:
    assert report_folder([]) == report_folder([""]) == "" and place.beside(["/"], str(site)) == "/reports/inventory"


def test_runs_of_a_part_have_a_folder_of_their_own() -> None:
    assert place.part("/r/prod", check_mode=False, limited=False) == "/r/prod"
    assert place.part("/r/prod", check_mode=False, limited=True) == "/r/prod/limit"
    assert place.part("/r/prod", check_mode=True, limited=True) == "/r/prod/check"


@pytest.mark.parametrize(
    "source",
    ["inventories/prod", "prod", "prod/hosts.yml", "flat/a.yml", "made/prod", "made/prod/hosts.yml", "made/my.yml"],
)
def test_ansible_reads_no_report_as_inventory(source: str, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither that inventory, nor the folder that an inventory file is in where that is an inventory."""
    folder = Path(place.beside([str(site / source)], str(site)))
    for name, text in files.contents(report_samples.healthy(2)).items():
        for kept in (folder, folder / place.LIMITED):
            kept.mkdir(parents=True, exist_ok=True)
            (kept / name).write_text(text)
    for one in {source, "made/prod", "inventories/prod"}:
        found = InventoryManager(DataLoader(), sources=[str(site / one)])
        assert set(found.get_groups_dict()) == {"all", "gpu_cluster", "ungrouped"}, json.dumps(found.get_groups_dict())
    assert "Unable to parse" not in capsys.readouterr().err
