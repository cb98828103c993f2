# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only a machine with an NVIDIA GPU can show; elsewhere these tests are skipped, each with its reason.

docs/gpu-evidence.md says how to run them and keeps what came out.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import rank as check_rank
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports, rank_events
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import gather

RANK = Path(__file__).with_name("rank.py")
ELEMENTS = 1 << 20
DEADLINE_SECONDS = 180
#: Ranks with different host ids share no memory and no GPU as far as NCCL knows, so that only its network is left
#: (NCCL: getHostHash in src/misc/utils.cc, the check for duplicate GPUs in src/init.cc; "=" is an exact name).
OVER_SOCKETS = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_IB_DISABLE": "1",
    "NCCL_NET": "Socket",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_SOCKET_IFNAME": "=lo",
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,NET",
}


def test_the_facts_of_a_real_node(driver: str) -> None:
    """The real driver, nvidia-smi and sysfs agree, and a second look takes less than a second."""
    gather.gather(gather.Node())
    started = time.monotonic()
    facts, warnings = gather.gather(gather.Node())
    seconds = time.monotonic() - started
    print(json.dumps({"seconds": round(seconds, 3), **facts}, indent=1))
    assert warnings == [] and facts["smi_problem"] == ""
    assert facts["driver"]["loaded"] and facts["driver"]["loaded"] in driver
    assert facts["driver"]["kind"] in ("open", "proprietary")
    assert facts["cuda"]["driver_supports"]
    assert facts["gpus"] and all(gpu["uuid"] and gpu["model"] for gpu in facts["gpus"])
    on_the_bus = {device["address"] for device in facts["pci"]["gpus"]}
    assert {gpu["pci_address"] for gpu in facts["gpus"]} <= on_the_bus
    assert seconds < 1


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.usefixtures("cuda")
def test_ranks_on_one_gpu(ranks: int, tmp_path: Path) -> None:
    """NCCL sums over all ranks on the first GPU, over sockets between them. It says nothing about speed."""
    results = run_ranks(ranks, tmp_path)
    print(json.dumps(results, indent=1))
    total = ranks * (ranks + 1) / 2
    assert [result["rank"] for result in results] == list(range(ranks))
    assert all(result["smallest"] == result["largest"] == total for result in results)
    for rank in range(ranks if ranks > 1 else 0):
        assert "via NET/Socket" in (tmp_path / f"{rank}.log").read_text(encoding="utf-8", errors="replace")


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.usefixtures("cuda")
def test_the_ranks_of_the_check_on_one_gpu(ranks: int) -> None:
    """The check's own rank, as a node runs it: exact sums over NCCL, over sockets between the ranks."""
    found = run_check_ranks([{"local_rank": 0, "local_size": 1} for _rank in range(ranks)])
    print(json.dumps(found, indent=1))
    for events in found:
        names = [event["event"] for event in events if event["event"] not in ("keys", "output")]
        assert names == ["ready", "gpu", "store", "joined", *["size"] * 3, "done"]
        assert [event["wrong"] for event in events if event["event"] == "size"] == [None] * 3


@pytest.mark.usefixtures("cuda")
def test_the_ranks_of_the_check_sum_inside_of_a_node() -> None:
    import torch

    have = torch.cuda.device_count()
    if have < 2:
        pytest.skip(f"this takes two GPUs, and here is {have}")
    found = run_check_ranks([{"local_rank": number, "local_size": have} for number in range(have)])
    print(json.dumps(found, indent=1))
    for events in found:
        (inside,) = (event for event in events if event["event"] == "inside")
        assert inside["wrong"] is None and events[-1]["event"] == "done"


def run_check_ranks(places: list[dict[str, int]]) -> list[list[dict[str, Any]]]:
    """The events of each rank.  places: where each is; a rank alone on its node is one of another host for NCCL."""
    listener = probe_ports.bind_samples("127.0.0.1", 29500, 29599, 1)[0]
    job = {
        "backend": "nccl",
        "world_size": len(places),
        "master_address": "127.0.0.1",
        "master_port": listener.getsockname()[1],
        "listen_fd": listener.fileno(),
        "sizes_bytes": [4, 1 << 20, 64 << 20],
        "warmup": 2,
        "iterations": 5,
        "join_seconds": 60,
        "timeout_seconds": 60,
    }
    processes = []
    try:
        for number, place in enumerate(places):
            alone = dict(OVER_SOCKETS, NCCL_HOSTID=f"host{number}") if place["local_size"] == 1 else {}
            process = subprocess.Popen(
                [sys.executable, "-m", check_rank.__name__],
                env=dict(
                    os.environ, **alone, GLOO_SOCKET_IFNAME="lo", PYTHONPATH=os.pathsep.join(filter(None, sys.path))
                ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=[listener.fileno()],
            )
            processes.append(process)
            assert process.stdin is not None
            process.stdin.write(json.dumps(dict(job, rank=number, **place)) + "\n")
            process.stdin.flush()
        listener.close()
        lines = [process.communicate(timeout=DEADLINE_SECONDS)[0].splitlines() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [[rank_events.event(line.encode()) for line in own] for own in lines]


def run_ranks(ranks: int, folder: Path, backend: str = "nccl") -> list[dict[str, Any]]:
    """Start one process for each rank, wait for all of them, and return what each one wrote."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    common = dict(
        os.environ,
        **OVER_SOCKETS,
        CUDA_VISIBLE_DEVICES=gpu,
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        WORLD_SIZE=str(ranks),
    )
    processes = []
    try:
        for rank in range(ranks):
            with (folder / f"{rank}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        [sys.executable, str(RANK), backend, str(ELEMENTS), str(folder / f"{rank}.json")],
                        env=dict(common, RANK=str(rank), NCCL_HOSTID=f"host{rank}"),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                )
        end = time.monotonic() + DEADLINE_SECONDS
        for rank, process in enumerate(processes):
            returncode = process.wait(timeout=max(0.1, end - time.monotonic()))
            assert returncode == 0, (folder / f"{rank}.log").read_text(encoding="utf-8", errors="replace")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(ranks)]
