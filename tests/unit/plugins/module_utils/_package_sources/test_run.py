# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole runs against a node and a network that are made up: what a lab without internet cannot show."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci, tree
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import probe, run, spec, system
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.catalogue import Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.probe import Answer, Question

DATA = Path(__file__).parent / "data"
ONE = "8475E992814C1C37DD9037A5B04DC6620B4406AB"
TWO = "2DBD862750C2C6C1AEE637C8889FBA33DA439B85"
KEY = (DATA / "subkey.asc").read_text()

CENTOS = "/etc/yum.repos.d/centos.repo"
STOCK = "[baseos]\nname=BaseOS\nenabled=1\n[crb]\nname=CRB\nenabled=0\n"
METALINK_URL = "https://mirrors.fedoraproject.org/metalink?repo=epel-9&arch=x86_64"
METALINK = (
    b"<metalink><url>https://a.example.com/epel/repodata/repomd.xml</url>"
    b"<url>https://b.example.com/epel/repodata/repomd.xml</url></metalink>"
)
NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64"
REPOMD = b'<repomd xmlns="http://linux.duke.edu/metadata/repo"><data type="primary"/></repomd>'
EPEL_ENTRY = {"id": "epel", "gpg_fingerprints": [TWO]}
NVIDIA_ENTRY = {"id": "nvidia", "gpg_fingerprints": [TWO]}
SITE = {"baseurl": "http://mirror.example.com/all", "gpg_key": "/inventory/files/key.asc"}


class World:
    """The node's files, what the network answers, and what was done."""

    def __init__(self) -> None:
        self.node = Node(9, "9", "x86_64")
        self.devices = [pci.Device("0000:1b:00.0", pci.NVIDIA, "2330", "030200", "")]
        self.files: dict[str, str] = {CENTOS: STOCK, system.DNF_CONF: "[main]\nbest=True\n"}
        self.network: dict[str, bytes] = {
            METALINK_URL: METALINK,
            "https://b.example.com/epel/repodata/repomd.xml": REPOMD,
            "https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-9": KEY.encode(),
            f"{NVIDIA}/repodata/repomd.xml": REPOMD,
            f"{NVIDIA}/D42D0685.pub": KEY.encode(),
        }
        #: Addresses that answer with an HTTP status of their own.
        self.failing: dict[str, int] = {}
        self.offered = {"dkms": "gpu-cluster-epel", "libnccl": "gpu-cluster-nvidia"}
        #: Name, version and release of what repositories offer, and of what is installed.
        self.versions: list[tuple[str, str, str]] = []
        self.installed: list[tuple[str, str, str]] = []
        #: The repository files with which the versions were asked for.
        self.asked_with: dict[str, str] = {}
        self.trusted: tuple[system.TrustedKey, ...] = ()
        self.questions: list[Question] = []
        self.dnf_calls: list[str] = []
        self.changes: list[system.Change] = []

    def repo_files(self) -> dict[str, str]:
        return {path: text for path, text in self.files.items() if path.endswith(".repo")}

    def fetch_all(self, questions: Sequence[Question], seconds: int) -> dict[Question, Answer]:
        self.questions += questions
        return {
            question: Answer(question.url, probe.OK, 200, self.network[question.url])
            if question.url in self.network
            else Answer(question.url, probe.STATUS, self.failing.get(question.url, 404))
            for question in questions
        }

    def dnf(self, arguments: Sequence[str], seconds: int) -> system.Ended:
        text = " ".join(arguments)
        self.dnf_calls.append(text)
        if "repolist" in text:
            return system.Ended(0, "repo id  repo name\nbaseos  BaseOS\n", "")
        if "repoquery" not in text:
            return system.Ended(0, "", "")
        if "--available" in text:
            folder = next(Path(one.partition("reposdir=")[2]) for one in arguments if "reposdir=" in one)
            self.asked_with = {path.name.partition("-")[2]: path.read_text() for path in folder.iterdir()}
            return system.Ended(0, "".join(f"{n}\t0\t{v}\t{r}\tx86_64\tsite\n" for n, v, r in self.versions), "")
        # A query for certain packages is about the node's own repositories, which here offer none of them.
        ours = [name for name in self.offered.items() if f"--enablerepo={name[1]}" in text]
        return system.Ended(0, "".join(f"{repository}\t{name}\tx86_64\n" for name, repository in ours), "")

    def command(self, argv: Sequence[str], seconds: int) -> system.Ended:
        if argv[0] == "rpm":
            return system.Ended(1, "".join(f"{n}\t0\t{v}\t{r}\tx86_64\t\n" for n, v, r in self.installed), "")
        lines = [line[1:-1] for text in self.repo_files().values() for line in text.splitlines() if line[:1] == "["]
        return system.Ended(0, "repo id  repo name\n" + "\n".join(lines), "")

    @contextmanager
    def applied(self, module: object, change: system.Change) -> Iterator[None]:
        self.changes.append(change)
        for path, text in change.files.items():
            self.files.pop(path, None)
            if text is not None:
                self.files[path] = text
        self.trusted += system.parse_trusted_keys("".join(f"gpg-pubkey-1-2\n{text}\n" for text in change.keys))
        yield

    def run(self, *entries: dict[str, Any], check_mode: bool = False, **settings: Any) -> dict[str, Any]:
        params = {"repositories": list(entries), "key_texts": {}, "proxy": "", "ca_certificate": ""}
        params.update({"timeout_seconds": 5, "wheels": None, **settings})
        return run.outcome(None, params, check_mode)  # type: ignore[arg-type]

    def refused(self, *entries: dict[str, Any], **settings: Any) -> list[str]:
        with pytest.raises(run.RefusedError) as caught:
            self.run(*entries, **settings)
        assert not self.changes
        return [problem.sentence() for problem in caught.value.problems]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()
    monkeypatch.setattr(system, "read_node", lambda: found.node)
    monkeypatch.setattr(tree, "nvidia_devices", lambda: found.devices)
    monkeypatch.setattr(run, "read_repo_files", found.repo_files)
    monkeypatch.setattr(system, "read_text", found.files.get)
    monkeypatch.setattr(system, "dnf", found.dnf)
    monkeypatch.setattr(system, "run", found.command)
    monkeypatch.setattr(system, "trusted_keys", lambda: found.trusted)
    monkeypatch.setattr(system, "applied", found.applied)
    monkeypatch.setattr(system, "KEY_FILES", "/no/such/folder/*")
    monkeypatch.setattr(probe, "fetch_all", found.fetch_all)
    return found


