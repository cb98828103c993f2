# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sshd and ssh say about their own configuration, and what keeps the mesh from working there. Pure."""

from __future__ import annotations

import fnmatch
import ipaddress
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import certificate, files

Settings = Mapping[str, Sequence[str]]

NONE = "none"
ANY = "any"
#: Printed by an sshd that knows penalties, OpenSSH 9.8 and newer (openssh.com/txt/release-9.8).
PENALTIES = "persourcepenalties"
#: An RSA key signs certificates with SHA-2 (ssh-keygen(1), -t; RFC 8332).
RSA, RSA_SIGNATURE = "ssh-rsa", "rsa-sha2-512"
_LISTENING = "0A"
_INCLUDE = re.compile(r"^\s*include[\s=]+(.+)$", re.IGNORECASE)

ERR_INCLUDE = "%s does not include %s: expected the line 'Include %s/*.conf' at its beginning, as EL ships it. Add it"
ERR_FOREIGN = (
    "sshd has the setting %s %s for %s already, which ours would replace. Move it to another user, or remove it"
)
ERR_LOCKED_OUT = "sshd does not let %s in: %s %s. Add the user there, or remove the setting"
ERR_NO_KEYS = "sshd has PubkeyAuthentication no for %s: nobody gets in with a certificate. Set it to yes"
ERR_METHODS = "sshd asks %s for more than a key (AuthenticationMethods %s). Exempt the user"
ERR_ROOT = "sshd lets root in with PermitRootLogin %s, which takes no certificate. Set it to prohibit-password"
ERR_ALGORITHM = (
    "sshd does not take keys of the type %s (%s). In FIPS mode choose ssh_mesh_key_type: ecdsa, and remove the "
    "authority's keys so that new ones are made"
)
ERR_DIFFERS = "%s has %s %s in force, expected %s: another file sets it first. Look for it in %s"
ERR_ADDRESS = (
    "sshd listens on %s alone (ListenAddress), and the others log in at %s. Add this address there, "
    "or remove the setting"
)
ERR_SOURCES = (
    "sshd lets one address have only %s connections that have not logged in (PerSourceMaxStartups), expected none or "
    "%s at least. Raise it"
)


