# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which interface NCCL takes on this node, said by the library that jobs load.  Needs no GPU.

``Question`` starts ``nccl_question`` in a process of its own and reads what it wrote; the rest is pure.

NCCL says it twice: in a line of its log, and in the 128 bytes of its answer.  The line has the name and the address of
this node in any case, but its words have changed before.  The bytes lay alike in all releases that were seen (2.16.5,
2.21.5, 2.26.2, 2.28.9, 2.31.2: eight of a random number, then a socket address), but they have no name, and the address
of another node where NCCL_COMM_ID is set.  So the line is believed, and the bytes where there is no such line.
"""

from __future__ import annotations

import contextlib
import glob
import ipaddress
import json
import os
import re
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import nccl_question
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.job_process import JobProcess
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.names import canonical
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.paths import ENVIRONMENT
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl.library import LIBRARY, version_of

#: A library that is not in the memory yet is read from the disk, 0.2 GB; after that it takes 0.1 s.
SECONDS = 3
#: The log on standard output, whatever /etc/nccl.conf says. BOOTSTRAP is a subsystem of newer releases only.
LOG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,NET,ENV", "NCCL_DEBUG_FILE": ""}
LOADER_CACHE = "/etc/ld.so.cache"
LOADER_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
#: ``sockaddr_in`` and ``sockaddr_in6`` begin after the random number: family, port, and then the address.
FAMILY_AT = 8
ADDRESS_AT = {socket.AF_INET: (12, 4), socket.AF_INET6: (16, 16)}

#: "Bootstrap : Using eth0:192.0.2.2<0>" in 2.16 and 2.21, without the blank in 2.26 and later. 2.4 numbered the names:
#: "Using [0]eth0:".
_USING = re.compile(r"NCCL INFO Bootstrap ?: Using (?:\[\d+\])?(?P<both>\S+?)<\d+>")
_WARN = re.compile(r"NCCL WARN (?P<text>\S.*)")

ERR_NO_ADDRESS = "it found no interface, and says nothing about that"
ERR_ANSWER = "it said something else: %s"
ERR_LOAD = "it cannot be loaded: %s"


def of_torch(torch_python: str) -> list[str]:
    """The libraries in the environment of this Python: that of the wheel, which torch takes, and that of conda."""
    if not torch_python:
        return []
    prefix = os.path.dirname(os.path.dirname(torch_python))
    wheels = glob.glob(f"{glob.escape(prefix)}/lib*/python3*/site-packages/nvidia/nccl/lib/{LIBRARY}")
    return [path for path in (*sorted(wheels), f"{prefix}/lib/{LIBRARY}") if os.path.exists(path)]


def of_system(environment: Mapping[str, str]) -> list[str]:
    """The library's name alone, where the loader would find one."""
    folders = [*environment.get("LD_LIBRARY_PATH", "").split(":"), *LOADER_FOLDERS]
    cached = b""
    with contextlib.suppress(OSError), open(LOADER_CACHE, "rb") as stream:
        cached = stream.read()
    there = LIBRARY.encode() in cached or any(os.path.exists(f"{one}/{LIBRARY}") for one in folders if one)
    return [LIBRARY] if there else []


def variables(text: str) -> dict[str, str]:
    """What the launcher's file gives to jobs: NAME=value, the value as it stands."""
    lines = [line for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#")]
    return {name.strip(): value for name, _equals, value in (line.partition("=") for line in lines)}


class Question(JobProcess):
    """Asked from its making on; ``answer`` waits for it, but not longer than ``SECONDS`` since then."""

    def __init__(self, torch_python: str, user: str, environment_file: str, seconds: int = SECONDS) -> None:
        """environment_file: the text of the launcher's file, empty without one.  user: empty for this one."""
        super().__init__(seconds)
        given = variables(environment_file)
        self.libraries = of_torch(torch_python) or of_system(given)
        if self.libraries:
            arguments = [str(seconds), *self.libraries]
            paths = [one for one in self.libraries if one.startswith("/")]
            self.start(payload.source(nccl_question), arguments, user, {**given, **LOG}, paths)

    def answer(self) -> dict[str, Any]:
        """``library``, ``version``, ``interface``, ``address``, ``error``, ``settings`` and ``why``.

        All are empty where there is no library.  error: why NCCL found no interface, in its own words.  settings: name
        to ``value`` and ``source``, a path.  why: a library is there, and why it could not be asked.
        """
        out = self.output()
        if self.process is None or self.why:
            return nothing(self.libraries[:1], self.why)
        return parse(out, self.libraries[:1])


def nothing(library: Sequence[str], why: str) -> dict[str, Any]:
    """The answer of a node whose NCCL said nothing."""
    empty = {"version": "", "interface": "", "address": "", "error": "", "settings": {}}
    return {"library": "".join(library), **empty, "why": why}


def parse(text: str, library: Sequence[str] = ()) -> dict[str, Any]:
    """The answer, out of what the program and NCCL wrote.  library: what it was told to load."""
    lines = text.strip().splitlines()
    said: Any = None
    with contextlib.suppress(ValueError):
        said = json.loads(next((line for line in reversed(lines) if line.startswith("{")), ""))
    if not isinstance(said, dict):
        return nothing(library, ERR_ANSWER % (lines[-1][:200] if lines else "nothing"))
    if not said["library"]:
        return nothing(library, ERR_LOAD % "; ".join(said["errors"]))
    interface, address = chosen(address_in(bytes.fromhex(said["id"])) if said["result"] == 0 else "", lines)
    error = ""
    if said["result"] != 0:
        warnings = [match.group("text").strip() for match in map(_WARN.search, lines) if match]
        # An older release complains about the driver first.
        error = warnings[-1] if warnings else f"ncclGetUniqueId() returned {said['result']}"
    elif not address:
        # Releases that do not look whether there is one; the first connection then fails with "connecting to address
        # with family 59936" (github.com/NVIDIA/nccl/issues/1837).
        error = ERR_NO_ADDRESS
    settings = {
        name: {"value": one["value"], "source": ENVIRONMENT if one["source"] == nccl_question.JOB else one["source"]}
        for name, one in said["settings"].items()
    }
    return {
        "library": said["library"],
        "version": version_of(said["code"]),
        "interface": interface,
        "address": address,
        "error": error,
        "settings": settings,
        "why": "",
    }


def address_in(handle: bytes) -> str:
    """The address in the answer of ncclGetUniqueId, empty when it holds none."""
    if len(handle) < FAMILY_AT + 2:
        return ""
    (family,) = struct.unpack_from("=H", handle, FAMILY_AT)
    start, length = ADDRESS_AT.get(family, (0, 0))
    packed = handle[start : start + length]
    return str(ipaddress.ip_address(packed)) if length and len(packed) == length else ""


def chosen(address: str, lines: Iterable[str]) -> tuple[str, str]:
    """Interface and address: what the log says, else the address of the answer without a name."""
    said = [match.group("both") for match in map(_USING.search, lines) if match]
    return (split(said[-1]) if said else None) or ("", address)


def split(both: str) -> tuple[str, str] | None:
    """``eth0:192.0.2.2`` or ``eth0:fd00::2`` to its two parts; the label of an address may hold a colon too."""
    places = [number for number, sign in enumerate(both) if sign == ":"]
    for place in places:
        with contextlib.suppress(ValueError):
            return both[:place], canonical(both[place + 1 :])
    return None
