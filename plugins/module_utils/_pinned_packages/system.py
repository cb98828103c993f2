# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node: rpm, dnf, their files, and a box in which dnf can be asked without a trace. All the I/O there is."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf.system import (
    Ended,
    read_repo_files,
    read_text,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import Mover, replace_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import memory, streams, transaction
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import (
    DNF_FORMAT,
    RPM_FORMAT,
    Package,
    parse_offers,
    parse_packages,
)

DNF_CONF = "/etc/dnf/dnf.conf"
#: What dnf changes besides packages: module streams and locks, and its history.
DNF_FOLDERS = ("/etc/dnf", "/var/lib/dnf")
#: Where dnf leaves the numbers of processes that use its cache or rpm's database (dnf/lock.py).
DNF_LOCKS = ("/var/cache/dnf", "/var/lib/dnf")
#: rpm reads every file of a package to verify it; a CUDA toolkit has several GB.
RPM_SECONDS = 900
#: Metadata of NVIDIA's repository are tens of MB; a first download may take minutes.
QUERY_SECONDS = 600
#: dnf's exit status when it does not get its lock (dnf/cli/main.py).
LOCKED = 200

ERR_TOOK_LONG = "'{}' did not end within {} s, and was ended"
ERR_SIGNAL = "{} was ended by signal {}"
ERR_BUSY = (
    "{}, and still did after {} s. Let it end (`ps -fp PID` shows what it is), or raise wait_seconds, and run again"
)

#: Mounts pairs of paths over each other, as far as ``--``, and goes on as the rest: nobody else sees these mounts.
_BOX = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 125; shift 2; done; shift; exec "$@"'


class SystemFailure(Exception):
    """The node does not do what it is told."""


