# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the files of the launcher are on every node, this program included."""

from __future__ import annotations

import hashlib
import os
import sys

ENVIRONMENT_FILE = "/etc/gpu-cluster/environment"
#: Says by the lines of a job why it failed; the role installs it beside this program.
EXPLAINER = "/usr/local/bin/gpu-cluster-explain"
#: Shows and ends jobs on all members; the role installs it beside this program.
QUEUE = "/usr/local/bin/gpu-cluster-jobs"


def own_path() -> str:
    """The file of this program, as it was started; a node has the same one in the same place."""
    return os.path.realpath(str(sys.modules["__main__"].__file__))


def own_digest() -> str:
    with open(own_path(), "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()
