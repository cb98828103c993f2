# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A password in an address is refused and not repeated, whichever variable or option of a module holds it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import project
import pytest
import role_readmes
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _web_addresses
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.catalogue import Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import run as torch_run

SECRET = "hunter2"
ADDRESS = f"https://user:{SECRET}@mirror.example.com/simple"
SPECS = {role.name: role_readmes.read_options(role) for role in role_readmes.role_folders()}
VARIABLES = sorted((name, option) for options in SPECS.values() for name, option in options.items())
#: What an option is that holds an address: it says so in its name or in its description.
NAMED = re.compile(r"(^|_)(url|urls|baseurl|metalink|mirror|proxy|index|find_links|gpg_key)(_|$)")
DESCRIBED = re.compile(r"https?://|\bmirror\b|\bproxy\b|\bindex\b|\bURL\b", re.IGNORECASE)

#: Folders of the node, whose descriptions speak of an index. Preflight refuses an address with a password there too.
FOLDERS = {"torch_runtime_find_links", "package_sources_wheel_folder", "wheels.folder"}


def with_secret(option: dict[str, Any]) -> Iterator[Any]:
    """Values of an option's shape, each with the address in another place."""
    kind = option.get("type", "str")
    if kind == "list" and option.get("options"):
        for value in with_secret({**option, "type": "dict"}):
            yield [value]
    elif kind == "list":
        yield [ADDRESS]
    elif kind == "dict" and option.get("options"):
        for key, inner in option["options"].items():
            for value in with_secret(inner):
                yield {key: value}
    elif kind in ("dict", "raw"):
        yield {"key": [ADDRESS]}
    else:
        yield ADDRESS


def said_of(name: str, value: Any) -> list[str]:
    """What preflight says of one variable of a host."""
    found = checks.inventory_problems({"n1": {name: value}}, ["n1"], "gpu_cluster", SPECS)
    return [problem.sentence() for problem in found if problem.variable.startswith(name)]


@pytest.mark.parametrize(("name", "option"), VARIABLES, ids=[name for name, _option in VARIABLES])
def test_no_variable_of_a_role_takes_a_password_in_an_address(name: str, option: dict[str, Any]) -> None:
    for value in with_secret(option):
        said = said_of(name, value)
        assert said, value
        assert SECRET not in json.dumps(said)


def test_a_variable_that_no_role_has_is_not_repeated_with_its_password() -> None:
    (said,) = said_of("torch_runtime_idnex_url", ADDRESS)
    assert SECRET not in said and "mirror.example.com" in said


def is_address(name: str, option: dict[str, Any]) -> bool:
    """Whether an option holds one address."""
    text = json.dumps(option.get("description", ""))
    return option.get("type", "str") == "str" and bool(NAMED.search(name) or DESCRIBED.search(text))


def test_every_variable_with_an_address_has_a_rule() -> None:
    """What is no address at all is refused as well, before a host is contacted."""
    found = {name for name, option in VARIABLES if is_address(name, option)}
    assert found - FOLDERS == set(_web_addresses.RULES), "add a rule to _web_addresses.RULES"
    for name in _web_addresses.RULES:
        assert said_of(name, "mirror.example.com/simple")


# --- modules ---------------------------------------------------------------------------------------------------------


def module_options() -> Iterator[tuple[str, str]]:
    """Module and option, of each option that holds an address."""
    for path in sorted((project.ROOT / "plugins" / "modules").glob("*.py")):
        found = re.search(r'^DOCUMENTATION = r?"""(.*?)"""', path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        assert found, path
        for name, option in nested("", yaml.safe_load(found.group(1)).get("options") or {}):
            if is_address(name.rpartition(".")[2], option) and name not in FOLDERS:
                yield path.stem, name


def nested(place: str, options: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All options with their paths."""
    for name, option in options.items():
        yield place + name, option
        yield from nested(f"{place}{name}.", option.get("suboptions") or {})


def torch(option: str) -> str:
    """What the modules of torch say."""
    params = {"requirements": ["torch==2.13.0"], "find_links": "", "index_url": "", "proxy": "", option: ADDRESS}
    with pytest.raises(torch_run.RefusedError) as caught:
        torch_run.read_inputs(params)
    return str(caught.value)


def repository(option: str) -> str:
    """What is said of an entry of the list of repositories."""
    entry = {"id": "site", "gpg_key": "/k", "gpg_fingerprints": ["0" * 40], option: ADDRESS}
    _specs, problems = spec.read_specs([entry], {"/k": "the key"}, Node(9, "9", "x86_64"))
    return " ".join(problem.sentence() for problem in problems if problem.variable.endswith(option))


def setting(option: str) -> str:
    """What is said of a setting for all repositories, and of the index."""
    wrong = [*spec.setting_problems(ADDRESS, "", 5), *spec.index_problems(ADDRESS)]
    return " ".join(problem.sentence() for problem in wrong if problem.variable.endswith(option))


def horovod(option: str) -> str:
    """What horovod_wheel says of it."""
    names = ("find_links", "index_url", "proxy", "version", "sha256", "local_version", "python", "mpi_prefix")
    params = {**dict.fromkeys(names, ""), "torch": "torch==2.13.0", option: ADDRESS}
    with pytest.raises(torch_run.RefusedError) as caught:
        torch_run.horovod_wheel(params, check_mode=True)
    return str(caught.value)


#: Who refuses what.
REFUSING: dict[tuple[str, str], Callable[[str], str]] = {
    ("package_repositories", "proxy"): setting,
    ("package_repositories", "wheels.index_url"): setting,
    **{
        ("package_repositories", f"repositories.{name}"): repository
        for name in ("baseurl", "metalink", "gpg_key", "proxy")
    },
    **{("torch_environment", name): torch for name in ("find_links", "index_url", "proxy")},
    **{("horovod_wheel", name): horovod for name in ("find_links", "index_url", "proxy")},
    **{("torch_lock", name): torch for name in ("find_links", "index_url", "proxy")},
}


def test_every_option_of_a_module_that_holds_an_address_refuses_a_password() -> None:
    assert set(module_options()) == set(REFUSING)
    for (_module, option), refuse in REFUSING.items():
        said = refuse(option.rpartition(".")[2])
        assert _web_addresses.ERR_SECRET in said and SECRET not in said, (option, said)


def test_the_rules_are_the_only_ones() -> None:
    """No second rule about users in addresses beside the one."""
    folder = Path(project.ROOT) / "plugins"
    users = [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*.py"))
        if re.search(r"\.(username|password)\b", path.read_text(encoding="utf-8"))
    ]
    assert users == []
