# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of the virtual machine can be decided without one: names, files, argv, and what goes over its ports."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv4Interface
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import debian, settings, vm, vm_disk, vm_ports, vm_saved
from lab.shell import LabError

PATHS = vm.MachinePaths(checkout=Path("/a checkout"), cache=Path("/cache"))
DISK = vm_disk.Disk(Path("/cache/vm/0123"))
WRITTEN = PATHS.written

MODULES_DEP = """\
kernel/drivers/virtio/virtio.ko:
kernel/drivers/virtio/virtio_ring.ko: kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
kernel/drivers/block/virtio-blk.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
"""


def test_the_lab_does_not_take_the_interfaces_for_its_own() -> None:
    """`lab.py down` removes every interface called gpulab-*, and all of .lab."""
    names = [vm.MANAGEMENT_BRIDGE, vm.FABRIC_BRIDGE, *(card.link for card in vm.CARDS)]
    assert all(len(name) <= 15 and name.startswith(f"{vm.PREFIX}-") for name in names)
    assert len(set(names)) == len(names)
    assert not any(name.startswith(f"{settings.PREFIX}-") for name in names)
    lab = settings.Paths(checkout=PATHS.checkout, cache=PATHS.cache)
    assert not PATHS.state.is_relative_to(lab.state)
    assert not PATHS.disks.is_relative_to(lab.image_cache)
    assert not vm.RUN.is_relative_to(settings.RUN)


