# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a wheel that is called torch and computes nothing: to install the real one takes an emulated processor minutes.

It has what an environment's files are labelled by: a program, a module and a library's name.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

VERSION = "2.13.0"
INFO = f"torch-{VERSION}.dist-info"
FILES = {
    "torch/__init__.py": f'__version__ = "{VERSION}"\n\n\nclass version:\n    cuda = None\n',
    "torch/distributed/__init__.py": (
        "def is_available():\n    return True\n\n\n"
        "def is_gloo_available():\n    return False\n\n\n"
        "def is_nccl_available():\n    return False\n"
    ),
    "torch/lib/libtorch_cpu.so": "",
    f"{INFO}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
    f"{INFO}/entry_points.txt": "[console_scripts]\ntorchrun = torch:print\n",
}


def write(folder: Path) -> None:
    """The wheel, below this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    with zipfile.ZipFile(folder / f"torch-{VERSION}-py3-none-any.whl", "w") as wheel:
        for name, text in FILES.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(text)}\n")
            wheel.writestr(name, text)
        wheel.writestr(f"{INFO}/RECORD", "".join([*lines, f"{INFO}/RECORD,,\n"]))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
