# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of the lab can be decided without root: layouts, names, files. The lab itself is tested by using it."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from pathlib import Path

import pytest
import yaml
from lab import host, image, lab, repo, state
from lab import nodes as containers
from lab.flavour import FLAVOURS
from lab.settings import FIRST_NODES, MAX_NODES, Node, Paths, nodes
from lab.shell import LabError, run

PATHS = Paths(checkout=Path("/a checkout"), cache=Path("/cache"))

UNIFIED = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
LEGACY = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
HYBRID = LEGACY + "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"


@pytest.mark.parametrize(
    ("mounts", "legacy", "hybrid"),
    [(UNIFIED, False, None), (LEGACY, True, None), (HYBRID, True, "/sys/fs/cgroup/unified")],
    ids=["v2", "v1", "hybrid"],
)
def test_cgroup_layout(mounts: str, legacy: bool, hybrid: str | None) -> None:
    assert host.read_cgroups(mounts) == host.Cgroups(legacy=legacy, hybrid_mount=hybrid)


def test_place_in_systemds_hierarchy() -> None:
    text = "9:name=systemd:/gpulab/libpod-1\n8:pids:/elsewhere\n0::/\n"
    assert host.read_systemd_path(text) == "/gpulab/libpod-1"
    with pytest.raises(LabError, match="no place in systemd"):
        host.read_systemd_path("0::/\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3:580.82.07-1.el9", ("3", "580.82.07", "1.el9")), ("2.28.9-1+cuda13.0", ("", "2.28.9", "1+cuda13.0"))],
)
def test_version(text: str, expected: tuple[str, str, str]) -> None:
    assert repo.parse_evr(text) == expected


@pytest.mark.parametrize("text", ["2.28.9", "2.28.9-", "-1"])
def test_incomplete_version_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="version-release"):
        repo.parse_evr(text)


@pytest.mark.parametrize("el", FLAVOURS)
def test_every_version_of_the_table_is_built_once(el: int) -> None:
    for repository in repo.load((image.recipe(FLAVOURS[el]) / repo.TABLE).read_text()):
        rows = repo.generations(repository.packages)
        for row in rows:
            names = [package.name for package in row]
            assert len(names) == len(set(names))
        built = [package for row in rows for package in row]
        assert len(built) == len(set(built)) == len(repository.packages)
        assert set(built) == set(repository.packages)


def test_spec_carries_epoch_and_requirements() -> None:
    table = """
        [r]
        summary = "s"
        packages = { a = ["3:1-2"], b = ["5-6"] }
        requires = { b = ["a = {evr}", "c = {version}"] }
    """
    (repository,) = repo.load(table)
    text = repo.spec("title", list(repository.packages))
    assert "%package -n a\nSummary: s\nEpoch: 3\nVersion: 1\nRelease: 2\n%description -n a" in text
    assert "Version: 5\nRelease: 6\nRequires: a = 5-6\nRequires: c = 5\n" in text


def test_names_fit_into_an_interface_name_and_addresses_differ() -> None:
    every = nodes(MAX_NODES)
    assert all(len(link) <= 15 for node in every for link in node.links)
    assert len({node.management_address for node in every}) == MAX_NODES
    assert len({mac for node in every for mac in node.macs}) == 2 * MAX_NODES


def test_inventory_is_what_ansible_needs() -> None:
    data = yaml.safe_load(state.inventory(nodes(2), PATHS))["gpu_cluster"]
    assert data["hosts"]["n2"] == {"ansible_host": "198.18.10.12", "gpu_cluster_fabric_address": "198.18.20.12/24"}
    words = shlex.split(data["vars"]["ansible_ssh_common_args"])
    assert words == ["-o", 'UserKnownHostsFile="/a checkout/.lab/known_hosts"', "-o", "StrictHostKeyChecking=yes"]
    assert data["vars"]["gpu_cluster_known_hosts"] == "/a checkout/.lab/known_hosts"
    assert data["vars"]["ssh_mesh_ca_dir"] == "{{ inventory_dir }}/.ssh_ca"


def written(tmp_path: Path, **inventories: list[Node]) -> Paths:
    """A lab with these inventories, as far as files tell."""
    paths = Paths(checkout=tmp_path, cache=tmp_path)
    keys = {node.name: ["ssh-ed25519 AAA"] for members in inventories.values() for node in members}
    state.write_lab(paths, inventories, keys, "image:1")
    return paths


