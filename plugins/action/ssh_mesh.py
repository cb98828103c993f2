# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sign what a node asks for on the controller, and hand it the whole state that it must have."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import (
    authority,
    certificate,
    files,
    names,
    spec,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.certificate import HOST, USER, Wanted
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.node import EXTENSIONS
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _answers

MODULE = "baremetal.gpu_cluster.ssh_mesh"
ARGUMENT_SPEC = {
    "members": {"type": "list", "elements": "dict", "required": True},
    "extra_names": {"type": "dict", "default": {}},
    "user": {"type": "str", "default": "train"},
    "root_ok": {"type": "bool", "default": False},
    "ports": {"type": "list", "elements": "int", "default": [22]},
    "ca_dir": {"type": "str", "default": ""},
    "key_type": {"type": "str", "choices": list(certificate.KEY_TYPES), "default": "ed25519"},
    "validity_days": {"type": "int", "default": 365},
    "renew_days": {"type": "int", "default": 90},
    "max_startups": {"type": "int", "default": 256},
    "max_sessions": {"type": "int", "default": 128},
}
#: What the module takes as it was given; lists of all members stay on the controller.
HANDED_OVER = ("user", "root_ok", "ports", "key_type", "validity_days", "renew_days", "max_startups", "max_sessions")
RESULTS = ("signed", "reloaded")
#: What check mode says in place of a key that the first run makes.
NOT_MADE_YET = "(made by the first run)"

ERR_ASKS_AGAIN = (
    "%s asks for more certificates than it did a moment ago (%s). Is another run at work on it? Run this again"
)
ERR_HELD = (
    "%s gave an answer about its certificates that the module of this name never gives. Nothing was signed. Is another "
    "release of the collection at work, or somebody else root there?"
)
WARN_UNLISTED = (
    "%s has certificates of this authority that its ledger does not list: %s. Revoking the host does not revoke them. "
    "Bring the lines of the copy that signed them into %s, or remove them on the node and run this again"
)
WARN_OTHER_AUTHORITY = (
    "%s had certificates of another authority than %s. Members with different ones refuse each other: run the role for "
    "all of them. If this folder is not the one that signed for the others, such as in a copy of the inventory without "
    "it, bring that one here first"
)


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        host = str(variables["inventory_hostname"])
        refused = [problem.sentence() for problem in spec.problems(given, host)]
        try:
            sources = variables.get("ansible_inventory_sources") or []
            folder = spec.authority_folder(given["ca_dir"], variables.get("inventory_dir"), sources)
        except ValueError as error:
            refused.append(str(error))
        if refused:
            return {**result, "failed": True, "msg": "Nothing was changed.\n" + "\n".join(refused)}
        reveal, conceal = self._loader.get_real_file, self._loader.cleanup_tmp_file
        ca = authority.Authority(folder, given["key_type"], reveal, conceal)
        try:
            made = ca.ensure(dry=bool(self._task.check_mode))
            answer = self._on_the_node(given, ca, host, variables)
        except (authority.AuthorityError, AnsibleError, OSError, certificate.FormatError) as error:
            return {**result, "failed": True, "msg": sanitize.block(f"{folder}: {error}")}
        result.update(_answers.listed(told(answer, host, folder), RESULTS))
        result["ca_dir"] = folder
        if made and not result.get("failed"):
            result["changed"] = True
        return result

    def _on_the_node(
        self, given: Mapping[str, Any], ca: authority.Authority, host: str, variables: dict[str, Any]
    ) -> dict[str, Any]:
        """Compare on the node; where something must be signed, sign it and ask once more."""
        plan = plan_of(given, ca, host)
        arguments = {name: given[name] for name in HANDED_OVER}
        answer = sanitize.from_node(self._execute_module(MODULE, {**arguments, "plan": plan}, task_vars=variables))
        asked = answer.pop("requests", None)
        unknown = ca.unknown(held_of(answer.pop("held", []), plan, host))
        ca.refuse_forgotten(host, unknown)
        unlisted = [f"{one.name} (serial {one.serial})" for one in unknown if one.ours]
        warnings = [WARN_UNLISTED % (host, ", ".join(unlisted), ca.path(authority.LEDGER))] if unlisted else []
        if answer.get("failed") or not asked:
            return with_warnings(answer, warnings)
        requests = requests_of(asked, plan, host)
        signed = ca.sign(requests, given["validity_days"] * certificate.DAY_SECONDS, time.time())
        plan["certificates"] = signed
        answer = sanitize.from_node(self._execute_module(MODULE, {**arguments, "plan": plan}, task_vars=variables))
        again = answer.pop("requests", None)
        answer.pop("held", None)
        if again and not answer.get("failed"):
            raise authority.AuthorityError(ERR_ASKS_AGAIN % (host, ", ".join(again)))
        return with_warnings(answer, warnings)


