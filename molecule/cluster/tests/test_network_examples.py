# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every documented example, through the node's own NetworkManager: it reads each profile and writes the same back."""

from __future__ import annotations

import base64
import configparser
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_cluster import PROJECT, Cluster

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import keyfile, rails, spec

EXAMPLES = sorted((PROJECT / "docs" / "examples" / "network").glob("*.yml"))
#: What NetworkManager writes in another way, or only reads: the same meaning.
REWRITTEN = {("ipv4", "gateway"), ("ipv6", "gateway"), ("ipv4", "address1"), ("ipv6", "address1")}


def profiles(path: Path) -> list[str]:
    """The texts of all profiles that an example makes."""
    (play,) = yaml.safe_load(path.read_text())
    entries: list[Any] = play["roles"][0]["vars"].get("static_network_interfaces", [])
    interfaces = spec.parse_interfaces(entries)
    found = rails.find(interfaces)
    return [file.text for one in interfaces for file in keyfile.keyfiles(one, found.get(one.label))]


def parsed(text: str) -> dict[tuple[str, str], str]:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.read_string(text)
    return {(section, key): value for section in parser.sections() for key, value in parser[section].items()}


#: What newer ones than 1.42 write under another name.
RENAMED = {"autoconnect-slaves": "autoconnect-ports", "master": "controller", "slave-type": "port-type"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_network_manager_reads_the_profiles_of_an_example(cluster: Cluster, path: Path) -> None:
    for text in profiles(path):
        coded = base64.b64encode(text.encode()).decode()
        # Changes nothing: reads a profile from its input, and prints it.
        command = f"echo {coded} | base64 -d | nmcli --offline connection modify connection.autoconnect yes"
        ours, theirs = parsed(text), parsed(cluster.shell("n1", command))
        for key, value in ours.items():
            if key in REWRITTEN:
                joined = ",".join(one for name, one in sorted(theirs.items()) if name[0] == key[0])
                assert value in joined, f"{key}: {value} not in {joined}"
            else:
                found = theirs.get(key, theirs.get((key[0], RENAMED.get(key[1], key[1]))))
                assert found == value, f"{key} of {path.name}: {value!r} became {found!r}\n{text}"
