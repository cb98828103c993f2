# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of the module: look, build the kernel module where it is missing, keep nouveau out, say what is left to do.

The order is here. What is read is turned into values in the other files and in ``_gpu_node``.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import commands, driver, gather, tree
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import Mover, replace_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver import (
    nouveau,
    processes,
    readings,
    verdict,
)

PRESENT, ABSENT = "present", "absent"
DKMS_TREE = "/var/lib/dkms"
#: Where the certificate is unless dkms is told otherwise (dkms(8), framework.conf).
DKMS_CERTIFICATE = f"{DKMS_TREE}/mok.pub"
DKMS_SETTINGS = ("/etc/dkms/framework.conf", "/etc/dkms/framework.conf.d/*.conf")
DKMS_SECONDS = 60.0
LISTING_SECONDS = 60.0
DRACUT_SECONDS = 600.0
GRUBBY_SECONDS = 60.0

ERR_NO_LIBRARIES = (
    "The libraries of the driver are not installed (no libnvidia-ml.so in {folders}). Install nvidia-driver-cuda first"
)
ERR_PIN = (
    "The libraries of the driver are {found}, and version is {wanted}. Another installation of the driver is in the "
    "way, or packages were changed past the role. Fix: remove it, then run again"
)
ERR_NO_SOURCE = (
    "{what}. DKMS has no source of it: it knows {known}, and there is no {folder}. Fix: install the package "
    "kmod-nvidia-{package}-dkms of this version again"
)
ERR_BUILD = (
    "{what}. Its package was installed nevertheless: the package's scriptlet ends well when the build has failed. "
    "`{command}` was tried once: {problem}. {log}Fix: remove the cause and run again; the build is repeated then"
)
ERR_ARGUMENTS = "grubby did not set the kernel arguments of all boot entries ({arguments}): {problem}"
ERR_DRACUT = "The initramfs {image} holds nouveau, and a new one could not be made: {problem}. The old one is in place"


class DriverError(Exception):
    """The node is not as it has to be; the text says what is wrong and what to do."""


@dataclass(frozen=True)
class Spec:
    """What is asked for. ``version`` is a branch (``580``) or more of the version; not used to remove."""

    state: str
    version: str
    kind: str
    build_timeout_seconds: float


@dataclass
class Change:
    """What this run did, or would do in check mode."""

    actions: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def line(self, action: str, before: Sequence[str] = (), after: Sequence[str] = ()) -> None:
        """Note one action, and the lines that it takes out and puts in."""
        self.actions.append(action)
        self.before += before
        self.after += after


