# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package index that pip on this node asks when nobody names one: that of its configuration, or its default. Pure.

https://pip.pypa.io/en/stable/topics/configuration/ has the files, in the order in which pip reads them; the last wins.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Mapping

#: The text of a file, None where there is none.
Read = Callable[[str], "str | None"]

GLOBAL = "/etc/pip.conf"
#: Sections that `pip download` and `pip install` read; the second wins.
SECTIONS = ("global", "install")
#: With one of these pip looks elsewhere too, or gets there in another way than the questions of this role do.
NOT_ASKED = ("extra-index-url", "find-links", "no-index", "proxy", "cert", "client-cert", "trusted-host")

#: With one of these pip does not ask its default index, or not alone.
SOURCES = ("index-url", "extra-index-url", "find-links", "no-index")


def _files(environ: Mapping[str, str], home: str) -> list[str]:
    folders = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    own = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    files = [*(os.path.join(folder, "pip", "pip.conf") for folder in folders.split(":")), GLOBAL]
    files += [os.path.join(home, ".pip", "pip.conf"), os.path.join(own, "pip", "pip.conf")]
    named = environ.get("PIP_CONFIG_FILE", "")
    # Python's os.devnull as the file turns all of them off.
    return [] if named == os.devnull else [*files, *([named] if named else [])]


def _settings(texts: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    """All settings by their names in files.  Raises configparser.Error."""
    sections: dict[str, dict[str, str]] = {name: {} for name in SECTIONS}
    for text in texts:
        parser = configparser.RawConfigParser()
        parser.read_string(text)
        for name, found in sections.items():
            if parser.has_section(name):
                found.update((key.replace("_", "-"), value) for key, value in parser.items(name))
    variables = {name: value for name, value in environ.items() if name.startswith("PIP_")}
    named = {name[len("PIP_") :].lower().replace("_", "-"): value for name, value in variables.items()}
    return {**sections["global"], **sections["install"], **named}


def names_a_source(environ: Mapping[str, str], home: str, read: Read) -> bool:
    """Whether pip's configuration on this node names a source of packages, or this cannot be told."""
    try:
        found = _settings([read(path) or "" for path in _files(environ, home)], environ)
    except (OSError, configparser.Error):
        return True
    return any(found.get(name, "").strip() for name in SOURCES)


def index(environ: Mapping[str, str], home: str, read: Read, default: str) -> str:
    """The address without a slash at its end; empty where one index alone does not decide, or this cannot be told."""
    try:
        found = _settings([read(path) or "" for path in _files(environ, home)], environ)
    except (OSError, configparser.Error):
        return ""
    address = found.get("index-url", default).strip().rstrip("/")
    # A password in it is nothing to write into a message.
    return "" if "@" in address or any(found.get(name, "").strip() for name in NOT_ASKED) else address
