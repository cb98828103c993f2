# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of repositories, by version and architecture, and what is refused in it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.catalogue import (
    Node,
    known_repositories,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.spec import (
    RepositorySpec,
    read_specs,
)

EL9 = Node(9, "9", "x86_64")
PIN = "610C7B14E068A878070DA4E99CD0A493D42D0685"
MIRROR = {"id": "site", "baseurl": "http://mirror.example.com/x", "gpg_key": "/keys/site", "gpg_fingerprints": [PIN]}
KEYS = {"/keys/site": "the key", "keys/site": "the same, where the playbook happens to be"}


def one(entry: dict[str, Any], node: Node = EL9) -> RepositorySpec:
    found, problems = read_specs([entry], KEYS, node)
    assert problems == ()
    return found[0]


def refused(entry: dict[str, Any], node: Node = EL9) -> list[str]:
    return [problem.sentence() for problem in read_specs([entry], KEYS, node)[1]]


@pytest.mark.parametrize(
    ("node", "folder", "key"),
    [
        (Node(9, "9", "x86_64"), "rhel9/x86_64", "D42D0685"),
        (Node(9, "9.6", "aarch64"), "rhel9/sbsa", "D42D0685"),
        (Node(10, "10", "x86_64"), "rhel10/x86_64", "CDF6BA43"),
        (Node(10, "10.1", "aarch64"), "rhel10/sbsa", "CDF6BA43"),
    ],
)
def test_nvidia_by_version_and_architecture(node: Node, folder: str, key: str) -> None:
    declared = read_specs([{"id": "nvidia"}], {}, node)[0][0]
    assert declared.baseurl == f"https://developer.download.nvidia.com/compute/cuda/repos/{folder}"
    assert declared.gpg_key == f"{declared.baseurl}/{key}.pub"
    assert declared.own_ids == (f"cuda-{folder.replace('/', '-')}",)
    assert not declared.is_mirror


@pytest.mark.parametrize(
    ("node", "metalink", "pin"),
    [
        (Node(9, "9", "x86_64"), "epel-9&arch=x86_64", "FF8AD1344597106ECE813B918A3872BF3228467C"),
        (Node(9, "9.6", "aarch64"), "epel-9&arch=aarch64", "FF8AD1344597106ECE813B918A3872BF3228467C"),
        (Node(10, "10", "x86_64"), "epel-10s&arch=x86_64", "7D8D15CBFC4E62688591FB2633D98517E37ED158"),
        (Node(10, "10.1", "aarch64"), "epel-10.1&arch=aarch64", "7D8D15CBFC4E62688591FB2633D98517E37ED158"),
    ],
)
def test_epel_by_version_and_architecture(node: Node, metalink: str, pin: str) -> None:
    declared = one({"id": "epel"}, node)
    assert declared.metalink == f"https://mirrors.fedoraproject.org/metalink?repo={metalink}"
    assert declared.gpg_key == f"https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-{node.major}"
    assert (declared.fingerprints, declared.packages) == ((pin,), ("dkms",))


def test_crb_has_no_address_but_the_names_of_all_kin() -> None:
    declared = one({"id": "crb"}, Node(10, "10.1", "aarch64"))
    assert (declared.baseurl, declared.metalink) == ("", "")
    assert declared.own_ids == ("crb", "codeready-builder-for-rhel-10-aarch64-rpms")
    assert declared.beside == ("baseos", "rhel-10-for-aarch64-baseos-rpms")


def test_a_short_key_id_pins_nothing() -> None:
    node = Node(10, "10", "x86_64")
    (problem,) = spec.key_problems(one({"id": "nvidia"}, node), known_repositories(node)["nvidia"])
    said = problem.sentence()
    assert spec.ERR_NO_PIN in said and "NVIDIA publishes for EL 10 ends in CDF6BA43" in said
    (of_mirror,) = refused({"id": "nvidia", "baseurl": "http://mirror.example.com/nvidia"}, node)
    assert of_mirror == said
    assert one({"id": "nvidia", "gpg_fingerprints": [PIN]}, Node(10, "10", "x86_64")).fingerprints == (PIN,)


def test_a_mirror_takes_the_rest_from_the_catalogue() -> None:
    declared = one(
        {"id": "nvidia", "baseurl": "http://mirror.example.com/rhel$releasever/${nvidia_arch}/"},
        Node(9, "9", "aarch64"),
    )
    assert declared.baseurl == "http://mirror.example.com/rhel9/sbsa"
    assert declared.is_mirror and declared.is_known
    assert (declared.fingerprints, declared.packages) == ((PIN,), ("libnccl",))
    assert declared.own_ids == ("cuda-rhel9-sbsa",)


def test_placeholders_are_filled_in_everywhere() -> None:
    declared = one(
        {
            **MIRROR,
            "baseurl": "file:///srv/$releasever/$basearch",
            "gpg_key": "http://mirror.example.com/$releasever.asc",
        }
    )
    assert (declared.baseurl, declared.gpg_key) == ("file:///srv/9/x86_64", "http://mirror.example.com/9.asc")


def test_a_key_of_the_controller_comes_with_its_text() -> None:
    assert one(MIRROR).key_text == "the key"
    assert one({**MIRROR, "gpg_fingerprints": ["610c 7b14 e068 a878 070d  a4e9 9cd0 a493 d42d 0685"]}).fingerprints == (
        PIN,
    )


