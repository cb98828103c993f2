# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that findings give: to repair, and to see the same again.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

#: The name of the folder or file is not known here.
INVENTORY = "-i <inventory>"
#: A list of more hosts makes a line that nobody reads; the command is for all members then.
LISTED = 12


def _limit(hosts: Sequence[str]) -> str:
    return f" --limit {','.join(hosts)}" if 0 < len(hosts) <= LISTED else ""


def site(tag: str, hosts: Sequence[str] = ()) -> str:
    """One role of the site playbook, on these hosts."""
    return f"ansible-playbook site.yml {INVENTORY} --tags {tag}{_limit(hosts)}"


def check(hosts: Sequence[str] = ()) -> str:
    """The check, on these hosts."""
    return f"ansible-playbook baremetal.gpu_cluster.check {INVENTORY}{_limit(hosts)}"
