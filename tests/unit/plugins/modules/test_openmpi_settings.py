# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module openmpi_settings as Ansible runs it, with programs that answer as Open MPI does: from their files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import settle
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import make_port_plan
from ansible_collections.baremetal.gpu_cluster.plugins.modules import openmpi_settings

#: Reads files one after the other, of two lines the last one counts, and prints them in one of the two forms.
PROGRAM = """\
#!{python}
import pathlib, sys
values = {{"btl_tcp_port_min_v6": ("1024", "default"), "btl_tcp_port_range_v6": ("64511", "default")}}
home = pathlib.Path("~/.openmpi/mca-params.conf").expanduser()
for path in [*map(pathlib.Path, {files!r}), home]:
    for line in path.read_text().splitlines() if path.exists() else []:
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            values[name.strip()] = (value.strip(), f"file ({{path}})")
print({head!r})
for name, (value, source) in values.items():
    print({form!r}.format(name=name, value=value, source=source))
"""
INFO = "mca:x:y:param:{name}:value:{value}\nmca:x:y:param:{name}:source:{source}"
PRTE = ' MCA x: "{name}" (current value: "{value}", data\n source: environment, type: string)'


def program(path: Path, files: list[Path], head: str, form: str) -> None:
    """Write one program that answers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = PROGRAM.format(python=sys.executable, files=[str(file) for file in files], head=head, form=form)
    path.write_text(text)
    path.chmod(0o755)


class Prefix:
    """An installation in a folder."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version
        self.mpi = folder / "etc" / "openmpi-mca-params.conf"
        self.override = folder / "etc" / "openmpi-mca-params-override.conf"
        self.prte = folder / "etc" / "prte-mca-params.conf"
        self.environment = folder / "environment"
        self.mpi.parent.mkdir()
        self.mpi.write_text("# of the distribution\nosc = ^ucx\n")

    def install(self) -> None:
        head = f"ompi:version:full:{self.version}\nmca:pml:ob1:version:x\n"
        head += f"mca:mca:base:param:mca_base_param_files:value:/nonexistent/.openmpi/mca-params.conf,{self.mpi}"
        program(self.folder / "bin" / "ompi_info", [self.mpi, self.override], head, INFO)
        program(self.folder / "bin" / "prte_info", [self.prte], f"  Sysconfdir: {self.prte.parent}", PRTE)
        for daemon in ("orted", "prted"):
            program(self.folder / "bin" / daemon, [], "", "")

    def files(self) -> dict[str, str]:
        """What there is now."""
        paths = (self.mpi, self.prte, self.environment)
        return {path.name: path.read_text() for path in paths if path.exists()}

    def run(self, failing: str = "", **given: Any) -> dict[str, Any]:
        options = {"prefix": str(self.folder), "ports": make_port_plan().openmpi(), **given}
        arguments = json.dumps({"ANSIBLE_MODULE_ARGS": options})
        start = (
            "import sys; from ansible.module_utils import basic; basic._ANSIBLE_ARGS = sys.stdin.buffer.read();"
            "basic._ANSIBLE_PROFILE = 'legacy'; "
            f"from {openmpi_settings.__name__} import main; from {settle.__name__} import parameter_files; "
            f"parameter_files.ENVIRONMENT_PATH = {str(self.environment)!r}\n"
            f"import {settle.__name__} as module\n{failing}\nmain()"
        )
        environment = dict(
            os.environ, HOME=str(self.folder), PYTHONPATH=os.pathsep.join(entry for entry in sys.path if entry)
        )
        argv = [sys.executable, "-c", start]
        done = subprocess.run(argv, input=arguments.encode(), capture_output=True, check=False, env=environment)
        assert done.stdout, done.stderr.decode()
        result: dict[str, Any] = json.loads(done.stdout)
        # A text, or since 2.19 a record with it.
        result["warnings"] = [str(one) for one in result.get("warnings", [])]
        return result


@pytest.fixture(params=["4.1.4", "5.0.11"])
def prefix(request: pytest.FixtureRequest, tmp_path: Path) -> Prefix:
    made = Prefix(tmp_path, request.param)
    made.install()
    return made


def test_written_once_verified_and_told(prefix: Prefix) -> None:
    before = prefix.files()
    checked = prefix.run(ssh_port=2222, omp_num_threads=4, _ansible_check_mode=True)
    assert checked["changed"] and prefix.files() == before
    done = prefix.run(ssh_port=2222, omp_num_threads=4)
    assert done["changed"] and done["diff"] == checked["diff"] and done["version"] == prefix.version
    told = {path: values for path, values in done["files"].items() if path != str(prefix.environment)}
    after = prefix.files()
    assert after[prefix.mpi.name].startswith(before[prefix.mpi.name])
    assert after["environment"].splitlines()[1] == "OMP_NUM_THREADS=4"
    for path, values in told.items():
        assert all(f"\n{name} = {value}\n" in "\n" + Path(path).read_text() for name, value in values.items())
    assert list(told) == [str(prefix.mpi)] + ([str(prefix.prte)] if prefix.version.startswith("5") else [])
    assert {"plm_rsh_args", "plm_ssh_args"} & set.union(*map(set, told.values()))
    again = prefix.run(ssh_port=2222, omp_num_threads=4)
    assert not again["changed"] and again["files"] == done["files"] and not again["diff"]


