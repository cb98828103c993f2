# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that probes from a node.  Its worker starts it, so that all nodes probe at once, whatever ``forks`` is.

    prober.py /run/gpu-cluster-check/RUN

Reads ``job.json`` and ``probe.json`` of the run, and leaves what it found in ``out/links.json``, whole or not at all.
Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe_links, worker
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.probe_dialing import Settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_answer


def probe(directory: str) -> None:
    """Probe as the files of the run say."""
    job, asked = (_read(os.path.join(directory, name)) for name in ("job.json", worker.PROBE))
    settings = Settings(job["nonce"], job["address"], asked["timeout_seconds"])
    found = probe_links.survey(asked["book"], asked["host"], settings)
    first = found.pop(probe_links.FIRST_RAIL)
    further = [{"name": name, "links": there} for name, there in found.items()]
    worker.write_json(os.path.join(directory, probe_answer.PATH), {"links": first, "rails": further})


def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as stream:
        return dict(json.load(stream))


if __name__ == "__main__":
    probe(sys.argv[1])
    # The answer is there: what is in memory need not be taken apart.
    os._exit(0)
