# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has the last word about a kernel parameter at boot, and when tuned starts."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import boot
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.dropins import ConfFile
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters import Parameter, file_text

OWN = "/etc/sysctl.d/90-gpu-cluster.conf"
PROBING = Parameter("net.ipv4.tcp_mtu_probing", "1")
RMEM = Parameter("net.ipv4.tcp_rmem", "4096 131072 16777216")
RESERVED = Parameter("net.ipv4.ip_local_reserved_ports", "50000-50011")


def overrides(*files: tuple[str, str], own: str = OWN) -> list[str]:
    """What wins over the three parameters."""
    wanted = [PROBING, RMEM, RESERVED]
    found = boot.boot_overrides(wanted, ConfFile(own, file_text(wanted)), [ConfFile(*file) for file in files])
    return [f"{one.variable}: {one.sentence()}" for one in found]


def test_parsing_files_of_others() -> None:
    text = (
        "; comment\n# a.b = 0\n\n-net/ipv4/tcp_rmem=1  2\t3\na.b = 1\na.b = 2\nnonsense\n"
        "-a.c\nnet.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\n"
        "net.ipv4.ip_local_reserved_ports = 5,4,6\na.d=\n"
    )
    assert boot.parse(text) == {
        "net/ipv4/tcp_rmem": "1 2 3",
        "a/b": "2",
        "a/c": None,
        "net/ipv4/conf/all/rp_filter": None,
        "net/ipv4/ip_local_reserved_ports": "4-6",
        "a/d": "",
    }


def test_nothing_wins_over_the_last_file() -> None:
    assert overrides(("/etc/sysctl.d/10-early.conf", "net.ipv4.tcp_mtu_probing = 0\n")) == []


def test_a_later_file_with_the_same_value_wins_nothing() -> None:
    text = "net.ipv4.tcp_rmem=4096\t131072\t16777216\nnet.ipv4.ip_local_reserved_ports = 50000-50005,50006-50011\n"
    assert overrides(("/etc/sysctl.d/99-same.conf", text)) == []


