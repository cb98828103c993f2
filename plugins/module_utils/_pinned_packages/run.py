# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run from the options to the result: look, choose, ask dnf for its plan, change. The order is here."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf import repo_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import Mover, replace_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import (
    choice,
    locks,
    memory,
    repair,
    streams,
    system,
    transaction,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.choice import Choice
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Package, matches
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.spec import PackageSpec, Spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.spec import read as read_spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.system import SystemFailure
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.transaction import Step

ERR_NO_STREAM = "the module {} has no such stream; there are {}"
ERR_PLUGIN_OFF = "dnf's versionlock plugin is switched off there, and nothing would keep the versions"
ERR_LOCKED = "{} is locked to another version in {} ({})"
ERR_EXCLUDED = "there is {name} {versions}, and {option} = {pattern} in {path} hides it"
ERR_FILTERED = "there is {name} {versions}, and it belongs to a module stream that is not enabled"
ERR_DEPENDENT = "what is to be removed is needed by {}, which would go as well"

FIX_NO_STREAM = "list one of them"
FIX_PLUGIN_OFF = "set enabled = 1 there"
FIX_LOCKED = "take that lock away (`dnf versionlock delete {}`), or pin the version that it allows"
FIX_EXCLUDED = "take the pattern out there, or get the package from another repository"
FIX_FILTERED = "list its stream in module_streams (`dnf module list` shows them)"
FIX_DEPENDENT = "remove those packages first (`dnf remove`), then run again"

LEFT_OUT = "Left out: {}"
WAITING = "install {}, once a repository offers it"

MSG_AS_BEFORE = "Everything is as it was before."
MSG_HALF = (
    "The transaction has ended halfway: {} changed. What was begun is on record; run again, and it is put right and "
    "finished."
)


