# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One way to bring our Python to a node: a program, and of this collection everything that it imports.

``write`` lays it out as files for a program that stays on the node.  ``packed`` makes one text of it for a program that
is sent and leaves no file; this module goes with it and is executed there first, so that it imports out of the text.
"""

from __future__ import annotations

import base64
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import py_compile
import re
import runpy
import sys
import traceback
import zlib
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

COLLECTION = "ansible_collections.baremetal.gpu_cluster.plugins."
#: An import of something of this collection: its module, and the names in parentheses or in the rest of the line.  To
#: find those of a worker takes a node 2 ms, and 45 ms in syntax trees.
IMPORT = re.compile(rf"^[ \t]*from ({re.escape(COLLECTION)}[\w.]+) import (?:\(([^)]*)\)|(.+))", re.MULTILINE)
WORD = re.compile(r"\w+")
#: For ``python -c``: standard input is a line with the arguments of ``answer``, and then what ``packed`` has made.
READER = (
    "import json,sys,zlib;r=sys.stdin.buffer;g=json.loads(r.readline());s=json.loads(zlib.decompress(r.read()));"
    "n={'__name__':'payload'};exec(s.pop(''),n);n['answer'](s,**g)"
)
#: For ``python -c``: the first argument is what ``packed`` has made, in base64, and the second the program's name.
RUNNER = (
    "import base64,json,sys,zlib;s=json.loads(zlib.decompress(base64.b64decode(sys.argv.pop(1))));"
    "n={'__name__':'payload'};exec(s.pop(''),n);n['run'](s,sys.argv.pop(1))"
)


def source(module: ModuleType) -> str:
    """The text of a module, wherever it was imported from: a checkout, a collection, an archive, or a node's text."""
    loader = module.__spec__.loader if module.__spec__ else None
    found = loader.get_source(module.__name__)  # type: ignore[union-attr]
    if not found:
        raise ImportError(f"the source of {module.__name__} is not to be had")
    return found.decode("utf-8") if isinstance(found, bytes) else str(found)


def needed(programs: Sequence[ModuleType]) -> dict[str, str]:
    """Name to source, of these modules and of those that they import."""
    found: dict[str, str] = {}
    waiting = list(programs)
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found:
            found[module.__name__] = source(module)
            waiting += _imported(found[module.__name__])
    return dict(sorted(found.items()))


def _imported(text: str) -> Iterator[ModuleType]:
    for module, in_parentheses, in_line in IMPORT.findall(text):
        importlib.import_module(module)  # A function may import it, and has not run here.
        for name in [module, *(f"{module}.{word}" for word in WORD.findall(in_parentheses or in_line))]:
            # What is taken out of a module is no module, and packages hold no code.
            if name in sys.modules and not hasattr(sys.modules[name], "__path__"):
                yield sys.modules[name]


def write(directory: str, programs: Sequence[ModuleType], mode: int) -> None:
    """Lay out the code of programs as the packages it was imported from, and the bytecode beside it.

    Of the programs none writes bytecode, wherever it imports from; without this each would compile the code anew.
    mode: of the files.
    """
    for name, text in needed(programs).items():
        folder, _slash, file = os.path.join(directory, *name.split(".")).rpartition("/")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{file}.py")
        with open(path, "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
        bytecode = os.path.join(folder, "__pycache__", f"{file}.{sys.implementation.cache_tag}.pyc")
        py_compile.compile(path, bytecode, doraise=True)


def packed(programs: Sequence[ModuleType]) -> bytes:
    """The code of programs, for ``READER`` and ``RUNNER``."""
    own = source(sys.modules[__name__])
    return zlib.compress(json.dumps({"": own, **needed(programs)}).encode(), 9)


#: A program that stays on a node as one file.
SCRIPT = """\
#!/usr/bin/python3 -I
# {title}.
import base64
import json
import zlib

sources = json.loads(zlib.decompress(base64.b64decode("{packed}")))
names = {{"__name__": "payload"}}
exec(sources.pop(""), names)
names["run"](sources, "{program}")
"""


def script(program: ModuleType, title: str) -> str:
    """A program as the text of one file, for Python 3.9 or newer of the node.  title: a line about it."""
    text = base64.b64encode(packed([program])).decode("ascii")
    return SCRIPT.format(title=title, packed=text, program=program.__name__)


class Sources(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """Imports out of a dictionary, name to source; whatever is above a name there is a package without code."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._packages = {name.rsplit(".", depth)[0] for name in sources for depth in range(1, name.count(".") + 1)}

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._sources and fullname not in self._packages:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=self.is_package(fullname))

    def is_package(self, fullname: str) -> bool:
        return fullname not in self._sources

    def get_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".py"

    def get_source(self, fullname: str) -> str:
        return self._sources.get(fullname, "")


def run(sources: Mapping[str, str], program: str) -> None:
    """On the node: run a program as ``python -m`` does."""
    sys.meta_path.insert(0, Sources(sources))
    runpy.run_module(program, run_name="__main__")


def answer(sources: Mapping[str, str], program: str, command: str, arguments: dict[str, Any]) -> None:
    """On the node: print the result of a program as JSON, and end.

    program: a module with ``run_step(run, params)``, as that of its module: run starts commands as
    ``AnsibleModule.run_command`` does, params are its arguments.  command: the module that has ``run_command``.

    What is in memory goes with the process: to look for garbage in it, and to take it apart at the end, costs a node a
    tenth of the whole.
    """
    gc.disable()
    sys.meta_path.insert(0, Sources(sources))
    try:
        start = importlib.import_module(command).run_command
        result = importlib.import_module(program).run_step(start, arguments)
    except Exception:
        # As a module that breaks: who reads it has to see where.
        result = {"failed": True, "msg": traceback.format_exc()}
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    os._exit(0)
