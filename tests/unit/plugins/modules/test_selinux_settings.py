# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module selinux_settings does to files, and that it leaves nothing half-done."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import (
    customise,
    mode,
    prepare,
    records,
    selinuxfs,
    switch,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.host import Host

CONFIG = "# made by the installer\nSELINUX=disabled\nSELINUXTYPE=targeted\n"
OFF = 'args="ro selinux=0"\n'
PORT = records.Record(records.PORT, "tcp 2222", "ssh_port_t")
HOME = records.Record(records.EQUAL, "/export/home/train", "/home/train", "/export/home/train")


class Failed(Exception):
    """What fail_json says."""


class Module:
    """The part of AnsibleModule that is used: commands answer as the test tells them."""

    def __init__(
        self, answer: Callable[[list[str], str | None], tuple[int, str, str]], check_mode: bool = False
    ) -> None:
        self.answer = answer
        self.check_mode = check_mode
        self.params: dict[str, Any] = {"enable_ok": False, "disabled_host": "report"}
        self.ran: list[list[str]] = []

    def get_bin_path(self, name: str, **_options: Any) -> str:
        return name

    def run_command(self, argv: list[str], data: str | None = None, **_options: Any) -> tuple[int, str, str]:
        self.ran.append(argv)
        return self.answer(argv, data)

    def atomic_move(self, source: str, target: str) -> None:
        os.rename(source, target)

    def set_mode_if_different(self, path: str, wanted: int, changed: bool) -> bool:
        os.chmod(path, wanted)
        return changed

    def fail_json(self, msg: str, **_more: Any) -> None:
        raise Failed(msg)


def well(_argv: list[str], _data: str | None) -> tuple[int, str, str]:
    return 0, "", ""


def badly(_argv: list[str], _data: str | None) -> tuple[int, str, str]:
    return 1, "", "no\nspace left"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    path.write_text(CONFIG)
    monkeypatch.setattr(mode, "CONFIG", str(path))
    monkeypatch.setattr(mode, "RELABEL", str(tmp_path / "autorelabel"))
    monkeypatch.setattr(customise, "LEDGER", str(tmp_path / "ledger.json"))
    return path


def facts(**changes: Any) -> mode.Facts:
    given: dict[str, Any] = {
        "enforce": "",
        "config": CONFIG,
        "command_line": "ro selinux=0",
        "kernel_modules": "capability,selinux",
        "policies": ("targeted",),
        "boot_arguments": OFF,
        **changes,
    }
    return mode.Facts(**given)


def host(answer: Callable[[list[str], str | None], tuple[int, str, str]] = well, **params: Any) -> tuple[Host, Module]:
    module = Module(answer, params.pop("check_mode", False))
    module.params.update(params)
    return Host(module), module  # type: ignore[arg-type]


def names(config: Path) -> set[str]:
    return {entry.name for entry in config.parent.iterdir()}


def test_a_disabled_host_is_left_alone(config: Path) -> None:
    found, module = host()
    result = prepare.disabled(found, facts())
    assert not result["changed"] and result["mode"] == "disabled" and "nothing is enforced" in result["notes"][0]
    assert config.read_text() == CONFIG and names(config) == {"config"} and module.ran == []


def test_a_disabled_host_may_be_a_failure(config: Path) -> None:
    with pytest.raises(Failed, match="SELinux is disabled on this host: the kernel was started with selinux=0"):
        prepare.disabled(host(disabled_host="fail")[0], facts())


def test_consent_prepares_the_next_boot_and_never_reboots(config: Path) -> None:
    found, module = host(enable_ok=True)
    result = prepare.disabled(found, facts())
    assert result["changed"] and result["reboot_required"]
    assert config.read_text() == CONFIG.replace("disabled", "permissive") and "autorelabel" in names(config)
    assert module.ran == [["grubby", "--update-kernel=ALL", "--remove-args=selinux=0"]]
    prepared = facts(config=config.read_text(), relabel=True, boot_arguments='args="ro"')
    again, module = host(enable_ok=True)
    result = prepare.disabled(again, prepared)
    assert not result["changed"] and result["reboot_required"] and module.ran == []


def test_check_mode_prepares_nothing(config: Path) -> None:
    result = prepare.disabled(host(enable_ok=True, check_mode=True)[0], facts())
    assert result["changed"] and config.read_text() == CONFIG and names(config) == {"config"}


def test_a_boot_is_prepared_as_a_whole_or_not_at_all(config: Path) -> None:
    with pytest.raises(Failed, match=r"grubby failed: no space left. Everything is as it was"):
        prepare.disabled(host(badly, enable_ok=True)[0], facts())
    assert config.read_text() == CONFIG and names(config) == {"config"}


@pytest.mark.parametrize("changes", [{"container": True}, {"policies": ()}, {"boot_arguments": None}])
def test_what_has_to_be_done_by_hand_first_is_said_in_spite_of_consent(config: Path, changes: dict[str, Any]) -> None:
    result = prepare.disabled(host(enable_ok=True)[0], facts(**changes))
    assert not result["changed"] and config.read_text() == CONFIG and names(config) == {"config"}


