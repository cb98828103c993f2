# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of files that a playbook writes: all of them or none, and never over one that somebody has edited."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import files
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _generated_file

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

ERR_NAME = "%s: expected the name of a file in the folder, of letters, digits and signs of _.-"
ERR_NO_FOLDER = "%s: there is something that is no folder"
ERR_FOLDER = "%s cannot be read: %s"
ERR_EDITED = "%s was edited since %s wrote it"
ERR_OTHER = "%s: there is something else with this name"
MODE = 0o644


class Refused(Exception):
    """Nothing was written; ``reasons`` has all of them."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons


@dataclass
class Plan:
    """What would change in a folder: texts before and after by name, None where there is no file."""

    folder: str
    before: dict[str, str | None] = field(default_factory=dict)
    after: dict[str, str | None] = field(default_factory=dict)

    def changed(self) -> list[str]:
        """The names of the files that differ."""
        return [name for name, text in self.after.items() if text != self.before[name]]


def plan(folder: str, texts: Mapping[str, str], by: str) -> Plan:
    """Compare, or refuse with all reasons. by: the name of the playbook, which stands in every file.

    A file that the playbook has written before and does not write any more is removed, unless somebody has edited it.
    """
    reasons = [ERR_NAME % name for name in texts if not _NAME.fullmatch(name)]
    if reasons:
        raise Refused(reasons)
    found = Plan(folder)
    for name in dict.fromkeys([*texts, *_entries(folder)]):
        path = os.path.join(folder, name)
        before = _text(path)
        # Also a link to nothing, which would be replaced without a word.
        if before is None and os.path.lexists(path):
            if name in texts:
                reasons.append(ERR_OTHER % path)
            continue
        unedited = before is not None and _generated_file.is_unedited(before)
        if name in texts:
            if before is not None and not unedited:
                reasons.append(ERR_EDITED % (path, by))
            found.before[name], found.after[name] = before, _generated_file.mark(texts[name], by)
        elif unedited and before is not None and before.startswith(f"# Written by {by}. "):
            found.before[name], found.after[name] = before, None
    if reasons:
        raise Refused(reasons)
    return found


def write(made: Plan) -> None:
    """Do it; on an error everything is as before. Raises OSError."""
    changed = made.changed()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_folder(made.folder))
        paths = {name: os.path.join(made.folder, name) for name in changed}
        # Whatever can fail, such as a full disk, fails here.
        new = {
            name: stack.enter_context(files.written_beside(paths[name], text, MODE))
            for name in changed
            for text in [made.after[name]]
            if text is not None
        }
        done: list[str] = []
        try:
            for name in changed:
                if name in new:
                    os.replace(new[name], paths[name])
                else:
                    os.unlink(paths[name])
                done.append(name)
        except OSError:
            for name in done:
                _put_back(paths[name], made.before[name])
            raise


def _put_back(path: str, text: str | None) -> None:
    with contextlib.suppress(OSError):
        if text is None:
            os.unlink(path)
        else:
            files.replace(path, text, MODE)


@contextlib.contextmanager
def _folder(path: str) -> Iterator[None]:
    """Make the folder and those above it, and remove them again after an error."""
    missing = []
    above = path
    while not os.path.isdir(above) and above not in missing and above:
        missing.append(above)
        above = os.path.dirname(above)
    made = []
    try:
        for one in reversed(missing):
            os.mkdir(one)
            made.append(one)
        yield
    except OSError:
        for one in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(one)
        raise


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except NotADirectoryError as error:
        raise Refused([ERR_NO_FOLDER % (error.filename or folder)]) from error
    except OSError as error:
        raise Refused([ERR_FOLDER % (folder, error.strerror)]) from error


def _text(path: str) -> str | None:
    """The text of a file; None where there is no file that can be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read()
    except OSError:
        return None
