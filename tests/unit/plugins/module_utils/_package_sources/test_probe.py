# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetching, against servers of this machine that answer in every possible way."""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import probe
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.probe import Question, Route

DIRECT = Route(proxy="")


class Server:
    """A web server on the loopback address; what it was asked, with the headers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append((self.path, dict(self.headers)))
                if self.path.endswith("/missing"):
                    self.send_error(404)
                elif self.path.endswith("/moved"):
                    self.send_response(302)
                    self.send_header("Location", "/here")
                    self.end_headers()
                elif self.path.endswith("/slow"):
                    self.send_response(200)
                    self.end_headers()
                    while not server.done.wait(0.2):
                        self.wfile.write(b"x")
                elif self.path.endswith("/endless"):
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(b"x" * 3000)
                else:
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(b"content")

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing."""

        self.done = threading.Event()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.done.set()
    found.http.shutdown()
    found.http.server_close()


def fetch(url: str, route: Route = DIRECT, seconds: int = 1) -> probe.Answer:
    return probe.fetch(Question(url, route), seconds)


def test_what_is_there(server: Server) -> None:
    answer = fetch(f"{server.url}/x")
    assert (answer.kind, answer.status, answer.body, answer.proxy) == (probe.OK, 200, b"content", "")
    assert fetch(f"{server.url}/moved").body == b"content"


def test_what_is_missing(server: Server) -> None:
    answer = fetch(f"{server.url}/missing")
    assert (answer.kind, answer.status) == (probe.STATUS, 404)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert fetch(f"http://127.0.0.1:{port}/").kind == probe.REFUSED


def test_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = fetch(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    assert answer.kind == probe.TIMEOUT and 0.9 < answer.seconds < 3


def test_an_answer_that_comes_drop_by_drop(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "TOTAL_FACTOR", 1)
    answer = fetch(f"{server.url}/slow")
    assert answer.kind == probe.TIMEOUT and answer.seconds < 2


def test_an_answer_without_an_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "MAX_BYTES", 1000)
    assert fetch(f"{server.url}/endless").kind == probe.TOO_LONG


def test_no_web_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk() -> None:
            connection, _peer = listener.accept()
            connection.recv(1000)
            connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
            connection.close()

        threading.Thread(target=talk, daemon=True).start()
        assert fetch(f"http://127.0.0.1:{listener.getsockname()[1]}/").kind == probe.CONNECTION


def test_no_tls_where_it_was_asked_for(server: Server) -> None:
    assert fetch(server.url.replace("http", "https")).kind == probe.TLS


def test_an_authority_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    assert fetch("https://127.0.0.1:1/", Route("", ca_certificate=str(tmp_path / "ca.pem"))).kind == probe.TLS


def test_an_unknown_name() -> None:
    answer = fetch("http://mirror.invalid/x")
    assert answer.kind == probe.NAME and "Errno" not in answer.detail


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(b"here")
    assert fetch(f"file://{tmp_path}/a%20b").body == b"here"
    missing = fetch(f"file://{tmp_path}/c")
    assert (missing.kind, missing.detail) == (probe.MISSING, "No such file or directory")
    assert fetch(f"file://{tmp_path}").kind == probe.MISSING


def test_a_proxy_is_asked_for_everything_but_says_no_secret(server: Server) -> None:
    proxy = server.url.replace("http://", "http://user:secret@")
    answer = fetch("http://mirror.invalid/x", Route(proxy))
    path, headers = server.asked[0]
    assert (answer.kind, path) == (probe.OK, "http://mirror.invalid/x")
    assert headers["Proxy-Authorization"] == f"Basic {base64.b64encode(b'user:secret').decode()}"
    assert answer.proxy == server.url and "secret" not in repr(answer)


def test_a_proxy_that_does_not_let_through(server: Server) -> None:
    answer = fetch("https://mirror.invalid/x", Route(server.url))
    assert (answer.kind, answer.proxy) == (probe.TUNNEL, server.url)


def test_the_environment_counts_as_for_dnf(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    assert fetch("http://mirror.invalid/x", Route(None)).proxy == server.url
    assert fetch("http://mirror.invalid/x", DIRECT).kind == probe.NAME
    monkeypatch.setenv("no_proxy", "mirror.invalid")
    answer = fetch("http://mirror.invalid/x", Route(None))
    assert (answer.kind, answer.proxy) == (probe.NAME, "")


def test_all_are_asked_at_the_same_time(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = f"http://127.0.0.1:{listener.getsockname()[1]}"
        questions = [Question(f"{silent}/{number}", DIRECT) for number in range(10)]
        started = time.monotonic()
        answers = probe.fetch_all([*questions, Question(server.url, DIRECT)], 1)
    assert time.monotonic() - started < 8
    assert [answer.kind for answer in answers.values()] == [probe.TIMEOUT] * 10 + [probe.OK]


def test_a_name_server_that_never_answers_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def never(question: Question, seconds: int) -> probe.Answer:
        ended.wait(60)
        return probe.Answer(question.url, probe.OK)

    monkeypatch.setattr(probe, "fetch", never)
    monkeypatch.setattr(probe, "TOTAL_FACTOR", 0)
    question = Question("http://mirror.example.com/", DIRECT)
    answers = probe.fetch_all([question], 1)
    ended.set()
    assert answers[question].kind == probe.TIMEOUT