def test_every_inventory_has_its_own_nodes_and_one_list_of_host_keys(tmp_path: Path) -> None:
    assert state.read_inventories(Paths(checkout=tmp_path, cache=tmp_path)) == {}
    paths = written(tmp_path, lab=nodes(2), jobs=nodes(1, 11))
    assert state.read_inventories(paths) == {"lab": [Node(1), Node(2)], "jobs": [Node(11)]}
    hosts = {name: yaml.safe_load(paths.hosts_file(name).read_text())["gpu_cluster"]["hosts"] for name in FIRST_NODES}
    assert [*hosts["lab"], *hosts["jobs"]] == ["n1", "n2", "n11"]
    assert list(state.read_host_keys(paths)) == ["n1", "n2", "n11"]


def test_what_was_signed_for_nodes_goes_with_them(tmp_path: Path) -> None:
    paths = written(tmp_path, lab=nodes(1), jobs=nodes(1, 11))
    for name in FIRST_NODES:
        paths.hosts_file(name).with_name(".ssh_ca").mkdir()
    left = tmp_path / "inventories"
    assert state.remove_inventory(paths.hosts_file("jobs"))
    assert list((left / "jobs").iterdir()) == [] and len(list((left / "lab").iterdir())) == 2
    assert state.remove_lab(paths)
    assert list((left / "lab").iterdir()) == [] and not paths.state.exists()
    assert not state.remove_lab(paths)


def test_two_inventories_never_have_the_same_node() -> None:
    lab._refuse_overlap({"lab": nodes(10), "jobs": nodes(6, 11)}, "jobs")
    with pytest.raises(LabError, match=r"inventories/jobs has n11: .* `lab.py down --inventory jobs` first"):
        lab._refuse_overlap({"lab": nodes(11), "jobs": nodes(3, 11)}, "lab")
    with pytest.raises(LabError, match="inventories/jobs begins with n11: it takes at most 6 nodes"):
        lab._refuse_overlap({"jobs": nodes(7, 11)}, "jobs")


def podman_has(monkeypatch: pytest.MonkeyPatch, *running: Node) -> list[str]:
    """Let podman list these nodes, sound and of the image; returns what is then removed and made."""
    did: list[str] = []
    found = {node.number: containers.Found(node, "id", "running", "image:1", True) for node in running}
    monkeypatch.setattr(containers.network, "attached", lambda node: True)
    monkeypatch.setattr(containers, "find", lambda paths: found)
    monkeypatch.setattr(containers.state, "ensure_key", lambda paths: "key")
    monkeypatch.setattr(containers, "remove", lambda paths, node: did.append(f"removed {node.name}"))
    monkeypatch.setattr(containers, "_make", lambda paths, node, *more: did.append(f"made {node.name}") or ["new"])
    return did


def test_the_nodes_of_one_inventory_come_and_go_beside_those_of_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = written(tmp_path, lab=nodes(3), jobs=nodes(1, 11))
    did = podman_has(monkeypatch, *nodes(3), Node(11))
    changed, keys = containers.reconcile(paths, dict.fromkeys(nodes(2, 11), "image:1"), others=nodes(3))
    assert changed and did == ["made n12"]
    assert list(keys) == ["n11", "n12", "n1", "n2", "n3"] and keys["n12"] == ["new"]
    did.clear()
    changed, keys = containers.reconcile(paths, dict.fromkeys(nodes(2), "image:1"), others=[Node(11)])
    assert changed and did == ["removed n3"] and list(keys) == ["n1", "n2", "n11"]


