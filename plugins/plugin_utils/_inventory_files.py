# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that Ansible reads for an inventory, read again to find faults and places. Nothing here runs a program.

Which files these are, and what a range of hosts means, is asked of Ansible itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleError
from ansible.inventory.data import InventoryData
from ansible.inventory.manager import IGNORED
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.inventory import detect_range, expand_hostname_range
from ansible.plugins.loader import inventory_loader

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_faults as sources
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_hosts as hosts_file
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_yaml as yaml_text
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._inventory_yaml import Fault

YAML_ENDINGS = (".yml", ".yaml", ".json")
FOLDERS = {"group_vars": sources.GROUP, "host_vars": sources.HOST}
#: No file of an inventory is larger, in bytes, and no folder of one is deeper.
LARGEST, DEEPEST = 64 << 20, 8

ERR_NO_SOURCE = "there is no such file or folder"
ERR_NO_INVENTORY = "no inventory was given, and this one of the settings does not exist"
FIX_NO_SOURCE = "name the folder of the inventory with -i, such as -i prod"
ERR_NO_FILE = "Ansible reads no file of hosts in this folder; it holds: %s"
ERR_UNREADABLE = "cannot be read: %s"
FIX_UNREADABLE = "let the user who runs Ansible read it, or remove it"
ERR_ENCRYPTED = "is encrypted with ansible-vault, and no password was given"
FIX_ENCRYPTED = "add --ask-vault-pass or --vault-password-file FILE to the command"
ERR_PARSE = "Ansible cannot read it as an inventory: %s"
FIX_PARSE = "correct this line"
FIX_YAML = "write the hosts into a file whose name ends with .yml"

_INI_PLACE = re.compile(r"^(?:.*?):(\d+): (.*)$", re.DOTALL)


def given() -> tuple[str, ...]:
    """The sources of the inventory: those of -i, or those of the settings."""
    chosen = (context.CLIARGS or {}).get("inventory") or constants.DEFAULT_HOST_LIST or ()
    return tuple(str(one) for one in chosen)


def extra_variables() -> list[str]:
    """The names of the variables in -e."""
    names = []
    for text in (context.CLIARGS or {}).get("extra_vars") or ():
        names += re.findall(r"(?:^|[\s{,'\"])([A-Za-z_]\w*)['\"]?\s*[=:]", str(text))
    return names


def read(chosen: Iterable[str], playbook_dir: str = "") -> list[sources.File]:
    """All files, in the order in which Ansible lets a later one win. chosen: as ``given`` returns it."""
    found: list[sources.File] = []
    places: list[tuple[str, Path]] = []
    for source in chosen:
        path = Path(source)
        if "," in source:
            continue
        if not path.exists():
            is_typed = source not in (constants.DEFAULT_HOST_LIST or ())
            fault = Fault(0, "", ERR_NO_SOURCE if is_typed else ERR_NO_INVENTORY, FIX_NO_SOURCE)
            found.append(sources.File(shown(path), f"-i {shown(path)}", sources.HOSTS, faults=[fault]))
            continue
        files = list(_files(path))
        if not files:
            named = ", ".join(sorted(os.listdir(path))[:8]) or "nothing"
            fault = Fault(0, "", ERR_NO_FILE % named, FIX_YAML)
            found.append(sources.File(shown(path), shown(path), sources.HOSTS, faults=[fault]))
        for file in files:
            found.append(_hosts(shown(path), file))
            places.append((shown(path), file.parent))
        places.append((shown(path), path if path.is_dir() else path.parent))
    if playbook_dir:
        places.append(("", Path(playbook_dir)))
    seen = set()
    for source, place in places:
        if place.resolve() not in seen:
            seen.add(place.resolve())
            found += _variables(source, place)
    return found