class RefusedError(Exception):
    """Something cannot be done, and nothing was changed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(problem.rule for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Node:
    """What the node says without a repository being asked."""

    installed: tuple[Package, ...]
    lock_path: str
    lock_text: str
    lock_list: locks.LockList
    remembered: memory.Memory
    stream_files: Mapping[str, str]

    @property
    def native(self) -> tuple[Package, ...]:
        """Without packages for another architecture, such as 32-bit libraries beside the others."""
        return tuple(one for one in self.installed if one.arch in (platform.machine(), "noarch"))

    @property
    def versions(self) -> dict[str, str]:
        """Versions by name; several ones of a package are listed."""
        found: dict[str, list[str]] = {}
        for package in sorted(self.installed, key=lambda one: one.evr):
            found.setdefault(package.name, []).append(str(package.evr))
        return {name: ", ".join(dict.fromkeys(versions)) for name, versions in found.items()}


@dataclass(frozen=True)
class Target:
    """What the node is to have in the end."""

    choices: tuple[Choice, ...]
    removals: tuple[Package, ...]
    lock_lines: tuple[str, ...]
    switches: tuple[streams.Switch, ...]
    skipped: tuple[str, ...]
    mending: repair.Repair
    #: What no repository has yet; in check mode only.
    waiting: tuple[PackageSpec, ...] = ()


def outcome(module: Mover, params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """The result of the module; raises RefusedError or SystemFailure."""
    spec, problems = read_spec(params)
    if problems:
        raise RefusedError(problems)
    spec = _with_plugin(spec)
    node = _look(spec)
    if node.remembered.begun or repair.duplicates(node.installed, spec.names):
        # It may not be interrupted at all: dnf goes on when the connection to the node breaks.
        system.wait_for_others(params["wait_seconds"])
        node = _look(spec)
    removals = _removals(spec, node.installed)
    kept = choice.kept(spec.packages, node.native) if spec.is_present else {}
    switches = streams.switches(spec.streams, spec.is_present, node.stream_files)
    known = [one for one in switches if f"{one.module}:{one.to}" not in node.remembered.skipped]
    twice = repair.duplicates(node.installed, spec.names)
    is_complete = not spec.is_present or len(kept) == len(spec.packages)
    if is_complete and not (removals or known or twice or node.remembered.begun):
        choices = tuple(Choice(wanted, kept[wanted.name], True) for wanted in spec.packages if wanted.name in kept)
        _refuse_locked(choices, spec, node, node.installed)
        lines = _lock_lines(choices, spec, node.installed)
        skipped = tuple(name for name in node.remembered.skipped if spec.is_present and name in spec.streams)
        target = Target(choices, (), lines, (), skipped, repair.Repair())
        return _settle(module, spec, node, target, check_mode)
    return _work(module, params, spec, node, check_mode)


# --- looking --------------------------------------------------------------------------------------------------------


def _is_pinned(spec: Spec) -> bool:
    return spec.is_present and any(wanted.version for wanted in spec.packages)


def _with_plugin(spec: Spec) -> Spec:
    """Without the plugin nothing would keep the versions, so it comes with them."""
    if not _is_pinned(spec) or locks.PLUGIN_PACKAGE in spec.names or os.path.exists(locks.CONFIGURATION):
        return spec
    return replace(spec, packages=(*spec.packages, PackageSpec(locks.PLUGIN_PACKAGE)))


def _look(spec: Spec) -> Node:
    remembered = memory.read(system.read_text(memory.path(spec.group)) or "")
    path, is_on = locks.place_and_switch(system.read_text(locks.CONFIGURATION) or "")
    if not is_on and _is_pinned(spec):
        raise RefusedError([Problem(locks.CONFIGURATION, "", ERR_PLUGIN_OFF, FIX_PLUGIN_OFF)])
    text = system.read_text(path) or ""
    return Node(
        installed=system.installed(),
        lock_path=path,
        lock_text=text,
        lock_list=locks.read(text, spec.group, remembered.locks),
        remembered=remembered,
        stream_files=system.stream_files(),
    )


def _removals(spec: Spec, installed: Sequence[Package]) -> tuple[Package, ...]:
    patterns = spec.absent if spec.is_present else (*spec.absent, *spec.names)
    return tuple(one for one in installed if any(fnmatchcase(one.name, pattern) for pattern in patterns))


def _pinned(choices: Sequence[Choice]) -> tuple[Package, ...]:
    return tuple(one.package for one in choices if one.wanted.version and not one.package.is_side_by_side)


def _lock_lines(choices: Sequence[Choice], spec: Spec, installed: Sequence[Package]) -> tuple[str, ...]:
    """A line for each pinned package, and for each of the installed ones that goes with them."""
    pinned = _pinned(choices)
    companions = locks.companions(pinned, spec.locked_with, installed)
    return tuple(dict.fromkeys(locks.line_for(package) for package in (*pinned, *companions)))


def _refuse_locked(choices: Sequence[Choice], spec: Spec, node: Node, installed: Sequence[Package]) -> None:
    """Raises RefusedError when somebody else's lock says something else of a package or of what goes with it."""
    companions = locks.companions(_pinned(choices), spec.locked_with, installed)
    packages = [(one.wanted.variable, one.package) for one in choices]
    packages += [(f"locked_with[{package.name}]", package) for package in companions]
    problems = []
    for variable, package in packages:
        for line in locks.against(node.lock_list.foreign_lines, package):
            rule = ERR_LOCKED.format(package.name, node.lock_path, line)
            fix = FIX_LOCKED.format(line.lstrip("!"))
            problems.append(Problem(variable, shown(str(package.evr)), rule, fix))
    if problems:
        raise RefusedError(problems)


# --- choosing -------------------------------------------------------------------------------------------------------