def actions(result: dict[str, Any]) -> dict[str, str]:
    return {entry["id"]: entry["action"] for entry in result["repositories"]}


def test_a_key_that_nobody_knows_stops_only_where_it_would_be_used(world: World) -> None:
    """NVIDIA signs for EL 10 with a key whose fingerprint the collection does not have."""
    world.node = Node(10, "10", "x86_64")
    folder = NVIDIA.replace("rhel9", "rhel10")
    world.network[f"{folder}/repodata/repomd.xml"] = REPOMD
    (said,) = world.refused({"id": "nvidia"})
    assert said.startswith("package_sources_repositories[nvidia].gpg_fingerprints") and spec.ERR_NO_PIN in said
    # The node has the repository, and somebody has trusted its key.
    world.files["/etc/yum.repos.d/cuda.repo"] = "[cuda-rhel10-x86_64]\nname=CUDA\nenabled=1\n"
    assert actions(world.run({"id": "nvidia"})) == {"nvidia": "own"}
    del world.files["/etc/yum.repos.d/cuda.repo"]
    # The node has no GPU.
    world.devices = []
    found = world.run({"id": "nvidia"})
    assert actions(found) == {"nvidia": "unused"} and not found["changed"]
    assert found["warnings"] == [run.WARN_UNUSED.format(id="nvidia")]


