# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What answers mean: repositories, keys and wheels that cannot be used, each with its sentence. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote
from xml.etree import ElementTree

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import openpgp, probe
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.spec import (
    CA_VARIABLE,
    FIX_NO_BASEURL,
    PROXY_VARIABLE,
    TIMEOUT_VARIABLE,
    VARIABLE,
    RepositorySpec,
)

REPOMD = "repodata/repomd.xml"
#: Mirrors of a metalink that are asked, the preferred first. dnf would go on to the others.
METALINK_MIRRORS = 3
_REPO_NAMESPACE = "{http://linux.duke.edu/metadata/repo}"

ERR_STATUS = "{server} answers {status} for {what}"
ERR_NAME = "the name {host} is not known to the node: {detail}"
ERR_REFUSED = "{server} refuses the connection"
ERR_TIMEOUT = "{server} did not answer within {seconds:.0f} s"
ERR_TLS = "the certificate of {server} is not accepted: {detail}"
ERR_CONNECTION = "no connection to {server}: {detail}"
ERR_TUNNEL = "{server} does not let the node through: {detail}"
ERR_MISSING = "the node cannot read {what}: {detail}"
ERR_TOO_LONG = f"{{server}} sends more than {probe.MAX_BYTES // 1024 // 1024} MiB for {{what}}"
ERR_WEB_PAGE = (
    "{server} answers with a web page{title} instead of {what}: a portal that wants a login, or the wrong address"
)
ERR_NOT_METADATA = "{server} answers with something else than {what}: {detail}"
ERR_NO_MIRROR = "the metalink of {server} names no mirror"
ERR_NO_PACKAGES = "the repository offers none of the wanted packages {wanted}"
ERR_ARCHITECTURE = "the repository is for {found}, and this node is {arch}"
ERR_UNUSABLE = "dnf cannot use the repository: {detail}"
ERR_OWN_UNUSABLE = "the node's own repository {name} cannot be read: {detail}"
ERR_KEY = "the key from {source} {detail}"
ERR_FOREIGN_KEY = "the key from {source} has the fingerprint {found}, and pinned is {pinned}"
ERR_ABSENT_KEY = "the file from {source} lacks the pinned key {pinned}"
ERR_EXPIRED = "the key {fingerprint} from {source} has expired on {date}"
ERR_REVOKED = "the key {fingerprint} from {source} has been revoked by its owner"
ERR_NO_FOLDER = "the node has no such folder"
ERR_NO_WHEEL = "holds no wheel of {requirement} for {arch}{others}"

FIX_PATH = "check the path: the address is that of the folder which holds repodata/"
FIX_MIRROR = "check the mirror, and that this node may reach it"
FIX_NAME = "check the spelling, and the node's name servers (`getent hosts {host}` on the node)"
FIX_TLS = (
    f"put the authority's certificate on the node and set {CA_VARIABLE} to it, or add it to the system's "
    "(/etc/pki/ca-trust/source/anchors, update-ca-trust)"
)
FIX_TIMEOUT = f"check routes and firewalls between the node and it, or raise {TIMEOUT_VARIABLE}"
FIX_PROXY = f"check {PROXY_VARIABLE}, or set proxy of the entry to none where the mirror needs none"
FIX_FOREIGN_KEY = (
    "find out why the key is another one before anything else; after a rotation that the maker announced, pin the new "
    "fingerprint in gpg_fingerprints"
)
FIX_EXPIRED = "get the renewed key from its maker and set gpg_key to it"
FIX_KEY = "set gpg_key to the armoured public key (`gpg --armor --export`)"
FIX_KEY_FILE = "set gpg_key to the whole path of the key on this controller"
FIX_PACKAGES = "mirror the whole repository, or list in packages what this mirror is for"
FIX_ARCHITECTURE = "write $basearch ($nvidia_arch for NVIDIA's) into the address, or correct it"
FIX_OWN = f"give {VARIABLE} an entry with this id: baseurl for a mirror, or state disabled"

_TITLE = re.compile(rb"<title[^>]*>([^<]{1,200})", re.IGNORECASE)


@dataclass(frozen=True)
class Wheels:
    """Where pip is to find wheels: a folder on the node, or an index. ``variable`` is the one that named it.

    ``pins`` are the variables that hold a version, by the name of the package; * stands for all others.
    """

    variable: str
    folder: str = ""
    index_url: str = ""
    requirements: tuple[str, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)


def _server(answer: probe.Answer) -> str:
    return f"the proxy {answer.proxy}" if answer.proxy else "the mirror"


