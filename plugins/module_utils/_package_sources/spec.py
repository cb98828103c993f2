# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the variables ask for, checked and completed from the catalogue. Pure: variables in, specs or problems out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.catalogue import (
    NVIDIA_ARCHITECTURES,
    Known,
    Node,
    known_repositories,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.openpgp import normal_fingerprint
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._web_addresses import (
    INDEX,
    NO_PROXY,
    address_problems,
    proxy_problems,
)

VARIABLE = "package_sources_repositories"
PROXY_VARIABLE = "package_sources_proxy"
CA_VARIABLE = "package_sources_ca_certificate"
INDEX_VARIABLE = "package_sources_wheel_index_url"
TIMEOUT_VARIABLE = "package_sources_timeout_seconds"
ENABLED, DISABLED = "enabled", "disabled"
NONE = NO_PROXY
MAX_TIMEOUT_SECONDS = 60

ERR_ID = "expected letters, digits and any of ._:- in the id of a repository"
ERR_TWICE = "expected every id once"
ERR_UNKNOWN = "neither the node nor the collection knows a repository of this name{}"
ERR_NO_BUILD = "there is no such repository of its maker for EL {} on {}"
ERR_BOTH = "expected either baseurl or metalink, found both"
ERR_PLACEHOLDER = "expected only the placeholders {}, found {}"
ERR_NO_KEY = "packages are only taken when their signature is checked, and there is no key"
ERR_NO_KEY_FILE = "there is no such file on the controller, or it is empty"
ERR_NO_PIN = "a key is only taken with its fingerprint, and none is pinned"
ERR_FINGERPRINT = "expected 40 hexadecimal digits, or 64 for a key of version 6"
ERR_DISABLED_WITH = "state disabled switches off what the node defines, so nothing else is expected beside it"
ERR_TIMEOUT = f"expected 1 to {MAX_TIMEOUT_SECONDS} seconds"
ERR_CA = "expected the absolute path of a file on the node"
ERR_LINE = "expected one line without control characters"

FIX_NO_BASEURL = "give the entry the baseurl of your mirror, or leave the entry out"
FIX_KEY = "set gpg_key to a file on this controller, to an https:// address or to a file:///path on the node"
FIX_PIN = "set gpg_fingerprints to what `gpg --show-keys FILE` prints, compared with what the maker publishes"

_ID = re.compile(r"^[A-Za-z0-9._:-]+\Z")
_FINGERPRINT = re.compile(r"^(?:[0-9A-F]{40}|[0-9A-F]{64})$")
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z0-9_]+)\}|\$([A-Za-z0-9_]+)")


@dataclass(frozen=True)
class RepositorySpec:
    """One entry of the list. ``own_ids`` are the ids under which the node itself may define the repository; ``beside``
    are those of which one is in use where a definition without an address of ours is meant to be switched on.

    ``baseurl`` and ``metalink`` are complete; both are empty where only the node's own definition can be used.
    ``further_metalinks`` come after it, where their server does not know it.
    ``is_known`` is true for a name of the catalogue, ``is_mirror`` when the site gave the address. ``key_text`` is the
    key when it came with the variables; otherwise ``gpg_key`` is where it is.
    """

    id: str
    title: str
    state: str = ENABLED
    own_ids: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    baseurl: str = ""
    metalink: str = ""
    further_metalinks: tuple[str, ...] = ()
    is_known: bool = False
    is_mirror: bool = False
    gpg_key: str = ""
    key_text: str = ""
    fingerprints: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    exclude_packages: tuple[str, ...] = ()
    proxy: str = ""

    @property
    def place(self) -> str:
        """How problems name the entry."""
        return f"{VARIABLE}[{self.id}]"

    @property
    def section(self) -> str:
        """The id of our own definition, which can be mistaken for nobody else's."""
        return f"gpu-cluster-{self.id}"


def placeholders(node: Node) -> dict[str, str]:
    """What an address may hold. The file then has the plain address, so that what was probed is what dnf reads."""
    return {
        "releasever": str(node.major),
        "basearch": node.arch,
        "nvidia_arch": NVIDIA_ARCHITECTURES.get(node.arch, node.arch),
    }