@pytest.mark.parametrize(
    ("version", "known", "taken"),
    [
        ("10", ["epel-10s", "epel-10", "epel-z-10"], "epel-10s"),
        ("10", ["epel-10", "epel-z-10"], "epel-10"),
        ("10.1", ["epel-10.1", "epel-10", "epel-z-10"], "epel-10.1"),
        # Never that of CentOS Stream, which is ahead of it.
        ("10.1", ["epel-10", "epel-z-10"], "epel-z-10"),
    ],
)
def test_epel_10_has_the_name_that_mirrormanager_knows(
    world: World, version: str, known: list[str], taken: str
) -> None:
    world.node = Node(10, version, "x86_64")
    for name in known:
        world.network[METALINK_URL.replace("epel-9", name)] = METALINK
    world.network["https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-10"] = KEY.encode()
    world.run(EPEL_ENTRY)
    assert f"metalink={METALINK_URL.replace('epel-9', taken)}\n" in world.files[system.OUR_FILE]
    assert not world.run(EPEL_ENTRY)["changed"]


def test_a_server_that_fails_today_does_not_rename_epel(world: World) -> None:
    world.node = Node(10, "10", "x86_64")
    first, second = (METALINK_URL.replace("epel-9", name) for name in ("epel-10s", "epel-10"))
    world.network[second] = METALINK
    world.failing[first] = 503
    world.network["https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-10"] = KEY.encode()
    (said,) = world.refused(EPEL_ENTRY)
    assert said.startswith("package_sources_repositories[epel].metalink") and "503" in said and "epel-10s" in said


def test_a_fresh_machine_with_internet(world: World) -> None:
    entries = ({"id": "crb"}, EPEL_ENTRY, NVIDIA_ENTRY)
    result = world.run(*entries)
    assert result["changed"] and not result["warnings"]
    assert actions(result) == {"crb": "switched_on", "epel": "defined", "nvidia": "defined"}
    assert world.files[CENTOS] == STOCK.replace("enabled=0", "enabled=1")
    text = world.files[system.OUR_FILE]
    assert f"metalink={METALINK_URL}\n" in text and f"baseurl={NVIDIA}/\n" in text
    assert world.files["/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-cluster-nvidia"] == KEY
    assert [key.key.fingerprint for key in world.trusted] == [TWO]
    assert any("--enablerepo=crb makecache" in call for call in world.dnf_calls)

    # The second run asks for metadata and nothing else: no key, no dnf.
    world.questions.clear()
    world.dnf_calls.clear()
    assert not world.run(*entries)["changed"]
    assert sorted(question.url.rsplit("/", 1)[-1] for question in world.questions) == [
        "metalink?repo=epel-9&arch=x86_64",
        "repomd.xml",
        "repomd.xml",
        "repomd.xml",
    ]
    assert world.dnf_calls == []


def test_check_mode_says_the_same_and_does_nothing(world: World) -> None:
    before = dict(world.files)
    result = world.run({"id": "crb"}, EPEL_ENTRY, check_mode=True)
    assert result["changed"] and world.files == before and not world.changes
    headers = [entry["after_header"] for entry in result["diff"]]
    assert headers == [
        "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-cluster-epel",
        CENTOS,
        system.OUR_FILE,
        "keys trusted by rpm",
    ]


def test_one_mirror_of_a_metalink_is_enough_and_none_is_a_problem(world: World) -> None:
    assert world.run(EPEL_ENTRY, check_mode=True)["changed"]
    del world.network["https://b.example.com/epel/repodata/repomd.xml"]
    (said,) = world.refused(EPEL_ENTRY)
    assert "[epel].metalink = 'https://a.example.com/epel': the mirror answers 404" in said


def test_everything_that_is_wrong_is_said_at_once(world: World) -> None:
    world.network.clear()
    said = " ".join(world.refused(EPEL_ENTRY, NVIDIA_ENTRY, {"id": "nvidea"}))
    for part in ("[epel].metalink", "[nvidia].baseurl", "[nvidia].gpg_key", "[epel].gpg_key", "did you mean nvidia?"):
        assert part in said
    assert not any("makecache" in call or "reposdir" in call for call in world.dnf_calls)


def test_a_node_whose_repositories_offer_the_packages_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = system.Ended(0, "site\tdkms\tnoarch\nsite\tlibnccl\tx86_64\n", "")
    monkeypatch.setattr(system, "dnf", lambda arguments, seconds: offered)
    result = world.run({"id": "epel"}, {"id": "nvidia"})
    assert not result["changed"] and not world.questions
    assert actions(result) == {"epel": "offered", "nvidia": "offered"}


