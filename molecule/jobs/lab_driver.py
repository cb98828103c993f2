# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's driver as the lab has it: packages whose scriptlets, modules and failures are like those of the real ones.

What is real: dnf, rpm, depmod and modinfo on the node, and the kernel modules as ELF files. dkms, grubby, dracut and
lsinitrd are scripts that keep their state in files, and what dkms "compiles" comes with the source.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab_cluster import EL
from lab_mirror import Keys
from lab_packages import Content, StandIn, build_repository

#: Newer than the kernel of the lab's own repository, so that its packages come from here.
VERSION = "5.14.0" if EL == 9 else "6.12.0"
RELEASE, NEWER = f"{VERSION}-570.el{EL}", f"{VERSION}-999.el{EL}"
KERNEL, NEWER_KERNEL = f"{RELEASE}.x86_64", f"{NEWER}.x86_64"
OLD, NEW = "570.172.08", "580.95.05"
STREAMS = {OLD: "570-open", NEW: "580-open"}
#: Where the loader of the nodes, which is Debian's, looks without being told.
CUDA_LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
#: A package of the name whose compiler is missing, as dkms found it in open-gpu-kernel-modules issue 805.
BROKEN_COMPILER = "11.4.0-1.el9"
#: One that is there, and newer than the package of the lab's own repository, which is a name without content.
COMPILER = "15.1.1-1.el10"
#: One whose failed build keeps a later kernel from booting.
BAD_DKMS = "3.1.8-1.el9"

NOUVEAU = f"-rw-r--r-- 1 root root 1 Jan 1 1970 usr/lib/modules/{KERNEL}/kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz\n"
UNIT = "[Unit]\nDescription={0}\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"

#: As dkms 3 takes its arguments, and where it leaves its files and its log. What it "builds" comes with the source.
DKMS = """\
#!/bin/sh
command=$1; shift
while [ $# -gt 0 ]; do case $1 in -m) name=$2; shift;; -v) version=$2; shift;; -k) kernel=$2; shift;; esac; shift; done
kernel=${kernel:-$(uname -r)}
tree=/var/lib/dkms/$name/$version
log=$tree/build/make.log
case $command in
add) mkdir -p $tree;;
status)
  for found in /var/lib/dkms/*/*/; do
    [ -d "$found" ] || continue
    words=$(echo ${found#/var/lib/dkms/} | sed 's,/$,,')
    is=$(ls $found | grep -v '^build$')
    if [ -z "$is" ]; then echo "$words: added"; else for one in $is; do echo "$words, $one, x86_64: installed"; done; fi
  done;;
install)
  mkdir -p $tree/build
  echo "DKMS make.log for $name-$version for kernel $kernel (x86_64)" > $log
  if [ ! -d /usr/src/kernels/$kernel ]; then
    echo "make[2]: *** /lib/modules/$kernel/build: No such file or directory.  Stop." >> $log
  elif ! command -v g++ > /dev/null; then
    echo " [ nvidia-modeset    ]  CXX          ../common/displayport/src/dp_auxretry.cpp" >> $log
    echo "/bin/sh: line 1: g++: command not found" >> $log
    echo "make[1]: *** [Makefile:219: _out/Linux_x86_64/dp_auxretry.o] Error 127" >> $log
  else
    mkdir -p $tree/$kernel/x86_64/log /lib/modules/$kernel/extra
    cp /usr/src/$name-$version/nvidia.ko /lib/modules/$kernel/extra/nvidia.ko
    mv $log $tree/$kernel/x86_64/log/
    exec depmod -a $kernel
  fi
  echo "Error! Bad return status for module build on kernel: $kernel (x86_64)" >&2
  echo "Consult $log for more information." >&2
  exit 10;;
remove)
  for one in $(ls $tree | grep -v '^build$'); do rm -f /lib/modules/$one/extra/nvidia.ko; depmod -a $one; done
  rm -rf $tree; rmdir --ignore-fail-on-non-empty /var/lib/dkms/$name;;
esac
"""
#: The boot loader's one entry, with its arguments in a file.
GRUBBY = """\
#!/bin/sh
file=/boot/lab-arguments
# As kernel-install has it: a new kernel boots next.
kernel=$(cd /usr/lib/modules; ls -d */vmlinuz | sort -V | tail -1 | cut -d/ -f1)
case $1 in
--default-kernel) echo /boot/vmlinuz-$kernel;;
--info=ALL) echo index=0; echo "kernel=\\"/boot/vmlinuz-$kernel\\""; echo "args=\\"$(cat $file)\\""
  echo "initrd=\\"/boot/initramfs-$kernel.img \\$tuned_initrd\\"";;
--update-kernel=ALL) shift
  for word; do
    name=${word#*=}; name=${name%%=*}
    sed -i "s/ *$name=[^ ]*//" $file
    case $word in --args=*) echo "$(cat $file) ${word#--args=}" > $file;; esac
  done;;
esac
"""
#: A row for each GPU that the node shows, and what the check asks besides.
NVIDIA_SMI = """\
#!/bin/sh
[ "$1" = -q ] && echo "CUDA Version : 13.0" && exit
number=0
for folder in /sys/bus/pci/devices/*; do
  [ "$(cat $folder/class)" = 0x030200 ] || continue
  echo "$number, GPU-$number, NVIDIA H100 80GB HBM3, 81559, ${folder##*/}, Enabled, Disabled"
  number=$((number + 1))
done
"""
#: In place of shutdown: what a node shows after a reboot, as far as a container can show it.
SHUTDOWN = f"""\
#!/bin/sh
new=/run/lab-rebooted
mkdir -p $new/module/nvidia
cp /usr/src/nvidia-*/version $new/module/nvidia/version
cat /proc/sys/kernel/random/uuid > $new/boot_id
echo {KERNEL} > $new/osrelease
mount --bind $new/module /sys/module
mount --bind $new/boot_id /proc/sys/kernel/random/boot_id
mount --bind $new/osrelease /proc/sys/kernel/osrelease
systemctl start nvidia-persistenced nvidia-fabricmanager
"""
#: As in dkms-open-nvidia.spec of NVIDIA/yum-packaging-dkms-nvidia: for the running kernel, and never a failure.
KMOD_POST = "dkms add -m nvidia -v {0} || :\ndkms install -m nvidia -v {0} --force || :\n"
#: %systemd_preun of the real packages, when they go.
UNIT_PREUN = "[ $1 -gt 0 ] || systemctl --no-reload disable --now {0}.service || :\n"
KMOD_PREUN = "dkms remove -m nvidia -v {0} --all || :\n"

