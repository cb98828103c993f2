# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host without SELinux: why it has none, and the preparation of its next boot."""

from __future__ import annotations

import os
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import replace_file, restore_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import mode
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.host import Host
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.report import file_diff


def disabled(host: Host, facts: mode.Facts) -> dict[str, Any]:
    """Report a host without SELinux, or prepare it for the next boot."""
    found = mode.diagnose(facts)
    result: dict[str, Any] = {
        "changed": False,
        "mode": mode.DISABLED,
        "configured": facts.configured,
        "causes": list(found.causes),
        "steps": list(found.steps),
        "reboot_required": False,
        "confirm_needed": False,
        "customised": [],
        "relabelled": [],
    }
    enable = host.params["enable_ok"] and not found.by_hand
    if not enable:
        sentence = found.sentence()
        if host.params["enable_ok"] and not facts.container:
            sentence += f". selinux_policy_enable_ok does nothing here before this was done by hand: {found.by_hand[0]}"
        if host.params["disabled_host"] == "fail":
            host.fail(f"{sentence}. Nothing was changed.", **result)
        return {**result, "notes": [f"{sentence}. Nothing was changed, and nothing is enforced."]}
    # Permissive whatever is wanted: labels are missing until the host was relabelled.
    wanted = mode.config_with(facts.config, mode.PERMISSIVE)
    off = mode.OFF_ARGUMENT in (facts.boot_arguments or "")
    result["changed"] = wanted != facts.config or not facts.relabel or off
    result["reboot_required"] = True
    result["configured"] = mode.PERMISSIVE
    result["diff"] = [file_diff(mode.CONFIG, facts.config, wanted)]
    if result["changed"] and not host.module.check_mode:
        prepare_boot(host, facts, wanted, remove_argument=off)
    note = "SELinux is disabled on this host, and is prepared for its next boot: reboot; the host labels every file, "
    return {**result, "notes": [f"{note}restarts by itself and comes up permissive. Then run this role again."]}


def prepare_boot(host: Host, facts: mode.Facts, config: str, *, remove_argument: bool) -> None:
    """The three steps before a reboot, or none of them."""
    try:
        replace_file(host.module, mode.CONFIG, config)
        with open(mode.RELABEL, "a", encoding="ascii"):
            pass
    except OSError as error:
        undo_prepared(host, facts)
        host.fail(f"Cannot prepare the next boot: {error}. Everything is as it was.")
    if remove_argument:
        rc, out, err = host.run("grubby", "--update-kernel=ALL", f"--remove-args={mode.OFF_ARGUMENT}")
        if rc:
            undo_prepared(host, facts)
            host.fail(f"grubby failed: {' '.join(f'{err} {out}'.split())}. Everything is as it was.")


def undo_prepared(host: Host, facts: mode.Facts) -> None:
    """As the host was found."""
    restore_file(host.module, mode.CONFIG, facts.config, existed=True)
    if not facts.relabel and os.path.exists(mode.RELABEL):
        os.unlink(mode.RELABEL)
