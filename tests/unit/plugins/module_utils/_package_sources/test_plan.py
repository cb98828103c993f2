# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which repositories serve, which are switched, and what is written."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf.repo_file import Section, parse
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.catalogue import Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.spec import RepositorySpec

NODE = Node(9, "9", "x86_64")
CRB = RepositorySpec("crb", "CRB", own_ids=("crb", "codeready"), beside=("baseos",), is_known=True)
EPEL = RepositorySpec("epel", "EPEL", own_ids=("epel",), metalink="https://x/m", is_known=True, packages=("dkms",))
MIRROR = RepositorySpec("epel", "EPEL", own_ids=("epel",), baseurl="http://m/epel", is_known=True, is_mirror=True)
SITE = RepositorySpec("site", "Site", own_ids=("site",), baseurl="http://m/site", is_mirror=True)
OFF = RepositorySpec("baseos", "baseos", "disabled", own_ids=("baseos",))


def sections(*lines: str) -> list[Section]:
    """`FILE ID 0|1` for each section."""
    found = []
    for line in lines:
        path, name, enabled = line.split()
        found.append(Section(name, path, {"enabled": enabled}))
    return found


def action(
    declared: RepositorySpec, own: list[Section], ours: tuple[str, ...] = (), **offers: set[str]
) -> tuple[str, tuple[str, ...]]:
    (decision,) = plan.decide([declared], own, ours, offers, NODE).decisions
    return decision.action, decision.ids


@pytest.mark.parametrize(
    ("declared", "own", "ours", "offers", "expected"),
    [
        (EPEL, ["e epel 1"], (), {}, (plan.OWN, ("epel",))),
        # The node's own counts more than what we wrote before it came.
        (EPEL, ["e epel 1"], ("gpu-cluster-epel",), {}, (plan.OWN, ("epel",))),
        (EPEL, [], (), {"dkms": {"site-all"}}, (plan.OFFERED, ("site-all",))),
        (EPEL, ["e epel 0"], (), {"dkms": {"site-all"}}, (plan.OFFERED, ("site-all",))),
        (EPEL, ["e epel 0"], (), {}, (plan.SWITCHED_ON, ("epel",))),
        (EPEL, [], (), {}, (plan.DEFINED, ("gpu-cluster-epel",))),
        # What an earlier run wrote stays, whoever offers the packages since then.
        (EPEL, [], ("gpu-cluster-epel",), {"dkms": {"x"}}, (plan.DEFINED, ("gpu-cluster-epel",))),
        (MIRROR, ["e epel 1"], (), {}, (plan.DEFINED, ("gpu-cluster-epel",))),
        (CRB, ["c baseos 1", "c crb 0"], (), {}, (plan.SWITCHED_ON, ("crb",))),
        (CRB, ["c baseos 1", "c crb 1"], (), {}, (plan.OWN, ("crb",))),
        (CRB, ["r rhel-baseos 1", "r codeready 0"], (), {}, (plan.SWITCHED_ON, ("codeready",))),
        # As in Alma, where each repository has a file of its own.
        (CRB, ["b baseos 1", "c crb 0", "c crb-source 0"], (), {}, (plan.SWITCHED_ON, ("crb",))),
        # Nothing of the distribution's is used: the site has other repositories.
        (CRB, ["c baseos 0", "c crb 0", "s site-all 1"], (), {}, (plan.UNUSED, ("crb",))),
        (CRB, ["s site-all 1"], (), {}, (plan.UNUSED, ())),
        (RepositorySpec("baseos", "", own_ids=("baseos",)), ["c baseos 0"], (), {}, (plan.SWITCHED_ON, ("baseos",))),
        (OFF, ["c baseos 1"], (), {}, (plan.OFF, ("baseos",))),
        (OFF, [], (), {}, (plan.OFF, ())),
    ],
)
def test_decisions(
    declared: RepositorySpec,
    own: list[str],
    ours: tuple[str, ...],
    offers: dict[str, set[str]],
    expected: tuple[str, tuple[str, ...]],
) -> None:
    assert action(declared, sections(*own), ours, **offers) == expected


def switches(specs: list[RepositorySpec], own: list[Section]) -> list[tuple[str, bool]]:
    return [(section.id, is_on) for section, is_on in plan.decide(specs, own, (), {}, NODE).switches]


