# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments that keep nouveau out, beside those of others."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver import nouveau
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.readings import BootEntry, arguments


def entry(text: str) -> BootEntry:
    return BootEntry("5.14.0-503.el9.x86_64", "", arguments(text))


BARE = entry("ro quiet")
DONE = entry("ro rd.driver.blacklist=nouveau modprobe.blacklist=nouveau")
# What branches of 2026 set by themselves.
OF_NVIDIA = entry("ro rd.driver.blacklist=nouveau,nova_core modprobe.blacklist=nouveau,nova_core")
OTHERS = entry("ro rd.driver.blacklist=ahci modprobe.blacklist")


def test_arguments_that_are_missing() -> None:
    assert nouveau.missing([BARE]) == {"rd.driver.blacklist": "nouveau", "modprobe.blacklist": "nouveau"}
    assert nouveau.missing([DONE, OF_NVIDIA]) == {}
    assert nouveau.missing([]) == {}


def test_what_others_blacklist_stays() -> None:
    assert nouveau.missing([OF_NVIDIA, OTHERS]) == {
        "rd.driver.blacklist": "nova_core,ahci,nouveau",
        "modprobe.blacklist": "nova_core,nouveau",
    }


def test_taking_it_back_leaves_what_others_blacklist() -> None:
    assert nouveau.leftovers([DONE, BARE]) == {"rd.driver.blacklist": "", "modprobe.blacklist": ""}
    assert nouveau.leftovers([OF_NVIDIA]) == {"rd.driver.blacklist": "nova_core", "modprobe.blacklist": "nova_core"}
    assert nouveau.leftovers([OTHERS]) == {}


def test_the_files_say_what_they_are_for() -> None:
    assert set(nouveau.FILES) == {nouveau.MODPROBE_PATH, nouveau.DRACUT_PATH}
    assert "\nblacklist nouveau\n" in nouveau.FILES[nouveau.MODPROBE_PATH]
    # dracut needs the blanks: the lists of several files are put together.
    assert '\nomit_drivers+=" nouveau "\n' in nouveau.FILES[nouveau.DRACUT_PATH]
