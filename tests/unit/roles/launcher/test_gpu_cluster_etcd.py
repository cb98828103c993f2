# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""torchrun's plugin against a small stand-in for etcd's gateway: shapes, errors, sizes and failover.

The lab's tests run it with the real etcd and the real torchrun.
"""

from __future__ import annotations

import datetime
import http.client
import http.server
import importlib.machinery
import importlib.util
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[4] / "roles" / "launcher" / "files" / "torchrun"


def load() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("gpu_cluster_etcd", str(FOLDER / "gpu_cluster_etcd.py"))
    specification = importlib.util.spec_from_loader(loader.name, loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[loader.name] = module
    keep, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = keep
    return module


plugin: Any = load()


class Etcd:
    """The data of all members. lose: how many answers are lost after the request was carried out."""

    def __init__(self) -> None:
        self.keys: dict[str, tuple[str, int]] = {}
        self.revision = 1
        self.leases: set[str] = set()
        self.lose = 0
        self.leader = "1"
        self.asked: list[str] = []
        self.lock = threading.Lock()

    def error(self, code: int, text: str) -> tuple[int, dict[str, Any]]:
        return 400, {"error": text, "message": text, "code": code}

    def answer(self, path: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/v3/maintenance/status":
            return 200, {"leader": self.leader} if self.leader else {}
        if not self.leader:
            return 503, {"error": "no leader", "message": "etcdserver: no leader", "code": 14}
        if path == "/v3/lease/keepalive":
            ttl = {"TTL": "60"} if request["ID"] in self.leases else {}
            return 200, {"result": {"ID": request["ID"], **ttl}}
        if path == "/v3/lease/grant":
            if request["ID"] in self.leases:
                return self.error(9, "etcdserver: lease already exists")
            self.leases.add(request["ID"])
            return 200, {}
        if path == "/v3/kv/range":
            return 200, {"count": str(sum(request["key"][:20] == key[:20] for key in self.keys))}
        if path == "/v3/kv/deleterange":
            return 200, {"deleted": "1"} if self.keys.pop(request["key"], None) else {}
        return self.transaction(request)

    def transaction(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        holds = all(self.holds(one) for one in request["compare"])
        responses: list[dict[str, Any]] = []
        operations = request["success" if holds else "failure"]
        for one in operations:
            put = one.get("requestPut")
            if put and put["lease"] not in self.leases:
                return self.error(5, "etcdserver: requested lease not found")
        self.revision += any("requestPut" in one for one in operations)
        for one in operations:
            if "requestPut" in one:
                self.keys[one["requestPut"]["key"]] = (one["requestPut"]["value"], self.revision)
                responses.append({"response_put": {}})
                continue
            found = self.keys.get(one["requestRange"]["key"])
            kvs = [{"value": found[0], "mod_revision": str(found[1])}] if found else []
            responses.append({"response_range": {"kvs": kvs}})
        header = {"revision": str(self.revision)}
        return 200, {"header": header, "responses": responses, **({"succeeded": True} if holds else {})}

    def holds(self, compare: dict[str, Any]) -> bool:
        value, revision = self.keys.get(compare["key"], ("", 0))
        if compare["target"] == "VALUE":
            return revision > 0 and value == compare["value"]
        return revision == int(compare["modRevision"])


class Member(http.server.ThreadingHTTPServer):
    """One member; ``behaviour`` replaces its answer."""

    daemon_threads = True

    def __init__(self, etcd: Etcd) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.etcd = etcd
        self.connections = 0
        self.behaviour: Callable[[Handler], None] | None = None
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, *_arguments: Any) -> None:
        """A client that waits no longer is no error of this server."""

    def get_request(self) -> Any:
        self.connections += 1
        return super().get_request()

    @property
    def endpoint(self) -> Any:
        return plugin.Endpoint("127.0.0.1", self.server_address[1])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Member

    def log_message(self, *_arguments: Any) -> None: ...

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        etcd = self.server.etcd
        if self.server.behaviour is not None:
            self.server.behaviour(self)
            return
        with etcd.lock:
            etcd.asked.append(self.path)
            status, answer = etcd.answer(self.path, request)
            if self.path == "/v3/kv/txn" and etcd.lose:
                etcd.lose -= 1
                self.close_connection = True
                return
        self.say(status, json.dumps(answer).encode())

    def say(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def connect(endpoint: Any, seconds: float) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=seconds)


@pytest.fixture
def etcd() -> Etcd:
    return Etcd()


@pytest.fixture
def members(etcd: Etcd) -> Iterator[list[Member]]:
    made = [Member(etcd) for _ in range(3)]
    yield made
    for one in made:
        one.shutdown()
        one.server_close()


def space_of(members: list[Member], **settings: Any) -> Any:
    gateway = plugin.Gateway("job/1", [one.endpoint for one in members], connect, **settings)
    gateway._current = 0
    return plugin.Space(gateway)


def keys_of(space: Any) -> Any:
    keys = plugin.Keys()
    keys.bind(space)
    keys.timeout = datetime.timedelta(seconds=0.3)
    return keys


def test_the_state_is_replaced_only_by_who_has_seen_it(members: list[Member]) -> None:
    state = plugin.State(space_of(members))
    assert state.get_state() is None
    written, token, done = state.set_state(b"one")
    assert (written, done) == (b"one", True) and state.get_state() == (b"one", token)
    assert state.set_state(b"two") == (b"one", token, False)
    assert state.set_state(b"two", token)[2] is True
    assert state.set_state(b"three", token)[::2] == (b"two", False)
    assert state.set_state(b"three", "no token")[::2] == (b"two", False)


def test_all_keys_are_of_the_job_and_of_its_lease(members: list[Member], etcd: Etcd) -> None:
    space = space_of(members)
    keys_of(space).set("a", b"\x00\xff")
    (key,) = etcd.keys
    assert plugin.decoded(key) == b"/gpu-cluster/rendezvous/job%2F1/store/a"
    assert etcd.leases == {str(space.lease)} and space.lease == space_of(members).lease


def test_a_store_does_what_torch_asks_of_it(members: list[Member]) -> None:
    keys = keys_of(space_of(members))
    assert [keys.add("n", 2), keys.add("n", -1)] == [2, 1]
    assert [keys.compare_set("c", *pair) for pair in (("", "1"), ("", "2"), ("1", "3"))] == [b"1", b"1", b"3"]
    assert keys.compare_set("absent", "x", "y") == b"x" and not keys.check(["absent"])
    names = [f"k{number}" for number in range(250)]
    keys.multi_set(names, [name.encode() for name in names])
    assert keys.multi_get(names)[249] == b"k249" and keys.check([*names, "n"])
    keys.append("text", "a")
    keys.append("text", b"b")
    assert keys.get("text") == b"ab" and keys.has_extended_api() and keys.clone() is keys
    assert [keys.delete_key("n"), keys.deleteKey("n")] == [True, False] and keys.getNumKeys() > 250


def test_a_key_that_nobody_sets_is_waited_for_and_named(members: list[Member]) -> None:
    keys = keys_of(space_of(members))
    with pytest.raises(plugin.NoKey, match=r"1 keys were not set within 0\.3 seconds: ranks/1"):
        keys.get("ranks/1")
    threading.Timer(0.1, keys.set, ("late", "x")).start()
    keys.wait(["late"], datetime.timedelta(seconds=20))


def test_a_lost_answer_counts_once(members: list[Member], etcd: Etcd) -> None:
    space = space_of(members)
    keys, state = keys_of(space), plugin.State(space)
    assert keys.add("n", 1) == 1
    for lost in (1, 2):
        token = state.set_state(b"before", (state.get_state() or (b"", None))[1])[1]
        etcd.lose = lost
        assert state.set_state(b"after", token)[::2] == (b"after", True)

    def read_then_lose(names: Any) -> Any:
        found = plugin.Space.get(space, names)
        etcd.lose = 1
        return found

    space.get = read_then_lose
    assert keys.add("n", 1) == 2 and plugin.Space.get(space, ["store/n"])["store/n"][0] == b"2"


def test_a_connection_is_kept(members: list[Member]) -> None:
    keys = keys_of(space_of(members))
    for _ in range(5):
        keys.set("a", "1")
    assert members[0].connections == 1


def test_another_member_answers_for_one_that_is_gone(members: list[Member]) -> None:
    space = space_of(members)
    keys = keys_of(space)
    keys.set("a", "1")
    members[0].shutdown()
    members[0].server_close()
    members[0].behaviour = lambda handler: setattr(handler, "close_connection", True)
    assert keys.get("a") == b"1"


def answer_with(status: int, content: bytes) -> Callable[[Handler], None]:
    return lambda handler: handler.say(status, content)


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (answer_with(200, b"[1]"), "an answer that is no JSON object, HTTP status 200: [1]"),
        (answer_with(200, b"\xff<html>"), "no JSON object"),
        (answer_with(503, b'{"message": "etcdserver: too busy", "code": 14}'), "etcdserver: too busy"),
        (answer_with(200, b'"' + b"x" * 2000 + b'"'), "an answer of more than 1000 bytes"),
        (lambda _handler: time.sleep(0.8), "no answer within 0.2 seconds"),
        (lambda handler: setattr(handler, "close_connection", True), "closed connection without response"),
    ],
)
def test_what_a_member_said_is_shown(
    members: list[Member], monkeypatch: pytest.MonkeyPatch, behaviour: Callable[[Handler], None], said: str
) -> None:
    monkeypatch.setattr(plugin, "PAUSE_SECONDS", 0.01)
    # A loaded machine takes its time; only silence must be shorter.
    space = space_of(members, give_up=1.0, attempt=0.2 if said.startswith("no answer") else 1.0)
    # Bad answers of one member never count.
    members[0].behaviour = behaviour
    monkeypatch.setattr(plugin, "MOST_BYTES", 1000)
    keys_of(space).set("a", "1")
    for member in members:
        member.behaviour = behaviour
    begin = time.monotonic()
    with pytest.raises(plugin.Unreachable) as caught:
        keys_of(space).get("a")
    assert time.monotonic() - begin < 10
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("The rendezvous of the job job/1 cannot be reached: no member of etcd answered for ")
    assert [line.strip().partition(": ")[0] for line in lines[1:]] == [str(one.endpoint) for one in members]
    assert all(said in line for line in lines[1:]), lines


def test_members_without_a_leader_are_told_from_dead_ones(
    members: list[Member], etcd: Etcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "PAUSE_SECONDS", 0.01)
    space = space_of(members, give_up=0.5, attempt=1.0)
    etcd.leader = ""
    members[2].shutdown()
    members[2].server_close()
    with pytest.raises(plugin.Unreachable) as caught:
        plugin.State(space).get_state()
    first, second, third = str(caught.value).splitlines()[1:]
    assert plugin.SAID_NO_LEADER in first and plugin.SAID_NO_LEADER in second
    assert third.endswith("Connection refused")


def test_a_wrong_request_is_not_repeated(members: list[Member], etcd: Etcd) -> None:
    space = space_of(members)
    space.renew()
    count = len(etcd.asked)
    for member in members:
        member.behaviour = answer_with(400, b'{"error": "x", "message": "request is too large", "code": 3}')
    with pytest.raises(plugin.Refused, match="request is too large"):
        plugin.State(space).set_state(b"x")
    assert len(etcd.asked) == count


def test_a_lapsed_lease_is_made_again(members: list[Member], etcd: Etcd) -> None:
    space = space_of(members)
    keys = keys_of(space)
    keys.set("a", "1")
    etcd.leases.clear()
    keys.set("a", "2")
    assert keys.get("a") == b"2" and etcd.leases == {str(space.lease)}


def test_the_lease_is_renewed_now_and_then(members: list[Member], etcd: Etcd) -> None:
    keys = keys_of(space_of(members))
    for _ in range(5):
        keys.set("a", "1")
    assert etcd.asked.count("/v3/lease/keepalive") == 1


def test_endpoints() -> None:
    found = plugin.endpoints_of("192.0.2.11:2379, n2,[2001:db8::1]:2380,n2:2379")
    assert [str(one) for one in found] == ["192.0.2.11:2379", "n2:2379", "[2001:db8::1]:2380"]


@pytest.mark.parametrize("wrong", ["", "n1:x", "n1,,n2", "https://n1:2379", "n1:99999", "n1/a"])
def test_wrong_endpoints_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"--rdzv-endpoint: .* is no HOST:PORT"):
        plugin.endpoints_of(wrong)


def test_all_missing_files_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--rdzv-conf") as caught:
        plugin.tls_context({"ca": str(tmp_path / "ca.crt"), "cert": None, "key": ""})
    assert str(caught.value).splitlines() == [
        f"--rdzv-conf: ca: cannot read {tmp_path}/ca.crt: No such file or directory",
        "--rdzv-conf: cert=FILE is missing",
        "--rdzv-conf: key=FILE is missing",
    ]


def test_files_that_are_no_certificates_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello")
    with pytest.raises(ValueError, match="ca, cert and key do not fit"):
        plugin.tls_context(dict.fromkeys(("ca", "cert", "key"), str(tmp_path / "x")))


@pytest.mark.parametrize("wrong", ["0", "x", "1.5", "-3", "4000", "\N{SUPERSCRIPT TWO}"])
def test_numbers_are_checked(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"--rdzv-conf: give_up_after=.* is no number from 1 to 3600"):
        plugin.number(wrong, "give_up_after", 15, 1, 3600)
    assert plugin.number(None, "give_up_after", 15, 1, 3600) == 15 and plugin.number("20", "x", 15, 1, 3600) == 20


def test_torch_finds_it_by_its_entry_point() -> None:
    (folder,) = FOLDER.glob("*.dist-info")
    lines = (folder / "entry_points.txt").read_text().splitlines()
    assert lines[-2:] == ["[torchrun.handlers]", f"{plugin.BACKEND} = gpu_cluster_etcd:handler"]
    assert plugin.handler() is plugin.create
    (version,) = [line for line in (folder / "METADATA").read_text().splitlines() if line.startswith("Version: ")]
    assert folder.name == f"gpu_cluster_etcd-{version[len('Version: ') :]}.dist-info"
