# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Use an environment that somebody else made: looked at and never written to."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.trust import AS_NOBODY
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import verify
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.environment import is_environment_name
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import Requirement
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.store import (
    BuildError,
    Store,
    closed_parent,
    installed_in,
    read_json,
    write_json,
)

#: nobody, in Fedora and EL since 8: https://fedoraproject.org/wiki/Changes/RenameNobodyUser
CLEAN = ["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "HOME=/", "LC_ALL=C.UTF-8"]

ERR_PATH = "%s is no whole path of a folder on this node. Fix: name the folder that holds bin/python"
ERR_KIND = "%s is neither a virtual environment (it has no pyvenv.cfg) nor a conda prefix (it has no conda-meta)"
ERR_OWN = "%s is an environment of this module, and would be pruned like others. Fix: adopt nothing, and it is used"
ERR_PYTHON = "%s has no bin/python that can be run"
ERR_CLOSED = (
    "ordinary users cannot enter %s, so they cannot use %s. Fix: chmod o+x it, or adopt an environment elsewhere"
)
ERR_IMPORT = "as an ordinary user, %s"


def record_path(store: Store) -> str:
    """Where it is kept what was verified: beside the link, because the environment is not ours."""
    return f"{store.prefix}.adopted.json"


def problems_of(store: Store, path: str) -> list[str]:
    """Why this path cannot be adopted, as far as that can be seen without running anything."""
    if not os.path.isabs(path) or not os.path.isdir(path):
        return [ERR_PATH % path]
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    own = folder == os.path.realpath(store.parent) and is_environment_name(store.base, name)
    if os.path.abspath(path) == store.prefix or own:
        return [ERR_OWN % path]
    problems = []
    if not any(os.path.exists(os.path.join(path, name)) for name in ("pyvenv.cfg", "conda-meta")):
        problems.append(ERR_KIND % path)
    python = os.path.join(path, "bin", "python")
    if not os.access(python, os.X_OK):
        problems.append(ERR_PYTHON % path)
    closed = [found for found in map(closed_parent, dict.fromkeys([python, os.path.realpath(python)])) if found]
    return problems + [ERR_CLOSED % (found, path) for found in dict.fromkeys(closed)]


def fingerprint(path: str) -> dict[str, Any]:
    """What shows, without importing anything, that an environment may be another one than it was.

    Every package that comes or goes changes the time of the folder that holds the packages.
    """
    folders = sorted(glob.glob(os.path.join(path, "lib", "python3*", "site-packages")))
    return {
        "path": path,
        "python": os.path.realpath(os.path.join(path, "bin", "python")),
        "changed_ns": [os.stat(folder).st_mtime_ns for folder in folders],
    }


def verify_adopted(path: str, requirements: Sequence[Requirement], seconds: int) -> dict[str, Any]:
    """Import torch as an ordinary user, who could not write there even by accident; what the import said."""
    python = os.path.join(path, "bin", "python")
    user = AS_NOBODY if os.geteuid() == 0 else []
    try:
        out = run([*user, *CLEAN, python, "-I", "-B", "-c", verify.PROGRAM], seconds, f"the import of torch in {path}")
    except CommandError as error:
        raise BuildError(ERR_IMPORT % error) from None
    try:
        found = verify.read_answer(out)
    except ValueError as error:
        raise BuildError(str(error)) from None
    problems = verify.adoption_problems(requirements, found, installed_in(path))
    if problems:
        raise BuildError("{}: {}".format(path, "; ".join(problems)))
    return found


def known(store: Store, path: str, requirements: Sequence[Requirement]) -> dict[str, Any]:
    """What an earlier run verified, when nothing that matters has changed since; else empty."""
    record = read_json(record_path(store))
    wanted = sorted(requirement.text for requirement in requirements)
    same = record.get("fingerprint") == fingerprint(path) and record.get("requirements") == wanted
    return dict(record.get("verified", {})) if same else {}


def remember(store: Store, path: str, requirements: Sequence[Requirement], verified: dict[str, Any]) -> None:
    """Keep what was verified."""
    wanted = sorted(requirement.text for requirement in requirements)
    write_json(record_path(store), {"fingerprint": fingerprint(path), "requirements": wanted, "verified": verified})


def forget(store: Store) -> None:
    """Nothing is adopted any more."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(record_path(store))