#: The last file cannot be written: an error of the system, or one with which Ansible's own code ends the module.
FULL = """
really = module.replace_file
def full(mover, path, text):
    if "OMP_NUM_THREADS" in text:
        {end}
    really(mover, path, text)
module.replace_file = full
"""


@pytest.mark.parametrize(
    "end", ["raise OSError(28, 'No space left on device')", "mover.fail_json(msg='No space left')"]
)
def test_all_files_or_none(prefix: Prefix, end: str) -> None:
    prefix.environment.write_text("EDITOR=vi\n")
    before = prefix.files()
    told = prefix.run(failing=FULL.format(end=end), omp_num_threads=4)
    assert told["failed"] and "No space left" in told["msg"] and prefix.files() == before


def test_the_example_of_the_documentation(prefix: Prefix) -> None:
    """In check mode, as this machine has no address in a network for documentation."""
    (task,) = yaml.safe_load(openmpi_settings.EXAMPLES)
    given = {**task["baremetal.gpu_cluster.openmpi_settings"], "prefix": str(prefix.folder)}
    told = prefix.run(**given, _ansible_check_mode=True)["files"]
    assert told[str(prefix.mpi)]["btl_tcp_if_include"] == "192.0.2.0/24"
    assert "-p 2222" in {**told[str(prefix.mpi)], **told.get(str(prefix.prte), {})}.values()


def test_undone_when_another_file_decides(prefix: Prefix) -> None:
    before = prefix.files()
    prefix.override.write_text("btl_tcp_port_min_v4 = 1024\n")
    result = prefix.run()
    assert f"btl_tcp_port_min_v4 is '1024' in force instead of '61000', says file ({prefix.override})" in result["msg"]
    assert result["failed"] and prefix.files() == before
    prefix.override.unlink()
    assert prefix.run()["changed"]
    prefix.override.write_text("btl_tcp_port_min_v4 = 1024\n")
    assert prefix.run()["failed"], "nothing to write, and still not in force"


def test_what_a_user_has_set_for_himself_is_not_in_what_is_asked_for(prefix: Prefix) -> None:
    own = prefix.folder / ".openmpi" / "mca-params.conf"
    own.parent.mkdir()
    own.write_text("pml = cm\n")
    assert prefix.run()["changed"]


def test_lines_of_others(prefix: Prefix) -> None:
    prefix.mpi.write_text("pml = cm\n")
    result = prefix.run()
    named = f"{prefix.mpi}: pml = cm, which ob1 takes the place of"
    assert result["overridden"] == [named] and any(named in one for one in result["warnings"])
    again = prefix.run()
    assert again["overridden"] == [named] and not again["warnings"]
    prefix.mpi.write_text("oob_tcp_static_ipv4_ports = 5000\n")
    prefix.environment.write_text("OMP_NUM_THREADS=8\n")
    before = prefix.files()
    refused = prefix.run(omp_num_threads=4, networks=["198.51.100.0/24"])
    variables = [problem["variable"] for problem in refused["problems"]]
    names = [f"{prefix.mpi}: oob_tcp_static_ipv4_ports", f"{prefix.environment}: OMP_NUM_THREADS", "openmpi_networks"]
    assert variables == names and prefix.files() == before


def test_not_installed_yet(tmp_path: Path) -> None:
    bare = Prefix(tmp_path, "4.1.4")
    assert bare.run()["problems"][0]["variable"] == "openmpi_prefix"
    checked = bare.run(_ansible_check_mode=True)
    assert checked["changed"] and "not installed yet" in checked["warnings"][0]


def test_what_a_node_lacks_is_a_warning_in_check_mode(prefix: Prefix) -> None:
    absent = {"networks": ["198.51.100.0/24"], "ephemeral": {"first": 1, "last": 2}}
    checked = prefix.run(_ansible_check_mode=True, **absent)
    assert checked["changed"] and len([one for one in checked["warnings"] if "Fix: " in one]) == 2
    assert len(prefix.run(**absent)["problems"]) == 2


def test_an_installation_that_gives_no_answer(prefix: Prefix) -> None:
    (prefix.folder / "bin" / "ompi_info").write_text(f"#!{sys.executable}\nraise SystemExit('broken')\n")
    assert "cannot be asked: ompi_info failed (1): broken" in prefix.run()["msg"]
    program(prefix.folder / "bin" / "ompi_info", [], "ompi:version:full:3.1.6", INFO)
    assert prefix.run()["problems"][0]["rule"] == "it is Open MPI 3.1.6, and 4.1 and 5 are supported"


def test_a_daemon_that_needs_a_full_path(prefix: Prefix) -> None:
    said = "error while loading shared libraries: libopen-rte.so.40"
    for daemon in ("orted", "prted"):
        (prefix.folder / "bin" / daemon).write_text(f"#!{sys.executable}\nraise SystemExit({said!r})\n")
    assert any("only when mpirun is called with its full path" in one for one in prefix.run()["warnings"])
