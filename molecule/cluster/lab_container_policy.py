# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The domain of containers, container_t, in the policy of the virtual machine.

CentOS has it from its package container-selinux, which Debian has not. Debian 13 has the module `container` of the
reference policy in its package selinux-policy-default. Debian 12 leaves it out there, but has its source and all that
compiles it in packages of the same version: it is compiled here, without a change, and loaded there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from lab import debian, host
from lab.settings import here
from lab_cluster import Cluster
from lab_nfs import go, shell
from lab_selinux import NODE

MODULE = "container"
SOURCE, HEADERS = "selinux-policy-src", "selinux-policy-dev"
#: With what they are linked, whatever Debian or Ubuntu this machine runs.
PROGRAMS = ("checkpolicy", "semodule-utils", "m4", "libsepol2", "libsigsegv2")
#: Paths that the module names, and that were there before it.
LABELLED = "/usr/bin/crun /etc/containers /home/train /var/lib/containers /run/libpod"
RELABEL = f"restorecon -R {LABELLED} 2> /dev/null || true"


def compiled(version: str, folder: Path) -> Path:
    """The module, of the source package with this version of the policy."""
    host.install_packages({"dpkg-deb": "dpkg", "zstd": "zstd", "make": "make"})
    packages = debian.Packages(here(), here().flavour.suite)
    packages.update()
    packages.download({**packages.versions(PROGRAMS), SOURCE: version, HEADERS: version}, folder)
    tree, build = folder / "tree", folder / "build"
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, tree], check=True)
    build.mkdir()
    subprocess.run(["tar", "-xf", tree / "usr/src/selinux-policy-src.tar.zst", "-C", build], check=True)
    for ending in ("te", "fc", "if"):
        shutil.copy(build / "selinux-policy-src/policy/modules/services" / f"{MODULE}.{ending}", build)
    include, programs = tree / "usr/share/selinux/devel/include", tree / "usr/bin"
    names = {
        "HEADERDIR": include,
        "SHAREDIR": tree / "usr/share/selinux",
        "TYPE": "mcs",
        "NAME": "default",
        # What is given here is not added to by the file: the levels of containers need -M.
        "CHECKMODULE": f"{programs / 'checkmodule'} -M",
        "SEMOD_PKG": programs / "semodule_package",
        "M4": programs / "m4",
    }
    argv = ["make", "-f", str(include / "Makefile"), *(f"{name}={value}" for name, value in names.items())]
    libraries = os.pathsep.join(str(path) for path in tree.glob("**/x86_64-linux-gnu") if path.is_dir())
    ended = subprocess.run(
        [*argv, f"{MODULE}.pp"],
        cwd=build,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "LD_LIBRARY_PATH": libraries},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return build / f"{MODULE}.pp"


def install(machine: Cluster) -> bool:
    """Give the machine the module, unless its policy has it; whether it was given."""
    if machine.lab("ssh", NODE, f"semodule -l | grep -cx {MODULE} || true").strip() == "1":
        return False
    version = machine.lab("ssh", NODE, "dpkg-query -W -f '${Version}' selinux-policy-default").strip()
    with tempfile.TemporaryDirectory() as scratch:
        module = compiled(version, Path(scratch))
        copy = {"ansible.builtin.copy": {"src": str(module), "dest": f"/var/tmp/{MODULE}.pp", "mode": "0600"}}
        load = f"semodule --install=/var/tmp/{MODULE}.pp && rm -f /var/tmp/{MODULE}.pp && ({RELABEL})"
        results = go(machine, [copy, shell(load)], deadline=600)
    assert not any(one.get("failed") for one in results), results
    return True


def remove(machine: Cluster) -> None:
    (result,) = go(machine, [shell(f"semodule --remove={MODULE} && ({RELABEL})")], deadline=600)
    assert not result.get("failed"), result
