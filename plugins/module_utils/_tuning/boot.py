# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file has the last word about a kernel parameter when the node boots, or when tuned starts. Pure.

As ``systemd-sysctl`` works (src/sysctl/sysctl.c, checked with version 252): of files with one name that of the earlier
folder counts, an empty one masks the others; then they are read by name, and the last assignment of a key wins. A
key with a leading ``-`` and no value is not set at all. A pattern (``net.ipv4.conf.*.rp_filter``) never wins over a key
that any file names in full, so it cannot override ours.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import whole_number
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.rails import SYSCTL_PATH as RAILS_PATH
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.dropins import ConfFile, Override, in_order
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters import Parameter
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.values import normalised, path_of

#: Where systemd-sysctl reads, the most important folder first.
FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
#: Where tuned looks for a profile: the first hit counts. Folders named profiles exist since version 2.23.
TUNED_FOLDERS = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
TUNED_SETTINGS = "/etc/tuned/tuned-main.conf"
#: Read last of all by tuned (plugin_sysctl.py), by systemd only through the link /etc/sysctl.d/99-sysctl.conf.
SYSCTL_CONF = "/etc/sysctl.conf"

EFFECT_SETS = "is read after %s and sets it to '%s' at the next boot"
EFFECT_TAKES_OUT = "is read after %s and takes it out, so that it has the kernel's own value after the next boot"
EFFECT_MASKS = "stands in an earlier folder under the same name, so that %s is not read at boot"
EFFECT_TUNED = "sets it to '%s' whenever tuned starts: profile %s, with reapply_sysctl = 0 in " + TUNED_SETTINGS
EFFECT_TUNED_EXCLUDED = (
    "sets it to '%s' whenever tuned starts: profile %s, with the key among reapply_sysctl_exclude in " + TUNED_SETTINGS
)
EFFECT_TUNED_LAST = "sets it to '%s' whenever tuned starts, which reads that file last"
ERR_RAILS = f"static_network set it to '%s' for its rails, in {RAILS_PATH}; this one would win"
ERR_FOLDER = "the file would not be read at boot: expected a name that ends in .conf, in one of {}".format(
    ", ".join(FOLDERS)
)

_PATTERN = re.compile(r"[*?\[]")


def parse(text: str) -> dict[str, str | None]:
    """The keys that a file sets, as paths below ``/proc/sys``. None: it takes the key out. Patterns are left out."""
    result: dict[str, str | None] = {}
    for line in (line.strip() for line in text.splitlines()):
        if not line or line[0] in "#;":
            continue
        key, equals, value = line.partition("=")
        excluded = key.startswith("-")
        path = path_of(key.lstrip("-").strip())
        if not path or _PATTERN.search(path) or not (equals or excluded):
            continue
        result[path] = normalised(path, value) if equals else None
    return result


@dataclass(frozen=True)
class Tuned:
    """What tuned will do when it starts: the profile's settings, and whether it applies the sysctl files after them.

    ``excluded``: patterns of keys that it leaves out then (tuned 2.27 and newer).
    """

    profile: str = ""
    reapply: bool = True
    settings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    excluded: Sequence[str] = ()

    def applies_again(self, key: str) -> bool:
        """Whether the sysctl files have the last word about a key."""
        return self.reapply and not any(fnmatchcase(key, pattern) for pattern in self.excluded)


def folder_problems(path: str) -> list[Problem]:
    """Whether a file at this place is read at boot."""
    if os.path.dirname(path) in FOLDERS and path.endswith(".conf"):
        return []
    return [Problem("path", path, ERR_FOLDER, "choose /etc/sysctl.d/90-gpu-cluster.conf")]


def rails_problems(parameters: Sequence[Parameter], files: Iterable[ConfFile]) -> list[Problem]:
    """Wanted keys that static_network sets to another value for its rails."""
    rails = {path: value for file in files if file.path == RAILS_PATH for path, value in parse(file.text).items()}
    return [
        parameter.problem(ERR_RAILS % rails[parameter.path], "remove it from your list")
        for parameter in parameters
        if rails.get(parameter.path, parameter.wanted) != parameter.wanted
    ]


