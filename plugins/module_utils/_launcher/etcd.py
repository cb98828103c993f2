# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rendezvous in etcd: torchrun's plugin, and whether etcd answers a node."""

from __future__ import annotations

import glob
import json
import os
import queue
import threading
from collections.abc import Mapping
from typing import Any

#: What an agent waits for an answer of etcd before it takes it for dead.
ETCD = 3.0
ETCD_PORT = 2379
#: torchrun's plugin for etcd, which the role installs: a module, and the name under which torchrun finds it.
PLUGIN = "/usr/local/lib/gpu-cluster/torchrun"
PLUGIN_MODULE = "gpu_cluster_etcd.py"
PLUGIN_ENTRY = "gpu_cluster_etcd-*.dist-info/entry_points.txt"
PLUGIN_BACKEND = "gpu-cluster-etcd"
#: torchrun with the plugin in an image, whose own PYTHONPATH stays as it is.
TORCHRUN_WITH_PLUGIN = """\
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("torch.distributed.run", run_name="__main__", alter_sys=True)
"""


def with_plugin(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a torchrun that shall find the plugin for etcd."""
    return {**environ, "PYTHONPATH": os.pathsep.join(filter(None, [PLUGIN, environ.get("PYTHONPATH")]))}


def without_plugin(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a script: the plugin is none of its business."""
    path = os.pathsep.join(one for one in environ.get("PYTHONPATH", "").split(os.pathsep) if one != PLUGIN)
    rest = {name: value for name, value in environ.items() if name != "PYTHONPATH"}
    return {**rest, "PYTHONPATH": path} if path else rest


def plugin_problems() -> list[str]:
    """Whether torchrun will find the plugin for etcd."""
    wanted = (PLUGIN_MODULE, PLUGIN_ENTRY)
    missing = [name for name in wanted if not glob.glob(os.path.join(PLUGIN, name))]
    if not missing:
        return []
    return [
        f"{PLUGIN} has no {' and no '.join(missing)}, torchrun's plugin for etcd: run site.yml with --tags launcher"
    ]


def etcd_problems(etcd: Mapping[str, Any], lost_after: float) -> list[str]:
    """Why etcd can't be used from this node; empty when one member answers for a majority of them."""
    seconds = min(ETCD, lost_after / 4)  # To connect, and once more to read: a node that is silent for longer is lost.
    unreadable = [f"{etcd[part]} can't be read" for part in ("ca", "cert", "key") if not os.access(etcd[part], os.R_OK)]
    if unreadable:
        return [f"{problem}: run site.yml with --tags etcd" for problem in unreadable]
    answers: queue.Queue[str] = queue.Queue()
    for where in etcd["endpoints"]:
        threading.Thread(target=lambda where=where: answers.put(ask_etcd(where, etcd, seconds)), daemon=True).start()
    problems = []
    for _where in etcd["endpoints"]:
        problem = answers.get()
        if not problem:
            return []
        problems.append(problem)
    return [f"no member of etcd answers for a majority: {'; '.join(sorted(problems))}"]


def ask_etcd(where: str, etcd: Mapping[str, Any], seconds: float) -> str:
    """Why a member of etcd does not answer.  Such a read needs a majority (etcd.io, v3 API guarantees)."""
    # Only here: the parent of a rank runs with the Python of an image, which may be without libssl.
    import http.client
    import ssl

    host, _colon, port = where.rpartition(":")
    body = json.dumps({"key": "Z3B1LWNsdXN0ZXIvaGVsbG8="})  # gpu-cluster/hello
    try:
        context = ssl.create_default_context(cafile=etcd["ca"])
        context.load_cert_chain(etcd["cert"], etcd["key"])
        connection = http.client.HTTPSConnection(host.strip("[]"), int(port), timeout=seconds, context=context)
        try:
            connection.request("POST", "/v3/kv/range", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return "" if answer.status == 200 else f"{where} answers with status {answer.status}"
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"{where}: {error or type(error).__name__}"
