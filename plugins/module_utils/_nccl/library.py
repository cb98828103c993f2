# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NCCL library that the dynamic loader finds: asked for its version, and compared with its package. Pure.

A program that is linked with NCCL takes what the loader finds first. A copy in /usr/local/lib, or one that an archive
has unpacked over the package's, wins without a word.
"""

from __future__ import annotations

import json
from typing import NamedTuple

LIBRARY = "libnccl.so.2"
PACKAGE = "libnccl"
#: Loads the library by its name alone, as programs do, asks it, and says from where it came. One line of JSON.
PROGRAM = """\
import ctypes, json, sys
name = sys.argv[1]
try:
    version = ctypes.c_int()
    result = ctypes.CDLL(name).ncclGetVersion(ctypes.byref(version))
    with open("/proc/self/maps") as maps:
        paths = [line.split(None, 5)[5].strip() for line in maps if len(line.split(None, 5)) == 6]
    path = next(one for one in paths if name.rpartition(".so")[0] + ".so" in one.rpartition("/")[2])
    print(json.dumps({"path": path, "result": result, "code": version.value}))
except (OSError, AttributeError) as error:
    print(json.dumps({"error": str(error)}))
"""

ERR_NOT_LOADED = "the loader cannot load " + LIBRARY + ": %s"
ERR_ANSWER = "ncclGetVersion() of %s failed with %s"
ERR_OWNER = (
    "programs get %s, which says it is NCCL %s and belongs to %s, instead of the library of the package %s; the loader "
    "knows: %s"
)
ERR_VERSION = "%s says it is NCCL %s, and its package is %s: the file was replaced"
ERR_WANTED = "%s is NCCL %s, and wanted is %s"


class Found(NamedTuple):
    """What the loader found."""

    path: str = ""
    version: str = ""
    error: str = ""


def program(python: str) -> list[str]:
    """Ask the library, in a process of its own without the session's settings for the loader."""
    return ["/usr/bin/env", "-u", "LD_LIBRARY_PATH", "-u", "LD_PRELOAD", python, "-I", "-c", PROGRAM, LIBRARY]


def parse(text: str) -> Found:
    """Read the answer."""
    answer = json.loads(text.splitlines()[-1])
    if "error" in answer:
        return Found(error=ERR_NOT_LOADED % answer["error"])
    if answer["result"] != 0:
        return Found(error=ERR_ANSWER % (answer["path"], answer["result"]))
    return Found(str(answer["path"]), version_of(int(answer["code"])))


def version_of(code: int) -> str:
    """2.28.9 for 22809, and 2.8.4 for 2804: NCCL_VERSION in github.com/NVIDIA/nccl src/nccl.h.in."""
    major, rest = divmod(code, 10000 if code >= 10000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def owner_command(path: str) -> list[str]:
    """Ask rpm for the package of a file."""
    return ["rpm", "-qf", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE}\\n", path]


def cached(listing: str) -> list[str]:
    """The copies of the library that ``ldconfig -p`` lists, first the one that wins."""
    lines = [line.strip() for line in listing.splitlines()]
    return [line.rpartition("=> ")[2] for line in lines if line.split(" ", 1)[0] == LIBRARY]


def problems(found: Found, owner: str, copies: list[str], wanted: str) -> list[str]:
    """Why programs do not get the wanted version. ``owner`` is ``NAME VERSION-RELEASE``, empty without a package."""
    if found.error:
        return [found.error]
    name, _blank, package = owner.partition(" ")
    if name != PACKAGE:
        who = f"the package {name}-{package}" if name else "no package"
        return [ERR_OWNER % (found.path, found.version, who, PACKAGE, ", ".join(copies) or "nothing")]
    if package.partition("-")[0] != found.version:
        return [ERR_VERSION % (found.path, found.version, package)]
    return [] if found.version == wanted else [ERR_WANTED % (found.path, found.version, wanted)]
