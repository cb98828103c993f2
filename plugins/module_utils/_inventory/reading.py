# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading one host's variables out of ``hostvars``. The only part of the package that meets Ansible's lazy values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable

_TEMPLATE_MARKS = ("{{", "{%")


class _LeftoverError(Exception):
    """An expression that ansible-core before 2.19 left as it was because something in it is undefined."""


def _plain(value: Any) -> Any:
    """A value without laziness: everything inside it is evaluated, and raises now what it would raise later."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    # ansible-core 2.19 hands an undefined value over as an object that raises when it is used.
    repr(value)
    if isinstance(value, str) and any(mark in value for mark in _TEMPLATE_MARKS):
        raise _LeftoverError(f"{value} refers to something undefined")
    return value


def read_variables(hostvars: Mapping[str, Any], host: str, wanted: Callable[[str], bool]) -> dict[str, Any]:
    """The wanted variables of one host, templated; what cannot be templated becomes ``Unreadable``."""
    own = hostvars[host]
    result: dict[str, Any] = {}
    for name in list(own):
        if not wanted(str(name)):
            continue
        try:
            result[str(name)] = _plain(own[name])
        except Exception as error:  # pylint: disable=broad-except  # templating raises whatever a lookup or filter does
            result[str(name)] = Unreadable(" ".join(str(error).split()) or type(error).__name__)
    return result
