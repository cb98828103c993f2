# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA toolkits and NCCL on a node that shows eight GPUs, with real dnf, alternatives, sshd, mpirun and loader."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lab_cuda
import lab_mirror
import lab_packages
import pytest
from lab_cluster import PROJECT, Cluster, Ended
from lab_gpus import shown_devices
from lab_network import message_of, recap

PLAYBOOK = """\
- name: Set up CUDA and NCCL
  hosts: "{hosts}"
  gather_facts: false
  become: true
  roles:
    - baremetal.gpu_cluster.cuda_toolkit
    - baremetal.gpu_cluster.nccl
"""
#: A site that has lines of its own there; the second one is what a session had as PATH.
ENVIRONMENT = 'SITE_PROXY=none\nPATH="/opt/site/bin:/usr/bin:/bin"\n'
PATH_WITH_CUDA = "/opt/site/bin:/usr/bin:/bin:/usr/local/cuda/bin"
#: Everything that the roles may change, beside packages.
FILES = "/etc/environment /etc/nccl.conf /etc/profile.d/*cuda* /etc/dnf/plugins/versionlock.list"
STATE = (
    f"sha256sum {FILES} 2>/dev/null; rpm -qa | sort; readlink /etc/alternatives/cuda; "
    "update-alternatives --query cuda 2>/dev/null | grep Status; true"
)
#: A package that would bring or be a driver.
DRIVERS = "rpm -qa | grep -E '^(nvidia-|kmod-|cuda-drivers|cuda-[0-9])|^cuda-1[23][.]'; true"
#: What a session says of itself.
SAID = "echo home=$CUDA_HOME; echo path=$PATH; nvcc --version"


#: The first thing that a job asks NCCL for.
UNIQUE_ID = (
    'import ctypes; ctypes.CDLL("/var/tmp/wheel/libnccl.so.2").ncclGetUniqueId(ctypes.create_string_buffer(128))'
)
KEY = PROJECT / ".lab" / "id_ed25519"
OWN_KEYS = "chown -R train /home/train/.ssh; chmod 700 /home/train/.ssh; chmod 600 /home/train/.ssh/*"
#: A key of the other member, for as long as mpirun runs.
MPI_KEY = (
    "rm -f /var/tmp/mpi-key*; ssh-keygen -q -t ed25519 -N '' -C '' -f /var/tmp/mpi-key; chown train /var/tmp/mpi-key*; "
    "cat /var/tmp/mpi-key.pub"
)
MPI_SSH = (
    "ssh -i /var/tmp/mpi-key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
    "-o LogLevel=ERROR"
)
SAVE = "cp -a /etc/environment /home/train /var/tmp/; printf '{environment}' > /etc/environment"
RESTORE = (
    "cp -a /var/tmp/environment /etc/environment; usermod --shell /bin/bash train; rm -rf /home/train; "
    "mv /var/tmp/train /home/train; rm -rf /var/tmp/environment /var/tmp/wheel /var/tmp/nvcc /var/tmp/*nccl* "
    "/etc/nccl.conf* /etc/profile.d/gpu-cluster-cuda.* /usr/local/lib/libnccl*; ldconfig"
)
#: The state that most tests start from. The default is not the newest: left alone, alternatives would take that.
WISHES: dict[str, Any] = {
    "cuda_toolkit_versions": ["12.8.0", "13.0"],
    "nccl_version": "2.28.9",
    "nccl_cuda": "13.0",
    "nccl_socket_interfaces": ["fab0"],
    "nccl_settings": {"NCCL_SOCKET_NTHREADS": 4},
}


