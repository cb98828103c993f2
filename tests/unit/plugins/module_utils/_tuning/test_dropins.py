# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders of configuration files: which ones count, in which order, and what is read."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import dropins
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.dropins import ConfFile

FOLDERS = ("/etc/x.d", "/run/x.d", "/usr/lib/x.d")


def paths(files: list[ConfFile]) -> list[str]:
    return [file.path for file in files]


def test_by_name_and_of_one_name_that_of_the_first_folder() -> None:
    files = [ConfFile(path, "") for path in ("/etc/x.d/50-b.conf", "/run/x.d/10-a.conf", "/usr/lib/x.d/50-b.conf")]
    assert paths(dropins.in_order(files)) == ["/run/x.d/10-a.conf", "/etc/x.d/50-b.conf"]


def test_our_file_takes_its_place_before_it_is_written() -> None:
    files = [ConfFile(path, "") for path in ("/run/x.d/90-o.conf", "/usr/lib/x.d/99-z.conf", "/usr/lib/x.d/10-a.conf")]
    own = ConfFile("/etc/x.d/90-o.conf", "new")
    assert paths(dropins.in_order(files, own, FOLDERS)) == [
        "/usr/lib/x.d/10-a.conf",
        own.path,
        "/usr/lib/x.d/99-z.conf",
    ]
    assert own in dropins.in_order([ConfFile(own.path, "old")], own, FOLDERS)


def test_a_file_of_ours_in_a_late_folder_is_masked() -> None:
    own = ConfFile("/usr/lib/x.d/90-o.conf", "new")
    assert paths(dropins.in_order([ConfFile("/run/x.d/90-o.conf", "")], own, FOLDERS)) == ["/run/x.d/90-o.conf"]


def test_reading_follows_links_and_skips_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("b\n")
    (tmp_path / "a.conf").symlink_to(tmp_path / "b.conf")
    (tmp_path / "c.conf").symlink_to(tmp_path / "missing")
    (tmp_path / "d.txt").write_text("d\n")
    (tmp_path / "e.conf").mkdir()
    found = dropins.read([str(tmp_path), str(tmp_path / "no-such-folder")])
    assert [(file.name, file.text) for file in found] == [("a.conf", "b\n"), ("b.conf", "b\n")]
    assert found[0].shown() == f"{tmp_path}/a.conf (a link to {tmp_path}/b.conf)"
    assert found[1].shown() == f"{tmp_path}/b.conf"


def test_the_last_assignment_of_a_section_wins() -> None:
    first = ConfFile("/a", "[Manager]\nX=1\nY = 2\n[Other]\nX=3\n")
    second = ConfFile("/b", "X=0\n[Manager]\n# X=4\n;X=5\nY=\n")
    assert dropins.last_assignments([first, second], "Manager") == {"X": ("1", first), "Y": ("", second)}


def test_a_drop_in_has_its_reasons() -> None:
    assert dropins.mapping_text("Login", "# ours", {"RemoveIPC": ("no", "two\nlines")}) == (
        "# ours\n[Login]\n# two lines\nRemoveIPC=no\n"
    )
