# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that later roles pin, out of the inventory, so that repositories can be asked for them first. Pure.

What cannot be read is left out: the inventory check and the role itself name it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda import versions as cuda
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.versions import NCCL_CUDA, with_defaults
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import settings as nccl
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.verdict import fits

DRIVER = "nvidia_driver_version"
#: Of the driver's packages, those that tell whether a repository has a version of it.
KERNEL_MODULES = {"open": "kmod-nvidia-open-dkms", "proprietary": "kmod-nvidia-latest-dkms"}
DRIVER_PROGRAMS = "nvidia-driver-cuda"
UPDATE_KERNEL = "nvidia_driver_kernel_update_ok"
#: The variables that are read.
PREFIXES = (
    *("nvidia_driver_", "cuda_toolkit_", "nccl_", "openmpi_", "torch_runtime_", "shared_storage_"),
    *("container_runtime_", "etcd_"),
)
#: What role container_runtime installs, and on members with a GPU.
CONTAINERS, CONTAINERS_OF_GPUS = ("podman", "crun"), ("nvidia-container-toolkit",)
_MORE_THAN_A_NAME = re.compile(r"-\d|[^A-Za-z0-9_.+-]")
#: Lists of packages in whatever version. Those of the role monitoring are optional.
LISTS = ("shared_storage_packages", "torch_runtime_packages", "torch_runtime_horovod_packages")
#: The release of a kernel, with its architecture and, after a plus sign, its flavour (64k, debug).
_KERNEL = re.compile(r"([0-9][0-9A-Za-z._~-]{0,99}?)(?:\.(?:x86_64|aarch64))?(?:\+([0-9a-z]{1,20}))?")


def packages(
    given: Mapping[str, Any],
    defaults: Mapping[str, Any],
    has_gpus: bool,
    skipped: Collection[str],
    facts: Mapping[str, Any] | None = None,
    host: str = "",
    builds_horovod: bool = False,
) -> list[dict[str, str]]:
    """As M(baremetal.gpu_cluster.pinned_packages) takes them. ``skipped``: tags of roles and phases that do not run.

    ``facts``: those of M(baremetal.gpu_cluster.gpu_node_facts) about the node. They come from it, so their shape is
    looked at. ``host``: its name in the inventory, by which a member of etcd is known. ``builds_horovod``: whether this
    is the host that builds a wheel of Horovod, if one is wanted.
    """
    values = {**defaults, **given}
    found: list[dict[str, str]] = []
    if "gpu" not in skipped:
        if has_gpus and "nvidia_driver" not in skipped:
            driver = _driver(values)
            found += [*driver, *(_kernel(values, facts or {}, driver[0]["version"]) if driver else [])]
        if (has_gpus or _agreed(values, "cuda_toolkit_without_gpu")) and "cuda_toolkit" not in skipped:
            toolkits, wrong = cuda.plan({"versions": values.get(cuda.VERSIONS), "default": ""})
            found += [] if wrong else toolkits.as_dict()["packages"]
        if (has_gpus or _agreed(values, "nccl_without_gpu")) and values.get("nccl_version") and "nccl" not in skipped:
            found += nccl.packages_of(values["nccl_version"], with_defaults(given, defaults)[NCCL_CUDA])[0]
    if not {"runtime", "openmpi"} & set(skipped):
        found += _openmpi(values)
    if not {"runtime", "etcd"} & set(skipped):
        found += _etcd(values, host)
    if not {"runtime", "container_runtime"} & set(skipped) and _agreed(values, "container_runtime_enabled"):
        names = (*CONTAINERS, *(CONTAINERS_OF_GPUS if has_gpus else ()))
        found += [{"name": name, "variable": "container_runtime_enabled"} for name in names]
    if "runtime" not in skipped:
        for variable in LISTS:
            found += _listed(values, variable, skipped, builds_horovod)
    # Two lists may name the same package.
    once = {entry["name"]: entry for entry in reversed(found)}
    return [{"name": "", "version": "", "family": "", "variable": "", **entry} for entry in reversed(once.values())]


def _agreed(values: Mapping[str, Any], name: str) -> bool:
    """Whether a switch is on. One of the command line (``-e name=false``) is text."""
    return bool(boolean(values.get(name), strict=False))


def _driver(values: Mapping[str, Any]) -> list[dict[str, str]]:
    version, kind = values.get(DRIVER), values.get("nvidia_driver_kind")
    if (
        values.get("nvidia_driver_state") == "absent"
        or kind not in KERNEL_MODULES
        or not isinstance(version, (str, int))
    ):
        return []
    return [
        {"name": name, "version": str(version), "family": "nvidia-driver", "variable": DRIVER}
        for name in (KERNEL_MODULES[kind], DRIVER_PROGRAMS)
    ]


def _kernel(values: Mapping[str, Any], facts: Mapping[str, Any], pin: str) -> list[dict[str, str]]:
    """What builds the module for the kernel that boots, unless it is built. CentOS Stream drops old kernels.

    Where the kernel may be updated, any version will do.
    """
    kernel, driver = facts.get("kernel"), facts.get("driver")
    if not isinstance(kernel, Mapping) or not isinstance(driver, Mapping):
        return []
    release = str(kernel.get("boots") or kernel.get("running") or "")
    parts = _KERNEL.fullmatch(release)
    modules = driver.get("modules")
    built = str(modules.get(release) or "") if isinstance(modules, Mapping) else ""
    if parts is None or fits(pin, built):
        return []
    flavour = f"{parts[2]}-" if parts[2] else ""
    version = "" if _agreed(values, UPDATE_KERNEL) else parts[1]
    return [{"name": f"kernel-{flavour}devel", "version": version, "variable": "the kernel that boots next"}]


def _listed(
    values: Mapping[str, Any], variable: str, skipped: Collection[str], builds_horovod: bool
) -> list[dict[str, str]]:
    unused = {
        "shared_storage_packages": not values.get("shared_storage_mounts"),
        "torch_runtime_packages": values.get("torch_runtime_adopt"),
        "torch_runtime_horovod_packages": not (builds_horovod and _agreed(values, "torch_runtime_horovod")),
    }
    names = values.get(variable)
    role = next(one for one in ("shared_storage", "torch_runtime") if variable.startswith(one))
    if unused.get(variable) or role in skipped or not isinstance(names, list):
        return []
    # dnf gets the packages of the interpreter and of the build as they stand: a version in one is not asked for here.
    as_they_stand = role == "torch_runtime"
    plain = [name for name in names if isinstance(name, str) and not (as_they_stand and _MORE_THAN_A_NAME.search(name))]
    return [{"name": name, "variable": variable} for name in dict.fromkeys(plain)]


def _openmpi(values: Mapping[str, Any]) -> list[dict[str, str]]:
    names, version = values.get("openmpi_packages"), values.get("openmpi_version")
    if not isinstance(names, list) or not isinstance(version, (str, type(None))):
        return []
    variable = "openmpi_version" if version else "openmpi_packages"
    family = "openmpi" if version else ""
    return [
        {"name": name, "version": version or "", "family": family, "variable": variable}
        for name in names
        if isinstance(name, str)
    ]


def _etcd(values: Mapping[str, Any], host: str) -> list[dict[str, str]]:
    """Only its members install it."""
    name, version, members = (values.get(f"etcd_{what}") for what in ("package", "version", "members"))
    if not isinstance(members, list) or host not in members or not isinstance(name, str) or not name:
        return []
    if not isinstance(version, (str, type(None))):
        return []
    return [{"name": name, "version": version or "", "variable": "etcd_version" if version else "etcd_package"}]
