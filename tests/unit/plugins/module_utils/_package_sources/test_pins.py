# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that later roles pin, out of the inventory."""

from __future__ import annotations

from typing import Any

import pytest
import role_readmes

from ansible_collections.baremetal.gpu_cluster.plugins.filter.package_pins import FilterModule
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import pins

DEFAULTS = {
    name: option.get("default")
    for role in role_readmes.role_folders()
    for name, option in role_readmes.read_options(role).items()
}


#: Without what is installed in any version.
NO_LISTS: dict[str, Any] = {name: [] for name in pins.LISTS}


def pinned(*skipped: str, has_gpus: bool = True, **given: Any) -> dict[str, tuple[str, str]]:
    """Version and variable by package."""
    found = pins.packages({**NO_LISTS, **given}, DEFAULTS, has_gpus, skipped)
    assert all(set(entry) == {"name", "version", "family", "variable"} for entry in found)
    return {entry["name"]: (entry["version"], entry["variable"]) for entry in found}


def test_a_host_with_gpus_gets_everything_by_default() -> None:
    assert pinned() == {
        "kmod-nvidia-open-dkms": ("580", "nvidia_driver_version"),
        "nvidia-driver-cuda": ("580", "nvidia_driver_version"),
        "cuda-toolkit-13-0": ("13.0", "cuda_toolkit_versions"),
        "libnccl": ("2.28.9-*+cuda13.*", "nccl_version with nccl_cuda"),
        "libnccl-devel": ("2.28.9-*+cuda13.*", "nccl_version with nccl_cuda"),
        "openmpi": ("", "openmpi_packages"),
    }


@pytest.mark.parametrize(
    ("skipped", "has_gpus", "given", "names"),
    [
        ((), False, {}, {"openmpi"}),
        (("gpu", "runtime"), True, {}, set()),
        (("nvidia_driver", "cuda_toolkit", "openmpi"), True, {}, {"libnccl", "libnccl-devel"}),
        ((), False, {"nccl_without_gpu": True, "openmpi_packages": []}, {"libnccl", "libnccl-devel"}),
        ((), False, {"cuda_toolkit_without_gpu": True, "openmpi_packages": []}, {"cuda-toolkit-13-0"}),
        (("openmpi",), True, {"nvidia_driver_state": "absent", "cuda_toolkit_versions": [], "nccl_version": ""}, set()),
        # What cannot be read has its own message elsewhere.
        (
            (),
            True,
            {
                "nvidia_driver_kind": 7,
                "nvidia_driver_version": ["580"],
                "cuda_toolkit_versions": "13.0",
                "nccl_version": 2.28,
                "openmpi_packages": "openmpi",
            },
            set(),
        ),
    ],
)
def test_only_what_is_going_to_be_installed(
    skipped: tuple[str, ...], has_gpus: bool, given: dict[str, Any], names: set[str]
) -> None:
    assert set(pinned(*skipped, has_gpus=has_gpus, **given)) == names


def test_what_containers_need_where_they_are_wanted() -> None:
    variable = ("", "container_runtime_enabled")
    wanted = {"container_runtime_enabled": True, "openmpi_packages": []}
    without_gpu = pinned(has_gpus=False, **wanted)
    assert without_gpu == {"podman": variable, "crun": variable}
    assert pinned("gpu", **wanted) == {**without_gpu, "nvidia-container-toolkit": variable}
    assert pinned("container_runtime", has_gpus=False, **wanted) == pinned("runtime", has_gpus=False, **wanted) == {}


def test_versions_of_the_inventory() -> None:
    found = pinned(
        nvidia_driver_version=575,
        nvidia_driver_kind="proprietary",
        cuda_toolkit_versions=["12.9"],
        openmpi_version="4.1.1",
    )
    assert found["kmod-nvidia-latest-dkms"] == ("575", "nvidia_driver_version")
    assert found["libnccl"] == ("2.28.9-*+cuda12.*", "nccl_version with nccl_cuda"), "NCCL follows the toolkit"
    assert found["openmpi"] == ("4.1.1", "openmpi_version")