@pytest.mark.parametrize("key", ["net.ipv4.tcp_mtu_probing", "net/ipv4/tcp_mtu_probing", "-net.ipv4.tcp_mtu_probing"])
@pytest.mark.parametrize("folder", ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"])
def test_a_file_sorted_later_wins_from_every_folder(folder: str, key: str) -> None:
    assert overrides((f"{folder}/99-site.conf", f"{key} = 0\n")) == [
        f"net.ipv4.tcp_mtu_probing: {folder}/99-site.conf is read after {OWN} and sets it to '0' at the next boot"
    ]


def test_the_last_of_several_files_is_named() -> None:
    found = overrides(
        ("/etc/sysctl.d/95-a.conf", "net.ipv4.tcp_mtu_probing = 0\n"),
        ("/usr/lib/sysctl.d/99-b.conf", "net.ipv4.tcp_mtu_probing = 2\n"),
    )
    assert len(found) == 1 and "/usr/lib/sysctl.d/99-b.conf" in found[0] and "'2'" in found[0]


def test_a_later_file_that_says_the_same_again_settles_it() -> None:
    assert (
        overrides(
            ("/etc/sysctl.d/95-a.conf", "net.ipv4.tcp_mtu_probing = 0\n"),
            ("/etc/sysctl.d/99-b.conf", "net.ipv4.tcp_mtu_probing = 1\n"),
        )
        == []
    )


@pytest.mark.parametrize("mask", ["", "# nothing\n"])
def test_a_masked_file_wins_nothing(mask: str) -> None:
    distribution = ("/usr/lib/sysctl.d/99-site.conf", "net.ipv4.tcp_mtu_probing = 0\n")
    assert overrides(("/etc/sysctl.d/99-site.conf", mask), distribution) == []
    assert overrides(("/run/sysctl.d/99-site.conf", mask), distribution) == []


def test_our_name_in_a_later_folder_is_masked_by_us() -> None:
    assert overrides(("/run/sysctl.d/90-gpu-cluster.conf", "net.ipv4.tcp_mtu_probing = 0\n")) == []


def test_our_own_file_masked_from_an_earlier_folder() -> None:
    own = "/usr/lib/sysctl.d/90-gpu-cluster.conf"
    effect = f"stands in an earlier folder under the same name, so that {own} is not read at boot"
    assert overrides(("/etc/sysctl.d/90-gpu-cluster.conf", ""), own=own) == [
        f"{parameter.key}: /etc/sysctl.d/90-gpu-cluster.conf {effect}" for parameter in (PROBING, RMEM, RESERVED)
    ]


def test_a_key_that_is_taken_out() -> None:
    found = overrides(("/etc/sysctl.d/99-site.conf", "-net.ipv4.tcp_rmem\n"))
    assert found == [
        f"net.ipv4.tcp_rmem: /etc/sysctl.d/99-site.conf is read after {OWN} and takes it out, "
        "so that it has the kernel's own value after the next boot"
    ]


def test_a_pattern_never_wins_over_a_full_name() -> None:
    assert overrides(("/etc/sysctl.d/99-site.conf", "net.ipv4.tcp_mtu_prob* = 0\nnet.ipv4.tcp_?mem = 1 1 1\n")) == []


def test_a_link_says_which_file_to_edit() -> None:
    wanted = [PROBING]
    link = ConfFile("/etc/sysctl.d/99-sysctl.conf", "net.ipv4.tcp_mtu_probing=0\n", "/etc/sysctl.conf")
    found = boot.boot_overrides(wanted, ConfFile(OWN, file_text(wanted)), [link])
    problem = found[0].problem("kernel_tuning_extra").sentence()
    assert problem.startswith(
        "net.ipv4.tcp_mtu_probing = '1': /etc/sysctl.d/99-sysctl.conf (a link to /etc/sysctl.conf) is read after "
    )
    assert "kernel_tuning_extra" in problem and "kernel_tuning_overridden: report" in problem


@pytest.mark.parametrize("path", ["/etc/90.conf", "/etc/sysctl.d/90", "/etc/sysctl.d/sub/90.conf"])
def test_a_place_that_is_not_read_at_boot(path: str) -> None:
    assert boot.folder_problems(path)[0].value == path
    assert boot.folder_problems(OWN) == []


def test_the_rails_of_static_network_are_not_fought() -> None:
    rails = ConfFile("/etc/sysctl.d/90-gpu-cluster-rails.conf", "net/ipv4/conf/ens1f0/arp_ignore = 1\n")
    key = "net.ipv4.conf.ens1f0.arp_ignore"
    found = boot.rails_problems([Parameter(key, "0", "", "kernel_tuning_extra[0]")], [rails])
    assert found[0].sentence().startswith(f"kernel_tuning_extra[0] ({key}) = '0': static_network set it to '1'")
    assert boot.rails_problems([Parameter(key, "1"), PROBING], [rails]) == []


# ---- tuned ----

BASE = '[main]\nsummary=Base\n[sysctl]\nnet.ipv4.tcp_rmem="4096 87380 16777216"\nnet.ipv4.tcp_mtu_probing=0  # note\n'
PROFILES = {
    "/usr/lib/tuned/base/tuned.conf": BASE,
    "/usr/lib/tuned/profiles/fast/tuned.conf": "[main]\ninclude=base, -missing\n[sysctl]\nnet.ipv4.tcp_mtu_probing=2\n",
    "/etc/tuned/fast/tuned.conf": "[main]\ninclude=fast\n[other]\ntype=sysctl\nnet.core.somaxconn=>2048\n",
    "/etc/tuned/clean/tuned.conf": "[main]\ninclude=base\n[sysctl]\nreplace=1\nnet.core.somaxconn=1\n",
    "/etc/tuned/broken/tuned.conf": "no section\n",
}


def test_a_profile_with_what_it_includes() -> None:
    assert boot.tuned_settings(["fast"], PROFILES) == {
        "net/ipv4/tcp_rmem": ("4096 87380 16777216", "/usr/lib/tuned/base/tuned.conf"),
        "net/ipv4/tcp_mtu_probing": ("2", "/usr/lib/tuned/profiles/fast/tuned.conf"),
        "net/core/somaxconn": (">2048", "/etc/tuned/fast/tuned.conf"),
    }


def test_a_profile_that_replaces_what_it_includes() -> None:
    assert set(boot.tuned_settings(["clean"], PROFILES)) == {"net/core/somaxconn"}


def test_profiles_that_are_missing_or_broken_set_nothing() -> None:
    assert boot.tuned_settings(["missing", "broken"], PROFILES) == {}


@pytest.mark.parametrize(
    ("text", "reapply"),
    [("", True), ("reapply_sysctl = 1\n", True), ("# x\nreapply_sysctl=0\n", False), ("daemon = 1\n", True)],
)
def test_whether_tuned_applies_our_file_after_its_profile(text: str, reapply: bool) -> None:
    assert boot.reapplies(text) is reapply


def tuned(*, reapply: bool, name: str = "fast", sysctl_conf: str = "") -> list[str]:
    """What tuned changes of three parameters."""
    state = boot.Tuned(name, reapply, boot.tuned_settings(["fast"], PROFILES))
    parameters = [PROBING, RMEM, Parameter("net.core.somaxconn", "16384")]
    return [f"{one.variable}: {one.sentence()}" for one in boot.tuned_overrides(parameters, state, sysctl_conf)]


def test_tuned_wins_when_it_does_not_apply_our_file_again() -> None:
    ending = "whenever tuned starts: profile fast, with reapply_sysctl = 0 in /etc/tuned/tuned-main.conf"
    assert tuned(reapply=False) == [
        f"net.ipv4.tcp_mtu_probing: /usr/lib/tuned/profiles/fast/tuned.conf sets it to '2' {ending}",
        f"net.ipv4.tcp_rmem: /usr/lib/tuned/base/tuned.conf sets it to '4096 87380 16777216' {ending}",
    ]
    assert tuned(reapply=True) == []
    assert tuned(reapply=False, name="") == []


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("", []),
        ("# reapply_sysctl_exclude = x\n", []),
        (
            "reapply_sysctl_exclude = net.ipv4.tcp_rmem, net.core.*;vm.swappiness\n",
            ["net.ipv4.tcp_rmem", "net.core.*", "vm.swappiness"],
        ),
        ("reapply_sysctl_exclude =\n", []),
    ],
)
def test_what_tuned_leaves_out_when_it_applies_our_file_again(text: str, patterns: list[str]) -> None:
    assert boot.excluded(text) == patterns


