# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""podman as the user of the jobs. The only part that starts it."""

from __future__ import annotations

import os
import pwd

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import deadline
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime.images import ID

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
#: For a question; loading and pulling have a limit of their own.
SECONDS = 120


def runtime_folder(uid: int) -> str:
    """What systemd makes at the login of a user, or at boot where he lingers (logind.conf(5))."""
    return f"/run/user/{uid}"


class Podman:
    """podman of one user.  It keeps what runs below the same folder as in a login, or it would not see that."""

    def __init__(self, user: str, seconds: int) -> None:
        self.entry = pwd.getpwnam(user)
        self.seconds = seconds

    def run(self, *words: str, seconds: int = SECONDS) -> str:
        """What it prints; CommandError where it fails."""
        entry = self.entry
        variables = [
            f"PATH={PATH}",
            f"HOME={entry.pw_dir}",
            f"USER={entry.pw_name}",
            f"XDG_RUNTIME_DIR={runtime_folder(entry.pw_uid)}",
            "LC_ALL=C.UTF-8",
        ]
        argv = [] if os.geteuid() == entry.pw_uid else ["runuser", "-u", entry.pw_name, "--"]
        return deadline.run(
            [*argv, "env", "-i", *variables, "podman", *words], seconds, f"podman {words[0]} {words[-1]}"
        )

    def image(self, name: str) -> str:
        """The ID of an image, empty where there is none."""
        try:
            said = self.run("image", "inspect", "--format", "{{.Id}}", name).strip()
        except deadline.CommandError:
            # An image that is not there is not told from a podman that fails.
            self.run("image", "list", "--quiet")
            return ""
        found = ID.fullmatch(said)
        return found[1] if found else ""
