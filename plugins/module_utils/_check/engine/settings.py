# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a check: the variables of role cluster_check without their prefix, with their types and bounds.

A new setting is one line in ``Settings``, besides its option and default of the role and the place that uses it.  Its
range is in limits.py, where the programs of the nodes have it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Callable, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    deadlines,
    mpi_plan,
    rails,
    speed_limits,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import BACKENDS

PREFIX = "cluster_check_"
MOST_RANKS = 4096
MOST_LIFETIME = 86400
#: Narrower than what the nodes take, for the check adds to them.
DEADLINE = range(1, 7201)
DEADLINES = ("deadline_seconds", "openmpi_deadline_seconds")

ERR_VALUE = f"{PREFIX}%s is %s, expected %s."
ERR_UNKNOWN = f"{PREFIX}%s is no setting of the check."
ERR_STRATEGY = (
    "the play runs with strategy %s, which lets a host go ahead while others have not started: there is no cluster to "
    "check then. Fix: run it with strategy linear, in the play or with ANSIBLE_STRATEGY."
)
ERR_MEMBERS = (
    f"{PREFIX}members has %d member(s), an all_reduce needs at least 2 (world of one). "
    "Put all nodes into the members group of the inventory."
)
ERR_OUTSIDE = f"hosts %s are in the play but not in {PREFIX}members."
ERR_SERIAL = (
    "the play runs with serial: %d of %d hosts in this batch. The check needs all hosts in one batch; "
    "remove serial from the play."
)
ERR_RANKS = (
    f"{PREFIX}ranks_per_node = %d gives %d ranks on all members, expected at most {MOST_RANKS}: "
    "with more the sums are not exact. Use fewer for the check."
)
ERR_DEADLINE = f"{PREFIX}%s = %d, expected {DEADLINE[0]} to {DEADLINE[-1]}."
ERR_LIFETIME = (
    f"the check would need up to %d s for %d hosts with %d fork(s), expected at most {MOST_LIFETIME}. "
    f"Raise forks, or lower {PREFIX}samples or the probe timeout."
)
ERR_PORTS = f"{PREFIX}rendezvous_first = %d is above {PREFIX}rendezvous_last = %d, expected the lower port first."


class SettingsError(ValueError):
    """All that is wrong, a sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = list(problems)


class Play(NamedTuple):
    """How a check is called.

    hosts: those that can be asked.  selected: those that were meant, with the ones that are lost already.  batch: how
    many of the hosts are asked together.  forks: how many of them at the same time.  strategy: as Ansible calls it.
    """

    hosts: Sequence[str]
    selected: Sequence[str]
    batch: int
    forks: int
    strategy: str = "linear"


def text(value: Any) -> str:
    """ValueError says what was expected, here and in the other readers."""
    if isinstance(value, str):
        # A string that knows where it comes from becomes a plain one.
        return str(value)
    raise ValueError("a text")


def flag(value: Any) -> bool:
    found = {"true": True, "yes": True, "false": False, "no": False}.get(str(value).lower())
    if found is None:
        raise ValueError("true or false")
    return found


def whole(value: Any) -> int:
    """Also from text, which templates make of numbers."""
    try:
        if not isinstance(value, bool) and int(value) == float(value):
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError("a whole number")


def number(value: Any) -> float:
    if not isinstance(value, bool):
        for read_text in (int, float):
            try:
                return read_text(str(value))
            except ValueError:
                pass
    raise ValueError("a number")


def plain(value: Any) -> Any:
    """What JSON has, for what somebody else judges.

    A dictionary or a text of Ansible may be one that is evaluated when it is read, or that knows where it comes from.
    """
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    kind = next((one for one in (bool, int, float, str) if isinstance(value, one)), None)
    return kind(value) if kind else value if value is None else str(value)


def mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        found: dict[str, Any] = plain(value)
        return found
    raise ValueError("a dictionary")


def each(read: Callable[[Any], Any], what: str) -> Callable[[Any], list[Any]]:
    """The reader of a list."""

    def read_list(value: Any) -> list[Any]:
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [read(one) for one in value]
        raise ValueError(f"a list of {what}")

    return read_list


def one_of(*choices: str) -> Callable[[Any], str]:
    """The reader of one of these words."""

    def read_word(value: Any) -> str:
        if value in choices:
            return str(value)
        raise ValueError(", ".join(choices))

    return read_word


def openmpi(value: Any) -> str:
    """YAML reads yes and no as true and false."""
    try:
        return mpi_plan.wanted_value(value)
    except ValueError:
        raise ValueError(", ".join(mpi_plan.CHOICES)) from None


def by(read: Callable[[Any], Any]) -> dict[str, Any]:
    """The reader of a field."""
    return {"read": read}


def setting(default: Any, read: Callable[[Any], Any]) -> Any:
    """A field with its reader."""
    return field(default=default, metadata=by(read))  # pylint: disable=invalid-field-call  # for the class below


@dataclass(frozen=True)
class Settings:
    """All of them, as meta/argument_specs.yml of the role documents them; the defaults are the role's."""

    members: list[str] = field(default_factory=list, metadata=by(each(text, "names")))
    known_members: list[dict[str, Any]] = field(default_factory=list, metadata=by(each(mapping, "members")))
    port_plan: dict[str, Any] = field(default_factory=dict, metadata=by(mapping))
    labels: dict[str, Any] = field(default_factory=dict, metadata=by(mapping))
    strict: bool = setting(False, flag)
    limits: Any = field(default_factory=dict, metadata=by(plain))
    address: str = setting("", text)
    interface: str = setting("", text)
    rendezvous_first: int = setting(29500, whole)
    rendezvous_last: int = setting(29599, whole)
    backend: str = setting("gloo", one_of(*BACKENDS))
    torch_python: str = setting("/opt/gpu-cluster/torch/bin/python", text)
    openmpi_prefix: str = setting("/usr/lib64/openmpi", text)
    openmpi: str = setting("auto", openmpi)
    openmpi_deadline_seconds: int = setting(20, whole)
    pairs: bool = setting(True, flag)
    user: str = setting("", text)
    ranks_per_node: int = setting(1, whole)
    sizes_bytes: list[int] = field(
        default_factory=[4, 4096, 65536, 1048576, 4194304, 16777216].copy, metadata=by(each(whole, "whole numbers"))
    )
    warmup: int = setting(5, whole)
    iterations: int = setting(20, whole)
    max_iterations: int = setting(60, whole)
    size_seconds: float = setting(0.5, number)
    plateau: bool = setting(False, flag)
    samples: int = setting(4, whole)
    rails: str = setting("all", one_of("all", "first"))
    probe_timeout_seconds: float = setting(3, number)
    timeout_seconds: int = setting(8, whole)
    deadline_seconds: int = setting(40, whole)
    pins: dict[str, Any] = field(default_factory=dict, metadata=by(mapping))
    progress: str = setting("auto", one_of("auto", "always", "never"))
    report_dir: str = setting("", text)

    @property
    def names_sizes(self) -> bool:
        """Whether limits name sizes; these are measured then, whatever it takes."""
        return bool((self.limits or {}).get("sizes"))

    @property
    def further_rails(self) -> dict[str, list[dict[str, str]]]:
        """Host to its rails but the first, as far as they are probed."""
        return rails.by_host(self.known_members if self.rails == "all" else [])

    @property
    def probe_deadline_seconds(self) -> int:
        """Until the results of the probes are there."""
        most_rails = 1 + max(map(len, self.further_rails.values()), default=0)
        return deadlines.probe(len(self.members), self.samples, most_rails, self.probe_timeout_seconds)

    def lifetime_seconds(self, skew_seconds: int) -> int:
        """Of a worker that nobody collects."""
        ranks = deadlines.ranks(self.deadline_seconds, skew_seconds, self.backend)
        return deadlines.lifetime(self.probe_deadline_seconds, ranks, skew_seconds)


