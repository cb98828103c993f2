# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why sshd of a node does not let the user of jobs in: from what root of that node reads to one cause with its fix.

ssh prints ``Permission denied`` or ``Connection closed`` for nearly all of them.  Read in the sources of OpenSSH 7.4 to
9.9 (auth.c, auth2-pubkey.c, session.c), pam_unix, pam_nologin and hosts_access(5).  Pure.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files, sshd

MAIN = files.SERVER_MAIN
#: Shells that let nobody in (nologin(8), false(1)).
NO_SHELLS = ("nologin", "false")
#: What ssh prints when sshd drops a connection before it says who it is.
AT_ONCE = re.compile(r"(?:ssh|kex)_exchange_identification: |Exceeded MaxStartups|Not allowed at this time")
#: No account is older; the field is empty, or says never.
NEVER = 99999


class Reason(NamedTuple):
    """why: after ``NODE does not let USER in: ``.  command: a program that mends it on the node, empty for none."""

    why: str
    fix: str
    command: str = ""


def reasons(said: Mapping[str, Any], sources: Sequence[str], own: str, got_in: bool = False) -> list[Reason]:
    """All that is against a login, the first that sshd meets first.

    said: as ``protocol.ssh_login.FOUND`` has it.  sources: addresses of those who log in.  own: of this node.  got_in:
    somebody did.  That refutes what sshd reads at each login: Debian's lets the user's own group write to a home.
    """
    if got_in:
        return [*_of_port(said, own), *_of_wrappers(said, sources), *_of_settings(said)]
    return [
        *_of_port(said, own),
        *_of_wrappers(said, sources),
        *_of_settings(said),
        *_of_account(said),
        *_of_home(said),
    ]


def of_startups(said: Mapping[str, Any], text: str) -> Reason | None:
    """A connection that was closed at once, on a node whose hosts.deny does not do that.  text: what ssh printed."""
    if not AT_ONCE.search(text):
        return None
    names = {"maxstartups": "MaxStartups", "persourcemaxstartups": "PerSourceMaxStartups"}
    values = {shown: sshd.one(said["settings"], keyword) for keyword, shown in names.items()}
    told = " and ".join(f"{shown} {value}" for shown, value in values.items() if value not in ("", sshd.NONE))
    fix = f"raise it in {MAIN} or its folder .d, and reload sshd, or start on fewer nodes at a time"
    return Reason(f"sshd closed the connection at once, beyond {told or 'MaxStartups'}", fix)


def from_log(said: Mapping[str, Any]) -> Reason | None:
    """The last reason in the log of sshd that a table knows."""
    for line in reversed(said["log"]):
        match = lookup.match(line)
        if match and match.software == "ssh":
            return Reason(match.text.says, match.fix)
    return None


def _of_port(said: Mapping[str, Any], own: str) -> list[Reason]:
    if said["problem"]:
        why = f"sshd refuses its own settings: {sanitize.one_line(said['problem'])}"
        return [Reason(why, f"mend that line (sshd -t shows it), then restart sshd: {MAIN} and its folder .d")]
    deaf = sshd.deaf_address(said["settings"], own)
    if deaf:
        values = (one.split()[0].rpartition(":")[0] for one in said["settings"]["listenaddress"])
        listens = ", ".join(dict.fromkeys(values))
        return [Reason(f"sshd listens on {listens} alone", f"add ListenAddress {own} in {MAIN}, and restart sshd")]
    if said["silent"]:
        ports = ", ".join(map(str, said["silent"]))
        return [Reason(f"nothing listens on port {ports}", "start sshd, with Port as in gpu_cluster_ports.ssh")]
    return []


def _of_wrappers(said: Mapping[str, Any], sources: Sequence[str]) -> list[Reason]:
    """hosts.allow comes first, and lets in what it names (hosts_access(5))."""
    rules = said["wrappers"]
    if not rules:
        return []
    for line in rules["deny"]:
        shut = [one for one in sources if _names(line, one) and not any(_names(rule, one) for rule in rules["allow"])]
        if shut:
            why = f"/etc/hosts.deny has '{sanitize.one_line(line)}'"
            return [Reason(why, "take the members out of that line, or name them in /etc/hosts.allow")]
    return []


def _names(line: str, source: str) -> bool:
    """Whether a line is about sshd and this address.  Names of hosts and exceptions count as no."""
    daemons, _colon, rest = line.partition(":")
    clients = rest.replace("[", "").replace("]", "").split(" :")[0].replace(",", " ").split()
    if not {"sshd", "ALL"}.intersection(daemons.replace(",", " ").split()) or "EXCEPT" in line:
        return False
    return any(_matches(one, source) for one in clients)


def _matches(pattern: str, source: str) -> bool:
    if pattern == "ALL" or pattern == source or (pattern.endswith(".") and source.startswith(pattern)):
        return True
    try:
        return ipaddress.ip_address(source) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return False


