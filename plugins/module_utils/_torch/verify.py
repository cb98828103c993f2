# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an environment says about itself when torch is imported, and whether that is what is wanted. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import Requirement, missing_packages

#: Runs in the environment. One line of JSON; everything before it is torch's own output.
PROGRAM = """
import json
import torch
import torch.distributed as distributed
nccl = None
if distributed.is_available() and distributed.is_nccl_available():
    nccl = ".".join(str(part) for part in torch.cuda.nccl.version())
print(json.dumps({
    "torch": str(torch.__version__),
    "cuda": torch.version.cuda,
    "nccl": nccl,
    "gloo": distributed.is_available() and distributed.is_gloo_available(),
}))
"""

ERR_OUTPUT = "the import of torch printed something unexpected: %r"
ERR_VERSION = "torch says that it is %s, and wanted is %s"
ERR_GLOO = "torch %s has no Gloo, which jobs and the check need. Fix: adopt an environment with another build of torch"
#: At most so many characters of unexpected output are shown.
SHOWN = 2000


def read_answer(out: str) -> dict[str, Any]:
    """What the program found; raise ``ValueError`` with a sentence."""
    try:
        found = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise ValueError(ERR_OUTPUT % out[-SHOWN:]) from None
    if not isinstance(found, dict) or "torch" not in found:
        raise ValueError(ERR_OUTPUT % out[-SHOWN:])
    return found


def version_problems(requirements: Iterable[Requirement], found: Mapping[str, Any]) -> list[str]:
    """Whether the torch that was imported is the pinned one."""
    pins = [requirement for requirement in requirements if requirement.name == "torch"]
    version = found["torch"]
    return [ERR_VERSION % (version, pin.text) for pin in pins if not pin.accepts(version)]


def adoption_problems(
    requirements: Iterable[Requirement], found: Mapping[str, Any], installed: Mapping[str, str]
) -> list[str]:
    """Why an environment of somebody else cannot be used, one sentence each."""
    pins = list(requirements)
    others = [pin for pin in pins if pin.name != "torch"]
    problems = version_problems(pins, found) + missing_packages(others, installed)
    return problems if found.get("gloo") else [*problems, ERR_GLOO % found["torch"]]