def placed(problems: Iterable[dict[str, Any]], own: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Problems of variables of hosts, with the file and line of each variable. own: variables of any host."""
    found = list(problems)
    if not found:
        return found
    groups = {str(name): [str(host) for host in hosts] for name, hosts in (own.get("groups") or {}).items()}
    chosen = [str(source) for source in own.get("ansible_inventory_sources") or ()]
    files = read(chosen, str(own.get("playbook_dir") or ""))
    places = sources.Places(files, groups, extra_variables())
    for one in found:
        where = places.of(str(one["host"]), re.split(r"[.\[]", str(one["variable"]))[0])
        if where and not one.get("place"):
            one["place"] = where
    return found


def is_refused(path: str) -> bool:
    """Whether a file of hosts has a fault."""
    return "," not in path and Path(path).is_file() and bool(_hosts("", Path(path)).faults)


def has_password() -> bool:
    """Whether somebody gave a password for ansible-vault."""
    options = context.CLIARGS or {}
    asked = any(options.get(name) for name in ("vault_ids", "vault_password_files", "ask_vault_pass"))
    settings = ("DEFAULT_VAULT_PASSWORD_FILE", "DEFAULT_VAULT_IDENTITY_LIST", "DEFAULT_ASK_VAULT_PASS")
    return asked or any(getattr(constants, name, None) for name in settings)


def shown(path: Path) -> str:
    """A path as it is written in a message: short where it is below the folder in which the command runs."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _files(path: Path, deep: int = 0) -> Iterator[Path]:
    """The files of hosts below a source, in Ansible's order."""
    if not path.is_dir():
        yield path
    elif deep < DEEPEST:
        for name in sorted(os.listdir(path)):
            if not IGNORED.search(os.fsencode(name)):
                yield from _files(path / name, deep + 1)


def _variables(source: str, place: Path) -> Iterator[sources.File]:
    """The files of group_vars and host_vars beside an inventory or a playbook."""
    loader = DataLoader()
    for folder, kind in FOLDERS.items():
        try:
            names = sorted(os.listdir(place / folder))
        except OSError:
            continue
        stems = dict.fromkeys(name if (place / folder / name).is_dir() else _stem(name) for name in names)
        for owner in stems:
            if owner.startswith("."):
                continue
            for file in loader.find_vars_files(str(place / folder), owner):
                yield _owned(source, Path(os.fsdecode(file)), kind, owner)
    yield from _dangling(source, place)


def _dangling(source: str, place: Path) -> Iterator[sources.File]:
    """Links to nothing, which Ansible leaves out without a word."""
    for folder, kind in FOLDERS.items():
        for file in sorted((place / folder).rglob("*")):
            if file.is_symlink() and not file.exists():
                fault = Fault(0, "", ERR_UNREADABLE % "it is a link to a file that does not exist", FIX_UNREADABLE)
                owner = _stem(file.relative_to(place / folder).parts[0])
                yield sources.File(source, shown(file), kind, owner, faults=[fault])


def _stem(name: str) -> str:
    return next((name[: -len(ending)] for ending in YAML_ENDINGS if name.endswith(ending)), name)


def _bytes(path: Path) -> bytes | Fault:
    try:
        if path.stat().st_size > LARGEST:
            return Fault(0, "", ERR_UNREADABLE % "it is too large", "name a file of an inventory")
        return path.read_bytes()
    except OSError as error:
        return Fault(0, "", ERR_UNREADABLE % (error.strerror or error), FIX_UNREADABLE)


@cache
def _text(path: Path, _stamp: tuple[int, int]) -> yaml_text.Text:
    data = _bytes(path)
    return yaml_text.Text(None, [data]) if isinstance(data, Fault) else yaml_text.read(data)


def _read(path: Path) -> yaml_text.Text:
    """A file as YAML, read once while it stays as it is."""
    try:
        status = path.stat()
    except OSError:
        return _text(path, (0, 0))
    text = _text(path, (status.st_mtime_ns, status.st_size))
    if text.encrypted and not has_password():
        return text._replace(faults=[Fault(0, "", ERR_ENCRYPTED, FIX_ENCRYPTED)])
    return text


def _owned(source: str, path: Path, kind: str, owner: str) -> sources.File:
    text = _read(path)
    lines, faults = ({}, []) if text.faults else hosts_file.variables(text.root)
    return sources.File(source, shown(path), kind, owner, lines=lines, faults=text.faults + faults)


def _hosts(source: str, path: Path) -> sources.File:
    """A file of hosts. A program is not run, and a file in the form of INI is read by Ansible."""
    file = sources.File(source, shown(path), sources.HOSTS)
    if path.suffix in YAML_ENDINGS:
        text = _read(path)
        file.faults += text.faults
        if not text.faults:
            file.content, faults = hosts_file.hosts(text.root, _expand)
            file.faults += faults
    elif not os.access(path, os.X_OK):
        _read_ini(file, path)
    return file


def _read_ini(file: sources.File, path: Path) -> None:
    data = _bytes(path)
    if isinstance(data, Fault):
        file.faults.append(data)
        return
    inventory = InventoryData()
    try:
        inventory_loader.get("ini").parse(inventory, DataLoader(), str(path.absolute()), cache=False)
    except AnsibleError as error:
        words = " ".join(str(getattr(error, "message", error)).split()).replace("Failed to parse inventory: ", "")
        placed = _INI_PLACE.match(words)
        line, why = (int(placed.group(1)), placed.group(2)) if placed else (0, words)
        fix = FIX_YAML if "---" in why else FIX_PARSE
        file.faults.append(Fault(line, "", ERR_PARSE % why[:200].rstrip("."), fix))
        return
    for name, group in inventory.groups.items():
        file.content.names[str(name)] = 0
        file.content.hosts[str(name)] = {str(host.name): 0 for host in group.hosts}
        file.content.groups[str(name)] = {str(one): 0 for one in group.vars}
    for name, host in inventory.hosts.items():
        file.content.own[str(name)] = {str(one): 0 for one in host.vars if not str(one).startswith("inventory_")}


def _expand(pattern: str) -> Sequence[str]:
    """The hosts of a range, as Ansible sees them."""
    if not detect_range(pattern):
        return [pattern]
    try:
        return [str(one) for one in expand_hostname_range(pattern)]
    except (AnsibleError, ValueError) as error:
        raise ValueError(str(getattr(error, "message", error))) from error
