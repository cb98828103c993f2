# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates of a node: those that are there, those to be signed, and those that the controller has signed."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import certificate, files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.certificate import HOST, USER
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.node import (
    ERR_NOT_CHANGED,
    ERR_WRONG_CERTIFICATE,
    MeshError,
    Node,
    text_of,
)

#: What stands for a certificate that check mode does not have signed.
UNSIGNED = "(a new certificate: %s)\n"


def present_of(node: Node) -> dict[str, str]:
    """The certificates that are there, by ``host`` or the user; empty where there is none."""
    users = {user: text_of(f"{files.user_key(user)}-cert.pub") for user in node.plan["users"]}
    return {HOST: text_of(files.HOST_CERTIFICATE), **users}


def held_by(node: Node) -> list[dict[str, Any]]:
    """The serials of what is there, and whether the controller's authority signed it; what cannot be read is none."""
    found = []
    for name, text in present_of(node).items():
        try:
            one = certificate.parse(text)
        except certificate.FormatError:
            continue
        ours = one.authority == node.plan["host_ca" if name == HOST else "user_ca"]
        found.append({"name": name, "serial": one.serial, "ours": ours})
    return found


def requests_of(node: Node, host_key: str, keys: dict[str, str]) -> dict[str, dict[str, str]]:
    """The certificates that have to be signed, by ``host`` or the user."""
    found = {}
    for name, text in present_of(node).items():
        key = host_key if name == HOST else keys[name]
        wanted = node.wanted(HOST if name == HOST else USER, key, name)
        why = node.why(wanted, text) if key else certificate.MISSING
        if why:
            found[name] = {"public_key": key, "why": why}
    return found


def taken(node: Node, asked: dict[str, dict[str, str]], given: dict[str, str]) -> dict[str, str]:
    """The certificates as they are going to be. What the controller has signed must be what was asked for."""
    found = present_of(node)
    for name, request in asked.items():
        if name not in given:
            found[name] = UNSIGNED % request["why"]
            continue
        wanted = node.wanted(HOST if name == HOST else USER, request["public_key"], name)
        why = node.why(wanted, given[name])
        if why:
            raise MeshError(ERR_NOT_CHANGED % (ERR_WRONG_CERTIFICATE % (name, why)))
        found[name] = given[name]
    return found
