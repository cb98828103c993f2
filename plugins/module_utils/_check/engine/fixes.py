# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that findings give: to repair, to look, and to see the same again.  Pure.

No other file writes such a command, so that each has the inventory and can be pasted.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

#: Where the report is made, the action puts in what the run was called with.
INVENTORY = "-i <inventory>"
#: A list of more hosts makes a line that nobody reads; the command is for all members then.
LISTED = 12
#: Signs that mean something to a shell between double quotes.
UNSAFE = ('"', "$", "`", "\\", "!", "\n")


def inventory(sources: Sequence[str], folder: str) -> str:
    """The options for these inventories, as one types them in this folder; ``INVENTORY`` where there is none."""
    return " ".join(f"-i {shlex.quote(below(source, folder))}" for source in sources) or INVENTORY


def below(path: str, folder: str) -> str:
    """A path as one types it in this folder."""
    short = os.path.relpath(path, folder) if os.path.isabs(path) else path
    return path if short.startswith("..") else short


def _limit(hosts: Sequence[str]) -> str:
    return f" --limit {','.join(hosts)}" if 0 < len(hosts) <= LISTED else ""


def site(tags: str, hosts: Sequence[str] = ()) -> str:
    """Roles of the site playbook, by their tags (``nccl,openmpi``), on these hosts."""
    return f"ansible-playbook site.yml {INVENTORY} --tags {tags}{_limit(hosts)}"


def check(hosts: Sequence[str] = (), *, only_look: bool = False) -> str:
    """The check, on these hosts.  only_look: check mode, which runs the static stage and measures nothing."""
    mode = " --check" if only_look else ""
    return f"ansible-playbook baremetal.gpu_cluster.check {INVENTORY}{mode}{_limit(hosts)}"


def look(hosts: Sequence[str], command: str) -> str:
    """A command on each of these hosts, as root, that changes nothing; it must hold no double quotes."""
    return f'ansible {",".join(hosts)} {INVENTORY} --become -m ansible.builtin.command -a "{command}"'


def run(hosts: Sequence[str], command: str) -> str:
    """A command line of the shell that mends these hosts, as root; empty where it cannot be written for a person.

    Nothing of it may be taken by the person's own shell, or by Ansible as a template: it may come from a node's words.
    """
    if not hosts or not command or any(sign in command for sign in UNSAFE) or "{{" in command or "{%" in command:
        return ""
    return f'ansible {",".join(hosts)} {INVENTORY} --become -m ansible.builtin.shell -a "{command}"'


def without_variable(path: str, names: Sequence[str]) -> str:
    """What takes the lines of these variables out of a file that pam_env(8) reads."""
    lines = " ".join(f"-e '/^[[:space:]]*(export[[:space:]]+)?{name}[[:space:]]*=/d'" for name in names)
    return f"sed -i -E {lines} {path}"


def at(hosts: Sequence[str], command: str) -> str:
    """A command of the tables of texts, for these hosts: what is for the node itself is run there."""
    return command if command.startswith("ansible") else run(hosts, command)


def without_override(variable: str) -> str:
    """A step of a fix, for a variable of a role that an inventory can set in place of what the port plan hands over.

    Never its value: an inventory that repeats the plan contradicts the next one.
    """
    return f"where the inventory sets {variable}, remove that first: it replaces what gpu_cluster_ports says"


def ping(hosts: Sequence[str]) -> str:
    """Whether these hosts answer Ansible at all."""
    return f"ansible {','.join(hosts)} {INVENTORY} -m ping"
