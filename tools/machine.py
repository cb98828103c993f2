# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of this machine that no test on its nodes may change: sysctl, firewall, names and routes of interfaces.

The nodes share this machine's kernel, so a role that reached past its node would show here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

PROC_SYS = Path("/proc/sys")
#: Counters and random numbers of the kernel, which nobody sets.
LIVE = re.compile(
    r"^(fs/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota/.*|mqueue/.*_nr|binfmt_misc/.*)"
    r"|kernel/(ns_last_pid|random/.*|pty/nr|tainted|sched_.*|perf_event_max_sample_rate|keys/.*)"
    r"|net/netfilter/nf_conntrack_count|net/core/netdev_rss_key|vm/stat_refresh)$"
)
COMMANDS = {
    "nftables": ("nft", "--json", "--stateless", "list", "ruleset"),
    "iptables": ("iptables-save",),
    "ip6tables": ("ip6tables-save",),
    "IPv4 rules": ("ip", "-4", "rule"),
    "IPv6 rules": ("ip", "-6", "rule"),
    "IPv4 routes": ("ip", "-4", "route", "show", "table", "all"),
    "links": ("ip", "-br", "link"),
}


def kernel_settings(root: Path = PROC_SYS) -> Iterator[tuple[str, str]]:
    """Every readable value below ``root``, by its path there."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if LIVE.match(name) or not path.is_file():
            continue
        try:
            yield f"sysctl {name}", path.read_text(errors="replace").strip()
        except OSError:
            continue


def _printed(argv: tuple[str, ...]) -> str:
    """What a command says, without what it counts and dates; empty where there is no such command."""
    if shutil.which(argv[0]) is None:
        return ""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return without_noise(done.stdout)


def without_noise(text: str) -> str:
    """A firewall's rules without comments, counters and handles."""
    if text.startswith("{"):
        entries = [entry for entry in json.loads(text).get("nftables", []) if "metainfo" not in entry]
        text = "\n".join(re.sub(r'"handle": \d+,? ?', "", json.dumps(entry)) for entry in entries)
    lines = (re.sub(r"\[\d+:\d+\]", "", line).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("#"))


def settings(printed: Callable[[tuple[str, ...]], str] = _printed) -> dict[str, str]:
    """All of it, by name."""
    return {**dict(kernel_settings()), **{name: printed(argv) for name, argv in COMMANDS.items()}}


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What changed or went, one line each. Keys that a loaded kernel module brings along are no change of a setting."""
    return [
        f"{name}: was {before[name]!r}, is {after.get(name)!r}" for name in before if after.get(name) != before[name]
    ]
