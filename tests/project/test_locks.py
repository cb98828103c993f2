# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every lock on a file is waited for with an end, and names who holds it: there is one function for it."""

from __future__ import annotations

import re

import project

#: The function, the lock of rpm, which is only asked, and two that nobody waits for: of a run's output, and of a job.
ALLOWED = {
    "module_utils/_base/file_lock.py",
    "module_utils/_launcher/meeting.py",
    "plugin_utils/_progress.py",
    "module_utils/_pinned_packages/system.py",
}


def test_nobody_locks_a_file_by_other_means() -> None:
    folder = project.ROOT / "plugins"
    found = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if re.search(r"\bfcntl\.(flock|lockf)\(", path.read_text(encoding="utf-8"))
    }
    assert found == ALLOWED
