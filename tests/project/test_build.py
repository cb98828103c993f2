# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive that users install: what is in it, and that it works away from the checkout."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import project
import pytest
import sanity
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _generated_file

# What a user gets. Anything else in the archive is junk.
SHIPPED = {
    "CHANGELOG.rst",
    "FILES.json",
    "LICENSE",
    "MANIFEST.json",
    "README.md",
    "SECURITY.md",
    "ansible.cfg",
    "changelogs",
    "docs",
    "inventories",
    "meta",
    "playbooks",
    "plugins",
    "prod",
    "roles",
    "site.yml",
}
#: A link of Markdown or HTML, and text in which there are none.
LINK = re.compile(r"\]\(([^)\s]+)(?:\s[^)]*)?\)|(?:src|href)=\"([^\"]+)\"")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
MUST_SHIP = SHIPPED - {"CHANGELOG.rst", "docs"}
JUNK = (
    ".venv/bin/python",
    ".ansible/collections/x",
    ".lab/key",
    ".git/config",
    ".mypy_cache/x",
    ".pytest_cache/x",
    "changelogs/.plugin-cache.yaml",
    "dist/old.tar.gz",
    "docs/build/html/index.html",
    "inventories/lab/hosts.yml",
    "inventories/vm/hosts.yml",
    "plugins/modules/__pycache__/x.pyc",
    "tests/output/x",
)

#: `test_init_writes_a_folder_in_which_the_commands_work` has both in every run.
SOURCES = ["archive", pytest.param("checkout", marks=pytest.mark.long)]


def ansible(*command: str, cwd: Path, collections: Path) -> subprocess.CompletedProcess[str]:
    """Run one of Ansible's programs as a user would who has no checkout."""
    environment = project.tool_environment(ANSIBLE_COLLECTIONS_PATH=str(collections))
    del environment["ANSIBLE_CONFIG"]
    argv = [str(project.BIN / command[0]), *command[1:]]
    return subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", name="archive")
def build_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build from a copy in which everything lies around that work leaves behind."""
    work = tmp_path_factory.mktemp("build")
    copy = project.copy_sources(work / "checkout")
    for name in JUNK:
        junk = copy / name
        junk.parent.mkdir(parents=True, exist_ok=True)
        junk.write_text("junk", encoding="utf-8")
    command = ("ansible-galaxy", "collection", "build", "--output-path", str(work))
    done = ansible(*command, cwd=copy, collections=work / "none")
    assert done.returncode == 0, done.stderr
    return next(work.glob("*.tar.gz"))


@pytest.fixture(scope="module", name="names")
def archive_names(archive: Path) -> list[str]:
    """The paths in the archive."""
    with tarfile.open(archive) as tar:
        return tar.getnames()


def test_archive_holds_what_users_need(names: list[str]) -> None:
    """And the playbook that site.yml imports."""
    assert {name.split("/")[0] for name in names} >= MUST_SHIP
    assert {"playbooks/site.yml", "inventories/prod/hosts.yml", "meta/runtime.yml"} <= set(names)


def test_archive_holds_no_junk(names: list[str]) -> None:
    """Nothing of the workshop, and nothing that lay around when it was built."""
    assert {name.split("/")[0] for name in names} - SHIPPED == set()
    assert [name for name in names if set(JUNK) & {name} or "__pycache__" in name or "/." in name] == []
    assert {name.split("/")[1] for name in names if name.startswith("inventories/")} == {"prod"}


def test_sanity_is_run_over_all_that_users_install(names: list[str], tmp_path: Path) -> None:
    sanity.copy_shipped(tmp_path)
    copied = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir()}
    made = {"FILES.json", "MANIFEST.json"}
    assert {name for name in names if name.endswith((".py", ".yml", ".md", ".sh", ".json"))} - made <= copied
    assert "tests/sanity/ignore-2.19.txt" in copied
    assert not {name for name in copied if name.startswith(("tools/", "molecule/", "tests/unit/"))}


@pytest.fixture(scope="module", name="collections")
def install(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the archive is installed."""
    collections = tmp_path_factory.mktemp("installed") / "collections"
    command = ("ansible-galaxy", "collection", "install", "--offline", str(archive), "-p", str(collections))
    installed = ansible(*command, cwd=collections.parent, collections=collections)
    assert installed.returncode == 0, installed.stderr
    return collections


