# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of what a worker has found about the start of a rank that failed.  Standard library only."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape

#: What decides which code a rank begins with.
VARIABLES = ("PYTHONHOME", "PYTHONPATH", "LD_PRELOAD", "LD_LIBRARY_PATH")
MOST_CHARACTERS, MOST_SHADOWS = 400, 100


def _words(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_CHARACTERS


def _few(test: shape.Test) -> shape.Test:
    return lambda value: shape.each(test)(value) and len(value) <= MOST_SHADOWS


#: source: the file that sets the variable, or empty.  shadows: modules in PYTHONPATH with the name of one of Python's
#: own or of one that torch needs.
START = shape.record(
    {
        "variables": _few(
            shape.record({"name": lambda name: name in VARIABLES, "value": _words, "source": _words}),
        ),
        "shadows": _few(shape.record({"module": _words, "path": _words})),
    }
)
