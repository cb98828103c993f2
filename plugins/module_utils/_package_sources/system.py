# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node as far as packages are concerned: its files, dnf and rpm. Reads, and changes as one whole."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import run_command
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf.system import Ended, read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import Mover, replace_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import openpgp
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.catalogue import Node

OUR_FILE = "/etc/yum.repos.d/gpu-cluster.repo"
DNF_CONF = "/etc/dnf/dnf.conf"
KEY_FILES = "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-cluster-*"
OS_RELEASE = "/etc/os-release"
#: Metadata of EPEL and of NVIDIA's repository are tens of MB; a first download may take minutes.
DNF_SECONDS = 600
RPM_SECONDS = 60

ERR_TOOK_LONG = "'{}' did not end within {} s"
ERR_RPM = "rpm does not take the key {}: {}"
ERR_NOT_READ_BACK = "read back after the change: {}"


class SystemFailure(Exception):
    """The node does not do what it is told. When a change was under way, it has been taken back."""


def read_node() -> Node:
    """What decides which repositories fit."""
    release = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', read_text(OS_RELEASE) or "", re.MULTILINE))
    version = release.get("VERSION_ID", "0")
    major = version.split(".")[0]
    return Node(int(major) if major.isdigit() else 0, version, platform.machine())


def run(argv: Sequence[str], seconds: int) -> Ended:
    """A command in plain English, with a deadline."""
    try:
        return Ended(*run_command(argv, environ_update={"LC_ALL": "C.UTF-8"}, seconds=seconds))
    except subprocess.TimeoutExpired:
        return Ended(124, "", ERR_TOOK_LONG.format(" ".join(argv), seconds))
    except OSError as error:
        return Ended(127, "", str(error))


def dnf(arguments: Sequence[str], timeout_seconds: int) -> Ended:
    """dnf that soon gives up on a mirror. Said for every repository too: their own options would win."""
    patience = [f"--setopt={prefix}timeout={timeout_seconds}" for prefix in ("", "*.")]
    patience += [f"--setopt={prefix}retries=1" for prefix in ("", "*.")]
    return run(["dnf", *patience, *arguments], DNF_SECONDS)


@contextmanager
def temporary_repo_folder(files: Mapping[str, str | None]) -> Iterator[str]:
    """A folder with these files and no others, for dnf to try them before they count. ``files`` by their paths."""
    folder = tempfile.mkdtemp(prefix="gpu-cluster-repos-")
    try:
        for number, (path, text) in enumerate(files.items()):
            if path.endswith(".repo") and text:
                name = os.path.join(folder, f"{number}-{os.path.basename(path)}")
                with open(name, "w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
                    stream.write(text)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- rpm's keys -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrustedKey:
    """A key that rpm trusts: the package as which rpm lists it, and the key with its armour."""

    package: str
    key: openpgp.PublicKey
    text: str


_LISTED = re.compile(r"^(gpg-pubkey-\S+)\n(.*?)(?=^gpg-pubkey-\S+$|\Z)", re.DOTALL | re.MULTILINE)


def parse_trusted_keys(text: str) -> tuple[TrustedKey, ...]:
    """What ``rpm -q gpg-pubkey`` prints in the format below; entries that are no such key are left out."""
    found = []
    for package, armour in _LISTED.findall(text):
        try:
            found += [TrustedKey(package, key, armour) for key in openpgp.parse_keys(armour)]
        except openpgp.KeyFileError:
            continue
    return tuple(found)


def trusted_keys() -> tuple[TrustedKey, ...]:
    """rpm keeps every key as a package whose description is the key itself."""
    listing = run(
        ["rpm", "-q", "gpg-pubkey", "--queryformat", "%{NAME}-%{VERSION}-%{RELEASE}\\n%{DESCRIPTION}\\n"], RPM_SECONDS
    )
    return parse_trusted_keys(listing.out)


def import_key(text: str) -> None:
    """Let rpm trust the keys of an armoured text; raises SystemFailure."""
    with tempfile.NamedTemporaryFile("w", prefix="gpu-cluster-key-", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        ended = run(["rpm", "--import", stream.name], RPM_SECONDS)
    if ended.code:
        name = ", ".join(key.fingerprint for key in openpgp.parse_keys(text))
        raise SystemFailure(ERR_RPM.format(name, " ".join((ended.err or ended.out).split())))


# --- one change -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """What is to be different: files by path (None removes one), keys to import, and expired ones to drop."""

    files: Mapping[str, str | None]
    keys: tuple[str, ...] = ()
    dropped_keys: tuple[TrustedKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.keys or self.dropped_keys)


def _put(module: Mover, path: str, text: str | None) -> None:
    if text is None:
        if os.path.exists(path):
            os.unlink(path)
        return
    mode = os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o644
    replace_file(module, path, text, mode)


@contextmanager
def applied(module: Mover, change: Change) -> Iterator[None]:
    """Make the change; when that or what the caller does with it fails, everything is as before."""
    before = {path: read_text(path) for path in change.files}
    trusted = {key.package for key in trusted_keys()} if change.keys or change.dropped_keys else set()
    try:
        for key in change.dropped_keys:
            run(["rpm", "-e", "--allmatches", key.package], RPM_SECONDS)
        for text in change.keys:
            import_key(text)
        for path, content in change.files.items():
            _put(module, path, content)
        yield
    except BaseException:
        for path, content in before.items():
            _put(module, path, content)
        if change.keys or change.dropped_keys:
            for package in {key.package for key in trusted_keys()} - trusted:
                run(["rpm", "-e", "--allmatches", package], RPM_SECONDS)
            for key in change.dropped_keys:
                import_key(key.text)
        raise