def answer_problem(variable: str, value: str, what: str, answer: probe.Answer) -> Problem | None:
    """What is wrong with an answer whatever was asked for; None when there is a body to look at."""
    if answer.kind == probe.OK:
        page = _web_page_title(answer.body)
        if page is None or what.endswith("/"):
            return None
        rule = ERR_WEB_PAGE.format(server=_server(answer), title=page, what=what)
        return Problem(variable, value, rule, FIX_PROXY if answer.proxy else FIX_PATH)
    host = re.sub(r"^\w+://([^/]*@)?|[:/].*$", "", re.sub(r"^\w+://", "", answer.proxy or answer.url))
    words = {
        "server": _server(answer),
        "status": answer.status,
        "what": what,
        "host": host,
        "detail": answer.detail,
        "seconds": answer.seconds,
    }
    rule, fix = {
        probe.STATUS: (ERR_STATUS, FIX_PATH if answer.status in (403, 404) else FIX_MIRROR),
        probe.NAME: (ERR_NAME, FIX_NAME),
        probe.REFUSED: (ERR_REFUSED, FIX_MIRROR),
        probe.TIMEOUT: (ERR_TIMEOUT, FIX_TIMEOUT),
        probe.TLS: (ERR_TLS, FIX_TLS),
        probe.CONNECTION: (ERR_CONNECTION, FIX_MIRROR),
        probe.TUNNEL: (ERR_TUNNEL, FIX_PROXY),
        probe.MISSING: (ERR_MISSING, FIX_PATH),
        probe.TOO_LONG: (ERR_TOO_LONG, FIX_PATH),
    }[answer.kind]
    if answer.proxy and answer.kind != probe.TLS and answer.status != 404:
        fix = FIX_PROXY
    # From a proxy in between, a certificate and a missing file are the mirror's.
    if answer.kind == probe.TLS or answer.status == 404:
        words["server"] = "the mirror"
    return Problem(variable, value, rule.format(**words), fix.format(**words))


def _web_page_title(body: bytes) -> str | None:
    """The title of a web page, quoted; an empty text for one without; None for anything else."""
    start = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not start.startswith((b"<!doctype html", b"<html")):
        return None
    title = _TITLE.search(body[:65536])
    return " " + shown(title.group(1).decode("utf-8", "replace").strip()) if title else ""


def _root(body: bytes) -> ElementTree.Element:
    """The document's root; raises ValueError. Neither format has entities, and an XML bomb would need some."""
    if b"<!ENTITY" in body:
        raise ValueError("it declares entities")
    try:
        return ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is no XML ({error})") from None


def _with_fix(problem: Problem | None, declared: RepositorySpec) -> Problem | None:
    """The maker's address is no choice of the site: what helps is its own mirror, or going without."""
    if problem is None or declared.is_mirror:
        return problem
    return Problem(problem.variable, problem.value, problem.rule, f"{problem.fix}; or {FIX_NO_BASEURL}")


def repomd_problem(declared: RepositorySpec, answer: probe.Answer) -> Problem | None:
    """Whether the answer for repodata/repomd.xml is a repository's."""
    base = answer.url[: -len(REPOMD)].rstrip("/") if answer.url.endswith(REPOMD) else answer.url
    variable = f"{declared.place}.{'metalink' if declared.metalink else 'baseurl'}"
    problem = answer_problem(variable, shown(base), REPOMD, answer)
    if problem is None:
        try:
            root = _root(answer.body)
            if root.tag != f"{_REPO_NAMESPACE}repomd":
                raise ValueError(f"its first element is {shown(root.tag)}")
            if root.find(f"{_REPO_NAMESPACE}data[@type='primary']") is None:
                raise ValueError("it lists no primary metadata")
        except ValueError as error:
            rule = ERR_NOT_METADATA.format(server=_server(answer), what=REPOMD, detail=error)
            problem = Problem(variable, shown(base), rule, FIX_PATH)
    return _with_fix(problem, declared)


def is_unknown(answer: probe.Answer) -> bool:
    """Whether a server was reached and has no such thing: it says so, or it sends something else."""
    return answer.kind == probe.OK or (answer.kind == probe.STATUS and 400 <= answer.status < 500)


def metalink_mirrors(declared: RepositorySpec, answer: probe.Answer) -> tuple[tuple[str, ...], Problem | None]:
    """The addresses of repomd.xml on the preferred mirrors, or what is wrong with the metalink."""
    variable = f"{declared.place}.metalink"
    problem = answer_problem(variable, shown(declared.metalink), "the metalink", answer)
    if problem is None:
        try:
            root = _root(answer.body)
            if root.tag.rsplit("}", 1)[-1] != "metalink":
                raise ValueError(f"its first element is {shown(root.tag)}")
            urls = tuple((url.text or "").strip() for url in root.iter() if url.tag.rsplit("}", 1)[-1] == "url")
            urls = tuple(url for url in urls if url.startswith(("http://", "https://")) and url.endswith(REPOMD))
            if urls:
                return urls[:METALINK_MIRRORS], None
            rule = ERR_NO_MIRROR.format(server=_server(answer))
        except ValueError as error:
            rule = ERR_NOT_METADATA.format(server=_server(answer), what="a metalink", detail=error)
        problem = Problem(variable, shown(declared.metalink), rule, FIX_PATH)
    return (), _with_fix(problem, declared)


