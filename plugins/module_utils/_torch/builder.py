# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build, resolve and verify environments: the order of the commands, each with a deadline."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import horovod, pip, verify
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.lock import (
    Locked,
    missing_locked,
    needless_locked,
    read_report,
    render_lock,
    same_release,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import Requirement, missing_packages
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.store import (
    BuildError,
    installed_in,
    needs_in,
)

#: There when the kernel has SELinux and a policy is loaded.
SELINUX = "/sys/fs/selinux/enforce"
RESTORECON = "/usr/sbin/restorecon"
#: In every environment: what it was installed from.
LOCK_NAME = "gpu-cluster-lock.txt"
#: How long python -m venv, restorecon and the short questions may take, in seconds.
STEP_SECONDS = 300


@dataclass(frozen=True)
class Limits:
    """How long pip and the import of torch may take, in seconds."""

    install: int
    verify: int


def python_version(python: str) -> str:
    """The minor version of the interpreter: an environment goes on to work when its third number changes."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    return run([python, "-I", "-c", program], 60, python).strip()


def _make_venv(python: str, path: str, inherit: Sequence[int]) -> str:
    """A new environment without packages; its interpreter."""
    run([python, "-m", "venv", path], STEP_SECONDS, f"{python} -m venv", inherit)
    os.mkdir(os.path.join(path, "tmp"))
    return os.path.join(path, "bin", "python")


def resolve(
    folder: str, python: str, source: pip.Source, requirements: Sequence[Requirement], seconds: int
) -> tuple[str, dict[str, str]]:
    """The text of a lock for these requirements, and its packages. ``folder``: a temporary one with room for them."""
    path = os.path.join(folder, "resolve")
    inside = _make_venv(python, path, [])
    too_old = pip.old_pip(run([inside, "-m", "pip", "--version"], STEP_SECONDS, "pip --version"), python)
    if too_old:
        raise BuildError(too_old)
    report = os.path.join(path, "report.json")
    texts = [requirement.text for requirement in requirements]
    command = pip.resolve_command(inside, os.path.join(path, "tmp"), source, report, texts)
    run(command, seconds, "pip install --dry-run")
    with open(report, encoding="utf-8") as stream:
        found = read_report(json.load(stream))
    locked = [with_other_files(item, url, source) for item, url in found]
    text = render_lock(locked, requirements, python)
    shutil.rmtree(path)
    return text, {item.name: item.version for item in locked}


def with_other_files(locked: Locked, url: str, source: pip.Source) -> Locked:
    """The same with the hashes of all wheels of this version in the folder: nodes of another kind take another one."""
    if not source.local:
        return locked
    taken = os.path.basename(unquote(url))
    names = [name for name in sorted(os.listdir(source.find_links)) if same_release(name, locked)]
    hashes = {*locked.hashes}
    hashes.update(file_hash(os.path.join(source.find_links, name)) for name in names if name != taken)
    return Locked(locked.name, locked.version, tuple(sorted(hashes)))


def file_hash(path: str) -> str:
    """The hash of a file as a lock has it."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def build(
    path: str,
    python: str,
    source: pip.Source,
    lock_text: str,
    locked: Sequence[Locked],
    requirements: Sequence[Requirement],
    limits: Limits,
    guard: int,
) -> dict[str, Any]:
    """Make an environment and verify it; what the import said. Everything started keeps the descriptor ``guard``."""
    inside = _make_venv(python, path, [guard])
    lock_path = os.path.join(path, LOCK_NAME)
    with open(lock_path, "w", encoding="utf-8") as stream:
        stream.write(lock_text)
    temporary = os.path.join(path, "tmp")
    try:
        run(pip.install_command(inside, temporary, source, lock_path), limits.install, "pip install", [guard])
    except CommandError as error:
        raise BuildError(pip.tampered(str(error)) or str(error)) from None
    shutil.rmtree(temporary)
    installed = installed_in(path)
    missing = missing_packages(requirements, installed) + missing_locked(locked, installed)
    if missing:
        raise BuildError("pip ended well, but the environment is not the wanted one: {}".format("; ".join(missing)))
    # Before anything is started in it: a package can have code that every start of its interpreter runs.
    needless = needless_locked(locked, requirements, needs_in(path))
    if needless:
        raise BuildError("; ".join(needless))
    try:
        run([inside, "-I", "-m", "pip", "check"], STEP_SECONDS, "pip check", [guard])
    except CommandError as error:
        raise BuildError(f"the lock does not fit together. Fix: complete it, or remove it. {error}") from None
    label(path)
    out = run([inside, "-I", "-c", verify.PROGRAM], limits.verify, "the import of torch", [guard])
    found = verified(out, requirements)
    if any(requirement.name == "horovod" for requirement in requirements):
        out = run([inside, "-I", "-c", horovod.PROGRAM], limits.verify, "the import of Horovod", [guard])
        found["horovod"] = with_horovod(out)
    return found


def with_horovod(out: str) -> dict[str, Any]:
    """What the import of Horovod said, when it is what is wanted."""
    said: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    wrong = horovod.problems(said)
    if wrong:
        raise BuildError("; ".join(wrong))
    return said


def verified(out: str, requirements: Sequence[Requirement]) -> dict[str, Any]:
    """What the import said, when it is what is wanted."""
    try:
        found = verify.read_answer(out)
    except ValueError as error:
        raise BuildError(str(error)) from None
    problems = verify.version_problems(requirements, found)
    if problems:
        raise BuildError("; ".join(problems))
    return found


def label(path: str) -> None:
    """What pip unpacks has the label of its folder; programs and libraries have labels of their own."""
    if os.path.exists(SELINUX):
        # Not handed the guard: SELinux lets restorecon write to nothing of ours.
        run([RESTORECON, "-R", path], STEP_SECONDS, "restorecon", [])
