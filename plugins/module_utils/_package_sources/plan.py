# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From wishes and what the node has to what is done: which repositories of the node serve, which are switched, and the
text of our own file. Pure.

The order of preference for a repository that the catalogue knows: what the node defines and uses; what its other
repositories offer; what it defines and does not use; the maker's address. A site that gives an address has decided.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf.repo_file import MAIN, Section, with_option
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.catalogue import (
    NVIDIA,
    Node,
    known_repositories,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.spec import (
    DISABLED,
    NONE,
    VARIABLE,
    Wish,
    key_problems,
    unknown_problem,
)

#: What becomes of a wish.
OWN, SWITCHED_ON, OFFERED, UNUSED, DEFINED, OFF = "own", "switched_on", "offered", "unused", "defined", "off"

#: subscription-manager writes this file anew; it has its own switch.
SUBSCRIPTION_FILE = "redhat.repo"
ERR_SUBSCRIPTION = "subscription-manager owns {} and would take the change of {} back"

HEADER = (
    "# Written by Ansible, role baremetal.gpu_cluster.package_sources. Changes in this file are lost; change "
    f"{VARIABLE}.\n"
)
#: Seconds after which dnf asks for new metadata; its own default of 48 hours would hide a mirror's update for two days.
METADATA_EXPIRE_SECONDS = 3600


@dataclass(frozen=True)
class Decision:
    """What becomes of one wish. ``ids`` are the repositories that serve it, or that are switched off."""

    wish: Wish
    action: str
    ids: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """The form in which the module returns it."""
        return {"id": self.wish.id, "action": self.action, "repositories": list(self.ids)}


@dataclass(frozen=True)
class Plan:
    """Everything that is decided. ``switches`` holds the sections of others to change: True is on, False is off."""

    decisions: tuple[Decision, ...]
    switches: tuple[tuple[Section, bool], ...]
    problems: tuple[Problem, ...] = ()

    def with_wishes(self, wishes: Mapping[str, Wish]) -> Plan:
        """The same with these wishes, by their ids, in place of those that it has."""
        decisions = (replace(one, wish=wishes.get(one.wish.id, one.wish)) for one in self.decisions)
        return replace(self, decisions=tuple(decisions))

    @property
    def defined(self) -> tuple[Wish, ...]:
        """What our own file holds."""
        return tuple(decision.wish for decision in self.decisions if decision.action == DEFINED)

    @property
    def switched_on(self) -> tuple[tuple[Wish, str], ...]:
        """The repositories of the node that begin to count, with the wish that asks for them."""
        return tuple(
            (decision.wish, name)
            for decision in self.decisions
            if decision.action == SWITCHED_ON
            for name in decision.ids
        )


def replaced_ids(wishes: Sequence[Wish], sections: Sequence[Section]) -> tuple[str, ...]:
    """Enabled repositories of the node that a mirror replaces, or that the site wants off."""
    unwanted = {name for wish in wishes if wish.is_mirror or wish.state == DISABLED for name in wish.own_ids}
    return tuple(section.id for section in sections if section.is_enabled and section.id in unwanted)


def needed_look_ups(wishes: Sequence[Wish], sections: Sequence[Section], ours: Collection[str]) -> tuple[str, ...]:
    """Packages for which it has to be known whether the node's repositories offer them.

    Nothing is asked about what is settled: defined by the site, by the node, or by us in an earlier run.
    """
    enabled = {section.id for section in sections if section.is_enabled}
    return tuple(
        package
        for wish in wishes
        if wish.state != DISABLED and not wish.is_mirror and wish.section not in ours
        if not enabled & set(wish.own_ids)
        for package in wish.packages
    )


def decide(
    wishes: Sequence[Wish],
    sections: Sequence[Section],
    ours: Collection[str],
    offers: Mapping[str, Collection[str]],
    node: Node,
    *,
    has_gpu: bool = True,
) -> Plan:
    """``sections`` are the node's own, ``ours`` the ids in our file; ``offers`` maps packages to who offers them."""
    off = set(replaced_ids(wishes, sections))
    decisions = [_decision(wish, sections, ours, offers, has_gpu=has_gpu) for wish in wishes]
    on = {name for decision in decisions if decision.action == SWITCHED_ON for name in decision.ids}
    switches = tuple((section, section.id in on) for section in sections if section.id in off | on)
    problems = tuple(
        Problem(
            f"{VARIABLE}[{_wish_of(section.id, wishes).id}]",
            "",
            ERR_SUBSCRIPTION.format(section.path, section.id),
            "run `subscription-manager repos --{}={}` on the node".format("enable" if is_on else "disable", section.id),
        )
        for section, is_on in switches
        if section.path.rsplit("/", 1)[-1] == SUBSCRIPTION_FILE
    )
    unknown = tuple(
        unknown_problem(decision.wish, node)
        for decision in decisions
        if decision.action == UNUSED and not decision.wish.is_known
    )
    catalogue = known_repositories(node)
    # Those of mirrors are known from the variables alone.
    keys = tuple(
        problem
        for decision in decisions
        if decision.action == DEFINED and not decision.wish.is_mirror
        for problem in key_problems(decision.wish, catalogue.get(decision.wish.id))
    )
    return Plan(tuple(decisions), switches, problems + unknown + keys)


def _wish_of(section_id: str, wishes: Sequence[Wish]) -> Wish:
    return next(wish for wish in wishes if section_id in wish.own_ids)


def _decision(
    wish: Wish,
    sections: Sequence[Section],
    ours: Collection[str],
    offers: Mapping[str, Collection[str]],
    *,
    has_gpu: bool,
) -> Decision:
    own = [section for section in sections if section.id in wish.own_ids]
    enabled = tuple(section.id for section in own if section.is_enabled)
    if wish.state == DISABLED:
        return Decision(wish, OFF, enabled)
    if wish.is_mirror:
        return Decision(wish, DEFINED, (wish.section,))
    if enabled:
        return Decision(wish, OWN, enabled)
    if wish.section in ours:
        return Decision(wish, DEFINED, (wish.section,))
    if wish.packages and all(offers.get(package) for package in wish.packages):
        return Decision(wish, OFFERED, tuple(sorted({name for package in wish.packages for name in offers[package]})))
    # A site that uses nothing of the distribution's has repositories of its own: CRB, which is a default, stays off.
    if own and (wish.baseurl or wish.metalink or not wish.is_known or _is_in_use(own[0], wish.beside, sections)):
        return Decision(wish, SWITCHED_ON, (own[0].id,))
    # A node without a GPU needs nothing of NVIDIA's, so a fingerprint that is not known stops nobody there.
    is_pinned = wish.fingerprints or wish.id != NVIDIA or has_gpu
    if (wish.baseurl or wish.metalink) and is_pinned:
        return Decision(wish, DEFINED, (wish.section,))
    return Decision(wish, UNUSED, tuple(section.id for section in own))


def _is_in_use(section: Section, beside: Collection[str], sections: Sequence[Section]) -> bool:
    """Whether the node uses one of the repositories beside it."""
    return any(other.is_enabled and (other.path == section.path or other.id in beside) for other in sections)


def key_path(wish: Wish) -> str:
    """Where the key of one of our repositories is kept."""
    return f"/etc/pki/rpm-gpg/RPM-GPG-KEY-{wish.section}"


def file_text(wishes: Sequence[Wish], ca_certificate: str) -> str:
    """Our own file; empty when there is nothing in it, and then there is no file."""
    if not wishes:
        return ""
    return HEADER + "".join("\n" + _section_text(wish, ca_certificate) for wish in wishes)


def _section_text(wish: Wish, ca_certificate: str) -> str:
    # Values are plain: placeholders were filled in, and none of them has a line break.
    options = {
        "name": f"{wish.title} (gpu-cluster)",
        "baseurl": f"{wish.baseurl}/" if wish.baseurl else "",
        "metalink": wish.metalink,
        "enabled": "1",
        "gpgcheck": "1",
        "gpgkey": f"file://{key_path(wish)}",
        "metadata_expire": str(METADATA_EXPIRE_SECONDS),
        "proxy": "_none_" if wish.proxy == NONE else wish.proxy,
        "sslcacert": ca_certificate,
        "excludepkgs": " ".join(wish.exclude_packages),
    }
    return f"[{wish.section}]\n" + "".join(f"{key}={value}\n" for key, value in options.items() if value)


def with_switches(texts: Mapping[str, str], switches: Sequence[tuple[Section, bool]]) -> dict[str, str]:
    """The files of others after the change of nothing but the `enabled` lines; only files that differ."""
    result: dict[str, str] = {}
    for section, is_on in switches:
        text = result.get(section.path, texts[section.path])
        result[section.path] = with_option(text, section.id, "enabled", "1" if is_on else "0")
    return {path: text for path, text in result.items() if text != texts[path]}


def with_proxy(text: str, proxy: str) -> str:
    """dnf.conf with the proxy for all repositories of the node; an empty one leaves it alone."""
    if not proxy:
        return text
    return with_option(text, MAIN, "proxy", None if proxy == NONE else proxy)
