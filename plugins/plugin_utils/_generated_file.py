# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first line of a file that a playbook has written, by which a later one sees whether anybody has edited it."""

from __future__ import annotations

import hashlib
import re

_MARK = re.compile(r"# Written by [\w.]+\. Unedited while the rest has the sha256 ([0-9a-f]{64})\.\n")


def mark(text: str, by: str) -> str:
    """Put the mark before a text; ``by`` is the name of the playbook."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"# Written by {by}. Unedited while the rest has the sha256 {digest}.\n{text}"


def is_unedited(text: str) -> bool:
    """Whether a text is as ``mark`` has made it."""
    found = _MARK.match(text)
    return found is not None and hashlib.sha256(text[found.end() :].encode()).hexdigest() == found.group(1)
