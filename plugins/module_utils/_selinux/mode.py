# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether SELinux is on, why it is not, what it takes to turn it on, and what speaks against enforcing now. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

CONFIG = "/etc/selinux/config"
RELABEL = "/.autorelabel"
ENFORCING, PERMISSIVE, DISABLED = "enforcing", "permissive", "disabled"
#: The argument with which the kernel leaves SELinux out.
OFF_ARGUMENT = "selinux=0"

_SETTING = re.compile(r"^[ \t]*SELINUX[ \t]*=[ \t]*(\S*)[^\n]*$", re.MULTILINE)
_TYPE = re.compile(r"^[ \t]*SELINUXTYPE[ \t]*=[ \t]*(\S+)", re.MULTILINE)

WHY_CONTAINER = "this host is a container, and SELinux belongs to the kernel of the machine that runs it"
WHY_ARGUMENT = "the kernel was started with selinux=0"
WHY_OTHER_MODULE = "the kernel was started with %s, which leaves SELinux out"
WHY_NO_SUPPORT = "this kernel has no SELinux among its security modules (%s)"
WHY_CONFIG = f"{CONFIG} says SELINUX=disabled"
WHY_NO_CONFIG = f"there is no {CONFIG}"
WHY_NO_POLICY = "no policy is installed below /etc/selinux/%s"
WHY_NOT_LOADED = f"{CONFIG} says SELINUX=%s, but no policy was loaded at boot: the host was not restarted since"

STEP_MACHINE = "turn it on on the machine that runs this container"
STEP_POLICY = "dnf install selinux-policy-targeted policycoreutils"
STEP_ARGUMENT = 'grubby --update-kernel=ALL --remove-args="selinux=0"'
STEP_ARGUMENT_BY_HAND = "take selinux=0 off the kernel's arguments in the boot loader (this host has no grubby)"
STEP_OTHER_MODULE = 'grubby --update-kernel=ALL --remove-args="%s"'
STEP_SUPPORT = "boot a kernel with SELinux, as those of EL9 and EL10 are"
STEP_CONFIG = f"set SELINUX=permissive in {CONFIG} (permissive first: nothing is denied while labels are missing)"
STEP_RELABEL = f"touch {RELABEL}"
STEP_REBOOT = "reboot; the host labels every file, restarts by itself and comes up permissive"
STEP_AGAIN = "run this role again: it goes over to enforcing when the labels are right"

NOTE_ARGUMENT = (
    "the kernel was started with enforcing=0, which wins over %s: after the next boot this host is permissive again, "
    'unless `grubby --update-kernel=ALL --remove-args="enforcing=0"` is run before'
)

OBSTACLE_RELABEL = (
    f"{RELABEL} is there: a relabelling waits for the next boot, so labels are not to be trusted yet; reboot first"
)
OBSTACLE_SESSION = (
    "this session runs as %s and not as a user: sshd was started without labels, and enforcing would end logins; "
    f"touch {RELABEL} and reboot"
)
OBSTACLE_LABELS = (
    "these files have no right labels, and enforcing would keep programs from them: %s; "
    "run `restorecon -RF` on them, or, where the host once ran without SELinux, touch %s and reboot"
)

#: Contexts that no login has on a host that was labelled before its services started.
_NO_LOGIN = ("kernel_t", "init_t", "unlabeled_t", "sshd_t")


@dataclass(frozen=True)
class Facts:
    """What was read on the host.

    ``enforce`` is what the kernel says: ``1``, ``0``, or empty where no policy is loaded. ``kernel_modules`` is the
    list of security modules in use, ``policies`` the folders below /etc/selinux that hold a policy, ``boot_arguments``
    those that the boot loader has for the next boot (None: no grubby to ask).
    """

    enforce: str
    config: str
    command_line: str
    kernel_modules: str
    policies: tuple[str, ...]
    container: bool = False
    relabel: bool = False
    session: str = ""
    boot_arguments: str | None = None

    @property
    def running(self) -> str:
        """The mode of the running kernel."""
        return {"1": ENFORCING, "0": PERMISSIVE}.get(self.enforce, DISABLED)

    @property
    def configured(self) -> str:
        """What the file says for the next boot; empty when it says nothing."""
        found = _SETTING.search(self.config)
        return found.group(1).lower() if found else ""

    @property
    def policy(self) -> str:
        """The name of the policy, such as targeted."""
        found = _TYPE.search(self.config)
        return found.group(1) if found else "targeted"


