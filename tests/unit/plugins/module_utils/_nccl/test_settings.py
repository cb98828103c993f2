# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's packages and settings."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.filter.nccl_plan import nccl_plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import settings

WISHES: dict[str, Any] = {"version": "2.28.9", "cuda": "13.0"}


def as_nccl_reads(text: str) -> dict[str, str]:
    """The steps of setEnvFile in src/misc/param.cc: the first line with a name counts."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, sign, value = line.partition("=")
        if not line.startswith("#") and sign:
            found.setdefault(name[:1023], value[:1023])
    return found


def test_the_build_for_one_cuda() -> None:
    pin = {"version": "2.28.9-*+cuda13.0", "family": "nccl", "variable": "nccl_version with nccl_cuda"}
    packages = [{"name": "libnccl", **pin}, {"name": "libnccl-devel", **pin}]
    assert nccl_plan(WISHES)["packages"] == packages
    assert nccl_plan({**WISHES, "cuda": "13.0.2"})["packages"] == packages
    # 2.28.9 has a build for 12.9 and none for 12.8.
    assert [one["version"] for one in nccl_plan({**WISHES, "cuda": "12"})["packages"]] == ["2.28.9-*+cuda12.*"] * 2
    assert [one["version"] for one in nccl_plan({**WISHES, "version": ""})["packages"]] == ["", ""]


def test_comfortable_variables_and_further_ones() -> None:
    found = nccl_plan(
        {
            **WISHES,
            "debug": "WARN",
            "socket_interfaces": ["fab0", "fab1"],
            "ib_hcas": ["mlx5_0", "mlx5_1:1", "mlx5_2::0:1"],
            "settings": {"NCCL_SOCKET_NTHREADS": 4, "NCCL_NSOCKS_PERTHREAD": "16", "NCCL_ALGO": "Ring # x=y"},
        }
    )["settings"]
    assert found == {
        "NCCL_DEBUG": "WARN",
        "NCCL_SOCKET_IFNAME": "=fab0,fab1",
        "NCCL_IB_HCA": "=mlx5_0,mlx5_1:1,mlx5_2::0:1",
        "NCCL_ALGO": "Ring # x=y",
        "NCCL_NSOCKS_PERTHREAD": "16",
        "NCCL_SOCKET_NTHREADS": "4",
    }
    assert as_nccl_reads(settings.render(found)) == found
    assert "\nNCCL_SOCKET_IFNAME==fab0,fab1\n" in settings.render(found)


def test_nothing_is_chosen_for_nccl_unless_asked() -> None:
    assert nccl_plan({**WISHES, "socket_interfaces": [], "ib_hcas": [], "ib_disabled": False})["settings"] == {}
    assert settings.render({}) == ""
    assert nccl_plan({**WISHES, "ib_disabled": True})["settings"] == {"NCCL_IB_DISABLE": "1"}


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"version": "2.28"}, "nccl_version = '2.28': no version of NCCL."),
        ({"version": 2.28}, "nccl_version = 2.28: no version of NCCL."),
        ({"cuda": 13.0}, "nccl_cuda = 13.0: no version of CUDA."),
        ({"debug": "DEBUG"}, "nccl_debug = 'DEBUG': no level."),
        ({"socket_interfaces": "fab0"}, "nccl_socket_interfaces = 'fab0': a list is expected."),
        ({"socket_interfaces": ["=fab0"]}, "nccl_socket_interfaces[0] = '=fab0': no name of an interface"),
        ({"socket_interfaces": ["f"]}, "nccl_socket_interfaces[0] = 'f': no name of an interface"),
        ({"socket_interfaces": ["fab0", "fab0"]}, "nccl_socket_interfaces[1] = 'fab0': it is in the list twice."),
        ({"ib_hcas": ["mlx5_0,mlx5_1"]}, "nccl_ib_hcas[0] = 'mlx5_0,mlx5_1': no name of an RDMA device."),
        ({"ib_hcas": [f"mlx5_{number}" for number in range(33)]}, "NCCL takes up to 32 devices."),
        ({"ib_hcas": ["mlx5_0"], "ib_disabled": True}, "nccl_ib_disabled turns all of them off."),
        ({"settings": ["NCCL_ALGO=Ring"]}, "nccl_settings = ['NCCL_ALGO=Ring']: names with values are expected."),
        ({"settings": {"UCX_TLS": "tcp"}}, "nccl_settings[UCX_TLS] = 'tcp': no name of an NCCL setting"),
        ({"settings": {"NCCL_ALGO ": "Ring"}}, "no name of an NCCL setting"),
        (
            {"settings": {"NCCL_SOCKET_IFNAME": "=a1"}},
            "one has a variable of its own. Fix: use nccl_socket_interfaces.",
        ),
        ({"settings": {"NCCL_IB_HCA": "=a1"}}, "Fix: use nccl_ib_hcas."),
        ({"settings": {"NCCL_ALGO": True}}, "nccl_settings[NCCL_ALGO] = true: a value is a text or a whole number."),
        ({"settings": {"NCCL_ALGO": ""}}, "an empty value"),
        ({"settings": {"NCCL_ALGO": " Ring"}}, "blanks at an end of a value belong to it, for NCCL."),
        ({"settings": {"NCCL_ALGO": "Ring\nNCCL_X=1"}}, "a value has one line."),
        ({"settings": {"NCCL_ALGO": "x" * 1024}}, "NCCL cuts names and values after 1023 bytes."),
        (
            {"settings": {"NCCL_SOCKET_NSOCKS_PERTHREAD": 4}},
            "NCCL knows no such name and would ignore it. Fix: write NCCL_NSOCKS_PERTHREAD.",
        ),
        ({"settings": {"NCCL_ASYNC_ERROR_HANDLING": 1}}, "Fix: set TORCH_NCCL_ASYNC_ERROR_HANDLING for the jobs."),
        ({"settings": {"NCCL_PSK": "secret"}}, "everybody on the node can read this file."),
        (
            {"settings": {"NCCL_COMM_ID": "192.0.2.1:5000"}},
            "it belongs to one job, and all jobs of the node would meet",
        ),
        (
            {"settings": {"NCCL_SOCKET_NTHREADS": 17}},
            "[NCCL_SOCKET_NTHREADS] = 17: it must be a whole number from 1 to 16.",
        ),
        ({"settings": {"NCCL_NSOCKS_PERTHREAD": "4x"}}, "it must be a whole number from 1 to 64."),
        (
            {"settings": {"NCCL_SOCKET_NTHREADS": 8, "NCCL_NSOCKS_PERTHREAD": 9}},
            "NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD = 72, and NCCL allows up to 64.",
        ),
    ],
)
def test_what_nccl_would_misread_is_refused(params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AnsibleFilterError) as error:
        nccl_plan({**WISHES, **params})
    lines = str(error.value).splitlines()
    assert lines[0] == "Nothing was changed."
    assert len(lines) == 2, lines
    assert sentence in lines[1]


def test_everything_wrong_is_named_at_once() -> None:
    with pytest.raises(AnsibleFilterError) as error:
        nccl_plan({"version": "2", "cuda": "", "debug": "x", "settings": {"A": "1", "NCCL_PSK": ""}})
    assert len(str(error.value).splitlines()) == 1 + 6


def test_devices_that_the_node_lacks_are_named_with_those_that_it_has() -> None:
    wanted = {"NCCL_SOCKET_IFNAME": "=fab0,fab7", "NCCL_IB_HCA": "=mlx5_0:1,mlx5_9:1"}
    found = [one.sentence() for one in settings.absent(wanted, ["lo", "fab0"], ["mlx5_0"])]
    assert found[0].startswith(
        "nccl_socket_interfaces = 'fab7': this node has no such network interface, it has fab0, lo."
    )
    assert found[1].startswith("nccl_ib_hcas = 'mlx5_9': this node has no such RDMA device, it has mlx5_0.")
    assert len(found) == 2
    assert settings.absent({"NCCL_SOCKET_IFNAME": "^docker"}, ["lo"], []) == []


def test_a_fixed_gid_index_is_only_a_warning() -> None:
    found = nccl_plan({**WISHES, "settings": {"NCCL_IB_GID_INDEX": 3}})["settings"]
    assert "since 2.21 NCCL finds the index itself" in settings.warnings(found)[0]
    assert settings.warnings({"NCCL_DEBUG": "WARN"}) == []
