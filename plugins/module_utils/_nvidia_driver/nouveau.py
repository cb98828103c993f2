# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeping nouveau out: the two files, and the kernel arguments of the boot entries. Pure.

nvidia-kmod-common blacklists nouveau too, but its scriptlet has been seen to fail without a word
(NVIDIA/yum-packaging-precompiled-kmod issue 57). The arguments are those that it sets; it takes ``nouveau.modeset=0``
out (nvidia-kmod-common.spec), so that one is not used here. Whether grubby hands arguments on to kernels that come
later depends on its version; the two files hold for those in any case.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.readings import BootEntry

MODULE = "nouveau"
#: Read by dracut in the initramfs, and by modprobe after it; each a list with commas.
ARGUMENTS = ("rd.driver.blacklist", "modprobe.blacklist")

MODPROBE_PATH = "/etc/modprobe.d/gpu-cluster-nouveau.conf"
DRACUT_PATH = "/etc/dracut.conf.d/gpu-cluster-nouveau.conf"
FILES = {
    MODPROBE_PATH: """\
# Managed by baremetal.gpu_cluster: NVIDIA's driver cannot take a GPU that nouveau holds.
blacklist nouveau
options nouveau modeset=0
""",
    DRACUT_PATH: """\
# Managed by baremetal.gpu_cluster: nouveau must not be in the initramfs either.
omit_drivers+=" nouveau "
""",
}


def _values(entry: BootEntry, argument: str) -> list[str]:
    return [value for value in (entry.arguments.get(argument) or "").split(",") if value]


def missing(entries: Sequence[BootEntry]) -> dict[str, str]:
    """The arguments to set for all entries, with their values; empty when every entry keeps nouveau out.

    What other entries list under the same argument stays listed.
    """
    wanted: dict[str, str] = {}
    for argument in ARGUMENTS:
        lists = [_values(entry, argument) for entry in entries]
        if any(MODULE not in values for values in lists):
            union = dict.fromkeys(value for values in lists for value in values)
            wanted[argument] = ",".join([*(value for value in union if value != MODULE), MODULE])
    return wanted


def leftovers(entries: Sequence[BootEntry]) -> dict[str, str]:
    """The arguments that still keep nouveau out, with what must stay of their values."""
    found: dict[str, str] = {}
    for argument in ARGUMENTS:
        lists = [_values(entry, argument) for entry in entries]
        if any(MODULE in values for values in lists):
            union = dict.fromkeys(value for values in lists for value in values)
            found[argument] = ",".join(value for value in union if value != MODULE)
    return found
