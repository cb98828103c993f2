# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask members of etcd, through the JSON form of its version 3 interface, with the certificate of the clients."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any

MOST_BYTES = 1024 * 1024
SECONDS = 3.0
SHOWN = 200


class ClientError(Exception):
    """A member gave no answer, or one that is an error."""


class Client:
    """tls: paths of ca, cert and key."""

    def __init__(self, tls: Mapping[str, str], port: int) -> None:
        self._tls = tls
        self._port = port

    def call(self, address: str, path: str, request: Mapping[str, Any], seconds: float = SECONDS) -> dict[str, Any]:
        """The answer of one member."""
        connection = None
        try:
            context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self._tls["ca"])
            context.load_cert_chain(self._tls["cert"], self._tls["key"], password="")
            connection = http.client.HTTPSConnection(address, self._port, timeout=seconds, context=context)
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(request), headers)
            response = connection.getresponse()
            answer = json.loads(response.read(MOST_BYTES))
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise ClientError(str(error)[:SHOWN]) from None
        finally:
            if connection is not None:
                connection.close()
        if not isinstance(answer, dict) or response.status != http.client.OK:
            raise ClientError(str(answer.get("message", answer) if isinstance(answer, dict) else answer)[:SHOWN])
        return answer

    def has_leader(self, address: str) -> bool:
        """Whether a member answers and knows a leader."""
        try:
            answer = self.call(address, "/v3/maintenance/status", {})
            return int(answer.get("leader", 0)) != 0
        except (ClientError, ValueError, TypeError):
            return False

    def members(self, address: str) -> list[dict[str, Any]]:
        """The members that etcd itself knows."""
        answer = self.call(address, "/v3/cluster/member/list", {}).get("members")
        if not isinstance(answer, list) or not all(isinstance(one, dict) and one.get("peerURLs") for one in answer):
            raise ClientError("an answer without members")
        return answer

    def remove(self, address: str, number: str) -> None:
        self.call(address, "/v3/cluster/member/remove", {"ID": number}, 10)

    def add(self, address: str, peer_url: str) -> list[dict[str, Any]]:
        """Add a member that has not started yet; returns all members."""
        answer = self.call(address, "/v3/cluster/member/add", {"peerURLs": [peer_url]}, 10)
        found: list[dict[str, Any]] = answer.get("members") or []
        return found
