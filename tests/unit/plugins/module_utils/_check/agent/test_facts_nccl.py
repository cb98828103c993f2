# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NCCL says of its interface: texts that releases of NVIDIA's library printed, and a library that misbehaves."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    facts_nccl,
    job_process,
    nccl_question,
)

#: The wheels nvidia-nccl-cu12 and -cu13 on a machine without a GPU, with eth0 as 192.0.2.2 and fd00::2.  The log, then
#: the beginning of the 128 bytes; the name of the machine was shortened.
RECORDED = [
    (
        "2.16.5",
        "h:1:1 [0] enqueue.cc:100 NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime "
        "version'\n"
        "h:1:1 [32766] NCCL INFO Bootstrap : Using eth0:192.0.2.2<0>\n"
        "h:1:1 [32584] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation\n",
        (0, "8fd9e2159f37a1a20200d327c0000202"),
        ("eth0", "192.0.2.2", ""),
    ),
    (
        "2.16.5",
        "h:1:1 [0] enqueue.cc:100 NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime "
        "version'\n"
        "h:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set to eth9\n\n"
        "h:1:1 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n"
        "h:1:1 [32767] NCCL INFO init.cc:87 -> 3\n",
        (3, "00" * 128),
        ("", "", "Bootstrap : no socket interface found"),
    ),
    (
        "2.21.5",
        "h:1:1 [32764] NCCL INFO NCCL_SOCKET_FAMILY set by environment to AF_INET6\n"
        "h:1:1 [32764] NCCL INFO Bootstrap : Using eth0:fd00::2<0>\n",
        (0, "0b26aee0e047c2530a00b95b00000000fd000000000000000000000000000002"),
        ("eth0", "fd00::2", ""),
    ),
    (
        "2.26.2",
        "h:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to =lo\n"
        "h:1:1 [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>\n",
        (0, "afe88490de3571d20200a93f7f000001"),
        ("lo", "127.0.0.1", ""),
    ),
    # NCCL_COMM_ID=192.0.2.9:5000: the answer has the address of somebody else.
    (
        "2.28.9",
        "h:1:1 [0] NCCL INFO Bootstrap: Using eth0:192.0.2.2<0>\n"
        "h:1:1 [0] NCCL INFO NCCL_COMM_ID set by environment to 192.0.2.9:5000\n",
        (0, "800280028002800202001388c0000209"),
        ("eth0", "192.0.2.2", ""),
    ),
    (
        "2.28.9",
        "[2026-11-21 23:33:19] h:1:1 [0] misc/socket.cc:298 NCCL WARN Net : error encountered when getting address "
        "info : Name or service not known\n\n"
        "[2026-11-21 23:33:19] h:1:1 [0] bootstrap.cc:102 NCCL WARN Invalid NCCL_COMM_ID, please use format: "
        "<ipv4>:<port> or [<ipv6>]:<port> or <hostname>:<port>\n",
        (4, "00" * 128),
        (
            "",
            "",
            "Invalid NCCL_COMM_ID, please use format: <ipv4>:<port> or [<ipv6>]:<port> or <hostname>:<port>",
        ),
    ),
    (
        "2.31.2",
        "h:1:1 [0] NCCL INFO ENV/Plugin: Could not find: libnccl-env.so\n\n"
        "[2026-11-21 23:35:43] h:1:1 [0] bootstrap.cc:126 (bootstrapNetInit) NCCL WARN Bootstrap : no socket interface "
        "found\nh:1:1 [0] NCCL INFO init.cc:171 (initOnceFunc) -> 5\n",
        (5, "00" * 128),
        ("", "", "Bootstrap : no socket interface found"),
    ),
    # A release whose words nobody knows yet: the answer has the address all the same.
    (
        "2.31.2",
        "h:1:1 [0] NCCL INFO The first meeting is over eth0, 192.0.2.2\n",
        (0, "f3e29ea35822fe5e0200a149c0000202"),
        ("", "192.0.2.2", ""),
    ),
]


def code(version: str) -> int:
    major, minor, patch = map(int, version.split("."))
    return major * 10000 + minor * 100 + patch


@pytest.mark.parametrize(("version", "log", "answer", "wanted"), RECORDED)
def test_recorded_answers(version: str, log: str, answer: tuple[int, str], wanted: tuple[str, str, str]) -> None:
    result, handle = answer
    setting = {"NCCL_SOCKET_IFNAME": {"value": "=lo", "source": nccl_question.JOB}}
    said = {"library": "/x/libnccl.so.2", "code": code(version), "result": result, "id": handle}
    text = f"{log}\n{json.dumps({**said, 'settings': setting, 'errors': []})}\nh:1:2 [0] NCCL INFO Socket handshake\n"
    found = facts_nccl.parse(text)
    assert (found["interface"], found["address"], found["error"]) == wanted
    assert (found["library"], found["version"], found["why"]) == ("/x/libnccl.so.2", version, "")
    assert found["settings"] == {"NCCL_SOCKET_IFNAME": {"value": "=lo", "source": "/etc/gpu-cluster/environment"}}


