# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one node with a kernel of its own, for what containers cannot show: `vm.py up`, `vm.py down`. See docs/lab.md.

It lives beside the lab of containers and shares only the image: neither touches the other's interfaces or files.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

if __package__ in (None, ""):
    # As a script, this folder is first on the path, and `lab` would be a file in it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from lab import host, network, nodes, saved, state, vm_disk, vm_ports, vm_saved
from lab.flavour import chosen, major
from lab.settings import Node, Paths, here
from lab.shell import LabError, run, say
from lab.vm_disk import Disk
from lab.vm_saved import Saved

NOT_UP = "the virtual machine of this checkout is not up: run `make vm`"

# Not `gpulab`: the lab takes every interface of that name for its own and removes it.
PREFIX = "gpuvm"
MANAGEMENT_BRIDGE = f"{PREFIX}-mgmt"
FABRIC_BRIDGE = f"{PREFIX}-fab"
HOST_ADDRESS = "198.18.30.1/24"

RUN = Path("/run") / PREFIX
LOCK = Path("/run/lock") / f"{PREFIX}.lock"
PID_FILE = RUN / "qemu.pid"
OWNER_FILE = RUN / "owner.json"
CONSOLE = RUN / "console.sock"
CONTROL = RUN / "control.sock"
BOOT_LOG = RUN / "boot.log"
SEED = RUN / "seed.tar"

# Command -> Debian package, besides those of the containers.
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils", "mke2fs": "e2fsprogs", "dpkg-deb": "dpkg"}

#: The scenario whose roles a saved machine has seen.
SCENARIO = "vm"

# The emulated HPET is slow to read, and so are the kernel's detours around the faults of real processors.
QUICK = "tsc=reliable clocksource=tsc no_timer_check mitigations=off"
COMMAND_LINE = f"console=ttyS0 net.ifnames=0 loglevel=4 rdinit=/init security=selinux {QUICK}"
# What EL 9 asks for, x86-64-v2, and no more: AVX, SMAP and five levels of page tables take long to emulate.
PROCESSOR = "Nehalem-v1"
MEMORY_MIB = 1536
CORES = 2
# Emulated, beside other tests on two cores; 60 s alone.
BOOT_SECONDS = 600
# Another one after every boot.
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
# A restored machine goes on where it was saved. Sets its time and, for its next boot, that of its hardware clock.
SET_TIME = """
import fcntl, struct, sys, time
now = float(sys.argv[1])
time.clock_settime(time.CLOCK_REALTIME, now)
one = time.gmtime(now)
with open("/dev/rtc0", "rb") as clock:
    fields = (one.tm_sec, one.tm_min, one.tm_hour, one.tm_mday, one.tm_mon - 1, one.tm_year - 1900, 0, 0, 0)
    fcntl.ioctl(clock, 0x4024700A, struct.pack("9i", *fields))  # RTC_SET_TIME of linux/rtc.h
"""


class Machine(Node):
    """As the lab's nodes: everything follows from the number."""

    @property
    def name(self) -> str:
        return f"vm{self.number}"

    @property
    def management_address(self) -> str:
        return f"198.18.30.{10 + self.number}"

    @property
    def fabric_address(self) -> str:
        return f"198.18.31.{10 + self.number}/24"


class MachinePaths(Paths):
    """Beside the lab's files and not among them: `lab.py down` removes its folder."""

    @property
    def state(self) -> Path:
        return self.checkout / ".lab-vm"

    @property
    def host_key(self) -> Path:
        return self.state / "ssh_host_ed25519_key"

    @property
    def inventory(self) -> Path:
        return self.checkout / "inventories" / "vm" / "hosts.yml"

    @property
    def disks(self) -> Path:
        return self.kept("vm")

    @property
    def written(self) -> Path:
        """What the running machine has on its disk and the cached disk has not. It goes with the machine."""
        return self.cache / "vm-run" / "disk.qcow2"

    @property
    def certificates(self) -> Path:
        return self.inventory.with_name(state.CERTIFICATES)

    @property
    def saved(self) -> Path:
        """Not among the disks: of those only the latest stays."""
        return self.kept("vm-saved")


