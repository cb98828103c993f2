# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long launcher and agents wait for each other, where both or several modules need it."""

from __future__ import annotations

#: Seconds.  A node that is silent for --lost-after is lost; in the same time its agent gives up on the launcher.
BEAT = 2.0
CONNECT = 30.0
HOROVOD_IMPORT = 300.0  # TensorFlow from cold disks took more than 180 on an overloaded machine.
RETRY = 5.0
LOST_AFTER = 20
GRACE = 10
#: How long the first failure waits for one that arrives later but tells more (a code instead of the SIGTERM of a peer).
SETTLE = 0.5
#: What a node gets beyond the grace to say that it has stopped.
STOP_SLACK = 10.0
#: For the explanation.
EXPLAIN = 20.0
#: All ranks silent for so long is worth a look.
SILENCE = 600
