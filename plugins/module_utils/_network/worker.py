# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that changes a node's network and takes the change back unless it is confirmed.

The format of its job is in the docstring of ``change.py``. Until it is confirmed, nothing below /etc is touched: the
profiles lie in /run, so a power cycle undoes them. This program brings the old state back at its deadline. When it is
killed, systemd starts it once more to do that; should that fail too, NetworkManager's own checkpoint is the last one.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import (
    ChangeError,
    Program,
    command,
    execute,
    main,
    put_back,
    read_text,
    write_whole,
)

PERSISTENT = "/etc/NetworkManager/system-connections"
RUNTIME = "/run/NetworkManager/system-connections"
ASIDE = "/var/lib/gpu-cluster/static_network"
BUS = ("org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager")
#: On rollback delete new profiles (2) and disconnect new devices (4): NMCheckpointCreateFlags of its D-Bus API.
CHECKPOINT_FLAGS = 6
#: NetworkManager's own rollback comes this much later than ours, in seconds: ours says what happened.
CHECKPOINT_MARGIN_SECONDS = 10
#: Of the time to confirm, the share that one profile has to come up, and that all interfaces have to get what they
#: need afterwards, but no less than these seconds: who gives a slow machine more time gives it more here too.
ACTIVATION_SHARE, ACTIVATION_SECONDS = 1 / 3, 20
SETTLE_SHARE, SETTLE_SECONDS = 1 / 6, 8
RESTORE_SECONDS = 15
#: RFC 5227 sends three probes and waits 1 to 2 s for an answer; hosts on one network answer within milliseconds.
ARP_PROBES = 3
ARP_PROBE_SECONDS = 0.3
#: The kernel asks for a neighbour three times, once a second (mcast_solicit and retrans_time_ms of neigh).
NEIGHBOUR_SECONDS = 3.5
DISCARD_PORT = 9


DEAD_GATEWAY = (
    "%(interface)s: the gateway %(router)s does not answer, neither ARP nor neighbour discovery: everybody outside of "
    "the subnet would be cut off. Correct its address, or write gateway: [] as long as there is none"
)
DEAD_ROUTER = (
    "%(interface)s: the router %(router)s of the route to %(to)s does not answer, neither ARP nor neighbour discovery: "
    "everybody behind it would be cut off. Correct its address in via, or take the route out as long as there is none"
)


def checkpoint_call(method: str, *arguments: str) -> str:
    """Call NetworkManager over D-Bus; busctl is a part of systemd, so no bindings are needed."""
    return command("busctl", "call", *BUS, method, *arguments).strip()


def interfaces() -> dict[str, dict[str, Any]]:
    """MTU and addresses of every interface; IPv6 link-local addresses, which come and go, are left out."""
    return {
        link.name: {
            "mtu": link.mtu,
            "addresses": sorted(one.cidr for one in link.addresses if one.scope != "link" and not one.tentative),
        }
        for link in iproute.links(command("ip", "-j", "address"))
    }


def in_words(found: dict[str, Any] | None) -> str:
    """One entry of ``interfaces``, for a message."""
    if found is None:
        return "vanished"
    return f"has {' '.join(found['addresses']) or 'no address'} and an MTU of {found['mtu']}"


def default_routes() -> list[str]:
    """Gateway and device of the default routes of both families."""
    shown = [command("ip", "-j", family, "route", "show", "default") for family in ("-4", "-6")]
    return sorted(f"{route.gateway} {route.device}" for text in shown for route in iproute.routes(text or "[]"))


def keyfile_digests() -> dict[str, str]:
    """The sha256 of every persistent profile."""
    found = {}
    for path in sorted(glob.glob(os.path.join(PERSISTENT, "*.nmconnection"))):
        with open(path, "rb") as stream:
            found[path] = hashlib.sha256(stream.read()).hexdigest()
    return found


def load_profiles(files: list[str]) -> None:
    """Let NetworkManager read these profiles. Raise ``ChangeError`` when it refuses one."""
    argv = ("nmcli", "connection", "load", *files)
    code, out, err = execute(*argv)
    # nmcli ends with 0 when a profile is refused, and says so among its errors (NetworkManager 1.42 and 1.52).
    if code or "Could not load" in out + err:
        raise ChangeError(f"NetworkManager refused a profile: {' '.join(f'{out} {err}'.split())}")


