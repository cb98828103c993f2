# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-test sanity, over a clean copy of what users install.

That is what its rules are for; tests and tools have ruff and mypy. ansible-test wants a folder whose real path ends in
ansible_collections/NAMESPACE/NAME. It bootstraps pip from a host on the internet; where that host cannot be reached,
Python's own ensurepip stands in.
"""

from __future__ import annotations

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import checks
import project
from checks import Tally

BOOTSTRAP = "get_pip_24_2.py"
BOOTSTRAP_URL = "https://ci-files.testing.ansible.com/ansible-test/get-pip-24.2.py"
BOOTSTRAP_STAND_IN = """# Stands in for the file that ansible-test downloads: pip from Python's own ensurepip.
import os, subprocess, sys
env = dict(os.environ)
subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"], stdout=subprocess.DEVNULL)
args = [a for a in sys.argv[1:] if a not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "--quiet"] + args, env=env))
"""
# The Pythons of managed nodes (EL9, EL10): modules must at least compile and import there. Between them is our own.
OLDEST_NODE_PYTHON, NEWEST_NODE_PYTHON = "3.9", "3.12"
ON_NODES = ["--test", "compile", "--test", "import"]
OWN_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
#: What tells the same as another part, and takes two thirds of the time. ruff has the rules PLE and PLW of pylint, and
#: E and W of pep8; mypy has types; antsibull-docs reads the documentation of all plugins with ansible-doc; the oldest
#: Python of managed nodes imports what nodes get, and the part `oldest` what stays on the controller.
ELSEWHERE = ("pylint", "pep8", "ansible-doc", "import")
FAILED_TESTS = re.compile(r"The (\d+) sanity test\(s\) listed below \(out of \d+\) failed")


def run() -> Tally:
    """Every sanity test that no other part stands for, and what the oldest Python of managed nodes must accept."""
    skipped = [word for name in ELSEWHERE for word in ("--skip-test", name)]
    return _run([(OWN_PYTHON, skipped), (OLDEST_NODE_PYTHON, ON_NODES)])


def run_longest() -> Tally:
    """The others, and what the newest Python of managed nodes must accept."""
    others = [word for name in ELSEWHERE for word in ("--test", name)]
    return _run([(OWN_PYTHON, others), (NEWEST_NODE_PYTHON, ON_NODES)])


def _run(selections: list[tuple[str, list[str]]]) -> Tally:
    """Runs of ansible-test on a copy of the collection: with which Python, and which of its tests."""
    home = prepare_home()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ansible_collections" / project.NAMESPACE / project.NAME
        copy_shipped(copy)
        return checks.total([ansible_test(copy, home, version, selection) for version, selection in selections])


def copy_shipped(copy: Path) -> None:
    """What users install, and what ansible-test reads itself."""
    project.copy_sources(copy)
    for path in [copy / "molecule", copy / "tools", *(copy / "tests").iterdir()]:
        if path.is_dir() and path.name != "sanity":
            shutil.rmtree(path)


def ansible_test(copy: Path, home: Path, version: str, selection: list[str]) -> Tally:
    """One run of ansible-test; each of its tests counts."""
    interpreter = find_python(version)
    if interpreter is None:
        checks.say(f"sanity on Python {version} skipped: no python{version} on this machine")
        return checks.SKIPPED
    environment = project.tool_environment(HOME=str(home))
    environment["PATH"] = f"{interpreter.parent}{os.pathsep}{environment['PATH']}"
    argv = [str(project.BIN / "ansible-test"), "sanity", "--python", version, "--color", "no", *selection]
    checks.say(f"ansible-test: {' '.join(argv[1:])}")
    process = subprocess.Popen(
        argv, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = []
    for line in process.stdout or ():
        print(line, end="", flush=True)
        lines.append(line)
    return checks.with_exit_code(count("".join(lines)), process.wait())


def count(output: str) -> Tally:
    """Count the tests that ansible-test says it ran, and those that it says failed."""
    started = len(re.findall(r'^Running sanity test "', output, re.MULTILINE))
    without_tool = len(re.findall(r"^WARNING: Required program .* not found", output, re.MULTILINE))
    failures = FAILED_TESTS.search(output)
    single = re.search(r"^(ERROR|FATAL): The .* sanity test .*failed", output, re.MULTILINE)
    failed = int(failures.group(1)) if failures else int(bool(single))
    errors = "\n".join(re.findall(r"^(?:ERROR|FATAL): .*$", output, re.MULTILINE))[: checks.MESSAGE_CHARACTERS]
    texts = (f"FAILED: {errors}",) if failed else ()
    return Tally(passed=started - failed - without_tool, failed=failed, skipped=without_tool, failures=texts)


def find_python(version: str) -> Path | None:
    """An interpreter of that version that really starts (version managers put stubs on PATH that do not)."""
    if version == OWN_PYTHON:
        return Path(sys.executable)
    name = f"python{version}"
    managed = sorted(Path(os.environ.get("PYENV_ROOT", "")).glob(f"versions/{version}.*/bin/{name}"))
    on_path = shutil.which(name)
    for candidate in [*([Path(on_path)] if on_path else []), *managed]:
        if subprocess.run([candidate, "-c", ""], check=False, capture_output=True).returncode == 0:
            return candidate
    return None


def prepare_home() -> Path:
    """A home of its own in the cache: ansible-test's environments stay out of the tree and out of the user's home."""
    home = project.cache_dir() / "ansible-test"
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    write_pip_configuration(home / ".config" / "pip" / "pip.conf")
    if not (cache / BOOTSTRAP).exists() and not reachable(BOOTSTRAP_URL):
        (cache / BOOTSTRAP).write_text(BOOTSTRAP_STAND_IN, encoding="utf-8")
    return home


def write_pip_configuration(path: Path) -> None:
    """Hand pip's configuration on as a file: ansible-test drops it from the environment."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    configuration = configparser.RawConfigParser()
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):  # the environment wins
        name, value = line.split("=", 1)
        section, key = name.replace(":env:", "global").split(".", 1)
        if not configuration.has_section(section):
            configuration.add_section(section)
        configuration.set(section, key, str(ast.literal_eval(value)))
    configuration.read_dict({"global": {"quiet": "2"}})
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        configuration.write(file)


def reachable(url: str) -> bool:
    """Whether an address answers within a few seconds."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (OSError, urllib.error.URLError):
        return False
