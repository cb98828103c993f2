# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of etcd for jobs whose rendezvous outlives any node.

``spec`` checks the role's variables (pure), ``authority`` makes the certificates on the controller, ``client`` asks
members, ``member`` starts one of them.
"""
