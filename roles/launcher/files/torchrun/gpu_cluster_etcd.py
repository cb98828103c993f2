# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rendezvous of torchrun that is kept in etcd: torchrun --rdzv-backend gpu-cluster-etcd.

Part of baremetal.gpu_cluster. The rendezvous of torch's backend c10d ends with the node that hosts its store. This one
is kept by the members of etcd, so that any node can be lost as long as most members of etcd are alive.

torch finds the module by an entry point of the group ``torchrun.handlers`` (torch.distributed.elastic.rendezvous,
registry.py), and torch's own DynamicRendezvousHandler does the rendezvous. This module only stores its state and its
keys, through the JSON form of etcd's version 3 interface (https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/), with
nothing but the standard library. torch's own backends ``etcd`` and ``etcd-v2`` speak version 2, which etcd 3.6 does
not have any more.

All keys of a job are below ``/gpu-cluster/rendezvous/JOB/`` and belong to one lease. The agents of the job renew it;
etcd removes the keys ``lease_ttl`` seconds after the last agent has ended.

Options in --rdzv-conf: ca, cert and key (files in PEM form, required), lease_ttl, give_up_after, and those of torch.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Callable, NamedTuple, Union

BACKEND = "gpu-cluster-etcd"
PREFIX = "/gpu-cluster/rendezvous/"
DEFAULT_PORT = 2379
#: A member that does not answer in that time is left for the next one.
ATTEMPT_SECONDS = 3.0
#: Electing a leader takes etcd a second or two. Without an answer of any member for so long the rendezvous fails;
#: torch takes nodes for dead after 15 seconds without their heartbeat (keep_alive_interval, keep_alive_max_attempt).
GIVE_UP_SECONDS = 15
LEASE_SECONDS = 60
PAUSE_SECONDS = 0.5
#: Polling for a key begins with the first number and ends at the second one.
POLL_SECONDS = (0.05, 0.5)
#: etcd refuses requests above 1.5 MiB, and one answer never has more than some of them.
MOST_BYTES = 16 * 1024 * 1024
#: etcd takes 128 operations in one transaction (--max-txn-ops).
MOST_OPERATIONS = 100
#: How many characters of what a member said are shown.
SHOWN = 200
#: Codes of gRPC that an own mistake causes; no other member would answer anything else.
INVALID, NOT_FOUND, DENIED, PRECONDITION, OUT_OF_RANGE, UNAUTHENTICATED = 3, 5, 7, 9, 11, 16
FINAL = (INVALID, NOT_FOUND, DENIED, PRECONDITION, OUT_OF_RANGE, UNAUTHENTICATED)
#: torch shares one TCPStore over all rounds and tells the agents its address in the first one only. A restart without
#: the first node would meet at a dead address, so the agent of rank 0 chooses an address and a port for every round.
NO_SHARED_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}

ERR_ENDPOINT = "--rdzv-endpoint: {!r} is no HOST:PORT; write HOST:2379,HOST:2379,HOST:2379"
ERR_OPTION = "--rdzv-conf: {}=FILE is missing"
ERR_FILE = "--rdzv-conf: {}: cannot read {}: {}"
ERR_TLS_FILES = "--rdzv-conf: ca, cert and key do not fit: {}"
ERR_NUMBER = "--rdzv-conf: {}={!r} is no number from {} to {}"
ERR_HEAD = "The rendezvous of the job {} cannot be reached: no member of etcd answered for {:.0f} seconds."
ERR_TLS_HEAD = "The rendezvous of the job {} cannot be reached: no member of etcd accepts the connection."
ERR_REFUSED = "etcd refused a request of the rendezvous of the job {}: {}"
SAID_NOTHING = "no answer within {:g} seconds"
SAID_NO_LEADER = "it answers, and has no leader: most members of etcd must be alive and must reach each other"
SAID_NOT_ASKED = "it was not asked in that time"
SAID_TOO_MUCH = "an answer of more than {} bytes"
SAID_NO_JSON = "an answer that is no JSON object, HTTP status {}: {}"

