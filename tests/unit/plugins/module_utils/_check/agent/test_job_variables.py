# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node gives to jobs, read from its files."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import job_variables


def test_of_two_files_the_later_one_wins_and_each_value_has_its_file(tmp_path: Path) -> None:
    pam, launcher = tmp_path / "pam", tmp_path / "launcher"
    pam.write_text("# of the site\nHTTP_PROXY='http://192.0.2.1:3128'\nNCCL_DEBUG=WARN\n")
    launcher.write_text("NCCL_SOCKET_IFNAME==fab0\nNCCL_DEBUG=INFO\n")
    found = job_variables.read([str(pam), str(tmp_path / "none"), str(launcher)])
    assert found == {
        "HTTP_PROXY": ("http://192.0.2.1:3128", str(pam)),
        "NCCL_DEBUG": ("INFO", str(launcher)),
        "NCCL_SOCKET_IFNAME": ("=fab0", str(launcher)),
    }
    assert job_variables.FILES == ("/etc/environment", "/etc/gpu-cluster/environment")
    assert job_variables.values([str(launcher)]) == {"NCCL_SOCKET_IFNAME": "=fab0", "NCCL_DEBUG": "INFO"}
    assert job_variables.values([str(tmp_path / "none")]) == {}


def test_lines_as_pam_reads_them() -> None:
    text = '# comment\nexport OMP_NUM_THREADS=4\nUCX_NET_DEVICES="mlx5_0:1"\nno assignment\nA-B=1\nEMPTY=\n'
    assert job_variables.parsed(text) == {"OMP_NUM_THREADS": "4", "UCX_NET_DEVICES": "mlx5_0:1", "EMPTY": ""}
