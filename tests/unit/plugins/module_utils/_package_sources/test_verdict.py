# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What answers mean: one sentence for every way in which a source can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import probe, verdict
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.probe import Answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.spec import RepositorySpec

DATA = Path(__file__).parent / "data"
ONE = "8475E992814C1C37DD9037A5B04DC6620B4406AB"
TWO = "2DBD862750C2C6C1AEE637C8889FBA33DA439B85"
THREE = "CB1B58ACEF247138BEC67B622B93804CABDCE7FE"
IN_2024_MARCH, IN_2025, IN_2027 = 1709251200, 1735689600, 1798761600

BASE = "http://mirror.example.com/epel"
URL = f"{BASE}/repodata/repomd.xml"
PROXY = "http://proxy.example.com:3128"
MIRROR = RepositorySpec("epel", "EPEL", baseurl=BASE, is_mirror=True)
REPOMD = (
    b'<?xml version="1.0"?><repomd xmlns="http://linux.duke.edu/metadata/repo">'
    b'<data type="primary"><location href="repodata/primary.xml.gz"/></data></repomd>'
)
PORTAL = b'\n<!DOCTYPE html>\n<html><head><title lang="en"> Sign in </title>'


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (Answer(URL, probe.STATUS, 404), "the mirror answers 404 for repodata/repomd.xml"),
        (Answer(URL, probe.STATUS, 503), "the mirror answers 503 for repodata/repomd.xml"),
        (Answer(URL, probe.NAME, detail="Unknown"), "the name mirror.example.com is not known to the node: Unknown"),
        (Answer(URL, probe.REFUSED), "the mirror refuses the connection"),
        (Answer(URL, probe.TIMEOUT, seconds=5.04), "the mirror did not answer within 5 s"),
        (Answer(URL, probe.TLS, detail="expired"), "the certificate of the mirror is not accepted: expired"),
        (Answer(URL, probe.CONNECTION, detail="No route"), "no connection to the mirror: No route"),
        (Answer("file:///srv/x", probe.MISSING, detail="None"), "the node cannot read repodata/repomd.xml: None"),
        (Answer(URL, probe.TOO_LONG), "the mirror sends more than 32 MiB for repodata/repomd.xml"),
        (
            Answer(URL, probe.OK, 200, PORTAL),
            "the mirror answers with a web page 'Sign in' instead of repodata/repomd.xml: a portal that wants a login, "
            "or the wrong address",
        ),
        (
            Answer(URL, probe.OK, 200, b"not found"),
            "the mirror answers with something else than repodata/repomd.xml: it is no XML "
            "(syntax error: line 1, column 0)",
        ),
        (
            Answer(URL, probe.OK, 200, b"<Error/>"),
            "the mirror answers with something else than repodata/repomd.xml: its first element is 'Error'",
        ),
        (
            Answer(URL, probe.OK, 200, REPOMD.replace(b"primary", b"other")),
            "the mirror answers with something else than repodata/repomd.xml: it lists no primary metadata",
        ),
        (
            Answer(URL, probe.OK, 200, b'<!DOCTYPE x [<!ENTITY a "b">]>' + REPOMD),
            "the mirror answers with something else than repodata/repomd.xml: it declares entities",
        ),
        (Answer(URL, probe.STATUS, 404, proxy=PROXY), "the mirror answers 404 for repodata/repomd.xml"),
        (Answer(URL, probe.STATUS, 407, proxy=PROXY), f"the proxy {PROXY} answers 407 for repodata/repomd.xml"),
        (Answer(URL, probe.REFUSED, proxy=PROXY), f"the proxy {PROXY} refuses the connection"),
        (Answer(URL, probe.NAME, detail="Unknown", proxy=PROXY), "the name proxy.example.com is not known to the node"),
        (
            Answer(URL, probe.TUNNEL, detail="Tunnel connection failed: 403", proxy=PROXY),
            f"the proxy {PROXY} does not let the node through: Tunnel connection failed: 403",
        ),
        (
            Answer(URL, probe.TLS, detail="expired", proxy=PROXY),
            "the certificate of the mirror is not accepted: expired",
        ),
    ],
)
def test_a_mirror_that_cannot_be_used(answer: Answer, rule: str) -> None:
    problem = verdict.repomd_problem(MIRROR, answer)
    assert problem is not None and problem.rule.startswith(rule)
    assert problem.variable == "package_sources_repositories[epel].baseurl"
    assert problem.fix
    if answer.kind == probe.REFUSED and answer.proxy:
        assert "package_sources_proxy" in problem.fix


def test_a_good_mirror() -> None:
    assert verdict.repomd_problem(MIRROR, Answer(URL, probe.OK, 200, REPOMD)) is None


def test_the_makers_address_needs_a_mirror_or_nothing() -> None:
    declared = RepositorySpec("epel", "EPEL", baseurl=BASE, is_known=True)
    problem = verdict.repomd_problem(declared, Answer(URL, probe.REFUSED))
    assert problem is not None and problem.fix.endswith(
        "give the entry the baseurl of your mirror, or leave the entry out"
    )


