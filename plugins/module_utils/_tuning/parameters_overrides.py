# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What files of others decide about kernel parameters: at the next boot, or when tuned starts."""

from __future__ import annotations

import glob
import os

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import boot, dropins
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters import Parameter

#: Where tuned notes its profile, that it runs, and that it starts at boot.
TUNED_PROFILE = "/etc/tuned/active_profile"
TUNED_MARKS = ("/run/tuned/tuned.pid", "/etc/systemd/system/multi-user.target.wants/tuned.service")


def tuned() -> boot.Tuned:
    """What tuned will do when it starts; nothing when it neither runs nor starts at boot."""
    names = read_text(TUNED_PROFILE).split() if any(os.path.lexists(mark) for mark in TUNED_MARKS) else []
    if not names:
        return boot.Tuned()
    paths = [path for folder in boot.TUNED_FOLDERS for path in glob.glob(f"{folder}/*/tuned.conf")]
    settings = boot.tuned_settings(names, {path: read_text(path) for path in paths})
    main = read_text(boot.TUNED_SETTINGS)
    return boot.Tuned(" ".join(names), boot.reapplies(main), settings, boot.excluded(main))


def overrides(
    parameters: list[Parameter], own: dropins.ConfFile, files: list[dropins.ConfFile]
) -> list[dropins.Override]:
    """Which values another file changes later, and the file."""
    at_boot = boot.boot_overrides(parameters, own, files)
    named = {found.variable for found in at_boot}
    by_tuned = boot.tuned_overrides(parameters, tuned(), read_text(boot.SYSCTL_CONF))
    return at_boot + [found for found in by_tuned if found.variable not in named]
