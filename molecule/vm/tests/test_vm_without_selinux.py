# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that boots without SELinux. The last test of all: what this boot writes has no labels."""

from __future__ import annotations

import pytest
from lab_cluster import Cluster
from lab_network import recap
from lab_selinux import NODE, base

CONFIG = "/etc/selinux/config"


@pytest.mark.long
def test_a_disabled_host_is_reported_and_prepared_only_with_consent(machine: Cluster) -> None:
    machine.shell(NODE, f"sed -i s/^SELINUX=.*/SELINUX=disabled/ {CONFIG}")
    machine.lab("reboot", deadline=400)
    assert machine.shell(NODE, "getenforce").strip() == "Disabled"
    before = machine.shell(NODE, f"cat {CONFIG}; ls -A /")

    told = base(machine)
    assert told.code == 0 and recap(told, NODE)["changed"] == 0, told.text
    for words in (
        "[WARNING]: SELinux is disabled on this host",
        "SELINUX=disabled",
        "(2) touch /.autorelabel",
        "(3) reboot",
    ):
        assert words in told.text
    assert machine.shell(NODE, f"cat {CONFIG}; ls -A /") == before

    prepared = base(machine, selinux_policy_enable_ok=True)
    assert prepared.code == 0 and recap(prepared, NODE)["changed"] == 1 and "reboot" in prepared.text
    found = machine.shell(NODE, f"grep ^SELINUX= {CONFIG}; ls /.autorelabel; getenforce").split()
    assert found == ["SELINUX=permissive", "/.autorelabel", "Disabled"]
