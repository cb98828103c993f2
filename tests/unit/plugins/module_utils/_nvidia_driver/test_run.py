# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole run of the module on a tree of files. The commands are scripts that keep their state in that tree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import gather
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver import nouveau, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.run import ABSENT, PRESENT, Spec

VERSION = "580.95.05"
OLD, NEW = "5.14.0-427.el9.x86_64", "5.14.0-503.el9.x86_64"
MODPROBE, DRACUT = nouveau.MODPROBE_PATH.lstrip("/"), nouveau.DRACUT_PATH.lstrip("/")
IMAGE = f"boot/initramfs-{NEW}.img"
MAKE_LOG = f"var/lib/dkms/nvidia/{VERSION}/build/make.log"
NOUVEAU = f"-rw-r--r-- 1 root root 1 Jan  1  1970 usr/lib/modules/{NEW}/kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz\n"

GRUBBY = f"""\
case $1 in
--default-kernel) echo /boot/vmlinuz-{NEW};;
--info=ALL) echo index=0; echo 'kernel="/boot/vmlinuz-{NEW}"'; echo "args=\\"$(cat $ROOT/arguments)\\""
  echo 'initrd="/boot/initramfs-{NEW}.img"';;
--update-kernel=ALL) shift; for word; do case $word in
  --args=*) new=${{word#--args=}}; sed -i "s/ *${{new%%=*}}=[^ ]*//" $ROOT/arguments
    echo "$(cat $ROOT/arguments) $new" > $ROOT/arguments;;
  --remove-args=*) sed -i "s/ *${{word#--remove-args=}}=[^ ]*//" $ROOT/arguments;; esac; done;;
esac
"""
# The module "is" the file that the build leaves behind.
MODINFO = (
    'cat "$ROOT/lib/modules/$4/nvidia" 2>/dev/null || { echo "modinfo: ERROR: Module nvidia not found." >&2; exit 1; }'
)
DKMS = f"""\
case $1 in
status) cat $ROOT/dkms 2>/dev/null;;
remove) : > $ROOT/dkms;;
install) echo "$@" >> $ROOT/builds
  if [ -e $ROOT/usr/bin/g++ ]; then cp $ROOT/built $ROOT/lib/modules/$7/nvidia
  else mkdir -p $ROOT/var/lib/dkms/nvidia/$5/build; echo '/bin/sh: line 1: g++: command not found' > $ROOT/{MAKE_LOG}
    echo "Error! Bad return status for module build on kernel: $7 (x86_64)" >&2; exit 10; fi;;
esac
"""
#: Loads and unloads modules, and ends processes. Nothing of that is the role's.
UNLOADING = ("rmmod", "modprobe", "kill", "pkill", "fuser")
COMMANDS = {
    "usr/sbin/grubby": GRUBBY,
    "usr/sbin/modinfo": MODINFO,
    "usr/sbin/dkms": DKMS,
    "usr/bin/lsinitrd": "cat $1",
    "usr/bin/dracut": 'echo "$@" >> $ROOT/dracuts; cat $ROOT/clean > "$2"',
    "usr/bin/mokutil": "echo $2 is not enrolled",
    **{f"usr/{place}/{name}": 'echo "$0" >> $ROOT/unloaded' for place in ("bin", "sbin") for name in UNLOADING},
}


class Mover:
    """Stands for the module."""

    def atomic_move(self, src: str, dest: str) -> None:
        os.rename(src, dest)

    def set_mode_if_different(self, path: str, mode: int, changed: bool) -> bool:
        os.chmod(path, mode)
        return changed


def write(root: Path, path: str, text: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host that was installed with the driver's packages, runs the older kernel, and can build."""
    for path, body in COMMANDS.items():
        write(tmp_path, path, f"#!/bin/sh\nROOT={tmp_path}\n{body}\n").chmod(0o755)
    for kernel in (OLD, NEW):
        write(tmp_path, f"lib/modules/{kernel}/vmlinuz", "")
    write(tmp_path, "proc/sys/kernel/osrelease", f"{OLD}\n")
    write(tmp_path, "arguments", "ro quiet")
    write(tmp_path, "dkms", f"nvidia/{VERSION}: added\n")
    write(tmp_path, "built", f"filename: nvidia.ko\nversion: {VERSION}\nlicense: Dual MIT/GPL\n")
    write(tmp_path, "usr/bin/g++", "")
    write(tmp_path, f"usr/lib64/libnvidia-ml.so.{VERSION}", "")
    write(tmp_path, IMAGE, NOUVEAU)
    write(tmp_path, "clean", "-rw-r--r-- 1 root root 1 Jan  1  1970 etc/modprobe.d/gpu-cluster-nouveau.conf\n")
    write(tmp_path, "sys/module/nouveau/uevent", "")
    return tmp_path


def apply(
    root: Path, check: bool = False, state: str = PRESENT, version: str = "580", kind: str = "open"
) -> dict[str, Any]:
    return run.outcome(Mover(), Spec(state, version, kind, 60), check, gather.Node(str(root)))


def files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.is_file() and path.name not in ("builds", "dracuts")
    }