def test_packages_in_any_version_are_asked_for_too() -> None:
    lists = {
        "torch_runtime_packages": ["python3.13", "python3.13-pip-24.2", "@python"],
        "shared_storage_packages": ["lustre-client"],
        "openmpi_packages": [],
    }
    mounts = {"shared_storage_mounts": [{"path": "/data", "source": "mgs:/fs", "type": "lustre"}]}

    def asked(*skipped: str, has_gpus: bool = False, **more: Any) -> dict[str, str]:
        return {
            name: why for name, (_version, why) in pinned("gpu", *skipped, has_gpus=has_gpus, **lists, **more).items()
        }

    assert asked(**mounts, has_gpus=True) == {
        "python3.13": "torch_runtime_packages",
        "lustre-client": "shared_storage_packages",
    }
    assert set(asked()) == {"python3.13"}
    assert set(asked(torch_runtime_adopt="/opt/env")) == set()
    assert asked("runtime", **mounts) == {}


EL9, LARGE = "5.14.0-503.el9", "6.12.0-55.el10_0"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"kernel": {"boots": f"{EL9}.x86_64"}, "driver": {"modules": {}}}, ("kernel-devel", EL9)),
        ({"kernel": {"boots": "", "running": f"{EL9}.x86_64"}, "driver": {}}, ("kernel-devel", EL9)),
        ({"kernel": {"boots": f"{LARGE}.aarch64+64k"}, "driver": {"modules": {}}}, ("kernel-64k-devel", LARGE)),
        (
            {"kernel": {"boots": f"{EL9}.x86_64"}, "driver": {"modules": {f"{EL9}.x86_64": "570.1"}}},
            ("kernel-devel", EL9),
        ),
        # The module is built: its kernel may have left the repositories.
        ({"kernel": {"boots": f"{EL9}.x86_64"}, "driver": {"modules": {f"{EL9}.x86_64": "580.95.05"}}}, None),
        # What a node says is not believed.
        ({"kernel": {"boots": "5; reboot"}, "driver": {"modules": {}}}, None),
        ({"kernel": {"boots": ["5"]}, "driver": {"modules": 7}}, None),
        ({"kernel": "5", "driver": None}, None),
        ({}, None),
    ],
)
def test_what_builds_the_module_for_the_kernel(facts: dict[str, Any], expected: tuple[str, str] | None) -> None:
    found = pins.packages(NO_LISTS, DEFAULTS, True, [], facts)
    kernels = [(entry["name"], entry["version"]) for entry in found if entry["name"].startswith("kernel-")]
    assert kernels == ([expected] if expected else [])
    without = pins.packages(NO_LISTS, DEFAULTS, False, [], facts)
    assert not [entry for entry in without if entry["name"].startswith("kernel-")]


@pytest.mark.parametrize(("value", "version"), [(True, ""), ("true", ""), (False, EL9), ("false", EL9)])
def test_where_the_kernel_may_be_updated_any_version_will_do(value: object, version: str) -> None:
    """A value of the command line is text."""
    facts = {"kernel": {"boots": f"{EL9}.x86_64"}, "driver": {"modules": {}}}
    given = {**NO_LISTS, "nvidia_driver_kernel_update_ok": value}
    (found,) = (one for one in pins.packages(given, DEFAULTS, True, [], facts) if one["name"].startswith("kernel-"))
    assert (found["name"], found["version"]) == ("kernel-devel", version)


@pytest.mark.parametrize("value", ["false", "no", False, None])
def test_a_switch_that_is_off_asks_for_nothing(value: object) -> None:
    given = {**NO_LISTS, "cuda_toolkit_without_gpu": value, "nccl_without_gpu": value, "nccl_version": "2.27.7"}
    assert {entry["variable"] for entry in pins.packages(given, DEFAULTS, False, [], {})} <= {"openmpi_packages"}


def test_the_filter_reads_the_variables_of_one_host() -> None:
    filters = FilterModule().filters()
    hostvars = {"n1": {"openmpi_version": "4.1.1", "other": 1, **NO_LISTS}, "n2": {}}
    (found,) = filters["package_pins"](hostvars, "n1", False)
    assert found == {"name": "openmpi", "version": "4.1.1", "family": "openmpi", "variable": "openmpi_version"}


def test_the_filter_reads_the_facts_of_that_host() -> None:
    facts = {"gpu_node": {"kernel": {"boots": f"{EL9}.x86_64"}, "driver": {"modules": {}}}}
    hostvars = {"n1": {"ansible_facts": facts, **NO_LISTS}, "n2": dict(NO_LISTS)}
    names = {
        host: {entry["name"] for entry in FilterModule().filters()["package_pins"](hostvars, host, True)}
        for host in hostvars
    }
    assert names["n1"] - names["n2"] == {"kernel-devel"}