def active_profiles() -> dict[str, str]:
    """The uuid of the active profile by interface."""
    out = command("nmcli", "-t", "-f", "UUID,DEVICE", "connection", "show", "--active")
    pairs = (line.partition(":") for line in out.splitlines())
    return {device: uuid for uuid, colon, device in pairs if device}


def sysctl_path(key: str) -> str:
    """``key`` is written with slashes, because names of interfaces may hold dots."""
    return os.path.join("/proc/sys", key)


def read_value(key: str) -> str | None:
    text = read_text(sysctl_path(key))
    return None if text is None else text.strip()


def write_value(key: str, value: str) -> None:
    try:
        with open(sysctl_path(key), "w", encoding="ascii") as stream:
            stream.write(value)
    except OSError as error:
        raise ChangeError(f"the kernel refused {key} = {value}: {error.strerror}") from None


def own_macs() -> set[str]:
    """The hardware addresses of this node."""
    found = set()
    for path in glob.glob("/sys/class/net/*/address"):
        found.add((read_text(path) or "").strip())
    return found


def conflict_in(frame: bytes, address: str, own: set[str]) -> str | None:
    """The hardware address of another machine that holds ``address``, when this ARP frame says so (RFC 5227)."""
    if len(frame) < 42 or frame[12:14] != b"\x08\x06" or frame[14:20] != b"\x00\x01\x08\x00\x06\x04":
        return None
    wanted = socket.inet_aton(address)
    sender = ":".join(f"{byte:02x}" for byte in frame[22:28])
    probes_for_it_too = frame[28:32] == b"\0\0\0\0" and frame[38:42] == wanted
    if sender in own or not (frame[28:32] == wanted or probes_for_it_too):
        return None
    return sender


def address_conflict(interface: str, address: str) -> str | None:
    """Ask the network who has an IPv4 address; the hardware address of the other machine, or None."""
    mac = (read_text(f"/sys/class/net/{interface}/address") or "").strip()
    sender = bytes.fromhex(mac.replace(":", ""))
    probe = b"\xff" * 6 + sender + b"\x08\x06" + b"\x00\x01\x08\x00\x06\x04\x00\x01"
    probe += sender + b"\0" * 4 + b"\0" * 6 + socket.inet_aton(address)
    own = own_macs()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806)) as wire:
        wire.bind((interface, 0x0806))
        for _count in range(ARP_PROBES):
            wire.send(probe)
            end = time.monotonic() + ARP_PROBE_SECONDS
            while (left := end - time.monotonic()) > 0:
                wire.settimeout(left)
                try:
                    found = conflict_in(wire.recv(2048), address, own)
                except (socket.timeout, BlockingIOError):
                    break
                if found:
                    return found
    return None


def echo(interface: str, target: str, size: int) -> str:
    """What ping says to one unfragmented packet of ``size`` bytes, header included; empty when all was silent."""
    header = 48 if ":" in target else 28
    options = ("-n", "-c", "2", "-i", "0.3", "-W", "1", "-M", "do", "-I", interface, "-s", str(size - header))
    code, out, err = execute("ping", *options, target)
    said = f"{out} {err}"
    # An explicit refusal is no hole: TCP hears it too, and sends smaller packets.
    heard = code == 0 or re.search(r"frag needed|too big|message too long", said, re.IGNORECASE)
    return " ".join(said.split()) if heard else ""


def has_answered(neighbours: str) -> bool:
    """Whether the kernel knows, by what ``ip -j neigh show`` printed, how to send to a machine on the wire."""
    states = {state for one in iproute.neighbours(neighbours or "[]") for state in one.states}
    return bool(states - {"INCOMPLETE", "FAILED", "NONE"})


def routers_in_use() -> set[tuple[str, str]]:
    """Interface and address of the routers of all routes, in all tables of both families."""
    shown = [command("ip", "-j", family, "route", "show", "table", "all") for family in ("-4", "-6")]
    routes = [route for text in shown for route in iproute.routes(text or "[]")]
    return {(route.device, route.gateway) for route in routes if route.gateway}


