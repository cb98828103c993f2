# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is SELinux on, why not, what turns it on, and what speaks against enforcing now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.mode import (
    STEP_AGAIN,
    STEP_ARGUMENT,
    STEP_ARGUMENT_BY_HAND,
    STEP_CONFIG,
    STEP_MACHINE,
    STEP_POLICY,
    STEP_REBOOT,
    STEP_RELABEL,
    Facts,
    boot_note,
    config_with,
    diagnose,
    obstacles,
    parse_relabelled,
)

#: As EL ships it, shortened.
CONFIG = """\
# This file controls the state of SELinux on the system.
# SELINUX= can take one of these three values:
SELINUX=enforcing
# SELINUXTYPE= can take one of these three values:
SELINUXTYPE=targeted
"""
BOOT = "BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro quiet"
LOADER = 'index=0\nargs="ro quiet{}"\n'
FACTS = Facts(
    enforce="",
    config=CONFIG.replace("=enforcing", "=disabled"),
    command_line=BOOT,
    kernel_modules="lockdown,capability,yama,selinux,bpf",
    policies=("targeted",),
    boot_arguments=LOADER.format(""),
)
LAST_STEPS = (STEP_CONFIG, STEP_RELABEL, STEP_REBOOT, STEP_AGAIN)


def facts(**changes: Any) -> Facts:
    return replace(FACTS, **changes)


@pytest.mark.parametrize(("enforce", "mode"), [("1", "enforcing"), ("0", "permissive"), ("", "disabled")])
def test_the_kernel_says_what_runs(enforce: str, mode: str) -> None:
    assert facts(enforce=enforce).running == mode


@pytest.mark.parametrize(
    ("config", "configured", "policy"),
    [
        (CONFIG, "enforcing", "targeted"),
        ("SELINUX = Permissive\nSELINUXTYPE = mls\n", "permissive", "mls"),
        ("SELINUX=disabled # off\nSELINUXTYPE=default\n", "disabled", "default"),
        ("#SELINUX=enforcing\n", "", "targeted"),
        ("", "", "targeted"),
    ],
)
def test_the_file_says_what_comes(config: str, configured: str, policy: str) -> None:
    assert (facts(config=config).configured, facts(config=config).policy) == (configured, policy)


def test_only_the_mode_changes_in_the_file() -> None:
    assert config_with(CONFIG, "permissive") == CONFIG.replace("SELINUX=enforcing", "SELINUX=permissive")
    assert config_with(CONFIG, "enforcing") == CONFIG
    assert config_with("SELINUXTYPE=targeted", "enforcing") == "SELINUXTYPE=targeted\nSELINUX=enforcing\n"
    assert config_with("", "enforcing") == "SELINUX=enforcing\n"


def test_disabled_in_the_file() -> None:
    found = diagnose(FACTS)
    assert found.causes == ("/etc/selinux/config says SELINUX=disabled",)
    assert found.steps == LAST_STEPS and found.by_hand == ()
    assert found.sentence() == (
        "SELinux is disabled on this host: /etc/selinux/config says SELINUX=disabled. To turn it on: (1) set "
        "SELINUX=permissive in /etc/selinux/config (permissive first: nothing is denied while labels are missing); "
        "(2) touch /.autorelabel; (3) reboot; the host labels every file, restarts by itself and comes up permissive; "
        "(4) run this role again: it goes over to enforcing when the labels are right"
    )


def test_disabled_on_the_command_line() -> None:
    found = diagnose(facts(config=CONFIG, command_line=f"{BOOT} selinux=0", boot_arguments=LOADER.format(" selinux=0")))
    assert found.causes == ("the kernel was started with selinux=0",)
    assert found.steps == (STEP_ARGUMENT, *LAST_STEPS) and found.by_hand == ()
    # The boot loader no longer says so: only the boot is missing.
    found = diagnose(facts(config=CONFIG, command_line=f"{BOOT} selinux=0"))
    assert found.steps == LAST_STEPS
    found = diagnose(facts(config=CONFIG, command_line=f"{BOOT} selinux=0", boot_arguments=None))
    assert found.by_hand == (STEP_ARGUMENT_BY_HAND,) and found.steps == (STEP_ARGUMENT_BY_HAND, *LAST_STEPS)