def test_installed_collection_works_elsewhere(collections: Path, tmp_path: Path) -> None:
    """Check all playbooks against the shipped inventory, from another folder."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    inventory = collections / "ansible_collections" / project.NAMESPACE / project.NAME / "inventories" / "prod"
    names = [f"{project.COLLECTION}.{playbook.stem}" for playbook in project.playbooks()]
    command = ("ansible-playbook", *names, "--syntax-check", "-i", str(inventory))
    checked = ansible(*command, cwd=elsewhere, collections=collections)
    assert checked.returncode == 0 and checked.stdout.count("playbook: ") == len(names), checked.stdout + checked.stderr


def test_its_reports_have_its_version_and_the_pages_of_findings(collections: Path, tmp_path: Path) -> None:
    """It has a manifest in place of galaxy.yml."""
    utils = f"ansible_collections.{project.COLLECTION}.plugins.module_utils"
    script = (
        f"from {utils}._base import own_files; from {utils}._check.report import pages; "
        "print(own_files.version(), list(pages.texts(['GC-NET-001'])))"
    )
    run = [sys.executable, "-c", script]
    done = subprocess.run(
        run, cwd=tmp_path, env={"PYTHONPATH": str(collections)}, capture_output=True, text=True, check=False
    )
    version = yaml.safe_load((project.ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    assert done.stdout == f"{version} ['GC-NET-001']\n", done.stderr


def settings(path: Path) -> dict[str, dict[str, str]]:
    """An ansible.cfg without the path of the collections."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(path.read_text(encoding="utf-8"))
    return {
        name: {key: value for key, value in parser[name].items() if key != "collections_path"}
        for name in parser.sections()
    }


def playbooks_in_commands() -> set[str]:
    """The files that commands run, in pages of the archive and in what the check prints."""
    files = [*project.ROOT.glob("*.md"), *project.ROOT.glob("docs/**/*.md"), *project.ROOT.glob("roles/*/README.md")]
    files += project.ROOT.glob("plugins/**/*.py")
    commands = re.compile(r"^[^#\n]*ansible-playbook ([\w./-]+\.yml)", re.MULTILINE)
    found = {name for path in files for name in commands.findall(path.read_text(encoding="utf-8"))}
    assert "site.yml" in found
    return found


@pytest.mark.parametrize("source", ["archive", "checkout"])
def test_init_writes_a_folder_in_which_the_commands_work(collections: Path, tmp_path: Path, source: str) -> None:
    """With our settings, and without an environment that says where the collection is; a second time it refuses."""
    found = collections if source == "archive" else project.COLLECTIONS
    init = ("ansible-playbook", f"{project.COLLECTION}.init", "-e", "dest=./mycluster")
    assert ansible(*init[:2], cwd=tmp_path, collections=found).returncode != 0
    made = ansible(*init, cwd=tmp_path, collections=found)
    assert made.returncode == 0, made.stdout + made.stderr
    folder = tmp_path / "mycluster"
    assert settings(folder / "ansible.cfg") == settings(project.ROOT / "ansible.cfg")
    sample = project.ROOT / "inventories" / "prod"
    for path in (path for path in sample.rglob("*") if path.is_file()):
        assert (folder / "prod" / path.relative_to(sample)).read_bytes() == path.read_bytes()

    assert {words[1].rpartition(".")[2] for words in readme_commands(folder)} == {"host_keys", "yml", "check"}
    done = in_folder(folder, "ansible-playbook", f"{project.COLLECTION}.inventory", "-i", "prod")
    assert done.returncode == 2 and "still holds the sample value" in done.stdout, done.stdout + done.stderr
    # The files are those of the archive and of the checkout alike.
    others = sorted(playbooks_in_commands()) if source == "archive" else []
    names = [f"{project.COLLECTION}.site", *others]
    done = in_folder(folder, "ansible-playbook", *names, "-i", "prod", "--syntax-check")
    assert done.returncode == 0 and done.stdout.count("playbook: ") == len(names), done.stdout + done.stderr

    (folder / "prod" / "hosts.yml").write_text("mine", encoding="utf-8")
    again = ansible(*init, cwd=tmp_path, collections=found)
    assert again.returncode != 0 and "Nothing was written" in again.stdout
    assert (folder / "prod" / "hosts.yml").read_text(encoding="utf-8") == "mine"


