# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher's files as others read them: shells, JSON, Open MPI."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import cluster, paths, texts

MEMBERS = [
    cluster.Member("gpu01", "192.0.2.11", "192.0.2.0/24", 8, "a"),
    cluster.Member("gpu02", "192.0.2.12", "192.0.2.0/24", 4, "b"),
]
CLUSTER = cluster.Cluster("train", "/opt/python", "/usr/bin/mpirun", 2222, 29400, 29599, MEMBERS)
VARIABLES = {"NCCL_SOCKET_IFNAME": "=fab0", "FLAGS": "--a=1 $HOME `id` #x", "EMPTY": ""}
SHELLS = [name for name in ("dash", "bash", "zsh", "busybox") if shutil.which(name)]


def shell(name: str, script: str, **variables: str) -> str:
    """What a shell prints that stops at everything unset and every failure."""
    argv = [name, *(["sh"] if name == "busybox" else []), "-euc", script]
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **variables}
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == ""
    return done.stdout


def test_there_is_a_shell_besides_bash() -> None:
    assert set(SHELLS) - {"bash"}, "the profile was not tried with a plain POSIX shell"


@pytest.mark.parametrize("name", SHELLS)
def test_login_shells_take_it_and_print_nothing(name: str) -> None:
    script = texts.profile_text(VARIABLES) + 'printf "%s|%s|%s" "$NCCL_SOCKET_IFNAME" "$FLAGS" "$(env | grep -c FLAGS)"'
    assert shell(name, script) == "=fab0|--a=1 $HOME `id` #x|1"


@pytest.mark.parametrize("name", SHELLS)
def test_a_job_keeps_what_it_has(name: str) -> None:
    script = texts.profile_text(VARIABLES) + 'printf "%s" "$NCCL_SOCKET_IFNAME"'
    assert shell(name, script, NCCL_SOCKET_IFNAME="=lo") == "=lo"
    assert shell(name, script, NCCL_SOCKET_IFNAME="") == ""


def test_the_environment_is_raw_lines() -> None:
    lines = texts.environment_text(VARIABLES).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "NCCL_SOCKET_IFNAME==fab0",
        "FLAGS=--a=1 $HOME `id` #x",
        "EMPTY=",
    ]


def test_the_host_file_is_in_rank_order() -> None:
    lines = texts.hostfile_text(CLUSTER).splitlines()
    assert lines[0].startswith("# ") and lines[1:] == ["192.0.2.11 slots=8", "192.0.2.12 slots=4"]


def test_the_description_of_the_cluster() -> None:
    assert json.loads(texts.cluster_text(CLUSTER, {"NCCL_IB_DISABLE": "0"})) == {
        "schema": 1,
        "user": "train",
        "python": "/opt/python",
        "mpirun": "/usr/bin/mpirun",
        "ssh_port": 2222,
        "rendezvous": {"first": 29400, "last": 29599, "default": 29500},
        "members": [
            {"name": "gpu01", "address": "192.0.2.11", "network": "192.0.2.0/24", "slots": 8},
            {"name": "gpu02", "address": "192.0.2.12", "network": "192.0.2.0/24", "slots": 4},
        ],
        "environment": {"NCCL_IB_DISABLE": "0"},
    }


def test_jobs_are_told_where_etcd_is() -> None:
    """Without etcd the key is absent; that is the test above."""
    with_etcd = CLUSTER._replace(etcd=("192.0.2.11:2379", "192.0.2.12:2379"))
    assert json.loads(texts.cluster_text(with_etcd, {}))["etcd"] == {
        "endpoints": ["192.0.2.11:2379", "192.0.2.12:2379"],
        "ca": "/etc/gpu-cluster/etcd/ca.crt",
        "cert": "/etc/gpu-cluster/etcd/client.crt",
        "key": "/etc/gpu-cluster/etcd/client.key",
    }


def test_every_text_of_ours_bears_its_mark() -> None:
    ours = "# baremetal.gpu_cluster\n"
    found = texts.files(CLUSTER, {}, VARIABLES, True, {"/p": ours}, {"plugin.py": ours})
    assert "/usr/local/lib/gpu-cluster/torchrun/plugin.py" in [file.path for file in found]
    for file in found:
        assert file.mark in file.text, file.path


def test_without_the_profile_there_is_no_text_for_it() -> None:
    wanted = {file.path: file.text for file in texts.files(CLUSTER, {}, VARIABLES, False, {paths.PROGRAM: "x"}, {})}
    assert wanted[paths.PROFILE] == "" and wanted[paths.PROGRAM] == "x"
