# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What files of others decide about limits, once ours are written."""

from __future__ import annotations

import os
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import dropins, limits


class Found(NamedTuple):
    """What files of others decide once ours are written."""

    logins: list[dropins.Override]
    services: list[dropins.Override]
    shared_memory: list[dropins.Override]

    def all(self) -> list[dropins.Override]:
        """All together, each sentence once."""
        return list(dict.fromkeys([*self.logins, *self.services, *self.shared_memory]))


def overrides(wanted: list[limits.Limit], texts: dict[str, str], logins: list[limits.Login]) -> Found:
    """Look at the files of others."""

    def files(path: str, folders: tuple[str, ...]) -> list[dropins.ConfFile]:
        own = dropins.ConfFile(path, texts[path])
        return dropins.in_order(dropins.read(folders), own, folders)

    def systemd(path: str) -> list[dropins.ConfFile]:
        folder = os.path.basename(os.path.dirname(path))
        return files(path, tuple(f"{root}/{folder}" for root in limits.SYSTEMD_ROOTS))

    main_file = dropins.ConfFile(limits.PAM_MAIN, read_text(limits.PAM_MAIN))
    pam = [main_file, *files(limits.PAM_PATH, limits.PAM_FOLDERS)]
    return Found(
        limits.pam_overrides(wanted, pam, logins),
        [
            override
            for path in (limits.SYSTEM_PATH, limits.USER_PATH)
            for override in limits.systemd_overrides(wanted, systemd(path), path)
        ],
        limits.logind_overrides(systemd(limits.LOGIND_PATH)) if texts[limits.LOGIND_PATH] else [],
    )