def parse(text: str) -> dict[str, list[str]]:
    """The output of ``sshd -T`` or ``ssh -G``: keyword to its values in order."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        keyword, _blank, value = line.strip().partition(" ")
        if keyword:
            found.setdefault(keyword.lower(), []).append(value.strip())
    return found


def one(settings: Settings, keyword: str) -> str:
    """The value of a keyword, empty when it is not there."""
    return settings[keyword][0] if settings.get(keyword) else ""


def includes(main: str, path: str, folder: str = "/etc/ssh") -> bool:
    """Whether the text of the main file includes a drop-in."""
    for line in main.splitlines():
        match = _INCLUDE.match(line)
        for pattern in match.group(1).replace('"', " ").split() if match else ():
            if fnmatch.fnmatch(path, posixpath.join(folder, pattern)):
                return True
    return False


def _matches(name: str, pattern: str) -> bool:
    """USER or USER@HOST; the host is not known here, so it counts as fitting."""
    return fnmatch.fnmatchcase(name, pattern.partition("@")[0])


def locked_out(settings: Settings, user: str, groups: Sequence[str]) -> list[str]:
    """Which of AllowUsers, DenyUsers, AllowGroups, DenyGroups keep a user out (sshd_config(5)), one sentence each."""
    problems = []
    for keyword, shown, names, allows in (
        ("denyusers", "DenyUsers", [user], False),
        ("allowusers", "AllowUsers", [user], True),
        ("denygroups", "DenyGroups", groups, False),
        ("allowgroups", "AllowGroups", groups, True),
    ):
        patterns = [word for value in settings.get(keyword, ()) for word in value.split()]
        plain = [word for word in patterns if not word.startswith("!")]
        negated = [word[1:] for word in patterns if word.startswith("!")]
        fits = any(_matches(name, word) for name in names for word in plain)
        fits = fits and not any(_matches(name, word) for name in names for word in negated)
        if patterns and fits != allows:
            problems.append(ERR_LOCKED_OUT % (user, shown, " ".join(patterns)))
    return problems


def foreign(settings: Settings, who: str) -> list[str]:
    """Authorities and lists of revoked keys that are not ours, one sentence each."""
    ours = (files.USER_CA, files.REVOKED, NONE, "")
    return [
        ERR_FOREIGN % (shown, value, who)
        for keyword, shown in (("trustedusercakeys", "TrustedUserCAKeys"), ("revokedkeys", "RevokedKeys"))
        for value in settings.get(keyword, [])
        if value not in ours
    ]


def deaf_address(settings: Settings, address: str) -> list[str]:
    """Whether sshd listens at the address of this node, or at all of its kind: a sentence if not."""
    # ``listenaddress [::]:22``; an address of IPv6 hears no IPv4, as sshd opens one socket for each (IPV6_V6ONLY).
    hosts = [value.split()[0].rpartition(":")[0].strip("[]") for value in settings.get("listenaddress", ())]
    address = str(ipaddress.ip_address(address))
    if not hosts or address in hosts or ("::" if ":" in address else "0.0.0.0") in hosts:
        return []
    return [ERR_ADDRESS % (", ".join(dict.fromkeys(hosts)), address)]


def refusals(
    settings: Settings, user: str, groups: Sequence[str], key_type: str, authorities: Sequence[str] = ()
) -> list[str]:
    """Why a user could not log in with a certificate whatever is written into the drop-in, one sentence each.

    authorities: the public keys that sign. Their type is another one when key_type was changed after they were made.
    """
    problems = locked_out(settings, user, groups)
    if one(settings, "pubkeyauthentication") == "no":
        problems.append(ERR_NO_KEYS % user)
    methods = one(settings, "authenticationmethods")
    if methods not in ("", ANY) and "publickey" not in methods.split():
        problems.append(ERR_METHODS % (user, methods))
    permitted = one(settings, "permitrootlogin")
    if user == files.ROOT and permitted in ("no", "forced-commands-only"):
        problems.append(ERR_ROOT % permitted)
    plain = certificate.KEY_TYPES[key_type]
    for keyword, algorithm in (
        ("pubkeyacceptedalgorithms", plain + certificate.CERTIFICATE_SUFFIX),
        *(("casignaturealgorithms", algorithm) for algorithm in signatures(authorities) or [plain]),
        ("hostkeyalgorithms", plain + certificate.CERTIFICATE_SUFFIX),
    ):
        if settings.get(keyword) and algorithm not in one(settings, keyword).split(","):
            problems.append(ERR_ALGORITHM % (algorithm, keyword))
    return problems


def signatures(authorities: Sequence[str]) -> list[str]:
    """The algorithms with which public keys sign, each once. Text that is no key yet counts for nothing."""
    types = [key.split()[0] for key in authorities if key.split()[0] in certificate.KNOWN_TYPES]
    return list(dict.fromkeys(RSA_SIGNATURE if one == RSA else one for one in types))


def differences(settings: Settings, startups: int, sessions: int) -> list[str]:
    """What sshd has in force for a user otherwise than the drop-in says, one sentence each."""
    expected = {
        "trustedusercakeys": ("TrustedUserCAKeys", files.USER_CA),
        "revokedkeys": ("RevokedKeys", files.REVOKED),
        "authorizedprincipalsfile": ("AuthorizedPrincipalsFile", NONE),
        "maxstartups": ("MaxStartups", files.max_startups(startups)),
        "maxsessions": ("MaxSessions", str(sessions)),
    }
    where = f"{files.SERVER_MAIN} and {posixpath.dirname(files.SERVER)}"
    problems = [
        ERR_DIFFERS % ("sshd", shown, one(settings, keyword) or NONE, value, where)
        for keyword, (shown, value) in expected.items()
        if (one(settings, keyword) or NONE) != value
    ]
    if files.HOST_CERTIFICATE not in settings.get("hostcertificate", ()):
        shown = ", ".join(settings.get("hostcertificate", ())) or NONE
        problems.append(ERR_DIFFERS % ("sshd", "HostCertificate", shown, files.HOST_CERTIFICATE, where))
    sources = one(settings, "persourcemaxstartups")
    if sources.isdigit() and int(sources) < startups:
        problems.append(ERR_SOURCES % (sources, startups))
    return problems


def client_differences(settings: Settings, user: str) -> list[str]:
    """The same for ``ssh -G`` of a user and a member."""
    where = f"{files.CLIENT_MAIN} and {posixpath.dirname(files.CLIENT)}"
    expected = {
        "globalknownhostsfile": ("GlobalKnownHostsFile", files.KNOWN_HOSTS),
        "revokedhostkeys": ("RevokedHostKeys", files.REVOKED),
        "stricthostkeychecking": ("StrictHostKeyChecking", "true"),
        "knownhostscommand": ("KnownHostsCommand", NONE),
        "proxycommand": ("ProxyCommand", NONE),
        "proxyjump": ("ProxyJump", NONE),
    }
    # The first file of several is the one that is asked first.
    problems = [
        ERR_DIFFERS % (f"ssh of {user}", shown, one(settings, keyword) or NONE, value, where)
        for keyword, (shown, value) in expected.items()
        if (one(settings, keyword) or NONE) != value
    ]
    if files.user_key(user) not in settings.get("identityfile", ()):
        shown = ", ".join(settings.get("identityfile", ())) or NONE
        problems.append(ERR_DIFFERS % (f"ssh of {user}", "IdentityFile", shown, files.user_key(user), where))
    return problems


def listening(*tables: str) -> dict[int, set[str]]:
    """The TCP ports with a listener, each with the inodes of its sockets.

    Out of /proc/net/tcp and tcp6 (proc(5)): address and port in hex, state 0A, the inode as tenth word.
    """
    found: dict[int, set[str]] = {}
    for line in (line for table in tables for line in table.splitlines()[1:]):
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTENING:
            found.setdefault(int(fields[1].rpartition(":")[2], 16), set()).add(fields[9])
    return found


def missing_ports(wanted: Sequence[int], open_ports: Collection[int]) -> list[int]:
    """The wanted ports without a listener."""
    return [port for port in wanted if port not in open_ports]