class Site:
    """A node, a repository, and the roles on both."""

    def __init__(self, cluster: Cluster, folder: Path, url: str) -> None:
        self.cluster = cluster
        self.node, self.peer = list(cluster.hosts)[:2]
        self.folder = folder
        self.url = url
        self.playbook = folder / "gpu.yml"
        self.playbook.write_text(PLAYBOOK.format(hosts=f"{self.node},{self.peer}"))
        self.has_wishes = False
        self.is_bare = True

    def apply(self, *arguments: str, limit: str = "", **variables: Any) -> Ended:
        """Both roles, with other wishes; results are printed on one line each."""
        self.has_wishes = False
        self.is_bare = self.is_bare and ("--check" in arguments or bool(limit))
        file = self.folder / "variables.json"
        file.write_text(json.dumps({**WISHES, **variables}))
        argv = self.cluster.command(str(self.playbook), "--limit", limit or self.node, "-e", f"@{file}", *arguments)
        return self.cluster.run(argv, variables={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})

    def changes(self, *arguments: str, **variables: Any) -> int:
        """How many tasks of a run that must end well have changed something; what they say is shown on failure."""
        ended = self.apply("-v", *arguments, **variables)
        assert ended.code == 0, ended.text
        print("\n".join(line for line in ended.text.splitlines() if line.startswith("changed: ")))
        return recap(ended, self.node)["changed"]

    def have_wishes(self) -> None:
        """Whatever the test before this one has left."""
        if not self.has_wishes:
            self.changes()
            self.has_wishes = True

    def shell(self, command: str) -> str:
        return self.cluster.shell(self.node, command)

    @property
    def link(self) -> str:
        """Where the link leads, and whether alternatives may change that."""
        return self.shell("readlink -f /usr/local/cuda; update-alternatives --query cuda | grep Status")

    def put(self, folder: Path, target: str) -> None:
        """Copy small files to the node."""
        for file in folder.rglob("*.so*"):
            place = f"{target}/{file.relative_to(folder)}"
            text = base64.b64encode(file.read_bytes()).decode()
            self.shell(f"mkdir -p {place.rpartition('/')[0]}; echo {text} | base64 -d > {place}")

    def ssh(self, user: str, command: str) -> str:
        """A command over ssh, as anybody gives it: no terminal, no login shell."""
        options = ["-i", str(KEY), "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"]
        options += ["-o", f"UserKnownHostsFile={PROJECT / '.lab' / 'known_hosts'}"]
        argv = ["ssh", *options, f"{user}@{self.cluster.hosts[self.node]['ansible_host']}", command]
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.fixture(name="site", scope="module")
def fixture_site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A signed repository with content in place of the lab's; in the end the node is as it was."""
    folder = tmp_path_factory.mktemp("cuda")
    keys = lab_mirror.Keys(tmp_path_factory.mktemp("keys") / "g")
    keys.make("nvidia")
    packages = lab_cuda.meta_packages("13.0.2")
    for version in ("12.8.0", "12.8.1", "12.9.1", "13.0.2"):
        packages += lab_cuda.toolkit(version)
    library = lab_cuda.library(folder, "2.28.9")
    for cuda in ("12.9", "13.0"):
        packages += lab_cuda.nccl("2.28.9", cuda, library)
    packages += lab_cuda.nccl("2.29.7", "13.0", lab_cuda.library(folder, "2.29.7"))
    lab_packages.build_repository(folder / "cuda", keys, "nvidia", packages)
    mirror = lab_mirror.Mirror(folder)
    found = Site(cluster, folder, mirror.url)
    before = found.shell(STATE)
    found.shell(SAVE.format(environment=ENVIRONMENT.replace("\n", "\\n")))
    try:
        with (
            shown_devices(cluster, found.node, "h100_8.lspci"),
            lab_packages.on_node(cluster, found.node, f"{found.url}/cuda", keys.public("nvidia")),
        ):
            yield found
    finally:
        found.shell(RESTORE)
        mirror.close()
        keys.close()
    assert found.shell(STATE) == before


def test_a_member_without_a_device_says_so_and_is_left_alone(site: Site) -> None:
    before = site.cluster.shell(site.peer, STATE)
    ended = site.apply(limit=site.peer)
    assert ended.code == 0
    assert '"msg": "no NVIDIA device: CUDA toolkit skipped"' in ended.text
    assert '"msg": "no NVIDIA device: NCCL skipped"' in ended.text
    assert recap(ended, site.peer)["changed"] == 0
    assert site.cluster.shell(site.peer, STATE) == before