# --- keys -----------------------------------------------------------------------------------------------------------


def key_answer_problem(declared: RepositorySpec, answer: probe.Answer) -> Problem | None:
    """Whether the answer for a key is one to look at."""
    problem = answer_problem(f"{declared.place}.gpg_key", shown(declared.gpg_key), "the key", answer)
    if problem is None:
        return None
    fix = problem.fix.replace(FIX_PATH, "check the address")
    return Problem(problem.variable, problem.value, problem.rule, f"{fix}; or {FIX_KEY_FILE}")


def key_problems(declared: RepositorySpec, source: str, text: str, now: float) -> tuple[Problem, ...]:
    """Whether the text holds exactly the pinned keys, each of them valid at ``now`` (seconds since 1970)."""
    variable = f"{declared.place}.gpg_key"
    try:
        keys = openpgp.parse_keys(text)
    except openpgp.KeyFileError as error:
        return (Problem(variable, "", ERR_KEY.format(source=source, detail=error), FIX_KEY),)
    pinned = ", ".join(declared.fingerprints)
    problems = []
    for key in keys:
        words = {"source": source, "found": key.fingerprint, "fingerprint": key.fingerprint, "pinned": pinned}
        if key.fingerprint not in declared.fingerprints:
            problems.append(Problem(variable, "", ERR_FOREIGN_KEY.format(**words), FIX_FOREIGN_KEY))
        elif key.is_revoked:
            problems.append(Problem(variable, "", ERR_REVOKED.format(**words), FIX_FOREIGN_KEY))
        elif key.is_expired(now):
            date = time.strftime("%Y-%m-%d", time.gmtime(key.expires))
            problems.append(Problem(variable, "", ERR_EXPIRED.format(date=date, **words), FIX_EXPIRED))
    found = {key.fingerprint for key in keys}
    if not problems:
        problems = [
            Problem(variable, "", ERR_ABSENT_KEY.format(source=source, pinned=fingerprint), FIX_KEY)
            for fingerprint in declared.fingerprints
            if fingerprint not in found
        ]
    return tuple(problems)


# --- packages -------------------------------------------------------------------------------------------------------


def content_problems(declared: RepositorySpec, packages: Collection[tuple[str, str]], arch: str) -> tuple[Problem, ...]:
    """Whether a repository has what it is wanted for; ``packages`` are pairs of name and architecture."""
    variable = f"{declared.place}.{'metalink' if declared.metalink else 'baseurl'}"
    value = shown(declared.metalink or declared.baseurl)
    fitting = {name for name, its_arch in packages if its_arch in (arch, "noarch")}
    others = sorted({its_arch for _name, its_arch in packages if its_arch not in (arch, "noarch", "src")})
    missing = [name for name in declared.packages if name not in fitting]
    is_foreign = bool(others) and not any(its_arch == arch for _name, its_arch in packages)
    if is_foreign and (missing or not declared.packages):
        rule = ERR_ARCHITECTURE.format(found=", ".join(others), arch=arch)
        return (Problem(variable, value, rule, FIX_ARCHITECTURE),)
    if missing:
        rule = ERR_NO_PACKAGES.format(wanted=", ".join(missing))
        return (Problem(variable, value, rule, FIX_PACKAGES),)
    return ()


_FAILED_REPOSITORY = re.compile(r"Failed to download metadata for repo '([^']+)':? ?(.*)")


def failed_repositories(text: str) -> dict[str, str]:
    """What dnf says about repositories that it could not read, by id."""
    return {match.group(1): match.group(2).strip() for match in _FAILED_REPOSITORY.finditer(text)}


def dnf_problem(declared: RepositorySpec, text: str) -> Problem:
    """dnf itself refuses a repository that answered."""
    detail = failed_repositories(text).get(declared.section) or " ".join(text.split())[-300:]
    variable = f"{declared.place}.{'metalink' if declared.metalink else 'baseurl'}"
    return Problem(
        variable, shown(declared.metalink or declared.baseurl), ERR_UNUSABLE.format(detail=detail), FIX_MIRROR
    )


