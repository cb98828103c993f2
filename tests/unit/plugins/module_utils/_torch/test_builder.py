# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of the commands of a build, what they are handed, and what is made of their failures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import builder
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.lock import Locked, parse_lock
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import parse_requirements
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pip import Source
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.store import BuildError

LOCK = "torch==2.13.0+cpu --hash=sha256:" + "1" * 64
PINS = parse_requirements(["torch==2.13.0"])
MISMATCH = f"""ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.
    torch==2.13.0+cpu from file:///w/t.whl:
        Expected sha256 {"1" * 64}
             Got        {"2" * 64}
"""


class Machine:
    """Stands in for the programs: makes what venv and pip would make, and notes what ran with which descriptors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ran: list[tuple[str, list[str], list[int]]] = []
        self.fails: dict[str, str] = {}
        self.installs = ["torch-2.13.0+cpu"]
        self.needs = ""
        self.lock = LOCK
        self.says = '{"torch": "2.13.0+cpu", "gloo": true}'

    def run(self, argv: Sequence[str], _seconds: int, what: str, inherit: Sequence[int] = ()) -> str:
        self.ran.append((what, list(argv), list(inherit)))
        if what in self.fails:
            raise CommandError(f"{what} failed (1): {self.fails[what]}")
        if "venv" in argv:
            Path(argv[-1]).mkdir(parents=True)
        if what == "pip install":
            for package in self.installs:
                folder = self.path / "lib" / "python3.12" / "site-packages" / f"{package}.dist-info"
                folder.mkdir(parents=True)
                (folder / "METADATA").write_text(f"Name: {package}\n{self.needs}\nRequires-Dist: backdoor\n")
        return self.says

    def build(self) -> dict[str, object]:
        limits = builder.Limits(install=1, verify=1)
        source = Source(find_links="/srv/wheels")
        return builder.build(str(self.path), "/python", source, self.lock, parse_lock(self.lock), PINS, limits, 7)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(tmp_path / "torch-1")
    monkeypatch.setattr(builder, "run", found.run)
    monkeypatch.setattr(builder, "SELINUX", str(tmp_path / "nothing"))
    return found


def test_a_build_keeps_its_lock_and_no_temporary_files(machine: Machine) -> None:
    assert machine.build() == {"torch": "2.13.0+cpu", "gloo": True}
    assert [what for what, _argv, _inherit in machine.ran] == [
        "/python -m venv",
        "pip install",
        "pip check",
        "the import of torch",
    ]
    assert all(inherit == [7] for _what, _argv, inherit in machine.ran), "whatever is left holds the guard"
    assert (machine.path / builder.LOCK_NAME).read_text() == LOCK
    assert not (machine.path / "tmp").exists()


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (
            lambda m: m.fails.update({"pip install": MISMATCH}),
            "the file file:///w/t.whl of torch==.* is not the",
        ),
        (lambda m: m.fails.update({"pip install": "no room"}), r"pip install failed \(1\): no room"),
        (
            lambda m: m.fails.update({"pip check": "torch requires sympy"}),
            "does not fit together.*torch requires sympy",
        ),
        (lambda m: setattr(m, "installs", ["torch-2.12.0"]), "wanted torch==2.13.0, found 2.12.0"),
        (lambda m: setattr(m, "says", '{"torch": "2.12.0"}'), "says that it is 2.12.0, and wanted is torch==2.13.0"),
        (lambda m: setattr(m, "says", "nothing"), "printed something unexpected: 'nothing'"),
    ],
)
def test_every_way_to_end_with_something_else(machine: Machine, prepare: Callable[[Machine], None], said: str) -> None:
    prepare(machine)
    with pytest.raises(BuildError, match=said):
        machine.build()


def test_a_package_that_nothing_needs_is_refused_before_anything_starts_in_the_environment(machine: Machine) -> None:
    """A lock may come from a member. The description below the headers of a package says nothing."""
    machine.lock += "\n" + LOCK.replace("torch==2.13.0+cpu", "backdoor==1.0")
    machine.installs.append("backdoor-1.0")
    with pytest.raises(BuildError, match=r"nothing that is wanted needs backdoor==1\.0 of the lock"):
        machine.build()
    assert [what for what, _argv, _inherit in machine.ran] == ["/python -m venv", "pip install"]
    shutil.rmtree(machine.path)
    machine.needs = 'Requires-Dist: Back_Door (>=1) ; extra == "all"\n'
    machine.lock, machine.installs[1] = machine.lock.replace("backdoor", "back-door"), "back_door-1.0"
    assert machine.build()["gloo"]


@pytest.mark.parametrize("enforced", [True, False])
def test_files_are_labelled_before_they_are_used_where_there_is_selinux(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enforced: bool
) -> None:
    monkeypatch.setattr(builder, "SELINUX", str(tmp_path if enforced else tmp_path / "nothing"))
    machine.build()
    labelled = [entry for entry in machine.ran if entry[0] == "restorecon"]
    expected = [("restorecon", [builder.RESTORECON, "-R", str(machine.path)], [])]
    assert labelled == (expected if enforced else []), "SELinux denies it what it inherits"
    assert not enforced or machine.ran[-2] == labelled[0], "before torch is imported"


def test_a_resolution_names_every_file_of_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    taken = "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl"
    for name in (taken, "torch-2.13.0+cpu-cp311-cp311-linux_aarch64.whl", "torch-2.13.0+cu130-cp311-cp311-x.whl"):
        (wheels / name).write_text(name)

    def run(argv: Sequence[str], _seconds: int, what: str, inherit: Sequence[int] = ()) -> str:
        if "venv" in argv:
            Path(argv[-1]).mkdir()
        if what == "pip install --dry-run":
            download = {
                "url": f"file://{wheels}/{taken}".replace("+", "%2B"),
                "archive_info": {"hash": "sha256=" + "1" * 64},
            }
            entry = {"metadata": {"name": "torch", "version": "2.13.0+cpu"}, "download_info": download}
            Path(argv[argv.index("--report") + 1]).write_text(json.dumps({"version": "1", "install": [entry]}))
        return "pip 23.2.1 from x" if what == "pip --version" else "3.12"

    monkeypatch.setattr(builder, "run", run)
    text, packages = builder.resolve(str(tmp_path), "/python", Source(find_links=str(wheels)), PINS, 1)
    assert packages == {"torch": "2.13.0+cpu"}
    assert parse_lock(text) == [
        Locked(
            "torch",
            "2.13.0+cpu",
            ("sha256:" + "1" * 64, builder.file_hash(str(wheels / "torch-2.13.0+cpu-cp311-cp311-linux_aarch64.whl"))),
        )
    ]
    assert not (tmp_path / "resolve").exists()


def test_an_interpreter_whose_pip_is_too_old_is_named(machine: Machine, tmp_path: Path) -> None:
    machine.says = "pip 21.2.3 from /x (python 3.9)"
    with pytest.raises(BuildError, match=r"pip 21.2.3 of /python cannot resolve"):
        builder.resolve(str(tmp_path), "/python", Source(), PINS, 1)
