# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command of this project on another release of Debian: `other_debian.py trixie -- make demo`.

The root file system has what the README asks for and nothing else. A clone of the last commit lies in it. The kernel,
the network and the cgroups are this machine's, so no lab may be up here. All of it is removed at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import project
from lab import debian, host, network
from lab.settings import here
from lab.shell import LabError, run, say

#: What a user has before the first command of the README.
PACKAGES = ("python3", "python3-venv", "git", "make", "gcc", "libc6-dev", "ca-certificates", "apt")
HOME = Path("/root")
CLONE = Path("/srv/gpu_cluster")
#: What tells programs how to reach package indexes, and trust them.
HANDED_ON = ("PIP_", "SSL_CERT_", "REQUESTS_CA_", "http_", "https_", "no_", "HTTP_", "HTTPS_", "NO_", "CI")
#: What is seen inside: read by the tools there, or too large to be downloaded again.
CERTIFICATES = Path("/etc/ssl/certs")

#: Makes the folder $1 the root of a mount namespace and runs the rest. `/` has to be a mount point: podman pivots too.
ENTER = """
root=$1; shift
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
for kernel in sys dev; do mount --rbind "/$kernel" "$kernel"; done
mount -t proc proc proc
for empty in run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$empty"; done
mkdir -p run/lock run/outside
pivot_root . run/outside
for folder in $SHARED; do mkdir -p "$folder"; mount --bind "/run/outside$folder" "$folder"; done
for file in resolv.conf hosts; do cat "/run/outside/etc/$file" > "/etc/$file"; done
umount --lazy /run/outside
cd "$CLONE"
exec "$@"
"""
#: The lab's bridges are this machine's, and stay where nobody takes them down.
RUN = 'status=0; "$@" || status=$?; [ ! -e .venv ] || make --silent lab-down; exit $status'


def environment(outside: Mapping[str, str], shared: Sequence[Path]) -> dict[str, str]:
    """What a login there would have, and what leads to the package indexes."""
    handed_on = {name: value for name, value in outside.items() if name.startswith(HANDED_ON)}
    own = {"HOME": str(HOME), "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    return {**handed_on, **own, "CLONE": str(CLONE), "SHARED": " ".join(map(str, shared))}


def refuse_a_running_lab(interfaces: Sequence[str]) -> None:
    """A lab inside would take this machine's interfaces for leftovers of its own."""
    if interfaces:
        raise LabError(f"a lab is up on this machine ({', '.join(interfaces)}): run `make lab-down vm-down` first")


def make_root(release: str, folder: Path) -> Path:
    """A root file system of that release, with a clone of this checkout."""
    say(f"making a root file system of Debian {release}")
    root = folder / "root"
    sources = debian.source_list(folder, release)
    options = ["--mode=root", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
    options += [f"--aptopt={line}" for line in debian.connection_options()]
    run(["mmdebstrap", *options, release, str(root), str(sources)], timeout=1800)
    run(["git", "clone", "--quiet", str(project.ROOT), f"{root}{CLONE}"])
    return root


def inside(root: Path, command: Sequence[str], shared: Sequence[Path]) -> int:
    """Run a command there. When this process ends, so does all that it started."""
    # The wheels are the nodes' and do not depend on this release.
    wheels = project.cache_dir() / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", ENTER, "sh", str(root)]
    every = [CERTIFICATES, wheels, *shared]
    variables = {**environment(os.environ, every), "GPU_CLUSTER_CACHE": str(project.cache_dir())}
    return subprocess.run([*enter, "sh", "-c", RUN, "sh", *command], env=variables, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("release", help="such as trixie")
    parser.add_argument("--share", action="append", type=Path, default=[], help="a folder of this machine to see there")
    parser.add_argument("command", nargs="+", help="such as: make demo")
    arguments = parser.parse_args()
    host.require_root()
    host.install_packages()
    refuse_a_running_lab(network.links())
    paths = here()
    paths.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{arguments.release}-", dir=paths.cache) as folder:
        try:
            return inside(make_root(arguments.release, Path(folder)), arguments.command, arguments.share)
        finally:
            host.discard(Path(folder) / "root")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(f"other_debian: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
