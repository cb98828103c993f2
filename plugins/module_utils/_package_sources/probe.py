# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetching one address from the node, the way dnf would reach it. The only part that uses the network.

An answer is data, whatever happens: what it means is decided in ``verdict``.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

#: Kinds of answers.
OK, STATUS, NAME, REFUSED, TIMEOUT, TLS, CONNECTION, MISSING, TOO_LONG, TUNNEL = (
    "ok",
    "status",
    "name",
    "refused",
    "timeout",
    "tls",
    "connection",
    "missing",
    "too_long",
    "tunnel",
)
#: repomd.xml has a few KiB, a package's page of an index up to some MiB. More is something else.
MAX_BYTES = 32 * 1024 * 1024
#: A body may take this many times the timeout of a single step (name, connection, silence).
TOTAL_FACTOR = 4
USER_AGENT = "gpu-cluster-package-sources/1.0"


@dataclass(frozen=True)
class Route:
    """How an address is reached. ``proxy`` None takes what the environment says, as dnf does; empty goes direct.

    It may hold a user and a password, which appear in no answer.
    """

    proxy: str | None = None
    ca_certificate: str = ""


@dataclass(frozen=True)
class Question:
    """What to fetch, and how."""

    url: str
    route: Route = Route()


@dataclass(frozen=True)
class Answer:
    """What came back. ``status`` is that of HTTP; ``detail`` is the system's own text for a failure."""

    url: str
    kind: str
    status: int = 0
    body: bytes = b""
    detail: str = ""
    proxy: str = ""
    seconds: float = 0.0


def fetch(question: Question, seconds: int) -> Answer:
    """Ask once. ``seconds`` bounds each wait, and TOTAL_FACTOR times as much all of it but the name's resolution."""
    started = time.monotonic()
    url, route = question.url, question.route
    if urlsplit(url).scheme == "file":
        return _read_file(url)
    proxy = _proxy_in_force(url, route)

    def answer(kind: str, status: int = 0, body: bytes = b"", detail: str = "") -> Answer:
        return Answer(url, kind, status, body, detail, proxy, round(time.monotonic() - started, 3))

    try:
        opener = _opener(route)
        request = urllib.request.Request(url, headers={"User-Agent": USER_AGENT, "Accept": "*/*"})
        with opener.open(request, timeout=seconds) as response:
            body = _body(response, started + TOTAL_FACTOR * seconds)
        return answer(OK, 200, body) if body is not None else answer(TOO_LONG)
    except urllib.error.HTTPError as error:
        error.close()
        return answer(STATUS, error.code, detail=str(error.reason))
    except urllib.error.URLError as error:
        reason = error.reason
        return answer(*_failure(reason if isinstance(reason, Exception) else OSError(str(reason))))
    except (OSError, http.client.HTTPException) as error:
        return answer(*_failure(error))


def _failure(error: Exception) -> tuple[str, int, bytes, str]:
    """The kind of a failed connection, and the system's words for it."""
    text = str(error) or type(error).__name__
    # The more special classes first: all of them but the last are OSError too.
    if isinstance(error, (socket.timeout, TimeoutError)):
        kind = TIMEOUT
    elif isinstance(error, socket.gaierror):
        kind, text = NAME, error.strerror or text
    elif isinstance(error, ssl.SSLCertVerificationError):
        kind, text = TLS, error.verify_message
    elif isinstance(error, ssl.SSLError):
        kind = TLS
    elif isinstance(error, ConnectionRefusedError):
        kind = REFUSED
    elif text.startswith("Tunnel connection failed"):
        kind = TUNNEL
    else:
        kind = CONNECTION
    return kind, 0, b"", text


def _opener(route: Route) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context(cafile=route.ca_certificate or None)
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
    if route.proxy is None:
        handlers.append(urllib.request.ProxyHandler())
    elif route.proxy:
        handlers.append(urllib.request.ProxyHandler({"http": route.proxy, "https": route.proxy}))
    else:
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


def _proxy_in_force(url: str, route: Route) -> str:
    """The proxy that is really asked, for the sentence that names it; no_proxy of the environment counts."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme, "") if route.proxy is None else route.proxy
    if not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return ""
    shown = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return f"http://{shown.netloc.rsplit('@', 1)[-1]}"


def _body(response: http.client.HTTPResponse, deadline: float) -> bytes | None:
    """All of it, or None when it has no end."""
    body = b""
    while len(body) <= MAX_BYTES:
        if time.monotonic() > deadline:
            raise TimeoutError("the answer came too slowly")
        piece = response.read1(65536)
        if not piece:
            return body
        body += piece
    return None


def _read_file(url: str) -> Answer:
    path = unquote(urlsplit(url).path)
    try:
        with open(path, "rb") as stream:
            body = stream.read(MAX_BYTES + 1)
    except OSError as error:
        return Answer(url, MISSING, detail=os.strerror(error.errno or 0))
    return Answer(url, OK, 200, body) if len(body) <= MAX_BYTES else Answer(url, TOO_LONG)


def fetch_all(questions: Sequence[Question], seconds: int) -> Mapping[Question, Answer]:
    """Ask all at once. A name server that never answers holds up a thread, but not the module."""
    answers: dict[Question, Answer] = {}

    def ask(question: Question) -> None:
        answers[question] = fetch(question, seconds)

    threads = {question: threading.Thread(target=ask, args=(question,), daemon=True) for question in questions}
    started = time.monotonic()
    for thread in threads.values():
        thread.start()
    deadline = started + (TOTAL_FACTOR + 1) * seconds
    for thread in threads.values():
        thread.join(max(0.0, deadline - time.monotonic()))
    late = round(time.monotonic() - started, 3)
    return {question: answers.get(question, Answer(question.url, TIMEOUT, seconds=late)) for question in threads}