def test_a_module_is_built_for_the_kernel_that_boots_and_nouveau_kept_out(root: Path) -> None:
    result = apply(root)
    assert result["changed"] and result["kernel"] == NEW and result["version"] == VERSION
    assert result["module"] == {"version": VERSION, "kind": "open"}
    assert (root / "builds").read_text() == f"install -m nvidia -v {VERSION} -k {NEW} --force\n"
    assert (root / MODPROBE).read_text() == nouveau.FILES[nouveau.MODPROBE_PATH]
    assert (root / DRACUT).read_text() == nouveau.FILES[nouveau.DRACUT_PATH]
    assert (root / "arguments").read_text() == "ro quiet rd.driver.blacklist=nouveau modprobe.blacklist=nouveau\n"
    assert "nouveau.ko" not in (root / IMAGE).read_text()
    assert (root / "dracuts").read_text().endswith(f" {NEW}\n")
    assert result["reboot_reasons"] == [
        "nouveau is loaded",
        f"the driver {VERSION} is installed and not loaded",
        f"the kernel {OLD} runs, and {NEW} boots next",
    ]
    assert "+" not in result["diff"]["before"] and f"module nvidia {VERSION}" in result["diff"]["after"]

    again = apply(root)
    assert not again["changed"] and again["actions"] == [] and again["reboot_reasons"] == result["reboot_reasons"]
    assert (root / "builds").read_text().count("\n") == 1


def test_check_mode_says_the_same_and_changes_nothing(root: Path) -> None:
    before = files(root)
    foreseen = apply(root, check=True)
    assert files(root) == before and not (root / "builds").exists()
    done = apply(root)
    assert foreseen["actions"] == done["actions"] and foreseen["diff"] == done["diff"]


def test_a_build_that_fails_is_tried_once_and_touches_nothing_of_the_boot(root: Path) -> None:
    (root / "usr/bin/g++").unlink()
    before = files(root)
    with pytest.raises(run.DriverError) as caught:
        apply(root)
    said = str(caught.value)
    assert said.startswith(f"There is no module nvidia {VERSION} (open) for the kernel {NEW}, which boots next. ")
    assert f"/{MAKE_LOG} says: /bin/sh: line 1: g++: command not found. " in said
    assert (
        f"`dkms install -m nvidia -v {VERSION} -k {NEW} --force` was tried once: dkms failed (10): Error! Bad" in said
    )
    assert (root / "builds").read_text().count("\n") == 1
    assert {path: text for path, text in files(root).items() if path != MAKE_LOG} == before

    write(root, "usr/bin/g++", "")
    assert apply(root)["module"]["version"] == VERSION


def test_a_build_that_ends_well_and_leaves_nothing_is_no_success(root: Path) -> None:
    write(root, "built", "version: 570.172.08\nlicense: Dual MIT/GPL\n")
    with pytest.raises(
        run.DriverError, match=r"tried once: it ended well, and the module is 570\.172\.08 open\. There"
    ):
        apply(root)


def test_another_kind_of_module_is_built_anew(root: Path) -> None:
    write(root, f"lib/modules/{NEW}/nvidia", f"version: {VERSION}\nlicense: NVIDIA\n")
    assert apply(root)["module"] == {"version": VERSION, "kind": "open"}
    with pytest.raises(run.DriverError, match=r"no module nvidia 580\.95\.05 \(proprietary\)"):
        apply(root, kind="proprietary")


def test_a_source_that_dkms_does_not_know_is_found_or_named(root: Path) -> None:
    write(root, "dkms", "nvidia/570.172.08: added\n")
    with pytest.raises(run.DriverError, match=r"it knows nvidia 570\.172\.08, and there is no /usr/src/nvidia-580\.95"):
        apply(root)
    (root / f"usr/src/nvidia-open-{VERSION}").mkdir(parents=True)
    apply(root)
    assert (root / "builds").read_text().startswith(f"install -m nvidia-open -v {VERSION} ")


