# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the launcher finds on a node: the cluster, its host file, and the environment of jobs.

``cluster`` reads and checks what is the same on all members, ``environment`` what a node's jobs get, ``fabric`` finds
the node's interface, ``texts`` renders the files: these are pure. ``plan`` asks the node, ``replacement`` writes.
"""