def test_check_mode_and_the_second_run(site: Site) -> None:
    if not site.is_bare:
        nothing = {"nccl_version": "", "nccl_debug": "", "nccl_socket_interfaces": [], "nccl_settings": {}}
        site.changes(cuda_toolkit_versions=[], **nothing)
    bare = site.shell(STATE)
    # Packages and their choice of both roles, and the settings.
    assert site.changes("--check", "--diff") == 4
    assert site.shell(STATE) == bare
    site.have_wishes()
    assert site.changes() == 0
    site.has_wishes = True


def test_toolkits_are_side_by_side_and_no_driver_came(site: Site) -> None:
    site.have_wishes()
    assert site.shell("ls -d /usr/local/cuda-*").split() == ["/usr/local/cuda-12.8", "/usr/local/cuda-13.0"]
    assert site.link == "/usr/local/cuda-12.8\nStatus: manual\n"
    assert site.shell("rpm -q cuda-toolkit-12-8 cuda-toolkit-13-0").split() == [
        "cuda-toolkit-12-8-12.8.0-1.x86_64",
        "cuda-toolkit-13-0-13.0.2-1.x86_64",
    ]
    # The repository offers all of it.
    assert "nvidia-open" in site.shell("dnf -q repoquery --requires cuda-13-0")
    assert site.shell(DRIVERS) == ""


def test_every_session_finds_the_default_toolkit(site: Site) -> None:
    """Without a terminal, in each of the image's shells, for root and others; and in a login shell."""
    site.have_wishes()
    wanted = f"home=/usr/local/cuda\npath={PATH_WITH_CUDA}\n"
    public = (KEY.parent / f"{KEY.name}.pub").read_text()
    site.shell(f"mkdir -p /home/train/.ssh; echo '{public}' > /home/train/.ssh/authorized_keys; {OWN_KEYS}")
    assert "release 12.8, V12.8.0" in site.ssh("root", "nvcc --version")
    for shell in ("/bin/bash", "/bin/dash"):
        site.shell(f"usermod --shell {shell} train")
        said = site.ssh("train", SAID)
        assert said.startswith(wanted) and "release 12.8" in said, f"{shell}: {said}"
    # A login shell that does not come through PAM, whose PATH is its caller's.
    said = site.shell(
        f"runuser -u train -- env -i PATH=/usr/bin:/bin bash -c '. /etc/profile.d/gpu-cluster-cuda.sh; {SAID}'"
    )
    assert said.startswith("home=/usr/local/cuda\npath=/usr/bin:/bin:/usr/local/cuda/bin\n") and "release 12.8" in said


def test_mpirun_on_another_member_finds_the_default_toolkit(site: Site) -> None:
    """What orted starts, which mpirun starts over ssh. The member that runs mpirun has no toolkit."""
    site.have_wishes()
    public = site.cluster.shell(site.peer, MPI_KEY)
    site.shell(f"mkdir -p /home/train/.ssh; echo '{public}' > /home/train/.ssh/authorized_keys; {OWN_KEYS}")
    try:
        said = site.cluster.shell(
            site.peer,
            f"cd /; runuser -u train -- timeout 40 mpirun --mca plm_rsh_agent '{MPI_SSH}' --np 1 --host {site.node} "
            f"sh -c 'hostname; {SAID}' 2>&1; true",
        )
    finally:
        site.cluster.shell(site.peer, "rm -f /var/tmp/mpi-key*")
    # mpirun 4.1 warns when the child it made has become ssh before it gave it a process group: a race of its own.
    lines = [line for line in said.splitlines() if "plm:rsh: Warning: setpgid" not in line]
    assert lines[:2] == [site.node, "home=/usr/local/cuda"] and "release 12.8" in said, said
    assert lines[2].startswith("path=") and PATH_WITH_CUDA in lines[2]


