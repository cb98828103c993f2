# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The build of Horovod: what is patched, what runs in which order, and what is said when it fails."""

from __future__ import annotations

import contextlib
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import horovod, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pip import Source
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.store import BuildError

WISH = horovod.Wish("0.28.1", "9" * 64, "torch2.13.0.openmpi4.1.4", "torch==2.13.0", "/python", "/usr/lib64/openmpi")
WHEEL = "horovod-0.28.1+torch2.13.0.openmpi4.1.4-cp312-cp312-linux_x86_64.whl"
BUILD = "setup.py bdist_wheel of Horovod"
LOG = """\
[ 10%] Building CXX object mpi_ops_v2.cc.o
torch/headers.h:7:2: error: #error C++17 or later compatible compiler is required
make: *** [all] Error 2
Traceback (most recent call last):
  File "setup.py", line 1
CalledProcessError: exit status 2.
"""


SETUP = """\
config = 'Debug' if self.debug else 'RelWithDebInfo'
require_list = ['cloudpickle', 'psutil']
"""


class Machine:
    """Stands in for the programs, and notes what ran."""

    def __init__(self, work: Path, standard: str = "set(CMAKE_CXX_STANDARD 14)") -> None:
        self.work = work / "build"
        self.work.mkdir()
        self.folder = work / "wheels"
        self.standard = standard
        self.ran: list[list[str]] = []
        self.fails: dict[str, str] = {}
        self.log = ""
        self.cuda = ""

    def run(self, argv: Sequence[str], _seconds: int, what: str, inherit: Sequence[int] = ()) -> str:
        self.ran.append(list(argv))
        assert list(inherit) == [7], "whatever is left holds the guard"
        if "venv" in argv:
            Path(argv[-1]).mkdir(parents=True)
        if what == "pip download":
            self.pack(Path(argv[argv.index("--dest") + 1]))
        if what == BUILD:
            (self.work / "build.log").write_text(self.log)
            (self.work / "wheel").mkdir()
            (self.work / "wheel" / WHEEL).write_text("wheel")
        if what in self.fails:
            raise CommandError(f"{what} failed (1): {self.fails[what]}")
        return self.cuda

    def pack(self, folder: Path) -> None:
        tree = self.work / "horovod-0.28.1"
        for name in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(f"project(horovod)\n{self.standard}\n")
        (tree / "setup.py").write_text(SETUP)
        folder.mkdir()
        with tarfile.open(folder / "horovod-0.28.1.tar.gz", "w:gz") as archive:
            archive.add(tree, "horovod-0.28.1")

    def build(self) -> str:
        return horovod.build(str(self.work), str(self.folder), WISH, Source(find_links="/srv/wheels"), 60, [7])


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(tmp_path)
    monkeypatch.setattr(horovod, "run", found.run)
    return found


def test_both_files_compile_as_cxx17(machine: Machine) -> None:
    kept = machine.folder / WHEEL
    assert machine.build() == str(kept) and kept.stat().st_mode & 0o777 == 0o644
    tree = machine.work / "source" / "horovod-0.28.1"
    for name in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
        assert (tree / name).read_text() == "project(horovod)\nset(CMAKE_CXX_STANDARD 17)\n"
    assert (tree / "setup.py").read_text().splitlines() == [
        "config = 'Debug' if self.debug else 'Release'",
        "require_list = ['numpy', 'cloudpickle', 'psutil']",
    ]


def test_the_build_has_mpi_and_gloo_and_only_the_source_of_packages(machine: Machine) -> None:
    machine.build()
    _venv, install, download, _cuda, build = machine.ran
    assert install[-1 - len(horovod.NEEDS) :] == ["torch==2.13.0", *horovod.NEEDS] and "--no-index" in install
    assert "--require-hashes" in download and "--no-index" in download
    assert (machine.work / "sdist.txt").read_text() == f"horovod==0.28.1 --hash=sha256:{'9' * 64}\n"
    assert {"HOROVOD_WITH_MPI=1", "HOROVOD_WITH_GLOO=1", f"HOROVOD_LOCAL_VERSION={WISH.local}"} <= set(build)
    assert next(word for word in build if word.startswith("PATH=")).startswith("PATH=/usr/lib64/openmpi/bin:")
    assert not any(word.startswith("HOROVOD_GPU") for word in build)


def test_a_torch_for_cuda_gets_operations_on_gpus(machine: Machine) -> None:
    machine.cuda = "13.0\n"
    machine.build()
    assert "HOROVOD_GPU_OPERATIONS=NCCL" in machine.ran[-1]


def test_another_source_package_is_not_patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, "set(CMAKE_CXX_STANDARD 17)")
    monkeypatch.setattr(horovod, "run", machine.run)
    with pytest.raises(BuildError, match=r"CMakeLists.txt of Horovod's source package has 0 times .* expected 1"):
        machine.build()


def test_a_failed_build_shows_the_compilers_error_and_keeps_its_output(machine: Machine) -> None:
    machine.fails[BUILD] = ""
    machine.log = "warning: x\n" * 500 + LOG
    with pytest.raises(BuildError) as caught:
        machine.build()
    title, *said = str(caught.value).splitlines()
    kept = machine.folder / "build.log"
    assert title == (
        f"{BUILD} failed (1). All of its output is in {kept} on this node; its last lines that tell of an error:"
    )
    assert said[:2] == LOG.splitlines()[1:3] and not any("warning" in line for line in said)
    assert kept.read_text() == machine.log
    machine.fails.clear()
    shutil.rmtree(machine.work)
    machine.work.mkdir()
    machine.build()
    assert [path.name for path in machine.folder.iterdir()] == [WHEEL], "the output of an old build misleads"


