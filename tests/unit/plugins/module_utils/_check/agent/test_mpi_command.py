# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The call of mpirun and its environment."""

from __future__ import annotations

import json
import subprocess
import sys

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import mpi_command
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import mpi_output


def test_the_options_are_those_of_a_job_of_the_launcher() -> None:
    argv = mpi_command.argv("/usr/bin/mpirun", "/opt/python", ["192.0.2.11", "2001:db8::2"], prefix="/usr", seconds=20)
    assert argv[:9] == [
        "/usr/bin/mpirun",
        *("--host", "localhost:1,[2001:db8::2]:1"),
        *("-np", "2", "--map-by", "slot", "--bind-to", "none"),
    ]
    assert argv[9:13] == ["/opt/python", "-I", "-S", "-c"]
    job = json.loads(argv[-1])
    assert job == {
        "prefix": "/usr",
        "sizes_bytes": [4, 65536, 4194304],
        "iterations": [20, 10, 3],
        "seconds": 20,
    }


def test_no_option_sets_what_the_files_of_open_mpi_must() -> None:
    argv = mpi_command.argv("m", "p", ["a", "b"], prefix="/usr", seconds=1)
    # The program is packed, and has any letters.
    assert [one for one in argv if "mca" in one.lower() and mpi_command.packed() not in one] == []


def test_the_program_fits_one_argument_of_the_kernel_and_needs_no_quotes() -> None:
    text = mpi_command.packed()
    assert len(text) < 64 << 10 and text.replace("+", "").replace("/", "").replace("=", "").isalnum()


def test_the_program_runs_from_its_argument() -> None:
    """Without an Open MPI it comes as far as loading the library, and says so."""
    argv = mpi_command.argv("mpirun", sys.executable, ["a", "b"], prefix="/nonexistent", seconds=30)
    argv = [one.replace("libmpi.so.40", "libmpi.so.none") for one in argv]
    done = subprocess.run(
        argv[argv.index(sys.executable) :],
        env={"OMPI_COMM_WORLD_RANK": "1", "LD_LIBRARY_PATH": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    events, rest = mpi_output.events(done.stdout)
    assert [(one["event"], one["rank"]) for one in events] == [("start", 1), ("error", 1)], done
    assert "libmpi can't be loaded" in events[1]["text"] and rest.strip() == "" and done.returncode == 1


def test_jobs_get_what_the_node_gives_and_the_marks_of_the_run() -> None:
    given = {"NCCL_SOCKET_IFNAME": "=fab0", "HOME": "/scratch"}
    assert mpi_command.environment("run-1", {"HOME": "/home/train", "USER": "train"}, given, False) == {
        "HOME": "/scratch",
        "USER": "train",
        "NCCL_SOCKET_IFNAME": "=fab0",
        "OMPI_MCA_gpu_cluster_check": "run-1",
        "PRTE_MCA_gpu_cluster_check": "run-1",
    }
    assert mpi_command.environment("run-1", {}, {}, True)["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
