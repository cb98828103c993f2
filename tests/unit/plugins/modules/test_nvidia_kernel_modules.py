# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module nvidia_kernel_modules as Ansible runs it: a program with JSON on its input. Only looks at this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.modules import nvidia_kernel_modules


def run(**arguments: Any) -> dict[str, Any]:
    """Run the module in check mode."""
    given = json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": True, **arguments}})
    # 2.19 wants to be told how its arguments are written.
    start = (
        "import sys; from ansible.module_utils import basic; basic._ANSIBLE_ARGS = sys.stdin.buffer.read();"
        "basic._ANSIBLE_PROFILE = 'legacy'; "
        f"from {nvidia_kernel_modules.__name__} import main; main()"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(entry for entry in sys.path if entry))
    done = subprocess.run(
        [sys.executable, "-c", start], input=given.encode(), capture_output=True, check=False, env=environment
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("version", ["", "58x", "580-open", "*", "580."])
def test_a_version_that_is_none_is_refused(version: str) -> None:
    result = run(version=version)
    assert (
        result["failed"]
        and result["msg"] == f"version = '{version}': it is no version. Fix: say a branch such as '580'."
    )


@pytest.mark.parametrize("seconds", [59, 14401])
def test_a_time_out_of_range_is_refused(seconds: int) -> None:
    result = run(version="580", build_timeout_seconds=seconds)
    assert result["failed"] and f"build_timeout_seconds = {seconds}: it is not within 60 to 14400" in result["msg"]


def test_what_it_returns_is_what_it_documents() -> None:
    result = run(version="580")
    documented = {line.split(":")[0] for line in nvidia_kernel_modules.RETURN.splitlines() if line[:1].isalpha()}
    assert documented == set(result) - {"changed", "diff", "invocation"}
    assert result["kernel"]
    assert {"actions", "module"} < set(run(state="absent"))
