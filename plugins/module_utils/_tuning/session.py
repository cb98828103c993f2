# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How limits are read back: in a service, and in a non-interactive ssh session. Pure: argument lists and texts.

The session is a real one: ssh talks to an sshd of its own (``sshd -i``, no port), which reads the node's sshd_config,
asks PAM and starts the user's shell. It runs as a service, as the node's sshd does: PAM opens no session inside another
one, and the limits that PAM does not set are those of the service, so it gets those of the node's sshd. It trusts one
key, which is made for this and thrown away; the user's files are not touched.

systemd connects the service to a socket before it starts sshd, as it does with the socket of the journal. Fedora's
SELinux policy keeps services from using a pipe of the shell that Ansible runs in
(domain.te, unconfined_dontaudit_rw_pipes).
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import systemd
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.limits import ITEMS

SSHD = "/usr/sbin/sshd"
PAM_FOLDER = "/etc/pam.d"
PAM_SERVICE = "sshd"
READ_LIMITS = ("cat", "/proc/self/limits")
#: Longer than a login takes on a busy node, shorter than anybody waits for a shell that hangs on a dead file server.
LONGEST_SECONDS = 30
#: Keys of this type are also allowed in FIPS mode, where ed25519 is not.
KEY_TYPE = ("ecdsa", "-b", "256")

#: Listens at a socket (first argument), starts the service (the others), and hands the connection to ssh, which expects
#: it in a message on the output (ProxyUseFdpass). No percent sign in it: ssh would expand it.
HAND_OVER = (
    "import socket, subprocess, sys; "
    "listener = socket.socket(socket.AF_UNIX); listener.bind(sys.argv[1]); "
    "listener.listen(1); listener.settimeout(20); "
    "subprocess.run(sys.argv[2:], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL); "
    "connection = listener.accept()[0]; "
    "socket.send_fds(socket.socket(fileno=1), [b'.'], [connection.fileno()])"
)

WHY_NO_PAM = "sshd is configured with UsePAM no, so PAM sets no limits in its sessions"
WHY_NO_MODULE = f"no session line in {PAM_FOLDER}/{PAM_SERVICE}, or in what it includes, calls pam_limits.so"
WHY_UNKNOWN = (
    "no file of limits explains it; look for ulimit in the start-up files of the shell (~/.bashrc, /etc/profile.d), "
    f"and for other modules in {PAM_FOLDER}/{PAM_SERVICE}"
)


def service_command(user: str) -> list[str]:
    """Read the limits of a service that runs as this user."""
    options = ["--pipe", "--wait", *([f"--uid={user}"] if user else [])]
    return systemd.run_argv(READ_LIMITS, properties=[f"RuntimeMaxSec={LONGEST_SECONDS}"], options=options)


def key_command(path: str) -> list[str]:
    """Make the key."""
    return ["ssh-keygen", "-q", "-t", *KEY_TYPE, "-N", "", "-C", "limits", "-f", path]


def journal_command(unit: str) -> list[str]:
    """Read what sshd said."""
    return ["journalctl", f"--unit={unit}", "--output=cat", "--no-pager", "--lines=5"]


def session_command(
    *,
    user: str,
    key: str,
    public_key: str,
    socket: str,
    unit: str,
    python: str,
    sshd_limits: Mapping[str, tuple[str, str]],
) -> list[str]:
    """Read the limits of an ssh session.

    ``key`` and ``socket`` are paths, the second one of a socket to be made; ``unit`` names the service; ``sshd_limits``
    are those that the node's sshd runs with.
    """
    properties = [
        f"RuntimeMaxSec={LONGEST_SECONDS}",
        f"StandardInput=file:{socket}",
        f"StandardOutput=file:{socket}",
        "StandardError=journal",
        # How sshd -i ends when its client goes.
        "SuccessExitStatus=255",
    ]
    for item in ITEMS.values():
        if item.kernel in sshd_limits:
            soft, hard = ("infinity" if end == "unlimited" else end for end in sshd_limits[item.kernel])
            properties.append(f"Limit{item.systemd}={soft}:{hard}")
    sshd = [
        SSHD,
        "-i",
        "-e",
        *_options(
            "LogLevel=INFO",
            "PubkeyAuthentication=yes",
            "AuthenticationMethods=publickey",
            "AuthorizedKeysFile=none",
            f"AuthorizedKeysCommand=/usr/bin/echo {' '.join(public_key.split()[:2])}",
            "AuthorizedKeysCommandUser=root",
        ),
    ]
    proxy = [python, "-c", HAND_OVER, socket, *systemd.run_argv(sshd, unit=unit, properties=properties)]
    ssh = [
        "ssh",
        "-F",
        "none",
        "-T",
        *_options(
            "BatchMode=yes",
            # The cheapest one first; this connection leaves the machine nowhere.
            "KexAlgorithms=^ecdh-sha2-nistp256",
            "IdentitiesOnly=yes",
            f"IdentityFile={key}",
            "IdentityAgent=none",
            "PreferredAuthentications=publickey",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "GlobalKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ProxyUseFdpass=yes",
            f"ProxyCommand={' '.join(shlex.quote(word) for word in proxy)}",
        ),
    ]
    return [*ssh, f"{user}@localhost", " ".join(READ_LIMITS)]


def _options(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("-o", setting)]


def uses_pam(effective: str) -> bool:
    """Whether sshd asks PAM, from the output of ``sshd -T``."""
    return re.search(r"^usepam yes$", effective, re.MULTILINE) is not None


def calls_pam_limits(stacks: Mapping[str, str], service: str = PAM_SERVICE, depth: int = 8) -> bool:
    """Whether a session of the service goes through pam_limits.so. ``stacks``: the files of /etc/pam.d by name."""
    if depth == 0:
        return False
    for line in stacks.get(service, "").splitlines():
        included = re.match(r"\s*@include\s+(\S+)", line)
        session = re.match(r"\s*-?session\s+(\[[^]]*\]|\S+)\s+(\S+)", line)
        if session and posixpath.basename(session.group(2)) == "pam_limits.so":
            return True
        further = included.group(1) if included else ""
        if session and session.group(1) in ("include", "substack"):
            further = session.group(2)
        if further and calls_pam_limits(stacks, posixpath.basename(further), depth - 1):
            return True
    return False


def last_lines(text: str, count: int = 3) -> str:
    """The end of what a program said, on one line."""
    lines: Sequence[str] = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-count:]) or "it said nothing"
