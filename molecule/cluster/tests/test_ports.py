# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who really listens where while Gloo and Open MPI run: everything inside the port plan."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from lab_cluster import PROJECT, Cluster, environment

#: On a node: how often it has looked who listens, and that it may end.
LOOKS, ENOUGH = "/run/lab-looks", "/run/lab-looks-enough"
# All_reduces through Open MPI's own library; there is no MPI program on the nodes, and no compiler. Every rank does the
# same number of them, until each node has looked from beginning to end while its rank was connected: how long that
# takes is up to the machine.
RANK = f"""
import ctypes, time
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
handle = lambda name: ctypes.byref(ctypes.c_char.in_dll(mpi, name))
looks = lambda: int(open("{LOOKS}").read() or 0)
mpi.MPI_Init(None, None)
rank, size = ctypes.c_int(), ctypes.c_int()
world, integer, add = handle("ompi_mpi_comm_world"), handle("ompi_mpi_int"), handle("ompi_mpi_op_sum")
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
def total(value):
    own, everybody = ctypes.c_int(value), ctypes.c_int()
    mpi.MPI_Allreduce(ctypes.byref(own), ctypes.byref(everybody), 1, integer, add, world)
    return everybody.value
print("sum", total(rank.value + 1), flush=True)
before = looks()
while total(looks() >= before + 2) < size.value:
    time.sleep(0.05)
mpi.MPI_Finalize()
"""
# As long on a busy machine as on an idle one, and far from the ranks' deadline: 3 s for one size.
SECONDS = {"cluster_check_sizes_bytes": [4096], "cluster_check_iterations": 10000, "cluster_check_size_seconds": 3}
LONG = ["-e", json.dumps(SECONDS)]
FOLDER = "/home/train/.ssh"
KEY = f"{FOLDER}/test_ports"
MAKE_FOLDER = f"install -d -m 700 -o train -g train {FOLDER}"
WITHOUT_QUESTIONS = "-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    """The default port plan, as the filter hands it to the roles."""
    argv = ["ansible", "localhost", "-i", "localhost,", "-c", "local", "-m", "ansible.builtin.debug", "-a"]
    done = subprocess.run(
        [*argv, "msg={{ {} | baremetal.gpu_cluster.port_plan }}"],
        cwd=PROJECT,
        env={**environment(), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])["msg"]
    return found


def reachable(listing: str) -> set[tuple[str, int]]:
    """Address and port of everything in the output of ss that can be reached from outside."""
    found = set()
    for line in listing.splitlines():
        address, _colon, port = line.split()[3].rpartition(":")
        if not address.startswith("127.") and address != "[::1]":
            found.add((address, int(port)))
    return found


def listeners(cluster: Cluster, name: str) -> set[tuple[str, int]]:
    return reachable(cluster.shell(name, "ss -Hltn"))


def inside(port: int, span: dict[str, int]) -> bool:
    return span["first"] <= port <= span["last"]


def seen_while_running(cluster: Cluster, names: Collection[str], argv: list[str]) -> tuple[str, dict[str, set[int]]]:
    """What a command printed, and by node the ports of the listeners that came and went while it ran.

    Each node looks for itself, from before the command begins.
    """
    before = {name: listeners(cluster, name) for name in names}
    cluster.on_each(names, f"rm -f {LOOKS} {ENOUGH}")
    look = f"n=0; until [ -e {ENOUGH} ]; do ss -Hltn; n=$((n + 1)); echo $n > {LOOKS}; sleep 0.2; done | sort -u"
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(cluster.on_each, names, look)
        try:
            cluster.on_each(names, f"until [ -s {LOOKS} ]; do sleep 0.1; done")
            done = subprocess.run(
                argv,
                cwd=PROJECT,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=240,
                check=False,
            )
        finally:
            cluster.on_each(names, f"touch {ENOUGH}")
        listings = looking.result()
    assert done.returncode == 0, done.stdout
    return done.stdout, {
        name: {port for _address, port in reachable(listings[name]) - known} for name, known in before.items()
    }


def test_every_listener_of_gloo_is_inside_the_plan(cluster: Cluster, plan: dict[str, Any]) -> None:
    argv = cluster.command("baremetal.gpu_cluster.check", *LONG)
    _text, seen = seen_while_running(cluster, list(cluster.hosts), argv)
    for name, ports in seen.items():
        assert any(inside(port, plan["ephemeral"]) for port in ports), f"no listener of Gloo was seen on {name}"
        # The check's own worker listens on some ports of each range, that of Open MPI too.
        outside = {
            port for port in ports if not any(inside(port, plan[key]) for key in ("ephemeral", "rendezvous", "mpi"))
        }
        assert outside == set(), name
    assert any(inside(port, plan["rendezvous"]) for ports in seen.values() for port in ports), "no store was seen"


@pytest.fixture
def passwordless(cluster: Cluster) -> Iterator[list[str]]:
    """The training user reaches the second node from the first one."""
    first, second = list(cluster.hosts)[:2]
    make_key = f"runuser -u train -- ssh-keygen -q -t ed25519 -N '' -f {KEY}"
    public = cluster.shell(first, f"{MAKE_FOLDER}; rm -f {KEY} {KEY}.pub; {make_key}; cat {KEY}.pub").strip()
    authorized = f"{FOLDER}/authorized_keys"
    grant = f"echo '{public} test_ports' >> {authorized}; chown train:train {authorized}"
    cluster.shell(second, f"{MAKE_FOLDER}; {grant}")
    yield [first, second]
    cluster.shell(second, f"sed -i '/ test_ports$/d' {authorized}")
    cluster.shell(first, f"rm -f {KEY} {KEY}.pub")


def test_every_listener_of_open_mpi_is_inside_the_plan(
    cluster: Cluster, plan: dict[str, Any], passwordless: list[str]
) -> None:
    first, second = passwordless
    for name in passwordless:
        cluster.shell(name, f"cat > /tmp/test_ports.py <<'PROGRAM'\n{RANK}PROGRAM")
    network = "198.18.20.0/24"
    settings = {
        **plan["openmpi"],
        "btl_tcp_if_include": network,
        "oob_tcp_if_include": network,
        "pml": "ob1",
        "btl": "tcp,self",
    }
    words = ["timeout", "40", "mpirun", "-np", "2", "--host", f"{first},{second}"]
    words += [word for key, value in settings.items() for word in ("--mca", str(key), str(value))]
    words += ["--mca", "plm_rsh_args", f"-i {KEY} {WITHOUT_QUESTIONS}", "python3", "/tmp/test_ports.py"]
    line = " ".join(f"'{word}'" if " " in word else word for word in words)
    argv = [*cluster.lab_argv("exec", first), "runuser", "-u", "train", "--", "sh", "-c", f"cd; {line}"]
    text, seen = seen_while_running(cluster, passwordless, argv)
    assert text.split().count("sum") == 2 and "sum 3" in text, text
    for name, ports in seen.items():
        assert any(inside(port, plan["mpi"]) for port in ports), f"no data port of Open MPI was seen on {name}: {ports}"
        outside = {port for port in ports if not any(inside(port, plan[key]) for key in ("ephemeral", "mpi"))}
        assert outside == set(), name