def test_the_profile_wins_for_keys_that_are_left_out() -> None:
    state = boot.Tuned("fast", True, boot.tuned_settings(["fast"], PROFILES), ["net.ipv4.tcp_r*"])
    found = boot.tuned_overrides([PROBING, RMEM], state, "net.ipv4.tcp_rmem = 1 2 3\n")
    assert [f"{one.variable}: {one.sentence()}" for one in found] == [
        "net.ipv4.tcp_rmem: /usr/lib/tuned/base/tuned.conf sets it to '4096 87380 16777216' whenever tuned starts: "
        "profile fast, with the key among reapply_sysctl_exclude in /etc/tuned/tuned-main.conf"
    ]


def test_tuned_reads_sysctl_conf_last() -> None:
    text = "net.ipv4.tcp_mtu_probing = 0\n"
    assert tuned(reapply=True, sysctl_conf=text) == [
        "net.ipv4.tcp_mtu_probing: /etc/sysctl.conf sets it to '0' whenever tuned starts, which reads that file last"
    ]
    assert tuned(reapply=True, name="", sysctl_conf=text) == []


@pytest.mark.parametrize(
    ("value", "wins"), [(">2048", False), (">20000", True), ("<20000", False), ("<2048", True), ("16384", False)]
)
def test_a_profile_can_set_only_over_smaller_or_larger_values(value: str, wins: bool) -> None:
    state = boot.Tuned("fast", False, {"net/core/somaxconn": (value, "/etc/tuned/fast/tuned.conf")})
    found = boot.tuned_overrides([Parameter("net.core.somaxconn", "16384")], state, "")
    assert bool(found) is wins
