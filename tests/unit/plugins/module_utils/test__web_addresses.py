# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of mirrors, indexes and proxies: what is taken, what is refused, and that no password is repeated."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _web_addresses as addresses
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import shown


@pytest.mark.parametrize(
    "text", ["", "https://i.example.com", "http://i.example.com:8080/simple/", "http://[2001:db8::1]/", "file:///srv/i"]
)
def test_what_is_taken(text: str) -> None:
    assert addresses.address_problems("v", text, addresses.INDEX) == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("https://user:hunter2@i.example.com/simple", addresses.ERR_SECRET),
        ("https://hunter2@i.example.com/simple", addresses.ERR_SECRET),
        ("https://:hunter2@i.example.com", addresses.ERR_SECRET),
        ("https://user:hun@ter2@i.example.com", addresses.ERR_SECRET),
        ("https://user:hunter2%2F@i.example.com", addresses.ERR_SECRET),
        ("file://user:hunter2@i.example.com/x", addresses.ERR_SECRET),
        # A / in a password ends the host: the address leads elsewhere, and the password is in it all the same.
        ("https://user:a/hunter2@i.example.com", addresses.ERR_SECRET),
        ("https://user:a?hunter2#@i.example.com", addresses.ERR_SECRET),
        ("https://user:3'hunter2@i.example.com", addresses.ERR_SECRET),
        ("https://i.example.com/simple?token=hunter2", addresses.ERR_SECRET),
        ("https://i.example.com/simple?a=b&X-Amz-Signature=hunter2", addresses.ERR_SECRET),
        ("user:hunter2@i.example.com/simple", "expected http"),
        ("//user:hunter2@i.example.com/simple", addresses.ERR_SECRET),
        ("https:user:hunter2@i.example.com", addresses.ERR_SECRET),
        ("i.example.com/simple", "expected http"),
        ("ftp://i.example.com/simple", "expected http"),
        ("file://i.example.com/simple", "expected http"),
        ("file:simple", "expected http"),
        ("https://", "expected http"),
        ("https://i.example.com:99999", "expected http"),
        ("https://i.example.com:٨٠", "expected http"),
        ("https://[::1", "expected http"),
        ("https://i.example.com/a b", "expected http"),
        ("https://i.example.com/\n--pre", "expected http"),
        ("--extra-index-url", "expected http"),
        (7, "expected http"),
    ],
)
def test_what_is_refused_and_not_repeated(text: Any, rule: str) -> None:
    (problem,) = addresses.address_problems("v", text, addresses.INDEX)
    assert problem.rule.startswith(rule)
    assert "hunter2" not in problem.sentence() and "\n" not in problem.sentence()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("http://p.example.com:3128", 0),
        ("http://p.example.com", 1),
        ("http://p.example.com:0", 1),
        ("p.example.com:3128", 1),
        ("https://p.example.com:3128", 1),
        ("socks5://p.example.com:3128", 1),
        ("http://u:hunter2@p.example.com:3128", 1),
        ("u:hunter2@p.example.com:3128", 1),
        ("none", 1),
    ],
)
def test_proxies(text: str, count: int) -> None:
    found = addresses.proxy_problems("v", text)
    assert len(found) == count
    assert "hunter2" not in " ".join(problem.sentence() for problem in found)


@pytest.mark.parametrize(
    "text",
    [
        *("mds01@tcp:mds02@tcp:/scratch", "//nas/share", "x @ https://h.example.com:8443/x.whl", "me@example.com"),
        *("git+https://h.example.com:8443/r.git@v1", "https://h.example.com/r@v1", "https://[fd00::1]:8443/r@v1"),
        *("https://m.example.com/metalink?repo=baseos&arch=x86_64", "https://k.example.com/lookup?op=get&search=0xab"),
        *("${HOME}/x?y", "https://h.example.com/tokens/secret=1"),
    ],
)
def test_what_holds_no_secret(text: str) -> None:
    assert addresses.secret_problems("v", [text]) == [] and text in shown([text])


def test_a_key_of_a_dictionary_is_a_text_too() -> None:
    found = addresses.secret_problems("v", {"https://u:hunter2@m.example.com": {"https://u:a/hunter2@m": "x"}})
    assert len(found) == 2 and "hunter2" not in " ".join(problem.sentence() for problem in found)
    assert "hunter2" not in shown({"https://u:a/hunter2@m": ["https://u:h'hunter2@m"]})


def test_every_secret_of_a_value_is_named_with_its_place() -> None:
    secret = "https://u:hunter2@m.example.com/"
    value = [{"baseurl": secret, "name": "a"}, {"packages": ["a", f"a @ {secret}"]}, "192.0.2.5@tcp:/scratch", 7]
    found = addresses.secret_problems("v", value)
    assert [problem.variable for problem in found] == ["v[0].baseurl", "v[1].packages[1]"]
    assert "hunter2" not in " ".join(problem.sentence() for problem in found)