def test_libraries_of_another_version_than_the_pin_are_refused(root: Path) -> None:
    with pytest.raises(run.DriverError, match=r"The libraries of the driver are 580\.95\.05, and version is 570\."):
        apply(root, version="570")
    (root / f"usr/lib64/libnvidia-ml.so.{VERSION}").unlink()
    with pytest.raises(run.DriverError, match="Install nvidia-driver-cuda first"):
        apply(root)
    assert apply(root, check=True)["version"] == ""


def test_an_initramfs_that_cannot_be_made_stays(root: Path) -> None:
    write(root, "clean", NOUVEAU)
    with pytest.raises(
        run.DriverError, match="holds nouveau, and a new one could not be made: the new one holds it too"
    ):
        apply(root)
    assert (root / IMAGE).read_text() == NOUVEAU
    assert [path.name for path in (root / "boot").iterdir()] == [f"initramfs-{NEW}.img"]
    write(root, "usr/bin/dracut", "#!/bin/sh\necho half > $2\necho no space left on device >&2\nexit 1\n")
    with pytest.raises(run.DriverError, match=r"dracut failed \(1\): no space left on device"):
        apply(root)
    assert [path.name for path in (root / "boot").iterdir()] == [f"initramfs-{NEW}.img"]


def test_arguments_that_grubby_does_not_set_are_noticed(root: Path) -> None:
    script = root / "usr/sbin/grubby"
    script.write_text(script.read_text().replace("--update-kernel=ALL)", "--never)"))
    with pytest.raises(run.DriverError, match="did not set the kernel arguments of all boot entries"):
        apply(root)


def settle(root: Path) -> None:
    """As after the reboot."""
    write(root, "proc/sys/kernel/osrelease", f"{NEW}\n")
    write(
        root, "proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  x\n"
    )
    (root / "sys/module/nouveau/uevent").unlink()
    (root / "sys/module/nouveau").rmdir()


def test_after_the_reboot_nothing_is_left_to_do_and_no_initramfs_is_read(root: Path) -> None:
    apply(root)
    settle(root)
    write(root, IMAGE, NOUVEAU)
    result = apply(root)
    assert not result["changed"] and result["reboot_reasons"] == [] == result["by_hand"]
    assert (root / IMAGE).read_text() == NOUVEAU


def test_secure_boot_needs_a_person_until_the_module_is_loaded(root: Path) -> None:
    variable = root / gather.SECURE_BOOT
    variable.parent.mkdir(parents=True)
    variable.write_bytes(b"\x06\0\0\0\x01")
    write(root, "etc/dkms/framework.conf", "mok_certificate=/etc/pki/site.der\n")
    (step,) = apply(root)["by_hand"]
    assert "mokutil --import /etc/pki/site.der" in step
    settle(root)
    assert apply(root)["by_hand"] == []


def test_without_a_kernel_the_running_one_counts(root: Path) -> None:
    for kernel in (OLD, NEW):
        (root / f"lib/modules/{kernel}/vmlinuz").unlink()
    assert apply(root, check=True)["kernel"] == OLD


def test_a_removal_takes_everything_back(root: Path) -> None:
    write(root, "arguments", "ro modprobe.blacklist=pcspkr")
    before = files(root)
    apply(root)
    (root / f"lib/modules/{NEW}/nvidia").unlink()
    result = apply(root, state=ABSENT, version="")
    assert result["changed"] and "Remove nvidia 580.95.05 from DKMS" in result["actions"]
    after = files(root)
    assert MODPROBE not in after and DRACUT not in after and after["dkms"] == ""
    assert after["arguments"].split() == ["ro", "modprobe.blacklist=pcspkr"]
    assert set(before) == set(after) and "unloaded" not in after
    assert not apply(root, state=ABSENT, version="")["changed"]


def test_a_removal_leaves_what_others_blacklist(root: Path) -> None:
    """Without our file it was not us."""
    write(root, "dkms", "")
    write(root, "arguments", "ro rd.driver.blacklist=nouveau")
    assert not apply(root, state=ABSENT, version="")["changed"]
    settle(root)
    assert apply(root, state=ABSENT)["reboot_reasons"] == [f"the driver {VERSION} is removed and still loaded"]
