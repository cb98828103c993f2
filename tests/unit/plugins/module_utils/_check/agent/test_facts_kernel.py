# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the kernel in force: from texts, and of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    facts,
    facts_kernel,
    facts_resources,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import UNLIMITED
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import limits, parameters

FILES = {
    "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "/proc/sys/net/core/somaxconn": "4096\n",
    "/proc/sys/net/ipv4/tcp_mtu_probing": "0\n",
    "/proc/sys/net/core/rmem_max": "4194304\n",
}


def read(path: str) -> str:
    return FILES.get(path, "")


def test_what_is_in_force_and_what_the_role_wrote() -> None:
    """The file is the one that the role writes."""
    wanted, problems = parameters.wanted_parameters(
        parameters=[{"key": "net.ipv4.tcp_mtu_probing", "value": "1", "reason": "a = b"}], link_gbit=100, rtt_ms=0.5
    )
    assert problems == []
    text = {**FILES, facts_kernel.ROLE_FILE: parameters.file_text(wanted)}
    found = facts_kernel.sysctls(lambda path: text.get(path, ""), lambda path: "rmem_max" not in path)
    assert found["values"] == {
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.core.somaxconn": "4096",
        "net.ipv4.tcp_mtu_probing": "0",
    }
    assert found["written"] == {"net.ipv4.tcp_rmem": "4096 131072 16777216", "net.ipv4.tcp_mtu_probing": "1"}


def test_a_file_of_any_size_gives_a_bounded_answer() -> None:
    text = "".join(f"net.ipv4.k{number} = {'1' * 999}\n" for number in range(999))
    found = facts_kernel.sysctls(lambda path: text if path == facts_kernel.ROLE_FILE else "2" * 999, lambda _path: True)
    assert len(found["written"]) == facts_kernel.MOST_KEYS
    assert max(map(len, [*found["written"].values(), *found["values"].values()])) == facts_kernel.MOST_CHARACTERS


def test_this_machine_has_tcp() -> None:
    found = facts_kernel.sysctls(facts.read, lambda _path: True)
    assert len(found["values"]["net.ipv4.tcp_rmem"].split()) == 3


def test_the_paths_are_those_of_the_roles() -> None:
    role = Path(__file__).parents[6] / "plugins" / "modules" / "kernel_parameters.py"
    assert f'"default": "{facts_kernel.ROLE_FILE}"' in role.read_text()
    assert facts_resources.LIMITS_OF_ROLE == limits.PAM_PATH


def test_the_loopback_has_offloads_and_no_other_name_has() -> None:
    found = facts_kernel.offloads("lo")
    assert found["gso"] is True and set(found) <= set(facts_kernel.OFFLOADS)
    assert facts_kernel.offloads("none0") == {} == facts_kernel.offloads("")


def test_the_limits_that_the_role_wrote() -> None:
    defaults = yaml.safe_load((Path(__file__).parents[6] / "roles/kernel_tuning/defaults/main.yml").read_text())
    wanted, problems = limits.read_limits(defaults["kernel_tuning_limits"])
    text = limits.texts(wanted, keep_ipc=True)[limits.PAM_PATH]
    assert problems == []
    assert facts_resources.written_limits(text) == {"memlock": UNLIMITED, "nofile": 524288}
    assert facts_resources.written_limits("* - memlock 4096\n@g - nofile 7\n* - nofile x\n") == {"memlock": 4096 * 1024}
    assert facts_resources.written_limits("") == {}


def test_a_file_that_root_of_a_container_cannot_write_is_not_settable(tmp_path: Path) -> None:
    assert not facts._settable(str(tmp_path / "none")) and facts._settable(os.devnull)