Bytes = Union[str, bytes]


class EtcdError(Exception):
    """etcd cannot be used."""


class Unreachable(EtcdError):
    """No member answers."""


class Refused(EtcdError):
    """A member answers that the request is wrong."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class NoKey(Exception):
    """A key was not set in time."""


class _Failed(Exception):
    """One member failed; another one may answer. tls: whether the connection was refused by either side."""

    def __init__(self, text: str, tls: bool = False) -> None:
        super().__init__(text)
        self.tls = tls


class Endpoint(NamedTuple):
    """Where a member of etcd listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoints_of(text: str) -> list[Endpoint]:
    """Read ``HOST:PORT,HOST:PORT``."""
    found = []
    for part in (part.strip() for part in text.split(",")):
        try:
            url = urllib.parse.urlsplit("//" + part)
            host, port = url.hostname, url.port or DEFAULT_PORT
        except ValueError:
            raise ValueError(ERR_ENDPOINT.format(part)) from None
        if not host or url.path or url.query or url.fragment or url.username is not None:
            raise ValueError(ERR_ENDPOINT.format(part))
        if Endpoint(host, port) not in found:
            found.append(Endpoint(host, port))
    return found


def tls_context(files: dict[str, str | None]) -> ssl.SSLContext:
    """The context of a client with these files; all that are missing are named at once."""
    problems = []
    for name, path in files.items():
        if not path:
            problems.append(ERR_OPTION.format(name))
            continue
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            problems.append(ERR_FILE.format(name, path, error.strerror))
    if problems:
        raise ValueError("\n".join(problems))
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=files["ca"])
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # An empty passphrase, so that a key with one is an error and nobody is asked on the terminal.
        context.load_cert_chain(str(files["cert"]), files["key"], password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ValueError(ERR_TLS_FILES.format(error)) from None
    return context


Connect = Callable[[Endpoint, float], http.client.HTTPConnection]


class Gateway:
    """Requests to the first member that answers. Every thread has connections of its own, which stay open."""

    def __init__(
        self,
        job: str,
        endpoints: Sequence[Endpoint],
        connect: Connect,
        give_up: float = GIVE_UP_SECONDS,
        attempt: float = ATTEMPT_SECONDS,
    ) -> None:
        self.job = job
        self.endpoints = list(endpoints)
        self._connect = connect
        self._give_up = give_up
        self._attempt = attempt
        # Agents begin at different members.
        self._current = random.randrange(len(self.endpoints))
        #: Since when no member has answered.
        self._silent_since: float | None = None
        #: What each said last; a request that is tried only once more does not ask all.
        self._said: dict[Endpoint, _Failed] = {}
        self._open = threading.local()

    def call(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer of one member. A request may have been carried out although its answer was lost, and is repeated
        then. Once no member has answered for ``give_up`` seconds, requests are tried for one more attempt only."""
        start = time.monotonic()
        said: dict[Endpoint, _Failed] = {}
        while True:
            endpoint = self.endpoints[self._current]
            try:
                answer = self._ask(endpoint, path, request, self._attempt)
                self._silent_since = None
                self._said = {}
                return answer
            except Refused:
                self._silent_since = None
                raise
            except _Failed as failed:
                said[endpoint] = self._said[endpoint] = failed
            since = self._silent_since or start
            self._silent_since = since
            self._current = (self._current + 1) % len(self.endpoints)
            if len(said) == len(self.endpoints) and all(one.tls for one in said.values()):
                raise Unreachable(self._text(ERR_TLS_HEAD.format(self.job), said))
            if time.monotonic() >= max(start + self._attempt, since + self._give_up):
                for endpoint in self.endpoints:
                    before = said.get(endpoint) or self._said.get(endpoint) or _Failed(SAID_NOT_ASKED)
                    said[endpoint] = self._without_leader(endpoint) or before
                raise Unreachable(self._text(ERR_HEAD.format(self.job, time.monotonic() - since), said))
            if len(said) == len(self.endpoints):
                time.sleep(PAUSE_SECONDS)

    def _text(self, head: str, said: dict[Endpoint, _Failed]) -> str:
        return "\n".join([head, *(f"  {one}: {said[one]}" for one in self.endpoints)])

    def _without_leader(self, endpoint: Endpoint) -> _Failed | None:
        """Whether a member is alive and only the others are missing; it answers that without them."""
        try:
            status = self._ask(endpoint, "/v3/maintenance/status", {}, self._attempt / 2)
        except (_Failed, Refused):
            return None
        return None if int(status.get("leader", 0)) else _Failed(SAID_NO_LEADER)

    def _ask(self, endpoint: Endpoint, path: str, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """One request to one member. A connection that the member has closed meanwhile is opened anew."""
        body = json.dumps(request).encode()
        connections: dict[Endpoint, http.client.HTTPConnection] = self._open.__dict__.setdefault("connections", {})
        kept = connections.pop(endpoint, None)
        deadline = time.monotonic() + seconds
        for is_kept in (True, False) if kept is not None else (False,):
            connection = kept if is_kept and kept is not None else self._connect(endpoint, seconds)
            try:
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                content = self._content(response, deadline)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if is_kept and isinstance(error, _CLOSED):
                    continue
                is_tls = isinstance(error, ssl.SSLError) and not isinstance(error, _TIMEOUT)
                raise _Failed(_reason(error, seconds), is_tls) from None
            except _Failed:
                connection.close()
                raise
            if not response.will_close:
                connections[endpoint] = connection
            return _answer_of(response.status, content)
        raise AssertionError("the last try returns or raises")

    def _content(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        """The whole answer, of bounded size and in bounded time."""
        content = b""
        while True:
            part = response.read1(65536)
            content += part
            if not part:
                # Else the connection takes no further request: read1 does not notice the end of an answer.
                response.close()
                return content
            if len(content) > MOST_BYTES:
                raise _Failed(SAID_TOO_MUCH.format(MOST_BYTES))
            if time.monotonic() > deadline:
                raise _Failed(SAID_NOTHING.format(self._attempt))


#: Python 3.9 has two names for it.
_TIMEOUT = (TimeoutError, socket.timeout)
_CLOSED = (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError)


def _reason(error: Exception, seconds: float) -> str:
    if isinstance(error, _TIMEOUT):
        return SAID_NOTHING.format(seconds)
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)[:SHOWN]


def _answer_of(status: int, content: bytes) -> dict[str, Any]:
    """The object of an answer; what etcd calls an error is raised."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        shown = content[:SHOWN].decode("utf-8", "replace")
        raise _Failed(SAID_NO_JSON.format(status, shown))
    if status == 200 and "error" not in answer:
        return answer
    error = answer.get("error")
    source = error if isinstance(error, dict) else answer
    code = source.get("code", source.get("grpc_code", 0))
    message = str(source.get("message") or error or f"HTTP status {status}")[:SHOWN]
    if code in FINAL:
        raise Refused(code, message)
    raise _Failed(message)


def encoded(value: Bytes) -> str:
    """Text or bytes in the form that the JSON interface takes."""
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode("ascii")


def decoded(value: Any) -> bytes:
    """Bytes out of that form; protobuf leaves out an empty value."""
    return base64.b64decode(value or "")


def end_of(prefix: str) -> str:
    """The end of the range of all keys that begin with ``prefix``, which ends with a slash."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


class Space:
    """The keys of one job, in a lease whose number follows from the job's name, so that all agents renew the same."""

    def __init__(self, gateway: Gateway, lease_ttl: int = LEASE_SECONDS) -> None:
        self.gateway = gateway
        self.prefix = PREFIX + urllib.parse.quote(gateway.job, safe="") + "/"
        digest = hashlib.sha256(self.prefix.encode()).digest()
        self.lease = int.from_bytes(digest[:8], "big") >> 1 or 1
        self._ttl = lease_ttl
        self._renew_at = 0.0
        self._lock = threading.Lock()

    def call(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        self.renew()
        return self.gateway.call(path, request)

    def renew(self) -> None:
        """Keep the lease, or make it where it has lapsed; not more often than needed."""
        with self._lock:
            if time.monotonic() < self._renew_at:
                return
            self._renew_at = time.monotonic() + self._ttl / 3
            try:
                answer = self.gateway.call("/v3/lease/keepalive", {"ID": str(self.lease)})
                if int((answer.get("result") or {}).get("TTL", 0)) <= 0:
                    self._grant()
            except BaseException:
                self._renew_at = 0.0
                raise

    def _grant(self) -> None:
        try:
            self.gateway.call("/v3/lease/grant", {"ID": str(self.lease), "TTL": str(self._ttl)})
        except Refused as refused:
            # Another agent was faster.
            if refused.code != PRECONDITION:
                raise

    def transaction(
        self, compare: Iterable[Any], success: Iterable[Any], failure: Iterable[Any] = ()
    ) -> dict[str, Any]:
        """One transaction. The lease is made anew where it lapsed a moment ago."""
        request = {"compare": list(compare), "success": list(success), "failure": list(failure)}
        try:
            return self.call("/v3/kv/txn", request)
        except Refused as refused:
            if refused.code != NOT_FOUND:
                raise
            self._grant()
            return self.call("/v3/kv/txn", request)

    # --- parts of transactions --------------------------------------------------------------------------------------

    def key(self, name: str) -> str:
        return encoded(self.prefix + name)

    def read(self, name: str) -> dict[str, Any]:
        return {"requestRange": {"key": self.key(name)}}

    def put(self, name: str, value: Bytes) -> dict[str, Any]:
        return {"requestPut": {"key": self.key(name), "value": encoded(value), "lease": str(self.lease)}}

    def is_at(self, name: str, revision: int) -> dict[str, Any]:
        """Whether a key was last changed by this revision; 0 stands for a key that is not set."""
        return {"key": self.key(name), "target": "MOD", "result": "EQUAL", "modRevision": str(revision)}

    def has(self, name: str, value: bytes) -> dict[str, Any]:
        return {"key": self.key(name), "target": "VALUE", "result": "EQUAL", "value": encoded(value)}

    # --- whole requests ---------------------------------------------------------------------------------------------

    def get(self, names: Sequence[str]) -> dict[str, tuple[bytes, int]]:
        """Values and revisions of the keys that are set."""
        found = {}
        for part in parts(names):
            answer = self.transaction([], [self.read(name) for name in part])
            for name, one in zip(part, responses(answer)):
                if one is not None:
                    found[name] = one
        return found

    def set(self, values: dict[str, bytes]) -> None:
        for part in parts(list(values)):
            self.transaction([], [self.put(name, values[name]) for name in part])

    def count(self, below: str) -> int:
        start = self.prefix + below
        request = {"key": encoded(start), "range_end": encoded(end_of(start)), "count_only": True}
        return int(self.call("/v3/kv/range", request).get("count", 0))

    def delete(self, name: str) -> bool:
        return int(self.call("/v3/kv/deleterange", {"key": self.key(name)}).get("deleted", 0)) > 0

    def change(self, name: str, new_value: Callable[[bytes | None], bytes]) -> bytes:
        """Replace a value by one that is made from it, exactly once also where the answer of etcd was lost: a key of
        the change itself is written with it."""
        own = f"change/{uuid.uuid4().hex}"
        value, revision = self.get([name]).get(name, (None, 0))
        while True:
            wanted = new_value(value)
            answer = self.transaction(
                [self.is_at(own, 0), self.is_at(name, revision)],
                [self.put(name, wanted), self.put(own, wanted)],
                [self.read(own), self.read(name)],
            )
            if answer.get("succeeded"):
                return wanted
            done, there = responses(answer)
            if done is not None:
                return done[0]
            value, revision = there or (None, 0)


def parts(items: Sequence[str]) -> Iterable[Sequence[str]]:
    """Pieces that fit into one transaction."""
    return (items[index : index + MOST_OPERATIONS] for index in range(0, len(items), MOST_OPERATIONS))


def responses(answer: dict[str, Any]) -> list[tuple[bytes, int] | None]:
    """Value and revision of every read of a transaction."""
    found: list[tuple[bytes, int] | None] = []
    for one in answer.get("responses", []):
        entries = (one.get("response_range") or {}).get("kvs") or []
        found.append((decoded(entries[0].get("value")), int(entries[0]["mod_revision"])) if entries else None)
    return found


class State:
    """The state of the rendezvous; the token is the revision of its key."""

    NAME = "state"

    def __init__(self, space: Space) -> None:
        self._space = space

    def get_state(self) -> tuple[bytes, int] | None:
        return self._space.get([self.NAME]).get(self.NAME)

    def set_state(self, state: bytes, token: Any = None) -> tuple[bytes, int, bool] | None:
        if token is not None and not isinstance(token, int):
            found = self.get_state()
            return None if found is None else (*found, False)
        space = self._space
        answer = space.transaction(
            [space.is_at(self.NAME, token or 0)], [space.put(self.NAME, state)], [space.read(self.NAME)]
        )
        if answer.get("succeeded"):
            return state, int(answer["header"]["revision"]), True
        there = responses(answer)[0]
        # It is there where the first answer was lost and the request was repeated.
        return None if there is None else (*there, there[0] == state)


class Keys:
    """What torch.distributed.Store does. The agents use it for their ranks, for MASTER_ADDR and for the barrier at the
    end. A class that inherits from this one and from Store has ``timeout`` from Store."""

    timeout: Any

    def bind(self, space: Space) -> None:
        self._space = space

    @staticmethod
    def _name(key: str) -> str:
        return f"store/{key}"

    def set(self, key: str, value: Bytes) -> None:
        self._space.set({self._name(key): _bytes(value)})

    def get(self, key: str) -> bytes:
        return self._wait([key], None)[self._name(key)]

    def add(self, key: str, amount: int) -> int:
        return int(self._space.change(self._name(key), lambda old: str(int(old or b"0") + amount).encode()))

    def append(self, key: str, value: Bytes) -> None:
        self._space.change(self._name(key), lambda old: (old or b"") + _bytes(value))

    def compare_set(self, key: str, expected: Bytes, desired: Bytes) -> bytes:
        """As TCPStore: an empty ``expected`` stands for a key that is not set."""
        space, name, wanted = self._space, self._name(key), _bytes(desired)
        condition = space.has(name, _bytes(expected)) if expected else space.is_at(name, 0)
        answer = space.transaction([condition], [space.put(name, wanted)], [space.read(name)])
        if answer.get("succeeded"):
            return wanted
        there = responses(answer)[0]
        return _bytes(expected) if there is None else there[0]

    def check(self, keys: Sequence[str]) -> bool:
        names = list(dict.fromkeys(map(self._name, keys)))
        return len(self._space.get(names)) == len(names)

    def wait(self, keys: Sequence[str], timeout: Any = None) -> None:
        self._wait(keys, timeout)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        found = self._wait(keys, None)
        return [found[self._name(key)] for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Bytes]) -> None:
        self._space.set({self._name(key): _bytes(value) for key, value in zip(keys, values)})

    def delete_key(self, key: str) -> bool:
        return self._space.delete(self._name(key))

    def num_keys(self) -> int:
        return self._space.count("store/")

    def has_extended_api(self) -> bool:
        """Whether append, multi_get and multi_set are there."""
        return True

    def clone(self) -> Any:
        """Requests of several threads do not wait for each other, so no second object is needed."""
        return self

    # torch's C++ code calls these two by other names (class PythonStore in torch/csrc/distributed/c10d/init.cpp).
    def deleteKey(self, key: str) -> bool:
        return self.delete_key(key)

    def getNumKeys(self) -> int:
        return self.num_keys()

    def _wait(self, keys: Sequence[str], timeout: Any) -> dict[str, bytes]:
        """The values of the keys, once all are set."""
        seconds = (self.timeout if timeout is None else timeout).total_seconds()
        deadline = time.monotonic() + seconds
        found: dict[str, bytes] = {}
        pause = POLL_SECONDS[0]
        missing = list(dict.fromkeys(map(self._name, keys)))
        while True:
            found.update({name: value for name, (value, _revision) in self._space.get(missing).items()})
            missing = [name for name in missing if name not in found]
            if not missing:
                return found
            left = deadline - time.monotonic()
            if left <= 0:
                some = ", ".join(name[len("store/") :] for name in missing[:3])
                raise NoKey(f"{len(missing)} keys were not set within {seconds:g} seconds: {some}")
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, POLL_SECONDS[1])


def _bytes(value: Bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


# ---- What torch sees ------------------------------------------------------------------------------------------------


def number(value: Any, name: str, default: int, least: int, most: int) -> int:
    """An option of --rdzv-conf."""
    if value is None:
        return default
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise ValueError(ERR_NUMBER.format(name, value, least, most))
    return int(text)


def space_of(params: Any) -> Space:
    """The job's keys, by the parameters that torchrun hands over."""
    endpoints = endpoints_of(params.endpoint)
    give_up = number(params.get("give_up_after"), "give_up_after", GIVE_UP_SECONDS, 1, 3600)
    lease_ttl = number(params.get("lease_ttl"), "lease_ttl", LEASE_SECONDS, 10, 86400)
    context = tls_context({name: params.get(name) for name in ("ca", "cert", "key")})

    def connect(endpoint: Endpoint, seconds: float) -> http.client.HTTPConnection:
        return http.client.HTTPSConnection(endpoint.host, endpoint.port, timeout=seconds, context=context)

    return Space(Gateway(params.run_id, endpoints, connect, give_up), lease_ttl)


def create(params: Any) -> Any:
    """The rendezvous handler of one agent."""
    import torch.distributed as dist
    from torch.distributed.elastic.rendezvous import RendezvousConnectionError, RendezvousError
    from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend, create_handler

    def told(method: Callable[..., Any]) -> Callable[..., Any]:
        """The method with errors as torch names them; they end the agent with their text."""

        @functools.wraps(method)
        def called(*arguments: Any, **named: Any) -> Any:
            try:
                return method(*arguments, **named)
            except Unreachable as error:
                raise RendezvousConnectionError(str(error)) from None
            except Refused as error:
                raise RendezvousError(ERR_REFUSED.format(params.run_id, error)) from None
            except NoKey as error:
                raise dist.DistStoreError(str(error)) from None

        return called

    def told_all(kind: type) -> dict[str, Any]:
        return {name: told(method) for name, method in vars(kind).items() if callable(method) and name[0] != "_"}

    # Made here and not at the import of this module: torch reads all plugins, also for jobs that use another one.
    backend_type = type("EtcdBackend", (State, RendezvousBackend), {**told_all(State), "name": BACKEND})
    store_type = type("EtcdStore", (Keys, dist.Store), told_all(Keys))

    os.environ.update(NO_SHARED_STORE)
    space = space_of(params)
    told(space.renew)()
    store = store_type()
    store.bind(space)
    return create_handler(store, backend_type(space), params)


def handler() -> Callable[[Any], Any]:
    """What the entry point names: it gives torch the function that makes a handler."""
    return create