def test_taking_the_machine_away_leaves_the_lab_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths, lab = (kind(checkout=tmp_path, cache=tmp_path) for kind in (vm.MachinePaths, settings.Paths))
    hosts = [lab.hosts_file(name) for name in settings.FIRST_NODES]
    for file in (
        *hosts,
        lab.known_hosts,
        paths.known_hosts,
        paths.inventory,
        paths.inventory.parent / ".ssh_ca" / "key",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    for name in ("owner", "_end_process"):
        monkeypatch.setattr(vm, name, lambda: None)
    monkeypatch.setattr(vm, "links", list)
    monkeypatch.setattr(vm.host, "discard", lambda folder: None)
    vm.clear(paths)
    assert not paths.state.exists() and not paths.inventory.parent.exists()
    assert all(file.exists() for file in (*hosts, lab.known_hosts))


def test_addresses_are_not_those_of_the_lab() -> None:
    network = IPv4Interface(vm.HOST_ADDRESS).network
    assert IPv4Address(vm.MACHINE.management_address) in network
    assert IPv4Interface(settings.MANAGEMENT_HOST_ADDRESS).network != network
    assert IPv4Interface(vm.MACHINE.fabric_address).network != network
    macs = {mac for node in settings.nodes(settings.MAX_NODES) for mac in node.macs}
    assert not macs & {card.mac for card in vm.CARDS}


def test_every_card_of_the_machine_is_plugged_into_its_cable() -> None:
    argv = vm.qemu_argv(DISK, WRITTEN)
    pairs = list(pairwise(argv))
    for card in vm.CARDS:
        assert ("-netdev", f"tap,id={card.link},ifname={card.link},script=no,downscript=no") in pairs
        (device,) = [word for word in argv if word.startswith(f"virtio-net-pci,id={card.name},")]
        assert {f"netdev={card.link}", f"mac={card.mac}"} <= set(device.split(","))
    # The kernel numbers them in the order in which they are given.
    assert [card.name for card in vm.CARDS] == ["eth0", "eth1", "eth2"]
    order = [re.search(r"id=(\w+)", word) for word in argv if word.startswith("virtio-net-pci")]
    assert [found and found[1] for found in order] == ["eth0", "eth1", "eth2"]


def test_nothing_is_written_to_what_the_cache_keeps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither to the disk nor to a saved state: the machine has a layer of its own above them."""
    commands: list[list[str]] = []
    monkeypatch.setattr(vm, "run", lambda argv, **_others: commands.append(argv))
    paths = vm.MachinePaths(checkout=tmp_path, cache=tmp_path)
    state = vm_saved.Saved(tmp_path / "vm-saved" / "0123")
    for begin, below, kind in ((None, DISK.root, "raw"), (state, state.disk, "qcow2")):
        argv = vm.qemu_argv(DISK, paths.written, begin)
        drives = [value for word, value in pairwise(argv) if word == "-drive"]
        assert [drive.split(",")[0] for drive in drives] == [f"file={paths.written}", f"file={vm.SEED}"]
        assert "readonly=on" in drives[1] and "kvm" not in " ".join(argv)
        vm._make_disk(paths, DISK, begin)
        made = commands.pop()
        assert made[-1] == str(paths.written)
        assert ("-b", str(below)) in pairwise(made) and ("-F", kind) in pairwise(made)
        assert ("-incoming" in argv) == (begin is not None)
    assert not paths.written.is_relative_to(paths.disks) and not paths.saved.is_relative_to(paths.disks)


def test_cables_are_made_after_their_bridges() -> None:
    commands = vm.cable_commands()
    for card in vm.CARDS:
        made = commands.index(f"tuntap add dev {card.link} mode tap")
        plugged = commands.index(f"link set {card.link} master {card.bridge} up")
        bridge = commands.index(f"link add {card.bridge} type bridge stp_state 0 forward_delay 0")
        assert bridge < made < plugged
    assert [command for command in commands if command.startswith("address")] == [
        f"address add {vm.HOST_ADDRESS} dev {vm.MANAGEMENT_BRIDGE}"
    ]


def test_seed_holds_who_the_machine_is_and_keeps_secrets() -> None:
    data = vm.seed_tar(vm.seed_files("ssh-ed25519 AAA", "PRIVATE"))
    assert len(data) % 512 == 0
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        entries = {entry.name: entry for entry in archive}
        texts = {name: archive.extractfile(name) for name, entry in entries.items() if entry.isfile()}
        contents = {name: file.read().decode() for name, file in texts.items() if file is not None}
    profile = "etc/NetworkManager/system-connections/eth0.nmconnection"
    assert f"address1={vm.MACHINE.management_address}/24\n" in contents[profile]
    assert contents["etc/hostname"] == "vm1\n"
    assert contents["root/.ssh/authorized_keys"] == "ssh-ed25519 AAA"
    modes = {name: entry.mode for name, entry in entries.items()}
    assert modes.pop("etc/hostname") == 0o644
    assert modes.pop("root/.ssh") == 0o700
    assert set(modes.values()) == {0o600}
    assert {(entry.uid, entry.gid) for entry in entries.values()} == {(0, 0)}


def test_inventory_is_what_ansible_needs() -> None:
    data = yaml.safe_load(vm.inventory(PATHS))["gpu_cluster"]
    assert data["hosts"] == {"vm1": {"ansible_host": "198.18.30.11", "gpu_cluster_fabric_address": "198.18.31.11/24"}}
    assert data["vars"]["gpu_cluster_fabric_interface"] == "eth1"
    assert data["vars"]["ansible_ssh_private_key_file"] == "/a checkout/.lab-vm/id_ed25519"
    words = shlex.split(data["vars"]["ansible_ssh_common_args"])
    assert words == ["-o", 'UserKnownHostsFile="/a checkout/.lab-vm/known_hosts"', "-o", "StrictHostKeyChecking=yes"]


@pytest.mark.parametrize("words", [["other", "words"], None], ids=["of another program", "ended"])
def test_a_pid_that_was_given_to_another_is_not_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str] | None
) -> None:
    monkeypatch.setattr(vm, "PID_FILE", tmp_path / "qemu.pid")
    assert vm.process() is None
    argv = ["sh", "-c", "echo ready; read -r _", "sh", *(words or [str(vm.PID_FILE)])]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as held:
        assert held.stdin is not None and held.stdout is not None
        assert held.stdout.readline() == b"ready\n"
        vm.PID_FILE.write_text(f"{held.pid}\n")
        assert vm.process() == (None if words else held.pid)
        held.stdin.close()
    assert vm.process() is None


def test_kernel_package_is_what_the_meta_package_points_at() -> None:
    listed = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n  Conflicts: <other>\n"
    assert vm_disk.dependency(listed, "bookworm") == "linux-image-6.1.0-56-cloud-amd64"
    with pytest.raises(LabError, match="Debian bookworm has no package linux-image-cloud-amd64 on the mirror"):
        vm_disk.dependency("", "bookworm")


def test_versions_are_those_that_apt_would_install() -> None:
    policy = (
        "busybox-static:\n  Installed: 1:1.35.0-3\n  Candidate: 1:1.35.0-4\n  Version table:\n     1:1.35.0-4 500\n"
    )
    none = "auditd:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n"
    assert debian.candidates(policy + none) == {"busybox-static": "1:1.35.0-4"}


def test_disk_is_named_after_everything_that_goes_into_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(reference: str = "image", version: str = "1", file: bytes = b"text", kernel: str = "linux") -> str:
        return vm_disk.fingerprint(reference, {kernel: version, "busybox": "1"}, {"init": file})

    names = {name(), name("other"), name(version="2"), name(file=b"other"), name(kernel="linux-next")}
    monkeypatch.setattr(vm_disk, "BOOT_MODULES", ("virtio_blk",))
    names.add(name())
    assert len(names) == 6
    assert name() == name()


def test_modules_are_loaded_after_what_they_need() -> None:
    order = vm_disk.load_order(MODULES_DEP, "", ["virtio_pci", "virtio_blk"])
    assert [Path(file).name for file in order] == ["virtio.ko", "virtio_ring.ko", "virtio_pci.ko", "virtio-blk.ko"]
    with pytest.raises(LabError, match="no module nvme"):
        vm_disk.load_order(MODULES_DEP, "", ["nvme"])
    # The kernel of Debian 13 has some of them built in.
    order = vm_disk.load_order("kernel/a/virtio_blk.ko.xz:\n", "kernel/b/virtio-pci.ko\n", ["virtio_pci", "virtio_blk"])
    assert order == ["kernel/a/virtio_blk.ko.xz"]


Server = Callable[[Callable[[socket.socket], None]], Path]


@pytest.fixture(name="serve")
def serve_once(tmp_path: Path) -> Iterator[Server]:
    """Something that listens where qemu would."""
    threads = []

    def serve(handle: Callable[[socket.socket], None]) -> Path:
        path = tmp_path / "socket"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()

        def accept() -> None:
            with listener, listener.accept()[0] as connection:
                handle(connection)

        threads.append(threading.Thread(target=accept, daemon=True))
        threads[0].start()
        return path

    yield serve
    for thread in threads:
        thread.join(timeout=60)


def machine(connection: socket.socket) -> None:
    """The program that answers in the machine, on a socket instead of a serial port."""
    argv = ["bash", str(vm_disk.GUEST / "lab-console")]
    subprocess.run(argv, stdin=connection.fileno(), stdout=connection.fileno(), stderr=subprocess.DEVNULL, check=False)


def test_a_command_over_the_serial_port(serve: Server) -> None:
    """Output, errors and status come back as they are, whatever is in them."""
    path = serve(machine)
    found = vm_ports.ask(path, "printf 'caf\\303\\251 \\000\\nend'; echo \"it's\" >&2; exit 7", 20)
    assert found == (7, b"caf\xc3\xa9 \x00\nend", b"it's\n")


def test_a_command_over_the_serial_port_ends_in_time(serve: Server) -> None:
    path = serve(machine)
    assert vm_ports.ask(path, "echo started; sleep 60", 1) == (124, b"started\n", b"")


def test_answers_to_others_and_noise_are_passed_over() -> None:
    assert vm_ports.answer("a1", b"a1 0 :b3V0 :") == (0, b"out", b"")
    assert vm_ports.answer("a1", b"b2 0 :b3V0 :") is None
    assert vm_ports.answer("a1", b"a1 0 :b3V0") is None
    assert vm_ports.answer("a1", b"a1 x :b3V0 :") is None
    assert vm_ports.answer("a1", b"a1 0 :!! :") is None
    assert vm_ports.answer("a1", b"\xff\xfe") is None


def test_a_machine_that_ended_is_not_waited_for(serve: Server, tmp_path: Path) -> None:
    path = serve(lambda connection: None)
    with pytest.raises(LabError, match="does not answer at"):
        vm_ports.ask(path, "true", 60)
    with pytest.raises(LabError, match="does not answer at"):
        vm_ports.ask(tmp_path / "none", "true", 60)


def qmp(received: list[object], last: dict[str, object]) -> Callable[[socket.socket], None]:
    """As qemu answers: a greeting, then events and replies mixed."""

    def handle(connection: socket.socket) -> None:
        with connection.makefile("rw") as file:
            print(json.dumps({"QMP": {"version": {}}}), file=file, flush=True)
            replies: list[dict[str, object]] = [{"return": {}}, last]
            for reply in replies:
                received.append(json.loads(file.readline()))
                print(json.dumps({"event": "NIC_RX_FILTER_CHANGED"}), file=file)
                print(json.dumps(reply), file=file, flush=True)

    return handle


def test_control_of_qemu(serve: Server) -> None:
    received: list[object] = []
    vm_ports.control(serve(qmp(received, {"return": {}})), "set_link", name="eth1", up=False)
    assert received == [
        {"execute": "qmp_capabilities", "arguments": {}},
        {"execute": "set_link", "arguments": {"name": "eth1", "up": False}},
    ]


def test_control_says_what_qemu_refuses(serve: Server) -> None:
    refusal: dict[str, object] = {"error": {"class": "DeviceNotFound", "desc": "Device 'eth9' not found"}}
    with pytest.raises(LabError, match="refuses set_link: Device 'eth9' not found"):
        vm_ports.control(serve(qmp([], refusal)), "set_link", name="eth9", up=False)


def several(received: list[object], answers: list[object]) -> Callable[[socket.socket], None]:
    """As qemu answers one command after the other on one connection."""

    def handle(connection: socket.socket) -> None:
        with connection.makefile("rw") as file:
            print(json.dumps({"QMP": {"version": {}}}), file=file, flush=True)
            for answer in [{}, *answers]:
                received.append(json.loads(file.readline()))
                print(json.dumps({"return": answer}), file=file, flush=True)

    return handle


def test_a_machine_is_saved_while_it_stands_still_and_goes_on(serve: Server, tmp_path: Path) -> None:
    """Its memory by qemu, its disk when qemu has written all of it, and the keys that fit it."""
    checkout, cache = tmp_path / "checkout", tmp_path / "cache"
    (checkout / ".lab-vm").mkdir(parents=True)
    (checkout / ".lab-vm" / "known_hosts").write_text("key")
    (cache / "older").mkdir(parents=True)
    disk = tmp_path / "disk"
    disk.write_text("written")
    received: list[Any] = []
    path = serve(several(received, [{}, {}, {}, {"status": "active"}, {"status": "completed"}, {}]))
    state = vm_saved.Saved(cache / "0123")
    vm_saved.save(path, disk, state, [checkout / ".lab-vm"], checkout)
    words = [command["execute"] for command in received]
    assert words[1:4] == ["stop", "migrate-set-parameters", "migrate"] and words[-1] == "cont"
    assert received[3]["arguments"]["uri"].startswith("exec:cat > ")
    assert state.disk.read_text() == "written" and [path.name for path in cache.iterdir()] == ["0123"]
    vm_saved.restore_belongings(state, tmp_path / "other")
    assert (tmp_path / "other" / ".lab-vm" / "known_hosts").read_text() == "key"


def test_a_machine_that_cannot_be_saved_goes_on_and_leaves_nothing(serve: Server, tmp_path: Path) -> None:
    received: list[Any] = []
    path = serve(several(received, [{}, {}, {}, {"status": "failed"}, {}]))
    with pytest.raises(LabError, match="cannot save the memory of the virtual machine: failed"):
        vm_saved.save(path, tmp_path / "disk", vm_saved.Saved(tmp_path / "cache" / "0123"), [], tmp_path)
    assert received[-1]["execute"] == "cont" and list((tmp_path / "cache").iterdir()) == []


def test_a_restored_machine_runs_when_its_memory_is_read(serve: Server) -> None:
    received: list[Any] = []
    vm_saved.go_on(serve(several(received, [{"status": "inmigrate"}, {"status": "paused"}, {}])))
    assert [command["execute"] for command in received[1:]] == ["query-status", "query-status", "cont"]


def test_kernel_starts_with_selinux() -> None:
    """Debian's kernel has it and takes AppArmor unless it is told."""
    pairs = list(pairwise(vm.qemu_argv(DISK, WRITTEN)))
    (line,) = [value for word, value in pairs if word == "-append"]
    assert "security=selinux" in line.split()


def test_a_reboot_is_over_when_another_boot_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The console answers for a while after the command, and the command itself may get no answer at all."""
    asked: list[str] = []
    boots = iter([b"first", b"first", b"second"])

    def ask(_console: Path, command: str, _seconds: float) -> vm_ports.Answer:
        asked.append(command)
        if command == vm.BOOT_ID:
            return vm_ports.Answer(0, next(boots), b"")
        raise LabError("no answer within 20 s on the virtual machine's console")

    monkeypatch.setattr(vm, "_require_up", lambda paths: None)
    monkeypatch.setattr(vm, "_wait_for_boot", lambda deadline: "running")
    monkeypatch.setattr(vm.vm_ports, "ask", ask)
    monkeypatch.setattr(vm.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(vm, "LOCK", Path(os.devnull))
    vm.reboot(PATHS)
    assert asked == [vm.BOOT_ID, "systemctl --no-block reboot", vm.BOOT_ID, vm.BOOT_ID]


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="this machine has no dpkg-deb")
def test_a_package_is_unpacked_through_the_links_of_the_image(tmp_path: Path) -> None:
    """With its /lib replaced by a folder, nothing of the image would start any more."""
    package, tree = tmp_path / "package", tmp_path / "tree"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN" / "control").write_text(
        "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"
    )
    (package / "lib").mkdir()
    (package / "lib" / "new").write_text("new")
    subprocess.run(["dpkg-deb", "--build", str(package), str(tmp_path / "x.deb")], check=True, capture_output=True)
    (tree / "usr" / "lib").mkdir(parents=True)
    (tree / "lib").symlink_to("usr/lib")
    vm_disk._unpack(tmp_path / "x.deb", tree)
    assert (tree / "lib").is_symlink() and (tree / "usr" / "lib" / "new").read_text() == "new"


@pytest.mark.parametrize("fresh", [True, False])
def test_a_machine_that_answers_is_only_booted_anew_when_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    done: list[Any] = []
    for name in ("require_root", "install_packages"):
        monkeypatch.setattr(vm.host, name, lambda *_arguments: None)
    monkeypatch.setattr(vm, "lock", contextlib.nullcontext)
    monkeypatch.setattr(vm.vm_disk, "ensure", lambda *_arguments: DISK)
    monkeypatch.setattr(vm, "_sound", lambda *_arguments: True)
    monkeypatch.setattr(vm, "owner", lambda: None)
    monkeypatch.setattr(vm, "clear", lambda _paths: done.append("clear"))
    monkeypatch.setattr(vm, "_start", lambda _paths, disk, begin: done.append((disk, begin)))
    monkeypatch.setattr(vm, "_wait", lambda *_arguments: done.append("wait"))
    monkeypatch.setattr(vm, "inventory", lambda _paths: {})
    monkeypatch.setattr(vm.state, "write", lambda *_arguments: None)
    vm.up(PATHS, fresh=fresh)
    assert done == (["clear", (DISK, None), "wait"] if fresh else [])
