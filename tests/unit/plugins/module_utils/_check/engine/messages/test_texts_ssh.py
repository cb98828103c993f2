# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ssh and sshd say, and what the table makes of it: each answer has a fix of its own."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import PEER, SELF

TO = "ssh: connect to host 192.0.2.12 port 22: "
AT: dict[str, tuple[object, ...]] = {"addresses": ("192.0.2.12",), "ports": (22,)}
LOG = "Nov 28 10:12:01 n2 sshd[4711]: "

RECORDED: list[tuple[str, str, dict[str, tuple[object, ...]]]] = [
    # Connections.
    (
        "ssh: Could not resolve hostname gpu09: Temporary failure in name resolution",
        causes.NAMES,
        {"addresses": ("gpu09",)},
    ),
    ("ssh: Could not resolve hostname gpu09: No address associated", causes.NAMES, {"addresses": ("gpu09",)}),
    (TO + "Network is unreachable", causes.INTERFACE, AT),
    (TO + "Invalid argument", causes.INTERFACE, AT),
    (TO + "Permission denied", causes.BLOCKED, AT),
    (TO + "Connection refused", causes.BLOCKED, AT),
    (TO + "Connection timed out", causes.BLOCKED, AT),
    (TO + "No route to host", causes.BLOCKED, AT),
    (TO + "Connection reset by peer", causes.BLOCKED, AT),
    # OpenSSH before 8 and after.
    ("ssh_exchange_identification: Connection closed by remote host", causes.RESOURCES, {}),
    ("kex_exchange_identification: Connection closed by remote host", causes.RESOURCES, {}),
    ("kex_exchange_identification: read: Connection reset by peer", causes.RESOURCES, {}),
    ("ssh_exchange_identification: read: Connection reset by peer", causes.RESOURCES, {}),
    (
        LOG + "drop connection #10 from [192.0.2.11]:40022 on [192.0.2.12]:22 past MaxStartups",
        causes.RESOURCES,
        {},
    ),
    (LOG + "error: beginning MaxStartups throttling", causes.RESOURCES, {}),
    ("kex_exchange_identification: banner line 0: Not allowed at this time", causes.RESOURCES, {}),
    (LOG + "refused connect from 192.0.2.11 (192.0.2.11)", causes.SSH, {"addresses": ("192.0.2.11",)}),
    ("Too many logins for 'train'.", causes.RESOURCES, {}),
    ("mux_client_request_session: session request failed: Session open refused by peer", causes.RESOURCES, {}),
    ("shell request failed on channel 0", causes.RESOURCES, {}),
    # Seen with OpenSSH 9.2 and MaxSessions 0, and with AuthenticationMethods that sshd does not offer.
    ("channel 0: open failed: connect failed: open failed", causes.RESOURCES, {}),
    ("Received disconnect from 192.0.2.12 port 22:2: no authentication methods enabled", causes.SSH, {}),
    ("Connection timed out during banner exchange", causes.STOPPED, {}),
    ("Timeout, server 192.0.2.12 not responding.", causes.STOPPED, {"addresses": ("192.0.2.12",)}),
    ("Connection closed by UNKNOWN port 65535", causes.SSH, {"addresses": ()}),
    ("Connection closed by 192.0.2.12 port 22", causes.SSH, AT),
    ("Connection reset by 192.0.2.12 port 22", causes.SSH, AT),
    ("Connection closed by authenticating user train 192.0.2.12 port 22 [preauth]", causes.SSH, AT),
    ("packet_write_wait: Connection to 192.0.2.12 port 22: Broken pipe", causes.STOPPED, {}),
    ("client_loop: send disconnect: Broken pipe", causes.STOPPED, {}),
    ("Connection to n2 closed by remote host.", causes.STOPPED, {"addresses": ("n2",)}),
    # Host keys and certificates.
    (
        "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @",
        causes.SSH,
        {},
    ),
    ("Offending ED25519 key in /home/train/.ssh/known_hosts:3", causes.SSH, {}),
    ("Host key verification failed.", causes.SSH, {}),
    (
        "The authenticity of host 'n2 (192.0.2.12)' can't be established.",
        causes.SSH,
        {"addresses": ("n2",)},
    ),
    ("Certificate invalid: not yet valid", causes.SSH, {}),
    ("Certificate invalid: expired", causes.SSH, {}),
    ("Certificate invalid: name is not a listed principal", causes.SSH, {}),
    ("No matching CA found. Retry with plain key", causes.SSH, {}),
    (
        "Unable to negotiate with 192.0.2.12 port 22: no matching host key type found. Their offer: ssh-rsa,ssh-dss",
        causes.SSH,
        {"addresses": ("192.0.2.12",)},
    ),
    (
        "Unable to negotiate with 192.0.2.12 port 22: no matching key exchange method found. Their offer: "
        "diffie-hellman-group1-sha1",
        causes.SSH,
        {"addresses": ("192.0.2.12",)},
    ),
    ("send_pubkey_test: no mutual signature algorithm", causes.SSH, {}),
    # The account there.
    ("Your account has expired; please contact your system administrator.", causes.SSH, {}),
    (LOG + "pam_unix(sshd:account): account train has expired (account expired)", causes.SSH, {}),
    ("WARNING: Your password has expired.", causes.SSH, {}),
    ("Password change required but no TTY available.", causes.SSH, {}),
    (LOG + "User train not allowed because account is locked", causes.SSH, {}),
    (LOG + "User train from 192.0.2.11 not allowed because not listed in AllowUsers", causes.SSH, {}),
    (LOG + "User train not allowed because none of user's groups are listed in AllowGroups", causes.SSH, {}),
    (LOG + "Authentication refused: bad ownership or modes for directory /home/train", causes.SSH, {}),
    (
        '"System is booting up. Unprivileged users are not permitted to log in yet. Please come back later."',
        causes.SSH,
        {},
    ),
    ("This account is currently not available.", causes.SSH, {}),
    ("Access denied by pam_slurm_adopt: you have no active jobs on this node", causes.SSH, {}),
    ("Could not chdir to home directory /home/train: No such file or directory", causes.FILES, {}),
    (
        "Received disconnect from 192.0.2.12 port 22:2: Too many authentication failures",
        causes.SSH,
        {},
    ),
    ("train@n2: Permission denied (publickey,gssapi-keyex,gssapi-with-mic).", causes.SSH, {"addresses": ("n2",)}),
    ("train@192.0.2.12: Permission denied (publickey,password).", causes.SSH, {"addresses": ("192.0.2.12",)}),
    ("Permission denied, please try again.", causes.SSH, {}),
    # This side.
    ("@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @", causes.SSH, {}),
    ("Permissions 0644 for '/home/train/.ssh/id_ed25519' are too open.", causes.SSH, {}),
    ("Bad owner or permissions on /home/train/.ssh/config", causes.SSH, {}),
    ("/etc/ssh/ssh_config: line 52: Bad configuration option: frobnicate", causes.SSH, {}),
    ("/etc/ssh/ssh_config: terminating, 1 bad configuration options", causes.SSH, {}),
    ("OpenSSL version mismatch. Built against 30000070, you have 30200010", causes.VERSIONS, {}),
    ('Load key "/home/train/.ssh/id_ed25519": error in libcrypto', causes.SSH, {}),
    ("Enter passphrase for key '/home/train/.ssh/id_ed25519':", causes.SSH, {}),
    ("No user exists for uid 1007", causes.SSH, {}),
    ("bash: line 1: ssh: command not found", causes.SSH, {}),
]


