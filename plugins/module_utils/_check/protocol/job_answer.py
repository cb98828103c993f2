# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of what a job meets on a node, which a process of the user of the jobs has written.  Pure."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import count, flag, text

_LIBRARY = shape.optional(shape.record({"name": text, "error": text}))
#: ``agent.job_question`` has the meaning of each.
FOUND = shape.record(
    {
        "home": shape.record({"path": text, "problem": text}),
        "temporary": shape.record({"path": text, "set": flag, "problem": text, "noexec": flag}),
        "shared_memory": shape.record({"bytes": count, "free_bytes": count, "mounted": flag}),
        "numa_nodes_without_memory": shape.each(shape.record({"node": count, "cpus": text})),
        "gpus": count,
        "verbs": _LIBRARY,
        "plugin": _LIBRARY,
    },
    # A report of an earlier version has none.
    {"mounts": shape.each(shape.record({"path": text, "type": text, "source": text, "problem": text}))},
)
#: found: None where there is no answer, for a reason that ``why`` has.
ANSWER = shape.record({"found": shape.optional(FOUND), "why": text})
