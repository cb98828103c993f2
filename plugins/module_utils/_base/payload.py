# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources of a program and of everything of this collection that it imports, wherever it was imported from itself:
a checkout, a collection, the archive of a module, or what another node was sent.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

COLLECTION = "ansible_collections.baremetal.gpu_cluster.plugins."
#: An import of something of this collection: its module, and the names in parentheses or in the rest of the line.  To
#: find those of a worker takes a node 2 ms, and 45 ms in syntax trees.
IMPORT = re.compile(rf"^[ \t]*from ({re.escape(COLLECTION)}[\w.]+) import (?:\(([^)]*)\)|(.+))", re.MULTILINE)
WORD = re.compile(r"\w+")


def source(module: ModuleType) -> str:
    """The text of a module."""
    loader = module.__spec__.loader if module.__spec__ else None
    found = loader.get_source(module.__name__)  # type: ignore[union-attr]
    if not found:
        raise ImportError(f"the source of {module.__name__} is not to be had")
    return found.decode("utf-8") if isinstance(found, bytes) else str(found)


def needed(programs: Sequence[ModuleType]) -> dict[str, str]:
    """Name to source, of these modules and of those that they import."""
    found: dict[str, str] = {}
    waiting = list(programs)
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found:
            found[module.__name__] = source(module)
            waiting += _imported(found[module.__name__])
    return dict(sorted(found.items()))


def _imported(text: str) -> Iterator[ModuleType]:
    for module, in_parentheses, in_line in IMPORT.findall(text):
        for name in [module, *(f"{module}.{word}" for word in WORD.findall(in_parentheses or in_line))]:
            # What is taken out of a module is no module, and packages hold no code.
            if name in sys.modules and not hasattr(sys.modules[name], "__path__"):
                yield sys.modules[name]
