# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys and certificates that the real ssh-keygen has made: read, and judged."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import certificate
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.certificate import HOST, USER, Wanted

TYPES = {"ed25519": ("-t", "ed25519"), "ecdsa": ("-t", "ecdsa", "-b", "384"), "rsa": ("-t", "rsa", "-b", "2048")}
#: 2026-01-01 00:00 and 2027-01-01 00:00, UTC.
BEGIN, END = 1767225600, 1798761600
VALIDITY = "20260101000000Z:20270101000000Z"
DAY = certificate.DAY_SECONDS


def keygen(*words: str | Path) -> None:
    argv = ["ssh-keygen", "-q", *map(str, words)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, timeout=60)


@pytest.fixture(scope="module", params=list(TYPES))
def keys(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority and a key of one type, with a certificate for each use."""
    folder = tmp_path_factory.mktemp(request.param)
    for name in ("ca", "key"):
        keygen(*TYPES[request.param], "-N", "", "-C", "a comment", "-f", folder / name)
    options = ("-O", "clear", "-O", "permit-pty", "-O", "source-address=198.18.20.11/32,fd00::11/128")
    for kind, more in (("host", ("-h",)), ("user", options)):
        names = "n1,n1.cluster.example,198.18.20.11" if kind == "host" else "train"
        words = ("-s", folder / "ca", "-I", f"{kind}@n1", "-z", "7", "-n", names, "-V", VALIDITY, *more)
        keygen(*words, folder / "key.pub")
        (folder / "key-cert.pub").rename(folder / kind)
    return folder


def text(folder: Path, name: str) -> str:
    return (folder / name).read_text()


def bare(folder: Path, name: str) -> str:
    return certificate.bare_key(text(folder, name))


def test_a_host_certificate(keys: Path) -> None:
    found = certificate.parse(text(keys, "host"))
    assert (found.kind, found.serial, found.key_id) == (HOST, 7, "host@n1")
    assert found.principals == ("n1", "n1.cluster.example", "198.18.20.11")
    assert (found.valid_from, found.valid_until) == (BEGIN, END)
    assert (found.options, found.extensions) == ({}, ())
    assert (found.public_key, found.authority) == (bare(keys, "key.pub"), bare(keys, "ca.pub"))


def test_a_user_certificate(keys: Path) -> None:
    found = certificate.parse(text(keys, "user"))
    assert (found.kind, found.principals, found.extensions) == (USER, ("train",), ("permit-pty",))
    assert found.options == {"source-address": "198.18.20.11/32,fd00::11/128"}


def test_the_public_key_is_in_the_private_one(keys: Path) -> None:
    assert certificate.public_of(text(keys, "key")) == bare(keys, "key.pub")


@pytest.mark.parametrize(
    "damaged", ["", "ssh-ed25519", "ssh-ed25519-cert-v01@openssh.com AAAA", "x-cert-v01@openssh.com AAAA"]
)
def test_what_is_no_certificate(damaged: str) -> None:
    with pytest.raises(certificate.FormatError):
        certificate.parse(damaged)


def test_a_certificate_that_was_cut(keys: Path) -> None:
    name, blob, *_comment = text(keys, "user").split()
    with pytest.raises(certificate.FormatError):
        certificate.parse(f"{name} {blob[: len(blob) // 2 // 4 * 4]}")


@pytest.mark.parametrize("damaged", ["", "hello", "ssh-ed25519 AAAAB3NzaC1yc2E=", "ssh-dss AAAAB3NzaC1kc3M="])
def test_what_is_no_public_key(damaged: str) -> None:
    with pytest.raises(certificate.FormatError):
        certificate.bare_key(damaged)


def test_what_is_no_private_key(keys: Path) -> None:
    with pytest.raises(certificate.FormatError):
        certificate.public_of(text(keys, "key.pub"))


def wanted(folder: Path) -> Wanted:
    options = {"source-address": "198.18.20.11/32,fd00::11/128"}
    return Wanted(USER, bare(folder, "key.pub"), bare(folder, "ca.pub"), ("train",), options, ("permit-pty",))


def test_a_certificate_that_is_right(keys: Path) -> None:
    assert certificate.problem(text(keys, "user"), wanted(keys), BEGIN + DAY, 90 * DAY, {6, 8}) == ""


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"kind": HOST}, "it is one for a user"),
    ({"public_key": "ssh-ed25519 AAAA"}, certificate.WHY_OTHER_KEY),
    ({"authority": "ssh-ed25519 AAAA"}, certificate.WHY_OTHER_CA),
    ({"principals": ("train", "root")}, certificate.WHY_PRINCIPALS),
    ({"options": {"source-address": "198.18.20.12/32"}}, certificate.WHY_OPTIONS),
    ({"options": {}}, certificate.WHY_OPTIONS),
    ({"extensions": ()}, certificate.WHY_OPTIONS),
]


@pytest.mark.parametrize(("change", "why"), CHANGES)
def test_a_certificate_that_says_something_else(keys: Path, change: dict[str, Any], why: str) -> None:
    other = dataclasses.replace(wanted(keys), **change)
    assert certificate.problem(text(keys, "user"), other, BEGIN + DAY, 0) == why


TIMES = [
    (BEGIN - 1, 0, "it is valid from 2026-01-01 00:00 UTC on"),
    (BEGIN, 0, ""),
    (END - 90 * DAY - 1, 90, ""),
    (END - 90 * DAY, 90, "it lapses on 2027-01-01 00:00 UTC"),
    (END - 1, 0, ""),
    (END, 90, "it expired on 2027-01-01 00:00 UTC"),
]


@pytest.mark.parametrize(("now", "days", "why"), TIMES)
def test_time(keys: Path, now: int, days: int, why: str) -> None:
    assert certificate.problem(text(keys, "user"), wanted(keys), now, days * DAY) == why


def test_a_revoked_serial(keys: Path) -> None:
    assert certificate.problem(text(keys, "user"), wanted(keys), BEGIN, 0, {7}) == certificate.WHY_REVOKED


@pytest.mark.parametrize(("damaged", "why"), [(" \n", certificate.MISSING), ("rubbish\n", certificate.WHY_UNREADABLE)])
def test_no_certificate(keys: Path, damaged: str, why: str) -> None:
    assert certificate.problem(damaged, wanted(keys), BEGIN, 0) == why


def test_a_certificate_for_ever() -> None:
    assert certificate.day(certificate.FOREVER) == "never"
    assert certificate.day(2**63) == "never"
