# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the files for a scheduler into a folder beside the inventory."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import place
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _generated_folder

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True, "choices": ["host_lists", "kubernetes", "slurm"]},
    "files": {"type": "dict", "required": True},
    "dest": {"type": "str", "default": ""},
}
BY = "baremetal.gpu_cluster.%s"

REFUSED = "%d problem(s) with the folder. Nothing was written.\n%s\nFix: move these away, and repeat the command."
FAILED = "%s cannot be written: %s. Nothing was written"
UNCHANGED = "%s: nothing changed"
WRITTEN = "%s: %s %s"
WOULD = "%s: would be %s: %s"


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        sources = [str(source) for source in (task_vars or {}).get("ansible_inventory_sources") or []]
        folder = place.beside(sources, os.getcwd(), given["name"])
        if given["dest"]:
            folder = os.path.abspath(os.path.expanduser(given["dest"]))
        texts = {str(name): str(text) for name, text in given["files"].items()}
        result.update(changed=False, path=folder, written=[], removed=[])
        try:
            made = _generated_folder.plan(folder, texts, BY % given["name"])
            changed = made.changed()
            if changed and not self._task.check_mode:
                _generated_folder.write(made)
        except _generated_folder.Refused as refused:
            reasons = sanitize.clean("\n".join(refused.reasons))
            return {**result, "failed": True, "msg": REFUSED % (len(refused.reasons), reasons)}
        except OSError as error:
            text = FAILED % (error.filename or folder, error.strerror)
            return {**result, "failed": True, "msg": sanitize.clean(text)}
        result["written"] = [name for name in changed if made.after[name] is not None]
        result["removed"] = [name for name in changed if made.after[name] is None]
        result.update(changed=bool(changed), msg=self._said(folder, result))
        if self._task.diff:
            result["diff"] = [
                {
                    "before": made.before[name] or "",
                    "after": made.after[name] or "",
                    "before_header": os.path.join(folder, name),
                    "after_header": os.path.join(folder, name),
                }
                for name in changed
            ]
        return result

    def _said(self, folder: str, result: dict[str, Any]) -> str:
        line = WOULD if self._task.check_mode else WRITTEN
        lines = [line % (folder, what, ", ".join(result[what])) for what in ("written", "removed") if result[what]]
        return sanitize.clean("\n".join(lines or [UNCHANGED % folder]))
