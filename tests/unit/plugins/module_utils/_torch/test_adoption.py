# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment of somebody else: looked at as an ordinary user, linked, and never written to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import trust
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.store import Store

ANSWER = '{"torch": "%s", "cuda": null, "nccl": null, "gloo": %s}'


class Site:
    """A folder that everybody can enter, with an environment whose interpreter is a script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = folder / "env"
        self.asked = folder / "asked"
        (self.env / "bin").mkdir(parents=True)
        (self.env / "lib" / "python3.12" / "site-packages" / "torch-2.13.0.dist-info").mkdir(parents=True)
        (self.env / "pyvenv.cfg").touch()
        self.asked.touch()
        self.asked.chmod(0o666)
        self.answers()

    def answers(self, version: str = "2.13.0+cu130", gloo: str = "true") -> None:
        """What the import of torch says from now on; each import is noted."""
        python = self.env / "bin" / "python"
        python.write_text(f"#!/bin/sh\nid -u >> {self.asked}\necho '{ANSWER % (version, gloo)}'\n")
        python.chmod(0o755)

    def adopt(self, path: str = "", check_mode: bool = False, **changes: Any) -> dict[str, Any]:
        params = {
            "prefix": str(self.folder / "torch"),
            "requirements": ["torch==2.13.0"],
            "lock": "",
            "lock_name": "the lock",
            "adopt": path or str(self.env),
            "find_links": "",
            "index_url": "",
            "proxy": "",
            "install_timeout_seconds": 10,
            "verify_timeout_seconds": 10,
            "wait_seconds": 0,
            "keep": 1,
            **changes,
        }
        return run.outcome(params, check_mode, str(self.folder))

    def refused(self, path: str = "", **changes: Any) -> str:
        with pytest.raises(run.RefusedError) as caught:
            self.adopt(path, **changes)
        return str(caught.value)

    @property
    def content(self) -> list[tuple[str, int, int]]:
        """Everything in the environment: names, sizes, times."""
        found = [self.env, *sorted(self.env.rglob("*"))]
        return [(str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in found]


@pytest.fixture
def site() -> Iterator[Site]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield Site(folder)
    shutil.rmtree(folder)


def test_it_is_verified_once_and_linked(site: Site) -> None:
    before = site.content
    first, second = site.adopt(), site.adopt()
    assert (first["changed"], second["changed"]) == (True, False)
    assert os.readlink(site.folder / "torch") == str(site.env)
    assert (
        first["verified"] == second["verified"] == {"torch": "2.13.0+cu130", "cuda": None, "nccl": None, "gloo": True}
    )
    assert second["packages"] == {"torch": "2.13.0+cu130"}
    assert site.content == before
    user = trust.NOBODY if os.geteuid() == 0 else str(os.geteuid())
    assert site.asked.read_text().split() == [user], "one import, as an ordinary user"
    site.adopt(requirements=[])
    assert site.asked.read_text().split() == [user] * 2, "something else is wanted of it"


def test_one_that_has_changed_is_verified_again(site: Site) -> None:
    site.adopt()
    (site.env / "lib" / "python3.12" / "site-packages" / "torch-2.13.0.dist-info").rename(
        site.env / "lib" / "python3.12" / "site-packages" / "torch-2.12.0.dist-info"
    )
    site.answers("2.12.0")
    said = site.refused()
    assert "torch says that it is 2.12.0, and wanted is torch==2.13.0" in said
    assert said.endswith(f"{site.folder}/torch still names {site.env}.")


def test_check_mode_verifies_and_changes_nothing(site: Site) -> None:
    found = site.adopt(check_mode=True)
    assert found["changed"]
    assert found["diff"]["after"] == f"{site.env}\ntorch==2.13.0+cu130\n"
    assert sorted(os.listdir(site.folder)) == ["asked", "env"]
    site.answers(gloo="false")
    assert "torch 2.13.0+cu130 has no Gloo" in site.refused(check_mode=True)


def test_any_version_is_taken_when_none_is_pinned(site: Site) -> None:
    site.answers("1.0")
    assert site.adopt(requirements=[])["verified"]["torch"] == "1.0"


def test_a_conda_prefix_is_taken(site: Site) -> None:
    (site.env / "pyvenv.cfg").rename(site.env / "conda-meta")
    assert site.adopt()["changed"]


def test_what_is_no_environment_is_refused_with_the_reason(site: Site) -> None:
    assert "is no whole path of a folder on this node" in site.refused("env")
    assert "is no whole path of a folder on this node" in site.refused(str(site.folder / "none"))
    (site.env / "pyvenv.cfg").unlink()
    (site.env / "bin" / "python").chmod(0o644)
    said = site.refused()
    assert "has no pyvenv.cfg" in said
    assert "has no bin/python that can be run" in said
    assert said.endswith(f"There is no {site.folder}/torch yet.")
    assert not (site.folder / "torch").is_symlink()


def test_one_that_ordinary_users_cannot_enter_is_refused(site: Site) -> None:
    site.env.chmod(0o700)
    assert f"ordinary users cannot enter {site.env}, so they cannot use {site.env}. Fix: chmod o+x" in site.refused()


def test_one_that_cannot_be_imported_is_refused_with_what_it_says(site: Site) -> None:
    (site.env / "bin" / "python").write_text("#!/bin/sh\necho 'No module named torch' >&2\nexit 1\n")
    assert "as an ordinary user, the import of torch in" in site.refused()
    assert "No module named torch" in site.refused()


def test_our_own_environments_are_not_adopted(site: Site) -> None:
    own = site.folder / "torch-0123456789ab"
    site.env.rename(own)
    assert "is an environment of this module" in site.refused(str(own))
    (site.folder / "torch").symlink_to(own.name)
    assert "is an environment of this module" in site.refused(str(site.folder / "torch"))


def test_what_was_built_stays_to_go_back_to(site: Site) -> None:
    built = site.folder / "torch-0123456789ab"
    built.mkdir()
    store = Store(str(site.folder / "torch"))
    store.record(built.name, {"inputs": {}, "lock": "", "packages": {}, "verified": {}})
    store.switch(built.name)
    assert site.adopt()["diff"]["before"] == f"{built}\n"
    assert site.adopt()["removed"] == []
    assert built.is_dir()
