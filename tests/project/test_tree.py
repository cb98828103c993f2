# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing in the tree belongs to the machine on which it was written."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import project
import pytest
import yaml

# Published addresses that a user of the collection needs, whatever this machine happens to use.
PUBLIC = ("centos.org", "fedoraproject.org", "github.com", "nvidia.com", "pytorch.org", "quay.io")


def output_of(*command: str) -> str:
    """What a command prints, empty where this machine does not have it."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/").stdout
    except FileNotFoundError:
        return ""


def package_configuration() -> str:
    """What this machine's package tools are told about where packages are."""
    apt = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in apt if file.is_file()]
    return "\n".join([*texts, output_of("pip", "config", "list"), output_of("npm", "config", "get", "registry")])


def configured_hosts(configuration: str) -> set[str]:
    """The hosts in it, without those that are published for everybody."""
    urls = re.findall(r"https?://[^\s\"']+", configuration)
    hosts = {urlsplit(url).hostname or "" for url in urls}
    return {host for host in hosts if host and not host.endswith(PUBLIC)}


def configured_folders(configuration: str) -> set[str]:
    """The local folders from which packages are taken."""
    found = re.findall(r"(?:file://|find-links=')(/[^\s\"']+)", configuration)
    return {folder.rstrip("/") for folder in found}


def machine_folders() -> set[str]:
    """Where this checkout and its user live, unless that is a folder everybody has."""
    folders = {f"{project.ROOT.parent}/", f"{Path.home()}/"}
    return {folder for folder in folders if folder not in {"//", "/", "/tmp/", "/srv/", "/opt/", "/home/"}}


def forbidden() -> list[str]:
    """Every word that would tie the tree to this machine."""
    configuration = package_configuration()
    return sorted(configured_hosts(configuration) | configured_folders(configuration) | machine_folders())


@pytest.mark.parametrize("word", forbidden())
def test_no_file_names_this_machine(word: str) -> None:
    """Neither its paths nor the mirrors from which it takes packages."""
    pattern = re.compile(rf"(?<![\w.-]){re.escape(word)}")
    found = []
    for file in project.source_files():
        path = project.ROOT / file
        if path.is_symlink() or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{file}:{number}: {line.strip()}")
    assert found == []


def test_configuration_is_understood() -> None:
    """The words are found in configurations as package tools print them."""
    configuration = (
        "URIs: http://mirror.example/debian\n"
        "global.extra-index-url='file:///srv/index https://developer.download.nvidia.com/x'\n"
        ":env:.find-links='/srv/wheels'\n"
    )
    assert configured_hosts(configuration) == {"mirror.example"}
    assert configured_folders(configuration) == {"/srv/index", "/srv/wheels"}


def test_every_python_file_says_its_license() -> None:
    """The same three lines on top of every Python file."""
    head = (
        "# Copyright: (c) 2026, baremetal.gpu_cluster contributors\n"
        "# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)\n"
        "# SPDX-License-Identifier: GPL-3.0-or-later\n"
    )
    shebang = re.compile(r"\A#!.*\n(?:# -\*- .*\n)?")
    texts = {
        str(file): (project.ROOT / file).read_text(encoding="utf-8")
        for file in project.source_files()
        if file.suffix == ".py"
    }
    assert [name for name, text in texts.items() if text and not shebang.sub("", text).startswith(head)] == []


def test_ansible_lint_leaves_out_what_git_ignores() -> None:
    """It reads only a file .gitignore in the folder it walks, so it meets the files of a running lab further down."""
    ignored = (project.ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    excluded = yaml.safe_load((project.ROOT / ".ansible-lint").read_text(encoding="utf-8"))["exclude_paths"]
    missing = {line[1:].rstrip("/") for line in ignored if line.startswith("/")} - {one.rstrip("/") for one in excluded}
    assert missing == set()