def router_answers(interface: str, router: str) -> bool:
    """Let the kernel ask the wire who has the router's address: ARP, or neighbour discovery of IPv6.

    What the kernel knew before says nothing about now. An empty packet to the discard port makes it ask; whether the
    router takes it does not matter, so one that answers no ping does.
    """
    about = ("to", router, "dev", interface)
    execute("ip", "neigh", "flush", *about)
    version = socket.AF_INET6 if ":" in router else socket.AF_INET
    try:
        with socket.socket(version, socket.SOCK_DGRAM) as wire:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
            scope = (0, socket.if_nametoindex(interface)) if version == socket.AF_INET6 else ()
            wire.sendto(b"", (router, DISCARD_PORT, *scope))
    except OSError:
        return False
    end = time.monotonic() + NEIGHBOUR_SECONDS
    while time.monotonic() < end:
        code, out, _err = execute("ip", "-j", "neigh", "show", *about)
        if code == 0 and has_answered(out):
            return True
        time.sleep(0.1)
    return False


def taken_addresses(events: str, interface: str) -> set[str]:
    """Addresses with their prefix that ``ip monitor address`` showed as refused by duplicate address detection."""
    return set(re.findall(rf"^\d+: {re.escape(interface)}\s+inet6 (\S+) .*\bdadfailed\b", events, re.MULTILINE))


def move(source: str, target: str) -> None:
    """Move a file and give it the SELinux label that the policy has for its new place; a rename keeps the old one."""
    command("mv", "-fZ", source, target)


def has_it(address: str) -> str:
    """What a message says about one of ``taken_addresses``."""
    return f"another machine has {address} (the kernel's duplicate address detection refused it)"


def mtu_hole(interface: str, target: str, mtu: int) -> bool:
    """Whether small packets are answered by ``target`` and packets of the full MTU silently vanish."""
    return bool(echo(interface, target, 100)) and not echo(interface, target, mtu)