class Run:
    """The node, what was found on it, and what was changed so far."""

    def __init__(self, mover: Mover, spec: Spec, check_mode: bool, node: gather.Node) -> None:
        self.mover = mover
        self.spec = spec
        self.check_mode = check_mode
        self.node = node
        self.change = Change()
        self.kernel = gather.kernel(node)
        self.driver = gather.drivers(node, self.kernel)
        #: The kernel that boots next. Where none is installed, as in a container, the one that runs.
        self.target: str = self.kernel["boots"] or self.kernel["running"]

    def path(self, path: str) -> str:
        """Where a file of the node is."""
        return os.path.join(self.node.root, path.lstrip("/"))

    def names(self, path: str) -> list[str]:
        """The names in a folder of the node."""
        return tree.names(self.node.root, path)

    def module(self) -> tuple[str, str]:
        """Version and kind of the module for the kernel that boots; empty when there is none."""
        base = [] if self.node.root == "/" else ["-b", self.node.root]
        return driver.parse_modinfo(self.node.ask("modinfo", *base, "-k", self.target, "nvidia").out)

    # --- the kernel module -------------------------------------------------------------------------------------------

    def require_module(self) -> None:
        """The module of the installed libraries exists for the kernel that boots; built once where it does not."""
        version = self.driver["user_space"]
        if not version:
            if self.check_mode:
                return
            raise DriverError(ERR_NO_LIBRARIES.format(folders=", ".join(f"/{one}" for one in driver.LIBRARY_FOLDERS)))
        if not verdict.fits(self.spec.version, version):
            if self.check_mode:
                return
            raise DriverError(ERR_PIN.format(found=version, wanted=self.spec.version))
        if self.module() == (version, self.spec.kind):
            return
        action = f"Build and install the module nvidia {version} for the kernel {self.target}"
        if not self.check_mode:
            self.build(version)
        self.change.line(action, after=[f"module nvidia {version} ({self.spec.kind}) for {self.target}"])

    def build(self, version: str) -> None:
        """One try with dkms; raises with the log's decisive lines when the module is still not there."""
        what = f"There is no module nvidia {version} ({self.spec.kind}) for the kernel {self.target}, which boots next"
        name = self.source(version, what)
        words = ["dkms", "install", "-m", name, "-v", version, "-k", self.target, "--force"]
        answer = self.node.ask(*words, seconds=self.spec.build_timeout_seconds)
        found = self.module()
        if found == (version, self.spec.kind):
            return
        problem = answer.problem or "it ended well" + (f", and the module is {' '.join(found)}" if any(found) else "")
        log = self.log(name, version, answer)
        raise DriverError(ERR_BUILD.format(what=what, command=" ".join(words), problem=problem.rstrip("."), log=log))

    def source(self, version: str, what: str) -> str:
        """The name under which DKMS knows this version, or could learn it."""
        entries = readings.dkms_entries(self.node.ask("dkms", "status", seconds=DKMS_SECONDS).out)
        names = [entry.name for entry in entries if entry.version == version]
        names += [name for name in readings.DKMS_NAMES if os.path.isdir(self.path(f"/usr/src/{name}-{version}"))]
        if names:
            return names[0]
        known = ", ".join(sorted({f"{entry.name} {entry.version}" for entry in entries})) or "no version of nvidia"
        package = "open" if self.spec.kind == driver.OPEN else "latest"
        folder = f"/usr/src/{readings.DKMS_NAMES[0]}-{version}"
        raise DriverError(ERR_NO_SOURCE.format(what=what, known=known, folder=folder, package=package))

    def log(self, name: str, version: str, answer: commands.Answer) -> str:
        """The build log and its decisive lines, as a sentence with a blank after it."""
        folder = f"{DKMS_TREE}/{name}/{version}"
        named = readings.log_path(answer.out + answer.problem)
        # dkms moves the log below the kernel and the architecture when a build ends well.
        kept = [f"{folder}/{self.target}/{one}/log/make.log" for one in self.names(f"{folder}/{self.target}")]
        for path in (named, f"{folder}/build/make.log", *kept):
            lines = readings.decisive_lines(self.node.read(path)) if path else []
            if lines:
                return f"{path} says: {' | '.join(lines)}. "
        return f"There is no log in {folder}. "

    def remove_leftovers(self) -> None:
        """Take out of DKMS what the packages' scriptlets have left there."""
        entries = readings.dkms_entries(self.node.ask("dkms", "status", seconds=DKMS_SECONDS).out)
        for name, version in sorted({(entry.name, entry.version) for entry in entries}):
            if not self.check_mode:
                answer = self.node.ask("dkms", "remove", "-m", name, "-v", version, "--all", seconds=DKMS_SECONDS)
                if answer.problem:
                    raise DriverError(f"DKMS keeps {name} {version} although its package is gone: {answer.problem}")
            self.change.line(f"Remove {name} {version} from DKMS", before=[f"DKMS: {name} {version}"])

    # --- nouveau -----------------------------------------------------------------------------------------------------

    def keep_nouveau_out(self) -> None:
        """Files first, because a new initramfs reads them."""
        for path, text in nouveau.FILES.items():
            there = self.node.read(path)
            if there == text.strip():
                continue
            if not self.check_mode:
                replace_file(self.mover, self.path(path), text)
            self.change.line(f"Write {path}", there.splitlines(), text.splitlines())
        self.set_arguments(nouveau.missing)
        if not self.is_settled:
            self.clean_initramfs()

    def let_nouveau_in(self) -> None:
        """Take back only where our file shows that it was us."""
        ours = [path for path in nouveau.FILES if tree.exists(self.node.root, path)]
        if nouveau.MODPROBE_PATH in ours:
            self.set_arguments(nouveau.leftovers)
        for path in ours:
            there = self.node.read(path)
            if not self.check_mode:
                os.unlink(self.path(path))
            self.change.line(f"Remove {path}", before=there.splitlines())

    def entries(self) -> list[readings.BootEntry]:
        """What the boot loader offers; empty without grubby, as in a container."""
        return readings.boot_entries(self.node.ask("grubby", "--info=ALL", seconds=GRUBBY_SECONDS).out)

    def set_arguments(self, decide: Callable[[Sequence[readings.BootEntry]], dict[str, str]]) -> None:
        """Set what is decided for all entries, take out what has an empty value there, and read it back."""
        entries = self.entries()
        wanted = decide(entries)
        if not wanted:
            return
        words = [
            *(f"--args={name}={value}" for name, value in wanted.items() if value),
            *(f"--remove-args={name}" for name, value in wanted.items() if not value),
        ]
        shown = " ".join(f"{name}={value}" if value else f"no {name}" for name, value in wanted.items())
        if not self.check_mode:
            answer = self.node.ask("grubby", "--update-kernel=ALL", *words, seconds=GRUBBY_SECONDS)
            if decide(self.entries()):
                raise DriverError(ERR_ARGUMENTS.format(arguments=shown, problem=answer.problem or "it ended well"))
        values = [(name, entry.arguments.get(name)) for entry in entries for name in wanted]
        before = sorted({f"{name}={value}" for name, value in values if value})
        after = [f"{name}={value}" for name, value in wanted.items() if value]
        self.change.line(f"Set the kernel arguments of all boot entries: {shown}", before, after)

    @property
    def is_settled(self) -> bool:
        """Whether the node runs what it will boot, with this driver and without nouveau: no initramfs to look into."""
        runs = self.driver["loaded"] == self.driver["user_space"] != ""
        return bool(runs and self.kernel["running"] == self.target and not self.driver["nouveau_loaded"])

    def clean_initramfs(self) -> None:
        """Make the initramfs of the kernel that boots anew when nouveau is in it; the old one stays until then."""
        images = [entry.initramfs for entry in self.entries() if entry.kernel == self.target and entry.initramfs]
        image = images[0] if images else f"/boot/initramfs-{self.target}.img"
        if not tree.exists(self.node.root, image) or not self.holds_nouveau(image):
            return
        if not self.check_mode:
            new = f"{image}.gpu-cluster"
            try:
                answer = self.node.ask("dracut", "--force", self.path(new), self.target, seconds=DRACUT_SECONDS)
                problem = answer.problem
                if not problem and not tree.exists(self.node.root, new):
                    problem = "dracut ended well and made none"
                if not problem and self.holds_nouveau(new):
                    problem = "the new one holds it too"
                if problem:
                    raise DriverError(ERR_DRACUT.format(image=image, problem=problem))
                self.mover.atomic_move(self.path(new), self.path(image))
            finally:
                if os.path.lexists(self.path(new)):
                    os.unlink(self.path(new))
        self.change.line(f"Make {image} without nouveau", [f"{image}: nouveau"])

    def holds_nouveau(self, image: str) -> bool:
        """Whether an initramfs holds nouveau."""
        listing = self.node.ask("lsinitrd", self.path(image), seconds=LISTING_SECONDS)
        return readings.holds_module(listing.out, nouveau.MODULE)

    # --- what is left to do ------------------------------------------------------------------------------------------

    def by_hand(self) -> list[str]:
        """What only a person can do: Secure Boot asks at the console whether a key is to be trusted."""
        if not gather.secure_boot(tree.read_bytes(self.node.root, gather.SECURE_BOOT)):
            return []
        paths = [path for pattern in DKMS_SETTINGS for path in sorted(glob.glob(self.path(pattern)))]
        settings = "\n".join(tree.read("/", path) for path in paths)
        certificate = readings.mok_certificate(settings) or DKMS_CERTIFICATE
        said = self.node.ask("mokutil", "--test-key", self.path(certificate))
        return verdict.secure_boot_steps(certificate, readings.key_state(said.out + said.problem))

    def result(self) -> dict[str, Any]:
        """What the module returns."""
        users = processes.gpu_users(self.path("/proc"))
        version, kind = self.module()
        facts = {**self.driver, "running": self.kernel["running"]}
        by_hand: list[str] = []
        if self.spec.state == ABSENT:
            reasons = verdict.reasons_after_removal(facts)
        else:
            reasons = verdict.reasons(facts, self.driver["user_space"], self.spec.kind, self.target)
            # A kernel that has loaded the module knows its key.
            by_hand = self.by_hand() if reasons else []
        return {
            "changed": bool(self.change.actions),
            "actions": self.change.actions,
            "kernel": self.target,
            "version": self.driver["user_space"],
            "module": {"version": version, "kind": kind},
            "reboot_reasons": reasons,
            "by_hand": by_hand,
            "gpu_processes": [dict(user._asdict(), is_service=user.is_service) for user in users],
            "busy": processes.busy(users),
            "diff": {"before": _lines(self.change.before), "after": _lines(self.change.after)},
        }


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def outcome(mover: Mover, spec: Spec, check_mode: bool, node: gather.Node) -> dict[str, Any]:
    """The result of the module; raises DriverError. The boot is only changed when the module that it needs is there."""
    run = Run(mover, spec, check_mode, node)
    if spec.state == ABSENT:
        run.remove_leftovers()
        run.let_nouveau_in()
    else:
        run.require_module()
        run.keep_nouveau_out()
    return run.result()
