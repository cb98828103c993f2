# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read and run on a host: files, homes, customisations, labels. It ends the module where that fails."""

from __future__ import annotations

import glob
import os
import pwd
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import mode, records, spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.selinuxfs import read_kernel, read_whole
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import silence

SEMANAGE_PACKAGES = ["policycoreutils-python-utils"]
REMOTE_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "lustre", "ceph", "gpfs", "beegfs", "fuse.sshfs")
ERR_SILENT = (
    "The home %s of %s is on %s, which does not answer within %d s. Nothing was changed. Fix: look at the server, and "
    "at the network to it; if the server does not come back: umount -l %s"
)
#: Stands for the home of root.
ROOT_HOME = "~root"


class Host:
    """What is read and run on the host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.params: dict[str, Any] = module.params

    def fail(self, text: str, **more: Any) -> NoReturn:
        """Give up."""
        self.module.fail_json(msg=text, **more)
        raise AssertionError("fail_json returned")

    def refuse(self, problems: list[Problem]) -> NoReturn:
        """Give up before anything was changed."""
        self.fail("Refused, nothing was changed: {}".format(" ".join(problem.sentence() for problem in problems)))

    def run(self, *argv: str, data: str | None = None) -> tuple[int, str, str]:
        """One command, in English."""
        path = self.module.get_bin_path(argv[0], required=True, opt_dirs=["/usr/sbin", "/sbin"])
        rc, out, err = self.module.run_command([path, *argv[1:]], data=data, environ_update={"LC_ALL": "C"})
        return rc, out, err

    def read(self, *argv: str) -> str:
        """The output of a command that must succeed."""
        rc, out, err = self.run(*argv)
        if rc:
            said = " ".join(f"{err} {out}".split())
            self.fail(f"'{' '.join(argv)}' failed: {said}. Nothing was changed.")
        return out

    def facts(self) -> mode.Facts:
        """Whether SELinux is on, and what there is to know when it is not."""
        loader = None
        if self.module.get_bin_path("grubby", opt_dirs=["/usr/sbin"]):
            rc, out, _err = self.run("grubby", "--info=ALL")
            loader = out if rc == 0 else None
        return mode.Facts(
            enforce=read_kernel("enforce"),
            config=read_text(mode.CONFIG),
            command_line=read_whole("/proc/cmdline"),
            kernel_modules=read_whole("/sys/kernel/security/lsm"),
            policies=tuple(path.split("/")[3] for path in glob.glob("/etc/selinux/*/policy/policy.*")),
            container=in_container(),
            relabel=os.path.exists(mode.RELABEL),
            session=read_whole("/proc/self/attr/current"),
            boot_arguments=loader,
        )

    def homes(self) -> tuple[list[spec.Home], list[str]]:
        """The homes of the users, and the users that do not exist."""
        found, missing = [], []
        for user in self.params["users"]:
            try:
                entry = pwd.getpwnam(user)
            except KeyError:
                missing.append(user)
                continue
            found.append(self._home(user, entry.pw_uid, os.path.normpath(entry.pw_dir)))
        return found, missing

    def _home(self, user: str, uid: int, path: str) -> spec.Home:
        folders = spec.above(path)
        remote = file_system(path) in REMOTE_FILE_SYSTEMS
        if remote and silence.ask([path])[path].silent:
            mount = silence.mount_of(path, read_text(silence.MOUNTINFO))
            where = silence.shown(mount) if mount else path
            self.fail(ERR_SILENT % (path, user, where, silence.SECONDS, mount.path if mount else path))
        types = [line.split(":")[2] for line in self.read("matchpathcon", "-n", f"{path}/.ssh", *folders).splitlines()]
        return spec.Home(
            user=user,
            uid=uid,
            path=path,
            owner=os.stat(path).st_uid if os.path.isdir(path) else None,
            key_type=types[0],
            closed=tuple(folder for folder, kind in zip(folders, types[1:]) if kind == "default_t"),
            remote=remote,
        )

    def local(self) -> dict[records.Identity, str]:
        """The customisations of this host."""
        if not self.module.get_bin_path("semanage", opt_dirs=["/usr/sbin"]):
            packages = " ".join(SEMANAGE_PACKAGES)
            self.fail(
                f"semanage is missing, without which ports and files get no labels: dnf install {packages}. "
                "Nothing was changed.",
                missing_packages=SEMANAGE_PACKAGES,
            )
        return records.parse_export(self.read("semanage", "export"))

    def inherited(
        self, wanted: list[records.Record], local: dict[records.Identity, str], policy: str
    ) -> dict[records.Identity, str]:
        """What holds without customisations, as far as it is asked for: the policy is large."""
        found: dict[records.Identity, str] = {(records.PORT, records.SSH_PORT): records.SSH_PORT_TYPE}
        kinds = {record.kind for record in wanted}
        ports = [record.identity for record in wanted if record.kind == records.PORT]
        if any(identity not in local and identity not in found for identity in ports):
            listed = records.parse_ports(self.read("semanage", "port", "--list", "--noheading"))
            found.update({(records.PORT, key): kind for key, kind in listed.items()})
        if records.FCONTEXT in kinds:
            rules = records.parse_file_contexts(read_text(f"/etc/selinux/{policy}/contexts/files/file_contexts"))
            found.update({(records.FCONTEXT, key): kind for key, kind in rules.items()})
        for record in wanted:
            if record.kind == records.BOOLEAN:
                found[record.identity] = "on" if read_kernel(f"booleans/{record.key}").startswith("1") else "off"
        return found

    def restorecon(self, paths: list[str], *, deep: bool, dry: bool) -> list[str]:
        """Give what exists of these paths the labels of the policy; the paths that had others."""
        patterns = [path.replace(ROOT_HOME, pwd.getpwuid(0).pw_dir, 1) for path in paths]
        existing = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
        if not existing:
            return []
        words = ["restorecon", "-v", *(["-R"] if deep else []), *(["-n"] if dry else [])]
        rc, out, err = self.run(*words, *existing)
        if rc:
            self.fail(f"Cannot label {' '.join(existing)}: {' '.join(err.split())}. What was relabelled stays so.")
        return mode.parse_relabelled(out)


def in_container() -> bool:
    """Whether the kernel belongs to somebody else."""
    if os.path.exists("/run/.containerenv") or os.path.exists("/.dockerenv"):
        return True
    # systemd says so to everybody who asks, where it is the first process.
    return bool(read_whole("/run/systemd/container"))


def file_system(path: str) -> str:
    """The kind of the file system on which a path lies."""
    best, kind = "", ""
    for line in read_whole("/proc/mounts").splitlines():
        fields = line.split()
        mount = fields[1].replace("\\040", " ")
        if f"{path}/".startswith(f"{mount.rstrip('/')}/") and len(mount) >= len(best):
            best, kind = mount, fields[2]
    return kind