def read_specs(
    entries: Sequence[Mapping[str, Any]], key_texts: Mapping[str, str], node: Node
) -> tuple[tuple[RepositorySpec, ...], tuple[Problem, ...]]:
    """Every entry as a spec, and everything that is wrong with the list."""
    catalogue = known_repositories(node)
    problems: list[Problem] = []
    specs: list[RepositorySpec] = []
    seen: set[str] = set()
    for entry in entries:
        name = str(entry["id"])
        if name in seen:
            problems.append(Problem(f"{VARIABLE}[{name}]", "", ERR_TWICE, "join the entries of this id"))
            continue
        seen.add(name)
        declared, wrong = _read(entry, catalogue.get(name), key_texts, node)
        problems += wrong
        specs.append(declared)
    return tuple(specs), tuple(problems)


def _read(
    entry: Mapping[str, Any], known: Known | None, key_texts: Mapping[str, str], node: Node
) -> tuple[RepositorySpec, list[Problem]]:
    name = str(entry["id"])
    given = {key: value for key, value in entry.items() if value not in (None, "", [])}
    place = f"{VARIABLE}[{name}]"
    problems: list[Problem] = []
    if not _ID.match(name):
        return RepositorySpec(name, ""), [
            Problem(f"{VARIABLE}[].id", shown(name), ERR_ID, "use it as `dnf repolist` shows it")
        ]
    own_ids = known.own_ids if known else (name,)
    title = str(given.get("name", known.title if known else name))
    if given.get("state") == DISABLED:
        more = sorted(set(given) - {"id", "state"})
        if more:
            problems.append(Problem(place, ", ".join(more), ERR_DISABLED_WITH, "remove it, or remove the state"))
        return RepositorySpec(name, title, DISABLED, own_ids), problems

    baseurl = _address(given, "baseurl", ("http", "https", "file"), place, node, problems)
    metalink = _address(given, "metalink", ("http", "https"), place, node, problems)
    is_mirror = bool(given.get("baseurl") or given.get("metalink"))
    if baseurl and metalink:
        problems.append(Problem(place, "", ERR_BOTH, "remove one of them"))
    if known and not is_mirror:
        baseurl, metalink = known.baseurl, (*known.metalinks, "")[0]
    gpg_key = _key_source(given, place, node, problems)
    declared = RepositorySpec(
        id=name,
        title=title,
        own_ids=own_ids,
        beside=known.beside if known else (),
        baseurl=baseurl.rstrip("/"),
        metalink=metalink,
        further_metalinks=known.metalinks[1:] if known and not is_mirror else (),
        is_known=known is not None,
        is_mirror=is_mirror,
        gpg_key=gpg_key or (known.gpg_key if known else ""),
        key_text=key_texts.get(gpg_key, ""),
        fingerprints=_fingerprints(given, place, problems) or (known.fingerprints if known else ()),
        packages=_packages(entry, known),
        exclude_packages=tuple(given.get("exclude_packages", ())),
        proxy=str(given.get("proxy", "")),
    )
    for key, texts in (
        ("name", [declared.title]),
        ("exclude_packages", declared.exclude_packages),
        ("packages", declared.packages),
    ):
        problems += [
            Problem(f"{place}.{key}", shown(text), ERR_LINE, "write it on one line")
            for text in texts
            if not str(text).isprintable()
        ]
    problems += _proxy_problems(f"{place}.proxy", declared.proxy, "none to go without")
    if is_mirror:
        problems += key_problems(declared, known)
    return declared, problems


def _packages(entry: Mapping[str, Any], known: Known | None) -> tuple[str, ...]:
    """An empty list asks for nothing; without a list the catalogue does."""
    given = entry.get("packages")
    if given is None:
        return known.packages if known else ()
    return tuple(str(name) for name in given)


def unknown_problem(declared: RepositorySpec, node: Node) -> Problem:
    """A name without an address that the node does not define: a slip of the pen, or not made for this node."""
    everywhere = known_repositories(Node(9, "9", "x86_64"))
    if declared.id in everywhere:
        return Problem(declared.place, "", ERR_NO_BUILD.format(node.major, node.arch), FIX_NO_BASEURL)
    meant = nearest(declared.id, everywhere)
    hint = f"; did you mean {meant}?" if meant else ": those are " + ", ".join(sorted(everywhere))
    return Problem(declared.place, "", ERR_UNKNOWN.format(hint), "set baseurl to the folder that holds repodata/")


