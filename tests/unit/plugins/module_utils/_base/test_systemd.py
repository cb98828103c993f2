# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument lists for systemd, and what ``systemctl show`` prints."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import systemd


def test_a_service_of_its_own_name() -> None:
    argv = systemd.run_argv(
        ["python3", "-m", "worker"],
        unit="job.service",
        properties=["Type=exec", "RuntimeMaxSec=9"],
        environment={"PYTHONPATH": "/run/a=b", "LC_ALL": "C"},
    )
    assert argv == [
        "systemd-run",
        "--quiet",
        "--collect",
        "--unit=job.service",
        "--property=Type=exec",
        "--property=RuntimeMaxSec=9",
        "--property=Environment=PYTHONPATH=/run/a=b",
        "--property=Environment=LC_ALL=C",
        "--",
        "python3",
        "-m",
        "worker",
    ]


def test_a_service_without_a_name_whose_output_is_read() -> None:
    argv = systemd.run_argv(["cat", "--help"], options=["--pipe", "--wait"])
    assert argv == ["systemd-run", "--quiet", "--collect", "--pipe", "--wait", "--", "cat", "--help"]


def test_properties_of_a_unit() -> None:
    argv = systemd.show_argv("ssh.service", "LoadState", "ActiveState", options=["--timestamp=unix"])
    assert argv == [
        "systemctl",
        "show",
        "--timestamp=unix",
        "--property=LoadState",
        "--property=ActiveState",
        "ssh.service",
    ]
    text = "LoadState=loaded\nActiveState=\nExecStart={ path=/usr/sbin/sshd ; argv[]=/usr/sbin/sshd -D }\n\n"
    assert systemd.parse_show(text) == {
        "LoadState": "loaded",
        "ActiveState": "",
        "ExecStart": "{ path=/usr/sbin/sshd ; argv[]=/usr/sbin/sshd -D }",
    }
    assert systemd.parse_show("Failed to connect to bus\n") == {}