def _work(module: Mover, params: Mapping[str, Any], spec: Spec, node: Node, check_mode: bool) -> dict[str, Any]:
    """A run in which repositories are asked."""
    dnf = system.Dnf(params["timeout_seconds"], params["wait_seconds"])
    mending = _mending(spec, node)
    with system.box(node.lock_path) as box:
        switches, skipped = _switches(dnf, box, spec, node)
        whole = [one for one in node.native if one not in mending.erase]
        choices, without, problems = _choices(dnf, box, spec, whole)
        left_out = choice.left_out(without, problems)
        spec = replace(spec, packages=tuple(one for one in spec.packages if one not in left_out))
        places = {wanted.place for wanted in left_out}
        missing = [LEFT_OUT.format(one.sentence()) for one in problems if one.variable in places]
        problems = tuple(one for one in problems if one.variable not in places)
        if problems and not (check_mode and choice.can_wait(problems)):
            raise RefusedError(problems)
        _refuse_locked(choices, spec, node, ())
        # What goes with the pinned packages may have to move with them: its locks come after dnf's plan.
        lines = _lock_lines(choices, spec, ())
        removals = tuple(one for one in _removals(spec, node.installed) if one not in mending.erase)
        waiting = choice.waiting(without, problems)
        target = Target(choices, removals, lines, switches, skipped, mending, waiting)
        box.write_locks(locks.render(node.lock_list, spec.group, lines))
        if mending.erase and not check_mode:
            system.erase(mending.erase)
        # What is broken is still there in check mode, and would spoil the plan, as would what is not there yet.
        is_guess = check_mode and bool(mending.erase or problems)
        steps = _expected(target, node) if is_guess else _planned(dnf, box, target, spec, node)
    after = transaction.after([one for one in node.installed if one not in mending.erase], steps)
    if check_mode or not mending.erase:
        # Otherwise something was changed already, and the next run says it.
        _refuse_locked(choices, spec, node, after)
    target = replace(target, lock_lines=_lock_lines(choices, spec, after))
    if check_mode:
        sentences = [*missing, *(problem.sentence() for problem in problems)]
        return {**_result(spec, node, target, steps), "warnings": sentences}
    before = replace(node, installed=system.installed()) if mending.erase else node
    target, warnings = _change(module, dnf, spec, before, target, steps)
    return {**_result(spec, node, target, steps), "warnings": [*missing, *warnings]}


def _mending(spec: Spec, node: Node) -> repair.Repair:
    begun = node.remembered.begun
    suspects = repair.to_verify(begun, node.installed, spec.names)
    damaged = {package: repair.is_damaged(system.verify(package)) for package in suspects}
    found = repair.plan(begun, node.installed, spec.names, damaged)
    if begun and not found.sentences:
        said = f"the transaction of {begun.when} was interrupted, and every package that it had begun is whole"
        return replace(found, sentences=(said,))
    return found


def _switches(
    dnf: system.Dnf, box: system.Box, spec: Spec, node: Node
) -> tuple[tuple[streams.Switch, ...], tuple[str, ...]]:
    """The switches of streams, made in the box; and the streams whose module no repository has."""
    wanted = streams.switches(spec.streams, spec.is_present, node.stream_files)
    if not wanted:
        return (), ()
    ended = dnf(["module", "list"], prefix=box.prefix)
    if ended.code and "No matching" not in ended.err:
        raise SystemFailure(f"dnf cannot list module streams: {transaction.decisive(ended.out, ended.err)}")
    offered = streams.parse_list(ended.out)
    skipped = tuple(f"{one.module}:{one.to}" for one in wanted if one.module not in offered)
    switches = tuple(one for one in wanted if one.module in offered)
    problems = [
        Problem(
            "module_streams",
            shown(f"{one.module}:{one.to}"),
            ERR_NO_STREAM.format(one.module, ", ".join(offered[one.module])),
            FIX_NO_STREAM,
        )
        for one in switches
        if one.to and one.to not in offered[one.module]
    ]
    if problems:
        raise RefusedError(problems)
    dnf.switch_streams(switches, box.prefix)
    return switches, skipped


