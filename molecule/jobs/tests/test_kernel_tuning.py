# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters and limits on one node: refused, set, read back, overridden by others, put back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_cluster import Cluster, Ended
from lab_network import message_of, recap

SYSCTL = "/etc/sysctl.d/90-gpu-cluster.conf"
#: What the tests put onto the node, as the site or a distribution would.
FOREIGN = (
    "/etc/sysctl.d/99-site.conf",
    "/usr/lib/sysctl.d/99-site.conf",
    "/etc/security/limits.d/99-site.conf",
    "/etc/systemd/system.conf.d/99-site.conf",
    "/etc/ssh/sshd_config.d/00-site.conf",
    "/etc/systemd/system/multi-user.target.wants/tuned.service",
    "/etc/tuned",
    "/home/train/.bashrc",
)
KEYS = (
    "net.core.somaxconn net.ipv4.tcp_rmem net.ipv4.tcp_mtu_probing net.ipv4.tcp_congestion_control "
    "net.ipv4.tcp_orphan_retries net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports"
)
STATE = (
    f"sha256sum {SYSCTL} /etc/security/limits.d/* /etc/systemd/*.conf.d/90-gpu-cluster.conf 2>/dev/null; "
    f"sysctl {KEYS}; systemctl show -p DefaultLimitNOFILE -p DefaultLimitNOFILESoft -p DefaultLimitMEMLOCK; "
    "busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager RemoveIPC; "
    "ls /run | grep gpu-cluster-limits; true"
)
#: Within what a container may have, and not what the lab's inventory wants.
LIMITS = [
    {"item": "memlock", "value": "3072", "reason": "registered memory"},
    {"item": "nofile", "value": "7168", "reason": "many peers"},
]
LOW: dict[str, Any] = {"kernel_tuning_limits": LIMITS, "kernel_tuning_login_user": "train"}
MORE = {"key": "net.core.somaxconn", "value": "8192"}


@pytest.fixture(name="node", scope="module")
def fixture_node(cluster: Cluster) -> Iterator[str]:
    """One node, in the end as site.yml leaves it."""
    name = list(cluster.hosts)[0]  # noqa: RUF015  # ansible-test takes next() for a generator that ends badly
    orphans = cluster.shell(name, "sysctl -n net.ipv4.tcp_orphan_retries").strip()
    yield name
    clean(cluster, name)
    cluster.shell(name, f"sysctl -q net.ipv4.tcp_orphan_retries={orphans}")
    assert tune(cluster, name).code == 0
    again = tune(cluster, name)
    assert recap(again, name)["changed"] == 0, again.text


@pytest.fixture(autouse=True)
def fixture_nothing_foreign(cluster: Cluster, node: str) -> Iterator[None]:
    """No file of a test outlives it."""
    yield
    clean(cluster, node)


def clean(cluster: Cluster, node: str) -> None:
    cluster.shell(node, f"rm -rf {' '.join(FOREIGN)}")


def tune(cluster: Cluster, node: str, *arguments: str, **variables: Any) -> Ended:
    """The shipped plays with the site's variables, also with those that preflight would refuse."""
    extra = ["-e", json.dumps(variables)] if variables else []
    argv = cluster.command(
        cluster.without_guard("base"), "--tags", "kernel_tuning", "--limit", node, *extra, *arguments
    )
    return cluster.run(argv, variables={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})


def module(cluster: Cluster, node: str, name: str, **options: Any) -> tuple[int, dict[str, Any]]:
    """One module alone, as somebody without the roles calls it: exit code and result."""
    full = f"baremetal.gpu_cluster.{name}"
    argv = ["ansible", node, "-i", cluster.inventory, "--become", "-m", full, "-a", json.dumps(options)]
    ended = cluster.run(argv, variables={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})
    result = ended.text.index("{", ended.text.index(f"{node} | "))
    return ended.code, dict(json.JSONDecoder().raw_decode(ended.text, result)[0])