def test_the_choice_survives_other_packages_and_an_upgrade(site: Site) -> None:
    """The upgrade takes the toolkit out and registers it anew, as NVIDIA's do. What we did not install stays."""
    site.have_wishes()
    site.shell("dnf -q -y install cuda-toolkit-12-9")
    assert site.link == "/usr/local/cuda-12.8\nStatus: manual\n"
    assert site.changes(cuda_toolkit_versions=["12.8.1"]) == 2
    assert site.link == "/usr/local/cuda-12.8\nStatus: manual\n"
    assert "V12.8.1" in site.ssh("root", "nvcc --version")
    assert site.shell("ls -d /usr/local/cuda-*").split() == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    assert site.shell("rpm -q cuda-nvcc-13-0; true") == "package cuda-nvcc-13-0 is not installed\n"

    # All of ours goes. What another has installed gets the link, and the site its own lines back.
    assert site.changes(cuda_toolkit_versions=[]) == 2
    assert site.link == "/usr/local/cuda-12.9\nStatus: auto\n"
    assert site.shell("cat /etc/environment") == ENVIRONMENT
    assert (
        site.shell("ls /etc/profile.d | grep cuda; grep -c cuda-toolkit /etc/dnf/plugins/versionlock.list; true")
        == "0\n"
    )
    site.shell("dnf -q -y remove cuda-toolkit-12-9")


@pytest.mark.long
def test_a_toolkit_that_is_another_one_is_not_chosen(site: Site) -> None:
    """The module alone. A program of another release has been put into the folder of 13.0."""
    site.have_wishes()
    before = site.shell(STATE)
    site.shell("cp -a /usr/local/cuda-13.0/bin/nvcc /var/tmp/; sed -i s/13.0,/12.4,/ /usr/local/cuda-13.0/bin/nvcc")
    argv = ["ansible", site.node, "-i", site.cluster.inventory, "-m", "baremetal.gpu_cluster.cuda_default"]
    said = " ".join(site.cluster.run([*argv, "-a", "release=13.0"]).text.split())
    site.shell("mv /var/tmp/nvcc /usr/local/cuda-13.0/bin/nvcc")
    assert "/usr/local/cuda is /usr/local/cuda-13.0, and its nvcc reports release 12.4 instead of 13.0." in said, said
    assert "Everything was put back." in said
    assert site.shell(STATE) == before and site.link == "/usr/local/cuda-12.8\nStatus: manual\n"
    said = " ".join(site.cluster.run([*argv, "-a", "release=12.4"]).text.split())
    assert "/usr/local/cuda-12.4 has no bin/nvcc. Fix: install the package cuda-toolkit-12-4 first" in said, said


def test_nccl_is_the_pinned_build_and_has_its_settings(site: Site) -> None:
    site.have_wishes()
    assert site.shell("rpm -q libnccl libnccl-devel").split() == [
        "libnccl-2.28.9-1+cuda13.0.x86_64",
        "libnccl-devel-2.28.9-1+cuda13.0.x86_64",
    ]
    assert (
        site.shell("dnf -q -y upgrade libnccl libnccl-devel 2>&1; rpm -q libnccl")
        == "libnccl-2.28.9-1+cuda13.0.x86_64\n"
    )
    lines = [line for line in site.shell("cat /etc/nccl.conf").splitlines() if not line.startswith("#")]
    assert lines == ["NCCL_DEBUG=WARN", "NCCL_SOCKET_IFNAME==fab0", "NCCL_SOCKET_NTHREADS=4"]


def test_a_library_that_is_not_its_packages_fails_the_role(site: Site) -> None:
    site.have_wishes()
    path, other = "/usr/lib64/libnccl.so.2.28.9", "/usr/local/lib/libnccl.so.2"
    foreign = site.folder / "foreign"
    foreign.mkdir()
    lab_cuda.library(foreign, "2.27.7").rename(foreign / "libnccl.so.2")
    site.put(foreign, "/usr/local/lib")

    # Something has written over the package's file.
    site.shell(f"mv {path} /var/tmp/; mv {other} {path}")
    message = message_of(site.apply(), site.node)
    assert f"{path} says it is NCCL 2.27.7, and its package is 2.28.9-1+cuda13.0: the file was replaced." in message

    # A copy of another one comes first. The module alone, as somebody without the role calls it.
    site.shell(f"mv {path} {other}; mv /var/tmp/libnccl.so.2.28.9 {path}; ldconfig")
    argv = ["ansible", site.node, "-i", site.cluster.inventory, "-m", "baremetal.gpu_cluster.nccl_library"]
    ended = site.cluster.run([*argv, "-a", "version=2.28.9"])
    assert ended.code == 2 and f"programs get {other}, which says it is NCCL 2.27.7 and belongs to no" in ended.text
    site.shell(f"rm {other}; ldconfig")
    assert site.cluster.run([*argv, "-a", "version=2.28.9"]).code == 0
    site.has_wishes = True