def boot_overrides(parameters: Sequence[Parameter], own: ConfFile, files: Iterable[ConfFile]) -> list[Override]:
    """Which wanted values will not be there after the next boot, and the file that wins.

    ``own`` is our file as it will be written; ``files`` are those of ``FOLDERS``, in that order.
    """
    last: dict[str, tuple[str | None, ConfFile]] = {}
    ordered = in_order(files, own, FOLDERS)
    for file in ordered:
        last.update({path: (value, file) for path, value in parse(file.text).items()})
    masking = next((file for file in ordered if file.name == own.name and file.path != own.path), None)
    found = []
    for parameter in parameters:
        value, file = last.get(parameter.path, (None, own))
        if value == parameter.wanted:
            continue
        if file.path != own.path and value is not None:
            effect = EFFECT_SETS % (own.path, value)
        elif masking is not None:
            file, effect = masking, EFFECT_MASKS % own.path
        else:
            effect = EFFECT_TAKES_OUT % own.path
        found.append(Override(parameter.key, parameter.wanted, file.shown(), effect))
    return found


def _wins(modified: str, wanted: str) -> str | None:
    """What a value of a profile makes of ours: tuned sets ``>1`` only over smaller values, ``<1`` over larger ones."""
    sign, value = (modified[0], modified[1:].strip()) if modified[:1] in ("<", ">") else ("", modified)
    found, least = whole_number(value), whole_number(wanted)
    if sign and found is not None and least is not None:
        larger = found > least
        return value if larger == (sign == ">") and value != wanted else None
    return value if value != wanted else None


def tuned_overrides(parameters: Sequence[Parameter], tuned: Tuned, sysctl_conf: str) -> list[Override]:
    """Which wanted values tuned changes when it starts. ``sysctl_conf`` is the text of ``/etc/sysctl.conf``."""
    if not tuned.profile:
        return []
    found = []
    late = parse(sysctl_conf) if tuned.reapply else {}
    for parameter in parameters:
        again = tuned.applies_again(parameter.key)
        value = late.get(parameter.path) if again else None
        if value is not None and value != parameter.wanted:
            found.append(Override(parameter.key, parameter.wanted, SYSCTL_CONF, EFFECT_TUNED_LAST % value))
        if not again and parameter.path in tuned.settings:
            value, path = tuned.settings[parameter.path]
            value = _wins(value, parameter.wanted)
            if value is not None:
                effect = (EFFECT_TUNED_EXCLUDED if tuned.reapply else EFFECT_TUNED) % (value, tuned.profile)
                found.append(Override(parameter.key, parameter.wanted, path, effect))
    return found


def _parser(text: str) -> configparser.ConfigParser:
    """A file of tuned, read with the options that tuned uses; what cannot be parsed holds nothing."""
    parser = configparser.ConfigParser(
        delimiters=("=",), inline_comment_prefixes=("#",), strict=False, interpolation=None
    )
    # Names of keys keep their capitals.
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    try:
        parser.read_string(text)
    except configparser.Error:
        return configparser.ConfigParser(interpolation=None)
    return parser


def reapplies(text: str) -> bool:
    """Whether tuned applies the sysctl files after its profile, as it does by default; from tuned-main.conf."""
    parser = _parser("[main]\n" + text)
    return parser.get("main", "reapply_sysctl", fallback="1").strip().lower() in ("1", "true", "yes", "on")


def excluded(text: str) -> list[str]:
    """The patterns of keys that tuned does not apply again; from tuned-main.conf, where , and ; separate them."""
    listed = _parser("[main]\n" + text).get("main", "reapply_sysctl_exclude", fallback="")
    return [pattern.strip() for pattern in re.split(r"[,;]", listed) if pattern.strip()]


def tuned_settings(names: Sequence[str], profiles: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What profiles set: path below ``/proc/sys`` to (value, file). ``profiles``: the texts of tuned.conf by path.

    Included profiles come first, later ones win. A profile that includes its own name means that of the next folder.
    """
    settings: dict[str, tuple[str, str]] = {}
    done: set[str] = set()

    def load(name: str) -> None:
        candidates = [f"{folder}/{os.path.basename(name)}/tuned.conf" for folder in TUNED_FOLDERS]
        path = next((path for path in candidates if path in profiles and path not in done), None)
        if path is None:
            return
        done.add(path)
        parser = _parser(profiles[path])
        for included in re.split(r"\s*[,;]\s*", parser.get("main", "include", fallback="")):
            # An optional include starts with a dash.
            load(included.strip().lstrip("-"))
        for section in parser.sections():
            options = dict(parser.items(section))
            if options.get("type", section) != "sysctl":
                continue
            if options.get("replace", "").lower() in ("1", "true", "yes", "on"):
                settings.clear()
            for key, value in options.items():
                if "." in key or "/" in key:
                    settings[path_of(key)] = (normalised(key, value.strip("\"'")), path)

    for name in names:
        load(name)
    return settings