def write(cluster: Cluster, node: str, path: str, text: str) -> None:
    folder = str(Path(path).parent)
    cluster.lab("exec", node, "sh", "-c", 'mkdir -p "$1" && printf "%s" "$2" > "$3"', "sh", folder, text, path)


def squashed(text: str) -> str:
    """Without blanks and line ends: warnings are wrapped to the width of a terminal."""
    return "".join(text.split())


def value(cluster: Cluster, node: str, key: str) -> str:
    return " ".join(cluster.shell(node, f"sysctl -n {key}").split())


# ---- bad input ----


def test_wrong_values_are_refused_all_at_once_before_anything_changes(cluster: Cluster, node: str) -> None:
    available = ", ".join(value(cluster, node, "net.ipv4.tcp_available_congestion_control").split())
    before = cluster.shell(node, STATE)
    ended = tune(
        cluster,
        node,
        kernel_tuning_rtt_ms=500,
        kernel_tuning_ephemeral_range={"first": 60999, "last": 32768},
        kernel_tuning_reserved_ports=["50000-50010", "5001O"],
        kernel_tuning_extra=[
            {"key": "net.ipv4.tcp_congestion_control", "value": "brr"},
            {"key": "net.ipv4.tcp_wmem", "value": "4096 33554432 16777216"},
            {"key": "net.ipv4.tcp_rmen", "value": "4096 131072 16777216"},
            MORE,
        ],
    )
    lines = message_of(ended, node).splitlines()
    assert lines[0] == "Refused, nothing was changed:" and len(lines) == 7, ended.text
    for line, words in zip(
        lines[1:],
        (
            ["kernel_tuning_rtt_ms = 500", "2147483647"],
            ["kernel_tuning_extra[1] (net.ipv4.tcp_wmem)", "min <= default <= max"],
            ["kernel_tuning_ephemeral_range = '60999 32768'", "first port is above the last one", "write 32768 60999"],
            ["kernel_tuning_reserved_ports[1] = '5001O'"],
            ["kernel_tuning_extra[0] (net.ipv4.tcp_congestion_control) = 'brr'", f"it has {available}, "],
            ["kernel_tuning_extra[2] (net.ipv4.tcp_rmen)", "write net.ipv4.tcp_rmem"],
        ),
        strict=True,
    ):
        for word in words:
            assert word in line
    assert cluster.shell(node, STATE) == before


def test_keys_that_a_container_cannot_set_are_a_choice(cluster: Cluster, node: str) -> None:
    before = cluster.shell(node, STATE)
    ended = tune(cluster, node, kernel_tuning_unsettable="fail", kernel_tuning_extra=[MORE])
    message = message_of(ended, node)
    assert "(net.core.wmem_max) = '33554432': cannot be set here" in message and "kernel_tuning_unsettable" in message
    assert cluster.shell(node, STATE) == before


def test_a_value_that_the_kernel_refuses_puts_all_others_back(cluster: Cluster, node: str) -> None:
    """The kernel keeps this one in 8 bits, and takes the one before it."""
    before = cluster.shell(node, STATE)
    wrong = {"key": "net.ipv4.tcp_orphan_retries", "value": "300"}
    code, result = module(cluster, node, "kernel_parameters", parameters=[MORE, wrong])
    assert code != 0 and "everything was put back" in result["msg"] and "tcp_orphan_retries" in result["msg"], result
    assert cluster.shell(node, STATE) == before


# ---- the last word at boot ----


def boot(cluster: Cluster, node: str, key: str) -> str:
    """The value of a key of the network after systemd has read its files, as it does at boot."""
    path = key.replace(".", "/")
    programs = "/usr/lib/systemd/systemd-sysctl /lib/systemd/systemd-sysctl"
    cluster.shell(node, f"$(ls {programs} 2>/dev/null | head -1) --prefix=/{path}")
    return value(cluster, node, key)


