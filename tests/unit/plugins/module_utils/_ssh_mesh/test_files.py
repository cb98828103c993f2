# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts of the drop-ins, as sshd and ssh of this machine understand them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files, sshd

NAMES = {"n1": ("n1", "198.18.20.11"), "n2": ("n2", "fd00::12")}


def client(tmp_path: Path, host: str, *, user: str = "root", ports: tuple[int, ...] = (22,)) -> dict[str, list[str]]:
    """What ssh of root makes of the drop-in."""
    path = tmp_path / "config"
    path.write_text(files.client([user], NAMES, ports) + "Host *\n    Port 77\n")
    argv = ["ssh", "-G", "-F", str(path), host]
    return sshd.parse(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout)


@pytest.mark.parametrize("host", ["n1", "198.18.20.11", "fd00::12"])
def test_a_member(tmp_path: Path, host: str) -> None:
    found = client(tmp_path, host)
    assert sshd.client_differences(found, "root") == []
    assert found["certificatefile"] == ["/etc/gpu-cluster/ssh/root-cert.pub"]
    # What follows the drop-in is in force again.
    assert found["port"] == ["77"]


#: What FreeIPA's client writes, before its version 4.12 and since then (client/share/ssh_ipa.conf.template).
IPA = {
    "proxy": "PubkeyAuthentication yes\nGlobalKnownHostsFile /var/lib/sss/pubconf/known_hosts\n"
    "ProxyCommand /usr/bin/sss_ssh_knownhostsproxy -p %p %h\n",
    "command": "PubkeyAuthentication yes\nKnownHostsCommand /usr/bin/sss_ssh_knownhosts %H\n",
    "jump": "ProxyJump gate.example.com\n",
}


@pytest.mark.parametrize("way", IPA)
def test_a_member_of_a_directory(tmp_path: Path, way: str) -> None:
    """Its drop-in is written anew by ipa-client-install, so that nobody can keep an edit of it."""
    drop_ins = tmp_path / "ssh_config.d"
    drop_ins.mkdir()
    (drop_ins / "04-ipa.conf").write_text(IPA[way])
    (drop_ins / Path(files.CLIENT).name).write_text(files.client(["root"], NAMES, [22]))
    main = tmp_path / "ssh_config"
    main.write_text(f"Include {drop_ins}/*.conf\n")

    def said(host: str) -> str:
        argv = ["ssh", "-G", "-F", str(main), host]
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout

    assert sshd.client_differences(sshd.parse(said("n1")), "root") == []
    # Others go the directory's way.
    assert "sss" in said("git.example") or "gate.example.com" in said("git.example")


def test_another_host_is_left_alone(tmp_path: Path) -> None:
    found = client(tmp_path, "git.example")
    assert files.KNOWN_HOSTS not in found["globalknownhostsfile"]
    assert files.user_key("root") not in found["identityfile"]
    assert found["port"] == ["77"]


def test_another_user_is_left_alone(tmp_path: Path) -> None:
    assert files.KNOWN_HOSTS not in client(tmp_path, "n1", user="train")["globalknownhostsfile"]


def test_a_port_of_the_members(tmp_path: Path) -> None:
    assert client(tmp_path, "n1", ports=(2222, 2223))["port"] == ["2222"]
    assert client(tmp_path, "git.example", ports=(2222,))["port"] == ["77"]


def test_the_server() -> None:
    text = files.server(["train", "root"], [22, 2222], 256, 128)
    lines = [line.strip() for line in text.splitlines()]
    assert lines[1:5] == ["Port 22", "Port 2222", f"HostCertificate {files.HOST_CERTIFICATE}", "MaxStartups 256:30:512"]
    assert lines.count(f"TrustedUserCAKeys {files.USER_CA}") == 2
    # Nobody is trusted, and nothing is revoked, for the others.
    assert lines.index("Match User train") < lines.index(f"TrustedUserCAKeys {files.USER_CA}")
    assert lines[-1] == "Match all"
    assert "PerSourcePenaltyExemptList" not in text


def test_no_penalties_between_members() -> None:
    text = files.server(["train"], [22], 256, 128, ["198.18.20.0/24", "fd00::/64"])
    assert "PerSourcePenaltyExemptList 198.18.20.0/24,fd00::/64\n" in text
    assert text.index("PerSourcePenaltyExemptList") < text.index("Match User")
