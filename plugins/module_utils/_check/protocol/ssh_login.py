# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of what a node says about logins of the user of jobs over ssh, as ``agent.facts_ssh_login`` writes it."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import (
    each,
    flag,
    integer,
    optional,
    port,
    text,
)

#: What ``sshd -T`` says of these is kept (sshd_config(5)).
KEYWORDS = (
    *("allowusers", "denyusers", "allowgroups", "denygroups", "pubkeyauthentication", "authenticationmethods"),
    *("permitrootlogin", "strictmodes", "usepam", "maxstartups", "maxsessions", "listenaddress", "trustedusercakeys"),
    *("authorizedprincipalsfile", "persourcemaxstartups"),
)
#: Files that keep everybody but root out (pam_nologin(8)).
NOLOGIN = ("/run/nologin", "/etc/nologin")
#: Characters of one text, and values in one list.
MOST_CHARACTERS, MOST_VALUES = 400, 200


def _few(test: shape.Test) -> shape.Test:
    return lambda value: each(test)(value) and len(value) <= MOST_VALUES


def _settings(value: Any) -> bool:
    return isinstance(value, dict) and all(name in KEYWORDS and _few(text)(values) for name, values in value.items())


#: Days since 1970 of shadow(5); None where the field is empty.  locked: its password begins with an exclamation mark.
SHADOW = shape.record(
    {
        "locked": flag,
        **dict.fromkeys(("changed", "maximum", "inactive", "expires"), optional(integer)),
        "today": integer,
    }
)
#: problem: why sshd refuses its own configuration, empty when it does not.  silent: ports on which nothing listens.
#: writable: what StrictModes minds.  keys: whether
#: the home has a file of keys, None where sshd takes certificates.  nologin: files that are there.  wrappers: lines of
#: hosts.allow and hosts.deny, None where this sshd reads none.
FOUND = shape.record(
    {
        "user": text,
        "groups": _few(text),
        "settings": _settings,
        "problem": text,
        "silent": _few(port),
        "shell": shape.record({"path": text, "works": flag}),
        "shadow": optional(SHADOW),
        "nologin": _few(lambda value: value in NOLOGIN),
        "keys": optional(flag),
        "writable": _few(shape.record({"path": text, "why": text})),
        "wrappers": optional(shape.record({"allow": _few(text), "deny": _few(text)})),
        "log": _few(text),
    }
)
#: One login from this node to another member: ``text`` is what ssh printed.
TRIED = shape.record({"to": text, "code": integer, "text": text})
#: found: None without sshd or without the user.  tried: None where the user has no key of the cluster.
ANSWER = shape.record({"found": optional(FOUND), "tried": optional(TRIED)})
