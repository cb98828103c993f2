# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a probe leaves on its node, in the part of the run's folder that belongs to the user of the ranks.

Standard library only; it is part of the payload.
"""

from __future__ import annotations

import os

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import (
    count,
    each,
    number,
    optional,
    port,
    text,
)

#: Below the run's folder.
PATH = os.path.join("out", "links.json")
#: A thousand nodes with three rails, a dozen closed ports on each link: 4 MB.
MOST_BYTES = 64 << 20

#: What ``links.failure`` returns.
_FAILURE = shape.record(
    {"port": port, "range": text, "result": text, "milliseconds": number},
    {"passed_bytes": count, "stalled_bytes": count, "said": text},
)
_REQUESTS = shape.record({"sent": count, "lost": count, "worst_milliseconds": number})
#: What ``links.link`` returns.
_LINK = shape.record(
    {
        "host": text,
        "probes": count,
        "milliseconds": optional(number),
        "bytes_per_second": optional(count),
        "retransmits": optional(count),
        "failures": each(_FAILURE),
        "blocked": each(shape.record({"first": port, "last": port, "result": text})),
        "searched": each(lambda ends: each(port)(ends) and len(ends) == 2),
        "unheard": each(port),
    },
    {"requests": _REQUESTS},
)
_RAIL = shape.record({"name": text, "links": each(_LINK)})
#: Whether this is what ``prober.py`` writes, and no more: the user of the ranks could have written anything.
is_answer = shape.record({"links": each(_LINK), "rails": each(_RAIL)})
