# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How names and addresses of hosts are spelled.  Pure."""

from __future__ import annotations

import ipaddress


def canonical(text: str) -> str:
    """An address without its zone, in its usual spelling."""
    return str(ipaddress.ip_address(text.partition("%")[0]))


def is_address(text: str) -> bool:
    """Whether this is an address, in any spelling, and no name."""
    try:
        canonical(text)
    except ValueError:
        return False
    return True


def spelled(name: str) -> str:
    """A name as it is, an address in its usual spelling: both may be met in one table."""
    return canonical(name) if is_address(name) else name


def without_domain(name: str) -> str:
    """A host name without its domain; an address has none."""
    return name if is_address(name) else name.partition(".")[0]