def own_problem(name: str, text: str) -> Problem:
    """A repository that the node defines cannot be read by dnf."""
    detail = failed_repositories(text).get(name) or " ".join(text.split())[-300:]
    return Problem(f"{VARIABLE}[{name}]", "", ERR_OWN_UNUSABLE.format(name=name, detail=detail), FIX_OWN)


# --- wheels ---------------------------------------------------------------------------------------------------------


def normal_name(name: str) -> str:
    """As an index spells it in its addresses (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def split_requirement(requirement: str) -> tuple[str, str]:
    """Name and version of ``name==version``; no version where none is pinned."""
    name, _equals, version = requirement.partition("==")
    return re.split(r"[\[<>=!~;\s]", name.strip(), maxsplit=1)[0], version.split(";")[0].strip()


def installed_patterns(prefix: str, requirement: str) -> tuple[str, ...]:
    """Glob patterns for what pip leaves behind when a pinned package is installed below ``prefix``.

    ``2.13.0`` is also met by a local version of it, such as ``2.13.0+cpu``.
    """
    name, version = split_requirement(requirement)
    stem = f"{prefix}/lib/python3*/site-packages/{normal_name(name).replace('-', '_')}-{version}"
    return (f"{stem}.dist-info", f"{stem}+*.dist-info") if version else ()


def wheel_problem(wheels: Wheels, requirement: str, names: Sequence[str], arch: str) -> Problem | None:
    """Whether one of the files is a wheel of the pinned version that installs on ``arch``."""
    name, version = split_requirement(requirement)
    versions = set()
    for file in names:
        parts = unquote(file).rsplit("/", 1)[-1].split("-")
        if not parts[-1].endswith(".whl") or len(parts) < 5 or normal_name(parts[0]) != normal_name(name):
            continue
        if parts[-1].endswith((f"{arch}.whl", "any.whl")):
            versions.add(parts[1])
    matches = {found for found in versions if not version or found == version or found.split("+")[0] == version}
    if matches:
        return None
    newest = sorted(versions, key=_version_key)[-5:]
    others = f"; it has {', '.join(newest)}" if newest else ""
    rule = ERR_NO_WHEEL.format(requirement=requirement, arch=arch, others=others)
    place = "the index" if wheels.index_url else "the folder"
    fix = "add the wheel, or pin a version that is there"
    pin = wheels.pins.get(normal_name(name)) or wheels.pins.get("*")
    if pin and version:
        where = f"{place} {wheels.index_url or wheels.folder}"
        return Problem(pin, shown(version if normal_name(name) in wheels.pins else requirement), f"{where} {rule}", fix)
    return Problem(wheels.variable, shown(wheels.index_url or wheels.folder), f"{place} {rule}", fix)


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", version))


_LINK = re.compile(rb"""href\s*=\s*["']?([^"'\s>#]+)""", re.IGNORECASE)


def index_page_names(body: bytes) -> tuple[str, ...]:
    """The files to which a page of an index links."""
    return tuple(link.decode("utf-8", "replace") for link in _LINK.findall(body))


def index_problem(wheels: Wheels, requirement: str, answer: probe.Answer, arch: str) -> Problem | None:
    """Whether the index has the package; a page that is no index has no such links."""
    name, _version = split_requirement(requirement)
    problem = answer_problem(wheels.variable, shown(wheels.index_url), f"{normal_name(name)}/", answer)
    if problem is not None:
        fix = problem.fix.replace(FIX_PATH, "check the path: the index is the folder above the packages' pages")
        return Problem(problem.variable, problem.value, problem.rule.replace("the mirror", "the index"), fix)
    return wheel_problem(wheels, requirement, index_page_names(answer.body), arch)


def default_index_problem(wheels: Wheels, requirement: str, answer: probe.Answer, arch: str) -> Problem | None:
    """The same of an index that did not answer, or that has a page of the package, or says that it has none."""
    if (answer.kind, answer.status) == (probe.STATUS, 404):
        return wheel_problem(wheels, requirement, (), arch)
    names = index_page_names(answer.body) if answer.kind == probe.OK else ()
    return wheel_problem(wheels, requirement, names, arch) if names else None


def names_by_repository(lines: Sequence[str]) -> Mapping[str, set[tuple[str, str]]]:
    """Name and architecture by repository, of lines as ``QUERY_FORMAT`` makes dnf print them."""
    found: dict[str, set[tuple[str, str]]] = {}
    for line in lines:
        parts = line.split("\t")
        if len(parts) == 3:
            found.setdefault(parts[0], set()).add((parts[1], parts[2]))
    return found


#: Tabs, because dnf prints other lines between them.
QUERY_FORMAT = "%{repoid}\\t%{name}\\t%{arch}\\n"
