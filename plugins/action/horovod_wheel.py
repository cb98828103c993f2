# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module of the same name, and clean the text of its answer."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._relay import ActionModule

__all__ = ["ActionModule"]
