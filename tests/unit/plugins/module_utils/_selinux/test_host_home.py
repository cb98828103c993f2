# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A home on a file server that does not answer: nothing may look at it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import host
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import seen, silence


class FailedError(Exception):
    """The module has ended."""


def test_a_home_whose_server_is_dead_ends_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(msg: str) -> None:
        raise FailedError(msg)

    module: Any = SimpleNamespace(params={"users": ["root"]}, fail_json=fail)
    mount = seen.Mounted("/root", "nfs4", "nas:/home")
    monkeypatch.setattr(host, "file_system", lambda path: "nfs4")
    monkeypatch.setattr(host.os.path, "isdir", None)
    monkeypatch.setattr(silence, "ask", lambda paths: {path: silence.Answer(True) for path in paths})
    monkeypatch.setattr(silence, "mount_of", lambda path, mountinfo: mount)
    with pytest.raises(FailedError) as ended:
        host.Host(module).homes()
    assert str(ended.value).startswith(
        "The home /root of root is on /root (nfs4, from nas:/home), which does not answer"
    )
    assert "umount -l /root" in str(ended.value)
