# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the machines of an inventory are, and the inventory that describes them.

``read`` and what it imports run on a machine and change nothing there; everything else is pure and runs on the
controller.
"""