def test_both_causes_are_named() -> None:
    found = diagnose(facts(command_line=f"{BOOT} selinux=0", boot_arguments=LOADER.format(" selinux=0")))
    assert "selinux=0, and /etc/selinux/config says SELINUX=disabled" in found.sentence()


@pytest.mark.parametrize("word", ["security=apparmor", "lsm=lockdown,yama,apparmor"])
def test_another_module_on_the_command_line(word: str) -> None:
    found = diagnose(facts(config=CONFIG, command_line=f"{BOOT} {word}", kernel_modules="capability,apparmor"))
    assert found.causes == (f"the kernel was started with {word}, which leaves SELinux out",)
    assert found.by_hand == (f'grubby --update-kernel=ALL --remove-args="{word}"',)
    assert diagnose(facts(config=CONFIG, command_line=f"{BOOT} lsm=yama,selinux")).by_hand == ()


def test_a_kernel_without_selinux() -> None:
    found = diagnose(facts(config=CONFIG, kernel_modules="capability,landlock"))
    assert found.causes == ("this kernel has no SELinux among its security modules (capability,landlock)",)
    assert len(found.by_hand) == 1


@pytest.mark.parametrize(("config", "policies"), [("", ()), (CONFIG, ()), (CONFIG, ("mls",))])
def test_a_host_without_a_policy(config: str, policies: tuple[str, ...]) -> None:
    found = diagnose(facts(config=config, policies=policies))
    assert found.by_hand == (STEP_POLICY,) and found.steps == (STEP_POLICY, *LAST_STEPS)


def test_a_host_that_was_not_restarted_since() -> None:
    (cause,) = diagnose(facts(config=CONFIG)).causes
    assert "no policy was loaded at boot" in cause


def test_a_container_has_no_kernel_of_its_own() -> None:
    found = diagnose(facts(container=True, command_line=f"{BOOT} selinux=0"))
    assert len(found.causes) == 1 and "is a container" in found.causes[0]
    assert found.steps == found.by_hand == (STEP_MACHINE,)


def test_an_argument_of_the_kernel_that_wins_over_the_file() -> None:
    assert boot_note(facts(command_line=BOOT)) == ""
    assert "enforcing=0, which wins over /etc/selinux/config" in boot_note(facts(command_line=f"{BOOT} enforcing=0"))


def test_nothing_speaks_against_enforcing_on_a_labelled_host() -> None:
    ready = facts(enforce="0", session="unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023")
    assert obstacles(ready, []) == []


@pytest.mark.parametrize(
    ("changes", "mislabelled", "word"),
    [
        ({"relabel": True}, [], "waits for the next boot"),
        ({"session": "system_u:system_r:kernel_t:s0"}, [], "this session runs as kernel_t"),
        ({"session": "system_u:system_r:sshd_t:s0-s0:c0.c1023"}, [], "this session runs as sshd_t"),
        ({}, ["/etc/shadow", "/usr/sbin/sshd"], "no right labels"),
    ],
)
def test_what_would_end_logins_is_an_obstacle(changes: dict[str, Any], mislabelled: list[str], word: str) -> None:
    (obstacle,) = obstacles(facts(enforce="0", **changes), mislabelled)
    assert word in obstacle
    assert all(path in obstacle for path in mislabelled)


def test_what_restorecon_says() -> None:
    """Recorded: policycoreutils 3.4."""
    text = (
        "Relabeled /export/home/train/.ssh from system_u:object_r:root_t:s0 to system_u:object_r:ssh_home_t:s0\n"
        "Would relabel /data/a from b to c.txt from unconfined_u:object_r:default_t:s0 "
        "to unconfined_u:object_r:bin_t:s0\n"
        "restorecon: lstat(/x) failed: No such file or directory\n"
    )
    assert parse_relabelled(text) == ["/export/home/train/.ssh", "/data/a from b to c.txt"]
