# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins that cannot be installed together, and those that nothing is known of."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _stack_versions as truth
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import versions

WHEELS = "https://download.pytorch.org/whl"
#: The defaults of the roles.
DEFAULTS = {
    "torch_runtime_version": "2.13.0",
    "torch_runtime_python": "/usr/bin/python3.12",
    "torch_runtime_index_url": "",
    "torch_runtime_find_links": "",
    "torch_runtime_adopt": "",
    "nvidia_driver_version": "580",
    "nvidia_driver_kind": "open",
    "nvidia_driver_state": "present",
    "cuda_toolkit_versions": ["13.0"],
    "cuda_toolkit_default": "",
    "nccl_version": "2.28.9",
    "nccl_cuda": "13",
}


def sentences(**given: Any) -> list[str]:
    """What is refused when a host says this, without the fixes; every problem has one."""
    problems = versions.pin_problems(versions.with_defaults(given, DEFAULTS))
    assert all(problem.fix for problem in problems)
    return [problem.sentence().split(". Fix: ")[0] for problem in problems]


def fixes(**given: Any) -> list[str]:
    """The fixes alone."""
    return [problem.fix for problem in versions.pin_problems(versions.with_defaults(given, DEFAULTS))]


def torch(version: Any, python: str = "/usr/bin/python3.12", index: str = "", find_links: str = "") -> list[str]:
    return sentences(
        torch_runtime_version=version,
        torch_runtime_python=python,
        torch_runtime_index_url=index,
        torch_runtime_find_links=find_links,
    )


def test_the_defaults_go_together() -> None:
    assert sentences() == []


def test_a_host_without_variables_is_not_judged() -> None:
    assert versions.pin_problems(versions.with_defaults({}, {})) == []


# --- PyTorch and Python ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "minimum", "too_old"),
    [
        ("2.5.1", "3.9", "3.8"),
        ("2.8.0", "3.9", "3.8"),
        ("2.9.1", "3.10", "3.9"),
        ("2.10.0", "3.10", "3.9"),
        ("2.14.1", "3.10", "3.9"),
        ("2.13.0+cu130", "3.10", "3.9"),
        ("2.15.0", "3.11", "3.10"),
        ("2.15.0rc1", "3.11", "3.10"),
    ],
)
def test_an_interpreter_that_is_too_old(version: str, minimum: str, too_old: str) -> None:
    assert torch(version, f"/usr/bin/python{minimum}") == []
    assert torch(version, f"/opt/python{too_old}") == [
        f"torch_runtime_python = '/opt/python{too_old}': PyTorch {version} needs Python {minimum} or newer"
    ]


def test_an_interpreter_that_is_too_new() -> None:
    assert torch("2.8.0", "/usr/bin/python3.13") == []
    assert torch("2.8.0", "/usr/bin/python3.14") == [
        "torch_runtime_python = '/usr/bin/python3.14': PyTorch 2.8.0 has no wheels for a Python newer than 3.13"
    ]
    assert torch("2.8.0", "/usr/bin/python3.14", find_links="/srv/wheels") == []


@pytest.mark.parametrize(
    ("version", "python"),
    [
        ("2.4.1", "/usr/bin/python3.7"),
        ("2.16.0", "/usr/bin/python3.9"),
        ("3.0.0", "/usr/bin/python3.9"),
        ("latest", "/usr/bin/python3.9"),
        ("", "/usr/bin/python3.9"),
        (None, "/usr/bin/python3.9"),
        ("2.13.0", "/usr/bin/python3"),
        ("2.13.0", "/opt/site/bin/python"),
        ("2.13.0", "/usr/bin/python3.9/bin/pypy"),
    ],
)
def test_what_is_not_known_passes(version: Any, python: str) -> None:
    assert torch(version, python) == []