def test_an_error_without_a_word() -> None:
    said = {"library": "/x", "code": 22809, "result": 2, "id": "", "settings": {}, "errors": []}
    assert facts_nccl.parse(json.dumps(said))["error"] == "ncclGetUniqueId() returned 2"


@pytest.mark.parametrize("handle", ["00" * 128, "8fd9e2159f37a1a220ea" + "00" * 118])
def test_an_answer_without_an_address_is_an_error(handle: str) -> None:
    """A release that does not look whether it found an interface: nothing, or what was in the memory (family 59936)."""
    said = {"library": "/x", "code": 22707, "result": 0, "id": handle, "settings": {}, "errors": []}
    found = facts_nccl.parse(json.dumps(said))
    assert (found["interface"], found["address"]) == ("", "") and "found no interface" in found["error"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it said something else: nothing"),
        ("Traceback\nImportError: no ctypes\n", "it said something else: ImportError: no ctypes"),
        ('{"library": "", "errors": ["/x: file too short"]}', "it cannot be loaded: /x: file too short"),
    ],
)
def test_no_answer_says_why(text: str, why: str) -> None:
    assert facts_nccl.parse(text, ["/x"]) == facts_nccl.nothing(["/x"], why)


@pytest.mark.parametrize(
    ("both", "parts"),
    [
        ("eth0:192.0.2.2", ("eth0", "192.0.2.2")),
        ("eth0:1:192.0.2.2", ("eth0:1", "192.0.2.2")),
        ("fab0:2001:db8::11", ("fab0", "2001:db8::11")),
        ("fab0:fe80::5054:ff:feaa:1%fab0", ("fab0", "fe80::5054:ff:feaa:1")),
        ("fab0:n1.example", None),
    ],
)
def test_name_and_address_in_one_word(both: str, parts: tuple[str, str] | None) -> None:
    assert facts_nccl.split(both) == parts


@pytest.mark.parametrize("handle", ["", "00" * 9, "00" * 128, "8fd9e2159f37a1a20200d327c000", "ff" * 128])
def test_bytes_without_an_address(handle: str) -> None:
    assert facts_nccl.address_in(bytes.fromhex(handle)) == ""


def test_the_environment_of_jobs() -> None:
    text = "# Managed by Ansible\nNCCL_SOCKET_IFNAME==fab0\nOMP_NUM_THREADS=8\n\nGREETING=a = b \n"
    assert facts_nccl.variables(text) == {"NCCL_SOCKET_IFNAME": "=fab0", "OMP_NUM_THREADS": "8", "GREETING": "a = b "}


def test_the_library_of_torch_comes_first(tmp_path: Path) -> None:
    python = str(tmp_path / "bin" / "python")
    assert facts_nccl.of_torch(python) == [] == facts_nccl.of_torch("")
    wheel = tmp_path / "lib" / "python3.11" / "site-packages" / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    wheel.parent.mkdir(parents=True)
    wheel.touch()
    assert facts_nccl.of_torch(python) == [str(wheel)]
    (tmp_path / "lib" / "libnccl.so.2").touch()
    assert facts_nccl.of_torch(python) == [str(wheel), str(tmp_path / "lib" / "libnccl.so.2")]


def test_the_library_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "ld.so.cache"
    monkeypatch.setattr(facts_nccl, "LOADER_CACHE", str(cache))
    monkeypatch.setattr(facts_nccl, "LOADER_FOLDERS", (str(tmp_path / "lib64"),))
    assert facts_nccl.of_system({}) == []
    cache.write_bytes(b"glibc-ld.so.cache1.1\0libnccl.so.2\0/usr/lib64/libnccl.so.2\0")
    assert facts_nccl.of_system({}) == ["libnccl.so.2"]
    cache.unlink()
    (tmp_path / "libnccl.so.2").touch()
    assert facts_nccl.of_system({"LD_LIBRARY_PATH": f":{tmp_path}"}) == ["libnccl.so.2"]


