# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of kernel parameters: which are equal, and which are refused."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import values


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("net.ipv4.tcp_rmem", "net/ipv4/tcp_rmem"),
        ("net/ipv4/tcp_rmem", "net/ipv4/tcp_rmem"),
        ("net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ("net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
    ],
)
def test_both_ways_of_writing_a_key_are_one_path(key: str, path: str) -> None:
    assert values.path_of(key) == path
    assert values.path_of(values.key_of(path)) == path


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("net.ipv4.tcp_rmem", True),
        ("net/ipv4/conf/eth0.100/mtu", True),
        ("nodots", False),
        ("", False),
        ("net/../../etc/passwd", False),
        ("net.ipv4.tcp rmem", False),
        ("net.ipv4.conf.*.rp_filter", False),
    ],
)
def test_keys(key: str, good: bool) -> None:
    assert values.is_key(key) is good


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("", ""),
        ("50000", "50000"),
        ("7,5-6,1-2,8", "1-2,5-8"),
        ("50000-50010 50005-50020", "50000-50020"),
        ("1-5,3-4,6", "1-6"),
    ],
)
def test_reserved_ports_compare_as_the_kernel_prints_them(text: str, kernel: str) -> None:
    assert values.normalised("net.ipv4.ip_local_reserved_ports", text) == kernel
    assert values.normalised("net/ipv4/ip_local_reserved_ports", text) == kernel


@pytest.mark.parametrize("text", ["a", "5-", "0", "65536", "10-5", "5-6-7", "5;6"])
def test_what_is_no_list_of_ports(text: str) -> None:
    assert values.parse_ports(text) is None
    assert values.value_problems("net.ipv4.ip_local_reserved_ports", text)[0][0] == values.ERR_PORTS


def test_other_values_compare_without_regard_to_blanks() -> None:
    assert values.normalised("net.ipv4.tcp_rmem", "4096\t87380\t 6291456\n") == "4096 87380 6291456"


@pytest.mark.parametrize(
    ("key", "value", "rules"),
    [
        ("net.ipv4.tcp_rmem", "4096 131072 16777216", []),
        ("net.ipv4.tcp_rmem", "4096 4096 4096", []),
        ("net.ipv4.tcp_rmem", "4096 16777216", ["expected 3 numbers separated by blanks (min default max), found 2"]),
        ("net.ipv4.tcp_wmem", "16M 1 1", ["expected a whole number, found '16M'"]),
        (
            "net.ipv4.tcp_rmem",
            "4096 33554432 16777216",
            ["expected min <= default <= max, each at least as large as the one before"],
        ),
        ("net.ipv4.tcp_rmem", "0 1 2147483648", ["found 0", "found 2147483648"]),
        ("net.ipv4.ip_local_port_range", "60999 32768", ["the first port is above the last one"]),
        ("net.ipv4.ip_local_port_range", "32768 65536", ["expected 1 to 65535, found 65536"]),
        ("net.ipv4.ip_local_port_range", "32768-60999", ["found '32768-60999'", "found 1"]),
        ("net/ipv4/tcp_mtu_probing", "3", ["expected 0 to 2, found 3"]),
        ("net.ipv4.tcp_slow_start_after_idle", "off", ["found 'off'"]),
        ("net.core.somaxconn", "", ["expected a value on one line"]),
        ("net.core.somaxconn", "1\n2", ["expected a value on one line"]),
        ("net.ipv4.ip_local_reserved_ports", "", []),
        ("site.own.key", "anything at all", []),
    ],
)
def test_known_keys_are_checked(key: str, value: str, rules: list[str]) -> None:
    found = [rule for rule, _fix in values.value_problems(key, value)]
    assert len(found) == len(rules)
    for index, wanted in enumerate(rules):
        assert wanted in found[index]


def test_the_fix_of_an_order_is_the_right_order() -> None:
    assert values.value_problems("net.ipv4.ip_local_port_range", "60999 32768")[0][1] == "write 32768 60999"


def test_neighbour_tables_must_grow() -> None:
    v6 = "net.ipv6.neigh.default.gc_thresh"
    found = values.across_problems({f"{v6}1": "128", f"{v6}2": "4096", f"{v6}3": "1024"})
    assert found == [
        (f"{v6}2", f"is above {v6}3 = 1024, which must not be smaller", f"raise {v6}3, or lower this one"),
    ]
    assert values.across_problems({f"{v6}1": "128", f"{v6}3": "128"}) == []