MODULE_STREAM = """\
---
document: modulemd
version: 2
data:
  name: nvidia-driver
  stream: "{stream}"
  version: 1
  context: lab
  arch: x86_64
  summary: Driver of one branch
  description: Driver of one branch
  license: {{module: [GPL-3.0-or-later]}}
  artifacts:
    rpms: [{rpms}]
"""


def kernel_module(folder: Path, version: str, kind: str) -> bytes:
    """An ELF file that modinfo and depmod read, and that no kernel would load."""
    fields = {"version": version, "license": "Dual MIT/GPL" if kind == "open" else "NVIDIA", "name": "nvidia"}
    lines = [
        f'static const char {name}[] __attribute__((section(".modinfo"), used)) = "{name}={value}";'
        for name, value in fields.items()
    ]
    source, result = folder / "nvidia.c", folder / "nvidia.ko"
    source.write_text("\n".join(lines) + "\n")
    subprocess.run(["gcc", "-c", "-o", str(result), str(source)], check=True, timeout=240)
    return result.read_bytes()


def cuda_library(folder: Path, result: int = 0) -> bytes:
    """A libcuda.so.1 whose cuInit() gives this result. It needs no other library, so it loads on every node."""
    source, library = folder / "cuda.c", folder / "libcuda.so.1"
    source.write_text(f"int cuInit(unsigned flags) {{ return {result}; }}\n")
    command = ["gcc", "-shared", "-fPIC", "-nostdlib", "-o", str(library), str(source)]
    subprocess.run(command, check=True, timeout=240)
    return library.read_bytes()


def kernel(release: str) -> list[StandIn]:
    """The packages of one kernel. The first one brings the arguments of the boot entries, too."""
    modules = f"/usr/lib/modules/{release}.x86_64"
    boot: dict[str, Content] = {
        f"{modules}/vmlinuz": b"kernel\n",
        f"{modules}/modules.order": b"",
        f"{modules}/modules.builtin": b"",
        f"/boot/initramfs-{release}.x86_64.img": NOUVEAU.replace(KERNEL, f"{release}.x86_64").encode(),
    }
    if release == RELEASE:
        boot["/boot/lab-arguments"] = b"ro crashkernel=1G-4G:192M quiet\n"
    beside = ["installonlypkg(kernel)"]
    devel: dict[str, Content] = {f"/usr/src/kernels/{release}.x86_64/Makefile": b"all:\n"}
    return [
        StandIn("kernel-core", release, provides=beside, files=boot),
        StandIn("kernel-devel", release, provides=beside, files=devel),
        StandIn("kernel-devel-matched", release, requires=[f"kernel-core = {release}", f"kernel-devel = {release}"]),
    ]


