# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading lazy variables: what cannot be evaluated becomes a value of its own, whatever Ansible does with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables


class Undefined:
    """Like ansible-core 2.19's marker: it is handed over, and raises when it is used."""

    def __repr__(self) -> str:
        raise RuntimeError("'nope' is undefined")


class HostVariables(Mapping[str, Any]):
    """Like HostVarsVars: evaluates on access."""

    def __init__(self, **values: Any) -> None:
        self.values_by_name = values
        self.read: list[str] = []

    def __getitem__(self, name: str) -> Any:
        self.read.append(name)
        value = self.values_by_name[name]
        if isinstance(value, Exception):
            raise value
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


def read(**values: Any) -> dict[str, Any]:
    return read_variables({"n1": HostVariables(**values)}, "n1", lambda name: True)


def test_plain_values_come_through() -> None:
    assert read(a=1, b=["x", {"y": (1, None)}]) == {"a": 1, "b": ["x", {"y": [1, None]}]}


def test_an_error_on_access_has_its_reason() -> None:
    assert read(a=ValueError("vault\n is closed")) == {"a": Unreadable("vault is closed")}
    assert read(a=ValueError()) == {"a": Unreadable("ValueError")}


def test_an_undefined_value_of_new_ansible_is_found_inside_containers() -> None:
    assert read(a=Undefined(), b=[{"c": Undefined()}]) == {
        "a": Unreadable("'nope' is undefined"),
        "b": Unreadable("'nope' is undefined"),
    }


def test_an_expression_that_old_ansible_left_is_found_inside_containers() -> None:
    reason = "{{ nope }}/24 refers to something undefined"
    assert read(a="{{ nope }}/24", b={"c": ["{{ nope }}/24"]}) == {"a": Unreadable(reason), "b": Unreadable(reason)}


def test_what_is_not_wanted_is_not_evaluated() -> None:
    own = HostVariables(a=1, other=ValueError("never read"))
    assert read_variables({"n1": own}, "n1", lambda name: name == "a") == {"a": 1}
    assert own.read == ["a"]