def test_a_file_sorted_later_is_named_before_anything_changes(cluster: Cluster, node: str) -> None:
    before = cluster.shell(node, STATE)
    write(cluster, node, "/etc/sysctl.d/99-site.conf", "# site\nnet/ipv4/tcp_mtu_probing=0\n")
    ended = tune(cluster, node, kernel_tuning_extra=[MORE])
    message = message_of(ended, node)
    assert f"/etc/sysctl.d/99-site.conf is read after {SYSCTL} and sets it to '0' at the next boot" in message
    assert message.splitlines()[1].startswith("  | net.ipv4.tcp_mtu_probing = '1': ") and len(message.splitlines()) == 2
    assert cluster.shell(node, STATE) == before
    assert boot(cluster, node, "net.ipv4.tcp_mtu_probing") == "0", "the sentence was wrong"
    reported = tune(cluster, node, kernel_tuning_overridden="report")
    assert reported.code == 0 and value(cluster, node, "net.ipv4.tcp_mtu_probing") == "1", reported.text
    assert squashed("99-site.conf is read after") in squashed(reported.text)


def set_parameters(cluster: Cluster, node: str) -> tuple[int, dict[str, Any]]:
    """The module alone, with two keys."""
    probing = {"key": "net.ipv4.tcp_mtu_probing", "value": "1"}
    buffers = {"key": "net.ipv4.tcp_rmem", "value": "4096 131072 16777216"}
    return module(cluster, node, "kernel_parameters", parameters=[probing, buffers])


def test_a_masked_file_and_a_pattern_win_nothing(cluster: Cluster, node: str) -> None:
    assert set_parameters(cluster, node)[0] == 0
    write(cluster, node, "/usr/lib/sysctl.d/99-site.conf", "net.ipv4.tcp_mtu_probing = 0\n")
    code, named = set_parameters(cluster, node)
    assert code != 0 and "/usr/lib/sysctl.d/99-site.conf is read after" in named["msg"], named
    cluster.shell(node, "ln -s /dev/null /etc/sysctl.d/99-site.conf")
    code, masked = set_parameters(cluster, node)
    assert code == 0 and not masked["changed"], masked
    assert boot(cluster, node, "net.ipv4.tcp_mtu_probing") == "1", "the mask does not work as the module thinks"
    cluster.shell(node, "rm /etc/sysctl.d/99-site.conf")
    write(cluster, node, "/etc/sysctl.d/99-site.conf", "net.ipv4.tcp_mtu_probin? = 0\n")
    code, pattern = set_parameters(cluster, node)
    assert code == 0 and not pattern["changed"], pattern
    assert boot(cluster, node, "net.ipv4.tcp_mtu_probing") == "1", "the pattern does not work as the module thinks"


def test_a_profile_of_tuned_that_wins_is_named(cluster: Cluster, node: str) -> None:
    """Only its files: tuned itself is not in the lab."""
    write(cluster, node, "/etc/tuned/active_profile", "site\n")
    write(cluster, node, "/etc/tuned/base/tuned.conf", "[sysctl]\nnet.ipv4.tcp_rmem=4096 87380 6291456\n")
    write(cluster, node, "/etc/tuned/site/tuned.conf", "[main]\ninclude=base\n[sysctl]\nnet.core.somaxconn=>2048\n")
    write(cluster, node, "/etc/systemd/system/multi-user.target.wants/tuned.service", "")
    assert set_parameters(cluster, node)[0] == 0, "by default tuned applies our file after its profile"
    write(cluster, node, "/etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n")
    code, result = set_parameters(cluster, node)
    assert code != 0, result
    lines = result["msg"].splitlines()
    assert len(lines) == 2, result
    assert lines[1].startswith("  | net.ipv4.tcp_rmem = '4096 131072 16777216': /etc/tuned/base/tuned.conf sets it to ")
    assert "'4096 87380 6291456' whenever tuned starts: profile site" in lines[1]