def test_a_full_disk_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output may lack the reason: it is on the same disk."""
    machine.fails[BUILD] = ""
    machine.log = "[ 50%] Building\n"
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=3 << 20))
    with pytest.raises(BuildError, match=r"on this node; the disk has 3 MiB left; its last lines:\n\[ 50%\] Building$"):
        machine.build()


def test_output_that_cannot_be_kept_is_shown(machine: Machine) -> None:
    machine.fails[BUILD] = ""
    machine.log = LOG
    machine.folder.write_text("no folder")
    with pytest.raises(BuildError, match=r"failed \(1\); its last lines that tell of an error:\n.*C\+\+17"):
        machine.build()


def test_without_an_error_the_last_lines_are_shown() -> None:
    lines = horovod.telling("\n".join(map(str, range(99)))).splitlines()
    assert lines == ["; its last lines:", *(str(number) for number in range(87, 99))]
    assert horovod.telling("") == ""


def test_a_build_that_wrote_nothing_says_what_failed(tmp_path: Path) -> None:
    assert horovod.failure("it failed (127)", str(tmp_path / "none"), str(tmp_path)) == "it failed (127)"


def test_a_tampered_source_package_is_named(machine: Machine) -> None:
    machine.fails["pip download"] = (
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n"
        "    horovod==0.28.1 from file:///w/horovod-0.28.1.tar.gz:\n"
        f"        Expected sha256 {'9' * 64}\n             Got        {'2' * 64}\n"
    )
    with pytest.raises(BuildError, match=r"horovod-0.28.1.tar.gz of horovod==0.28.1 is not the one"):
        machine.build()


# ---- The module


def params(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "folder": str(folder / "wheels"),
        "prefix": str(folder / "torch"),
        "version": "0.28.1",
        "sha256": "9" * 64,
        "local_version": WISH.local,
        "torch": "torch==2.13.0",
        "python": "/bin/sh",
        "mpi_prefix": "/usr",
        "find_links": str(folder),
        "index_url": "",
        "prefer_pip_configuration": False,
        "proxy": "",
        "timeout_seconds": 60,
        "wait_seconds": 0,
        **changes,
    }


def test_a_wheel_is_built_once_and_nothing_else_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(work: str, folder: str, *_more: Any) -> str:
        path = Path(work, WHEEL)
        path.write_text("wheel")
        return horovod.keep(folder, str(path))

    monkeypatch.setattr(horovod, "build", build)
    assert run.horovod_wheel(params(tmp_path), check_mode=True) == {"changed": True, "wheel": ""}
    assert list(tmp_path.iterdir()) == []
    kept = tmp_path / "wheels" / WHEEL
    assert run.horovod_wheel(params(tmp_path), check_mode=False) == {"changed": True, "wheel": str(kept)}
    assert kept.read_text() == "wheel" and kept.stat().st_mode & 0o777 == 0o644
    assert {path.name for path in tmp_path.iterdir()} == {"wheels", "torch.lock"}
    assert run.horovod_wheel(params(tmp_path), check_mode=False) == {"changed": False, "wheel": str(kept)}
    other = params(tmp_path, local_version="torch2.13.0.openmpi5.0.7")
    assert run.horovod_wheel(other, check_mode=True)["changed"], "another Open MPI needs another wheel"


def test_who_has_waited_takes_the_wheel_of_the_other_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for before the lock is taken, and the other run holds the lock for minutes."""

    @contextlib.contextmanager
    def waits(*_arguments: Any) -> Iterator[tuple[int, list[str]]]:
        (tmp_path / "wheels").mkdir()
        (tmp_path / "wheels" / WHEEL).write_text("wheel")
        yield 7, []

    monkeypatch.setattr(run, "alone", waits)
    monkeypatch.setattr(horovod, "build", lambda *_arguments: pytest.fail("it builds again"))
    found = run.horovod_wheel(params(tmp_path), check_mode=False)
    assert found == {"changed": False, "wheel": str(tmp_path / "wheels" / WHEEL)}


def test_a_failed_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(work: str, *_more: Any) -> str:
        Path(work, "half").write_text("")
        raise BuildError("no compiler")

    monkeypatch.setattr(horovod, "build", build)
    with pytest.raises(run.RefusedError) as caught:
        run.horovod_wheel(params(tmp_path), check_mode=False)
    assert str(caught.value) == "Horovod was not built: no compiler. The environment in use was not changed."
    assert [path.name for path in tmp_path.iterdir()] == ["torch.lock"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"mpi": True, "gloo": True, "torch": "2.13.0", "here": "2.13.0"}, []),
        ({"mpi": False, "gloo": True, "torch": "2.13.0", "here": "2.13.0"}, ["without MPI"]),
        ({"mpi": True, "gloo": False, "torch": "2.12.0", "here": "2.13.0"}, ["without gloo", "for torch 2.12.0"]),
    ],
)
def test_what_was_built_is_what_is_wanted(said: dict[str, object], words: list[str]) -> None:
    found = horovod.problems(said)
    assert len(found) == len(words) and all(word in text for word, text in zip(words, found))