def store(tmp_path: Path, outcome: int) -> Callable[[list[str], str | None], tuple[int, str, str]]:
    """A semanage that writes equivalences at once, as the real one does, and then ends well or badly."""
    imported: list[str] = []

    def answer(argv: list[str], data: str | None) -> tuple[int, str, str]:
        if argv[1] == "export":
            return 0, "".join(imported), ""
        # The ledger must know before the policy does.
        assert "tcp 2222" in (tmp_path / "ledger.json").read_text()
        (tmp_path / "subs").write_text("/export/home/train /home/train\n")
        if outcome == 0:
            imported.append(data or "")
        return outcome, "", "ValueError: no"

    return answer


@pytest.fixture
def equivalences(tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(customise, "EQUIVALENCES", str(tmp_path / "subs") + "{policy}")
    return tmp_path / "subs"


def test_an_import_is_read_back_and_remembered(tmp_path: Path, equivalences: Path) -> None:
    plan = records.make_plan([PORT, HOME], {}, {}, ())
    customise.apply_plan(host(store(tmp_path, 0))[0], plan, (), "", "")
    assert records.load_ledger((tmp_path / "ledger.json").read_text()) == plan.ledger
    back = records.make_plan([], records.parse_export(plan.script()), {}, plan.ledger)
    gone, _module = host(lambda argv, data: (0, "", ""))
    customise.apply_plan(gone, back, plan.ledger, records.ledger_text(plan.ledger), "")
    assert not (tmp_path / "ledger.json").exists()


def test_an_import_that_is_refused_leaves_nothing_behind(tmp_path: Path, equivalences: Path) -> None:
    plan = records.make_plan([PORT, HOME], {}, {}, ())
    with pytest.raises(Failed, match=r"semanage refused the import: ValueError: no. Nothing was changed"):
        customise.apply_plan(host(store(tmp_path, 1))[0], plan, (), "", "")
    assert names(tmp_path / "config") == {"config"}


def test_an_import_that_has_no_effect_is_a_failure(tmp_path: Path, equivalences: Path) -> None:
    plan = records.make_plan([PORT], {}, {}, ())
    with pytest.raises(Failed, match=r"not in force: port tcp 2222 ssh_port_t"):
        customise.apply_plan(host(well)[0], plan, (), "", "")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file by which a permissive kernel is told to enforce."""
    monkeypatch.setattr(selinuxfs, "KERNEL", str(tmp_path))
    (tmp_path / "enforce").write_text("0")
    return tmp_path / "enforce"


def test_a_host_begins_to_enforce_with_a_timer_and_writes_nothing_before_the_confirmation(
    config: Path, kernel: Path
) -> None:
    armed: list[str] = []

    def answer(argv: list[str], _data: str | None) -> tuple[int, str, str]:
        armed.append(kernel.read_text())
        return well(argv, None)

    found, module = host(answer, state="enforcing", confirm_seconds=60, confirm=False)
    assert switch.switch(found, facts(enforce="0"), CONFIG.replace("disabled", "enforcing"))
    assert [argv[0] for argv in module.ran] == ["systemd-run"] and module.ran[0][-2:] == ["setenforce", "0"]
    assert "--on-active=60" in module.ran[0] and armed == ["0"], "the timer has to run before anything is denied"
    assert kernel.read_text() == "1" and config.read_text() == CONFIG


@pytest.mark.parametrize("left", [".timer", ".service"])
def test_another_run_that_is_not_confirmed_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """A rerun right after a kill: the timer still runs, or brings the permissive mode back right now."""
    unit = tmp_path / (switch.UNDO + left)
    unit.touch()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            unit.unlink()

    monkeypatch.setattr(switch, "TRANSIENT", str(tmp_path))
    monkeypatch.setattr(switch.time, "sleep", sleep)
    found, module = host(confirm=False)
    note = switch.wait_for_another(found)
    assert len(slept) == 3 and note.startswith("Waited ") and "another run" in note
    assert switch.wait_for_another(found) == "" and len(slept) == 3
    # The confirmation itself waits for nobody, and check mode only looks.
    unit.touch()
    module.params["confirm"] = True
    assert switch.wait_for_another(found) == ""
    module.params["confirm"], module.check_mode = False, True
    assert switch.wait_for_another(found) == "" and len(slept) == 3
    # A timer of somebody else without an end.
    module.check_mode = False
    monkeypatch.setattr(switch, "WAIT_SECONDS", 0)
    monkeypatch.setattr(switch.time, "sleep", slept.append)
    assert switch.wait_for_another(found) != ""


def test_without_seconds_nobody_is_waited_for(config: Path, kernel: Path) -> None:
    found, module = host(state="enforcing", confirm_seconds=0, confirm=False)
    assert not switch.switch(found, facts(enforce="0"), CONFIG.replace("disabled", "enforcing"))
    assert module.ran == [] and kernel.read_text() == "1" and "SELINUX=enforcing" in config.read_text()