# ---- set, and set again ----


def test_check_mode_tells_what_a_run_does_and_a_second_run_does_nothing(cluster: Cluster, node: str) -> None:
    wanted = {**LOW, "kernel_tuning_extra": [MORE], "kernel_tuning_reserved_ports": ["50006-50010", "50000-50005"]}
    before = cluster.shell(node, STATE)
    dry = tune(cluster, node, "--check", "--diff", **wanted)
    assert dry.code == 0 and recap(dry, node)["changed"] == 2, dry.text
    for line in ("+net.core.somaxconn = 8192", "+net.ipv4.ip_local_reserved_ports = 50000-50010", "+* - nofile 7168"):
        assert line in dry.text
    assert cluster.shell(node, STATE) == before
    real = tune(cluster, node, **wanted)
    assert real.code == 0 and recap(real, node)["changed"] == 2, real.text
    assert value(cluster, node, "net.core.somaxconn") == "8192"
    assert value(cluster, node, "net.ipv4.ip_local_reserved_ports") == "50000-50010"
    again = tune(cluster, node, **wanted)
    assert again.code == 0 and recap(again, node)["changed"] == 0, again.text
    cleared = tune(cluster, node, **{**LOW, "kernel_tuning_reserved_ports": []})
    assert cleared.code == 0 and value(cluster, node, "net.ipv4.ip_local_reserved_ports") == "", cleared.text
    assert value(cluster, node, "net.core.somaxconn") == "16384"


def test_neighbour_tables_belong_to_the_machine_and_are_reported(cluster: Cluster, node: str) -> None:
    own = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
    before = own.read_text()
    ended = tune(cluster, node, kernel_tuning_neighbours=1000)
    assert ended.code == 0, ended.text
    assert "net.ipv6.neigh.default.gc_thresh3 = 8192" in cluster.shell(node, f"cat {SYSCTL}")
    assert squashed("net.ipv6.neigh.default.gc_thresh3 cannot be set here") in squashed(ended.text)
    assert own.read_text() == before


# ---- limits ----


def limits_of(text: str) -> dict[str, list[str]]:
    """Soft and hard out of /proc/self/limits."""
    names = {"Max open files": "nofile", "Max locked memory": "memlock"}
    return {
        short: line[len(name) :].split()[:2]
        for line in text.splitlines()
        for name, short in names.items()
        if line.startswith(name)
    }


WANTED = {"memlock": ["3145728", "3145728"], "nofile": ["7168", "7168"]}


def set_limits(cluster: Cluster, node: str, **options: Any) -> tuple[int, dict[str, Any]]:
    """The module alone, with the limits of these tests and a session of the user without rights."""
    return module(cluster, node, "resource_limits", **{"limits": LIMITS, "login_user": "train", **options})


def test_limits_are_in_force_for_logins_and_services(cluster: Cluster, node: str) -> None:
    code, result = set_limits(cluster, node)
    assert code == 0 and result["session"] == WANTED and result["service"] == WANTED, result
    # Without the module's help: the real sshd, and a service.
    assert limits_of(cluster.lab("ssh", node, "cat /proc/self/limits")) == WANTED
    service = "systemd-run --quiet --pipe --wait --collect cat /proc/self/limits"
    assert limits_of(cluster.shell(node, service)) == WANTED
    assert "b false" in cluster.shell(node, STATE), "logind still removes shared memory"


def test_a_later_file_of_limits_is_named_with_its_line(cluster: Cluster, node: str) -> None:
    assert set_limits(cluster, node)[0] == 0
    before = cluster.shell(node, STATE)
    path = "/etc/security/limits.d/99-site.conf"
    write(cluster, node, path, "# site\ntrain soft nofile 1000\n")
    code, result = set_limits(cluster, node)
    named = f"kernel_tuning_limits[1] (nofile) = '7168': {path} sets it to '1000' for train, in line 2, and wins over "
    assert code != 0 and named in result["msg"], result
    code, result = set_limits(cluster, node, overridden="report")
    assert code == 0 and not result["changed"] and result["session"]["nofile"] == ["1000", "7168"], result
    measured = f"an ssh session of train has 1000 (soft) and 7168 (hard); {path} sets it"
    assert measured in result["reported"][0], result
    cluster.shell(node, f"rm {path}")
    assert cluster.shell(node, STATE) == before


