# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether anybody has edited a file that a playbook has written."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._generated_file import is_unedited, mark

TEXT = "---\ngpu_cluster:\n  hosts:\n    gpu01: {ansible_host: 10.1.1.11}\n"
WRITTEN = mark(TEXT, "baremetal.gpu_cluster.init")


def test_a_text_with_its_mark_is_unedited() -> None:
    assert is_unedited(WRITTEN) and WRITTEN.endswith(TEXT)
    assert is_unedited(mark("", "baremetal.gpu_cluster.discover"))


@pytest.mark.parametrize(
    "edited",
    [
        WRITTEN + "\n",
        WRITTEN[:-1],
        WRITTEN.replace("10.1.1.11", "10.1.1.12"),
        WRITTEN.replace("\n", "\r\n"),
        "\n" + WRITTEN,
        TEXT,
        "",
        WRITTEN.partition("\n")[0],
        WRITTEN.replace("sha256 ", "sha256 0"),
    ],
)
def test_any_edit_is_seen(edited: str) -> None:
    assert not is_unedited(edited)
