# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages with content for the nodes of the lab: built in one go, signed, indexed, and taken off a node again."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lab_mirror
from lab_cluster import PROJECT, Cluster
from lab_mirror import Keys, run

#: What a file of a package is: its content, a file with its content, or (a text) the target of a symbolic link.
Content = bytes | Path | str

REPOSITORY = """\
[lab-nvidia]
name=Lab stand-ins with content
baseurl={url}
enabled=1
gpgcheck=1
metadata_expire=1
"""
#: Everything that a test of packages may leave on a node, besides packages. `{work}` is the copy of what was before.
SAVED = "/etc/yum.repos.d /etc/dnf"
SAVE = (
    "rm -rf {work}; mkdir -p {work}; tar -cPf {work}/saved.tar {saved}; rpm -qa | sort > {work}/packages; "
    "printf %s {repository} > /etc/yum.repos.d/lab-nvidia.repo; printf %s {key} > {work}/key.asc; "
    "rpm --import {work}/key.asc"
)
#: Scriptlets are left out when they fail: what a test broke on purpose must go as well.
RESTORE = (
    "ls {work}/packages > /dev/null; "
    "added() {{ rpm -qa | sort | comm -13 {work}/packages -; }}; "
    '[ -z "$(added)" ] || rpm -e --nodeps --allmatches $(added) || rpm -e --nodeps --noscripts $(added); '
    "rm -rf {saved}; tar -xPf {work}/saved.tar; rm -rf /var/cache/dnf/lab-nvidia-* {state}; "
    "rpm -qa | sort | comm -3 {work}/packages - ; rm -rf {work}"
)
#: Where the module pinned_packages keeps its records of unfinished transactions.
STATE = "/var/lib/gpu-cluster/packages"


@dataclass(frozen=True)
class StandIn:
    """One version of one package, with the files and scriptlets that a test needs.

    ``evr`` is ``[epoch:]version-release``. A path in ``files`` that ends in ``/`` is a folder of the package. Scripts
    and libraries are made executable. ``signed_by`` names another key than that of the repository.
    """

    name: str
    evr: str
    requires: Sequence[str] = ()
    provides: Sequence[str] = ()
    conflicts: Sequence[str] = ()
    obsoletes: Sequence[str] = ()
    files: Mapping[str, Content] = field(default_factory=dict)
    post: str = ""
    preun: str = ""
    signed: bool = True
    signed_by: str = ""
    arch: str = "x86_64"

    @property
    def file_name(self) -> str:
        """The name of the package's file, which has no epoch in it."""
        return f"{self.name}-{self.evr.rpartition(':')[2]}.{self.arch}.rpm"


