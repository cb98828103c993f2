# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run from the variables to the result: read the node, ask the network, decide, change.

The order is here; what is decided, and how it is said, is in the other files.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _pip_settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf import repo_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf.system import read_repo_files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci, tree
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import Mover
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import (
    catalogue,
    openpgp,
    plan,
    probe,
    spec,
    system,
    verdict,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.catalogue import Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.spec import RepositorySpec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import choice
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import spec as pinned_spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import (
    DNF_FORMAT,
    RPM_FORMAT,
    parse_offers,
    parse_packages,
)

WHEEL_FOLDER_VARIABLE = "package_sources_wheel_folder"
#: The options of pinned_packages that only matter to an installation.
PINNED_DEFAULTS = {
    "group": "package_sources",
    "state": "present",
    "absent": (),
    "module_streams": (),
    "locked_with": (),
    "timeout_seconds": 3600,
    "wait_seconds": 0,
}
EVERYTHING = ("--disableexcludes=all", "--setopt=*.module_hotfixes=1")
ERR_NO_CA = "the node has no such file"
FIX_DEFAULT = (
    "for nodes without internet set {variable} to a mirror, see docs/air-gapped.md; this index was chosen, because the "
    "inventory names no source. Otherwise {fix}"
)
FIX_CA = "copy the authority's certificate to the node before this role runs, or correct the path"
WARN_UNUSED = (
    "The node has no repository {id} in use, and none was switched on. Where packages of it are needed, give "
    "package_sources_repositories[{id}] the baseurl of a mirror; where not, leave the entry out."
)
WARN_STALE_KEY = (
    "rpm still trusts the key {fingerprint} of a repository that is gone. To end that, run "
    "`rpm -e {package}` on the node."
)
WARN_NOT_ASKED = (
    "{url} was not asked: it is behind {proxy}, and only proxies of the kind http:// can be used for asking. "
    "dnf tries it when the definition changes."
)


class RefusedError(Exception):
    """Something cannot be used, and nothing was changed."""

    def __init__(self, problems: Sequence[Problem], asked: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__("; ".join(problem.rule for problem in problems))
        self.problems = tuple(problems)
        self.asked = list(asked)


class Asking:
    """Questions of this run, and what was answered."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.answers: dict[probe.Question, probe.Answer] = {}

    def all(self, questions: Sequence[probe.Question]) -> None:
        """Ask what was not asked before, all at once."""
        self.answers.update(probe.fetch_all([one for one in questions if one not in self.answers], self.seconds))

    @property
    def report(self) -> list[dict[str, Any]]:
        """What was asked, for the result."""
        return [
            {
                "url": answer.url,
                "answer": str(answer.status) if answer.kind == probe.STATUS else answer.kind,
                "seconds": answer.seconds,
                "proxy": answer.proxy,
            }
            for answer in self.answers.values()
        ]


class Routes:
    """How each address is reached: as dnf will, with what is wanted and with what dnf.conf says already."""

    def __init__(self, proxy: str, ca_certificate: str, dnf_conf: str) -> None:
        sections = repo_file.parse(system.DNF_CONF, dnf_conf)
        options: Mapping[str, str] = next((found.options for found in sections if found.id == repo_file.MAIN), {})
        self.wanted = proxy
        self.ca_certificate = ca_certificate or options.get("sslcacert", "")
        self.configured = options.get("proxy", "")
        if self.configured and options.get("proxy_username"):
            parts = urlsplit(self.configured)
            user = ":".join(quote(options.get(f"proxy_{name}", ""), safe="") for name in ("username", "password"))
            self.configured = f"{parts.scheme}://{user}@{parts.netloc}"

    def route(self, own_proxy: str = "") -> probe.Route:
        """For an entry with a proxy of its own, or for all others."""
        if own_proxy:
            return probe.Route("" if own_proxy == spec.NONE else own_proxy, self.ca_certificate)
        if self.wanted:
            return probe.Route(None if self.wanted == spec.NONE else self.wanted, self.ca_certificate)
        is_set = self.configured not in ("", "_none_")
        return probe.Route(self.configured if is_set else None, self.ca_certificate)

    @property
    def dnf_arguments(self) -> tuple[str, ...]:
        """The same for a dnf that runs before dnf.conf is changed."""
        if not self.wanted:
            return ()
        return (f"--setopt=proxy={'' if self.wanted == spec.NONE else self.wanted}",)


def outcome(module: Mover, params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """The result of the module, with its warnings; raises RefusedError before anything is changed."""
    node = system.read_node()
    proxy, ca_certificate, seconds = params["proxy"], params["ca_certificate"], params["timeout_seconds"]
    wanted, wrong = spec.read_specs(params["repositories"], params["key_texts"], node)
    problems = [*wrong, *spec.setting_problems(proxy, ca_certificate, seconds)]
    problems += spec.index_problems((params.get("wheels") or {}).get("index_url"))
    if ca_certificate and not problems and not os.path.isfile(ca_certificate):
        problems.append(Problem(spec.CA_VARIABLE, shown(ca_certificate), ERR_NO_CA, FIX_CA))
    if problems:
        raise RefusedError(problems)

    files = read_repo_files()
    our_file = os.path.realpath(system.OUR_FILE)
    our_text = files.pop(our_file, "")
    dnf_conf = system.read_text(system.DNF_CONF) or ""
    sections = [section for path, text in files.items() for section in repo_file.parse(path, text)]
    ours = {section.id: section for section in repo_file.parse(our_file, our_text)}
    routes = Routes(proxy, ca_certificate, dnf_conf)

    offers = _offers(wanted, sections, ours, routes, seconds, problems)
    plans = plan.decide(wanted, sections, tuple(ours), offers, node, has_gpu=bool(pci.gpus(tree.nvidia_devices())))
    problems += plans.problems
    asking = Asking(seconds)
    plans = plans.with_specs(_known_metalinks(asking, plans.defined, routes))
    warnings = _ask_repositories(asking, plans.defined, routes, problems)
    key_texts = _keys(asking, plans.defined, routes, problems)
    _ask_wheels(asking, params.get("wheels") or {}, routes, node, problems)
    new_text = plan.file_text(plans.defined, ca_certificate)
    if not problems:
        # What cannot be reached needs no second opinion, and dnf would take long to give one.
        _try_with_dnf(plans, new_text, ours, routes, node, seconds, problems)
    contents: dict[str, str | None] = dict(plan.with_switches(files, plans.switches))
    contents[our_file] = new_text or None
    if not problems:
        _ask_packages(
            params.get("packages") or [], {**files, our_file: our_text, **contents}, routes, node, seconds, problems
        )
    if problems:
        raise RefusedError(problems, asking.report)

    if proxy:
        contents[os.path.realpath(system.DNF_CONF)] = plan.with_proxy(dnf_conf, proxy)
    contents.update({plan.key_path(declared): key_texts[declared.id] for declared in plans.defined})
    stale = [path for path in glob.glob(system.KEY_FILES) if path not in contents]
    contents.update(dict.fromkeys(stale))

    trusted = system.trusted_keys() if plans.defined or stale else ()
    imports, dropped = _key_change(key_texts, trusted)
    before = {path: system.read_text(path) for path in contents}
    change = system.Change({path: text for path, text in contents.items() if text != before[path]}, imports, dropped)
    for path in stale:
        warnings += _stale_key_warnings(before[path] or "", trusted, key_texts)
    warnings += [WARN_UNUSED.format(id=one.declared.id) for one in plans.decisions if one.action == plan.UNUSED]
    if change and not check_mode:
        with system.applied(module, change):
            _read_back(plans, imports)
    return {
        "changed": bool(change),
        "repositories": [decision.as_dict() for decision in plans.decisions],
        "keys": [
            {"fingerprint": fingerprint, "repository": declared.section, "path": plan.key_path(declared)}
            for declared in plans.defined
            for fingerprint in declared.fingerprints
        ],
        "asked": asking.report,
        "warnings": warnings,
        "diff": _diff(change, before, trusted),
    }


# --- what the node and the network say ------------------------------------------------------------------------------


def _offers(
    wanted: Sequence[RepositorySpec],
    sections: Sequence[repo_file.Section],
    ours: Mapping[str, repo_file.Section],
    routes: Routes,
    seconds: int,
    problems: list[Problem],
) -> dict[str, set[str]]:
    """Which of the node's repositories offer the packages by which the known ones are told."""
    packages = plan.needed_look_ups(wanted, sections, tuple(ours))
    if not packages:
        return {}
    off = [f"--disablerepo={name}" for name in (*plan.replaced_ids(wanted, sections), *ours)]
    # Every repository that cannot be read is to be named, and not only the first.
    arguments = ["--setopt=*.skip_if_unavailable=1", *routes.dnf_arguments, *off]
    ended = system.dnf([*arguments, "repoquery", "--queryformat", verdict.QUERY_FORMAT, *packages], seconds)
    failed = verdict.failed_repositories(ended.err)
    problems += [verdict.own_problem(name, ended.err) for name in failed]
    if ended.code and not failed:
        problems.append(verdict.own_problem("dnf", ended.err))
    found: dict[str, set[str]] = {}
    for repository, offered in verdict.names_by_repository(ended.out.splitlines()).items():
        for name, _arch in offered:
            found.setdefault(name, set()).add(repository)
    return found


def _can_be_asked(route: probe.Route) -> bool:
    return not route.proxy or route.proxy.startswith("http://")


def _known_metalinks(asking: Asking, defined: Sequence[RepositorySpec], routes: Routes) -> dict[str, RepositorySpec]:
    """Of entries with several metalinks the one with the first one that its server knows, by id; all asked at once.

    Only an answer counts: a server that cannot be reached today decides nothing, and the file would change tomorrow.
    """
    questions = {
        declared: [
            probe.Question(one, routes.route(declared.proxy))
            for one in (declared.metalink, *declared.further_metalinks)
        ]
        for declared in defined
        if declared.further_metalinks and _can_be_asked(routes.route(declared.proxy))
    }
    asking.all([question for several in questions.values() for question in several])
    chosen = {}
    for declared, several in questions.items():
        for question in several:
            form, answer = replace(declared, metalink=question.url, further_metalinks=()), asking.answers[question]
            if verdict.metalink_mirrors(form, answer)[0]:
                chosen[declared.id] = form
            if form in chosen.values() or not verdict.is_unknown(answer):
                break
    return chosen


def _ask_repositories(
    asking: Asking, defined: Sequence[RepositorySpec], routes: Routes, problems: list[Problem]
) -> list[str]:
    """Ask for every repository's metadata, and for the keys that have to be fetched, in one go; warnings."""
    questions: dict[str, probe.Question] = {}
    warnings = []
    for declared in defined:
        route = routes.route(declared.proxy)
        url = declared.metalink or f"{declared.baseurl}/{verdict.REPOMD}"
        if not _can_be_asked(route):
            warnings.append(WARN_NOT_ASKED.format(url=url, proxy=(route.proxy or "").rsplit("@", 1)[-1]))
        else:
            questions[declared.id] = probe.Question(url, route)
    keys = [question for declared in defined for question in _key_questions(declared, routes)]
    asking.all([*questions.values(), *keys])

    mirrors: dict[str, list[probe.Question]] = {}
    asked = [declared for declared in defined if declared.id in questions]
    for declared in asked:
        if declared.metalink:
            urls, problem = verdict.metalink_mirrors(declared, asking.answers[questions[declared.id]])
            problems += [problem] if problem else []
            mirrors[declared.id] = [probe.Question(url, questions[declared.id].route) for url in urls]
        else:
            mirrors[declared.id] = [questions[declared.id]]
    asking.all([question for several in mirrors.values() for question in several])
    for declared in asked:
        found = [verdict.repomd_problem(declared, asking.answers[question]) for question in mirrors[declared.id]]
        # One mirror that answers is enough; if none does, the preferred one is named.
        if all(found):
            problems += [problem for problem in found[:1] if problem]
    return warnings


def _kept_key(declared: RepositorySpec) -> str:
    """The key file of an earlier run, if it still is what is pinned."""
    text = system.read_text(plan.key_path(declared)) or ""
    return "" if verdict.key_problems(declared, "", text, time.time()) else text


def _key_questions(declared: RepositorySpec, routes: Routes) -> Iterator[probe.Question]:
    """Keys come once from the network; after that the file with the pinned key is enough."""
    if not declared.fingerprints:
        return
    is_fetched = "://" in declared.gpg_key
    is_local = declared.gpg_key.startswith("file:")
    if is_fetched and (is_local or not _kept_key(declared)):
        yield probe.Question(declared.gpg_key, routes.route(declared.proxy))


def _keys(asking: Asking, defined: Sequence[RepositorySpec], routes: Routes, problems: list[Problem]) -> dict[str, str]:
    """The text of each repository's key file; what is no such key becomes a problem."""
    found = {}
    # Without a fingerprint there is nothing to compare a key with, and plan.decide has said so.
    for declared in (declared for declared in defined if declared.fingerprints):
        source, text = declared.gpg_key, declared.key_text or _kept_key(declared)
        for question in _key_questions(declared, routes):
            answer = asking.answers[question]
            problem = verdict.key_answer_problem(declared, answer)
            if problem:
                problems.append(problem)
                text = ""
                break
            text = answer.body.decode("utf-8", "surrogateescape")
        else:
            problems += verdict.key_problems(declared, source, text, time.time())
        found[declared.id] = text.rstrip() + "\n"
    return found


def _ask_wheels(asking: Asking, given: Mapping[str, Any], routes: Routes, node: Node, problems: list[Problem]) -> None:
    """Whether pip is going to find what it needs, unless that is installed already."""
    requirements = tuple(
        requirement
        for requirement in given.get("requirements", ())
        if not any(glob.glob(one) for one in verdict.installed_patterns(given["prefix"], requirement))
    )
    names_of = given.get("variables") or {}
    pins = names_of.get("requirements") or {}
    folder, index_url = given.get("folder", ""), str(given.get("index_url", "")).rstrip("/")
    home = os.path.expanduser("~")
    is_default = bool(index_url and given.get("prefer_pip_configuration"))
    if is_default and _pip_settings.names_a_source(os.environ, home, system.read_text):
        is_default, index_url = False, ""
    of_pip = ""
    if requirements and not folder and not index_url:
        of_pip = _pip_settings.index(os.environ, home, system.read_text, catalogue.PYPI)
    if folder:
        wheels = verdict.Wheels(names_of.get("folder") or WHEEL_FOLDER_VARIABLE, folder, "", requirements, pins)
        names = tuple(os.listdir(folder)) if os.path.isdir(folder) else None
        if names is None and requirements:
            fix = "mount or copy the folder to the node, or correct the path"
            problems.append(Problem(wheels.variable, shown(folder), verdict.ERR_NO_FOLDER, fix))
        found = [verdict.wheel_problem(wheels, one, names, node.arch) for one in requirements if names is not None]
    elif index_url or of_pip:
        place, variable = index_url or of_pip, names_of.get("index_url") or spec.INDEX_VARIABLE
        wheels = verdict.Wheels(variable, "", place, requirements, pins)
        pages = {
            one: probe.Question(f"{place}/{verdict.normal_name(verdict.split_requirement(one)[0])}/", routes.route())
            for one in requirements
        }
        asking.all(list(pages.values()))
        answers = {one: asking.answers[page] for one, page in pages.items()}
        if of_pip:
            # Nobody named it, and pip may get there in another way: only what it says for sure counts.
            found = [verdict.default_index_problem(wheels, one, told, node.arch) for one, told in answers.items()]
        else:
            found = [verdict.index_problem(wheels, one, told, node.arch) for one, told in answers.items()]
        if is_default:
            found = [one and replace(one, fix=FIX_DEFAULT.format(variable=variable, fix=one.fix)) for one in found]
    else:
        found = []
    problems += [problem for problem in found if problem]


def _try_with_dnf(
    plans: plan.Plan,
    text: str,
    ours: Mapping[str, repo_file.Section],
    routes: Routes,
    node: Node,
    seconds: int,
    problems: list[Problem],
) -> None:
    """Let dnf read what is new or different, with fresh metadata and apart from its configuration."""
    wanted = {section.id: section for section in repo_file.parse(system.OUR_FILE, text)}
    changed = [
        declared
        for declared in plans.defined
        if declared.section not in ours
        or dict(ours[declared.section].options) != dict(wanted[declared.section].options)
    ]
    common = ["--refresh", "--disablerepo=*", *routes.dnf_arguments]
    with system.temporary_repo_folder({system.OUR_FILE: text}) as folder:
        for declared in changed:
            ended = system.dnf(
                [
                    f"--setopt=reposdir={folder}",
                    *common,
                    f"--enablerepo={declared.section}",
                    "repoquery",
                    "--queryformat",
                    verdict.QUERY_FORMAT,
                ],
                seconds,
            )
            if ended.code:
                problems.append(verdict.dnf_problem(declared, ended.err))
                continue
            offered = verdict.names_by_repository(ended.out.splitlines()).get(declared.section, set())
            problems += verdict.content_problems(declared, offered, node.arch)
    for _spec, name in plans.switched_on:
        ended = system.dnf([*common, f"--enablerepo={name}", "makecache"], seconds)
        if ended.code:
            problems.append(verdict.own_problem(name, ended.err))


def _ask_packages(
    entries: Sequence[Mapping[str, Any]],
    repo_files: Mapping[str, str | None],
    routes: Routes,
    node: Node,
    seconds: int,
    problems: list[Problem],
) -> None:
    """Whether the repositories, as they are going to be, have what later roles pin and the node has not yet."""
    wanted, wrong = pinned_spec.read({**PINNED_DEFAULTS, "packages": entries})
    problems += wrong
    if wrong or not wanted.packages:
        return
    listed = system.run(["rpm", "-q", "--queryformat", RPM_FORMAT, *wanted.names], system.RPM_SECONDS)
    installed = [one for one in parse_packages(listed.out) if one.arch in (node.arch, "noarch")]
    kept = choice.kept(wanted.packages, installed)
    asked = [declared for declared in wanted.packages if declared.name not in kept]
    if not asked:
        return
    with system.temporary_repo_folder(repo_files) as folder:
        common = [f"--setopt=reposdir={folder}", *routes.dnf_arguments, "--quiet"]
        # Excludes and streams do not count: who has set them is named by the role that installs.
        query = [
            *EVERYTHING,
            "repoquery",
            "--available",
            "--queryformat",
            DNF_FORMAT,
            *(declared.name for declared in asked),
        ]
        # What is said must be true now, and not only of dnf's cache.
        for refresh in ([], ["--refresh"]):
            ended = system.dnf([*common, *refresh, *query], seconds)
            if ended.code:
                failed = verdict.failed_repositories(ended.err) or {"dnf": ""}
                problems += [verdict.own_problem(name, ended.err) for name in failed]
                return
            offered = parse_offers(ended.out)
            _choices, without = choice.choose(asked, installed, offered, node.arch)
            if not without:
                return
        used = system.dnf([*common, "repolist", "--enabled"], seconds).out.splitlines()[1:]
    names = [line.split()[0] for line in used if line.strip()]
    problems += choice.problems(without, installed, offered, node.arch, names, {})


# --- the change -----------------------------------------------------------------------------------------------------


def _key_change(
    key_texts: Mapping[str, str], trusted: Sequence[system.TrustedKey]
) -> tuple[tuple[str, ...], tuple[system.TrustedKey, ...]]:
    """Texts to import, and what rpm has of the same keys from before they were renewed."""
    now = time.time()
    valid = {one.key.fingerprint for one in trusted if not one.key.is_expired(now)}
    expired = {one.key.fingerprint: one for one in trusted if one.key.is_expired(now)}
    imports: dict[str, None] = {}
    dropped = []
    for text in key_texts.values():
        missing = [key.fingerprint for key in openpgp.parse_keys(text) if key.fingerprint not in valid]
        if missing:
            imports[text] = None
            dropped += [expired[fingerprint] for fingerprint in missing if fingerprint in expired]
    return tuple(imports), tuple(dict.fromkeys(dropped))


def _stale_key_warnings(text: str, trusted: Sequence[system.TrustedKey], key_texts: Mapping[str, str]) -> list[str]:
    """Keys of a file that goes, which rpm goes on to trust for every repository."""
    used = {key.fingerprint for one in key_texts.values() for key in openpgp.parse_keys(one)}
    try:
        gone = {key.fingerprint for key in openpgp.parse_keys(text)} - used
    except openpgp.KeyFileError:
        return []
    return [
        WARN_STALE_KEY.format(fingerprint=one.key.fingerprint, package=one.package)
        for one in trusted
        if one.key.fingerprint in gone
    ]


def _read_back(plans: plan.Plan, imports: Sequence[str]) -> None:
    """What dnf and rpm say after the change; raises SystemFailure."""
    ended = system.run(["dnf", "-q", "repolist", "--enabled"], system.DNF_SECONDS)
    enabled = {line.split()[0] for line in ended.out.splitlines() if line.strip()}
    wanted_on = {declared.section for declared in plans.defined} | {name for _spec, name in plans.switched_on}
    wanted_off = {section.id for section, is_on in plans.switches if not is_on}
    trusted = {one.key.fingerprint for one in system.trusted_keys()}
    imported = {key.fingerprint for text in imports for key in openpgp.parse_keys(text)}
    wrong = [f"dnf does not list {name}" for name in sorted(wanted_on - enabled)]
    wrong += [f"dnf still lists {name}" for name in sorted(wanted_off & enabled)]
    wrong += [f"rpm does not list the key {fingerprint}" for fingerprint in sorted(imported - trusted)]
    if ended.code:
        wrong = [" ".join(ended.err.split())]
    if wrong:
        raise system.SystemFailure(system.ERR_NOT_READ_BACK.format(", ".join(wrong)))


def _diff(
    change: system.Change, before: Mapping[str, str | None], trusted: Sequence[system.TrustedKey]
) -> list[dict[str, str]]:
    """The files, and the keys that rpm trusts, as Ansible shows differences."""
    result = [
        {"before_header": path, "after_header": path, "before": before[path] or "", "after": text or ""}
        for path, text in sorted(change.files.items())
    ]
    if change.keys:
        old = sorted(one.key.fingerprint for one in trusted)
        new = {key.fingerprint for text in change.keys for key in openpgp.parse_keys(text)}
        title = "keys trusted by rpm"
        result.append(
            {
                "before_header": title,
                "after_header": title,
                "before": "".join(f"{fingerprint}\n" for fingerprint in old),
                "after": "".join(f"{fingerprint}\n" for fingerprint in sorted({*old, *new})),
            }
        )
    return result