READERS: dict[str, Callable[[Any], Any]] = {one.name: one.metadata["read"] for one in fields(Settings)}
#: What hosts may have different values of.
OF_HOSTS = ("address", "interface", "torch_python", "openmpi_prefix", "user")


def read(values: Mapping[str, Any], play: Play) -> Settings:
    """The settings.  values: by their names without prefix; those that are left out keep their defaults.

    SettingsError with everything that is wrong at once, also with the way the check is called.
    """
    found, wrong = _typed(values)
    settings = Settings(**found)
    wrong += [*_of_play(settings, play), *_of_deadlines(settings, play), *_of_values(settings)]
    if wrong:
        raise SettingsError(list(dict.fromkeys(wrong)))
    return settings


def read_hosts(values: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Host to what it has of its own of ``OF_HOSTS``.  SettingsError with everything that is wrong."""
    found, wrong = {}, []
    for host, own in values.items():
        found[host], problems = _typed({name: value for name, value in own.items() if name in OF_HOSTS})
        wrong += [f"{host}: {problem}" for problem in problems]
    if wrong:
        raise SettingsError(wrong)
    return found


def _typed(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The values that are of their type, and a sentence for each other one."""
    found, wrong = {}, []
    for name, value in values.items():
        if name not in READERS:
            wrong.append(ERR_UNKNOWN % name)
            continue
        try:
            found[name] = READERS[name](value)
        except ValueError as error:
            wrong.append(ERR_VALUE % (name, shown(value), error))
    return found, wrong


def _of_play(settings: Settings, play: Play) -> list[str]:
    """What is wrong with the hosts, and with the way they are called."""
    wrong = []
    if "free" in play.strategy or "host_pinned" in play.strategy:
        wrong.append(ERR_STRATEGY % play.strategy)
    if len(settings.members) < 2:
        wrong.append(ERR_MEMBERS % len(settings.members))
    outside = [host for host in play.selected if host not in settings.members]
    if outside:
        wrong.append(ERR_OUTSIDE % ", ".join(outside))
    if play.batch != len(play.hosts):
        wrong.append(ERR_SERIAL % (play.batch, len(play.hosts)))
    ranks = len(settings.members) * settings.ranks_per_node
    if ranks > MOST_RANKS:
        wrong.append(ERR_RANKS % (settings.ranks_per_node, ranks))
    return wrong


def _of_deadlines(settings: Settings, play: Play) -> list[str]:
    values = {name: getattr(settings, name) for name in DEADLINES}
    wrong = [ERR_DEADLINE % (name, value) for name, value in values.items() if value not in DEADLINE]
    # What is out of its range by itself would only say so a second time.
    if not wrong and not _out_of_range(settings):
        seconds = settings.lifetime_seconds(deadlines.skew(len(play.hosts), play.forks))
        if seconds > MOST_LIFETIME:
            wrong.append(ERR_LIFETIME % (seconds, len(play.hosts), play.forks))
    return wrong


def _of_values(settings: Settings) -> list[str]:
    wrong = []
    if settings.rendezvous_first > settings.rendezvous_last:
        wrong.append(ERR_PORTS % (settings.rendezvous_first, settings.rendezvous_last))
    wrong += [one.sentence() for one in speed_limits.read(settings.limits, settings.sizes_bytes)[1]]
    return wrong + [f"{PREFIX}{problem}." for problem in _out_of_range(settings)]


def _out_of_range(settings: Settings) -> list[str]:
    judged = [name for name in READERS if name in limits.LIMITS and name not in DEADLINES]
    return limits.out_of_range({name: getattr(settings, name) for name in judged})
