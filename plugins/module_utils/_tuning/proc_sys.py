# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running values of kernel parameters, read and written behind /proc/sys."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import kernel, values


class ProcSys:
    """The running kernel behind ``/proc/sys``."""

    @staticmethod
    def _path(key: str) -> str:
        return os.path.join("/proc/sys", values.path_of(key))

    def read(self, key: str) -> str | None:
        """The running value, or None when there is no such key."""
        try:
            with open(self._path(key), encoding="ascii", errors="replace") as stream:
                return stream.read().strip()
        except OSError:
            return None

    def refusal(self, key: str) -> str:
        """Why the key cannot be written: found by writing what it already holds."""
        value = self.read(key)
        return self.write(key, value) if value is not None else kernel.ERR_NO_SUCH_KEY

    def write(self, key: str, value: str) -> str:
        """Set the running value; the reason when it was refused, else empty."""
        try:
            with open(self._path(key), "w", encoding="ascii") as stream:
                stream.write(value + "\n")
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def keys(self) -> Iterator[str]:
        """All keys of the network, for a hint about a mistyped one."""
        for folder, _folders, names in os.walk("/proc/sys/net"):
            for name in names:
                yield values.key_of(os.path.relpath(os.path.join(folder, name), "/proc/sys"))

    def congestion_controls(self) -> tuple[list[str], list[str]]:
        """Those that the kernel has, and those that it can load as modules."""
        available = (self.read("net.ipv4.tcp_available_congestion_control") or "").split()
        pattern = f"/lib/modules/{os.uname().release}/kernel/net/ipv4/tcp_*.ko*"
        found = [re.match(r"tcp_(\w+)\.ko", os.path.basename(path)) for path in glob.glob(pattern)]
        # tcp_diag is what ss asks, the only module of this name that is no congestion control.
        return available, sorted(match.group(1) for match in found if match and match.group(1) != "diag")
