# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded outputs of dkms, grubby, lsinitrd and mokutil."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver import readings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.readings import DkmsEntry

KERNEL = "5.14.0-503.el9.x86_64"

# Of 2.x: ubuntuforums.org, posts of 2012 and 2022, with the warning; readme of the DIGITS cluster of a university.
# Of 3.x: issues 558 and 635 of NVIDIA/open-gpu-kernel-modules, guides for EL 8 and 10 (AMD, NVIDIA).
DKMS = [
    ("2-installed", f"nvidia, 470.103.01, {KERNEL}, x86_64: installed", "470.103.01", KERNEL, "installed"),
    ("2-added", "nvidia, 375.51: added", "375.51", "", "added"),
    ("2-weak", f"nvidia, 470.57.02, {KERNEL}, x86_64: installed-weak from 5.14.0-427.el9.x86_64", None, KERNEL, None),
    (
        "2-differs",
        f"nvidia, 418.74, {KERNEL}, x86_64: installed (WARNING! Diff between built and installed module!)",
        "418.74",
        KERNEL,
        "installed",
    ),
    ("3-added", "nvidia/390.157: added", "390.157", "", "added"),
    ("3-built", f"nvidia/580.95.05, {KERNEL}, x86_64: built", "580.95.05", KERNEL, "built"),
    ("3-installed", f"nvidia/580.126.09, {KERNEL}, x86_64: installed", "580.126.09", KERNEL, "installed"),
    ("3-original", f"nvidia/580.1, {KERNEL}, x86_64: installed (Original modules exist)", "580.1", KERNEL, "installed"),
]


@pytest.mark.parametrize(
    ("line", "version", "kernel", "state"), [row[1:] for row in DKMS], ids=[row[0] for row in DKMS]
)
def test_dkms_status(line: str, version: str | None, kernel: str, state: str | None) -> None:
    (entry,) = readings.dkms_entries(f"{line}\n")
    assert entry == DkmsEntry("nvidia", version or "470.57.02", kernel, state or "installed")


def test_dkms_status_of_other_modules_is_left_out() -> None:
    text = (
        f"mlnx-ofed-kernel/5.8, {KERNEL}, x86_64: installed\nnvidia-fs/2.17.5: added\n"
        f"Error! Could not locate dkms.conf file.\nnvidia-open/515.65.01, {KERNEL}, x86_64: installed\n"
    )
    assert [entry.name for entry in readings.dkms_entries(text)] == ["nvidia-open"]


# `grubby --info ALL` of RHEL 9.7 and of EL 9 with a rescue entry, from public notes; ids shortened.
GRUBBY = """\
index=0
kernel="/boot/vmlinuz-5.14.0-611.5.1.el9_7.x86_64"
args="ro crashkernel=1G-2G:192M,2G-64G:256M resume=/dev/mapper/rhel00-swap rhgb quiet $tuned_params"
root="/dev/mapper/rhel00-root"
initrd="/boot/initramfs-5.14.0-611.5.1.el9_7.x86_64.img $tuned_initrd"
title="Red Hat Enterprise Linux (5.14.0-611.5.1.el9_7.x86_64) 9.7 (Plow)"
id="69dd623190cb45aabfed1570bd80b5eb-5.14.0-611.5.1.el9_7.x86_64"
index=1
kernel="/boot/vmlinuz-0-rescue-69dd623190cb45aabfed1570bd80b5eb"
args="ro rd.driver.blacklist=ahci rd.driver.blacklist=nouveau,nova_core modprobe.blacklist=pcspkr"
root="/dev/mapper/rhel00-root"
initrd="/boot/initramfs-0-rescue-69dd623190cb45aabfed1570bd80b5eb.img"
title="Red Hat Enterprise Linux (0-rescue) 9.7 (Plow)"
id="69dd623190cb45aabfed1570bd80b5eb-0-rescue"
index=2
non linux entry
"""


def test_boot_entries() -> None:
    newest, rescue = readings.boot_entries(GRUBBY)
    assert newest.kernel == "5.14.0-611.5.1.el9_7.x86_64"
    assert newest.initramfs == "/boot/initramfs-5.14.0-611.5.1.el9_7.x86_64.img"
    assert newest.arguments["crashkernel"] == "1G-2G:192M,2G-64G:256M"
    assert newest.arguments["quiet"] is None
    assert rescue.arguments["rd.driver.blacklist"] == "ahci,nouveau,nova_core"
    assert readings.boot_entries("") == []


