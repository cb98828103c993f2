# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-cluster-run for tests: its modules as one namespace, and the file that a node gets."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any
from unittest import mock

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _launcher
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload


class Whole(ModuleType):
    """All modules of the program as one.  What a test sets has its new value in each module that has the name."""

    def __init__(self) -> None:
        super().__init__("gpu_cluster_run")
        names = [f"{_launcher.__name__}.{one.name}" for one in pkgutil.iter_modules(_launcher.__path__)]
        self.__dict__["_modules"] = [importlib.import_module(name) for name in names]
        for module in self._modules:
            self.__dict__.update({name: one for name, one in vars(module).items() if not name.startswith("__")})

    def __setattr__(self, name: str, value: Any) -> None:
        for module in self._modules:
            if name in vars(module):
                setattr(module, name, value)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """For what checks types: all names are here already."""
        raise AttributeError(f"no module of {_launcher.__name__} has {name}")


def text(changes: Mapping[str, str] | None = None) -> str:
    """The file that a node gets.  changes: lines of its modules to others, each of which is there once."""
    main = importlib.import_module(f"{_launcher.__name__}.main")
    left = dict(changes or {})
    real = payload.source

    def changed(module: ModuleType) -> str:
        found = real(module)
        for line in [one for one in left if f"\n{one}\n" in found]:
            found = found.replace(f"\n{line}\n", f"\n{left.pop(line)}\n")
        return found

    with mock.patch.object(payload, "source", changed):
        made = payload.script(main, "gpu-cluster-run, of the collection baremetal.gpu_cluster")
    assert not left, f"no module has {list(left)}"
    return made
