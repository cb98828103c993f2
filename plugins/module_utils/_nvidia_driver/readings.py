# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dkms, grubby, lsinitrd and mokutil print. Pure: every function takes a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

#: Names under which NVIDIA's packages register with DKMS. ``nvidia-open`` is that of older open modules
#: (dkms-open-nvidia.spec in NVIDIA/yum-packaging-dkms-nvidia), ``nvidia`` that of all others.
DKMS_NAMES = ("nvidia", "nvidia-open")

ENROLLED, REQUESTED, NOT_ENROLLED, UNKNOWN = "enrolled", "requested", "not enrolled", "unknown"

#: Longest part of a build log that a message carries, in lines.
LOG_LINES = 5

_DKMS = re.compile(
    r"^(?P<name>[^\s,/:]+)(?:/|,\s*)(?P<version>[^\s,:]+)(?:,\s*(?P<kernel>[^\s,]+),\s*[^\s:]+)?:\s*(?P<state>\w+)"
)
_GRUBBY = re.compile(r"^(\w+)=(.*)$")
_KERNEL_PATH = re.compile(r"(?:^|/)vmlinuz-(\S+)$")
_ERROR = re.compile(
    r"\berror\b|Error \d+|command not found|No such file|undefined reference|Cannot find", re.IGNORECASE
)
_FOLLOWS = re.compile(r"\*\*\*|Waiting for unfinished jobs")
_LOG_PATH = re.compile(r"Consult (\S+/make\.log) for more information")
_MOK_CERTIFICATE = re.compile(r"""^\s*mok_certificate=["']?([^"'\s#]+)""", re.MULTILINE)


class DkmsEntry(NamedTuple):
    """One line of ``dkms status``. ``kernel`` is empty for a module that was only added."""

    name: str
    version: str
    kernel: str
    state: str


class BootEntry(NamedTuple):
    """One entry of the boot loader. ``arguments`` holds each argument with its value, or None where it has none."""

    kernel: str
    initramfs: str
    arguments: Mapping[str, str | None]


def dkms_entries(text: str) -> list[DkmsEntry]:
    """NVIDIA's lines of ``dkms status``: ``name, version, kernel, arch: state`` (2.x), ``name/version, ...`` (3.x)."""
    found = (_DKMS.match(line.strip()) for line in text.splitlines())
    entries = [DkmsEntry(*(match[key] or "" for key in DkmsEntry._fields)) for match in found if match]
    return [entry for entry in entries if entry.name in DKMS_NAMES]


def boot_entries(text: str) -> list[BootEntry]:
    """The entries in what ``grubby --info=ALL`` prints."""
    blocks: list[dict[str, str]] = []
    for line in text.splitlines():
        match = _GRUBBY.match(line.strip())
        if not match:
            continue
        key, value = match[1], match[2].strip().strip('"')
        if key == "index":
            blocks.append({})
        if blocks:
            blocks[-1][key] = value
    return [
        BootEntry(kernel_of(block["kernel"]), block.get("initrd", "").split(" ")[0], arguments(block.get("args", "")))
        for block in blocks
        if block.get("kernel")
    ]


def arguments(text: str) -> dict[str, str | None]:
    """Kernel arguments of a boot entry. An argument that stands there twice keeps both values, with a comma."""
    found: dict[str, str | None] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        before = found.get(key)
        found[key] = (f"{before},{value}" if before else value) if equals else before
    return found


def kernel_of(path: str) -> str:
    """The release of the kernel in the path of its image (``/boot/vmlinuz-RELEASE``); empty for another path."""
    match = _KERNEL_PATH.search(path.strip())
    return match[1] if match else ""


def holds_module(listing: str, name: str) -> bool:
    """Whether an initramfs holds a module, from what ``lsinitrd`` prints."""
    return re.search(rf"/{re.escape(name)}\.ko(\.(xz|gz|zst))?\s*$", listing, re.MULTILINE) is not None


def key_state(text: str) -> str:
    """Whether a key is enrolled, from ``mokutil --test-key``."""
    for sentence, state in (
        ("is already enrolled", ENROLLED),
        ("is already in db", ENROLLED),
        ("is already in the enrollment request", REQUESTED),
        ("is not enrolled", NOT_ENROLLED),
    ):
        if sentence in text:
            return state
    return UNKNOWN


def mok_certificate(text: str) -> str:
    """The certificate that DKMS signs with, from its settings; empty when they leave it at its default."""
    found = _MOK_CERTIFICATE.findall(text)
    return found[-1] if found else ""


def log_path(text: str) -> str:
    """The build log that dkms names when a build fails; empty when it names none."""
    match = _LOG_PATH.search(text)
    return match[1] if match else ""


def decisive_lines(log: str) -> list[str]:
    """The first errors of a build log; its last lines when nothing in it looks like an error.

    What make says about targets that failed follows from the errors above it, so it comes last.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line) and "-Wno-error" not in line]
    causes = [line for line in errors if not _FOLLOWS.search(line)]
    return (causes or errors or lines[-LOG_LINES:])[:LOG_LINES]