# --- PyTorch and its CUDA build -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "index", "expected"),
    [
        ("2.9.1", f"{WHEELS}/cu130", []),
        # The page of previous versions leaves it out, and the wheels are there.
        ("2.9.1", f"{WHEELS}/cu129", []),
        ("2.9.1", f"{WHEELS}/cpu", []),
        ("2.9.1", "https://pypi.example.org/simple", []),
        ("2.13.0", f"{WHEELS}/cu118", []),
        ("2.12.1", f"{WHEELS}/cu132", []),
        (
            "2.9.1",
            f"{WHEELS}/cu118/",
            [
                f"torch_runtime_index_url = '{WHEELS}/cu118/': "
                "PyTorch 2.9 has no build cu118; it has cu126, cu128, cu129, cu130"
            ],
        ),
        (
            "2.6.0",
            f"{WHEELS}/cu130",
            [f"torch_runtime_index_url = '{WHEELS}/cu130': PyTorch 2.6 has no build cu130; it has cu118, cu124, cu126"],
        ),
        (
            "2.9.1+cu118",
            "",
            [
                "torch_runtime_version = '2.9.1+cu118': "
                "PyTorch 2.9 has no build cu118; it has cu126, cu128, cu129, cu130"
            ],
        ),
        ("2.9.1+cu128", f"{WHEELS}/cu128", []),
        ("2.9.1+cpu", f"{WHEELS}/cu128", []),
        (
            "2.13.0+cu128",
            f"{WHEELS}/cu130",
            [
                "torch_runtime_version = '2.13.0+cu128': "
                "names the build cu128, and torch_runtime_index_url the build cu130"
            ],
        ),
    ],
)
def test_a_build_that_does_not_exist(version: str, index: str, expected: list[str]) -> None:
    assert torch(version, index=index) == expected


@pytest.mark.parametrize("build", ["cu999", "cu13", "cu1300", "cu141"])
def test_a_build_of_a_cuda_that_there_is_not(build: str) -> None:
    """Of 2.13 no whole list of builds is known, but it came out when there was no such CUDA."""
    (sentence,) = torch("2.13.0", index=f"{WHEELS}/{build}")
    assert f"PyTorch 2.13 has no build {build}, because there is no CUDA " in sentence
    assert torch("2.13.0", index=f"{WHEELS}/cu132") == []
    # What came out later may have it.
    assert torch("2.99.0", index=f"{WHEELS}/cu141") == []


def test_an_index_that_is_not_used_is_not_compared() -> None:
    assert torch("2.9.1", index=f"{WHEELS}/cu118", find_links="/srv/wheels") == []


def test_an_environment_that_is_adopted_is_not_installed() -> None:
    given = {"torch_runtime_index_url": f"{WHEELS}/cu118", "torch_runtime_python": "/usr/bin/python3.6"}
    assert len(sentences(torch_runtime_version="2.9.1", **given)) == 2
    assert sentences(torch_runtime_version="2.9.1", torch_runtime_adopt="/opt/site/torch", **given) == []


# --- the driver -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["580", 580, "580.95", "580.95.05", "470.74", "580.126.09", "", None, " 580 "])
def test_a_driver_that_is_written_well(version: Any) -> None:
    assert [text for text in sentences(nvidia_driver_version=version) if "expected" in text] == []


@pytest.mark.parametrize("version", ["580-open", "latest", "58", "580.", "580.95.05-1", "v580", "580.1", "580.95.5"])
def test_a_driver_that_is_no_version(version: str) -> None:
    assert sentences(nvidia_driver_version=version) == [
        f"nvidia_driver_version = '{version}': expected a branch such as 580, or a whole version such as 580.95.05"
    ]


def test_a_toolkit_that_the_driver_is_too_old_for() -> None:
    given = {"cuda_toolkit_versions": ["12.8", "13.0"], "torch_runtime_index_url": f"{WHEELS}/cu126"}
    assert sentences(nvidia_driver_version="580.65.06", **given) == []
    assert sentences(nvidia_driver_version="575.57.08", **given) == [
        "cuda_toolkit_versions = ['12.8', '13.0']: "
        "CUDA 13.0 needs a driver of branch 580 or newer, and nvidia_driver_version is '575.57.08'"
    ]
    assert fixes(nvidia_driver_version="575.57.08", **given) == [
        "choose nvidia_driver_version 580 or newer, or one for CUDA 12 here"
    ]