@pytest.mark.parametrize(("text", "cause", "names"), RECORDED)
def test_a_recorded_text_leads_to_its_cause(text: str, cause: str, names: dict[str, tuple[object, ...]]) -> None:
    found = lookup.match(text)
    assert found is not None and found.id == cause, found
    for field, value in names.items():
        assert getattr(found.names, field) == value, found.names


@pytest.mark.parametrize(
    ("text", "about"),
    [
        (TO + "Network is unreachable", SELF),
        (TO + "Permission denied", SELF),
        (TO + "No route to host", PEER),
        ("train@n2: Permission denied (publickey).", PEER),
        (LOG + "User train not allowed because account is locked", SELF),
        ("Bad owner or permissions on /home/train/.ssh/config", SELF),
    ],
)
def test_whose_node_is_at_fault(text: str, about: str) -> None:
    found = lookup.match(text)
    assert found is not None and found.text.about == about


@pytest.mark.parametrize(
    "text",
    [
        "Your account has expired; please contact your system administrator.",
        LOG + "User train not allowed because account is locked",
        LOG + "User train from 192.0.2.11 not allowed because not listed in AllowUsers",
        LOG + "Authentication refused: bad ownership or modes for directory /home/train",
        "System is going down. Unprivileged users are not permitted to log in anymore.",
        "kex_exchange_identification: Connection closed by remote host",
        "Certificate invalid: not yet valid",
        "train@n2: Permission denied (publickey).",
        TO + "Connection refused",
        TO + "Network is unreachable",
    ],
)
def test_no_role_is_named_that_changes_nothing(text: str) -> None:
    found = lookup.match(text)
    assert found is not None and "--tags" not in found.command


@pytest.mark.parametrize(
    "text",
    [
        "Connection to n2 closed.",
        "Warning: Permanently added 'n2' (ED25519) to the list of known hosts.",
        "Authorized uses only. All activity may be monitored and reported.",
        "X11 forwarding request failed on channel 0",
        "Last login: Fri Nov 27 10:11:12 2026 from 192.0.2.11",
        LOG + "Accepted publickey for train from 192.0.2.11 port 40022 ssh2: ED25519 SHA256:x",
    ],
)
def test_a_line_that_says_nothing_is_not_explained(text: str) -> None:
    assert lookup.match(text) is None