def _choices(
    dnf: system.Dnf, box: system.Box, spec: Spec, installed: Sequence[Package]
) -> tuple[tuple[Choice, ...], tuple[PackageSpec, ...], tuple[Problem, ...]]:
    """A version for each wanted; the spec for which there is none; and why."""
    if not spec.is_present or not spec.packages:
        return (), (), ()
    arch = platform.machine()
    offered = dnf.offered(spec.names, (), box.prefix)
    choices, without = choice.choose(spec.packages, installed, offered, arch)
    if not without:
        return choices, (), ()
    # What is said next must be true now, and not only of dnf's cache.
    offered = dnf.offered(spec.names, ("--refresh",), box.prefix)
    choices, without = choice.choose(spec.packages, installed, offered, arch)
    if not without:
        return choices, (), ()
    everything = ("--disableexcludes=all", "--setopt=*.module_hotfixes=1")
    existing = dnf.offered(spec.names, everything, box.prefix)
    hidden = _hidden(without, offered, existing)
    return choices, without, choice.problems(without, installed, existing, arch, dnf.repositories(), hidden)


def _hidden(
    without: Sequence[PackageSpec], offered: Sequence[Package], existing: Sequence[Package]
) -> dict[str, tuple[str, str]]:
    """Why dnf does not see packages that exist: rule and fix by name."""
    sections = [(path, section) for path, text in system.exclusions() for section in repo_file.parse(path, text)]
    found = {}
    for wanted in without:
        unseen = [one for one in existing if one.name == wanted.name and one not in offered]
        unseen = [one for one in unseen if not wanted.version or matches(wanted.version, one.evr)]
        if not unseen:
            continue
        words = {"name": wanted.name, "versions": ", ".join(str(evr) for evr in sorted({one.evr for one in unseen}))}
        found[wanted.name] = (ERR_FILTERED.format(**words), FIX_FILTERED)
        for path, section in sections:
            for option in ("exclude", "excludepkgs"):
                for pattern in re.split(r"[,\s]+", section.options.get(option, "")):
                    if pattern and any(_is_excluded(one, pattern) for one in unseen):
                        rule = ERR_EXCLUDED.format(option=option, pattern=pattern, path=path, **words)
                        found[wanted.name] = (rule, FIX_EXCLUDED)
    return found


def _is_excluded(package: Package, pattern: str) -> bool:
    name, version = package.name, package.evr.version
    without_arch = package.file_name.rpartition(".")[0]
    texts = (name, f"{name}.{package.arch}", f"{name}-{version}", without_arch, package.file_name, package.nevra)
    return any(fnmatchcase(text, pattern) for text in texts)


# --- dnf's plan -----------------------------------------------------------------------------------------------------


def _script(target: Target) -> str:
    # What gets another version now, or goes, need not be installed again.
    leaving = {one.wanted.name for one in target.choices if not one.is_installed}
    leaving.update(package.name for package in target.removals)
    return transaction.script(
        (package.nevra for package in target.removals),
        (package.nevra for package in target.mending.reinstall if package.name not in leaving),
        (
            # What nobody pinned is left to dnf, which also looks at priorities.
            one.package.nevra if one.wanted.version or one.wanted.family else one.wanted.name
            for one in target.choices
            if not one.is_installed
        ),
    )


def _arguments(target: Target) -> list[str]:
    """What only goes needs no repository."""
    is_removal = not target.mending.reinstall and all(one.is_installed for one in target.choices)
    return ["--disablerepo=*"] if is_removal else []


def _plan(dnf: system.Dnf, box: system.Box, target: Target, spec: Spec) -> tuple[Step, ...]:
    """What dnf is going to do; raises when it cannot, or would remove what others need."""
    script = _script(target)
    if not script:
        return ()
    ended = dnf.shell(script, ["--assumeno", *_arguments(target)], system.QUERY_SECONDS, box.prefix)
    steps = transaction.parse_plan(ended.out)
    missed = "No match for argument" in ended.out or "Unable to find a match" in ended.err
    if missed or not steps or (ended.code and "Operation aborted" not in ended.err):
        raise SystemFailure(f"dnf cannot do it: {transaction.decisive(ended.out, ended.err)}. {_so_far(target)}")
    others = [
        step.package
        for step in steps
        if step.is_dependent and not any(fnmatchcase(step.package.name, name) for name in (*spec.absent, *spec.names))
    ]
    if others:
        names = ", ".join(f"{package.name} {package.evr}" for package in others)
        problem = Problem("absent", shown(sorted({one.name for one in target.removals})), "", FIX_DEPENDENT)
        raise RefusedError([replace(problem, rule=ERR_DEPENDENT.format(names))])
    return steps


