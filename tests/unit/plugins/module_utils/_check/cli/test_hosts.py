# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of hosts, and those that are refused."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import hosts


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["n1"], ["n1"]),
        (["n3,n1, n2,"], ["n3", "n1", "n2"]),
        (["gpu[01-03]"], ["gpu01", "gpu02", "gpu03"]),
        (["gpu[8-10,2]"], ["gpu8", "gpu9", "gpu10", "gpu2"]),
        (["gpu[098-101]"], ["gpu098", "gpu099", "gpu100", "gpu101"]),
        (["r[1-2]n[01-02].example"], ["r1n01.example", "r1n02.example", "r2n01.example", "r2n02.example"]),
        (["gpu[01-02],n1", "x"], ["gpu01", "gpu02", "n1", "x"]),
        (["10.1.0.[7-8]"], ["10.1.0.7", "10.1.0.8"]),
    ],
)
def test_names(texts: list[str], names: list[str]) -> None:
    assert hosts.read(texts) == (hosts.Hosts(names, {}), [])


def test_names_with_addresses() -> None:
    found, wrong = hosts.read(["n1=198.18.20.1,n2,n3=FD00::3"])
    assert wrong == [] and found.names == ["n1", "n2", "n3"]
    assert found.addresses == {"n1": "198.18.20.1", "n3": "fd00::3"}


@pytest.mark.parametrize(
    "name",
    [
        *("-n1", "-oProxyCommand=id", "n1;id", "$(id)", "`id`", "n1 n2", "n1\nn2", "n1'", 'n1"', "n/1", "a@n1", "n1%h"),
        *("n1|id", "n*", "~n1", "n\x1b[31m", "n1\u202e", "0x7f.1", "127.0.0.1", "-[1-2]", "n1.", "é", "a" * 300),
    ],
)
def test_what_is_no_name(name: str) -> None:
    _found, wrong = hosts.read([name])
    assert "is no host" in wrong[0]
    # Nothing of it gets to the terminal as it is.
    assert all(one.isprintable() for one in wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu[1-", "is no host: expected names such as"),
        ("gpu1-3]", "is no host: expected names such as"),
        ("gpu[]", "is no host: expected names such as"),
        ("gpu[a-b]", "is no host: expected names such as"),
        ("gpu[[1-2]]", "is no host: expected names such as"),
        ("gpu[1-2-3]", "is no host: expected names such as"),
        ("gpu[3-1]", "the range 3-1 in 'gpu[3-1]' ends before it begins"),
        ("gpu[1-999999999]", "gives 999999999 hosts, expected at most 4096"),
        ("a[1-100]b[1-100]", "gives 10000 hosts, expected at most 4096"),
        ("n1,n1", "'n1' is named twice"),
        ("n[1-2],n2", "'n2' is named twice"),
        ("n1=x", "'x' is not the address of a host"),
        ("n1=10.0.0.1/24", "'10.0.0.1/24' is not the address of a host"),
        ("n1=127.0.0.1", "'127.0.0.1' is not the address of a host"),
        ("n1=fe80::1%eth0", "'fe80::1%eth0' is not the address of a host"),
        ("n[1-2]=10.0.0.1", "'n[1-2]' is no host name"),
        ("n1=10.0.0.1,n2=10.0.0.1", "n1 and n2 have the same address, 10.0.0.1"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    _found, wrong = hosts.read([text])
    assert len(wrong) == 1 and said in wrong[0]


def test_a_file_of_addresses() -> None:
    text = "# all\nn1 198.18.20.1\n\nn2=fd00::2 # here\nn3\n-n4 198.18.20.4\nn1 198.18.20.9\nn5 x\n"
    found, wrong = hosts.read_file("f", text)
    assert found == {"n1": "198.18.20.1", "n2": "fd00::2"}
    assert [one.partition(":")[0] for one in wrong] == ["f, line 5", "f, line 6", "f, line 7", "f, line 8"]
    assert "'n1' has two addresses: 198.18.20.1 and 198.18.20.9" in wrong[2]