@dataclass(frozen=True)
class Disabled:
    """Why a host runs without SELinux, and how it gets it. ``by_hand`` are the steps that this role never does."""

    causes: tuple[str, ...]
    steps: tuple[str, ...]
    by_hand: tuple[str, ...] = ()

    def sentence(self) -> str:
        """For warnings and failures."""
        steps = "; ".join(f"({number}) {step}" for number, step in enumerate(self.steps, 1))
        return f"SELinux is disabled on this host: {', and '.join(self.causes)}. To turn it on: {steps}"


def config_with(text: str, mode: str) -> str:
    """The configuration with another mode and everything else as it was."""
    line = f"SELINUX={mode}"
    if not _SETTING.search(text):
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"
    return _SETTING.sub(line, text)


def diagnose(facts: Facts) -> Disabled:
    """Why a host without SELinux has none, and the steps in their order."""
    if facts.container:
        return Disabled((WHY_CONTAINER,), (STEP_MACHINE,), (STEP_MACHINE,))
    words = facts.command_line.split()
    other = next((word for word in words if word.startswith(("security=", "lsm=")) and "selinux" not in word), "")
    causes: list[str] = []
    steps: list[str] = []
    by_hand: list[str] = []
    if OFF_ARGUMENT in words:
        causes.append(WHY_ARGUMENT)
        if facts.boot_arguments is None:
            by_hand.append(STEP_ARGUMENT_BY_HAND)
        elif OFF_ARGUMENT in facts.boot_arguments:
            steps.append(STEP_ARGUMENT)
    elif other:
        causes.append(WHY_OTHER_MODULE % other)
        by_hand.append(STEP_OTHER_MODULE % other)
    elif facts.kernel_modules and "selinux" not in facts.kernel_modules.split(","):
        causes.append(WHY_NO_SUPPORT % facts.kernel_modules)
        by_hand.append(STEP_SUPPORT)
    if not facts.config:
        causes.append(WHY_NO_CONFIG)
        by_hand.append(STEP_POLICY)
    elif facts.policy not in facts.policies:
        causes.append(WHY_NO_POLICY % facts.policy)
        by_hand.append(STEP_POLICY)
    if facts.configured == DISABLED:
        causes.append(WHY_CONFIG)
    if not causes:
        causes.append(WHY_NOT_LOADED % facts.configured)
    steps = [*by_hand, *steps, STEP_CONFIG, STEP_RELABEL, STEP_REBOOT, STEP_AGAIN]
    return Disabled(tuple(causes), tuple(steps), tuple(by_hand))


def boot_note(facts: Facts) -> str:
    """What undoes enforcing at the next boot; empty when nothing does."""
    return NOTE_ARGUMENT % CONFIG if "enforcing=0" in facts.command_line.split() else ""


def obstacles(facts: Facts, mislabelled: Sequence[str]) -> list[str]:
    """Why a permissive host must not enforce from one moment to the next."""
    found = []
    if facts.relabel:
        found.append(OBSTACLE_RELABEL)
    fields = facts.session.split(":")
    if len(fields) > 2 and fields[2] in _NO_LOGIN:
        found.append(OBSTACLE_SESSION % fields[2])
    if mislabelled:
        found.append(OBSTACLE_LABELS % (", ".join(mislabelled), RELABEL))
    return found


def parse_relabelled(text: str) -> list[str]:
    """The paths that restorecon relabelled, or would relabel with -n."""
    found = re.findall(r"^(?:Relabeled|Would relabel) (.*) from \S+ to \S+$", text, re.MULTILINE)
    return [str(path) for path in found]