def _planned(dnf: system.Dnf, box: system.Box, target: Target, spec: Spec, node: Node) -> tuple[Step, ...]:
    """The same; a lock of others that keeps what goes with the pinned packages from coming along is named."""
    try:
        return _plan(dnf, box, target, spec)
    except SystemFailure:
        # Then something was changed already, and this is no refusal.
        if not target.mending.erase and spec.locked_with and node.lock_list.foreign_lines:
            box.write_locks(locks.render(locks.LockList("", ()), spec.group, target.lock_lines))
            steps: tuple[Step, ...] = ()
            with suppress(SystemFailure, RefusedError):
                steps = _plan(dnf, box, target, spec)
            _refuse_locked(target.choices, spec, node, transaction.after(node.installed, steps))
        raise


def _so_far(target: Target) -> str:
    """What was changed before dnf was asked for its plan."""
    erased = ", ".join(package.file_name for package in target.mending.erase)
    return f"Of the interrupted transaction, {erased} was removed before" if erased else MSG_AS_BEFORE


def _expected(target: Target, node: Node) -> tuple[Step, ...]:
    """The same without dnf: what was chosen, and not what that needs besides."""
    names = {package.name for package in node.installed if package not in target.mending.erase}
    steps = [Step(transaction.REMOVE, package) for package in target.removals]
    steps += [Step(transaction.REINSTALL, package) for package in target.mending.reinstall]
    for one in target.choices:
        if not one.is_installed:
            kind = transaction.UPGRADE if one.wanted.name in names else transaction.INSTALL
            steps.append(Step(kind, one.package))
    return tuple(steps)


# --- changing -------------------------------------------------------------------------------------------------------


def _settle(module: Mover, spec: Spec, node: Node, target: Target, check_mode: bool) -> dict[str, Any]:
    """Every package is as wanted; the locks may not be."""
    if not check_mode:
        _write_locks(module, spec, node, target)
        system.remember(module, spec.group, memory.Memory(target.lock_lines, target.skipped))
    return _result(spec, node, target, ())


def _write_locks(module: Mover, spec: Spec, node: Node, target: Target) -> None:
    text = locks.render(node.lock_list, spec.group, target.lock_lines)
    if text != node.lock_text:
        replace_file(module, node.lock_path, text)


def _change(
    module: Mover, dnf: system.Dnf, spec: Spec, node: Node, target: Target, steps: Sequence[Step]
) -> tuple[Target, list[str]]:
    """Write down what begins, and do it; what fails before a package has changed is taken back.

    Returns the target with the locks as they have become, and warnings.
    """
    coming = tuple(step.package for step in steps if step.kind != transaction.REMOVE)
    going = tuple(step.package for step in steps if step.kind == transaction.REMOVE)
    names = {package.name for package in (*coming, *going)}
    before = tuple(package for package in node.installed if package.name in names)
    begun = memory.Begun(time.strftime("%Y-%m-%d %H:%M:%S"), before, coming, going)
    if steps:
        # Both generations of our lines: when this run is interrupted, the next one must know either.
        known = tuple(dict.fromkeys((*node.lock_list.ours, *target.lock_lines)))
        system.remember(module, spec.group, memory.Memory(known, target.skipped, begun))
    said = ""
    suspects: Sequence[Package] = ()
    try:
        _write_locks(module, spec, node, target)
        dnf.switch_streams(target.switches)
        if steps:
            ended = dnf.shell(_script(target), ["-y", *_arguments(target)], dnf.timeout_seconds)
            said = f"{ended.out}\n{ended.err}"
            suspects = before if ended.code < 0 else ()
            now = system.installed()
            missing = _missing(target, now)
            if ended.code or missing:
                raise SystemFailure(_reason(ended, missing))
            lines = _lock_lines(target.choices, spec, now)
            if lines != target.lock_lines:
                target = replace(target, lock_lines=lines)
                replace_file(module, node.lock_path, locks.render(node.lock_list, spec.group, lines))
    except (SystemFailure, OSError) as error:
        raise SystemFailure(f"{error}. {_undo(module, spec, node, suspects)}") from error
    system.remember(module, spec.group, memory.Memory(target.lock_lines, target.skipped))
    return target, list(transaction.scriptlet_warnings(said))