def tools() -> list[StandIn]:
    """The kernel that boots, what builds modules for it, and the boot loader's tool."""
    dracut: dict[str, Content] = {
        "/usr/bin/dracut": b'#!/bin/sh\n[ "$1" = --force ] && cat /etc/dracut.conf.d/*.conf > "$2"\n',
        "/usr/bin/lsinitrd": b'#!/bin/sh\ncat "$1"\n',
    }
    return [
        *kernel(RELEASE),
        # A newer one, which nothing may bring in without consent.
        *kernel(NEWER),
        StandIn("gcc-c++", BROKEN_COMPILER),
        StandIn("gcc-c++", COMPILER, files={"/usr/bin/g++": b"#!/bin/sh\n"}),
        StandIn("grubby", "8.40-64.el9", files={"/usr/sbin/grubby": GRUBBY.encode()}),
        StandIn("dracut", "057-88.git20250311.el9", files=dracut),
        StandIn("dkms", BAD_DKMS, files={"/usr/sbin/dkms": DKMS.encode()}),
        StandIn(
            "dkms",
            # Newer than those of the lab's own repositories, which have no files.
            "3.9.9-1.el9",
            # As in EPEL's package: by itself it would bring the newest kernel-core.
            requires=["gcc", "(kernel-devel-matched if kernel-core)"],
            files={"/usr/sbin/dkms": DKMS.encode()},
        ),
    ]


def driver(folder: Path, version: str) -> list[StandIn]:
    """The packages of one version, with dependencies as NVIDIA's have them."""
    evr = f"3:{version}-1.el9"
    exactly = f"= 3:{version}"
    folder_of_source = f"/usr/src/nvidia-{version}/"
    source: dict[str, Content] = {
        folder_of_source: b"",
        f"{folder_of_source}nvidia.ko": kernel_module(folder, version, "open"),
        f"{folder_of_source}version": f"{version}\n".encode(),
    }
    library = f"libnvidia-ml.so.{version}"
    libraries: dict[str, Content] = {
        f"/usr/lib64/{library}": b"\x7fELF stand-in",
        "/usr/lib64/libnvidia-ml.so.1": library,
        CUDA_LIBRARY: cuda_library(folder),
    }
    # The name has changed with branch 580.
    manager = "nvidia-fabric-manager" if int(version.split(".")[0]) < 580 else "nvidia-fabricmanager"
    return [
        StandIn(
            "kmod-nvidia-open-dkms",
            evr,
            requires=["dkms", f"nvidia-kmod-common {exactly}"],
            provides=[f"nvidia-kmod {exactly}"],
            conflicts=["kmod-nvidia-latest-dkms"],
            files=source,
            post=KMOD_POST.format(version),
            preun=KMOD_PREUN.format(version),
        ),
        StandIn("nvidia-kmod-common", evr, requires=["grubby", f"nvidia-kmod {exactly}"]),
        StandIn(
            "nvidia-driver-cuda",
            evr,
            requires=[f"nvidia-driver-cuda-libs {exactly}", f"nvidia-kmod-common {exactly}", "nvidia-persistenced"],
            files={"/usr/bin/nvidia-smi": NVIDIA_SMI.encode()},
        ),
        StandIn("nvidia-driver-cuda-libs", evr, files=libraries),
        StandIn(
            "nvidia-persistenced",
            evr,
            files={"/usr/lib/systemd/system/nvidia-persistenced.service": UNIT.format("persistence").encode()},
            preun=UNIT_PREUN.format("nvidia-persistenced"),
        ),
        StandIn(
            manager,
            f"{version}-1",
            files={
                "/usr/bin/nv-fabricmanager": b"#!/bin/sh\n",
                "/usr/lib/systemd/system/nvidia-fabricmanager.service": UNIT.format("fabric manager").encode(),
            },
            preun=UNIT_PREUN.format("nvidia-fabricmanager"),
        ),
    ]


def stream(version: str, packages: Sequence[StandIn]) -> str:
    """The module stream of a branch."""
    names = []
    for one in packages:
        epoch, _colon, rest = one.evr.rpartition(":")
        names.append(f'"{one.name}-{epoch or 0}:{rest}.{one.arch}"')
    return MODULE_STREAM.format(stream=STREAMS[version], rpms=", ".join(names))


def repository(folder: Path, work: Path, keys: Keys, signer: str) -> None:
    """A repository with both versions, each in the stream of its branch, and the tools."""
    by_version = {version: driver(work, version) for version in (OLD, NEW)}
    streams = "".join(stream(version, packages) for version, packages in by_version.items())
    packages = [*tools(), *(one for found in by_version.values() for one in found)]
    build_repository(folder, keys, signer, packages, streams)