@dataclass(frozen=True)
class Card:
    """A network card: its name inside, and this machine's end of its cable."""

    name: str
    link: str
    mac: str
    bridge: str


MACHINE = Machine(1)
CARDS = (
    Card("eth0", f"{PREFIX}-eth0", "02:67:70:30:00:00", MANAGEMENT_BRIDGE),
    Card("eth1", f"{PREFIX}-eth1", "02:67:70:30:00:01", FABRIC_BRIDGE),
    Card("eth2", f"{PREFIX}-eth2", "02:67:70:30:00:02", FABRIC_BRIDGE),
)


def machine_paths() -> MachinePaths:
    paths = here()
    return MachinePaths(checkout=paths.checkout, cache=paths.cache, el=chosen(OWNER_FILE, paths.checkout))


def qemu_argv(disk: Disk, written: Path, begin: Saved | None = None) -> list[str]:
    """Software emulation: no KVM is asked for. What the machine writes goes to a file of its own."""
    argv = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-daemonize"]
    argv += ["-name", MACHINE.name, "-pidfile", str(PID_FILE)]
    argv += ["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", PROCESSOR]
    argv += ["-smp", str(CORES), "-m", str(MEMORY_MIB)]
    argv += ["-kernel", str(disk.kernel), "-initrd", str(disk.initrd), "-append", COMMAND_LINE]
    argv += ["-drive", f"file={written},format=qcow2,if=virtio"]
    argv += ["-drive", f"file={SEED},format=raw,if=virtio,readonly=on"]
    argv += ["-device", "virtio-rng-pci"]
    for card in CARDS:
        argv += ["-netdev", f"tap,id={card.link},ifname={card.link},script=no,downscript=no"]
        argv += [
            "-device",
            f"virtio-net-pci,id={card.name},netdev={card.link},mac={card.mac},speed=10000,duplex=full,romfile=",
        ]
    argv += ["-serial", f"file:{BOOT_LOG}", "-serial", f"unix:{CONSOLE},server=on,wait=off"]
    argv += ["-qmp", f"unix:{CONTROL},server=on,wait=off"]
    return argv if begin is None else [*argv, "-incoming", f"exec:cat '{begin.memory}'"]


def seed_files(public_key: str, host_key: str) -> dict[str, str]:
    """What makes the common disk this checkout's machine."""
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, f"{MACHINE.name}.{PREFIX}")
    profile = nodes.MANAGEMENT_PROFILE.format(uuid=identity, address=MACHINE.management_address)
    return {
        "etc/NetworkManager/system-connections/eth0.nmconnection": profile,
        "etc/hostname": f"{MACHINE.name}\n",
        "etc/ssh/ssh_host_ed25519_key": host_key,
        "root/.ssh/authorized_keys": public_key,
    }


def seed_tar(files: Mapping[str, str]) -> bytes:
    """A tar that is used as a disk, whose size is a multiple of its blocks."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folder = tarfile.TarInfo("root/.ssh")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(folder)
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o644 if name == "etc/hostname" else 0o600
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def inventory(paths: MachinePaths) -> str:
    """The lab's, and the settings for which an inventory in the checkout has group_vars."""
    text = state.inventory([MACHINE], paths).replace("`lab.py up`", "`vm.py up`")
    return f"{text}    gpu_cluster_fabric_interface: eth1\n    gpu_cluster_user: train\n"


