# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The authority of etcd with the real openssl."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._etcd import authority

MEMBERS = {"n1": "192.0.2.11", "n2": "2001:db8::a:12", "n3": "192.0.2.13"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> authority.Authority:
    ca = authority.Authority(str(tmp_path_factory.mktemp("etcd") / "ca"))
    assert set(ca.ensure(MEMBERS)) == {"ca", "client", "member-n1", "member-n2", "member-n3"}
    return ca


def text_of(path: Path) -> str:
    argv = ["openssl", "x509", "-in", str(path), "-noout", "-text"]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout


def test_nobody_else_reads_the_keys(made: authority.Authority) -> None:
    folder = Path(made.folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    keys = list(folder.glob("*.key"))
    assert len(keys) == 5 and {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert "*.key" in (folder / ".gitignore").read_text()
    assert not list(folder.glob(".new-*"))


def test_a_member_is_a_server_and_a_client_and_no_client_is_a_member(made: authority.Authority) -> None:
    member, client = (text_of(Path(made.folder) / f"{name}.crt") for name in ("member-n1", "client"))
    assert "TLS Web Server Authentication, TLS Web Client Authentication" in member
    assert "DNS:n1, IP Address:192.0.2.11" in member and authority.MEMBER_CN in member
    assert "Server Authentication" not in client and "Subject Alternative Name" not in client
    assert authority.MEMBER_CN not in client


def test_a_second_run_makes_nothing(made: authority.Authority) -> None:
    assert made.ensure(MEMBERS) == {}


def test_what_is_missing_expires_or_does_not_fit_is_made_again(made: authority.Authority) -> None:
    folder = Path(made.folder)
    assert made.ensure({**MEMBERS, "n3": "192.0.2.33"}, dry=True) == {"member-n3": authority.OTHER}
    assert authority.Authority(made.folder, 365, 364).ensure(MEMBERS, dry=True) == {}
    soon = authority.Authority(made.folder, 400, 366).ensure(MEMBERS, dry=True)
    assert set(soon) == {"client", "member-n1", "member-n2", "member-n3"} and "366 days" in soon["client"]
    (folder / "client.key").write_bytes((folder / "member-n1.key").read_bytes())
    (folder / "member-n2.crt").unlink()
    before = (folder / "member-n1.crt").read_bytes()
    assert made.ensure(MEMBERS) == {"client": authority.OTHER, "member-n2": authority.NEW}
    assert made.ensure(MEMBERS) == {} and (folder / "member-n1.crt").read_bytes() == before


def test_check_mode_makes_nothing(tmp_path: Path) -> None:
    found = authority.Authority(str(tmp_path / "ca")).ensure(MEMBERS, dry=True)
    assert set(found) == {"ca", "client", "member-n1", "member-n2", "member-n3"} and not list(tmp_path.iterdir())


def test_half_an_authority_is_refused(made: authority.Authority, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes((Path(made.folder) / "ca.crt").read_bytes())
    with pytest.raises(authority.AuthorityError, match=r"ca\.key is missing"):
        authority.Authority(str(tmp_path)).ensure(MEMBERS)


def test_an_authority_that_expires_before_its_certificates_is_refused(made: authority.Authority) -> None:
    with pytest.raises(authority.AuthorityError, match="expires in less than 3651 days"):
        authority.Authority(made.folder, 3651).ensure(MEMBERS)


def test_without_openssl_the_message_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(authority.AuthorityError, match="openssl is not installed on the controller"):
        authority.Authority(str(tmp_path / "ca")).ensure(MEMBERS)