def test_everything_that_an_old_driver_rules_out_comes_at_once() -> None:
    given = {"nvidia_driver_version": 570, "torch_runtime_index_url": f"{WHEELS}/cu130", "nccl_cuda": "13.0"}
    assert [text.split(" = ")[0] for text in sentences(**given)] == [
        "cuda_toolkit_versions",
        "nccl_cuda",
        "torch_runtime_index_url",
    ]
    assert all("and nvidia_driver_version is '570'" in text for text in sentences(**given))


@pytest.mark.parametrize(
    ("branch", "build", "refused"),
    [
        ("525", "cu129", False),
        ("470", "cu118", False),
        ("470", "cu121", True),
        ("575", "cu130", True),
        ("620", "cu118", False),
        ("570", "cu140", False),
        ("570", "cpu", False),
    ],
)
def test_a_build_of_torch_needs_its_driver(branch: str, build: str, refused: bool) -> None:
    given: dict[str, Any] = {"cuda_toolkit_versions": [], "nccl_cuda": "11.8", "nvidia_driver_kind": "?"}
    found = sentences(nvidia_driver_version=branch, torch_runtime_version=f"2.16.0+{build}", **given)
    assert [text.split(" = ")[0] for text in found] == (["torch_runtime_version"] if refused else [])


def test_the_wheel_of_pypi_has_a_cuda_too() -> None:
    given: dict[str, Any] = {"nvidia_driver_version": "570", "cuda_toolkit_versions": ["12.8"]}
    pypi = "https://pypi.org/simple"
    assert sentences(torch_runtime_version="2.10.0", torch_runtime_index_url=pypi, **given) == []
    assert sentences(torch_runtime_index_url=pypi, **given) == [
        "torch_runtime_version = '2.13.0': "
        "CUDA 13.0 needs a driver of branch 580 or newer, and nvidia_driver_version is '570'"
    ]
    # What pip on the node is configured for may be anything.
    assert sentences(**given) == []


def test_a_host_without_gpus_gets_no_driver() -> None:
    old = {"nvidia_driver_version": "570", "nvidia_driver_kind": "open"}
    assert len(sentences(**old)) == 2
    for gpus in (0, "0"):
        assert sentences(gpu_cluster_gpus=gpus, **old) == []
        assert sentences(gpu_cluster_gpus=gpus, nvidia_driver_version="nonsense") == []
    for gpus in (8, "8", -1):
        assert len(sentences(gpu_cluster_gpus=gpus, **old)) == 2
    assert sentences(nvidia_driver_state="absent", **old) == []


def test_kernel_modules_that_a_branch_does_not_have() -> None:
    assert sentences(nvidia_driver_version="615", nvidia_driver_kind="proprietary") == []
    assert sentences(nvidia_driver_version="620", nvidia_driver_kind="proprietary") == [
        "nvidia_driver_kind = 'proprietary': there are no proprietary kernel modules from branch 620 on"
    ]
    old = {"cuda_toolkit_versions": ["11.8"], "nvidia_driver_version": "470.57.02"}
    assert sentences(nvidia_driver_kind="proprietary", **old) == []
    assert sentences(**old) == ["nvidia_driver_kind = 'open': there are no open kernel modules before branch 515"]


