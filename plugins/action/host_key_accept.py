# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide about the host keys that host_key_probe has learned, and write those that are accepted into known_hosts."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import file_lock, files, sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys import decision

#: Another run holds the lock while it writes one file.
LOCK_SECONDS = 60
ARGUMENT_SPEC = {
    "known_hosts": {"type": "path", "required": True},
    "probes": {"type": "dict", "required": True},
    "consent": {"type": "bool", "default": False},
}


def read_text(path: str) -> str:
    """The file as it is, line ends included; empty when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        path = os.path.realpath(given["known_hosts"])
        looks = [decision.Look.of(str(host), data) for host, data in given["probes"].items()]
        before = read_text(path)
        found = decision.decide(looks, path, before, given["consent"])
        result.update(
            changed=False,
            known=found.known,
            accepted=[
                {"host": one.look.host, "fingerprint": one.key.fingerprint, "why": one.why} for one in found.accepted
            ],
        )
        if found.refused:
            result.update(failed=True, msg=sanitize.clean(found.refusal()))
            return result
        after = decision.rewrite(before, found.accepted)
        if after == before:
            result["msg"] = f"the host keys of {len(found.known)} hosts are known"
            return result
        for one in found.accepted:
            Display().display(sanitize.sentence(one.sentence()))
        result.update(changed=True, msg=f"{len(found.accepted)} host key(s) accepted in {path}")
        if self._task.diff:
            result["diff"] = {"before": before, "after": after, "before_header": path, "after_header": path}
        if not self._task.check_mode:
            try:
                replace_locked(path, before, after, found)
            except file_lock.LockError as error:
                result.update(failed=True, changed=False, msg=str(error))
        return result


def replace_locked(path: str, before: str, after: str, found: decision.Decision) -> None:
    """Rename a whole new file over the old one. Another run that was faster keeps what it wrote."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        file_lock.take(descriptor, folder, LOCK_SECONDS)
        now = read_text(path)
        text = after if now == before else decision.rewrite(now, found.accepted)
        # The mode of an existing file stays; a new one gets that which ssh itself gives.
        mode = os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o600
        files.replace(path, text, mode)
    finally:
        os.close(descriptor)