def test_a_key_that_expired_in_rpm_and_was_renewed_is_imported_again(world: World) -> None:
    world.trusted = system.parse_trusted_keys("gpg-pubkey-0b4406ab-1\n" + (DATA / "expires.asc").read_text())
    texts = {"a": (DATA / "renewed.asc").read_text()}
    imports, dropped = run._key_change(texts, world.trusted)
    assert imports == (texts["a"],) and [one.package for one in dropped] == ["gpg-pubkey-0b4406ab-1"]
    assert run._key_change({"a": KEY}, system.parse_trusted_keys(f"gpg-pubkey-1-2\n{KEY}")) == ((), ())


def test_what_dnf_conf_says_about_the_proxy_counts(world: World) -> None:
    world.files[system.DNF_CONF] = "[main]\nproxy=http://p:1\nproxy_username=me@x\nproxy_password=a b\nsslcacert=/ca\n"
    world.run(EPEL_ENTRY, check_mode=True)
    assert {question.route for question in world.questions} == {probe.Route("http://me%40x:a%20b@p:1", "/ca")}


@pytest.mark.parametrize(
    ("configured", "wanted", "own", "expected"),
    [
        ("", "", "", None),
        ("_none_", "", "", None),
        ("http://p:1", "", "", "http://p:1"),
        ("http://p:1", "http://q:2", "", "http://q:2"),
        ("http://p:1", "none", "", None),
        ("http://p:1", "http://q:2", "none", ""),
        ("", "http://q:2", "http://r:3", "http://r:3"),
    ],
)
def test_the_proxy_that_is_used(configured: str, wanted: str, own: str, expected: str | None) -> None:
    text = f"[main]\nproxy={configured}\n" if configured else "[main]\n"
    assert run.Routes(wanted, "", text).route(own).proxy == expected


def test_a_proxy_that_cannot_be_used_for_asking_is_said(world: World) -> None:
    world.files[system.DNF_CONF] = "[main]\nproxy=socks5://p:1\n"
    world.files["/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-cluster-epel"] = KEY
    result = world.run(EPEL_ENTRY)
    assert not world.questions and "behind socks5://p:1" in result["warnings"][0]
    assert any("--enablerepo=gpu-cluster-epel" in call for call in world.dnf_calls)


def test_an_authority_that_is_not_on_the_node(world: World) -> None:
    (said,) = world.refused(EPEL_ENTRY, ca_certificate="/no/such/ca.pem")
    assert said.startswith("package_sources_ca_certificate = '/no/such/ca.pem': the node has no such file.")


def test_what_dnf_does_not_read_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    error = "Error: Failed to download metadata for repo 'gpu-cluster-nvidia': checksum mismatch\n"

    def dnf(arguments: Sequence[str], seconds: int) -> system.Ended:
        return system.Ended(1, "", error) if "--enablerepo=gpu-cluster-nvidia" in arguments else system.Ended(0, "", "")

    monkeypatch.setattr(system, "dnf", dnf)
    (said,) = world.refused(NVIDIA_ENTRY)
    assert f"[nvidia].baseurl = '{NVIDIA}': dnf cannot use the repository: checksum mismatch." in said


def test_a_change_that_dnf_does_not_show_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "run", lambda argv, seconds: system.Ended(0, "repo id\nbaseos\n", ""))
    with pytest.raises(system.SystemFailure, match="dnf does not list gpu-cluster-nvidia"):
        world.run(NVIDIA_ENTRY)


DRIVER = {
    "name": "nvidia-driver-cuda",
    "version": "580",
    "family": "nvidia-driver",
    "variable": "nvidia_driver_version",
}
NCCL_PIN = {
    "name": "libnccl",
    "version": "2.28.9-*+cuda13.*",
    "family": "nccl",
    "variable": "nccl_version with nccl_cuda",
}
MPI = {"name": "openmpi", "version": "", "family": "", "variable": "openmpi_packages"}


