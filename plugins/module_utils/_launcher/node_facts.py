# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a node can explain a failure."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import resource
from typing import Any

#: What an agent says of its node, for the explanation (_check/engine/job_facts.py); and file systems that can't hang,
#: with the bytes below which one is full.
FACTS = "gpu-cluster-run: this node has "
LOCAL_STORAGE = ("/", "/tmp", "/var/tmp", "/dev/shm")
FULL = 1 << 20


def torch_version(python: str) -> str:
    """The PyTorch of an environment, without starting it; empty where it is not at its usual place."""
    if not python:
        return ""
    pattern = os.path.join(os.path.dirname(os.path.dirname(python)), "lib*/python3*/site-packages/torch/version.py")
    for path in sorted(glob.glob(pattern)):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
            found = re.search(r"^__version__ = '([\w.+-]{1,64})'", stream.read(1 << 16), re.MULTILINE)
            if found:
                return found.group(1)
    return ""


def node_facts(python: str) -> dict[str, Any]:
    """What of this node can explain a failure.  Storage that may hang is not looked at."""
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    facts: dict[str, Any] = {"memlock": -1 if soft == resource.RLIM_INFINITY else soft, "full": [], "roomy": []}
    with contextlib.suppress(OSError):
        facts["cards"] = len([name for name in os.listdir("/dev") if re.fullmatch(r"nvidia\d+", name)])
    for path in LOCAL_STORAGE:
        with contextlib.suppress(OSError):
            found = os.statvfs(path)
            free = found.f_bavail * found.f_frsize
            full = free < FULL or (found.f_files > 0 and found.f_favail == 0)
            facts["full" if full else "roomy"].append(path)
            if path == "/dev/shm":
                facts.update(shm=found.f_blocks * found.f_frsize, shm_free=free)
    version = torch_version(python)
    return {**facts, "torch": version} if version else facts
