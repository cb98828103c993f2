# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done with the declared repositories, given what the node has: which of its own serve, which are switched off,
and the text of our own file. Pure.

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
    RepositorySpec,
    key_problems,
    unknown_problem,
)

#: What becomes of a declared repository.
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
    """What becomes of one declared repository. ``ids`` are the repositories that serve it, or that are switched off."""

    declared: RepositorySpec
    action: str
    ids: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """The form in which the module returns it."""
        return {"id": self.declared.id, "action": self.action, "repositories": list(self.ids)}


@dataclass(frozen=True)
class Plan:
    """Everything that is decided. ``switches`` holds the sections of others to change: True is on, False is off."""

    decisions: tuple[Decision, ...]
    switches: tuple[tuple[Section, bool], ...]
    problems: tuple[Problem, ...] = ()

    def with_specs(self, specs: Mapping[str, RepositorySpec]) -> Plan:
        """The same with these specs, by their ids, in place of those that it has."""
        decisions = (replace(one, declared=specs.get(one.declared.id, one.declared)) for one in self.decisions)
        return replace(self, decisions=tuple(decisions))

    @property
    def defined(self) -> tuple[RepositorySpec, ...]:
        """What our own file holds."""
        return tuple(decision.declared for decision in self.decisions if decision.action == DEFINED)

    @property
    def switched_on(self) -> tuple[tuple[RepositorySpec, str], ...]:
        """The repositories of the node that begin to count, with the entry that asks for them."""
        return tuple(
            (decision.declared, name)
            for decision in self.decisions
            if decision.action == SWITCHED_ON
            for name in decision.ids
        )


def replaced_ids(specs: Sequence[RepositorySpec], sections: Sequence[Section]) -> tuple[str, ...]:
    """Enabled repositories of the node that a mirror replaces, or that the site wants off."""
    unwanted = {
        name for declared in specs if declared.is_mirror or declared.state == DISABLED for name in declared.own_ids
    }
    return tuple(section.id for section in sections if section.is_enabled and section.id in unwanted)


def needed_look_ups(
    specs: Sequence[RepositorySpec], sections: Sequence[Section], ours: Collection[str]
) -> tuple[str, ...]:
    """Packages for which it has to be known whether the node's repositories offer them.

    Nothing is asked about what is settled: defined by the site, by the node, or by us in an earlier run.
    """
    enabled = {section.id for section in sections if section.is_enabled}
    return tuple(
        package
        for declared in specs
        if declared.state != DISABLED and not declared.is_mirror and declared.section not in ours
        if not enabled & set(declared.own_ids)
        for package in declared.packages
    )


def decide(
    specs: Sequence[RepositorySpec],
    sections: Sequence[Section],
    ours: Collection[str],
    offers: Mapping[str, Collection[str]],
    node: Node,
    *,
    has_gpu: bool = True,
) -> Plan:
    """``sections`` are the node's own, ``ours`` the ids in our file; ``offers`` maps packages to who offers them."""
    off = set(replaced_ids(specs, sections))
    decisions = [_decision(declared, sections, ours, offers, has_gpu=has_gpu) for declared in specs]
    on = {name for decision in decisions if decision.action == SWITCHED_ON for name in decision.ids}
    switches = tuple((section, section.id in on) for section in sections if section.id in off | on)
    problems = tuple(
        Problem(
            f"{VARIABLE}[{_spec_of(section.id, specs).id}]",
            "",
            ERR_SUBSCRIPTION.format(section.path, section.id),
            "run `subscription-manager repos --{}={}` on the node".format("enable" if is_on else "disable", section.id),
        )
        for section, is_on in switches
        if section.path.rsplit("/", 1)[-1] == SUBSCRIPTION_FILE
    )
    unknown = tuple(
        unknown_problem(decision.declared, node)
        for decision in decisions
        if decision.action == UNUSED and not decision.declared.is_known
    )
    catalogue = known_repositories(node)
    # Those of mirrors are known from the variables alone.
    keys = tuple(
        problem
        for decision in decisions
        if decision.action == DEFINED and not decision.declared.is_mirror
        for problem in key_problems(decision.declared, catalogue.get(decision.declared.id))
    )
    return Plan(tuple(decisions), switches, problems + unknown + keys)


def _spec_of(section_id: str, specs: Sequence[RepositorySpec]) -> RepositorySpec:
    return next(declared for declared in specs if section_id in declared.own_ids)


def _decision(
    declared: RepositorySpec,
    sections: Sequence[Section],
    ours: Collection[str],
    offers: Mapping[str, Collection[str]],
    *,
    has_gpu: bool,
) -> Decision:
    own = [section for section in sections if section.id in declared.own_ids]
    enabled = tuple(section.id for section in own if section.is_enabled)
    if declared.state == DISABLED:
        return Decision(declared, OFF, enabled)
    if declared.is_mirror:
        return Decision(declared, DEFINED, (declared.section,))
    if enabled:
        return Decision(declared, OWN, enabled)
    if declared.section in ours:
        return Decision(declared, DEFINED, (declared.section,))
    if declared.packages and all(offers.get(package) for package in declared.packages):
        return Decision(
            declared, OFFERED, tuple(sorted({name for package in declared.packages for name in offers[package]}))
        )
    # A site that uses nothing of the distribution's has repositories of its own: CRB, which is a default, stays off.
    if own and (
        declared.baseurl or declared.metalink or not declared.is_known or _is_in_use(own[0], declared.beside, sections)
    ):
        return Decision(declared, SWITCHED_ON, (own[0].id,))
    # A node without a GPU needs nothing of NVIDIA's, so a fingerprint that is not known stops nobody there.
    is_pinned = declared.fingerprints or declared.id != NVIDIA or has_gpu
    if (declared.baseurl or declared.metalink) and is_pinned:
        return Decision(declared, DEFINED, (declared.section,))
    return Decision(declared, UNUSED, tuple(section.id for section in own))


def _is_in_use(section: Section, beside: Collection[str], sections: Sequence[Section]) -> bool:
    """Whether the node uses one of the repositories beside it."""
    return any(other.is_enabled and (other.path == section.path or other.id in beside) for other in sections)


def key_path(declared: RepositorySpec) -> str:
    """Where the key of one of our repositories is kept."""
    return f"/etc/pki/rpm-gpg/RPM-GPG-KEY-{declared.section}"


def file_text(specs: Sequence[RepositorySpec], ca_certificate: str) -> str:
    """Our own file; empty when there is nothing in it, and then there is no file."""
    if not specs:
        return ""
    return HEADER + "".join("\n" + _section_text(declared, ca_certificate) for declared in specs)


def _section_text(declared: RepositorySpec, ca_certificate: str) -> str:
    # Values are plain: placeholders were filled in, and none of them has a line break.
    options = {
        "name": f"{declared.title} (gpu-cluster)",
        "baseurl": f"{declared.baseurl}/" if declared.baseurl else "",
        "metalink": declared.metalink,
        "enabled": "1",
        "gpgcheck": "1",
        "gpgkey": f"file://{key_path(declared)}",
        "metadata_expire": str(METADATA_EXPIRE_SECONDS),
        "proxy": "_none_" if declared.proxy == NONE else declared.proxy,
        "sslcacert": ca_certificate,
        "excludepkgs": " ".join(declared.exclude_packages),
    }
    return f"[{declared.section}]\n" + "".join(f"{key}={value}\n" for key, value in options.items() if value)


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
