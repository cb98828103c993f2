# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of this collection that are no code, read on the controller.

They are read through the loader of this module, so they are found in a checkout, in an installed collection, and in
the program that is one file.  Programs on nodes have none of them.
"""

from __future__ import annotations

import json
import os
import re
import sys

#: From this file up to the folder of the collection: _base, module_utils, plugins.
ROOT = os.path.abspath(__file__).rsplit(os.sep, 4)[0]
MANIFEST, SOURCE = "MANIFEST.json", "galaxy.yml"
_VERSION = re.compile(r"^version:\s*[\"']?([\w.+-]+)", re.MULTILINE)


def text(path: str) -> str | None:
    """The text of a file, None where it is missing.  path: below the folder of the collection, never from a user."""
    spec = sys.modules[__name__].__spec__
    try:
        found = spec.loader.get_data(os.path.join(ROOT, *path.split("/")))  # type: ignore[union-attr]
        return found.decode("utf-8") if found is not None else None
    except (OSError, UnicodeDecodeError):
        return None


def version() -> str:
    """The version of the collection; empty where no file has it."""
    try:
        return str(json.loads(text(MANIFEST) or "")["collection_info"]["version"])
    except (ValueError, KeyError, TypeError):
        found = _VERSION.search(text(SOURCE) or "")
        return found.group(1) if found else ""