def test_the_last_inventory_takes_the_lab_along(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths = written(tmp_path, lab=nodes(2), jobs=nodes(1, 11))
    did = podman_has(monkeypatch, *nodes(2), Node(11))
    monkeypatch.setattr(lab.host, "require_root", lambda: None)
    monkeypatch.setattr(lab.state, "lock", contextlib.nullcontext)
    monkeypatch.setattr(lab.state, "owner", lambda: paths)
    monkeypatch.setattr(lab, "_remove", lambda paths: did.append("lab removed") or True)
    lab.down_inventory(paths, "lab")
    assert did == ["removed n1", "removed n2"]
    assert state.read_inventories(paths) == {"jobs": [Node(11)]} and not paths.hosts_file("lab").exists()
    assert list(state.read_host_keys(paths)) == ["n11"]
    lab.down_inventory(paths, "jobs")
    assert did[2:] == ["lab removed"]


def test_ssh_reads_the_known_hosts_option_of_a_path_with_spaces() -> None:
    shown = run(["ssh", "-G", *state.ssh_options(PATHS), "198.18.10.11"]).stdout.lower()
    assert "userknownhostsfile /a checkout/.lab/known_hosts\n" in shown
    assert "stricthostkeychecking true\n" in shown


def test_what_the_machine_had_set_before_its_first_node_is_put_back(tmp_path: Path) -> None:
    folder, setting = tmp_path / "notes", tmp_path / "file-max"
    folder.mkdir()
    for value in ("1000\n", "9223372036854775807\n"):
        setting.write_text(value)
        host.note_settings(folder, [setting])
    host.restore_settings(folder, [setting])
    assert setting.read_text() == "1000\n"
    setting.write_text("2000\n")
    host.restore_settings(folder, [setting])
    assert setting.read_text() == "2000\n"


def test_host_keys_survive_a_round_trip(tmp_path: Path) -> None:
    paths = Paths(checkout=tmp_path, cache=tmp_path)
    keys = {"n1": ["ssh-rsa AAA", "ssh-ed25519 BBB"], "n2": ["ssh-ed25519 CCC"]}
    state.write(paths.known_hosts, state.known_hosts(nodes(2), keys))
    assert state.read_host_keys(paths) == keys
    assert paths.known_hosts.read_text().splitlines()[2] == "n2,198.18.10.12 ssh-ed25519 CCC"


def test_a_file_is_replaced_in_one_step_and_only_when_it_differs(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "file"
    assert state.write(target, "one\n", mode=0o600)
    first = target.stat()
    assert stat.S_IMODE(first.st_mode) == 0o600
    assert not state.write(target, "one\n")
    assert target.stat().st_ino == first.st_ino
    assert state.write(target, "two\n")
    assert os.listdir(target.parent) == ["file"]


def test_image_is_named_after_its_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LAB_IMAGE", raising=False)
    before = image.node_reference(FLAVOURS[9])
    assert before == image.node_reference(FLAVOURS[9])
    monkeypatch.setenv("LAB_IMAGE", "quay.io/centos/centos:stream9")
    assert image.node_reference(FLAVOURS[9]) != before
    monkeypatch.delenv("LAB_IMAGE")
    (tmp_path / "file").write_text("other")
    monkeypatch.setattr(image, "RECIPE", tmp_path)
    assert image.node_reference(FLAVOURS[9]) != before


def test_package_lists_have_comments() -> None:
    assert image.packages("# all\na b   # why\n\nc\n") == ["a", "b", "c"]


def test_a_failed_command_is_told_with_its_last_words() -> None:
    with pytest.raises(LabError, match=r"exit status 3 from: sh -c .*\nwhy"):
        run(["sh", "-c", "echo why >&2; exit 3"])
    with pytest.raises(LabError, match="not installed"):
        run(["no-such-command-of-the-lab"])


def test_node_names() -> None:
    assert (Node(3).name, Node(3).container) == ("n3", "gpulab-n3")


def test_a_lab_of_another_checkout_is_named_and_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other, cleared = Paths(checkout=Path("/other"), cache=Path("/cache")), []
    monkeypatch.setattr(lab.state, "owner", lambda: other)
    monkeypatch.setattr(lab.cleanup, "clear", cleared.append)
    assert lab._clear_what_is_not_ours(PATHS)
    assert cleared == [other]
    assert "replacing the lab that was started from /other" in "".join(capsys.readouterr())


def test_what_podman_reads_leaves_no_file_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`podman cp -` keeps a copy of its standard input among its temporary files, one for each start of a node."""
    paths = Paths(checkout=tmp_path, cache=tmp_path)

    def podman(_argv: object, *, env: dict[str, str], **_more: object) -> None:
        (Path(env["TMPDIR"]) / "1234567890").write_bytes(b"what it has read")

    monkeypatch.setattr(host, "run", podman)
    host.podman(paths, "cp", "-", "node:/", stdin=b"archive")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
