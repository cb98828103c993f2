# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd unit of a mount: its name, its text. Pure.

Why units and not /etc/fstab: each is a whole file of ours, and a mount that hangs is ended after ``TimeoutSec``.
The form: systemd.mount(5). A node boots without the storage (``WantedBy``, not ``RequiredBy``).
"""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.spec import Mount

FOLDER = "/etc/systemd/system"
OURS = "# Managed by Ansible, role shared_storage of baremetal.gpu_cluster."
_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_."

_TEXT = """\
{ours} Changes are lost.
[Unit]
Description=Shared storage at {path}
{after}
[Mount]
What={source}
Where={path}
Type={type}
{options}TimeoutSec={seconds}

[Install]
WantedBy={target}
"""
_DECIDING = ("What=", "Type=", "Options=")
NEEDS_NETWORK = "Wants=network-online.target"
_AFTER = f"After=network-online.target\n{NEEDS_NETWORK}\n"


def unit_name(path: str) -> str:
    """The name that systemd wants for a path ("String Escaping" in systemd.unit(5))."""
    escaped = ""
    for index, byte in enumerate(path.strip("/").encode()):
        sign = chr(byte)
        if sign == "/":
            escaped += "-"
        elif sign in _PLAIN and not (index == 0 and sign == "."):
            escaped += sign
        else:
            escaped += f"\\x{byte:02x}"
    return escaped + ".mount"


def mounts_the_same(before: str, after: str) -> bool:
    """Whether two texts of a unit mount the same in the same way; another deadline needs no unmounting."""
    ours, theirs = ([line for line in text.splitlines() if line.startswith(_DECIDING)] for text in (before, after))
    return ours == theirs


def target(mount: Mount) -> str:
    """What wants it at boot."""
    return "remote-fs.target" if mount.needs_network() else "local-fs.target"


def unit_text(mount: Mount, seconds: int) -> str:
    """The unit. ``_netdev`` lets systemd unmount before the network goes, also for types that it does not know."""
    remote = mount.needs_network()
    options = [one for one in mount.options.split(",") if one]
    if remote and "_netdev" not in options:
        options.append("_netdev")
    return _TEXT.format(
        ours=OURS,
        path=mount.path,
        source=mount.source,
        type=mount.type,
        after=_AFTER if remote else "",
        options=f"Options={','.join(options)}\n" if options else "",
        seconds=seconds,
        target=target(mount),
    )
