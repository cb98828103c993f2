# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the check as one file that needs no Ansible: dist/gpu-cluster-check.pyz.

It holds the program and what it imports of the collection, found as the programs that are sent to nodes find theirs,
and the files of the collection that the reports show: the pages of findings, and the version.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from pathlib import Path

import project
import yaml

sys.path.insert(0, str(project.COLLECTIONS))

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import main as program

FILE = "gpu-cluster-check.pyz"
SHEBANG = b"#!/usr/bin/env python3\n"
#: Where the collection is in the archive, and the files of it that are no code (own_files.py).
COLLECTION = "ansible_collections/baremetal/gpu_cluster"
DATA = ("galaxy.yml", "docs/findings/GC-*.md")
#: In words that an older Python understands, or nobody would learn what it lacks.
MAIN = """\
import sys

if sys.version_info < (3, 9):
    sys.stderr.write("gpu-cluster-check: Python is %d.%d, expected 3.9 or newer\\n" % sys.version_info[:2])
    sys.exit(2)

from {module} import main

sys.exit(main(sys.argv[1:], "{version}"))
"""
#: The same file from the same sources.
DATE = (2026, 1, 1, 0, 0, 0)


def version() -> str:
    """That of the collection."""
    return str(yaml.safe_load((project.ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"])


def contents() -> dict[str, str]:
    """Path in the archive to text; a package without code is an empty file."""
    sources = payload.needed([program])
    packages = {name.rsplit(".", depth)[0] for name in sources for depth in range(1, name.count(".") + 1)}
    return {
        **{f"{name.replace('.', '/')}/__init__.py": "" for name in sorted(packages)},
        **{f"{name.replace('.', '/')}.py": text for name, text in sources.items()},
        **{
            f"{COLLECTION}/{path.relative_to(project.ROOT)}": path.read_text(encoding="utf-8")
            for pattern in DATA
            for path in sorted(project.ROOT.glob(pattern))
        },
        "__main__.py": MAIN.format(module=program.__name__, version=version()),
        "LICENSE": (project.ROOT / "LICENSE").read_text(encoding="utf-8"),
    }


def build(folder: Path) -> Path:
    """Write the file, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    with open(path, "wb") as stream:
        stream.write(SHEBANG)
        with zipfile.ZipFile(stream, "w") as archive:
            for name, text in contents().items():
                archive.writestr(zipfile.ZipInfo(name, DATE), text, zipfile.ZIP_DEFLATED, 9)
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, nargs="?", default=project.ROOT / "dist")
    print(f"Built {build(parser.parse_args().folder)}")