#: Answers as NCCL does, or hangs for ever with a child of its own, or crashes.
STAND_IN = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int ncclGetVersion(int *version) { *version = 22809; return 0; }
int ncclGetUniqueId(char *id) {
    const char *how = getenv("STAND_IN") ? getenv("STAND_IN") : "";
    unsigned char address[] = {2, 0, 1, 2, 192, 0, 2, 11};
    setenv("NCCL_SOCKET_FAMILY", "AF_INET", 0);
    if (!strcmp(how, "hang")) {
        signal(SIGALRM, SIG_IGN);
        printf("child %d\n", fork());
        fflush(stdout);
        for (;;) pause();
    }
    if (!strcmp(how, "crash")) raise(SIGSEGV);
    if (!strcmp(how, "none")) {
        printf("h:1:1 [0] bootstrap.cc:114 NCCL WARN Bootstrap : no socket interface found\n");
        return 5;
    }
    memcpy(id + 8, address, sizeof address);
    printf("h:1:1 [0] NCCL INFO Bootstrap: Using %s%d:192.0.2.11<0>\n", getenv("USER"), getuid());
    return 0;
}
"""


@pytest.fixture(name="library", scope="module")
def fixture_library() -> Iterator[str]:
    """A library that every user can read, in place of NCCL's 0.2 GB."""
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = f"{folder}/libnccl.so.2"
        argv = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path]
        subprocess.run(argv, input=STAND_IN.encode(), check=True, timeout=60)
        yield path


def asked(
    monkeypatch: pytest.MonkeyPatch, library: str, user: str = "", *, seconds: int = 30, **variables: str
) -> dict[str, Any]:
    """What a question to this library gives."""
    monkeypatch.setattr(facts_nccl, "of_torch", lambda _python: [library])
    text = "".join(f"{name}={value}\n" for name, value in variables.items())
    return facts_nccl.Question("", user, text, seconds=seconds).answer()


def test_the_library_is_asked_with_the_environment_of_jobs(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    me = pwd.getpwuid(os.geteuid())
    found = asked(monkeypatch, library, NCCL_SOCKET_IFNAME="=fab0")
    assert found == {
        "library": library,
        "version": "2.28.9",
        "interface": f"{me.pw_name}{me.pw_uid}",
        "address": "192.0.2.11",
        "error": "",
        "settings": {
            "NCCL_SOCKET_IFNAME": {"value": "=fab0", "source": "/etc/gpu-cluster/environment"},
            # Set by the library itself, as NCCL does with what its files say; none of them is here.
            "NCCL_SOCKET_FAMILY": {"value": "AF_INET", "source": ""},
        },
        "why": "",
    }


def test_a_file_of_nccl_is_named(monkeypatch: pytest.MonkeyPatch, library: str, tmp_path: Path) -> None:
    conf = tmp_path / "nccl.conf"
    conf.write_text("# x\nNCCL_SOCKET_FAMILY=AF_INET\n")
    found = asked(monkeypatch, library, NCCL_CONF_FILE=str(conf))
    assert found["settings"] == {"NCCL_SOCKET_FAMILY": {"value": "AF_INET", "source": str(conf)}}


def test_it_runs_as_the_user_of_the_ranks(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Nobody but root can be somebody else."""
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    found = asked(monkeypatch, library, user.pw_name)
    assert (found["interface"], found["why"]) == (f"{user.pw_name}{user.pw_uid}", "")


def test_a_library_of_the_system_is_told_by_its_path() -> None:
    assert nccl_question.loaded("libc.so.6").endswith("/libc.so.6")
    assert nccl_question.loaded("libnone.so.2") == ""


def test_no_interface_is_an_answer(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    found = asked(monkeypatch, library, STAND_IN="none")
    assert (found["error"], found["address"]) == ("Bootstrap : no socket interface found", "")


def test_a_library_that_crashes_or_is_none(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    assert asked(monkeypatch, library, STAND_IN="crash") == facts_nccl.nothing([library], "it was ended by signal 11")
    found = asked(monkeypatch, __file__)
    assert found["why"].startswith("it cannot be loaded: ") and "invalid ELF header" in found["why"]


def test_a_library_that_hangs_is_killed_with_all_it_started(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    # Its child holds the pipe: this is how long the end of that would be waited for.
    monkeypatch.setattr(job_process, "KILL_SECONDS", 30)
    began = time.monotonic()
    found = asked(monkeypatch, library, seconds=2, STAND_IN="hang")
    assert time.monotonic() - began < 20
    assert found == facts_nccl.nothing([library], "no answer within 2 s")


def test_nobody_is_asked_without_a_library_or_a_user(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    assert asked(monkeypatch, library, "no such user") == facts_nccl.nothing([library], "there is no user no such user")
    monkeypatch.setattr(facts_nccl, "of_torch", lambda _python: [])
    monkeypatch.setattr(facts_nccl, "of_system", lambda _environment: [])
    assert facts_nccl.Question("", "no such user", "").answer() == facts_nccl.nothing([], "")
