# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose job it is: the cluster's user, and the person who has typed it."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Mapping

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.refusal import EXIT_INPUT, Refused


def typed_by(environ: Mapping[str, str], path: str = "/proc/self/loginuid") -> str:
    """Who has typed it: several people may share the cluster's user.  The kernel keeps the user of a login."""
    with contextlib.suppress(OSError, ValueError, KeyError), open(path, encoding="ascii") as stream:
        return pwd.getpwuid(int(stream.read())).pw_name  # 4294967295, none, is no user.
    return environ.get("SUDO_USER") or environ.get("LOGNAME") or user_name()


def user_name() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def become(user: str) -> None:
    """Root starts jobs as the cluster's user; anybody else must be that user."""
    try:
        wanted = pwd.getpwnam(user)
    except KeyError as error:
        raise Refused(EXIT_INPUT, [f"the cluster's user {user} does not exist on this node"]) from error
    if os.geteuid() == wanted.pw_uid:
        return
    if os.geteuid() != 0:
        name = pwd.getpwuid(os.geteuid()).pw_name
        raise Refused(EXIT_INPUT, [f"jobs run as {user}, and this is {name}: use `sudo -u {user} gpu-cluster-run ...`"])
    os.initgroups(user, wanted.pw_gid)
    os.setgid(wanted.pw_gid)
    os.setuid(wanted.pw_uid)
    os.environ.update(HOME=wanted.pw_dir, USER=user, LOGNAME=user)
    os.environ.pop("SSH_AUTH_SOCK", None)