def test_kernel_of_an_image() -> None:
    assert readings.kernel_of("/boot/vmlinuz-5.14.0-503.el9.x86_64+debug\n") == "5.14.0-503.el9.x86_64+debug"
    assert readings.kernel_of("/boot/bzImage") == ""


def test_modules_in_an_initramfs() -> None:
    folder = f"usr/lib/modules/{KERNEL}/kernel/drivers/gpu/drm"
    listing = f"-rw-r--r--   1 root     root      1184640 Jan  1  1970 {folder}/nouveau/nouveau.ko.xz\n"
    others = (
        f"drwxr-xr-x   2 root     root            0 Jan  1  1970 {folder}/nouveau\n"
        "-rw-r--r--   1 root     root  145 Jan  1  1970 etc/modprobe.d/gpu-cluster-nouveau.conf\n"
        f"-rw-r--r--   1 root     root  145 Jan  1  1970 {folder}/nouveau/not-nouveau.ko\n"
    )
    assert readings.holds_module(others + listing, "nouveau")
    assert not readings.holds_module(others, "nouveau")


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("/var/lib/dkms/mok.pub is already enrolled\n", readings.ENROLLED),
        ("/var/lib/dkms/mok.pub is already in db\n", readings.ENROLLED),
        ("/var/lib/dkms/mok.pub is already in the enrollment request\n", readings.REQUESTED),
        ("/var/lib/dkms/mok.pub is not enrolled\n", readings.NOT_ENROLLED),
        ("Failed to open /var/lib/dkms/mok.pub\n", readings.UNKNOWN),
        ("", readings.UNKNOWN),
    ],
)
def test_state_of_a_key(said: str, state: str) -> None:
    assert readings.key_state(said) == state


def test_certificate_of_dkms() -> None:
    text = (
        "# mok_certificate=/var/lib/dkms/mok.pub\nmok_certificate=/etc/pki/old.der\n"
        'mok_signing_key="/site.key"\nmok_certificate="/etc/pki/site.der"\n'
    )
    assert readings.mok_certificate(text) == "/etc/pki/site.der"
    assert readings.mok_certificate("# mok_certificate=/var/lib/dkms/mok.pub\n") == ""


# The middle is of NVIDIA/open-gpu-kernel-modules issue 805, the first and last lines are those of every such log.
MAKE_LOG = """\
DKMS make.log for nvidia-570.124.06 for kernel 5.14.0-503.26.1.el9_5.x86_64 (x86_64)
Fri Mar  7 10:12:01 UTC 2025
make -C src/nvidia
 [ nvidia            ]  CC           -Wno-error=implicit generated/g_error_cont_nvoc.c
 [ nvidia-modeset    ]  CXX          ../common/displayport/src/dp_auxretry.cpp
/bin/sh: line 1: g++: command not found
make[1]: *** [Makefile:219: _out/Linux_x86_64/dp_auxretry.o] Error 127
make[1]: *** Waiting for unfinished jobs....
make: *** [Makefile:34: src/nvidia-modeset/_out/Linux_x86_64/nv-modeset-kernel.o] Error 2
"""


def test_decisive_lines_of_a_log() -> None:
    assert readings.decisive_lines(MAKE_LOG) == ["/bin/sh: line 1: g++: command not found"]
    only_make = "make[2]: Entering directory '/usr/src'\nmake[2]: *** [Makefile:82: modules] Error 2\n"
    assert readings.decisive_lines(only_make) == ["make[2]: *** [Makefile:82: modules] Error 2"]
    assert readings.decisive_lines("\n".join("abcdefg")) == list("cdefg")
    assert readings.decisive_lines("") == []


def test_log_that_dkms_names() -> None:
    said = (
        "Error! Bad return status for module build on kernel: 6.5.2-arch1-1 (x86_64)\n"
        "Consult /var/lib/dkms/nvidia/390.157/build/make.log for more information.\n"
    )
    assert readings.log_path(said) == "/var/lib/dkms/nvidia/390.157/build/make.log"
    assert readings.log_path("nothing") == ""
