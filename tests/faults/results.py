# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fault tests measured, kept for the table in docs/faults.md (tools/fault_table.py)."""

from __future__ import annotations

import json

import fault_table

FILE = fault_table.RESULTS


def record(fault: str, who: str, seconds: float, text: str) -> None:
    """Keep one result. who: ``we`` or ``torch``; text: what it said, in one line."""
    assert fault in fault_table.TITLES, f"{fault} has no row in the table"
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    found.setdefault(fault, {})[who] = {"seconds": round(seconds, 1), "text": " ".join(text.split())}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