def readme_commands(folder: Path) -> list[list[str]]:
    """What the README that init has written tells to run."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 15
    return [shlex.split(words) for words in re.findall(r"`(ansible-playbook [^`]+)`", text)]


def in_folder(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a command as somebody who has only this folder."""
    environment = project.tool_environment(HOME=str(folder.parent))
    del environment["ANSIBLE_CONFIG"]
    words = [str(project.BIN / argv[0]), *argv[1:]]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("source", SOURCES)
def test_the_minimal_inventory_has_no_problem(collections: Path, tmp_path: Path, source: str) -> None:
    found = collections if source == "archive" else project.COLLECTIONS
    root = found / "ansible_collections" / project.NAMESPACE / project.NAME
    example = ("-i", str(root / "docs" / "examples" / "minimal" / "hosts.yml"))
    (tmp_path / "ansible.cfg").write_text((root / "ansible.cfg").read_text(encoding="utf-8"), encoding="utf-8")
    done = ansible("ansible-playbook", f"{project.COLLECTION}.inventory", *example, cwd=tmp_path, collections=found)
    assert done.returncode == 0 and "12 members, no problems in the inventory" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("source", SOURCES)
def test_init_writes_the_inventory_of_the_machines(collections: Path, tmp_path: Path, source: str) -> None:
    """And a README whose commands exist; a host that was written wrongly leaves nothing behind."""
    found = collections if source == "archive" else project.COLLECTIONS
    init = ("ansible-playbook", f"{project.COLLECTION}.init", "-e", "dest=my/cluster", "-e", "user=ops")
    refused = ansible(*init, "-e", "hosts=10.1.1.[22:11],192.0.2.7,n1,n1", cwd=tmp_path, collections=found)
    assert refused.returncode != 0 and "Nothing was written" in refused.stdout
    for value in ("'10.1.1.[22:11]'", "'192.0.2.7'", "'n1'"):
        assert f"command line  hosts = {value}: " in refused.stdout, refused.stdout
    assert list(tmp_path.iterdir()) == []

    before = tree(found)
    made = ansible(*init, "-e", "hosts=10.1.1.[11:22]", cwd=tmp_path, collections=found)
    assert made.returncode == 0, made.stdout + made.stderr
    folder = tmp_path / "my" / "cluster"
    names = [".gitignore", "README.md", "ansible.cfg", "prod", "site.yml"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert [path.name for path in folder.parent.iterdir()] == ["cluster"] and tree(found) == before
    text = (folder / "prod" / "hosts.yml").read_text(encoding="utf-8")
    group = yaml.safe_load(text)["gpu_cluster"]
    assert _generated_file.is_unedited(text)
    assert list(group["hosts"].values()) == [{"ansible_host": f"10.1.1.{number}"} for number in range(11, 23)]
    assert group["vars"] == {"ansible_user": "ops", "ansible_become": True}
    said = made.stdout.partition("Written: ")[2]
    commands = {words[1]: words for words in readme_commands(folder)}
    assert len(commands) == 4 and "ansible-playbook site.yml -i prod --tags preflight" in said
    for command in commands.values() if source == "archive" else ():
        done = in_folder(folder, *command, "--syntax-check")
        assert done.returncode == 0 and "playbook:" in done.stdout, done.stdout + done.stderr

    secrets = (".ssh_ca/host_ca", ".vault_pass", "vault-password", "keys/id_ed25519")
    kept = ("prod/.known_hosts", "prod/.host_keys/n1.pub", "prod/torch-lock.txt", "prod/hosts.yml", "id_ed25519.pub")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    ignored = ["git", "check-ignore", *(f"prod/{name}" for name in secrets), *kept]
    listed = subprocess.run(ignored, cwd=folder, capture_output=True, text=True, check=True).stdout
    assert listed.split() == [f"prod/{name}" for name in secrets]


def test_manifests_are_written_beside_the_inventory(collections: Path, tmp_path: Path) -> None:
    """By a run that reaches no host; the pods mount the training script of the archive."""
    hosts = {f"gpu0{number}": {"gpu_cluster_fabric_address": f"10.1.0.{number}/24"} for number in (1, 2)}
    shared = {"gpu_cluster_fabric_interface": "fab0", "gpu_cluster_gpus": 8}
    (tmp_path / "prod").mkdir()
    (tmp_path / "ansible.cfg").write_bytes((project.ROOT / "ansible.cfg").read_bytes())
    described = {"gpu_cluster": {"hosts": hosts, "vars": shared}}
    (tmp_path / "prod" / "hosts.yml").write_text(yaml.safe_dump(described), encoding="utf-8")
    command = ("ansible-playbook", f"{project.COLLECTION}.kubernetes", "-i", "prod", "-e", "kubernetes_image=train:1")
    done = ansible(*command, cwd=tmp_path, collections=collections)
    assert done.returncode == 0 and "sh labels.sh" in done.stdout, done.stdout + done.stderr
    text = (tmp_path / "kubernetes" / "prod" / "files.yml").read_text(encoding="utf-8")
    example = project.ROOT / "docs" / "examples" / "train.py"
    assert _generated_file.is_unedited(text)
    assert yaml.safe_load(text)["data"]["train.py"].strip() == example.read_text(encoding="utf-8").strip()


def tree(folder: Path) -> dict[str, int]:
    """Every file of a collection and when it changed; what Python leaves is not of interest."""
    root = folder / "ansible_collections" / project.NAMESPACE / project.NAME
    files = [path for name in ("playbooks", "inventories") for path in (root / name).rglob("*")]
    return {str(path): path.stat().st_mtime_ns for path in files if "__pycache__" not in path.parts}


def test_no_link_in_the_archive_is_dead(collections: Path) -> None:
    """What a page refers to is in the archive; other parts of the repository are named without a link."""
    root = collections / "ansible_collections" / project.NAMESPACE / project.NAME
    pages = sorted(root.rglob("*.md"))
    assert root / "README.md" in pages
    dead = []
    for page in pages:
        text = CODE.sub("", page.read_text(encoding="utf-8"))
        for target in (found.partition("#")[0] for pair in LINK.findall(text) for found in pair):
            if target and "://" not in target and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(root)}: {target}")
    assert dead == []


def test_dependencies_are_those_that_are_used() -> None:
    """Every foreign collection that roles and playbooks call is a dependency, and no other is."""
    declared = yaml.safe_load((project.ROOT / "galaxy.yml").read_text(encoding="utf-8"))["dependencies"]
    used = set()
    for folder in ("roles", "playbooks"):
        for file in (project.ROOT / folder).rglob("*.yml"):
            used |= called_collections(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert used - {"ansible.builtin", project.COLLECTION} == set(declared)


def called_collections(node: object) -> set[str]:
    """The collections whose modules or roles a task file names as keys."""
    if isinstance(node, dict):
        keys = {key for key in node if isinstance(key, str)}
        named = {".".join(key.split(".")[:2]) for key in keys if key.count(".") == 2 and "/" not in key}
        return named.union(*(called_collections(value) for value in node.values()))
    if isinstance(node, list):
        return set().union(*(called_collections(item) for item in node))
    return set()
