# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mode, now and for the next boot, with the timer that makes a host permissive again without a confirmation."""

from __future__ import annotations

import glob
import os
import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import replace_file, restore_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import mode
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.host import Host
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.selinuxfs import read_mode, set_running

#: The unit that makes the host permissive again.
UNDO = "gpu-cluster-selinux-undo"
#: Where the units of systemd-run are, and how long one of another run is waited for: its longest time, and some more.
TRANSIENT = "/run/systemd/transient"
WAIT_SECONDS = 630


def armed() -> bool:
    """Whether the timer runs that makes the host permissive again."""
    return os.path.exists(f"{TRANSIENT}/{UNDO}.timer")


def wait_for_another(host: Host) -> str:
    """Let the timer of another run end, such as one that was killed; a sentence when there was one."""
    start = time.monotonic()
    note = ""
    while glob.glob(f"{TRANSIENT}/{UNDO}.*") and not (host.params["confirm"] or host.module.check_mode):
        waited = time.monotonic() - start
        note = f"Waited {waited:.0f} s for another run that let this host enforce and was not confirmed."
        if waited >= WAIT_SECONDS:
            break
        time.sleep(1)
    return note


def switch(host: Host, facts: mode.Facts, config: str) -> bool:
    """Set the mode, now and for the next boot; whether it waits for a confirmation."""
    wanted, seconds = host.params["state"], host.params["confirm_seconds"]
    if host.module.check_mode:
        return False
    if host.params["confirm"]:
        confirm(host)
    elif facts.running != wanted and wanted == mode.ENFORCING and seconds:
        arm(host, seconds)
        set_running(True)
        return True
    if config != facts.config:
        replace_file(host.module, mode.CONFIG, config)
    if read_mode() != wanted:
        set_running(wanted == mode.ENFORCING)
    if read_mode() != wanted:
        restore_file(host.module, mode.CONFIG, facts.config, existed=bool(facts.config))
        host.fail(f"The kernel does not go over to {wanted}. {mode.CONFIG} is as it was.")
    return False


def arm(host: Host, seconds: int) -> None:
    """A timer that makes the host permissive again, whatever becomes of this program and of the controller."""
    rc, out, err = host.run(
        "systemd-run",
        "--quiet",
        f"--unit={UNDO}",
        f"--on-active={seconds}",
        "--timer-property=AccuracySec=1s",
        host.module.get_bin_path("setenforce", required=True, opt_dirs=["/usr/sbin"]),
        "0",
    )
    if rc:
        host.fail(f"Cannot arm the timer {UNDO}: {' '.join(f'{err} {out}'.split())}. The mode is as it was.")


def confirm(host: Host) -> None:
    """The controller is back over a new connection: end the timer, unless it was faster."""
    was_armed = armed()
    host.run("systemctl", "stop", f"{UNDO}.timer", f"{UNDO}.service")
    if not was_armed or read_mode() != mode.ENFORCING:
        host.fail(
            "The controller came back too late: this host is permissive again. Look at what selinux_denials says about "
            "logins, or give more time with selinux_policy_confirm_seconds."
        )
