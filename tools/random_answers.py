# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node that lies could answer, for tests: a true answer with some of its parts changed by lot."""

from __future__ import annotations

import copy
import json
import os
import random
from typing import Any

#: How many draws there are for each one of `make test`: the long tests ask for more.
TIMES = int(os.environ.get("SWEEP_TIMES") or 1)

#: Values by lot in place of one of the same kind, and of any.
NUMBERS: list[Any] = [0, 1, 2, 4, 7, -1, 0.0, 5e-324, 1e-9, 0.5, 2**31, 2**62, 2**63 - 1, 10**400, 1e308, float("nan")]
TEXTS: list[Any] = ["", "x", "n2", "\x1b[2J", "a\nPASSED: all", "\ud800", "\u202e", "%s {0} {{ x }}", "1" * 5000]
OTHERS: list[Any] = [None, True, False, [], {}, [[]], {"event": "done", "at": 1.0}]


def place(value: Any, chance: random.Random) -> tuple[Any, Any]:
    """A part of a value, as what holds it and its key there: small parts are as likely as large ones."""
    while True:
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        below = value[key]
        if not (isinstance(below, (dict, list)) and below) or chance.random() < 0.1:
            return value, key
        value = below


def spoiled(value: Any, chance: random.Random) -> Any:
    """The value with some of its parts replaced, removed or repeated by lot, as JSON hands it over."""
    for _change in range(chance.randint(0, 4)):
        holder, key = place(value, chance)
        way = chance.random()
        if way < 0.1:
            del holder[key]
        elif way < 0.2 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            old = holder[key]
            alike = TEXTS if isinstance(old, str) else NUMBERS if isinstance(old, (int, float)) else OTHERS
            # A copy: the next change may be inside of it.
            holder[key] = copy.deepcopy(chance.choice(alike if way < 0.9 else [*NUMBERS, *TEXTS, *OTHERS]))
        if not value:
            break
    return json.loads(json.dumps(value))