def _of_settings(said: Mapping[str, Any]) -> list[Reason]:
    settings, user = said["settings"], said["user"]
    found = []
    for keyword, shown in (
        *(("denyusers", "DenyUsers"), ("allowusers", "AllowUsers")),
        *(("denygroups", "DenyGroups"), ("allowgroups", "AllowGroups")),
    ):
        one = {keyword: settings[keyword]} if settings.get(keyword) else {}
        if sshd.locked_out(one, user, said["groups"]):
            what = f"{shown} {' '.join(settings[keyword])}"
            to = "take" if shown.startswith("Deny") else "add"
            whom = user if shown.endswith("Users") else f"a group of {user}"
            fix = (
                f"{to} {whom} {'out of' if to == 'take' else 'to'} {shown} in {MAIN} or its folder .d, and reload sshd"
            )
            found.append(Reason(f"sshd has {what}", fix))
    if sshd.one(settings, "pubkeyauthentication") == "no":
        found.append(Reason("sshd has PubkeyAuthentication no", f"set it to yes in {MAIN}, and reload sshd"))
    methods = sshd.one(settings, "authenticationmethods")
    if methods not in ("", sshd.ANY) and "publickey" not in methods.split():
        fix = f"let publickey be enough for {user} in {MAIN}, and reload sshd"
        found.append(Reason(f"sshd asks for more than a key (AuthenticationMethods {methods})", fix))
    permitted = sshd.one(settings, "permitrootlogin")
    if user == files.ROOT and permitted in ("no", "forced-commands-only"):
        fix = f"set PermitRootLogin prohibit-password in {MAIN}, and reload sshd, or run jobs as another user"
        found.append(Reason(f"sshd has PermitRootLogin {permitted}", fix))
    if sshd.one(settings, "maxsessions") == "0":
        found.append(Reason("sshd has MaxSessions 0", f"raise it in {MAIN}, and reload sshd"))
    principals = sshd.one(settings, "authorizedprincipalsfile")
    if principals not in ("", sshd.NONE):
        fix = f"take AuthorizedPrincipalsFile out of {MAIN} for {user}, or write the name into that file"
        found.append(Reason(f"sshd takes only the names in {principals} from certificates", fix))
    return found


def _of_account(said: Mapping[str, Any]) -> list[Reason]:
    user, shell, shadow = said["user"], said["shell"], said["shadow"]
    found = []
    with_pam = sshd.one(said["settings"], "usepam") != "no"
    if shadow and shadow["locked"] and not with_pam:
        fix = "unlock it, with a password that nobody has, or set UsePAM yes"
        found.append(Reason(f"the account {user} is locked", fix, f"usermod -p '*' {user}"))
    if not shell["works"]:
        fix = "give the user a shell that is there"
        found.append(Reason(f"the shell {shell['path']} is missing", fix, f"usermod -s /bin/bash {user}"))
    if shadow and shadow["expires"] is not None and shadow["today"] >= shadow["expires"]:
        fix = "give the account a later day, or none"
        found.append(Reason(f"the account {user} has expired", fix, f"chage -E -1 {user}"))
    if shadow and shadow["changed"] == 0:
        fix = "set a password, or ask for none"
        found.append(Reason(f"the password of {user} has to be changed first", fix, f"chage -d -1 {user}"))
    elif _is_old(shadow):
        fix = "set a new password, or let it never expire"
        found.append(Reason(f"the password of {user} has expired", fix, f"chage -M -1 {user}"))
    if said["nologin"] and user != files.ROOT:
        paths = " ".join(said["nologin"])
        fix = "wait until the node has booted; when it has, remove it"
        found.append(Reason(f"{paths} lets nobody in but root", fix, f"rm -f {paths}"))
    if shell["path"].rpartition("/")[2] in NO_SHELLS:
        fix = "give the user a shell"
        found.append(Reason(f"the shell of {user} is {shell['path']}", fix, f"usermod -s /bin/bash {user}"))
    return found


def _is_old(shadow: Mapping[str, Any] | None) -> bool:
    """Whether a password has to be changed: a login without a terminal ends then."""
    if not shadow or shadow["maximum"] is None or shadow["changed"] is None or shadow["maximum"] >= NEVER:
        return False
    return bool(shadow["today"] > shadow["changed"] + shadow["maximum"])


def _of_home(said: Mapping[str, Any]) -> list[Reason]:
    """With keys in the home: sshd ignores them where others could change them."""
    found = []
    if said["keys"] is False:
        why = (
            f"sshd trusts no authority there (TrustedUserCAKeys), and the home of {said['user']} has no authorized_keys"
        )
        found.append(Reason(why, "let role ssh_mesh write its settings of sshd again"))
    for one in said["writable"]:
        fix = "take the right to write from group and others"
        command = f"chmod go-w {one['path']}"
        if one["why"].startswith("belongs"):
            fix, command = f"give it to {said['user']}", f"chown {said['user']} {one['path']}"
        plain = one["path"].isascii() and not set(one["path"]) & set(" '\"\\$`;&|<>(){}*?")
        why = f"{sanitize.one_line(one['path'])} {sanitize.one_line(one['why'])}, so its keys are ignored (StrictModes)"
        found.append(Reason(why, fix, command if plain else ""))
    return found
