# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of mirrors, indexes and proxies, as users write them: one rule for every variable. Pure.

No address may carry a user or a password: it becomes an argument of programs, which every user of the node can list,
and it is kept in files that every user can read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import (
    Problem,
    shown,
    without_secrets,
)

HTTP = ("http", "https")
#: What pip takes for an index.
INDEX = (*HTTP, "file")
#: Says that no proxy is wanted, where others have one.
NO_PROXY = "none"
FORMS = {"http": "http://HOST/...", "https": "https://HOST/...", "file": "file:///PATH"}

ERR_SECRET = "a password would be readable for every user of the node, and stand in logs"
ERR_ADDRESS = "expected %s"
ERR_PROXY = "expected http://HOST:PORT, or %s"
FIX_SECRET = "take user, password and token out of the address, and let the server admit the nodes by their addresses"
FIX_PROXY_SECRET = (
    "let the proxy admit the nodes by address, or leave this empty and write it to dnf.conf and pip.conf yourself"
)
FIX_ADDRESS = "write the whole address"
FIX_PROXY = "write the whole address, for example http://proxy.example:3128"


def has_user(text: str) -> bool:
    """Whether an address in the text carries a user, with a password or as a token."""
    return without_secrets(text) != text


def secret_problems(variable: str, value: Any) -> list[Problem]:
    """Every address with a user in a value, however deep it lies. For all variables: no list of names to forget."""
    return [
        Problem(where, shown(text), ERR_SECRET, FIX_SECRET) for where, text in _texts(variable, value) if has_user(text)
    ]


def _texts(where: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, str(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield where, str(key)
            yield from _texts(f"{where}.{shown(str(key))[1:-1]}", item)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _texts(f"{where}[{number}]", item)


def address_problems(variable: str, value: Any, schemes: Sequence[str] = HTTP) -> list[Problem]:
    """What is wrong with an address; none with an empty one. ``schemes``: some of ``FORMS``."""
    text = "" if value is None else str(value)
    if not text:
        return []
    if has_user(text):
        return [Problem(variable, shown(text), ERR_SECRET, FIX_SECRET)]
    parts = urlsplit(text) if _is_one_word(text) else None
    if parts is not None and parts.scheme in schemes:
        local = not parts.netloc and parts.path.startswith("/")
        if local if parts.scheme == "file" else bool(parts.hostname) and _port(text) is not None:
            return []
    expected = " or ".join(FORMS[scheme] for scheme in schemes)
    return [Problem(variable, _quoted(text), ERR_ADDRESS % expected, FIX_ADDRESS)]


def proxy_problems(variable: str, value: Any, otherwise: str = "an empty text") -> list[Problem]:
    """The same for a proxy: dnf and pip would also take SOCKS and TLS to it, and neither can be asked early."""
    text = "" if value is None else str(value)
    if not text:
        return []
    if has_user(text):
        return [Problem(variable, shown(text), ERR_SECRET, FIX_PROXY_SECRET)]
    if _is_one_word(text):
        parts = urlsplit(text)
        if parts.scheme == "http" and parts.hostname and _port(text):
            return []
    return [Problem(variable, _quoted(text), ERR_PROXY % otherwise, FIX_PROXY)]


def _is_one_word(text: str) -> bool:
    try:
        urlsplit(text)
    except ValueError:
        return False
    return text.isprintable() and " " not in text and text.isascii()


def _port(text: str) -> int | None:
    """The port; 0 where none is written, None where it is no port."""
    try:
        return urlsplit(text).port or 0
    except ValueError:
        return None


def _quoted(text: str) -> str:
    """What is no address may still hold a password before an @: user:password@proxy:3128, or one with a / in it."""
    return shown(re.sub(r"^((?:[^@/]*//)?).*@", r"\1...@", text, flags=re.DOTALL))


#: Variables that hold one address. That none is forgotten is shown by tests/project/test_addresses.py.
RULES: dict[str, Callable[[Any], list[Problem]]] = {
    "torch_runtime_index_url": lambda value: address_problems("torch_runtime_index_url", value, INDEX),
    "torch_runtime_proxy": lambda value: proxy_problems("torch_runtime_proxy", value),
    "package_sources_wheel_index_url": lambda value: address_problems("package_sources_wheel_index_url", value, INDEX),
    "package_sources_proxy": lambda value: [] if value == NO_PROXY else proxy_problems("package_sources_proxy", value),
}
