# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the launcher's files are on a node."""

from __future__ import annotations

CLUSTER = "/etc/gpu-cluster/cluster.json"
ENVIRONMENT = "/etc/gpu-cluster/environment"
HOSTFILE = "/etc/gpu-cluster/hostfile"
PROFILE = "/etc/profile.d/gpu-cluster.sh"
PROGRAM = "/usr/local/bin/gpu-cluster-run"
EXPLAINER = "/usr/local/bin/gpu-cluster-explain"
QUEUE = "/usr/local/bin/gpu-cluster-jobs"
#: Put into PYTHONPATH of torchrun, which finds the rendezvous in etcd there.
TORCHRUN = "/usr/local/lib/gpu-cluster/torchrun"
#: What the role etcd writes on every member for the clients of etcd.
ETCD_TLS = {
    name: f"/etc/gpu-cluster/etcd/{file}"
    for name, file in (("ca", "ca.crt"), ("cert", "client.crt"), ("key", "client.key"))
}