def _missing(target: Target, installed: Sequence[Package]) -> list[str]:
    """What is not as it was to be, read back."""
    have = {package.nevra for package in installed}
    names = {package.name for package in installed}
    found = [
        f"{one.wanted.name} {one.package.evr} is not installed"
        for one in target.choices
        if one.package.nevra not in have and (one.wanted.version or one.wanted.name not in names)
    ]
    return found + [f"{one.name} {one.evr} is still there" for one in target.removals if one.nevra in have]


def _reason(ended: system.Ended, missing: Sequence[str]) -> str:
    signatures = transaction.signature_sentences(f"{ended.err}\n{ended.out}")
    if signatures:
        return " ".join(signatures).rstrip(".")
    said = transaction.decisive(ended.out, ended.err) if ended.code else "; ".join(missing)
    return f"dnf failed ({ended.code}): {said.rstrip('.')}"


def _undo(module: Mover, spec: Spec, node: Node, suspects: Sequence[Package]) -> str:
    """Take locks and streams back when no package has changed; say what became of it.

    ``suspects`` are installed packages that a killed dnf was about to replace or to remove: rpm lists them until that
    is done, whatever became of their files.
    """
    try:
        now = {package.nevra for package in system.installed()}
    except SystemFailure:
        now = set()
    differs = sorted(now ^ {package.nevra for package in node.installed})
    differs += [one.nevra for one in suspects if one.nevra in now and repair.is_damaged(system.verify(one))]
    if differs:
        return MSG_HALF.format(", ".join(differs[:10]))
    if (system.read_text(node.lock_path) or "") != node.lock_text:
        replace_file(module, node.lock_path, node.lock_text)
    system.restore_streams(module, node.stream_files)
    system.remember(module, spec.group, node.remembered)
    return MSG_AS_BEFORE


# --- telling --------------------------------------------------------------------------------------------------------


def _result(spec: Spec, node: Node, target: Target, steps: Sequence[Step]) -> dict[str, Any]:
    whole = [package for package in node.installed if package not in target.mending.erase]
    actions = [switch.sentence for switch in target.switches]
    actions += transaction.sentences(steps, whole)
    actions += [WAITING.format(wanted.name) for wanted in target.waiting]
    was, will = node.lock_list.ours, target.lock_lines
    actions += [f"unlock {line}" for line in was if line not in will]
    actions += [f"lock {line}" for line in will if line not in was]
    is_rewritten = locks.render(node.lock_list, spec.group, will) != node.lock_text
    if is_rewritten and was == will:
        actions.append(f"put our lines in {node.lock_path} in order")
    after = dict(node.versions)
    for step in steps:
        if step.kind == transaction.REMOVE:
            after.pop(step.package.name, None)
    after.update({step.package.name: str(step.package.evr) for step in steps if step.kind != transaction.REMOVE})
    after.update(
        {wanted.name: f"{wanted.version or 'any version'}, once a repository offers it" for wanted in target.waiting}
    )
    enabled = streams.enabled(node.stream_files)
    names = {*spec.names, *(step.package.name for step in steps)}
    now = [f"{module}:{stream}" for module, stream in sorted(enabled.items())]
    enabled.update({switch.module: switch.to for switch in target.switches})
    then = [f"{module}:{stream}" for module, stream in sorted(enabled.items()) if stream]
    versions = {one.wanted.name: str(one.package.evr) for one in target.choices}
    planned = {step.package.name: str(step.package.evr) for step in steps if step.kind != transaction.REMOVE}
    return {
        "changed": bool(actions or target.mending.sentences),
        "packages": {name: planned.get(name, version) for name, version in versions.items()},
        "actions": actions,
        "repaired": list(target.mending.sentences),
        "warnings": [],
        "diff": transaction.diff(names, node.versions, after, (was, will), (now, then)),
    }