def test_wrong_wishes_change_nothing(site: Site) -> None:
    site.have_wishes()
    before = site.shell(STATE)
    message = message_of(site.apply(nccl_version="2.29.7", nccl_socket_interfaces=["fab7"]), site.node)
    assert "nccl_socket_interfaces = 'fab7': this node has no such network interface, it has eth0, fab0, lo." in message
    assert site.shell(STATE) == before
    site.has_wishes = True


def test_every_nccl_reads_the_settings(site: Site) -> None:
    """NVIDIA's own library, from the wheel that torch's needs. It looks for its interface without a GPU."""
    site.have_wishes()
    file = lab_packages.real_nccl(site.folder).relative_to(site.folder)
    site.shell(f"mkdir -p /var/tmp/wheel; curl -sf -o /var/tmp/wheel/libnccl.so.2 {site.url}/{file}")
    ask = f"NCCL_DEBUG=INFO python3 -c '{UNIQUE_ID}' 2>&1"
    assert f"Bootstrap: Using fab0:{site.cluster.fabric_address(site.node)}<0>" in site.shell(ask)
    # Without the file it takes another one, and the environment of a job wins over the file.
    assert "Bootstrap: Using eth0:" in site.shell(f"mv /etc/nccl.conf /var/tmp/; {ask}; mv /var/tmp/nccl.conf /etc/")
    assert "Bootstrap: Using eth0:" in site.shell(f"NCCL_SOCKET_IFNAME==eth0 {ask}")


def test_torch_uses_the_nccl_of_its_own_wheel(site: Site) -> None:
    """A library with the search path of torch's own; and for contrast, one with the newer kind of path."""
    site.have_wishes()
    for tag in ("--disable-new-dtags", "--enable-new-dtags"):
        site.put(lab_cuda.torch(site.folder / f"wheel{tag}", "2.29.7", tag=tag), f"/var/tmp/wheel/{tag}")
    answers = {}
    for tag in ("--disable-new-dtags", "--enable-new-dtags"):
        library = f"/var/tmp/wheel/{tag}/{lab_cuda.TORCH_FOLDER}/libtorch_cuda.so"
        code = f'import ctypes; print(ctypes.CDLL("{library}").nccl_of_torch())'
        for setting in ("A=1", "LD_LIBRARY_PATH=/usr/lib64", "LD_PRELOAD=/usr/lib64/libnccl.so.2"):
            answers[tag, setting.partition("=")[0]] = site.shell(f"{setting} python3 -c '{code}'").strip()
    system, own = "22809", "22907"
    # The system's NCCL is there for everybody who asks for it by its name.
    assert site.shell("python3 -c \"import ctypes; ctypes.CDLL('libnccl.so.2')\"") == ""
    assert answers == {
        ("--disable-new-dtags", "A"): own,
        ("--disable-new-dtags", "LD_LIBRARY_PATH"): own,
        ("--disable-new-dtags", "LD_PRELOAD"): system,
        ("--enable-new-dtags", "A"): own,
        ("--enable-new-dtags", "LD_LIBRARY_PATH"): system,
        ("--enable-new-dtags", "LD_PRELOAD"): system,
    }


@pytest.mark.long
def test_without_a_version_what_the_role_brought_goes_and_other_nccl_stays(site: Site) -> None:
    site.have_wishes()
    assert site.changes(nccl_version="") == 1
    assert site.shell("rpm -qa 'libnccl*'") == ""
    site.shell("dnf -y -q install libnccl")
    assert site.changes(nccl_version="") == 0
    assert site.shell("rpm -qa 'libnccl*' --qf '%{NAME}\\n'") == "libnccl\n"
    site.shell("dnf -y -q remove libnccl")
