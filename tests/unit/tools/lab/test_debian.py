# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the packages of the lab come from, on a machine with another release of Debian and on one with Ubuntu."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import other_debian
import pytest
from lab import debian
from lab.debian import Mirror
from lab.shell import LabError

KEYRING = Path("/keys/debian.gpg")
#: What `apt-get indextargets` lists: Origin, Label and address of each source.
TRIXIE = (
    "Debian\tDebian\thttp://mirror.example/debian/\nDebian\tDebian\thttp://mirror.example/debian/\n"
    "Debian\tDebian-Security\thttp://mirror.example/debian-security/\nNodeSource\tnode\thttps://node.example/\n"
)
NOBLE = "Ubuntu\tUbuntu\thttp://archive.example/ubuntu/\nUbuntu\tUbuntu\thttp://security.example/ubuntu/\n"


def test_the_mirror_of_another_release_is_used_for_the_labs() -> None:
    found = debian.mirror_in(TRIXIE)
    assert found == Mirror("http://mirror.example/debian/", "http://mirror.example/debian-security/")
    assert found.lines("bookworm", KEYRING) == [
        "deb [signed-by=/keys/debian.gpg] http://mirror.example/debian/ bookworm main",
        "deb [signed-by=/keys/debian.gpg] http://mirror.example/debian/ bookworm-updates main",
        "deb [signed-by=/keys/debian.gpg] http://mirror.example/debian-security/ bookworm-security main",
    ]


def test_a_mirror_without_security_updates_is_used_without_them() -> None:
    found = debian.mirror_in("Debian\tDebian\tfile:/srv/debian/\n")
    assert found == Mirror("file:/srv/debian/") and len(found.lines("bookworm", KEYRING)) == 2


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What apt lists, one text for each time that it is asked; after `apt-get update` the next."""
    texts: list[str] = []

    def run(argv: list[str], **_others: object) -> SimpleNamespace:
        if "update" in argv:
            texts.pop(0)
        return SimpleNamespace(stdout=texts[0])

    monkeypatch.delenv(debian.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr(debian, "run", run)
    return texts


def test_a_machine_that_never_asked_its_mirror_does_so_first(listed: list[str]) -> None:
    listed += ["", TRIXIE]
    assert debian.mirror("bookworm").archive == "http://mirror.example/debian/"


def test_ubuntu_is_asked_for_a_mirror_of_debian(listed: list[str]) -> None:
    listed += [NOBLE, NOBLE]
    with pytest.raises(LabError, match=r"apt has no mirror of Debian.*name one, as in LAB_DEBIAN_MIRROR=http://"):
        debian.mirror("bookworm")


def test_a_site_without_internet_names_its_mirror(listed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(debian.MIRROR_VARIABLE, "http://site.example/debian")
    assert debian.mirror("bookworm") == Mirror("http://site.example/debian")


def test_the_keyring_comes_from_its_package_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Under either of its names."""
    files = (tmp_path / "archive.gpg", tmp_path / "archive.pgp")
    installed: list[str] = []
    monkeypatch.setattr(debian.host, "install", installed.append)
    with pytest.raises(LabError, match=r"cannot verify packages of Debian bookworm: .* debian-archive-keyring"):
        debian.keyring("bookworm", files)
    assert installed == [debian.KEYRING_PACKAGE]
    files[1].touch()
    assert debian.keyring("bookworm", files) == files[1] and installed == [debian.KEYRING_PACKAGE]
    files[0].touch()
    assert debian.keyring("bookworm", files) == files[0]


def test_a_running_lab_is_not_taken_for_a_leftover_of_the_one_inside() -> None:
    other_debian.refuse_a_running_lab([])
    with pytest.raises(LabError, match=r"a lab is up on this machine \(gpulab-mgmt\): run `make lab-down vm-down`"):
        other_debian.refuse_a_running_lab(["gpulab-mgmt"])


def test_what_leads_to_package_indexes_is_known_inside_and_nothing_else() -> None:
    outside = {"PIP_CERT": "/c", "https_proxy": "http://p", "PYENV_ROOT": "/pyenv", "PATH": "/pyenv/shims"}
    found = other_debian.environment(outside, [Path("/etc/ssl/certs"), Path("/srv/wheels")])
    assert found["PIP_CERT"] == "/c" and found["https_proxy"] == "http://p" and "PYENV_ROOT" not in found
    assert "shims" not in found["PATH"] and found["SHARED"] == "/etc/ssl/certs /srv/wheels"
