# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The customisations of a policy: one transaction of semanage, read back, and the ledger of what it changed."""

from __future__ import annotations

import os

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    replace_file,
    restore_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import records
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.host import Host

LEDGER = "/var/lib/gpu-cluster/selinux.json"
#: Where semanage keeps "label this folder like that one", outside of its transaction.
EQUIVALENCES = "/etc/selinux/{policy}/contexts/files/file_contexts.subs"


def read_ledger(host: Host) -> tuple[str, tuple[records.Entry, ...]]:
    """The ledger as text, and what it says."""
    text = read_text(LEDGER)
    try:
        return text, records.load_ledger(text)
    except records.LedgerError as error:
        host.fail(
            f"{LEDGER} cannot be read ({error}), so nobody knows what is ours. Move it away. Nothing was changed."
        )


def apply_plan(
    host: Host, plan: records.Plan, ledger: tuple[records.Entry, ...], before_ledger: str, policy: str
) -> None:
    """One transaction, read back. The ledger is written before it, so that a run that is cut short forgets nothing."""
    after_ledger = records.ledger_text(plan.ledger)
    if plan.changes:
        equivalences = EQUIVALENCES.format(policy=policy)
        before_equivalences, existed = read_text(equivalences), os.path.exists(equivalences)
        replace_file(host.module, LEDGER, records.ledger_text(records.united(ledger, plan.ledger)), mode=0o600)
        rc, out, err = host.run("semanage", "import", data=plan.script())
        if rc:
            # The rest is a transaction; equivalences semanage writes at once.
            if read_text(equivalences) != before_equivalences:
                restore_file(host.module, equivalences, before_equivalences, existed)
            restore_file(host.module, LEDGER, before_ledger, bool(before_ledger), mode=0o600)
            said = " ".join(f"{err} {out}".split())
            host.fail(f"semanage refused the import: {said}. Nothing was changed. The import was: {plan.script()!r}")
        found = host.local()
        lost = [
            change.record.phrase() for change in plan.changes if found.get(change.record.identity, "") != change.after
        ]
        if lost:
            host.fail(f"semanage took these without an error, and they are not in force: {', '.join(lost)}.")
    if after_ledger:
        if after_ledger != read_text(LEDGER):
            replace_file(host.module, LEDGER, after_ledger, mode=0o600)
    elif os.path.exists(LEDGER):
        os.unlink(LEDGER)
