# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a value has the shape that others rely on: tests of single values, and how to make tests of larger ones.

What the user of the ranks could have written is tested before anybody works with it.  Standard library only; it is
part of the payload.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

Test = Callable[[Any], bool]
#: More than any counter or time; what is calculated from a number below it fits into a float.
MOST = 2**63


def text(value: Any) -> bool:
    """Whether it is text."""
    return isinstance(value, str)


def flag(value: Any) -> bool:
    """Whether it is true or false."""
    return isinstance(value, bool)


def number(value: Any) -> bool:
    """Whether it is a time, a rate or a count: neither negative nor infinite, and not NaN."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MOST


def positive(value: Any) -> bool:
    """Whether it is such a number and above 0, so that others can divide by it."""
    return number(value) and value > 0


def integer(value: Any) -> bool:
    """Whether it is a whole number, which may be negative."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST


def count(value: Any) -> bool:
    """Whether it is a whole number, 0 or more."""
    return integer(value) and value >= 0


def port(value: Any) -> bool:
    """Whether it is the number of a port."""
    return integer(value) and 1 <= value <= 65535


def address(value: Any) -> bool:
    """Whether it is the text of an address."""
    try:
        return isinstance(value, str) and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def optional(test: Test) -> Test:
    """None too."""
    return lambda value: value is None or test(value)


def one_of(*tests: Test) -> Test:
    """What one of the tests takes."""
    return lambda value: any(test(value) for test in tests)


def each(test: Test) -> Test:
    """A list of such values."""
    return lambda value: isinstance(value, list) and all(test(one) for one in value)


def record(always: Mapping[str, Test], more: Mapping[str, Test] | None = None) -> Test:
    """A dictionary with all of these keys, and none but ``more`` besides."""
    tests = {**always, **(more or {})}
    return lambda value: (
        isinstance(value, dict)
        and always.keys() <= value.keys() <= tests.keys()
        and all(tests[name](one) for name, one in value.items())
    )