def cable_commands() -> list[str]:
    """Two bridges, one of them without an address here, and a tap for every card."""
    commands = []
    for bridge in (MANAGEMENT_BRIDGE, FABRIC_BRIDGE):
        commands.append(f"link add {bridge} type bridge stp_state 0 forward_delay 0")
        commands.append(f"link set {bridge} addrgenmode none")
    commands.append(f"address add {HOST_ADDRESS} dev {MANAGEMENT_BRIDGE}")
    for card in CARDS:
        commands.append(f"tuntap add dev {card.link} mode tap")
        commands.append(f"link set {card.link} addrgenmode none")
        commands.append(f"link set {card.link} master {card.bridge} up")
    return [*commands, *(f"link set {bridge} up" for bridge in (MANAGEMENT_BRIDGE, FABRIC_BRIDGE))]


def _refuse_taken_network() -> None:
    wanted = IPv4Interface(HOST_ADDRESS).network
    for interface in json.loads(run(["ip", "-json", "-4", "address"]).stdout):
        for address in interface.get("addr_info", []):
            if IPv4Address(address["local"]) in wanted:
                raise LabError(
                    f"the virtual machine's network {wanted} is taken: {interface['ifname']} has the address "
                    f"{address['local']}; remove it or run the virtual machine elsewhere"
                )


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """One of these commands at a time on this machine."""
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another vm.py")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def links() -> list[str]:
    return sorted(path.name for path in network.INTERFACES.glob(f"{PREFIX}-*"))