def with_warnings(answer: dict[str, Any], further: list[str]) -> dict[str, Any]:
    """The answer with further warnings, if there are any."""
    return {**answer, "warnings": [*answer.get("warnings", []), *further]} if further else answer


def held_of(said: Any, plan: Mapping[str, Any], host: str) -> list[authority.Held]:
    """The certificates that a node says it has. Its root may be hostile, so nothing else is taken."""
    names = (HOST, *plan["users"])
    found = []
    for one in said if isinstance(said, list) and len(said) <= len(names) else [None]:
        name, serial, ours = (
            (one.get(key) for key in ("name", "serial", "ours")) if isinstance(one, dict) else (0, 0, 0)
        )
        if (
            not isinstance(name, str)
            or name not in names
            or not isinstance(serial, int)
            or isinstance(serial, bool)
            or not 0 <= serial < 2**64
            or not isinstance(ours, bool)
        ):
            raise authority.AuthorityError(ERR_HELD % host)
        found.append(authority.Held(name, HOST if name == HOST else USER, serial, ours))
    return found


def told(answer: dict[str, Any], host: str, folder: str) -> dict[str, Any]:
    """The answer, with a warning when another authority has signed for the node so far."""
    other = certificate.WHY_OTHER_CA in (answer.get("signed") or {}).values()
    return with_warnings(answer, [WARN_OTHER_AUTHORITY % (host, folder)] if other else [])


def plan_of(given: Mapping[str, Any], ca: authority.Authority, host: str) -> dict[str, Any]:
    """Everything that the node must have or know. Its own names and addresses are the inventory's, not its own."""
    members = given["members"]
    own = next(member for member in members if member["name"] == host)
    users = [given["user"], *([files.ROOT] if given["root_ok"] else [])]
    every = names.all_names(members, given["extra_names"])
    return {
        "name": host,
        "address": str(own["fabric_address"]),
        "users": users,
        "ports": given["ports"],
        "key_type": given["key_type"],
        "renew_seconds": given["renew_days"] * certificate.DAY_SECONDS,
        "max_startups": given["max_startups"],
        "max_sessions": given["max_sessions"],
        "principals": list(every[host]),
        "sources": names.sources(own),
        "networks": list(names.networks(members)),
        "host_ca": ca.public(HOST) or NOT_MADE_YET,
        "user_ca": ca.public(USER) or NOT_MADE_YET,
        "krl": base64.b64encode(ca.read(authority.KRL)).decode("ascii"),
        "revoked_serials": {kind: sorted(ca.revoked(kind)[0]) for kind in (HOST, USER)},
        "revoked_keys": sorted(ca.revoked(USER)[1]),
        "ssh_config": files.client(users, every, given["ports"]),
        "certificates": {},
    }


def requests_of(asked: Mapping[str, Mapping[str, str]], plan: Mapping[str, Any], host: str) -> list[authority.Request]:
    """What is signed for a node: its own names and its own users, whatever it asks for."""
    requests = []
    for name, request in asked.items():
        key = certificate.bare_key(request["public_key"])
        if name == HOST:
            wanted = Wanted(HOST, key, plan["host_ca"], tuple(plan["principals"]), {}, ())
        elif name in plan["users"]:
            wanted = Wanted(USER, key, plan["user_ca"], (name,), {"source-address": plan["sources"]}, EXTENSIONS)
        else:
            raise authority.AuthorityError(f"{host} asks for a certificate for {name}, which it does not get")
        requests.append(authority.Request(host, name, wanted))
    return requests