def test_a_later_drop_in_of_systemd_is_named(cluster: Cluster, node: str) -> None:
    path = "/etc/systemd/system.conf.d/99-site.conf"
    write(cluster, node, path, "[Manager]\nDefaultLimitNOFILE=1000:7168\n")
    code, result = set_limits(cluster, node)
    assert code != 0 and f"{path} is read after" in result["msg"] and "DefaultLimitNOFILE=1000:7168" in result["msg"]


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("/home/train/.bashrc", "ulimit -n 512\n", "start-up files of the shell"),
        pytest.param("/etc/ssh/sshd_config.d/00-site.conf", "UsePAM no\n", "UsePAM no", marks=pytest.mark.long),
        pytest.param(
            "/etc/pam.d/sshd",
            "@include common-auth\n@include common-account\n@include common-session\n",
            "pam_limits.so",
            marks=pytest.mark.long,
        ),
    ],
)
def test_limits_that_do_not_reach_the_session_are_taken_back(
    cluster: Cluster, node: str, path: str, text: str, reason: str
) -> None:
    """The files are right, and only a real session shows that they have no effect."""
    assert set_limits(cluster, node)[0] == 0
    before = cluster.shell(node, STATE)
    cluster.shell(node, "cp /etc/pam.d/sshd /run/sshd.kept")
    try:
        write(cluster, node, path, text)
        code, result = set_limits(cluster, node, limits=[LIMITS[0], {"item": "nofile", "value": "4096"}])
        assert code != 0 and result["msg"].startswith("Failed, everything was put back:"), result
        assert "an ssh session of train" in result["msg"] and reason in result["msg"], result
        assert cluster.shell(node, STATE) == before
        code, result = set_limits(cluster, node)
        assert code != 0 and result["msg"].startswith("All files are as wanted, but:"), result
        assert reason in result["msg"], result
    finally:
        cluster.shell(node, "mv /run/sshd.kept /etc/pam.d/sshd")


def test_limits_out_of_reach_are_refused_and_never_written(cluster: Cluster, node: str) -> None:
    """In the files of PAM they could keep everybody from logging in."""
    wanted = [{"item": "memlock", "value": "unlimited"}, LIMITS[1]]
    code, result = set_limits(cluster, node, limits=wanted)
    assert code != 0 and "(memlock) = unlimited: this node cannot go above" in result["msg"], result
    code, result = set_limits(cluster, node, limits=wanted, unsettable="report")
    assert code == 0 and len(result["unsettable"]) == 1, result
    assert "memlock" not in cluster.shell(node, "cat /etc/security/limits.d/90-gpu-cluster.conf")


def test_an_unknown_user_is_named(cluster: Cluster, node: str) -> None:
    code, result = set_limits(cluster, node, login_user="trian")
    assert code != 0 and "kernel_tuning_login_user = 'trian': there is no such user" in result["msg"], result


def test_nothing_wanted_takes_everything_away(cluster: Cluster, node: str) -> None:
    assert set_limits(cluster, node)[0] == 0
    code, result = set_limits(cluster, node, limits=[], keep_ipc=False)
    assert code == 0 and result["changed"], result
    state = cluster.shell(node, STATE)
    assert "90-gpu-cluster.conf" not in state.replace(SYSCTL, "") and "b true" in state
    assert "DefaultLimitNOFILE=7168" not in state
    code, result = set_limits(cluster, node, limits=[], keep_ipc=False)
    assert code == 0 and not result["changed"], result
