# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program as one file, as a node has it."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import launcher_program
import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _launcher

#: Runs a file as Python would, and says what it has imported of the package.  An agent without input ends at once.
IMPORTED = """
import json, os, runpy, sys
sys.argv, os._exit = sys.argv[1:], sys.exit
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except (KeyError, SystemExit):
    pass
print(json.dumps([name.rpartition(".")[2] for name in sys.modules if "._launcher." in name]))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("program") / "gpu-cluster-run"
    found.write_text(launcher_program.text())
    found.chmod(0o755)
    return found


def run(*argv: str, **more: Any) -> subprocess.CompletedProcess[str]:
    given = {"cwd": "/", "timeout": 60, **more}
    return subprocess.run(argv, input="", capture_output=True, text=True, check=False, **given)


def test_the_file_alone_is_the_program(path: Path) -> None:
    assert run(str(path), "--help", env={"PATH": "/usr/bin:/bin"}).stdout.startswith("usage: gpu-cluster-run ")


@pytest.mark.parametrize(
    ("words", "part", "others"),
    [
        (["--rank"], {"rank"}, {"agent", "launcher", "arguments", "plan"}),
        (["--agent", "job", "{}"], {"agent"}, {"rank", "launcher", "arguments", "plan"}),
        (["--version"], {"arguments", "launcher", "plan"}, {"agent", "rank"}),
    ],
)
def test_each_of_the_three_programs_compiles_its_own_part_alone(
    path: Path, words: list[str], part: set[str], others: set[str]
) -> None:
    """All of them are compiled at every start: the rank eight times at once on a node with eight GPUs."""
    done = run(sys.executable, "-I", "-c", IMPORTED, str(path), *words)
    found = set(json.loads(done.stdout.splitlines()[-1]))
    assert part <= found and not others & found, done.stderr


def test_the_package_lists_its_modules() -> None:
    listed = re.findall(r"``(\w+)``", str(_launcher.__doc__))
    assert sorted(listed) == sorted(one.name for one in pkgutil.iter_modules(_launcher.__path__))


def test_a_copy_starts_itself_and_not_what_is_installed(path: Path, tmp_path: Path) -> None:
    """It gives its own path to ssh, ranks and containers, also when it was started by a relative one or by a link."""
    script = tmp_path / "own.py"
    script.write_text(launcher_program.text({'if __name__ == "__main__":\n    leave(main())': OWN}))
    link = tmp_path / "link"
    link.symlink_to(script)
    for word in ("own.py", "./link", str(link)):
        done = run(sys.executable, "-I", word, cwd=str(tmp_path))
        assert json.loads(done.stdout) == [os.path.realpath(script), True], done.stderr


OWN = """\
import hashlib, json
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import own_digest, own_path
os.chdir("/")
print(json.dumps([own_path(), own_digest() == hashlib.sha256(open(own_path(), "rb").read()).hexdigest()]))"""
