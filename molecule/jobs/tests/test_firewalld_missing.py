# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node without firewalld, as cloud images are: named by preflight, and installed where the site consents."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import lab_mirror
import lab_packages
import pytest
from lab_cluster import Cluster
from lab_packages import StandIn

PROGRAM = "/usr/bin/firewall-cmd"
AWAY = "/var/tmp/firewall-cmd"
#: rpm forgets the package, whose content is Debian's, and the program goes: the rest of firewalld is of no use then.
REMOVE = f"systemctl stop firewalld; rpm -e --nodeps --justdb firewalld; mv {PROGRAM} {AWAY}"
BRING_BACK = f"mv {AWAY} {PROGRAM}; rpm -i --nodeps --justdb /srv/repo/os/firewalld-*.rpm; systemctl start firewalld"


@pytest.fixture
def node(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    """The last node, with a repository that has firewalld."""
    name = list(cluster.hosts)[-1]
    program = base64.b64decode(cluster.shell(name, f"base64 {PROGRAM}"))
    keys = lab_mirror.Keys(tmp_path / "keys")
    keys.make("site")
    packages = [StandIn("firewalld", "99-1", files={PROGRAM: program})]
    lab_packages.build_repository(tmp_path / "site" / "os", keys, "site", packages)
    key = keys.public("site")
    keys.close()
    mirror = lab_mirror.Mirror(tmp_path / "site")
    cluster.shell(name, REMOVE)
    try:
        with lab_packages.on_node(cluster, name, f"{mirror.url}/os", key):
            yield name
    finally:
        mirror.close()
        cluster.shell(name, BRING_BACK)


def test_consent_to_the_start_is_consent_to_the_installation(cluster: Cluster, node: str) -> None:
    limit, consent = ("--limit", node), ("-e", "cluster_firewall_start_ok=true")
    refused = cluster.play("baremetal.gpu_cluster.preflight", *limit)
    text = " ".join(refused.text.split())
    assert refused.code != 0 and "expected the command firewall-cmd on the node, found none" in text, refused.text
    assert "or set cluster_firewall_start_ok: true, with which the role cluster_firewall installs" in text, refused.text
    role = (cluster.without_guard("base"), "--tags", "cluster_firewall", *limit, *consent)
    looked_at = cluster.play("baremetal.gpu_cluster.preflight", *limit, *consent)
    assert looked_at.code == 0, looked_at.text
    planned = cluster.play(*role, "--check", "--diff")
    assert planned.code == 0 and "firewalld" in planned.text and "changed=1" in planned.text, planned.text
    ended = cluster.play(*role)
    assert ended.code == 0, ended.text
    assert cluster.shell(node, "rpm -q firewalld; firewall-cmd --state").split() == ["firewalld-99-1.x86_64", "running"]
    again = cluster.play(*role)
    assert again.code == 0 and "changed=0" in again.text, again.text
