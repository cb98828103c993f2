# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which index pip asks by itself, compared with what pip says of the same files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _pip_settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf.system import read_text

PYPI = "https://pypi.org/simple"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own settings are none of the test's."""
    monkeypatch.setattr(_pip_settings, "GLOBAL", "/none")


SITE = "[global]\nindex-url = https://site.example.com/simple/\n"
USER = "[install]\nindex_url = https://user.example.com/simple\n[global]\nindex-url = https://no.example.com\n"


def pip_says(home: Path, environ: dict[str, str]) -> str:
    """The index of `pip download`, out of pip's own settings."""
    given = {"PATH": os.environ["PATH"], "HOME": str(home), **environ}
    argv = [sys.executable, "-m", "pip", "config", "list"]
    lines = subprocess.run(argv, env=given, check=True, capture_output=True, text=True).stdout.splitlines()
    found = dict(line.split("=", 1) for line in lines)
    # A variable of the environment, then the command's section, then the global one.
    for name in (":env:.index-url", "install.index-url", "global.index-url"):
        if name in found:
            return found[name].strip("'").rstrip("/")
    return PYPI


@pytest.mark.parametrize(
    ("files", "environ"),
    [
        ({}, {}),
        ({".config/pip/pip.conf": SITE}, {}),
        ({".pip/pip.conf": SITE, ".config/pip/pip.conf": USER}, {}),
        ({".pip/pip.conf": USER, ".config/pip/pip.conf": SITE}, {}),
        ({".config/pip/pip.conf": SITE}, {"PIP_INDEX_URL": "https://env.example.com/"}),
        ({".config/pip/pip.conf": SITE, "own.conf": USER}, {"PIP_CONFIG_FILE": "own.conf"}),
        ({".config/pip/pip.conf": SITE}, {"PIP_CONFIG_FILE": os.devnull}),
        ({"xdg/pip/pip.conf": SITE}, {"XDG_CONFIG_HOME": "xdg"}),
        ({"xdg/pip/pip.conf": SITE}, {"XDG_CONFIG_DIRS": "xdg"}),
    ],
)
def test_it_is_the_one_that_pip_takes(tmp_path: Path, files: dict[str, str], environ: dict[str, str]) -> None:
    environ = {**environ, **{key: str(tmp_path / value) for key, value in environ.items() if "://" not in value}}
    if not any("XDG_CONFIG_DIRS" in one for one in environ):
        environ["XDG_CONFIG_DIRS"] = str(tmp_path / "none")
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert _pip_settings.index(environ, str(tmp_path), read_text, PYPI) == pip_says(tmp_path, environ)


@pytest.mark.parametrize(
    "text",
    [
        "[global]\nextra-index-url = https://a.example.com\n",
        "[install]\nfind_links = /wheels\n",
        "[global]\nno-index = true\n",
        "[global]\nproxy = http://proxy.example.com\n",
        "[global]\nindex-url = https://user:word@a.example.com\n",
        "no settings at all",
    ],
)
def test_where_more_than_an_index_decides_nothing_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text(text)
    assert _pip_settings.index({}, str(tmp_path), read_text, PYPI) == ""
    assert _pip_settings.names_a_source({}, str(tmp_path), read_text) == ("proxy" not in text)


def test_whether_a_source_is_named(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_DIRS": str(tmp_path / "none")}
    assert not _pip_settings.names_a_source(environ, str(tmp_path), read_text)
    assert not _pip_settings.names_a_source({**environ, "PIP_NO_INDEX": "", "PIP_PROXY": "x"}, str(tmp_path), read_text)
    named = {**environ, "PIP_INDEX_URL": "https://a.example.com"}
    assert _pip_settings.names_a_source(named, str(tmp_path), read_text)