def run(argv: Sequence[str], seconds: int) -> Ended:
    """A command in plain English, with a deadline, that goes on when this process is killed.

    Its output goes to files: with pipes, a transaction of rpm would break off when the connection to the node does.
    """
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
            )
        except OSError as error:
            return Ended(127, "", str(error))
        late = ""
        try:
            process.wait(timeout=max(seconds, 1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            late = ERR_TOOK_LONG.format(os.path.basename(argv[0]), seconds)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    if not late and process.returncode < 0:
        late = ERR_SIGNAL.format(os.path.basename(argv[0]), -process.returncode)
    return Ended(process.returncode, texts[0], f"{texts[1]}\nError: {late}\n" if late else texts[1])


# --- rpm ------------------------------------------------------------------------------------------------------------


def installed() -> tuple[Package, ...]:
    """Every installed package."""
    ended = run(["rpm", "-qa", "--queryformat", RPM_FORMAT], RPM_SECONDS)
    if ended.code:
        raise SystemFailure(f"rpm cannot list the packages of the node: {' '.join(ended.err.split())}")
    return parse_packages(ended.out)


def verify(package: Package) -> str:
    """What rpm finds to be different from what it has installed."""
    ended = run(["rpm", "--verify", package.file_name], RPM_SECONDS)
    return ended.out + ended.err


def erase(packages: Sequence[Package]) -> None:
    """Take packages out, whatever depends on them; without their scriptlets when those fail."""
    for package in packages:
        ended = run(["rpm", "--erase", "--nodeps", package.file_name], RPM_SECONDS)
        if ended.code:
            ended = run(["rpm", "--erase", "--nodeps", "--noscripts", package.file_name], RPM_SECONDS)
        if ended.code:
            raise SystemFailure(f"rpm cannot remove {package.file_name}: {' '.join(ended.err.split())}")


def wait_for_others(seconds: int) -> None:
    """Let a dnf or rpm that is at work end: what it has not finished yet is no damage."""
    start = time.monotonic()
    lock = run(["rpm", "--eval", "%{_rpmlock_path}"], RPM_SECONDS).out.strip()
    while True:
        who = _at_work(lock)
        if not who:
            return
        if time.monotonic() - start >= seconds:
            raise SystemFailure(ERR_BUSY.format(who, seconds))
        time.sleep(1)


def _at_work(rpm_lock: str) -> str:
    for path in (path for folder in DNF_LOCKS for path in glob.glob(f"{folder}/*_lock.pid")):
        process = (read_text(path) or "").strip()
        if process.isdigit() and os.path.exists(f"/proc/{process}"):
            return f"process {process} holds dnf's lock"
    try:
        with open(rpm_lock, "r+b") as stream:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return ""
    except OSError:
        return "another process holds rpm's lock"
    return ""


# --- dnf ------------------------------------------------------------------------------------------------------------


class Dnf:
    """dnf, which waits for others for a while, in the open or in a box."""

    def __init__(self, timeout_seconds: int, wait_seconds: int) -> None:
        self.timeout_seconds = timeout_seconds
        self.wait_seconds = wait_seconds

    def __call__(self, arguments: Sequence[str], seconds: int = QUERY_SECONDS, prefix: Sequence[str] = ()) -> Ended:
        """The finished command; raises SystemFailure when somebody else does not let it begin."""
        start = time.monotonic()
        while True:
            ended = run([*prefix, "dnf", "--setopt=exit_on_lock=True", *arguments], seconds)
            # Nothing was done then: dnf asks for each lock before it uses what is behind it.
            who = transaction.busy(ended.err) if ended.code else ""
            if not who:
                return ended
            if time.monotonic() - start >= self.wait_seconds:
                raise SystemFailure(ERR_BUSY.format(who, self.wait_seconds))
            time.sleep(1)

    def shell(self, script: str, arguments: Sequence[str], seconds: int, prefix: Sequence[str] = ()) -> Ended:
        """One transaction."""
        with tempfile.NamedTemporaryFile("w", prefix="gpu-cluster-dnf-", encoding="utf-8") as stream:
            stream.write(script)
            stream.flush()
            return self([*arguments, "shell", stream.name], seconds, prefix)

    def offered(
        self, names: Sequence[str], arguments: Sequence[str], prefix: Sequence[str] = ()
    ) -> tuple[Package, ...]:
        """Every version of these packages that repositories offer. Locks do not count here."""
        query = ["--quiet", *arguments, "repoquery", "--available", "--queryformat", DNF_FORMAT, *names]
        ended = self(query, prefix=prefix)
        if ended.code:
            raise SystemFailure(
                f"dnf cannot ask the repositories of the node: {transaction.decisive(ended.out, ended.err)}"
            )
        return parse_offers(ended.out)

    def repositories(self) -> tuple[str, ...]:
        """The ids of the enabled repositories."""
        lines = self(["--quiet", "repolist", "--enabled"]).out.splitlines()
        return tuple(line.split()[0] for line in lines[1:] if line.strip())

    def switch_streams(self, switches: Sequence[streams.Switch], prefix: Sequence[str] = ()) -> None:
        """Enable or reset module streams."""
        resets = [switch.module for switch in switches if switch.was]
        enables = [f"{switch.module}:{switch.to}" for switch in switches if switch.to]
        for verb, names in (("reset", resets), ("enable", enables)):
            ended = self(["-y", "module", verb, *names], prefix=prefix) if names else Ended(0, "", "")
            if ended.code:
                said = transaction.decisive(ended.out, ended.err)
                raise SystemFailure(f"dnf cannot {verb} the module stream {', '.join(names)}: {said}")


class Box:
    """Copies of dnf's folders, and the words before a command that make it see them in place of the real ones."""

    def __init__(self, folder: str, lock_list: str) -> None:
        self.folder = folder
        self.lock_list = lock_list
        self.pairs: list[tuple[str, str]] = []
        for number, original in enumerate(DNF_FOLDERS):
            copy = os.path.join(folder, str(number))
            if os.path.isdir(original):
                shutil.copytree(original, copy, symlinks=True)
                self.pairs.append((copy, original))

    def write_locks(self, text: str) -> None:
        """Let dnf see this list of locks."""
        path = os.path.realpath(self.lock_list)
        for copy, original in self.pairs:
            if path.startswith(f"{original}/"):
                path = copy + path[len(original) :]
                os.makedirs(os.path.dirname(path), exist_ok=True)
                break
        else:
            if not os.path.exists(path):
                return
            self.pairs.append((os.path.join(self.folder, "locks"), path))
            path = self.pairs[-1][0]
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)

    @property
    def prefix(self) -> list[str]:
        """The words before the command."""
        words = [word for pair in self.pairs for word in pair]
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", _BOX, "sh", *words, "--"]


@contextmanager
def box(lock_list: str) -> Iterator[Box]:
    """A box that is gone afterwards."""
    folder = tempfile.mkdtemp(prefix="gpu-cluster-box-")
    try:
        yield Box(folder, lock_list)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- files ----------------------------------------------------------------------------------------------------------


def stream_files() -> dict[str, str]:
    """The files of module streams, by path."""
    return {path: read_text(path) or "" for path in sorted(glob.glob(f"{streams.FOLDER}/*.module"))}


def restore_streams(module: Mover, before: Mapping[str, str]) -> None:
    """Put these files back as they were."""
    for path in stream_files():
        if path not in before:
            os.unlink(path)
    for path, text in before.items():
        if read_text(path) != text:
            replace_file(module, path, text)


def exclusions() -> tuple[tuple[str, str], ...]:
    """Path and text of every file in which packages can be excluded."""
    texts = {DNF_CONF: read_text(DNF_CONF) or "", **read_repo_files()}
    return tuple(texts.items())


def remember(module: Mover, group: str, what: memory.Memory) -> None:
    """Write down what the next run must know, and let the disk have it before anything else happens."""
    path = memory.path(group)
    text = memory.render(what)
    if text == (read_text(path) or ""):
        return
    if text:
        replace_file(module, path, text, 0o600)
    else:
        os.unlink(path)
    handle = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