# --- CUDA toolkits and NCCL -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("cuda_toolkit_versions", ["13.0", "12-8"], "cuda_toolkit_versions[1] = '12-8'"),
        # 13.10 without quotes has lost its last digit before anybody sees it.
        ("cuda_toolkit_versions", [13.1], "cuda_toolkit_versions[0] = 13.1"),
        ("cuda_toolkit_versions", ["13.0", "13.0.2"], "cuda_toolkit_versions[1] = '13.0.2'"),
        ("cuda_toolkit_default", "12.9", "cuda_toolkit_default = '12.9'"),
        ("nccl_cuda", 13.0, "nccl_cuda = 13.0"),
        ("nccl_version", "2.28.9-1+cuda13.0", "nccl_version = '2.28.9-1+cuda13.0'"),
        ("nvidia_driver_version", 580.95, "nvidia_driver_version = 580.95"),
        ("torch_runtime_version", 2.9, "torch_runtime_version = 2.9"),
    ],
)
def test_what_is_not_written_as_a_version(name: str, value: Any, refused: str) -> None:
    assert [text.split(": ")[0] for text in sentences(**{name: value})] == [refused]


def test_exact_versions_of_toolkits() -> None:
    assert sentences(cuda_toolkit_versions=["13.0.2", "12.8"], cuda_toolkit_default="13.0") == []


def test_nccl_follows_the_default_toolkit_unless_it_is_pinned() -> None:
    def nccl_cuda(**given: Any) -> Any:
        return versions.with_defaults(given, DEFAULTS)["nccl_cuda"]

    assert nccl_cuda() == "13"
    assert nccl_cuda(cuda_toolkit_versions=["12.8", "13.0"]) == "12"
    assert nccl_cuda(cuda_toolkit_versions=["12.8", "13.0"], cuda_toolkit_default="13.0") == "13"
    assert nccl_cuda(cuda_toolkit_versions=["12.8"], nccl_cuda="12.9") == "12.9"
    assert nccl_cuda(cuda_toolkit_versions=["12.8.1"]) == "12"
    assert nccl_cuda(cuda_toolkit_versions=[]) == "13"


def test_a_build_of_nccl_that_does_not_exist() -> None:
    assert sentences(nccl_version="2.30.7", nccl_cuda="13.3") == []
    assert sentences(nccl_version="2.30.7", nccl_cuda="12.9.1") == []
    assert sentences(nccl_version="2.30.7", cuda_toolkit_versions=["13.0"]) == []
    assert sentences(nccl_version="2.30.7", nccl_cuda="11") == [
        "nccl_cuda = '11': NCCL 2.30.7 has no build for CUDA 11; it has 12.9, 13.3"
    ]
    assert sentences(nccl_version="2.30.7", nccl_cuda="13.0") == [
        "nccl_cuda = '13.0': NCCL 2.30.7 has no build for CUDA 13.0; it has 12.9, 13.3"
    ]
    # Of 2.28.9 no whole list is known.
    assert sentences(nccl_version="2.28.9", nccl_cuda="12.8") == []
    assert sentences(nccl_version="2.99.0", nccl_cuda="12.8") == []


def test_a_cluster_without_nccl_or_toolkits() -> None:
    assert sentences(nccl_version="", cuda_toolkit_versions=[], nvidia_driver_version="570") == []


# --- the data -------------------------------------------------------------------------------------------------------


def test_every_row_has_a_source() -> None:
    for table in (truth.CUDA_MAJORS, truth.BRANCHES, truth.CHANGES, truth.TORCH, truth.NCCL):
        assert table
        for row in table:
            assert row.sources and all("." in source for source in row.sources), row


def test_the_tables_are_in_order() -> None:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".")]

    assert [row.major for row in truth.CUDA_MAJORS] == sorted({row.major for row in truth.CUDA_MAJORS})
    assert [row.branch for row in truth.CUDA_MAJORS] == sorted({row.branch for row in truth.CUDA_MAJORS})
    for names in ([row.release for row in truth.TORCH], [row.version for row in truth.NCCL]):
        assert names == sorted(set(names), key=numbers)
    for row in truth.TORCH:
        assert numbers(row.oldest_python) < numbers(row.newest_python)
        # What is on pypi.org is one of the builds that the index has.
        assert not row.builds or f"cu{row.cuda.replace('.', '')}" in row.builds.split()
