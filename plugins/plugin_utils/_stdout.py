# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the callback ``brief`` shows the verdict of a check, so that the action ``check`` does not.

Set in Ansible's main process; the processes that it makes for tasks have it too.
"""

from __future__ import annotations

shows_verdict = False
