# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of an earlier run, which Ansible has kept in a cache: no role takes them for what the host is now."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
#: What a role must not ask: with a cache the answer is about another run.
OLD = re.compile(r"ansible_facts[.]\w+ is (not )?defined")
WORDS = {
    "nvidia_driver": "no NVIDIA device: driver skipped",
    "cuda_toolkit": "no NVIDIA device: CUDA toolkit skipped",
    "nccl": "no NVIDIA device: NCCL skipped",
}


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="this machine has the GPU that the cache speaks of")
@pytest.mark.parametrize("role", WORDS)
def test_a_host_that_had_a_gpu_in_an_earlier_run(role: str, tmp_path: Path) -> None:
    gpu = {"address": "0000:1b:00.0", "name": "H100", "device": "0x2330", "vendor": "0x10de"}
    cached = {"gpu_node": {"pci": {"gpus": [gpu], "nvswitches": []}, "driver": {"loaded": "580.95.05"}}}
    keep = {"ansible.builtin.set_fact": {**cached, "cacheable": True}}
    earlier = {"hosts": "h1", "gather_facts": False, "tasks": [keep]}
    show = {"ansible.builtin.debug": {"msg": "{{ ansible_facts.gpu_node.driver.loaded }}"}}
    roles = [f"baremetal.gpu_cluster.{role}"]
    later = {"hosts": "h1", "gather_facts": False, "pre_tasks": [show], "roles": roles}
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"),
        "ANSIBLE_CACHE_PLUGIN": "jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(tmp_path / "cache"),
        "ANSIBLE_STDOUT_CALLBACK": "default",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    }
    # In check mode: a role that is wrong here would set up this machine.
    for play in (earlier, later):
        (tmp_path / "play.json").write_text(json.dumps([play]))
        argv = [PLAYBOOK, "--check", "-i", "h1,", "-c", "local", tmp_path / "play.json"]
        done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert "580.95.05" in said, "the cache was not read: " + said
    assert done.returncode == 0 and WORDS[role] in said, said


def test_no_role_asks_whether_a_fact_is_there() -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {line.strip()}"
        for folder in ("roles", "playbooks")
        for path in (PROJECT / folder).rglob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if OLD.search(line)
    ]
    assert found == []
