# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Key files, as gpg writes them and as they come damaged."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import openpgp

DATA = Path(__file__).parent / "data"
ONE = "8475E992814C1C37DD9037A5B04DC6620B4406AB"
TWO = "2DBD862750C2C6C1AEE637C8889FBA33DA439B85"
THREE = "CB1B58ACEF247138BEC67B622B93804CABDCE7FE"
CREATED = 1704067200  # 2024-01-01
DAY = 86400
#: Python's own words, which are others in 3.9.
NO_BASE64 = "Only base64 data is allowed" if sys.version_info >= (3, 11) else "Non-base64 digit found"


def read(name: str) -> str:
    return (DATA / f"{name}.asc").read_text()


def packets(name: str) -> list[bytes]:
    """The packets of a file of one key, each with its head."""
    data = base64.b64decode("".join(line for line in read(name).splitlines()[2:-2] if not line.startswith("=")))
    found = []
    while data:
        # All of them are in the old format with one octet of length.
        length = 2 + data[1]
        found.append(data[:length])
        data = data[length:]
    return found


def armoured(data: bytes, kind: str = "PUBLIC") -> str:
    body = base64.b64encode(data).decode()
    return f"-----BEGIN PGP {kind} KEY BLOCK-----\nVersion: test\n\n{body}\n-----END PGP {kind} KEY BLOCK-----\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("expires", [openpgp.PublicKey(ONE, "One <one@example.com>", CREATED + 30 * DAY)]),
        ("renewed", [openpgp.PublicKey(ONE, "One <one@example.com>", CREATED + 731 * DAY)]),
        ("subkey", [openpgp.PublicKey(TWO, "Two <two@example.com>", None)]),
        ("revoked", [openpgp.PublicKey(THREE, "Three <three@example.com>", None, True)]),
        (
            "both",
            [
                openpgp.PublicKey(ONE, "One <one@example.com>", CREATED + 731 * DAY),
                openpgp.PublicKey(TWO, "Two <two@example.com>", None),
            ],
        ),
    ],
)
def test_keys_as_gpg_lists_them(name: str, expected: list[openpgp.PublicKey]) -> None:
    assert list(openpgp.parse_keys(read(name))) == expected


def test_several_blocks_with_text_between_them() -> None:
    text = "NVIDIA's key\r\n" + read("expires").replace("\n", "\r\n") + "and another\n" + read("subkey")
    assert [key.fingerprint for key in openpgp.parse_keys(text)] == [ONE, TWO]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_newest_signature_of_its_own_counts(order: tuple[int, int]) -> None:
    signatures = [packets("expires")[2], packets("renewed")[2]]
    key, name = packets("expires")[:2]
    found = openpgp.parse_keys(armoured(key + name + b"".join(signatures[number] for number in order)))
    assert found[0].expires == CREATED + 731 * DAY


def test_the_signature_of_another_key_says_nothing() -> None:
    key, name, own = packets("subkey")[:3]
    foreign = packets("renewed")[2]
    assert openpgp.parse_keys(armoured(key + name + own + foreign))[0].expires is None


def test_validity_ends_at_the_second() -> None:
    key = openpgp.parse_keys(read("expires"))[0]
    assert not key.is_expired(CREATED + 30 * DAY - 1)
    assert key.is_expired(CREATED + 30 * DAY)
    assert not openpgp.parse_keys(read("subkey"))[0].is_expired(2**40)


def test_a_key_of_version_6() -> None:
    """The sample certificate of RFC 9580, appendix A.3; its fingerprint is printed there."""
    material = bytes.fromhex("0663877fe31b00000020f94da7bb48d60a61e567706a6587d0331999bb9d891a08242ead84543df895a3")
    found = openpgp.parse_keys(armoured(bytes([0xC6, len(material)]) + material))
    assert found[0].fingerprint == "CB186C4F0609A697E4D52DFA6C722B0C1F1E27C18A56708F6525EC27BAD9ACC9"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", openpgp.ERR_NO_KEY),
        ("<!DOCTYPE html><title>Sign in</title>", openpgp.ERR_NO_KEY),
        (b"\x98\x33\x04".decode("utf-8", "surrogateescape"), openpgp.ERR_BINARY),
        (armoured(b"\xc6\x01\x04", "PRIVATE"), openpgp.ERR_SECRET),
        (armoured(b"\xc5\x01\x04"), openpgp.ERR_SECRET),
        (armoured(b"\xcd\x03abc"), openpgp.ERR_NO_KEY),
        (armoured(b"\x01\x02"), "is damaged: a packet does not begin where one should"),
        (armoured(b"\xc6\x40\x04"), "is damaged: it ends in the middle of a packet"),
        (armoured(b"\xc6"), "is damaged: it ends in the middle of a packet"),
        (armoured(b"\xc6\xe1\x04"), "is damaged: a key has packets of partial length"),
        (armoured(b"\xc6\x02\x03\x00"), "is damaged: it holds a key of version 3, and only 4 and 6 are in use"),
        (read("expires").replace("Z", "?", 1), f"is damaged: {NO_BASE64}"),
    ],
)
def test_what_is_no_key_file(text: str, message: str) -> None:
    with pytest.raises(openpgp.KeyFileError) as caught:
        openpgp.parse_keys(text)
    assert str(caught.value) == message


def test_a_key_that_ends_anywhere_is_refused_or_read_but_never_trips() -> None:
    data = b"".join(packets("revoked"))
    for end in range(len(data)):
        try:
            openpgp.parse_keys(armoured(data[:end]))
        except openpgp.KeyFileError:
            continue


def test_fingerprints_as_people_write_them() -> None:
    assert openpgp.normal_fingerprint(" 610c 7b14\te068\n") == "610C7B14E068"
