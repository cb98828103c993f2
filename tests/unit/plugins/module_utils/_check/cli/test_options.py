# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the command check: what they give, and what is refused."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import options
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.codes import UsageError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import settings

NEEDED = ("--hosts", "n[1-3]", "--interface", "ens1f0")


def read(*words: str, needed: tuple[str, ...] = NEEDED) -> options.Wanted:
    parser = argparse.ArgumentParser()
    options.add(parser)
    return options.read(parser.parse_args([*needed, *words]))


def problems(*words: str, needed: tuple[str, ...] = NEEDED) -> list[str]:
    with pytest.raises(UsageError) as caught:
        read(*words, needed=needed)
    return caught.value.problems


def test_the_least_that_is_needed() -> None:
    found = read()
    assert found.settings.members == ["n1", "n2", "n3"] and found.settings.interface == "ens1f0"
    assert (found.python, found.ssh_port, found.user, found.local, found.sudo) == ("/usr/bin/python3", 0, "", "", False)
    assert found.play.forks == 32 and found.settings.port_plan["mpi"] == {"first": 61000, "last": 64999}
    hosts, interface, world = problems(needed=())
    assert hosts == "--hosts is missing: which nodes are checked"
    assert interface == "--interface is missing: the network card of the data network"
    assert world.startswith("members has 0 member(s), an all_reduce needs at least 2")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("strict=true", True),
        ("user=train", "train"),
        ("user=true", "true"),
        ("openmpi=false", "false"),
        ("sizes_bytes=[4, 8192]", [4, 8192]),
        ("probe_timeout_seconds=1.5", 1.5),
        ('labels={"n1": {"rack": "r1"}}', {"n1": {"rack": "r1"}}),
        ("torch_python=/opt/a b=c/python", "/opt/a b=c/python"),
        ("rendezvous_first=29450", 29450),
    ],
)
def test_a_setting(text: str, value: Any) -> None:
    assert getattr(read("--set", text).settings, text.partition("=")[0]) == value


def test_every_setting_has_an_option() -> None:
    assert options.NOT_SET.keys() < settings.READERS.keys()
    for name in options.NOT_SET:
        assert problems("--set", f"{name}=1") == [options.ERR_SET_OPTION % (name, options.NOT_SET[name])]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "samples=99"], "samples is 99, expected 1 to 32."),
        (["--set", "samples=x"], "samples is 'x', expected a whole number."),
        (["--set", "sizes_bytes=[["], "sizes_bytes is '[[', expected a list of whole numbers."),
        (["--set", "sizes_bytes=" + "[" * 100000], "expected a list of whole numbers."),
        (["--set", "sample=4"], "--set: there is no setting 'sample', did you mean samples?"),
        (["--set", "samples"], "--set is 'samples', expected NAME=VALUE"),
        (["--set", "samples=4", "--set", "samples=5"], "--set: samples is set twice"),
        (["--set", "torch_python=~/python"], "--set torch_python is '~/python', expected an absolute path"),
        (["--set", "openmpi_prefix=mpi"], "--set openmpi_prefix is 'mpi', expected an absolute path"),
        (["--python", "python3"], "--python is 'python3', expected an absolute path"),
        (["--python=-c"], "--python is '-c', expected an absolute path"),
        (["--interface", "a;b"], "--interface is 'a;b', expected the name"),
        (["--interface=-x"], "--interface is '-x', expected the name"),
        (["--user=-oProxyCommand=id"], "--user is '-oProxyCommand=id', expected the name of a user"),
        (["--set", "user=a;b"], "--set user is 'a;b', expected the name of a user"),
        (["--set", "user=-x"], "--set user is '-x', expected the name of a user"),
        (["--user", "a b"], "--user is 'a b', expected the name of a user"),
        (["--ssh-port", "0"], "--ssh-port is '0', expected 1 to 65535"),
        (["--ssh-port", "22 -v"], "--ssh-port is '22 -v', expected 1 to 65535"),
        (["--ssh-option", "x"], "--ssh-option is 'x', expected NAME=VALUE"),
        (["--ssh-option", "User=a\nProxyCommand=id"], "expected NAME=VALUE as in ssh_config(5)"),
        (["--forks", "1000"], "--forks is '1000', expected 1 to 512"),
        (["--forks", "²"], "--forks is '²', expected 1 to 512"),
        (["--local", "n9"], "--local is 'n9', expected one of the hosts"),
        (["--limits", "/none"], "/none cannot be read: No such file or directory"),
        (["--port-plan", "/none"], "/none cannot be read: No such file or directory"),
        (["--address-file", "/none"], "/none cannot be read: No such file or directory"),
    ],
)
def test_what_is_refused(words: list[str], said: str) -> None:
    found = problems(*words)
    assert any(said in one for one in found), found


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--limits", "{", "is no JSON"),
        ("--limits", "[" * 100000, "is no JSON"),
        ("--limits", '{"size": []}', "limits.size"),
        ("--port-plan", "[]", "expected a dictionary with the keys"),
        ("--port-plan", '{"mpi": "9-1"}', "the first port is above the last one"),
        ("--address-file", "n1 x\n", "line 1: 'x' is not the address of a host"),
        ("--address-file", "n1 10.0.0.1\nn2 10.0.0.1\n", "n1 and n2 have the same address"),
    ],
)
def test_a_file_that_is_refused(tmp_path: Path, option: str, text: str, said: str) -> None:
    (tmp_path / "file").write_text(text)
    found = problems(option, str(tmp_path / "file"))
    assert len(found) == 1 and said in found[0]


def test_all_problems_at_once() -> None:
    found = problems("--set", "samples=99", "--forks", "x", "--local", "n9", "--hosts", "n1", "--python", "p")
    assert len(found) == 5
    # A wrong port is named once, though the port plan has it too.
    assert problems("--ssh-port", "0") == [options.ERR_PORT % "'0'"]
