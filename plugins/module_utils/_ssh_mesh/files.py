# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the mesh on a node: where they are, and their texts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

#: What sshd and ssh read; nothing secret in it.
FOLDER = "/etc/ssh/gpu-cluster"
#: The key pairs and certificates of the users, outside of their homes, which members may share.
USER_FOLDER = "/etc/gpu-cluster/ssh"
HOST_CERTIFICATE = f"{FOLDER}/ssh_host_key-cert.pub"
USER_CA = f"{FOLDER}/user_ca.pub"
REVOKED = f"{FOLDER}/revoked_keys"
KNOWN_HOSTS = f"{FOLDER}/known_hosts"
SERVER = "/etc/ssh/sshd_config.d/40-gpu-cluster.conf"
#: Of each setting ssh takes the first, and FreeIPA's client sets some in 04-ipa.conf.
CLIENT = "/etc/ssh/ssh_config.d/00-gpu-cluster.conf"
#: Where the client's drop-in was before.
FORMER_CLIENT = "/etc/ssh/ssh_config.d/40-gpu-cluster.conf"
SERVER_MAIN = "/etc/ssh/sshd_config"
CLIENT_MAIN = "/etc/ssh/ssh_config"
HEADER = "# Managed by Ansible, role ssh_mesh of baremetal.gpu_cluster: changes here are lost.\n"
STANDARD_PORT = 22
#: Of 100 connections that have not logged in yet, so many are refused between the first number and twice that one.
REFUSED_PERCENT = 30
ROOT = "root"


def user_key(user: str) -> str:
    """The private key of a user."""
    return f"{USER_FOLDER}/{user}"


def max_startups(number: int) -> str:
    """The value of MaxStartups: from ``number`` on some connections are refused, from twice that on all."""
    return f"{number}:{REFUSED_PERCENT}:{2 * number}"


def known_hosts(authority: str) -> str:
    """The one line that stands for all members."""
    return f"{HEADER}@cert-authority * {authority}\n"


def server(users: Iterable[str], ports: Iterable[int], startups: int, sessions: int, exempt: Sequence[str] = ()) -> str:
    """The drop-in of sshd.

    exempt: networks without penalties for many logins, for an sshd that knows them (OpenSSH 9.8 and newer).
    A Match ends with the included file (servconf.c gives ``activep`` back after each); ``Match all`` says so too.
    No ``AuthorizedPrincipalsFile none`` in it: in a Match, sshd takes that for the name of a file.
    """
    lines = [f"Port {port}" for port in ports]
    lines += [f"HostCertificate {HOST_CERTIFICATE}", f"MaxStartups {max_startups(startups)}", f"MaxSessions {sessions}"]
    lines += [f"PerSourcePenaltyExemptList {','.join(exempt)}"] if exempt else []
    for user in users:
        lines += [
            f"Match User {user}",
            f"    TrustedUserCAKeys {USER_CA}",
            f"    RevokedKeys {REVOKED}",
        ]
    return HEADER + "\n".join([*lines, "Match all"]) + "\n"


def client(users: Iterable[str], names: Mapping[str, Sequence[str]], ports: Sequence[int]) -> str:
    """The drop-in of ssh: for these users and the members alone, so that logins to other machines stay as they are."""
    hosts = ",".join(dict.fromkeys(name for member in names.values() for name in member))
    lines = []
    for user in users:
        lines += [
            f"Match localuser {user} host {hosts}",
            f"    IdentityFile {user_key(user)}",
            f"    CertificateFile {user_key(user)}-cert.pub",
            "    IdentitiesOnly yes",
            f"    GlobalKnownHostsFile {KNOWN_HOSTS}",
            f"    RevokedHostKeys {REVOKED}",
            "    StrictHostKeyChecking yes",
            # FreeIPA's clients ask a directory for the keys of hosts, by a command or through a proxy.
            "    KnownHostsCommand none",
            "    ProxyCommand none",
        ]
        lines += [] if STANDARD_PORT in ports else [f"    Port {ports[0]}"]
    return HEADER + "\n".join([*lines, "Match all"]) + "\n"