def test_pins_that_no_repository_has_are_refused_before_anything_changes(world: World) -> None:
    """All at once, each by the variable that the inventory has, with the versions that there are."""
    world.versions = [("nvidia-driver-cuda", "570.1.2", "1.el9"), ("libnccl", "2.27.3", "1+cuda12.9")]
    said = world.refused({"id": "crb"}, EPEL_ENTRY, packages=[DRIVER, NCCL_PIN, MPI])
    assert said == [
        "nvidia_driver_version = '580': no repository of the node offers that version of nvidia-driver-cuda; there are "
        "570.1.2-1.el9. Fix: set it to one of them, or add the repository that has it.",
        "nccl_version with nccl_cuda = '2.28.9-*+cuda13.*': no repository of the node offers that version of libnccl; "
        "there are 2.27.3-1+cuda12.9. Fix: set it to one of them, or add the repository that has it.",
        "openmpi_packages[openmpi]: no repository of the node offers the package openmpi; the node uses baseos. Fix: "
        "add the repository that has it (package_sources_repositories), or correct the name.",
    ]
    assert any("--refresh" in call and "--available" in call for call in world.dnf_calls), "not only dnf's cache"


def test_repositories_are_asked_as_they_are_going_to_be(world: World) -> None:
    world.versions = [("nvidia-driver-cuda", "580.95.05", "1.el9")]
    assert world.run({"id": "crb"}, EPEL_ENTRY, packages=[DRIVER])["changed"]
    assert world.asked_with["centos.repo"] == STOCK.replace("enabled=0", "enabled=1")
    assert f"metalink={METALINK_URL}\n" in world.asked_with["gpu-cluster.repo"]
    assert not any("--refresh" in call and "--available" in call for call in world.dnf_calls)


def test_what_is_installed_as_wanted_is_not_asked_for(world: World) -> None:
    """A node that is in order has none of it in its repositories any more, perhaps."""
    world.installed = [("nvidia-driver-cuda", "580.1", "1.el9"), ("openmpi", "4.1.1", "7.el9")]
    assert not world.run(packages=[DRIVER, MPI])["changed"]
    assert not any("--available" in call for call in world.dnf_calls)
    world.installed = [("nvidia-driver-cuda", "570.1", "1.el9")]
    world.versions = [("nvidia-driver-cuda", "570.1", "1.el9")]
    (said,) = world.refused(packages=[DRIVER])
    assert said.startswith("nvidia_driver_version = '580': ")


