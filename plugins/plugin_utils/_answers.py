# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an action passes on of a node's answer: the keys of its module and nothing else.

Root of a node decides what its modules print.  A key that nobody expects, such as a fact with the name of a variable
of the inventory, is not passed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: Keys that Ansible itself reads of the answer of any module, and those that a person needs when a module fails.
OF_ANSIBLE = (
    *("changed", "failed", "skipped", "msg", "exception", "warnings", "deprecations", "diff", "invocation"),
    *("rc", "module_stdout", "module_stderr"),
)
#: Set by Ansible on the controller; it removes the key from what a module prints.
PYTHON = "discovered_interpreter_python"


def listed(answer: Mapping[str, Any], keys: Iterable[str], facts: Iterable[str] = ()) -> dict[str, Any]:
    """The answer, only with these keys and facts."""
    found = {key: answer[key] for key in (*OF_ANSIBLE, *keys) if key in answer}
    given = answer.get("ansible_facts")
    kept = {name: given[name] for name in (PYTHON, *facts) if name in given} if isinstance(given, Mapping) else {}
    return {**found, "ansible_facts": kept} if kept else found