def process() -> int | None:
    """The pid of the running machine, if the one that was written down is still its own."""
    try:
        pid = int(PID_FILE.read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if str(PID_FILE).encode() in words else None


def owner() -> tuple[MachinePaths, str] | None:
    """The checkout that started the machine, and the disk it runs from."""
    try:
        data = json.loads(OWNER_FILE.read_text())
        paths = MachinePaths(checkout=Path(data["checkout"]), cache=Path(data["cache"]), el=major(str(data["el"])))
        return paths, str(data["disk"])
    except (OSError, ValueError, KeyError, TypeError, LabError):
        return None


def is_over(pid: int) -> bool:
    """Whether all threads of a process have ended, and with them its locks and its hold on the cables.

    Its command line is gone some time before, on a busy machine long enough for the next one to be refused the disk.
    """
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[0] not in ("Z", "X"):
                return False
    return True


def _end_process() -> None:
    pid = process()
    if pid is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while not is_over(pid):
        if time.monotonic() > deadline:
            raise LabError(f"the virtual machine does not end: process {pid}")
        time.sleep(0.1)


def _present(paths: MachinePaths) -> bool:
    left = (RUN, paths.state, paths.inventory, paths.written)
    return bool(links()) or any(path.exists() for path in left)


def clear(paths: MachinePaths) -> None:
    """Take the machine away, whatever state it is in. The disk stays in the cache."""
    started_by = owner()
    for each in (paths, *(() if started_by is None else (started_by[0],))):
        state.remove_inventory(each.inventory)
        shutil.rmtree(each.state, ignore_errors=True)
        with contextlib.suppress(OSError):
            each.inventory.parent.rmdir()
    _end_process()
    network.remove_links(links())
    host.discard(RUN)
    for each in (paths, *(() if started_by is None else (started_by[0],))):
        host.discard(each.written.parent)


def _sound(paths: MachinePaths, disk: Disk) -> bool:
    """This checkout's machine runs, from the current disk, and lets us in."""
    if process() is None or owner() != (paths, disk.folder.name) or not paths.inventory.exists():
        return False
    return not _locked_out(paths)


def _locked_out(paths: MachinePaths) -> str:
    """Why ssh does not let us in; empty when it does."""
    argv = nodes.ssh_argv(paths, MACHINE)
    argv[1:1] = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
    try:
        run([*argv, "true"], timeout=20)
    except LabError as error:
        return str(error)
    return ""


def _version_of_qemu() -> str:
    return run(["qemu-system-x86_64", "--version"]).stdout.partition("\n")[0]


def saved_state(paths: MachinePaths, disk: Disk) -> Saved:
    """The state that the roles of this checkout lead to, whether or not it is in the cache."""
    return Saved(
        paths.saved / saved.key(SCENARIO, disk.folder.name, _version_of_qemu(), repr(qemu_argv(disk, paths.written)))
    )


def up(paths: MachinePaths, *, fresh: bool, from_saved: bool = False) -> None:
    host.require_root()
    host.install_packages(TOOLS)
    with lock():
        disk = vm_disk.ensure(here(), paths.disks)
        begin = saved_state(paths, disk) if from_saved else None
        if begin is not None and not begin.exists():
            raise LabError(f"the cache has no saved state of this tree: {begin.folder}")
        if not fresh and begin is None and _sound(paths, disk):
            print(f"{MACHINE.name} is up: nothing to do")
            return
        started_by = owner()
        if started_by is not None and started_by[0] != paths:
            say(f"replacing the virtual machine that was started from {started_by[0].checkout}")
        clear(paths)
        began = time.monotonic()
        _start(paths, disk, begin)
        _wait(paths, began + BOOT_SECONDS)
        state.write(paths.inventory, inventory(paths))
    how = "booted" if begin is None else "restored"
    print(f"{MACHINE.name} is up: changed, {how} in {time.monotonic() - began:.0f} s")


def save(paths: MachinePaths) -> None:
    """Keep the running machine as what the roles of this checkout lead to."""
    _require_up(paths)
    with lock():
        disk = vm_disk.ensure(here(), paths.disks)
        kept = saved_state(paths, disk)
        vm_ports.ask(CONSOLE, "sync", 60)
        folders = [folder for folder in (paths.state, paths.certificates) if folder.exists()]
        vm_saved.save(CONTROL, paths.written, kept, folders, paths.checkout)
    print(f"{MACHINE.name} is saved: {kept.folder}")


def has_saved(paths: MachinePaths) -> int:
    """Exit status 0 when the cache has the state that the roles of this checkout lead to."""
    host.require_root()
    host.install_packages(TOOLS)
    with lock():
        found = saved_state(paths, vm_disk.ensure(here(), paths.disks))
    print(f"{found.folder}: {'saved' if found.exists() else 'not saved'}")
    return 0 if found.exists() else 1


def _keys(paths: MachinePaths) -> None:
    """Make the keys of a new machine."""
    state.ensure_key(paths)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", MACHINE.name, "-f", str(paths.host_key)])
    host_key = " ".join(paths.host_key.with_suffix(".pub").read_text().split()[:2])
    state.write(paths.known_hosts, state.known_hosts([MACHINE], {MACHINE.name: [host_key]}))


def _make_disk(paths: MachinePaths, disk: Disk, begin: Saved | None) -> None:
    """An empty layer over the disk of the cache, or over that of a saved state: nothing writes to these."""
    below, kind = (disk.root, "raw") if begin is None else (begin.disk, "qcow2")
    paths.written.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", str(below), str(paths.written)])


def _start(paths: MachinePaths, disk: Disk, begin: Saved | None) -> None:
    _refuse_taken_network()
    RUN.mkdir(mode=0o700)
    record = {"checkout": str(paths.checkout), "cache": str(paths.cache), "el": paths.el, "disk": disk.folder.name}
    state.write(OWNER_FILE, json.dumps(record) + "\n")
    if begin is None:
        _keys(paths)
    else:
        vm_saved.restore_belongings(begin, paths.checkout)
    _make_disk(paths, disk, begin)
    SEED.write_bytes(seed_tar(seed_files(state.ensure_key(paths), paths.host_key.read_text())))
    run(["ip", "-batch", "-"], stdin="".join(f"{command}\n" for command in cable_commands()).encode())
    run(qemu_argv(disk, paths.written, begin), cwd=Path("/"))
    if begin is not None:
        vm_saved.go_on(CONTROL)
        vm_ports.wait_for_console(CONSOLE, time.monotonic() + BOOT_SECONDS)
        answer = vm_ports.ask(CONSOLE, f"python3 -c {shlex.quote(SET_TIME)} {time.time()}", 60)
        if answer.status:
            raise LabError(f"cannot set the time of {MACHINE.name}: {answer.stderr.decode(errors='replace')}")


def _wait_for_boot(deadline: float) -> str:
    """Wait until systemd and NetworkManager have settled; returns what systemd says then."""
    say(f"waiting for {MACHINE.name}, in software emulation: a minute or so")
    try:
        vm_ports.wait_for_console(CONSOLE, deadline)
        settle = "systemctl is-system-running --wait; nm-online --wait-for-startup --quiet --timeout=60"
        return vm_ports.ask(CONSOLE, settle, max(deadline - time.monotonic(), 1)).stdout.decode().strip()
    except LabError as error:
        raise LabError(f"{MACHINE.name} did not boot: {error}\n{_last_words()}") from error


def _wait(paths: MachinePaths, deadline: float) -> None:
    """Wait until the machine has booted well and ssh lets us in."""
    said = _wait_for_boot(deadline)
    if said != "running":
        listed = vm_ports.ask(CONSOLE, "systemctl --failed --no-legend --plain; journalctl -b --no-pager -n 25", 60)
        raise LabError(f"{MACHINE.name} did not boot: systemd says {said!r}\n{listed.stdout.decode(errors='replace')}")
    while why := _locked_out(paths):
        if time.monotonic() > deadline:
            raise LabError(f"{MACHINE.name} booted but does not answer on ssh: {why}")
        time.sleep(0.5)


def _last_words() -> str:
    with contextlib.suppress(OSError):
        return "\n".join(BOOT_LOG.read_text(errors="replace").splitlines()[-25:])
    return ""


def down(paths: MachinePaths, *, with_image: bool) -> None:
    host.require_root()
    with lock():
        present = _present(paths)
        clear(paths)
        if with_image:
            host.discard(paths.disks)
            host.discard(paths.saved)
    print(f"{MACHINE.name} is down" if present else f"{MACHINE.name} is down: nothing to do")


def _require_up(paths: MachinePaths) -> None:
    started_by = owner()
    if started_by is None or started_by[0] != paths or process() is None:
        raise LabError(NOT_UP)


def status(paths: MachinePaths) -> int:
    """As `lab.py status`: exit status 1 unless this checkout's machine runs."""
    started_by = owner()
    if started_by is not None and started_by[0] != paths:
        print(f"a virtual machine is up that was started from {started_by[0].checkout}")
        return 1
    if process() is None:
        print(
            f"{MACHINE.name} is down{', but left something behind: `vm.py down` removes it' if _present(paths) else ''}"
        )
        return 1
    print(f"{MACHINE.name}  running  {MACHINE.management_address}  {MACHINE.fabric_address}")
    for card in CARDS:
        print(f"  {card.name}  {card.mac}  cable {card.link} on {card.bridge}")
    return 0


def ssh(paths: MachinePaths, command: Sequence[str]) -> int:
    _require_up(paths)
    return subprocess.run([*nodes.ssh_argv(paths, MACHINE), *command], check=False).returncode


def console(paths: MachinePaths, command: Sequence[str], seconds: float) -> int:
    """One word is a line of shell, as with ssh; several are a command and its arguments."""
    _require_up(paths)
    line = command[0] if len(command) == 1 else shlex.join(command)
    answer = vm_ports.ask(CONSOLE, line, seconds)
    sys.stdout.buffer.write(answer.stdout)
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(answer.stderr)
    return answer.status


def cable(paths: MachinePaths, card: str, *, plugged: bool) -> None:
    """Pull a cable or put it back: the machine sees its carrier go and come."""
    _require_up(paths)
    vm_ports.control(CONTROL, "set_link", name=card, up=plugged)
    print(f"{card}: {'plugged in' if plugged else 'pulled'}")


def reset(paths: MachinePaths) -> None:
    """Cut its power, and give it back: nothing is shut down, the disk stays.

    Whether the network is well is for the caller to see.  The reset button of qemu 7.2 does not do: the emulator itself
    broke over it once (a segmentation fault).
    """
    _require_up(paths)
    with lock():
        began = time.monotonic()
        disk = vm_disk.ensure(here(), paths.disks)
        _end_process()
        run(qemu_argv(disk, paths.written), cwd=Path("/"))
        said = _wait_for_boot(began + BOOT_SECONDS)
    print(f"{MACHINE.name} was reset: {said} after {time.monotonic() - began:.0f} s")


def reboot(paths: MachinePaths) -> None:
    """An orderly restart from inside, as an operator does it: services are stopped, the disk stays."""
    _require_up(paths)
    with lock():
        began = time.monotonic()
        booted = vm_ports.ask(CONSOLE, BOOT_ID, 60).stdout
        # The answer may be lost: the console is one of the services that are stopped.
        with contextlib.suppress(LabError):
            vm_ports.ask(CONSOLE, "systemctl --no-block reboot", 5)
        while True:
            said = _wait_for_boot(began + BOOT_SECONDS)
            if vm_ports.ask(CONSOLE, BOOT_ID, 60).stdout != booted:
                break
            time.sleep(1)
    print(f"{MACHINE.name} was rebooted: {said} after {time.monotonic() - began:.0f} s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vm.py", description=__doc__)
    commands = parser.add_subparsers(dest="verb", required=True)
    one = commands.add_parser("up", help="boot the machine, unless it is up and answers")
    how = one.add_mutually_exclusive_group()
    how.add_argument("--fresh", action="store_true", help="with an empty disk, also when it is up")
    how.add_argument("--saved", action="store_true", help="as `save` has kept it for this tree")
    commands.add_parser("save", help="keep the running machine in the cache as what this tree leads to")
    commands.add_parser("saved", help="tell by the exit status whether the cache has a machine of this tree")
    one = commands.add_parser("down", help="remove it from this machine")
    one.add_argument("--image", action="store_true", help="and its disk and saved states from the cache")
    commands.add_parser("status", help="say whether it is up, and where its cables are")
    one = commands.add_parser("ssh", help="log in as root, or run a command")
    one.add_argument("command", nargs=argparse.REMAINDER)
    one = commands.add_parser("console", help="run a command over a serial port, also when the network is broken")
    one.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="end it then (default: 60)")
    one.add_argument("command", nargs=argparse.REMAINDER)
    one = commands.add_parser("cable", help="pull a network cable, or plug it in again")
    one.add_argument("card", choices=[card.name for card in CARDS])
    one.add_argument("what", choices=["pull", "plug"])
    commands.add_parser("reset", help="press the reset button, wait for the next boot")
    commands.add_parser("reboot", help="restart it in an orderly way, wait for the next boot")
    return parser


def _dispatch(arguments: argparse.Namespace) -> int:
    paths = machine_paths()
    verb: str = arguments.verb
    command = list(getattr(arguments, "command", []))
    command = command[1:] if command[:1] == ["--"] else command
    if verb == "console" and not command:
        raise LabError("`vm.py console` needs a command to run")
    if verb == "ssh":
        return ssh(paths, command)
    if verb == "console":
        return console(paths, command, arguments.timeout)
    if verb == "status":
        return status(paths)
    if verb == "saved":
        return has_saved(paths)
    if verb == "up":
        up(paths, fresh=arguments.fresh, from_saved=arguments.saved)
    elif verb == "save":
        save(paths)
    elif verb == "down":
        down(paths, with_image=arguments.image)
    elif verb == "cable":
        cable(paths, arguments.card, plugged=arguments.what == "plug")
    elif verb == "reboot":
        reboot(paths)
    else:
        reset(paths)
    return 0


def main() -> int:
    arguments = _parser().parse_args()
    try:
        return _dispatch(arguments)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
