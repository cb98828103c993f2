# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A home on mounted storage: what SELinux keeps sshd from, where the role that could allow it ran before the mount."""

from __future__ import annotations

import pwd

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.spec import Mount

KERNEL = "/sys/fs/selinux"
BOOLEAN = "use_nfs_home_dirs"
WARNING = (
    "%s: the home of %s is on it, and SELinux does not let sshd read keys there. Fix: set selinux_policy_booleans: "
    "{%s: true}, and run site.yml with --tags selinux_policy"
)


def warnings(mount: Mount, user: str, kernel: str = KERNEL) -> list[str]:
    """Whether homes on this mount need a boolean that is off. The policy labels files of Lustre as those of NFS."""
    if not mount.is_remote() or not _is_below(mount.path, user):
        return []
    if read_text(f"{kernel}/enforce") != "1" or not read_text(f"{kernel}/booleans/{BOOLEAN}").startswith("0"):
        return []
    return [WARNING % (mount.path, user, BOOLEAN)]


def _is_below(path: str, user: str) -> bool:
    try:
        return bool(user) and f"{pwd.getpwnam(user).pw_dir}/".startswith(f"{path}/")
    except KeyError:
        return False