def build_repository(
    folder: Path, keys: Keys, signer: str, packages: Sequence[StandIn], modules_yaml: str = ""
) -> None:
    """Make a folder that dnf can read: these packages, and metadata, with module streams when there are any."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, generation in enumerate(_generations(packages)):
        _build(folder, folder.parent / f"work-{folder.name}-{number}", generation)
    signers: dict[str, list[Path]] = {}
    for package in packages:
        if package.signed:
            signers.setdefault(package.signed_by or signer, []).append(folder / package.file_name)
    for name, files in signers.items():
        _sign(keys, name, files)
    index(folder, modules_yaml)


def index(folder: Path, modules_yaml: str = "") -> None:
    """The metadata of what is in a folder now."""
    lab_mirror.index(folder)
    if modules_yaml:
        file = folder.parent / f"{folder.name}-modules.yaml"
        file.write_text(modules_yaml)
        run("modifyrepo_c", "--mdtype=modules", str(file), str(folder / "repodata"))


@contextlib.contextmanager
def on_node(cluster: Cluster, node: str, url: str, key: str) -> Iterator[None]:
    """Give a node this repository in place of the lab's imitation of NVIDIA's, its signatures checked against a key.

    ``url`` is ``http://`` (of a ``lab_mirror.Mirror``) or ``file:///`` on the node, ``key`` the armoured public key.
    In the end every package that came is gone, and so are locks, module streams and the repository itself.
    """
    work = "/var/tmp/lab-packages"
    words = {"work": work, "saved": SAVED, "state": STATE}
    keys_before = cluster.shell(node, "rpm -q gpg-pubkey | sort; true")
    repository = shlex.quote(REPOSITORY.format(url=url))
    cluster.shell(node, SAVE.format(**words, repository=repository, key=shlex.quote(key)))
    try:
        yield
    finally:
        differs = cluster.shell(node, RESTORE.format(**words))
    assert not differs, f"{node} does not have the packages that it had before:\n{differs}"
    assert cluster.shell(node, "rpm -q gpg-pubkey | sort; true") == keys_before


def _generations(packages: Sequence[StandIn]) -> list[list[StandIn]]:
    """Split so that one spec file can build each: no name and no path twice, and one architecture."""
    found: list[list[StandIn]] = []
    for package in packages:
        for generation in found:
            if package.arch == generation[0].arch and not any(_clash(package, other) for other in generation):
                generation.append(package)
                break
        else:
            found.append([package])
    return found


def _clash(one: StandIn, other: StandIn) -> bool:
    return one.name == other.name or bool(set(one.files) & set(other.files))


def _build(folder: Path, work: Path, packages: Sequence[StandIn]) -> None:
    """One call of rpmbuild. Files are linked, not copied, and the payload is not compressed: libraries are large."""
    shutil.rmtree(work, ignore_errors=True)
    (work / "tree").mkdir(parents=True)
    for package in packages:
        for path, content in package.files.items():
            _place(work / "tree" / path.lstrip("/"), content, is_folder=path.endswith("/"))
    spec = work / "stand-ins.spec"
    spec.write_text(_spec(work.name, packages, work / "tree"))
    defines = {
        "_topdir": work / "rpmbuild",
        "_rpmdir": folder,
        "_dbpath": work / "rpmdb",
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        "_binary_payload": "w.ufdio",
        "_build_id_links": "none",
        "debug_package": "%{nil}",
        # Nothing is stripped, compressed or searched: a file comes out as it went in.
        "__os_install_post": "%{nil}",
        "__check_files": "%{nil}",
    }
    words = [word for key, value in defines.items() for word in ("--define", f"{key} {value}")]
    run("rpmbuild", "-bb", "--quiet", "--target", f"{packages[0].arch}-linux", *words, str(spec))
    shutil.rmtree(work)


def _place(target: Path, content: Content, *, is_folder: bool) -> None:
    (target if is_folder else target.parent).mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        target.symlink_to(content)
    elif isinstance(content, Path):
        try:
            os.link(content, target)
        except OSError:
            shutil.copyfile(content, target)
    elif not is_folder:
        target.write_bytes(content)


def _spec(title: str, packages: Sequence[StandIn], tree: Path) -> str:
    lines = [
        f"Name: {title}",
        *("Version: 1", "Release: 1", f"Summary: {title}", "License: GPL-3.0-or-later"),
        *(
            "%description",
            title,
            "%install",
            f"mkdir -p %{{buildroot}}; cp -al {shlex.quote(str(tree))}/. %{{buildroot}}/",
        ),
    ]
    for package in packages:
        lines += ["", *_package_lines(package)]
    return "\n".join(lines) + "\n"


def _package_lines(package: StandIn) -> list[str]:
    name, (epoch, _colon, rest) = package.name, package.evr.rpartition(":")
    version, _dash, release = rest.rpartition("-")
    lines = [f"%package -n {name}", f"Summary: Stand-in for {name}", *([f"Epoch: {epoch}"] if epoch else [])]
    # Dependencies are those of the test: the lab's system packages are names without content.
    lines += [f"Version: {version}", f"Release: {release}", "AutoReqProv: no"]
    # rpm makes a scriptlet need its shell, which no package of the lab offers.
    shell = ["/bin/sh"] if package.post or package.preun else []
    for tag, values in (
        ("Requires", package.requires),
        ("Provides", [*package.provides, *shell]),
        ("Conflicts", package.conflicts),
        ("Obsoletes", package.obsoletes),
    ):
        lines += [f"{tag}: {value}" for value in values]
    lines += [f"%description -n {name}", f"Stand-in for {name}."]
    for part, script in (("post", package.post), ("preun", package.preun)):
        lines += [f"%{part} -n {name}", script] if script else []
    return [*lines, f"%files -n {name}", *(_file_line(path, content) for path, content in package.files.items())]


def _file_line(path: str, content: Content) -> str:
    if path.endswith("/"):
        return f'%dir %attr(0755, root, root) "{path.rstrip("/")}"'
    if isinstance(content, str):
        return f'"{path}"'
    start = content[:4] if isinstance(content, bytes) else _start(content)
    mode = "0755" if start[:2] == b"#!" or start == b"\x7fELF" else "0644"
    return f'%attr({mode}, root, root) "{path}"'


def _start(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(4)


def _sign(keys: Keys, signer: str, files: Sequence[Path]) -> None:
    defines = {
        "__gpg": shutil.which("gpg") or "/usr/bin/gpg",
        "_gpg_path": keys.folder,
        "_gpg_name": f"{signer}@example.com",
    }
    words = [word for key, value in defines.items() for word in ("--define", f"{key} {value}")]
    run("rpmsign", "--addsign", *words, *map(str, files))


def real_nccl(folder: Path) -> Path:
    """NVIDIA's own library out of its wheel, which is the one that torch's wheel brings along."""
    subprocess.run([sys.executable, str(PROJECT / "tools" / "setup.py"), "--nccl"], check=True, timeout=300)
    sys.path.insert(0, str(PROJECT / "tools"))
    import project

    wheel = next((project.cache_dir() / "nccl").glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract("nvidia/nccl/lib/libnccl.so.2", folder))
