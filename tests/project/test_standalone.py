# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check as one file: what is in it, and that it runs without Ansible, on the oldest Python that it promises."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import project
import pytest
import standalone
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import registry

REPORT = project.ROOT / "docs" / "examples" / "report.json"
OLD_PYTHONS = sorted((Path.home() / ".pyenv" / "versions").glob("[23].[678]*/bin/python"))


@pytest.fixture(scope="module", name="program")
def build_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return standalone.build(tmp_path_factory.mktemp("dist") / "new")


@pytest.fixture(scope="module", name="oldest")
def find_oldest() -> str:
    """Python 3.9, where the tests of EL 9 have it or pyenv does."""
    found = sorted((Path.home() / ".pyenv" / "versions").glob("3.9.*/bin/python"))
    if not found:
        pytest.skip(
            "no Python 3.9 below ~/.pyenv/versions; `make test` runs the unit tests with EL's in its part el9-python"
        )
    return str(found[-1])


def run(python: str, program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """As on a machine without Ansible: -I ignores the environment and the user's packages, -S those of the site."""
    argv = [python, "-I", "-S", str(program), *words]
    return subprocess.run(argv, cwd=program.parent, env={"PATH": "/none"}, capture_output=True, text=True, check=False)


def works(python: str, program: Path) -> None:
    version = yaml.safe_load((project.ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    done = run(python, program, "--version")
    assert (done.returncode, done.stdout) == (0, f"gpu-cluster-check {version}\n"), done.stderr
    done = run(python, program, "--help")
    assert done.returncode == 0 and "check --hosts 'gpu[01-12]'" in done.stdout and "exit codes:" in done.stdout
    done = run(python, program, "report", str(REPORT))
    first = json.loads(REPORT.read_text(encoding="utf-8"))["headline"]
    assert done.returncode == 0 and done.stdout.startswith(f"{first}\n"), done.stderr
    page = run(python, program, "report", str(REPORT), "--format", "html").stdout
    assert page.startswith("<!DOCTYPE html>") and '<details class="page" id="page-GC-NET-001">' in page
    # Every node is told that there is no ssh here: that far it runs, and packs what it would send.
    check = run(python, program, "check", "--hosts", "n[1-2]", "--interface", "eth1", "--json")
    assert check.returncode == 1 and "ssh cannot be started: No such file" in check.stdout, check.stderr


def test_it_runs_with_this_python(program: Path) -> None:
    works(sys.executable, program)


def test_it_runs_with_the_oldest_python(program: Path, oldest: str) -> None:
    works(oldest, program)


@pytest.mark.parametrize("python", OLD_PYTHONS, ids=lambda path: path.parent.parent.name)
def test_an_older_python_is_told(program: Path, python: Path) -> None:
    done = subprocess.run([python, program, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and re.fullmatch(
        r"gpu-cluster-check: Python is \S+, expected 3.9 or newer\n", done.stderr
    )


def test_what_is_in_it(program: Path) -> None:
    """Code of this collection, below the name that its imports have, and nothing of Ansible."""
    with zipfile.ZipFile(program) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    utils = "ansible_collections/baremetal/gpu_cluster/plugins/module_utils/"
    code = {name: text for name, text in texts.items() if name.startswith(utils) and text}
    data = {name: texts.pop(name) for name in set(texts) if name.endswith((".md", ".yml"))}
    assert {name for name in texts.keys() - code if texts[name]} == {"__main__.py", "LICENSE"}
    own = utils.removesuffix("plugins/module_utils/")
    assert {name for name in data if not name.startswith(f"{own}docs/findings/GC-")} == {f"{own}galaxy.yml"}
    assert {Path(name).stem for name in data} == {*registry.FINDINGS, "galaxy"}
    for name, text in data.items():
        assert text == (project.ROOT / name.removeprefix(own)).read_text(encoding="utf-8")
    for name, text in code.items():
        shipped = project.ROOT / "plugins" / "module_utils" / name.removeprefix(utils)
        assert text == shipped.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(from|import) ansible\b", text, re.M), name
        compile(text, name, "exec", dont_inherit=True)
    # All of these: each runs here or on a node.
    packages = ("_base", *(f"_check/{name}" for name in ("protocol", "agent", "engine", "report", "cli")))
    assert all(f"{utils}{name}/__init__.py" in texts for name in packages)
    assert all(any(name.startswith(f"{utils}{one}/") for name in code) for one in packages)
    assert program.stat().st_mode & 0o777 == 0o755 and program.read_bytes().startswith(b"#!/usr/bin/env python3\n")


def test_it_is_the_same_file_each_time(program: Path, tmp_path: Path) -> None:
    assert standalone.build(tmp_path).read_bytes() == program.read_bytes()


def test_the_sources_compile_with_the_oldest_python(program: Path, oldest: str) -> None:
    script = (
        "import sys, zipfile\n"
        "archive = zipfile.ZipFile(sys.argv[1])\n"
        "names = [name for name in archive.namelist() if name.endswith('.py')]\n"
        "print(sum(bool(compile(archive.read(name), name, 'exec')) for name in names))"
    )
    done = subprocess.run([oldest, "-c", script, program], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 100


PROLOG = project.ROOT / "docs" / "examples" / "slurm" / "prolog-slurmctld"


@pytest.mark.parametrize(
    ("nodes", "code", "ends_with", "drained"),
    [
        ("gpu[01-08]", 0, 0, False),
        ("gpu[01-08]", 1, 1, True),
        ("gpu01,gpu03", 1, 1, True),
        ("gpu[01-08]", 2, 0, False),
        ("gpu[01-08]", 3, 0, False),
        ("gpu01", 1, 0, False),
    ],
)
def test_the_prolog_of_slurm_drains_the_culprits(
    tmp_path: Path, nodes: str, code: int, ends_with: int, drained: bool
) -> None:
    """With stand-ins that note how they are called."""
    calls = tmp_path / "calls"
    note = f'printf \'%s\\n\' "$(basename "$0") $*" >> {shlex.quote(str(calls))}'
    for name, rest in (
        ("gpu-cluster-check.pyz", f"cat {shlex.quote(str(REPORT))}; exit {code}"),
        ("scontrol", ""),
        ("logger", ""),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{note}\n{rest}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    script = PROLOG.read_text(encoding="utf-8").replace("/usr/local/sbin/", f"{tmp_path}/")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": nodes, "TMPDIR": str(tmp_path)}
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == ends_with, done.stderr
    called = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    assert [line for line in called if line.startswith("scontrol ")] == (
        [
            f"scontrol update nodename={','.join(report['culprits'])} state=drain "
            f"reason=gpu-cluster-check: {report['headline'][:200]}"
        ]
        if drained
        else []
    )
    checks = [line for line in called if line.startswith("gpu-cluster-check.pyz ")]
    words = f"check --hosts {nodes} --interface ens1f0 --user root --set user=train --json"
    assert checks == ([f"gpu-cluster-check.pyz {words}"] if nodes != "gpu01" else [])
    assert not list(tmp_path.glob("tmp.*"))


def test_the_page_names_every_exit_code_and_command(program: Path) -> None:
    page = (project.ROOT / "docs" / "standalone.md").read_text(encoding="utf-8")
    text = run(sys.executable, program, "--help").stdout.partition("exit codes:")[2]
    codes = re.findall(r"^  ([0-9]+) ", text, re.M)
    assert len(set(codes)) == 6 and all(f"| {code} |" in page for code in codes)
    for line in re.findall(r"^gpu-cluster-check\.pyz ((?:.*\\\n)*.*)", page, re.M):
        words = shlex.split(re.sub(r"\\\n|>.*", "", line))
        # Every option of the page is known: what stops it is that there is no ssh here, or no report.
        words = [str(REPORT) if word in ("report.json", "slurm-1234.out") else word for word in words]
        done = run(sys.executable, program, *words)
        assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