METALINK = b"""<?xml version="1.0"?>
<metalink xmlns="http://www.metalinker.org/"><files><file name="repomd.xml"><resources maxconnections="1">
<url protocol="rsync">rsync://a.example.com/x/repodata/repomd.xml</url>
<url protocol="https" preference="100"> https://a.example.com/x/repodata/repomd.xml</url>
<url protocol="http">http://b.example.com/x/repodata/repomd.xml</url>
<url protocol="http">http://c.example.com/x/repodata/repomd.xml</url>
<url protocol="http">http://d.example.com/x/repodata/repomd.xml</url>
</resources></file></files></metalink>"""


def test_the_preferred_mirrors_of_a_metalink() -> None:
    declared = RepositorySpec("epel", "EPEL", metalink="https://x/metalink")
    urls, problem = verdict.metalink_mirrors(declared, Answer("https://x/metalink", probe.OK, 200, METALINK))
    assert problem is None
    assert urls == tuple(
        f"{scheme}.example.com/x/repodata/repomd.xml" for scheme in ("https://a", "http://b", "http://c")
    )


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (Answer("u", probe.OK, 200, b"<metalink/>"), "the metalink of the mirror names no mirror"),
        (Answer("u", probe.OK, 200, REPOMD), "the mirror answers with something else than a metalink"),
        (Answer("u", probe.OK, 200, PORTAL), "the mirror answers with a web page 'Sign in' instead of the metalink"),
        (Answer("u", probe.STATUS, 500), "the mirror answers 500 for the metalink"),
    ],
)
def test_a_metalink_that_cannot_be_used(answer: Answer, rule: str) -> None:
    urls, problem = verdict.metalink_mirrors(RepositorySpec("epel", "EPEL", metalink="u"), answer)
    assert urls == () and problem is not None and problem.rule.startswith(rule)
    assert problem.variable == "package_sources_repositories[epel].metalink"


@pytest.mark.parametrize(
    ("file", "pins", "now", "rules"),
    [
        ("expires", [ONE], 0, []),
        ("renewed", [ONE], IN_2025, []),
        ("both", [ONE, TWO], IN_2025, []),
        ("expires", [ONE], IN_2024_MARCH, [f"the key {ONE} from the file has expired on 2024-01-31"]),
        ("renewed", [ONE], IN_2027, [f"the key {ONE} from the file has expired on 2026-01-01"]),
        ("subkey", [ONE], 0, [f"the key from the file has the fingerprint {TWO}, and pinned is {ONE}"]),
        # One key more than is pinned would be trusted for every repository.
        ("both", [ONE], IN_2025, [f"the key from the file has the fingerprint {TWO}, and pinned is {ONE}"]),
        ("renewed", [ONE, TWO], IN_2025, [f"the file from the file lacks the pinned key {TWO}"]),
        ("revoked", [THREE], 0, [f"the key {THREE} from the file has been revoked by its owner"]),
    ],
)
def test_keys(file: str, pins: list[str], now: int, rules: list[str]) -> None:
    declared = RepositorySpec("epel", "EPEL", fingerprints=tuple(pins))
    found = verdict.key_problems(declared, "the file", (DATA / f"{file}.asc").read_text(), now)
    assert [problem.rule for problem in found] == rules
    assert {problem.variable for problem in found} <= {"package_sources_repositories[epel].gpg_key"}


def test_what_is_no_key() -> None:
    (problem,) = verdict.key_problems(RepositorySpec("epel", "EPEL", fingerprints=(ONE,)), "http://x", "<html>", 0)
    assert problem.rule == "the key from http://x holds no OpenPGP public key"


NCCL = RepositorySpec("nvidia", "NVIDIA", baseurl="http://m/cuda", packages=("libnccl",))


@pytest.mark.parametrize(
    ("declared", "packages", "rules"),
    [
        (NCCL, {("libnccl", "x86_64")}, []),
        (NCCL, {("libnccl", "noarch")}, []),
        (NCCL, {("libnccl", "x86_64"), ("libnccl", "aarch64")}, []),
        (NCCL, {("libnccl", "aarch64")}, ["the repository is for aarch64, and this node is x86_64"]),
        (NCCL, {("libnccl", "aarch64"), ("doc", "noarch")}, ["the repository is for aarch64, and this node is x86_64"]),
        (NCCL, {("other", "x86_64")}, ["the repository offers none of the wanted packages libnccl"]),
        (NCCL, {("libnccl", "src")}, ["the repository offers none of the wanted packages libnccl"]),
        (NCCL, set(), ["the repository offers none of the wanted packages libnccl"]),
        (MIRROR, set(), []),
        (MIRROR, {("a", "aarch64")}, ["the repository is for aarch64, and this node is x86_64"]),
        (MIRROR, {("a", "noarch")}, []),
    ],
)
def test_contents(declared: RepositorySpec, packages: set[tuple[str, str]], rules: list[str]) -> None:
    assert [problem.rule for problem in verdict.content_problems(declared, packages, "x86_64")] == rules


