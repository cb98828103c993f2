# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wheels that a test makes up: a torch that computes nothing, and packages that it needs. Also a program for a node.

Run on a node: python3 -c "$(cat lab_wheels.py)" FOLDER '[{"name": "torch", "version": "2.13.0+lab"}, ...]'
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

#: While this file is there, to import the stand-in takes a minute.
SLOW = "/run/lab-torch-slow"
TORCH = """\
import os, time

__version__ = "{version}"
if os.path.exists("{slow}"):
    time.sleep(60)


class version:
    cuda = None
"""
DISTRIBUTED = """\
def is_available():
    return True


def is_gloo_available():
    return True


def is_nccl_available():
    return False
"""


def content(name: str, version: str) -> dict[str, str]:
    """The modules of a package."""
    if name != "torch":
        return {f"{name}/__init__.py": f'__version__ = "{version}"\n'}
    torch = TORCH.format(version=version, slow=SLOW)
    return {"torch/__init__.py": torch, "torch/distributed/__init__.py": DISTRIBUTED}


def write(folder: Path, name: str, version: str, requires: tuple[str, ...] = (), many: int = 0, note: str = "") -> str:
    """One wheel, the same bytes every time; ``many`` further files make it slow to install. Returns its lock entry."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
    files = {
        **content(name, version),
        **{f"{name}/data/{number}.txt": note for number in range(many)},
        f"{name}/note.txt": note,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    record = []
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record.append(f"{file},sha256={digest},{len(text)}\n")
            wheel.writestr(zipfile.ZipInfo(file), text)
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "".join([*record, f"{info}/RECORD,,\n"]))
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def main(folder: str, wheels: list[dict[str, Any]]) -> None:
    """Write them, and print the lock of all."""
    print("".join(write(Path(folder), **wheel) for wheel in wheels), end="")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
