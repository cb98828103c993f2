# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the program prints.  Standard output is for the result, all else goes to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize


def result(text: str) -> None:
    """Print the result.  Who reads it may have gone, as ``head`` does; the exit code is the same then."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Or Python would try it once more at its end, and change the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UnicodeEncodeError:
        sys.stdout.buffer.write(text.encode("ascii", "backslashreplace"))


def warn(texts: Iterable[str], program: str = "gpu-cluster-check") -> None:
    """Lines for a person."""
    for text in texts:
        sys.stderr.write(f"{program}: {sanitize.sentence(text)}\n")
    sys.stderr.flush()