def test_a_mirror_switches_off_what_it_replaces() -> None:
    own = sections("e epel 1", "c baseos 1", "c crb 0", "c appstream 1")
    assert switches([MIRROR, CRB, OFF], own) == [("epel", False), ("baseos", False), ("crb", True)]
    assert plan.replaced_ids([MIRROR, CRB, OFF], own) == ("epel", "baseos")


def test_nothing_is_switched_twice() -> None:
    assert switches([MIRROR, OFF], sections("e epel 0", "c baseos 0")) == []


@pytest.mark.parametrize(
    ("declared", "own", "ours", "expected"),
    [
        (EPEL, [], (), ("dkms",)),
        (EPEL, ["e epel 0"], (), ("dkms",)),
        (EPEL, ["e epel 1"], (), ()),
        (EPEL, [], ("gpu-cluster-epel",), ()),
        (MIRROR, [], (), ()),
        (CRB, [], (), ()),
        (OFF, [], (), ()),
    ],
)
def test_dnf_is_asked_about_what_is_open(
    declared: RepositorySpec, own: list[str], ours: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert plan.needed_look_ups([declared], sections(*own), ours) == expected


def test_what_subscription_manager_owns_is_named_and_not_changed() -> None:
    own = sections("/etc/yum.repos.d/redhat.repo rhel-baseos 1", "/etc/yum.repos.d/redhat.repo codeready 0")
    (problem,) = plan.decide([CRB], own, (), {}, NODE).problems
    assert problem.variable == "package_sources_repositories[crb]"
    assert "run `subscription-manager repos --enable=codeready` on the node" in problem.sentence()


def test_an_unknown_name_is_a_problem_unless_the_node_knows_it() -> None:
    declared = RepositorySpec("nvidea", "", own_ids=("nvidea",))
    (problem,) = plan.decide([declared], [], (), {}, NODE).problems
    assert "did you mean nvidia?" in problem.sentence()
    assert plan.decide([declared], sections("x nvidea 1"), (), {}, NODE).problems == ()


def test_our_file() -> None:
    text = plan.file_text([SITE, EPEL], "")
    assert text == plan.HEADER + (
        "\n[gpu-cluster-site]\nname=Site (gpu-cluster)\nbaseurl=http://m/site/\nenabled=1\ngpgcheck=1\n"
        "gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-cluster-site\nmetadata_expire=3600\n"
        "\n[gpu-cluster-epel]\nname=EPEL (gpu-cluster)\nmetalink=https://x/m\nenabled=1\ngpgcheck=1\n"
        "gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-cluster-epel\nmetadata_expire=3600\n"
    )
    assert all(section.is_enabled for section in parse("/x", text))
    assert plan.file_text([], "/ca.pem") == ""


@pytest.mark.parametrize(("proxy", "line"), [("none", "proxy=_none_\n"), ("http://p:1", "proxy=http://p:1\n")])
def test_our_file_with_everything(proxy: str, line: str) -> None:
    declared = RepositorySpec("a", "A", baseurl="http://m", proxy=proxy, exclude_packages=("mft*", "kernel-mft*"))
    text = plan.file_text([declared], "/etc/ca.pem")
    assert line in text and "sslcacert=/etc/ca.pem\n" in text and "excludepkgs=mft* kernel-mft*\n" in text


def test_switching_changes_single_lines_of_several_files() -> None:
    texts = {"c": "[baseos]\nenabled=1\n[crb]\nenabled=0\n", "e": "[epel]\n", "x": "[x]\n"}
    own = [section for path, text in texts.items() for section in parse(path, text)]
    found = plan.with_switches(texts, [(own[0], False), (own[1], True), (own[2], False)])
    assert found == {"c": "[baseos]\nenabled=0\n[crb]\nenabled=1\n", "e": "[epel]\nenabled=0\n"}


@pytest.mark.parametrize(
    ("proxy", "expected"),
    [
        ("", "[main]\nproxy=http://old:1\n"),
        ("http://new:2", "[main]\nproxy=http://new:2\n"),
        ("none", "[main]\n"),
    ],
)
def test_the_proxy_in_dnf_conf(proxy: str, expected: str) -> None:
    assert plan.with_proxy("[main]\nproxy=http://old:1\n", proxy) == expected
