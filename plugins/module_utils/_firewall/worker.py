# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that changes a node's firewall and takes the change back unless it is confirmed.

Its job holds what every job does (``_commit_confirm/change.py``), and

    way         "rules": commands at run time; "reload"; "start"
    files       [{path, mode, loaded, interim, text}]   files below /etc/firewalld; null for none. ``loaded`` is what
                firewalld loads, ``interim`` what stands there until the confirmation, ``text`` what stays afterwards
    expected    {entries, rules}                what firewalld must run afterwards (``Runtime.as_json``)
    enable      whether firewalld shall start at boot; done only when the change is confirmed
    pending     [{kind, name, settings}]        what of others is in force otherwise than the files say (``pending.py``)

What accepts is added to the files before the confirmation, and taken away only after it; at run time both are done at
once. So a node that loses power in between boots with everything that let somebody in before. When this program is
killed, systemd starts it once more to take the change back.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import files, systemd
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import (
    ChangeError,
    Program,
    command,
    execute,
    main,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import pending, rules
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.bus import CALL_SECONDS, Bus

FOLDER = rules.FOLDER
UNIT = "firewalld.service"
TABLE = "table inet firewalld"


def bus() -> Bus:
    """firewalld, asked by this program."""
    return Bus(lambda words: execute(*words, seconds=CALL_SECONDS + 5))


def systemctl(*words: str) -> str:
    """systemctl on firewalld's unit."""
    return command("systemctl", *words, UNIT, seconds=CALL_SECONDS + 5)


def unit_state() -> dict[str, str]:
    """Whether the unit runs, and what starts it: ActiveState and UnitFileState."""
    argv = systemd.show_argv(UNIT, "ActiveState", "UnitFileState")
    return systemd.parse_show(command(*argv, seconds=CALL_SECONDS + 5))


def runs() -> bool:
    """Whether firewalld is up."""
    return unit_state().get("ActiveState") == "active"


def tree(folder: str) -> dict[str, dict[str, Any]]:
    """Every file below a folder: its bytes (as latin-1, which holds each of them), mode and owner."""
    found = {}
    for place, _folders, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            status = os.stat(path)
            with open(path, "rb") as stream:
                data = stream.read().decode("latin-1")
            found[path] = {"data": data, "mode": status.st_mode & 0o7777, "owner": [status.st_uid, status.st_gid]}
    return found


def write_bytes(path: str, held: dict[str, Any]) -> None:
    """Write one file of a ``tree`` beside its place, and rename it."""
    user, group = held["owner"]
    files.replace(path, held["data"].encode("latin-1"), held["mode"], (user, group))


def restore(folder: str, held: dict[str, dict[str, Any]], only: list[str] | None = None) -> None:
    """Make a folder what ``tree`` found, or only some of its files."""
    now = tree(folder)
    for path in only if only is not None else [*held, *now]:
        if path not in held:
            if path in now:
                os.unlink(path)
        elif held[path] != now.get(path):
            os.makedirs(os.path.dirname(path), mode=0o750, exist_ok=True)
            write_bytes(path, held[path])


def digests(held: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The sha256 of every file of a ``tree``."""
    return {path: hashlib.sha256(one["data"].encode("latin-1")).hexdigest() for path, one in held.items()}


class Worker(Program):
    """One change of one node's firewall."""

    not_armed = "nothing could be prepared for the way back"

    # --- there -------------------------------------------------------------------------------------------------------

    def arm(self) -> None:
        held = tree(FOLDER)
        unit = unit_state()
        self.before = {
            "files": {entry["path"]: held.get(entry["path"]) for entry in self.job["files"]},
            "digests": digests(held),
            "unit": unit,
            "runtime": bus().ours().as_json() if unit.get("ActiveState") == "active" else None,
            "table": self.table(),
        }
        if self.job["pending"]:
            # With what is in force but not in the files, the old files alone are no way back.
            self.before["tree"] = held
            self.remember()
            try:
                in_force = self.in_force()
            finally:
                restore(FOLDER, held)
            self.before["in_force"] = in_force
        self.remember()
        self.say("armed")

    def in_force(self) -> dict[str, dict[str, Any]]:
        """The files that firewalld would have to load to be again what it is now."""
        objects = self.job["pending"]
        for path in pending.make_permanent(bus(), objects, FOLDER):
            if os.path.exists(path):
                os.unlink(path)
        found = tree(FOLDER)
        for one in objects:
            if one["kind"] == pending.DEFAULT_ZONE:
                path = os.path.join(FOLDER, "firewalld.conf")
                conf = found.get(path, {"data": "", "mode": 0o644, "owner": [0, 0]})
                found[path] = {**conf, "data": pending.with_default_zone(conf["data"], one["settings"])}
        return found

    def table(self) -> bool:
        """Whether rules of firewalld are in the kernel."""
        code, out, _err = execute("nft", "list", "tables")
        return code == 0 and TABLE in out.splitlines()

    def apply(self) -> None:
        self.say("applying")
        self.write("loaded")
        if self.job["way"] == "start":
            self.start()
        elif self.job["way"] == "reload":
            bus().reload()
        self.write("interim")
        self.move(rules.Runtime.from_json(self.job["expected"]))
        self.look()

    def write(self, which: str) -> None:
        """Bring all files to one of their texts."""
        for entry in self.job["files"]:
            self.write_file(entry, entry[which])

    def write_file(self, entry: dict[str, Any], text: str | None) -> None:
        """Bring one file to a text; None removes it."""
        if text is None:
            if os.path.exists(entry["path"]):
                os.unlink(entry["path"])
            return
        os.makedirs(os.path.dirname(entry["path"]), mode=0o750, exist_ok=True)
        data = text.encode("utf-8", "surrogateescape").decode("latin-1")
        write_bytes(entry["path"], {"data": data, "mode": entry["mode"], "owner": [0, 0]})

    def start(self) -> None:
        """Start firewalld. Only the confirmation lets it start at boot, unless the site had it do so."""
        state = self.before["unit"]["UnitFileState"]
        if state.startswith("masked"):
            systemctl("unmask", *self.runtime_only(state))
            below = unit_state()["UnitFileState"]
            self.before["below_mask"] = below
            self.remember()
            if below == "enabled":
                systemctl("disable")
        systemctl("start")
        said = bus().property("state")
        if said != "RUNNING":
            raise ChangeError(f"firewalld started, but could not load all of its files (state {said})")

    @staticmethod
    def runtime_only(state: str) -> list[str]:
        """The word that systemctl needs for a mask that is gone after a boot."""
        return ["--runtime"] if state.endswith("-runtime") else []

    def move(self, to: rules.Runtime) -> None:
        """Lead the running firewalld to another state of our objects, without a reload."""
        for words in rules.commands(bus().ours(), to):
            command("firewall-cmd", *words, seconds=CALL_SECONDS)

    def look(self) -> None:
        """Ask firewalld whether it runs what it must."""
        remaining = rules.differences(rules.Runtime.from_json(self.job["expected"]), bus().ours())
        if remaining:
            raise ChangeError(f"after loading, the running rules still differ: {'; '.join(remaining)}")

    # --- kept --------------------------------------------------------------------------------------------------------

    def keep(self) -> dict[str, Any]:
        self.write("text")
        if self.job["enable"]:
            state = unit_state()["UnitFileState"]
            if state.startswith("masked"):
                systemctl("unmask", *self.runtime_only(state))
            systemctl("enable")
        return {}

    # --- back --------------------------------------------------------------------------------------------------------

    def undo(self, reason: str) -> None:
        """Bring the old state back, look whether it is back, and say so."""
        self.say("undoing", reason=reason)
        notes: list[str] = []
        was = self.before["unit"]
        steps = [self.restore_files]
        if was.get("ActiveState") != "active":
            steps = [self.stop, *steps]
        elif self.job["way"] == "reload":
            steps = [*steps, self.reload_what_was_in_force]
        else:
            steps = [*steps, self.move_back]
        steps.append(self.restore_unit_file)
        for step in steps:
            try:
                step()
            except (ChangeError, OSError, ValueError, KeyError) as error:
                notes.append(str(error))
        try:
            differences = self.differences()
        except (ChangeError, OSError, ValueError) as error:
            differences = [str(error)]
        self.say("undone", restored=not differences, differences=differences, notes=notes)

    def stop(self) -> None:
        """firewalld off, and its rules gone too, which it leaves in the kernel with CleanupOnExit=no."""
        systemctl("stop")
        if self.before["unit"].get("ActiveState") == "inactive":
            execute("systemctl", "reset-failed", UNIT)
        if self.table() and not self.before["table"]:
            command("nft", "delete", *TABLE.split())

    def restore_files(self) -> None:
        """Our files as they were."""
        held = {path: one for path, one in self.before["files"].items() if one is not None}
        restore(FOLDER, held, only=list(self.before["files"]))

    def move_back(self) -> None:
        if runs():
            self.move(rules.Runtime.from_json(self.before["runtime"]))

    def reload_what_was_in_force(self) -> None:
        """Load our old files, or what of others was in force although the files said otherwise, and leave the files."""
        if not runs():
            systemctl("start")
        if "in_force" in self.before:
            restore(FOLDER, self.before["in_force"])
        try:
            bus().reload()
        finally:
            if "tree" in self.before:
                restore(FOLDER, self.before["tree"])

    def restore_unit_file(self) -> None:
        """Enabled, disabled or masked as before."""
        was, now = self.before["unit"]["UnitFileState"], unit_state()["UnitFileState"]
        if was == now:
            return
        verb = was
        if was.startswith("masked"):
            verb = self.before.get("below_mask", now)
        if verb in ("enabled", "disabled") and verb != now:
            systemctl(verb[:-1])
        if was.startswith("masked"):
            systemctl("mask", *self.runtime_only(was))

    def differences(self) -> list[str]:
        """How the node differs from what it was before the change."""
        found = []
        was, now = self.before["unit"], unit_state()
        if (was["ActiveState"] == "active") != (now["ActiveState"] == "active"):
            found.append(f"firewalld is {now['ActiveState']}, before {was['ActiveState']}")
        if was["UnitFileState"] != now["UnitFileState"]:
            found.append(f"firewalld's unit is {now['UnitFileState']}, before {was['UnitFileState']}")
        held = digests(tree(FOLDER))
        found.extend(
            f"{path} is not what it was"
            for path in sorted({*held, *self.before["digests"]})
            if held.get(path) != self.before["digests"].get(path)
        )
        if self.before["runtime"] is not None and now["ActiveState"] == "active":
            found += rules.differences(rules.Runtime.from_json(self.before["runtime"]), bus().ours())
            found += pending.not_in_force(bus(), self.job["pending"])
        return found


if __name__ == "__main__":
    main(Worker)
