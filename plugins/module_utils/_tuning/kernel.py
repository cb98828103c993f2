# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running kernel, brought to what is wanted and read back.

Pure apart from the injected ``Kernel``: the same core runs on a node and, with a dictionary behind it, in a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters import Parameter
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.values import (
    CONGESTION_CONTROL,
    KNOWN,
    key_of,
    normalised,
)

#: The variable that says what to do about keys that cannot be set.
UNSETTABLE = "kernel_tuning_unsettable"

ERR_UNSETTABLE = "%s cannot be set here (%s); wanted %s, the kernel has %s"
ERR_NO_SUCH_KEY = "the kernel has no such key"
ERR_NOT_TAKEN = "was written, but the kernel has %s"
ERR_MISTYPED = "neither this kernel nor the collection knows such a key"
ERR_CONGESTION = "the kernel has no such congestion control; it has %s%s"
ERR_REFUSED = "cannot be set here (%s), the kernel has %s"


@dataclass(frozen=True)
class Unsettable:
    """A key that this kernel does not let us set."""

    key: str
    wanted: str
    running: str
    why: str

    def sentence(self) -> str:
        """For warnings and failures."""
        return ERR_UNSETTABLE % (self.key, self.why, self.wanted or "nothing", self.running or "nothing")


class Kernel(Protocol):
    """Where running values are read and written."""

    def read(self, key: str) -> str | None:
        """The running value, or None when there is no such key."""

    def refusal(self, key: str) -> str:
        """Why the key cannot be written, empty when it can. Changes nothing."""

    def write(self, key: str, value: str) -> str:
        """Set the running value; the reason when it was refused, else empty."""


@dataclass(frozen=True)
class Plan:
    """What differs, and what of it cannot be set."""

    before: dict[str, str]
    pending: tuple[Parameter, ...]
    unsettable: tuple[Unsettable, ...]


@dataclass(frozen=True)
class Outcome:
    """What a run did, or in check mode would do, to the running kernel."""

    before: dict[str, str]
    after: dict[str, str]
    unsettable: tuple[Unsettable, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a running value is another one than before."""
        return self.before != self.after


class RefusedError(Exception):
    """The kernel refused keys and the caller wants that to fail; what had been set was put back."""

    def __init__(self, unsettable: Sequence[Unsettable]) -> None:
        super().__init__("; ".join(entry.sentence() for entry in unsettable))
        self.unsettable = tuple(unsettable)


def congestion_problems(
    parameters: Sequence[Parameter], available: Sequence[str], loadable: Sequence[str]
) -> list[Problem]:
    """Whether there is such a congestion control: in the kernel, or as a module that it loads when asked for it."""
    found = []
    for parameter in parameters:
        if key_of(parameter.path) != CONGESTION_CONTROL or parameter.wanted in (*available, *loadable):
            continue
        more = sorted(set(loadable) - set(available))
        modules = ", and can load {}".format(", ".join(more)) if more else ", and no module with another one"
        near = nearest(parameter.wanted, [*available, *loadable], cutoff=0.5)
        fix = f"write {near}" if near else "choose one of these, or remove the entry"
        found.append(parameter.problem(ERR_CONGESTION % (", ".join(available) or "none", modules), fix))
    return found


def mistyped_problems(
    parameters: Sequence[Parameter], kernel: Kernel, all_keys: Iterable[str], *, report: bool
) -> list[Problem]:
    """Keys that nobody knows, with the nearest known one.

    With ``report`` a key that this kernel does not have is only a problem when it looks like one that we know: in a
    container many keys are missing, and the site asked to have them reported.
    """
    missing = [
        parameter
        for parameter in parameters
        if key_of(parameter.path) not in KNOWN and kernel.read(parameter.key) is None
    ]
    if not missing:
        return []
    # Keys of an interface are no typing errors of those of "all" or "default".
    names = {key for key in KNOWN if ".conf." not in key and ".neigh." not in key} if report else {*KNOWN, *all_keys}
    found = []
    for parameter in missing:
        near = nearest(key_of(parameter.path), names, cutoff=0.85)
        if near:
            found.append(parameter.problem(ERR_MISTYPED, f"write {near}"))
        elif not report:
            found.append(parameter.problem(ERR_MISTYPED, "remove it, or load the module of the kernel that brings it"))
    return found


def unsettable_problems(
    parameters: Sequence[Parameter], unsettable: Sequence[Unsettable], named: Sequence[str]
) -> list[Problem]:
    """For those who want such keys to fail. ``named`` are variables that another sentence names already."""
    by_key = {parameter.key: parameter for parameter in parameters}
    fix = f"remove it from your list, or set {UNSETTABLE}: report when this node is a container"
    found = [
        by_key[entry.key].problem(ERR_REFUSED % (entry.why, entry.running or "nothing"), fix) for entry in unsettable
    ]
    return [problem for problem in found if problem.variable not in named]


def compare(parameters: Sequence[Parameter], kernel: Kernel) -> Plan:
    """What differs from the running kernel. Changes nothing."""
    before: dict[str, str] = {}
    pending: list[Parameter] = []
    unsettable: list[Unsettable] = []
    for parameter in parameters:
        found = kernel.read(parameter.key)
        running = before[parameter.key] = normalised(parameter.key, found) if found is not None else ""
        if found is not None and running == parameter.wanted:
            continue
        why = ERR_NO_SUCH_KEY if found is None else kernel.refusal(parameter.key)
        if why:
            unsettable.append(Unsettable(parameter.key, parameter.wanted, running, why))
        else:
            pending.append(parameter)
    return Plan(before, tuple(pending), tuple(unsettable))


def expected(plan: Plan) -> Outcome:
    """What ``settle`` would do."""
    after = {**plan.before, **{parameter.key: parameter.wanted for parameter in plan.pending}}
    return Outcome(plan.before, after, plan.unsettable)


def put_back(kernel: Kernel, outcome: Outcome) -> None:
    """The running values as they were before."""
    for key, value in outcome.after.items():
        if value != outcome.before[key]:
            kernel.write(key, outcome.before[key])


def settle(plan: Plan, kernel: Kernel, *, report: bool) -> Outcome:
    """Set what differs and read it back.

    Without ``report`` a key that was refused, or holds something else than was written, puts all others back and raises
    ``RefusedError``.
    """
    after = dict(plan.before)
    refused = []
    for parameter in plan.pending:
        why = kernel.write(parameter.key, parameter.wanted)
        running = after[parameter.key] = normalised(parameter.key, kernel.read(parameter.key) or "")
        if not why and running != parameter.wanted:
            why = ERR_NOT_TAKEN % running
        if why:
            refused.append(Unsettable(parameter.key, parameter.wanted, running, why))
    outcome = Outcome(plan.before, after, (*plan.unsettable, *refused))
    if refused and not report:
        put_back(kernel, outcome)
        raise RefusedError(refused)
    return outcome