#: dnf 4.14 with skip_if_unavailable, as recorded on a node.
DNF_ERRORS = """\
Lab stand-ins for NVIDIA's repository           0.0  B/s |   0  B     00:00
Errors during downloading metadata for repository 'baseos':
  - Curl error (6): Couldn't resolve host name for https://mirrors.centos.invalid/metalink?repo=b
Error: Failed to download metadata for repo 'baseos': Cannot prepare internal mirrorlist: Curl error (6): x
Error: Failed to download metadata for repo 'gpu-cluster-a': Cannot download repomd.xml: All mirrors were tried
Ignoring repositories: baseos, gpu-cluster-a
"""


def test_what_dnf_says_about_repositories() -> None:
    assert verdict.failed_repositories(DNF_ERRORS) == {
        "baseos": "Cannot prepare internal mirrorlist: Curl error (6): x",
        "gpu-cluster-a": "Cannot download repomd.xml: All mirrors were tried",
    }
    assert (
        "All mirrors were tried" in verdict.dnf_problem(RepositorySpec("a", "A", baseurl="http://m"), DNF_ERRORS).rule
    )
    assert verdict.own_problem("baseos", DNF_ERRORS).rule.startswith("the node's own repository baseos cannot be read")
    assert verdict.own_problem("x", "Error: no space\nleft").rule.endswith("cannot be read: Error: no space left")


def test_only_lines_of_packages_count() -> None:
    lines = ["Last metadata expiration check: 0:00:01 ago.", "", "a\tlibnccl\tx86_64", "b\tdkms\tnoarch", "a\tx\tsrc"]
    assert verdict.names_by_repository(lines) == {
        "a": {("libnccl", "x86_64"), ("x", "src")},
        "b": {("dkms", "noarch")},
    }


FILES = [
    "torch-2.12.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.13.0%2Bcu130-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.14.0+cu130-cp312-cp312-manylinux_2_28_aarch64.whl",
    "torch-2.15.0-cp312-cp312-win_amd64.whl",
    "../../packages/typing_extensions-4.15.0-py3-none-any.whl",
    "torchvision-0.99-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.16.0.tar.gz",
]


@pytest.mark.parametrize(
    ("requirement", "arch", "rule"),
    [
        ("torch==2.13.0", "x86_64", ""),
        ("torch==2.13.0+cu130", "x86_64", ""),
        ("torch", "x86_64", ""),
        ("Typing.Extensions==4.15.0", "aarch64", ""),
        ("torch==2.14.0", "x86_64", "torch==2.14.0 for x86_64; it has 2.12.0+cu130, 2.13.0+cu130"),
        ("torch==2.13.0+cpu", "x86_64", "torch==2.13.0+cpu for x86_64; it has 2.12.0+cu130, 2.13.0+cu130"),
        ("torch==2.15.0", "x86_64", "torch==2.15.0 for x86_64; it has"),
        ("torch==2.16.0", "x86_64", "torch==2.16.0 for x86_64; it has"),
        ("torch==2.13.0", "aarch64", "torch==2.13.0 for aarch64; it has 2.14.0+cu130"),
        ("numpy==2.3.4", "x86_64", "the folder holds no wheel of numpy==2.3.4 for x86_64"),
    ],
)
def test_wheels(requirement: str, arch: str, rule: str) -> None:
    problem = verdict.wheel_problem(verdict.Wheels("v", folder="/srv/wheels"), requirement, FILES, arch)
    assert rule in problem.rule if problem else not rule


def test_pages_of_an_index() -> None:
    wheels = verdict.Wheels("v", index_url="https://index.example.com/whl")
    page = b'<!DOCTYPE html><a href="/whl/torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl#sha256=00">torch</a>'
    good = Answer("u", probe.OK, 200, page)
    assert verdict.index_problem(wheels, "torch==2.13.0", good, "x86_64") is None
    problem = verdict.index_problem(wheels, "torch==2.14.0", good, "x86_64")
    assert problem is not None and problem.rule.startswith("the index holds no wheel of torch==2.14.0 for x86_64")
    problem = verdict.index_problem(wheels, "torch==2.13.0", Answer("u", probe.STATUS, 404), "x86_64")
    assert problem is not None and problem.rule == "the index answers 404 for torch/"
    portal = Answer("u", probe.OK, 200, PORTAL)
    problem = verdict.index_problem(wheels, "torch==2.13.0", portal, "x86_64")
    assert problem is not None and "holds no wheel" in problem.rule


def test_what_is_installed_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "python3.12" / "site-packages"
    for name in ("torch-2.13.0+cpu.dist-info", "typing_extensions-4.15.0.dist-info", "numpy-2.3.40.dist-info"):
        (folder / name).mkdir(parents=True)

    def is_there(requirement: str) -> bool:
        patterns = verdict.installed_patterns(str(tmp_path), requirement)
        return any(list(tmp_path.glob(pattern[len(str(tmp_path)) + 1 :])) for pattern in patterns)

    assert is_there("torch==2.13.0") and is_there("typing-extensions==4.15.0")
    assert not is_there("torch==2.13") and not is_there("numpy==2.3.4") and not is_there("torch")
