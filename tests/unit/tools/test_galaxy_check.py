# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as a complaint of galaxy-importer."""

from __future__ import annotations

import galaxy_check

LOG = """Importing with galaxy-importer 0.4.44
Loading module_utils _check.engine.ERROR
WARNING: ERROR    Failed to find baremetal.gpu_cluster.inventory playbook.
ERROR: Invalid collection metadata.
Importer processing completed successfully
"""


def test_warnings_and_errors_are_complaints() -> None:
    assert galaxy_check.complaints(LOG) == [
        "WARNING: ERROR    Failed to find baremetal.gpu_cluster.inventory playbook.",
        "ERROR: Invalid collection metadata.",
    ]