def test_a_repository_that_cannot_be_read_is_named_and_not_the_pins(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Error: Failed to download metadata for repo 'baseos': Cannot download repomd.xml"
    monkeypatch.setattr(system, "dnf", lambda arguments, seconds: system.Ended(1, "", text))
    (said,) = world.refused(packages=[DRIVER, MPI])
    assert said.startswith("package_sources_repositories[baseos]: the node's own repository baseos cannot be read")


def test_a_version_of_torch_that_the_index_lacks_is_named_by_its_own_variable(world: World) -> None:
    index = "https://index.example.com/whl"
    page = b'<a href="torch-2.13.0%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl">torch</a>'
    world.network |= {f"{index}/torch/": page, f"{index}/numpy/": page}
    wheels = {
        "index_url": index,
        "folder": "",
        "prefix": "/none",
        "requirements": ["torch==2.99.0", "numpy==2.3.4"],
        "variables": {"requirements": {"torch": "torch_runtime_version", "*": "torch_runtime_extra_requirements"}},
    }
    said = world.refused(wheels=wheels)
    assert said == [
        f"torch_runtime_version = '2.99.0': the index {index} holds no wheel of torch==2.99.0 for x86_64; it has "
        "2.13.0+cpu. Fix: add the wheel, or pin a version that is there.",
        f"torch_runtime_extra_requirements = 'numpy==2.3.4': the index {index} holds no wheel of numpy==2.3.4 for "
        "x86_64. Fix: add the wheel, or pin a version that is there.",
    ]
    world.network.clear()
    variables = {**wheels["variables"], "index_url": "torch_runtime_index_url"}  # type: ignore[dict-item]
    assert all(
        one.startswith("torch_runtime_index_url = ") for one in world.refused(wheels={**wheels, "variables": variables})
    )


def test_a_version_that_the_default_index_of_pip_lacks_is_named_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    wheels = {
        "prefix": "/none",
        "requirements": ["torch==2.99.0"],
        "variables": {"requirements": {"torch": "torch_runtime_version", "*": "torch_runtime_extra_requirements"}},
    }
    page = b'<a href="torch-2.13.0-cp312-cp312-manylinux_2_28_x86_64.whl#sha256=0">torch</a>'
    world.network["https://pypi.org/simple/torch/"] = page
    world.network["https://pip.example.com/torch/"] = page
    said = (
        "torch_runtime_version = '2.99.0': the index {} holds no wheel of torch==2.99.0 for x86_64; it has 2.13.0. "
        "Fix: add the wheel, or pin a version that is there."
    )
    assert world.refused(wheels=wheels) == [said.format("https://pypi.org/simple")]
    world.files["/etc/pip.conf"] = "[global]\nindex_url = https://pip.example.com/\n"
    assert world.refused(wheels=wheels) == [said.format("https://pip.example.com")]
    world.run(wheels={**wheels, "requirements": ["torch==2.13.0"]})
    # An index without such a package says so; one that cannot be reached says nothing.
    missing = world.refused(wheels={**wheels, "requirements": ["nmpy==2.3.4"]})
    assert ["the index https://pip.example.com holds no wheel of nmpy==2.3.4" in one for one in missing] == [True]
    unreachable = Answer("https://pip.example.com/torch/", probe.TIMEOUT)
    monkeypatch.setattr(probe, "fetch_all", lambda questions, seconds: dict.fromkeys(questions, unreachable))
    world.run(wheels=wheels)


def test_an_index_that_nobody_has_set_gives_way_to_that_of_pip(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    index = "https://download.pytorch.org/whl/cu130"
    variables = {"index_url": "torch_runtime_index_url"}
    wheels = {
        "prefix": "/none",
        "index_url": index,
        "prefer_pip_configuration": True,
        "requirements": ["torch==2.13.0"],
    }
    world.network[f"{index}/torch/"] = b'<a href="torch-2.13.0%2Bcu130-cp312-cp312-manylinux_2_28_x86_64.whl">torch</a>'
    world.run(wheels=wheels)
    world.network.clear()
    (said,) = world.refused(wheels={**wheels, "variables": variables})
    assert said.startswith(f"torch_runtime_index_url = '{index}': ") and "this index was chosen, because" in said
    assert "set torch_runtime_index_url to a mirror" in said
    (said,) = world.refused(wheels={**wheels, "variables": variables, "prefer_pip_configuration": False})
    assert "was chosen" not in said
    world.questions.clear()
    world.files["/etc/pip.conf"] = "[global]\nfind-links = /srv/wheels\n"
    world.run(wheels=wheels)
    assert world.questions == []


def test_a_folder_of_wheels_wins_over_the_index(world: World, tmp_path: Path) -> None:
    """Nobody asks the index then, and the folder is only looked at."""
    (tmp_path / "numpy-2.3.4-cp312-cp312-manylinux_2_28_x86_64.whl").touch()
    wheels = {"folder": str(tmp_path), "index_url": "http://index.example.com/simple", "prefix": "/x"}
    world.run(wheels={**wheels, "requirements": ["numpy==2.3.4"]})
    (said,) = world.refused(wheels={**wheels, "requirements": ["numpy==2.3.4", "torch==2.13.0"]})
    assert "the folder holds no wheel of torch==2.13.0" in said
    assert world.questions == [] and len(list(tmp_path.iterdir())) == 1


def test_with_mirrors_and_their_keys_nobody_else_is_asked(world: World) -> None:
    """As docs/air-gapped.md sets them up, with the keys beside the inventory."""
    entries = [{**EPEL_ENTRY, **SITE}, {**NVIDIA_ENTRY, **SITE}]
    world.network[f"{SITE['baseurl']}/repodata/repomd.xml"] = REPOMD
    world.run(*entries, key_texts={SITE["gpg_key"]: KEY})
    assert {urlsplit(question.url).hostname for question in world.questions} == {"mirror.example.com"}
    written = "".join(world.changes[0].files.values())
    assert "fedoraproject" not in written and "nvidia.com" not in written and SITE["baseurl"] in written
