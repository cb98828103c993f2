# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ifcfg files of the time before keyfiles, which NetworkManager of EL9 still reads: which ones are whose. Pure."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

FOLDER = "/etc/sysconfig/network-scripts"
#: Files beside ifcfg-<name> that say more about the same profile.
COMPANIONS = ("route-", "route6-", "rule-", "rule6-", "keys-")
#: Read; keys-* holds secrets, so only its name is looked at.
PATTERNS = tuple(f"{FOLDER}/{prefix}*" for prefix in ("ifcfg-", "route-", "route6-", "rule-", "rule6-"))
LISTED = (f"{FOLDER}/keys-*",)
#: What editors and rpm leave behind; NetworkManager passes over it.
_IGNORED = re.compile(r"(~|\.(bak|orig|rej|rpmnew|rpmsave|rpmorig|swp|tmp|augnew|augtmp))$", re.IGNORECASE)


def parse(text: str) -> dict[str, str]:
    """The assignments of a file in shell syntax, without quotes and comments; what is no assignment is passed over."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            # An open quote.
            continue
        name, sign, value = (words or [""])[0].partition("=")
        if sign:
            found[name] = value
    return found


def belonging(files: Mapping[str, str], name: str, mac: str) -> list[str]:
    """The paths, sorted, that configure the interface with this name and hardware address (lower case, may be empty).

    DEVICE decides; without it HWADDR does, and without both the name of the file. Aliases (``eth0:1``) belong to their
    interface.
    """
    found: list[str] = []
    for path, text in files.items():
        prefix, _dash, suffix = os.path.basename(path).partition("-")
        if os.path.dirname(path) != FOLDER or prefix != "ifcfg" or _IGNORED.search(path):
            continue
        values = parse(text)
        device, hardware = values.get("DEVICE", ""), values.get("HWADDR", "").lower()
        if device:
            ours = device.partition(":")[0] == name
        elif hardware:
            ours = hardware == mac
        else:
            ours = suffix.partition(":")[0] == name
        if ours:
            companions = [os.path.join(FOLDER, companion + suffix) for companion in COMPANIONS]
            found += [path, *(companion for companion in companions if companion in files)]
    return sorted(found)
