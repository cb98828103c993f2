# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether root may run a Python environment: nobody else can change it, nor put another one in its place.

Looked at are every folder and every link on the way to a file, and of an environment what an interpreter reads first:
its configuration and what stands in its folders of packages.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

#: Put before a command: a user who owns nothing.
NOBODY = "65534"
AS_NOBODY = ("/usr/bin/setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
#: Variables of jobs that make an interpreter load code from other places.
LOADED_FROM = ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD")
#: Below the folder of an environment.
OF_AN_ENVIRONMENT = ("pyvenv.cfg", "bin/python*", "lib*/python3*", "lib*/python3*/site-packages/*")
#: So many are named.
MOST_NAMED = 3
FIX = (
    "have the user who trains run the ranks (cluster_check_user), or give the environment to root: chown -R root: and "
    "chmod -R go-w"
)


def refusal(python: str, variables: Mapping[str, str]) -> str:
    """Why root may not run this interpreter with these variables, with what to do; empty where it may."""
    return refusal_of(_environment(python), variables)


def refusal_of(paths: Iterable[str], variables: Mapping[str, str]) -> str:
    """The same for programs and libraries by their paths."""
    found = list(dict.fromkeys(_problems([*paths, *_named(variables)])))
    if not found:
        return ""
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"root would run what others can change: {'; '.join(found[:MOST_NAMED])}{more}. Fix: {FIX}"


def harmless(argv: Sequence[str], program: str = "") -> list[str]:
    """A command that asks a program, which is the first of its words where none is named.

    What others can change is asked by nobody in the place of root: they would become root by it.
    """
    as_root = os.geteuid() == 0 and any(_problems([program or argv[0]]))
    return [*AS_NOBODY, *argv] if as_root else list(argv)


def _environment(python: str) -> Iterator[str]:
    """The interpreter, and what its environment has it read."""
    yield python
    prefix = os.path.dirname(os.path.dirname(python))
    for pattern in OF_AN_ENVIRONMENT:
        yield from sorted(glob.glob(os.path.join(glob.escape(prefix), pattern)))


def _named(variables: Mapping[str, str]) -> Iterator[str]:
    """The places that variables name."""
    for name in LOADED_FROM:
        for part in variables.get(name, "").replace(" ", os.pathsep).split(os.pathsep):
            if part.startswith("/"):
                yield part


def _problems(paths: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for path in paths:
        for part in _way(os.path.abspath(path), seen):
            problem = _problem(part)
            if problem:
                yield problem


def _way(path: str, seen: set[str]) -> Iterator[str]:
    """Every part of a path and of what links on it lead to, each once."""
    part = "/"
    for name in [".", *path.strip("/").split("/")]:
        part = os.path.normpath(os.path.join(part, name))
        if part in seen:
            continue
        seen.add(part)
        yield part
        if os.path.islink(part):
            yield from _way(os.path.abspath(os.path.join(os.path.dirname(part), os.readlink(part))), seen)


def _problem(path: str) -> str:
    """Who else can change this; empty where nobody can, or where it is not there."""
    try:
        found = os.lstat(path)
    except OSError:
        return ""
    if found.st_uid != 0:
        return f"{path} belongs to uid {found.st_uid}"
    if stat.S_ISLNK(found.st_mode):
        return ""
    # In a folder such as /tmp, where everybody may write, what belongs to root stays where it is.
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        return ""
    if found.st_mode & stat.S_IWOTH:
        return f"everybody can write to {path}"
    if found.st_mode & stat.S_IWGRP and found.st_gid != 0:
        return f"gid {found.st_gid} can write to {path}"
    return ""
