# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The queue view of gpu-cluster-run: which jobs and which users are on which node.

``main`` is the program gpu-cluster-jobs, which role launcher installs on every member.  It asks all members over ssh
(``ask``); there the same program answers (``here``) by what ``processes`` and ``gpus`` read.  ``answers`` checks what
came back, ``listing`` and ``overview`` make tables of it, ``stop`` and ``logs`` are commands of their own.
"""