class Worker(Program):
    """One change of one node, from the checkpoint to its end."""

    not_armed = "no checkpoint could be made"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.checkpoint = ""
        #: What ``ip monitor`` says of addresses while the change is made, and where it says more.
        self.address_events = b""
        self.watched = -1

    def say(self, state: str, **more: Any) -> None:
        super().say(state, checkpoint=self.checkpoint, **more)

    def resume(self) -> None:
        super().resume()
        self.checkpoint = self.state.get("checkpoint", "")

    # --- from nothing to applied -------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Remember what is there, and let NetworkManager do the same."""
        self.before = {
            "interfaces": interfaces(),
            "routes": default_routes(),
            "digests": keyfile_digests(),
            "active": active_profiles(),
            "profiles": {
                entry["name"]: read_text(os.path.join(PERSISTENT, entry["name"])) for entry in self.job["profiles"]
            },
        }
        sysctl = self.job["sysctl"]
        if sysctl:
            self.before["values"] = {key: read_value(key) for key in sysctl["values"]}
            self.before["sysctl_text"] = read_text(sysctl["path"])
        self.remember()
        seconds = str(self.job["confirm_seconds"] + CHECKPOINT_MARGIN_SECONDS)
        answer = checkpoint_call("CheckpointCreate", "aouu", "0", seconds, str(CHECKPOINT_FLAGS))
        self.checkpoint = answer.split('"')[1]
        self.say("armed")

    def apply(self) -> None:
        """Make the change in the running system only."""
        probed = []
        for entry in self.job["conflicts"]:
            if self.can_send(entry["interface"]):
                self.refuse_conflict(entry)
                probed.append(entry)
        silent = self.silent_routers()
        self.say("applying")
        files = [os.path.join(RUNTIME, entry["name"]) for entry in self.job["profiles"]]
        for path, entry in zip(files, self.job["profiles"]):
            write_whole(path, entry["text"], 0o600)
        if files:
            load_profiles(files)
        with self.watched_addresses():
            for entry in self.job["activate"]:
                self.activate(entry)
            for key, value in (self.job["sysctl"] or {"values": {}})["values"].items():
                write_value(key, value)
            self.settle()
        for entry in self.job["conflicts"]:
            if entry not in probed:
                self.refuse_conflict(entry)
        self.refuse_dead_routers(silent)
        for entry in self.probe_targets():
            for target in entry["targets"]:
                if mtu_hole(entry["interface"], target, entry["mtu"]):
                    raise ChangeError(
                        f"{entry['interface']}: {target} answers small packets, but packets of {entry['mtu']} bytes "
                        f"vanish without a word: something on that path does not carry an MTU of {entry['mtu']}"
                    )

    def can_send(self, interface: str) -> bool:
        return (read_text(f"/sys/class/net/{interface}/operstate") or "").strip() == "up"

    def refuse_conflict(self, entry: dict[str, str]) -> None:
        try:
            other = address_conflict(entry["interface"], entry["address"])
        except OSError as error:
            raise ChangeError(f"{entry['interface']}: could not ask who has {entry['address']}: {error}") from None
        if other:
            raise ChangeError(
                f"{entry['interface']}: another machine, with the hardware address {other}, has {entry['address']}"
            )

    def silent_routers(self) -> set[tuple[str, str]]:
        """Interface and address of the job's routers that are in use before the change, and do not answer then."""
        used = routers_in_use()
        pairs = [(entry["interface"], entry["router"]) for entry in self.job["routers"]]
        return {pair for pair in pairs if pair in used and not router_answers(*pair)}

    def refuse_dead_routers(self, silent: set[tuple[str, str]]) -> None:
        """Every router must answer on the wire, but for those that were silent before. A switch may need a moment."""
        waiting = [entry for entry in self.job["routers"] if (entry["interface"], entry["router"]) not in silent]
        end = time.monotonic() + self.share(SETTLE_SHARE, SETTLE_SECONDS)
        while True:
            waiting = [entry for entry in waiting if not router_answers(entry["interface"], entry["router"])]
            if not waiting:
                return
            if time.monotonic() > end:
                dead = [(DEAD_ROUTER if entry["to"] else DEAD_GATEWAY) % entry for entry in waiting]
                raise ChangeError("; ".join(dead))

    @contextmanager
    def watched_addresses(self) -> Iterator[None]:
        """Note what happens to addresses: NetworkManager takes one that another machine has away at once, and tries
        it again and again, so that a look from time to time misses the failure. Through a pipe: SELinux lets ``ip``
        write to no file of ours."""
        argv = ["ip", "monitor", "address"]
        nothing = subprocess.DEVNULL
        with subprocess.Popen(argv, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing) as watcher:
            if watcher.stdout is not None:
                self.watched = watcher.stdout.fileno()
                os.set_blocking(self.watched, False)
            try:
                yield
            finally:
                self.watched = -1
                watcher.kill()

    def taken(self, interface: str) -> set[str]:
        """The IPv6 addresses, with their prefix, that the kernel's duplicate address detection refused so far."""
        with suppress(BlockingIOError):
            while self.watched >= 0 and (part := os.read(self.watched, 1 << 16)):
                self.address_events += part
        return taken_addresses(self.address_events.decode(errors="replace"), interface)

    def activate(self, entry: dict[str, str]) -> None:
        seconds = int(self.share(ACTIVATION_SHARE, ACTIVATION_SECONDS))
        argv = (
            "nmcli",
            "--wait",
            str(seconds),
            "connection",
            "up",
            "uuid",
            entry["uuid"],
            "ifname",
            entry["interface"],
        )
        try:
            command(*argv, seconds=seconds + 5)
        except ChangeError as error:
            cause = "; ".join(has_it(address) for address in sorted(self.taken(entry["interface"])))
            reason = f"{cause} (NetworkManager: {error})" if cause else str(error)
            raise ChangeError(f"{entry['interface']}: the profile could not be activated: {reason}") from None

    def share(self, part: float, least: float) -> float:
        """Seconds that something may take: this part of the time to confirm, as long as the deadline is not nearer."""
        return self.remaining(max(least, part * self.job["confirm_seconds"]))

    def settle(self) -> None:
        """Wait until every interface has what the job expects; name what is missing."""
        seconds = self.share(SETTLE_SHARE, SETTLE_SECONDS)
        end = time.monotonic() + seconds
        while True:
            missing = self.missing()
            if not missing:
                return
            if time.monotonic() > end:
                raise ChangeError(f"after {seconds:.0f} s {'; '.join(missing)}")
            time.sleep(0.2)

    def missing(self) -> list[str]:
        """What the running system still lacks."""
        links = {link.name: link for link in iproute.links(command("ip", "-j", "address"))}
        found = []
        for entry in self.job["expect"]:
            name, link = entry["interface"], links.get(entry["interface"])
            if link is None:
                found.append(f"there is no interface {name}")
                continue
            held = {one.cidr: one for one in link.addresses}
            for address in entry["addresses"]:
                one = held.get(address)
                if one and not one.tentative:
                    continue
                if address in self.taken(name):
                    found.append(f"{name}: {has_it(address)}")
                elif one:
                    found.append(f"{name}: the kernel still asks whether another machine has {address}")
                else:
                    found.append(f"{name} does not have {address}")
            if entry["mtu"] and link.mtu != entry["mtu"]:
                found.append(f"{name} has an MTU of {link.mtu} instead of {entry['mtu']}")
            if "LOWER_UP" not in link.flags and "NO-CARRIER" in link.flags:
                found.append(f"{name} has no carrier")
        return found

    def probe_targets(self) -> list[dict[str, Any]]:
        """The job's targets, and the controller where the way to it uses the interface."""
        way = ""
        client = self.job["client"]
        if client:
            try:
                way = iproute.routes(command("ip", "-j", "route", "get", client))[0].device
            except (ChangeError, ValueError, IndexError):
                way = ""
        return [
            dict(entry, targets=[*entry["targets"], *([client] if entry["interface"] == way else [])])
            for entry in self.job["mtu_probes"]
        ]

    # --- from applied to kept ----------------------------------------------------------------------------------------

    def keep(self) -> dict[str, Any]:
        """Write below /etc what runs already, then give up the way back."""
        moved: list[tuple[str, str]] = []
        try:
            for entry in self.job["profiles"]:
                write_whole(os.path.join(PERSISTENT, entry["name"]), entry["text"], 0o600)
            for entry in self.job["profiles"]:
                self.forget_runtime(entry["name"])
            self.set_aside(moved)
            sysctl = self.job["sysctl"]
            if sysctl:
                if sysctl["text"]:
                    write_whole(sysctl["path"], sysctl["text"], 0o644)
                else:
                    put_back(sysctl["path"], None, 0o644)
            command("nmcli", "connection", "reload")
            self.still_active()
        except (ChangeError, OSError) as error:
            for place, aside in moved:
                move(aside, place)
            for name, text in self.before["profiles"].items():
                put_back(os.path.join(PERSISTENT, name), text, 0o600)
            if self.job["sysctl"]:
                put_back(self.job["sysctl"]["path"], self.before["sysctl_text"], 0o644)
            reason = error if isinstance(error, ChangeError) else f"{error.filename or 'a file'}: {error.strerror}"
            full = " (the disk is full)" if getattr(error, "errno", 0) == errno.ENOSPC else ""
            raise ChangeError(f"the confirmed change could not be made permanent: {reason}{full}") from None
        try:
            checkpoint_call("CheckpointDestroy", "o", self.checkpoint)
            note = ""
        except ChangeError as error:
            note = f"the checkpoint was gone already ({error})"
        self.checkpoint = ""
        return {"note": note, "set_aside": [target for source, target in moved]}

    def forget_runtime(self, name: str) -> None:
        """Remove a profile from /run, where it shadows the one below /etc."""
        path = os.path.join(RUNTIME, name)
        if os.path.exists(path):
            os.unlink(path)

    def set_aside(self, moved: list[tuple[str, str]]) -> None:
        """Move the files that the new profiles replace out of NetworkManager's sight, and note where they went."""
        if not self.job["set_aside"]:
            return
        folder = os.path.join(ASIDE, self.job["run_id"])
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for source in self.job["set_aside"]:
            target = os.path.join(folder, os.path.basename(source))
            move(source, target)
            moved.append((source, target))

    def still_active(self) -> None:
        """The reload must not have taken away what was just confirmed."""
        active = active_profiles()
        for entry in self.job["activate"]:
            if active.get(entry["interface"]) != entry["uuid"]:
                raise ChangeError(f"{entry['interface']} lost its profile when NetworkManager read the files again")

    # --- back ---------------------------------------------------------------------------------------------------------

    def undo(self, reason: str) -> None:
        """Bring the old state back, look whether it is back, and say so."""
        self.say("undoing", reason=reason)
        notes = []
        try:
            checkpoint_call("CheckpointRollback", "o", self.checkpoint)
        except ChangeError as error:
            notes.append(f"NetworkManager's checkpoint was of no use ({error})")
        for entry in self.job["profiles"]:
            self.forget_runtime(entry["name"])
        try:
            self.restore_files()
        except OSError as error:
            notes.append(f"{error.filename or 'a file'}: {error.strerror}")
        for key, value in self.before.get("values", {}).items():
            if value is not None and read_value(key) != value:
                try:
                    write_value(key, value)
                except ChangeError as error:
                    notes.append(str(error))
        try:
            command("nmcli", "connection", "reload")
        except ChangeError as error:
            notes.append(str(error))
        differences = self.wait_until_restored(notes)
        self.checkpoint = ""
        self.say("undone", restored=not differences, differences=differences, notes=notes)

    def restore_files(self) -> None:
        """Give the profiles below /etc back as they were, byte by byte.

        NetworkManager from 1.48 on writes a profile that it rolls back to /etc itself, in its own words and without
        comments (commit c979bfeb8b), and under another name where the old one is taken.
        """
        if "profiles" not in self.before:
            return
        for name, text in self.before["profiles"].items():
            put_back(os.path.join(PERSISTENT, name), text, 0o600)
        uuids = {entry["uuid"] for entry in self.job["profiles"]}
        for path in set(keyfile_digests()) - set(self.before["digests"]):
            said = re.search(r"^uuid=(\S+)$", read_text(path) or "", re.MULTILINE)
            if said and said[1] in uuids:
                os.unlink(path)

    def wait_until_restored(self, notes: list[str]) -> list[str]:
        """What is still not as before; what NetworkManager did not bring back by itself is brought back by hand."""
        end = time.monotonic() + RESTORE_SECONDS
        by_hand = False
        while True:
            try:
                differences = self.differences()
            except ChangeError as error:
                differences = [str(error)]
            if not differences or time.monotonic() > end:
                return differences
            if not by_hand and time.monotonic() > end - RESTORE_SECONDS / 2:
                by_hand = True
                self.restore_by_hand(notes)
            time.sleep(0.3)

    def restore_by_hand(self, notes: list[str]) -> None:
        """Activate the old profiles, and set the old MTU, of which NetworkManager knows nothing after a restart."""
        now = interfaces()
        wrong = [name for name, held in self.before["interfaces"].items() if name in now and now[name] != held]
        for name in wrong:
            uuid = self.before["active"].get(name)
            mtu = str(self.before["interfaces"][name]["mtu"])
            try:
                if uuid:
                    command("nmcli", "--wait", "5", "connection", "up", "uuid", uuid, "ifname", name)
                command("ip", "link", "set", "dev", name, "mtu", mtu)
            except ChangeError as error:
                notes.append(str(error))

    def differences(self) -> list[str]:
        """How the node differs from what it was before the change."""
        found = []
        now = interfaces()
        for name, held in self.before["interfaces"].items():
            if now.get(name) != held:
                found.append(f"{name} {in_words(now.get(name))}, before it {in_words(held)}")
        routes = default_routes()
        if routes != self.before["routes"]:
            found.append(f"the default routes are {routes}, before {self.before['routes']}")
        digests = keyfile_digests()
        found.extend(
            f"{path} is not what it was"
            for path in sorted(set(digests) | set(self.before["digests"]))
            if digests.get(path) != self.before["digests"].get(path)
        )
        return found


if __name__ == "__main__":
    main(Worker)
