# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One transaction of dnf: its script, what dnf plans, and what dnf says when it fails. Pure.

dnf prints all of it in English when LC_ALL is C. The wording is that of dnf 4 (dnf/cli/output.py, dnf/cli/cli.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Evr, Package

INSTALL, UPGRADE, DOWNGRADE, REINSTALL, REMOVE = "install", "upgrade", "downgrade", "reinstall", "remove"
#: The headings of dnf's table.
_HEADINGS = {
    "Installing:": INSTALL,
    "Installing dependencies:": INSTALL,
    "Installing weak dependencies:": INSTALL,
    "Upgrading:": UPGRADE,
    "Downgrading:": DOWNGRADE,
    "Reinstalling:": REINSTALL,
    "Removing:": REMOVE,
    "Removing dependent packages:": REMOVE,
    "Removing unused dependencies:": REMOVE,
}
_DEPENDENT = "Removing dependent packages:"
_REPLACING = re.compile(r"^\s+replacing\s+(\S+)\.([^.\s]+)\s+(\S+)")
#: How many of dnf's lines a sentence takes over.
DECISIVE_LINES = 8

FIX_UNSIGNED = "take the package from a repository whose maker signs it, and leave gpgcheck on"
FIX_FOREIGN = (
    "find out who signed it before anything else; trust a key only by its whole fingerprint "
    "(gpg_fingerprints in package_sources_repositories)"
)
_UNSIGNED = re.compile(r"^Package (\S+) is not signed", re.MULTILINE)
_FOREIGN = re.compile(
    r"^(?:Public key for (\S+) is not installed"
    r"|The GPG keys listed for the .*\n(?:.*\n)*?.*Failing package is: (\S+))",
    re.MULTILINE,
)
_BUSY = re.compile(r"^(?:metadata|RPMDB|cachedir|log) already locked by (\d+)(?:\n\s+.* is: (\S+))?", re.MULTILINE)
_RPM_BUSY = "can't create transaction lock"
_SCRIPTLET = re.compile(r"%(\w+)\((\S+?)\) scriptlet failed, exit status (\d+)")
_DECISIVE = re.compile(
    r"^(Error\b|\s*Problem|\s+- |No match for argument|All matches were filtered|Unable to find a match"
    r"|Failed to download|\[Errno|Curl error|Status code|RPM: error|error:|\s+file /|\s*At least \d"
    r"|.*conflicts? (between|with)|.*(disk|more space)|.* is filtered out)"
)


@dataclass(frozen=True)
class Step:
    """One row of dnf's table."""

    kind: str
    package: Package
    #: Nobody asked for its removal; it needs something that goes.
    is_dependent: bool = False


def script(removals: Iterable[str], reinstalls: Iterable[str], installs: Iterable[str]) -> str:
    """What ``dnf shell`` is to do, as one transaction."""
    lines = [f"remove {name}" for name in removals]
    lines += [f"reinstall {name}" for name in reinstalls]
    lines += [f"install {name}" for name in installs]
    return "".join(f"{line}\n" for line in lines)


def parse_plan(text: str) -> tuple[Step, ...]:
    """The table that dnf prints before it asks for consent."""
    steps: list[Step] = []
    heading = ""
    words: list[str] = []
    for line in text.splitlines():
        replaced = _REPLACING.match(line)
        if line in _HEADINGS:
            heading, words = line, []
        elif not line.startswith(" "):
            # A blank line, or a heading of something else, such as module streams or packages that are skipped.
            heading = ""
        elif heading and replaced:
            steps.append(Step(REMOVE, _package(*replaced.groups())))
        elif heading:
            # A row that is too long goes on in the next line, which is indented further.
            words = line.split() if re.match(r" \S", line) else words + line.split()
            if len(words) >= 5:
                steps.append(Step(_HEADINGS[heading], _package(*words[:3]), heading == _DEPENDENT))
                words = []
    return tuple(dict.fromkeys(steps))


def _package(name: str, arch: str, evr: str) -> Package:
    epoch, _colon, rest = evr.rpartition(":")
    version, _dash, release = rest.rpartition("-")
    return Package(name, Evr(epoch or "0", version, release), arch)


def after(installed: Sequence[Package], steps: Sequence[Step]) -> tuple[Package, ...]:
    """What is going to be installed when dnf has done that."""
    coming = tuple(step.package for step in steps if step.kind != REMOVE)
    going = {step.package.nevra for step in steps if step.kind == REMOVE}
    replaced = {(package.name, package.arch) for package in coming if not package.is_side_by_side}
    stays = (one for one in installed if one.nevra not in going and (one.name, one.arch) not in replaced)
    return (*stays, *coming)


def sentences(steps: Sequence[Step], installed: Sequence[Package]) -> tuple[str, ...]:
    """What dnf is going to do, with the versions before and after."""
    before = {(package.name, package.arch): package.evr for package in installed}
    found = []
    for step in steps:
        package = step.package
        was = before.get((package.name, package.arch))
        if step.kind in (UPGRADE, DOWNGRADE) and was is not None:
            found.append(f"{step.kind} {package.name} from {was} to {package.evr}")
        else:
            found.append(f"{step.kind} {package.name} {package.evr}")
    return tuple(found)


def busy(text: str) -> str:
    """Who keeps dnf from working, of what dnf says; empty when nobody does."""
    match = _BUSY.search(text)
    if match:
        name = f" ({match.group(2)})" if match.group(2) else ""
        return f"process {match.group(1)}{name} holds dnf's lock"
    return "another process holds rpm's lock" if _RPM_BUSY in text else ""


def signature_sentences(text: str) -> tuple[str, ...]:
    """Which packages dnf refused because of their signatures."""
    found = [f"dnf refuses {name}: the package is not signed. Fix: {FIX_UNSIGNED}." for name in _UNSIGNED.findall(text)]
    for plain, listed in _FOREIGN.findall(text):
        rule = "no trusted key of the node has made its signature"
        found.append(f"dnf refuses {plain or listed}: {rule}. Fix: {FIX_FOREIGN}.")
    return tuple(dict.fromkeys(found))


def scriptlet_warnings(text: str) -> tuple[str, ...]:
    """Scriptlets that failed; dnf calls the transaction a success all the same."""
    return tuple(
        f"The scriptlet %{name} of {package} failed with exit status {status}; rpm calls the package installed."
        for name, package, status in dict.fromkeys(_SCRIPTLET.findall(text))
    )


def decisive(out: str, err: str) -> str:
    """The lines that tell why dnf failed, on one line."""
    lines = [line for line in (*err.splitlines(), *out.splitlines()) if _DECISIVE.match(line)]
    lines = [line for line in lines if "Operation aborted" not in line and line.strip() != "Error:"]
    if not lines:
        lines = [line for line in (err or out).splitlines() if line.strip()][-DECISIVE_LINES:]
    unique = list(dict.fromkeys(" ".join(line.split()).removeprefix("- ") for line in lines))
    return "; ".join(unique[:DECISIVE_LINES])


def diff(
    names: Iterable[str],
    before: Mapping[str, str],
    after: Mapping[str, str],
    locks: tuple[Sequence[str], Sequence[str]],
    streams: tuple[Sequence[str], Sequence[str]],
) -> dict[str, str]:
    """Versions, locks and module streams before and after."""
    found = []
    listed = sorted(names)
    for versions, lines, enabled in ((before, locks[0], streams[0]), (after, locks[1], streams[1])):
        text = [f"{name} {versions.get(name, 'not installed')}" for name in listed]
        text += [f"lock {line}" for line in lines]
        text += [f"module stream {name}" for name in enabled]
        found.append("".join(f"{line}\n" for line in text))
    return {"before": found[0], "after": found[1], "before_header": "packages", "after_header": "packages"}
