# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of the modules: check the inputs, compare, and when something differs build or adopt, switch and prune."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _pip_settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import file_lock
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf.system import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import adoption, builder, horovod
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.environment import (
    Decision,
    Wanted,
    decide,
    incomplete,
    make_inputs,
    short_digest,
    superfluous,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.lock import (
    Locked,
    lock_digest,
    lock_problems,
    parse_lock,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import (
    InputError,
    Requirement,
    parse_requirements,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pip import Source
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.store import (
    BuildError,
    Store,
    closed_parent,
    end_processes_of,
    installed_in,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._web_addresses import (
    INDEX,
    address_problems,
    proxy_problems,
    secret_problems,
)

ERR_REQUIREMENTS = "Wrong input for the environment: %s"
ERR_LOCK = "Nothing was changed. In %s: %s"
ERR_SOURCES = "find_links and index_url were both given: choose one source of packages"
ERR_NO_LINK = "%s exists and is no link: it is not an environment of this module. Move it away."
ERR_NO_PYTHON = "There is no interpreter %s on this node: install it, or name another one."
ERR_CLOSED = "Ordinary users cannot enter %s, so they would not find %s: chmod o+x it."
ERR_NO_FOLDER = "there is no folder %s with wheels on this node"
ERR_FAILED = "The environment was not %s: %s. %s."
WARN_WAITED = "Waited %.0f s for another run that held %s: %s."
ERR_WAIT = "wait_seconds = %d: expected 0 to %d"
#: A day: whoever waits longer has a stuck process.
MOST_WAIT_SECONDS = 86400
ERR_HOROVOD = "Horovod was not built: %s. The environment in use was not changed."
ERR_UNRESOLVED = "The packages could not be resolved: %s. Nothing was changed."

#: What a step may raise that is a reason to keep what is in use.
STEP_ERRORS = (BuildError, CommandError, InputError, OSError)


class RefusedError(Exception):
    """The run ends here; the text is the whole message."""


@dataclass(frozen=True)
class Inputs:
    """What was asked for, checked."""

    params: Mapping[str, Any]
    requirements: list[Requirement]
    locked: list[Locked]
    source: Source

    @property
    def limits(self) -> builder.Limits:
        """How long things may take."""
        return builder.Limits(self.params["install_timeout_seconds"], self.params["verify_timeout_seconds"])


def read_inputs(params: Mapping[str, Any]) -> Inputs:
    """Refuse what is wrong before anything is looked at."""
    adopt = params.get("adopt", "")
    requirements: list[Requirement] = []
    locked: list[Locked] = []
    try:
        if params["requirements"] or not adopt:
            requirements = parse_requirements(params["requirements"])
    except InputError as error:
        raise RefusedError(ERR_REQUIREMENTS % error) from None
    try:
        if params.get("lock") and not adopt:
            locked = parse_lock(params["lock"])
            problems = lock_problems(locked, requirements)
            if problems:
                raise InputError(problems)
    except InputError as error:
        raise RefusedError(ERR_LOCK % (params["lock_name"], error)) from None
    wrong = secret_problems("find_links", params["find_links"])
    wrong += address_problems("index_url", params["index_url"], INDEX) + proxy_problems("proxy", params["proxy"])
    if wrong:
        raise RefusedError(ERR_REQUIREMENTS % " ".join(problem.sentence() for problem in wrong))
    if not 0 <= params.get("wait_seconds", 0) <= MOST_WAIT_SECONDS:
        raise RefusedError(ERR_REQUIREMENTS % (ERR_WAIT % (params["wait_seconds"], MOST_WAIT_SECONDS)))
    if params["find_links"] and params["index_url"]:
        raise RefusedError(ERR_SOURCES)
    home = os.path.expanduser("~")
    if params.get("prefer_pip_configuration") and _pip_settings.names_a_source(os.environ, home, read_text):
        params = {**params, "index_url": ""}
    source = Source(params["find_links"], params["index_url"], params["proxy"], params.get("wheels", ""))
    return Inputs(params, requirements, locked, source)


def check_place(store: Store) -> None:
    """Refuse a prefix that cannot become a link, or that users would not find."""
    if os.path.lexists(store.prefix) and not os.path.islink(store.prefix):
        raise RefusedError(ERR_NO_LINK % store.prefix)
    closed = closed_parent(store.prefix)
    if closed:
        raise RefusedError(ERR_CLOSED % (closed, store.prefix))


def described(path: str, packages: Mapping[str, str]) -> str:
    """One side of the diff: the environment and what is in it."""
    lines = [f"{name}=={version}" for name, version in sorted(packages.items())]
    return "\n".join([path, *lines, ""]) if path else ""


def outcome(params: Mapping[str, Any], check_mode: bool, tmpdir: str) -> dict[str, Any]:
    """What torch_environment returns; raises ``RefusedError`` when the environment in use stays."""
    inputs = read_inputs(params)
    store = Store(params["prefix"])
    check_place(store)
    # The module's own umask may be stricter than what jobs of other users need.
    os.umask(0o022)
    in_use = store.target()
    before = described(in_use, installed_in(in_use))
    try:
        found = adopted(inputs, store, check_mode) if params["adopt"] else built(inputs, store, check_mode, tmpdir)
    except STEP_ERRORS as error:
        kept = f"{store.prefix} still names {in_use}" if in_use else f"There is no {store.prefix} yet"
        raise RefusedError(ERR_FAILED % ("adopted" if params["adopt"] else "built", error, kept)) from None
    after = described(found["environment"] or "a new environment", found["packages"])
    header = {"before_header": store.prefix, "after_header": store.prefix}
    busy = file_lock.holder(store.lock_path) if check_mode and found["changed"] else ""
    return {
        **found,
        "in_use": not found["changed"],
        "busy_with": busy,
        "diff": {**header, "before": before, "after": after},
    }


def resolved(params: Mapping[str, Any], tmpdir: str) -> dict[str, Any]:
    """What torch_lock returns; raises ``RefusedError`` when the packages cannot be had."""
    inputs = read_inputs(params)
    try:
        check_source(inputs.source)
        python, seconds = params["python"], params["timeout_seconds"]
        text, packages = builder.resolve(tmpdir, python, inputs.source, inputs.requirements, seconds)
    except STEP_ERRORS as error:
        raise RefusedError(ERR_UNRESOLVED % error) from None
    return {"changed": False, "lock": text, "packages": packages}


def horovod_wheel(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """What horovod_wheel returns; raises ``RefusedError`` when it cannot be built."""
    inputs = read_inputs({**params, "requirements": [params["torch"]]})
    wish = horovod.Wish(
        version=params["version"],
        sha256=params["sha256"],
        local=params["local_version"],
        torch=params["torch"],
        python=params["python"],
        mpi_prefix=params["mpi_prefix"],
    )
    found = horovod.find(params["folder"], wish)
    if found or check_mode:
        return {"changed": not found, "wheel": found}
    if not os.access(wish.python, os.X_OK):
        raise RefusedError(ERR_NO_PYTHON % wish.python)
    os.umask(0o022)
    store = Store(params["prefix"])
    work = f"{store.prefix}-horovod-build"
    try:
        check_source(inputs.source)
        os.makedirs(store.parent, mode=0o755, exist_ok=True)
        with alone(store, params["wait_seconds"]) as (guard, _warnings):
            for _again in range(50):
                if not end_processes_of(work, inside=True):
                    break
                time.sleep(0.1)  # One of them may have started another meanwhile.
            shutil.rmtree(work, ignore_errors=True)
            found = horovod.find(params["folder"], wish)  # Another run has built it meanwhile.
            if found:
                return {"changed": False, "wheel": found}
            os.mkdir(work, 0o755)
            folder, seconds = params["folder"], params["timeout_seconds"]
            try:
                return {"changed": True, "wheel": horovod.build(work, folder, wish, inputs.source, seconds, [guard])}
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except STEP_ERRORS as error:
        raise RefusedError(ERR_HOROVOD % error) from None


def check_source(source: Source) -> None:
    """Say it in our words when the folder is not there."""
    if source.local and not os.path.isdir(source.find_links):
        raise BuildError(ERR_NO_FOLDER % source.find_links)


def key_of(params: Mapping[str, Any]) -> str:
    """The same on nodes that resolve the same packages and keep them in the same lock file."""
    names = ("requirements", "python", "find_links", "index_url", "lock_name")
    return short_digest([platform.machine(), *(params[name] for name in names)])


def built(inputs: Inputs, store: Store, check_mode: bool, tmpdir: str) -> dict[str, Any]:
    """Compare, and build what is wanted beside what is there."""
    params = inputs.params
    python = params["python"]
    common = {"lock": params["lock"], "key": key_of(params), "removed": []}
    in_lock = {item.name: item.version for item in inputs.locked if not item.marker}
    if not os.access(python, os.X_OK):
        if check_mode:
            return {**common, "changed": True, "built": True, "environment": "", "packages": in_lock}
        raise RefusedError(ERR_NO_PYTHON % python)
    wanted = Wanted(
        make_inputs(
            inputs.requirements,
            python=python,
            python_version=builder.python_version(python),
            find_links=params["find_links"],
            index_url=params["index_url"],
        ),
        lock_digest(inputs.locked) if inputs.locked else "",
    )
    decision = decide(store.base, wanted, store.environments(), store.linked())
    if decision.changed and not check_mode:
        os.makedirs(store.parent, mode=0o755, exist_ok=True)
        with alone(store, params["wait_seconds"]) as (guard, warnings):
            details = apply(inputs, wanted, store, tmpdir, guard)
        return {**common, **details, "warnings": warnings}
    path = store.path(decision.name)
    if decision.build:
        path = path if wanted.lock else ""
        return {**common, "changed": True, "built": True, "environment": path, "packages": in_lock}
    common["lock"] = store.environment(decision.name).lock
    packages = installed_in(path)
    return {**common, "changed": decision.changed, "built": False, "environment": path, "packages": packages}


@contextlib.contextmanager
def alone(store: Store, wait_seconds: int) -> Iterator[tuple[int, list[str]]]:
    """The lock's descriptor, and a warning when another run was waited for."""
    started = time.monotonic()
    who: list[str] = []
    with store.locked(wait_seconds, who.append) as guard:
        waited = time.monotonic() - started
        yield guard, [WARN_WAITED % (waited, store.lock_path, one) for one in who]


def apply(inputs: Inputs, wanted: Wanted, store: Store, tmpdir: str, guard: int) -> dict[str, Any]:
    """Build when needed, switch, prune. Decides anew: another run may have ended since the comparison."""
    removed = clean_up(store)
    previous = store.linked()
    params = inputs.params
    decision = decide(store.base, wanted, store.environments(), previous)
    text = params["lock"]
    if decision.build:
        check_source(inputs.source)
    if decision.build and not text:
        python, seconds = params["python"], params["install_timeout_seconds"]
        text, _packages = builder.resolve(tmpdir, python, inputs.source, inputs.requirements, seconds)
        inputs = Inputs(params, inputs.requirements, parse_lock(text), inputs.source)
        wanted = Wanted(wanted.inputs, lock_digest(inputs.locked))
        decision = decide(store.base, wanted, store.environments(), previous)
    verified = make(inputs, wanted, decision, store, text, guard) if decision.build else {}
    if decision.switch:
        store.switch(decision.name)
    adoption.forget(store)
    removed += prune(store, decision.name, previous, params["keep"])
    found = store.environment(decision.name)
    return {
        "changed": decision.changed or bool(removed),
        "built": decision.build,
        "environment": store.path(decision.name),
        "packages": dict(found.installed),
        "lock": found.lock,
        "removed": removed,
        **({"verified": verified} if decision.build else {}),
    }


def make(
    inputs: Inputs, wanted: Wanted, decision: Decision, store: Store, lock_text: str, guard: int
) -> dict[str, Any]:
    """Build and end it with the record, or leave nothing; what the import said."""
    path = store.path(decision.name)
    try:
        verified = builder.build(
            path,
            inputs.params["python"],
            inputs.source,
            lock_text,
            inputs.locked,
            inputs.requirements,
            inputs.limits,
            guard,
        )
        content = {"inputs": wanted.inputs, "lock": lock_text, "packages": installed_in(path), "verified": verified}
        store.record(decision.name, content)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return verified


def clean_up(store: Store) -> list[str]:
    """Remove what interrupted builds left, and end what of them still runs; the folders that are gone."""
    names = incomplete(store.environments(), store.linked())
    for name in names:
        end_processes_of(store.path(name))
    return store.remove(names)


def prune(store: Store, linked: str, previous: str, keep: int) -> list[str]:
    """Remove the old ones beyond ``keep``; the folders that are gone."""
    names = [environment.name for environment in store.environments()]
    return store.remove(superfluous(names, linked, previous, keep))


def adopted(inputs: Inputs, store: Store, check_mode: bool) -> dict[str, Any]:
    """Verify an environment that is there, and let the link name it. Verified again only when it has changed."""
    path = os.path.normpath(inputs.params["adopt"])
    problems = adoption.problems_of(store, path)
    if problems:
        raise BuildError("; ".join(problems))
    known = adoption.known(store, path, inputs.requirements)
    seconds = inputs.params["verify_timeout_seconds"]
    verified = known or adoption.verify_adopted(path, inputs.requirements, seconds)
    switch = store.target() != path
    removed: list[str] = []
    warnings: list[str] = []
    if (switch or not known) and not check_mode:
        os.makedirs(store.parent, mode=0o755, exist_ok=True)
        with alone(store, inputs.params["wait_seconds"]) as (_guard, warnings):
            removed = clean_up(store)
            previous = store.linked()
            adoption.remember(store, path, inputs.requirements, verified)
            store.switch(path)
            removed += prune(store, "", previous, inputs.params["keep"])
    packages = {**installed_in(path), "torch": verified["torch"]}
    found = {"environment": path, "packages": packages, "verified": verified, "lock": "", "key": ""}
    return {**found, "changed": switch, "built": False, "removed": removed, "warnings": warnings}