def _address(
    given: Mapping[str, Any], key: str, schemes: tuple[str, ...], place: str, node: Node, problems: list[Problem]
) -> str:
    text = str(given.get(key, ""))
    return _expanded(text, f"{place}.{key}", schemes, node, problems) if text else ""


def _expanded(text: str, variable: str, schemes: tuple[str, ...], node: Node, problems: list[Problem]) -> str:
    """An address with its placeholders filled in; problems when it is none."""
    wrong = address_problems(variable, text, schemes)
    problems += wrong
    if wrong:
        return ""
    known = placeholders(node)
    names = [braced or plain for braced, plain in _PLACEHOLDER.findall(text)]
    unknown = sorted({f"${name}" for name in names if name not in known})
    if unknown:
        expected = ", ".join(f"${name}" for name in known)
        rule = ERR_PLACEHOLDER.format(expected, ", ".join(unknown))
        problems.append(Problem(variable, shown(text), rule, "write the value itself, for example 9-stream"))
        return ""
    return _PLACEHOLDER.sub(lambda match: known[match.group(1) or match.group(2)], text)


def _key_source(given: Mapping[str, Any], place: str, node: Node, problems: list[Problem]) -> str:
    """A file on the controller as it is written, anything with a scheme as an address."""
    text = str(given.get("gpg_key", ""))
    if "://" not in text:
        return text
    return _expanded(text, f"{place}.gpg_key", ("http", "https", "file"), node, problems)


def _fingerprints(given: Mapping[str, Any], place: str, problems: list[Problem]) -> tuple[str, ...]:
    found = tuple(normal_fingerprint(str(text)) for text in given.get("gpg_fingerprints", ()))
    fix = "give the whole fingerprint, as `gpg --show-keys FILE` prints it; a short key id identifies no key"
    problems += [
        Problem(f"{place}.gpg_fingerprints", shown(text), ERR_FINGERPRINT, fix)
        for text in found
        if not _FINGERPRINT.match(text)
    ]
    return found


def key_problems(declared: RepositorySpec, known: Known | None) -> list[Problem]:
    """What is missing before packages of a repository can be taken. It matters only where we define the repository."""
    problems = []
    if not declared.gpg_key:
        problems.append(Problem(f"{declared.place}.gpg_key", "", ERR_NO_KEY, FIX_KEY))
    elif "://" not in declared.gpg_key and not (declared.gpg_key.startswith("/") and declared.key_text.strip()):
        fix = "write its whole path; the variable inventory_dir holds the folder of the inventory"
        problems.append(Problem(f"{declared.place}.gpg_key", shown(declared.gpg_key), ERR_NO_KEY_FILE, fix))
    if not declared.fingerprints:
        hint = f"{FIX_PIN}; {known.key_hint}" if known and known.key_hint else FIX_PIN
        problems.append(Problem(f"{declared.place}.gpg_fingerprints", "", ERR_NO_PIN, hint))
    return problems


def _proxy_problems(variable: str, text: str, otherwise: str) -> list[Problem]:
    return [] if text == NONE else proxy_problems(variable, text, otherwise)


def setting_problems(proxy: str, ca_certificate: str, timeout_seconds: int) -> Iterable[Problem]:
    """What is wrong with the settings that all repositories share."""
    yield from _proxy_problems(
        PROXY_VARIABLE, proxy, "none to take the line out, or an empty text to leave dnf.conf alone"
    )
    if ca_certificate and (not ca_certificate.startswith("/") or not ca_certificate.isprintable()):
        yield Problem(CA_VARIABLE, shown(ca_certificate), ERR_CA, "write the path as it is on the node")
    if not 1 <= timeout_seconds <= MAX_TIMEOUT_SECONDS:
        yield Problem(TIMEOUT_VARIABLE, str(timeout_seconds), ERR_TIMEOUT, "5 suits a mirror in the same site")


def index_problems(index_url: Any) -> list[Problem]:
    """What is wrong with the address of the package index."""
    return address_problems(INDEX_VARIABLE, index_url, INDEX)