def test_an_empty_list_of_packages_asks_for_none() -> None:
    assert one({"id": "epel", "packages": []}).packages == ()
    assert one({"id": "epel", "packages": None}).packages == ("dkms",)


def test_disabled_needs_only_a_name() -> None:
    assert one({"id": "baseos", "state": "disabled"}).own_ids == ("baseos",)
    (said,) = refused({**MIRROR, "state": "disabled"})
    assert spec.ERR_DISABLED_WITH in said and "baseurl, gpg_fingerprints, gpg_key" in said


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"id": "a b"},
            "package_sources_repositories[].id = 'a b': expected letters, digits and any of ._:- in the id",
        ),
        ({"id": "x]\n[y"}, "[].id = 'x]\\n[y': expected letters, digits"),
        ({"id": "x\n"}, "[].id = 'x\\n': expected letters, digits"),
        (
            {"baseurl": "mirror.example.com/x"},
            "[site].baseurl = 'mirror.example.com/x': expected http://HOST/... or https",
        ),
        ({"baseurl": "ftp://mirror.example.com/x"}, "expected http://HOST/... or https://HOST/... or file:///PATH"),
        ({"baseurl": "file://srv/x"}, "expected http://HOST/..."),
        ({"baseurl": "http://mirror.example.com/a b"}, "expected http://HOST/..."),
        ({"baseurl": "http://mirror.example.com/a\nproxy=x"}, "expected http://HOST/..."),
        ({"baseurl": "http://u:secret@mirror.example.com/"}, "'http://...@mirror.example.com/': a password would be"),
        ({"baseurl": "http://mirror.example.com/$stream"}, "$releasever, $basearch, $nvidia_arch, found $stream"),
        ({"metalink": "http://mirror.example.com/m"}, "expected either baseurl or metalink, found both"),
        ({"baseurl": None, "metalink": "file:///srv/m"}, "[site].metalink = 'file:///srv/m': expected http://HOST/..."),
        ({"gpg_key": None}, "[site].gpg_key: packages are only taken when their signature is checked"),
        ({"gpg_key": "/keys/missing"}, "[site].gpg_key = '/keys/missing': there is no such file on the controller"),
        ({"gpg_key": "keys/site"}, "there is no such file on the controller"),
        ({"gpg_fingerprints": []}, "[site].gpg_fingerprints: a key is only taken with its fingerprint"),
        ({"gpg_fingerprints": ["D42D0685"]}, "[site].gpg_fingerprints = 'D42D0685': expected 40 hexadecimal digits"),
        ({"name": "a\nenabled=0"}, "[site].name = 'a\\nenabled=0': expected one line"),
        ({"exclude_packages": ["a\nb"]}, "[site].exclude_packages = "),
        (
            {"proxy": "socks5://proxy.example.com:1"},
            "[site].proxy = 'socks5://proxy.example.com:1': expected http://HOST",
        ),
        ({"proxy": "http://proxy.example.com"}, "expected http://HOST:PORT, or none to go without"),
        ({"proxy": "http://proxy.example.com:99999"}, "expected http://HOST:PORT"),
    ],
)
def test_what_is_refused(change: dict[str, Any], sentence: str) -> None:
    said = refused({**MIRROR, **change})
    assert len(said) == 1 and sentence in said[0], said


def test_all_problems_at_once() -> None:
    entries = [{**MIRROR, "baseurl": "x"}, {**MIRROR, "id": "b", "gpg_key": ""}, {"id": "crb"}, {"id": "crb"}]
    rules = [problem.rule for problem in read_specs(entries, KEYS, EL9)[1]]
    assert len(rules) == 3 and spec.ERR_NO_KEY in rules and spec.ERR_TWICE in rules


@pytest.mark.parametrize(
    ("name", "node", "sentence"),
    [
        ("nvidea", EL9, "knows a repository of this name; did you mean nvidia?"),
        ("zzz", EL9, "knows a repository of this name: those are crb, epel, nvidia"),
        ("nvidia", Node(9, "9", "ppc64le"), "there is no such repository of its maker for EL 9 on ppc64le"),
        ("nvidia", Node(11, "11", "x86_64"), "for EL 11 on x86_64"),
    ],
)
def test_names_that_nobody_knows(name: str, node: Node, sentence: str) -> None:
    assert sentence in spec.unknown_problem(one({"id": name}, node), node).sentence()


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        (("", "", 5), []),
        (("none", "/etc/ca.pem", 60), []),
        (("http://proxy.example.com:3128", "", 1), []),
        (("proxy.example.com:3128", "ca.pem", 0), ["proxy", "ca_certificate", "timeout_seconds"]),
        (("http://u:p@proxy.example.com:3128", "", 61), ["proxy", "timeout_seconds"]),
        (("https://proxy.example.com:3128", "", 5), ["proxy"]),
    ],
)
def test_settings(settings: tuple[str, str, int], variables: list[str]) -> None:
    found = [problem.variable for problem in spec.setting_problems(*settings)]
    assert found == [f"package_sources_{name}" for name in variables]


def test_a_password_is_not_repeated() -> None:
    (problem,) = spec.setting_problems("http://u:hunter2@proxy.example.com:3128", "", 5)
    assert "hunter2" not in problem.sentence()
