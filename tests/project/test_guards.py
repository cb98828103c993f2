# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No tag, skip, limit or start-at-task gets past a refused inventory, whatever is run."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import project
import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import run_tags
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.authority import Authority
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _command_line

SITE = f"{project.COLLECTION}.site"
#: Filters for the hosts of a play: the guard, and those for plays that act on no node.
GUARD = f"{project.COLLECTION}.sound_targets"
UNGUARDED = (f"{project.COLLECTION}.play_targets", f"{project.COLLECTION}.known_tags")
#: What a play without the guard may call. The role preflight reads the nodes, the role common contacts them at most.
READING = {
    *(f"ansible.builtin.{name}" for name in ("assert", "debug", "set_fact")),
    *(f"{project.COLLECTION}.{name}" for name in ("preflight", "common")),
}
IMPORTS = ("ansible.builtin.import_role", "ansible.builtin.include_role")
KEYWORDS = {"name", "vars", "when", "tags", "run_once", "delegate_to", "delegate_facts", "register"}

#: n3 was given the fabric address of n2: preflight looks at the hosts all the same, and refuses both afterwards.
REFUSED = {
    f"n{number}": {"ansible_host": f"10.9.0.{number}", "gpu_cluster_fabric_address": f"10.8.0.{min(number, 2)}/24"}
    for number in (1, 2, 3)
}
GOOD = {**REFUSED, "n3": {**REFUSED["n3"], "gpu_cluster_fabric_address": "10.8.0.3/24"}}
#: Takes the place of ssh: writes down that a node was contacted, and reaches nobody.
SSH = '#!/bin/sh\necho "$@" >> "$CONTACTS"\nexit 255\n'
OWN_PLAYBOOK = f"""
- name: Do something of one's own
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Say it
      ansible.builtin.debug:
      tags: [mine]

- name: Set up the data network
  ansible.builtin.import_playbook: {project.COLLECTION}.network
"""


def entries(path: Path) -> list[dict[str, Any]]:
    """A playbook as YAML."""
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


#: Contacts no host, and needs no inventory.
WITHOUT_NODES = "init"
PLAYBOOKS = {path.stem: entries(path) for path in project.playbooks() if path.stem != WITHOUT_NODES}
PLAYS = [
    pytest.param(play, id=f"{name}-{play['name']}")
    for name, found in PLAYBOOKS.items()
    for play in found
    if "hosts" in play
]


def tags_in(node: Any) -> set[str]:
    """Every tag below a node of YAML."""
    if isinstance(node, Mapping):
        own = node.get("tags", [])
        return {own} if isinstance(own, str) else set(own) | {tag for one in node.values() for tag in tags_in(one)}
    return {tag for one in node for tag in tags_in(one)} if isinstance(node, list) else set()


def actions(play: Mapping[str, Any]) -> set[str]:
    """The roles and modules that a play calls."""
    found = {role["role"] for role in play.get("roles", [])}
    for task in [*play.get("pre_tasks", []), *play.get("tasks", [])]:
        for action in set(task) - KEYWORDS:
            found.add(task[action]["name"] if action in IMPORTS else action)
    return found


def phases() -> list[str]:
    """The phases in the table of the README, which has a row for each."""
    text = (project.ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("| phase | roles |")[2].partition("\n\n")[0]
    return re.findall(r"^\| (\w+) \|", table, re.MULTILINE)


def first_import(name: str) -> str:
    """The playbook with which a playbook begins, in the end."""
    begins = str(PLAYBOOKS[name][0].get("ansible.builtin.import_playbook", "")).rpartition(".")[2]
    return first_import(begins) if begins else name


@pytest.mark.parametrize("play", PLAYS)
def test_every_play_that_can_act_is_guarded_by_its_hosts(play: dict[str, Any]) -> None:
    assert any(name in play["hosts"] for name in (GUARD, *UNGUARDED)), play["hosts"]
    if GUARD not in play["hosts"]:
        assert actions(play) <= READING


@pytest.mark.parametrize("play", PLAYS)
def test_every_play_that_logs_in_verifies_host_keys(play: dict[str, Any]) -> None:
    """An inventory of six lines says nothing of known hosts."""
    if play.get("become") or f"{project.COLLECTION}.host_key_probe" in actions(play):
        assert f"{project.COLLECTION}.ssh_common_args(" in play["vars"]["ansible_ssh_common_args"]


@pytest.mark.parametrize("name", sorted(PLAYBOOKS))
def test_every_playbook_begins_with_the_inventory(name: str) -> None:
    """It tells all problems in a table, and makes the variables of the hosts known to the guard."""
    assert first_import(name) == "inventory"


@pytest.fixture(scope="module", name="lists")
def fixture_lists() -> dict[str, str]:
    """What --list-tasks prints of each playbook, by one command for all of them."""
    names = [f"{project.COLLECTION}.{name}" for name in sorted(PLAYBOOKS)]
    command = (str(project.BIN / "ansible-playbook"), *names, "--list-tasks", "-i", "n1,")
    environment = project.tool_environment(ANSIBLE_NOCOLOR="1")
    done = subprocess.run(command, cwd=project.ROOT, env=environment, capture_output=True, text=True, check=True)
    return dict(zip(sorted(PLAYBOOKS), re.split(r"^playbook: .*$", done.stdout, flags=re.MULTILINE)[1:], strict=True))


@pytest.mark.parametrize("name", sorted(PLAYBOOKS))
def test_every_task_of_list_tasks_is_one_at_which_a_run_can_start(name: str, lists: dict[str, str]) -> None:
    """What Ansible lists is what it can start at: the guard knows these names, and no others."""
    listed = {line.strip() for line in re.findall(r"^      (.*)\tTAGS: ", lists[name], re.MULTILINE)}
    listed = {re.sub(r"^\S+ : ", "", line) for line in listed}
    known = set(run_tags.task_names(PLAYBOOKS[name], PLAYBOOKS, _command_line._tasks_of))
    assert listed
    own = {line for line in listed if fnmatch(line, run_tags.ARGUMENTS)}
    assert listed - own == {task for task in known if " : " not in task}


def test_all_tags_stand_in_the_playbooks() -> None:
    """A tag inside a role would be unknown to the filter known_tags."""
    files = [*project.ROOT.glob("roles/*/tasks/*.yml"), *project.ROOT.glob("roles/*/handlers/*.yml")]
    assert files
    assert [str(path) for path in files if tags_in(yaml.safe_load(path.read_text(encoding="utf-8")))] == []


def test_every_phase_of_the_readme_is_a_tag() -> None:
    assert len(phases()) == 6 and set(phases()) <= tags_in(list(PLAYBOOKS.values()))
    for phase in phases():
        acting = [play for play in PLAYBOOKS[phase] if GUARD in play.get("hosts", "")]
        assert [play["name"] for play in acting if phase not in play["tags"]] == []


@dataclass
class Ended:
    """A run of ansible-playbook."""

    code: int
    text: str
    contacts: str

    @property
    def tasks(self) -> set[str]:
        """The tasks that were started."""
        return set(re.findall(r"^TASK \[(.*)\] \*", self.text, re.MULTILINE))


@dataclass
class Site:
    """A folder with inventories, and with what stands for ssh."""

    folder: Path
    commands: list[dict[str, Any]] = field(default_factory=list)

    def add(self, inventory: str, *arguments: str) -> int:
        """Remember one run; its number."""
        number = len(self.commands)
        self.commands.append(
            {
                "arguments": ["-i", str(self.folder / inventory), *arguments],
                "environment": {"CONTACTS": str(self.folder / f"contacts-{number}")},
                "output": str(self.folder / f"output-{number}"),
            }
        )
        return number

    def run(self) -> list[Ended]:
        """Run all of them."""
        program = [str(project.BIN / "python"), str(Path(__file__).with_name("many_playbooks.py"))]
        # Ansible's own output names the tasks that ran.
        environment = project.tool_environment(
            ANSIBLE_NOCOLOR="1", ANSIBLE_CALLBACK_RESULT_FORMAT="json", ANSIBLE_STDOUT_CALLBACK="default"
        )
        given = json.dumps(self.commands)
        done = subprocess.run(
            program, cwd=project.ROOT, env=environment, input=given, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return [self._ended(number, code) for number, code in enumerate(json.loads(done.stdout))]

    def _ended(self, number: int, code: int) -> Ended:
        contacts = self.folder / f"contacts-{number}"
        text = (self.folder / f"output-{number}").read_text(encoding="utf-8")
        return Ended(code, text, contacts.read_text(encoding="utf-8") if contacts.exists() else "")


@pytest.fixture(name="site")
def make_site(tmp_path: Path) -> Site:
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH, encoding="utf-8")
    ssh.chmod(0o700)
    variables = {
        "ansible_ssh_executable": str(ssh),
        "ansible_python_interpreter": "/usr/bin/python3",
        "gpu_cluster_fabric_interface": "fab0",
        "torch_runtime_index_url": "https://packages.example/simple",
    }
    for name, hosts in {"refused": REFUSED, "good": GOOD}.items():
        (tmp_path / name).mkdir()
        text = json.dumps({"gpu_cluster": {"vars": variables, "hosts": hosts}})
        (tmp_path / name / "hosts.json").write_text(text, encoding="utf-8")
    (tmp_path / "own.yml").write_text(OWN_PLAYBOOK, encoding="utf-8")
    return Site(tmp_path)


PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC3y8l4AmRV0PO/8315zrXBJzA3t7h3A2E8Ta6s45mXj"


def partial_runs() -> Iterator[Sequence[str]]:
    """Every way to take a part of what there is."""
    tags = sorted(tags_in([found for name, found in PLAYBOOKS.items() if name not in ("rebuild", "revoke")]))
    assert {"cluster_hosts", "always", *phases()} <= set(tags)
    yield from (("site.yml", "--tags", tag) for tag in tags)
    yield from (("site.yml", "--tags", tag, "--limit", "n1") for tag in ("static_network", "base"))
    yield from (("site.yml", *words) for words in ([], ["--limit", "n1"], ["--check"], ["--skip-tags", "check"]))
    for skipped in ("preflight", "always", "always,preflight", ",".join(tag for tag in tags if tag != "network")):
        yield "site.yml", "--skip-tags", skipped
    for task in ("Render the block", "Say what ran, and whether the cluster is validated"):
        yield "site.yml", "--start-at-task", task
        yield "site.yml", "--start-at-task", task, "--limit", "n1"
    for name in sorted(set(PLAYBOOKS) - {"inventory", "site"}):
        given = ("-e", "revoke_hosts=n2", "-e", "rebuild_hosts=n2")
        yield f"{project.COLLECTION}.{name}", "--skip-tags", "tagged", *given
    yield f"{project.COLLECTION}.preflight", "--skip-tags", "all"
    yield f"{project.COLLECTION}.preflight", "--start-at-task", "Hosts | Stop all when*"


def test_no_part_of_a_run_gets_past_a_refused_inventory(site: Site) -> None:
    """Beside the look at the hosts, which changes nothing, no node is contacted; nothing is written for one either."""
    chosen = list(partial_runs())
    for words in chosen:
        site.add("refused", *words)
    found = {" ".join(words): ended for words, ended in zip(chosen, site.run(), strict=True)}
    ours = re.compile(
        rf"{project.COLLECTION}\.(preflight|common) : |^Stop when the (members' group is empty|limit has)"
    )
    for words, ended in found.items():
        assert ended.code != 0, f"{words}: {ended.text}"
        assert [task for task in ended.tasks if not ours.search(task)] == [], words
        assert not ended.contacts or f"{project.COLLECTION}.preflight : Hosts | Look at the node" in ended.tasks, words
        assert "is also the fabric address of n3" in ended.text and "nothing was changed" in ended.text, ended.text
    looked = [words for words, ended in found.items() if ended.contacts]
    assert "site.yml" in looked and "site.yml --tags cluster_hosts" not in looked
    assert [path.name for path in (site.folder / "refused").iterdir()] == ["hosts.json"]


def test_host_keys_are_read_before_the_cards_are_known(site: Site) -> None:
    """In an inventory of init. Any other problem is refused, and other playbooks refuse this one."""
    group = {"vars": {"ansible_ssh_executable": str(site.folder / "ssh")}}
    for name, hosts in {"new": GOOD, "twice": {**GOOD, "n3": GOOD["n2"]}}.items():
        (site.folder / name).mkdir()
        addresses = {host: {"ansible_host": own["ansible_host"]} for host, own in hosts.items()}
        text = json.dumps({"gpu_cluster": {**group, "hosts": addresses}})
        (site.folder / name / "hosts.json").write_text(text, encoding="utf-8")
        site.add(name, f"{project.COLLECTION}.host_keys")
    site.add("new", SITE, "--tags", "cluster_hosts")
    asked, twice, other = site.run()
    assert all(f"10.9.0.{number}" in asked.contacts for number in (1, 2, 3)), asked.text
    assert str(site.folder / "new" / ".known_hosts") in asked.contacts and "StrictHostKeyChecking=yes" in asked.contacts
    assert "is also the ssh address of n3" in twice.text and not twice.contacts, twice.text
    assert "gpu_cluster_fabric_address: not set" not in twice.text
    assert "gpu_cluster_fabric_address: not set" in other.text and not other.contacts


def test_whom_a_revocation_means(site: Site) -> None:
    """As a list too, with blanks, twice; every unknown name at once; and no misspelt yes is a no."""
    Authority(str(site.folder / "good" / ".ssh_ca")).ensure()
    (site.folder / "good" / ".ssh_ca" / "issued.jsonl").write_text(
        json.dumps({"serial": 7, "kind": "user", "host": "n02", "name": "train", "public_key": PUBLIC_KEY}) + "\n"
    )
    revoke = f"{project.COLLECTION}.revoke"
    site.add("good", revoke, "-e", json.dumps({"revoke_hosts": ["n7", " n8 ", "n7"]}))
    site.add("good", revoke, "-e", "revoke_hosts=' n7 ,,n2,n*'")
    site.add("good", revoke, "-e", "revoke_hosts=n02", "-e", "revoke_host_keys=ture")
    as_list, as_text, misspelt = site.run()
    assert "Nothing was revoked: nothing was ever signed for n7, n8 here" in as_list.text, as_list.text
    assert "nothing was ever signed for n7, n2, n* here. Write n02 for n2" in as_text.text, as_text.text
    assert misspelt.code != 0 and "ture" in misspelt.text and "host_keys" in misspelt.text, misspelt.text
    assert not list((site.folder / "good" / ".ssh_ca").glob("revoked_*.txt"))


def test_a_limited_revocation_reaches_only_these_hosts(site: Site) -> None:
    authority = Authority(str(site.folder / "good" / ".ssh_ca"))
    authority.ensure()
    (site.folder / "good" / ".ssh_ca" / "issued.jsonl").write_text(
        json.dumps({"serial": 7, "kind": "user", "host": "n02", "name": "train", "public_key": PUBLIC_KEY}) + "\n"
    )
    site.add("good", f"{project.COLLECTION}.revoke", "-e", "revoke_hosts=n02", "--limit", "n1")
    (ended,) = site.run()
    assert "10.9.0.1" in ended.contacts, ended.text
    assert not re.search(r"10\.9\.0\.[23]\b", ended.contacts)


def test_what_stands_for_ssh_is_called_when_the_inventory_is_good(site: Site) -> None:
    """So the test above would see a contact. And: which tags are refused, and what a run says at its end."""
    site.add("good", "site.yml", "--tags", "cluster_hosts")
    site.add("good", "site.yml", "--tags", "always", "--limit", "n1,n2")
    site.add("good", "site.yml", "--tags", "preflght,clusterhosts", "--skip-tags", "statc_network")
    site.add("good", f"{project.COLLECTION}.network", "--tags", "nccl", "--limit", "n1")
    site.add("good", str(site.folder / "own.yml"), "--tags", "mine,unknown")
    site.add("refused", str(site.folder / "own.yml"), "--tags", "mine")
    site.add("good", "site.yml", "--list-tags", "--tags", "preflght")
    site.add(
        "good", "site.yml", "--tags", "always", "--skip-tags", "molecule-notest,notest,molecule-idempotence-notest"
    )
    site.add("good", "site.yml", "-i", "localhost,", "--limit", "localhost")
    site.add("good", "site.yml", "--start-at-task", "Render the blok")
    # Nothing but tasks that are always run would be left of these.
    site.add("good", f"{project.COLLECTION}.check", "--tags", "preflight")
    site.add("good", f"{project.COLLECTION}.revoke", "--tags", "always", "-e", "revoke_hosts=n2")
    site.add("good", f"{project.COLLECTION}.revoke", "--skip-tags", "ssh_mesh", "-e", "revoke_hosts=n2")
    contacted, always, unknown, elsewhere, own, own_refused, listed, molecule, nobody, *nothing = site.run()
    assert contacted.code != 0 and all(f"10.9.0.{number}" in contacted.contacts for number in (1, 2, 3))
    assert always.code == 0 and not always.contacts, always.text
    line = (
        "NOT VALIDATED: ran with --tags always --limit n1,n2, on 2 of 3 members. Validate the cluster with the playbook"
    )
    assert line in always.text.partition("TASK [Say what ran")[2], always.text
    assert unknown.code != 0 and not unknown.tasks
    for sentence in (
        "--tags = 'preflght': no task of site.yml has this tag. Fix: write preflight.",
        "--tags = 'clusterhosts': no task of site.yml has this tag. Fix: write cluster_hosts.",
        "--skip-tags = 'statc_network': no task of this collection has this tag. Fix: write static_network.",
    ):
        assert sentence in unknown.text, unknown.text
    assert elsewhere.code != 0 and "no task of baremetal.gpu_cluster.network has this tag" in elsewhere.text
    assert own.code == 0 and "Say it" in own.tasks, own.text
    assert own_refused.code != 0 and "is also the fabric address of n3" in own_refused.text
    assert "nothing was changed" not in own_refused.text, own_refused.text
    assert listed.code == 0
    assert molecule.code == 0, molecule.text
    assert nobody.code != 0 and "--limit localhost has no member of the group gpu_cluster" in nobody.text, nobody.text
    for ended, sentence in zip(
        nothing,
        (
            "Fix: write 'Render the block'.",
            "--tags = 'preflight': no task of baremetal.gpu_cluster.check has this tag",
            "Nothing was revoked: there is no authority in",
            "The hosts of this play are not chosen: --skip-tags ssh_mesh left out the task",
        ),
        strict=True,
    ):
        assert ended.code != 0 and sentence in ended.text, ended.text
    shown = set(re.findall(r"\w+", " ".join(re.findall(r"TAGS: \[(.*)\]", listed.text))))
    assert tags_in([PLAYBOOKS[name] for name in ("inventory", *phases())]) == shown


def test_no_part_of_a_rebuild_turns_to_all_members(site: Site) -> None:
    """The phases run on all members as long as no task has turned to rebuild_hosts."""
    rebuild = (f"{project.COLLECTION}.rebuild", "-e", "rebuild_hosts=n2")
    chosen = [("--skip-tags", skipped) for skipped in ("always", "always,preflight", "always,cluster_hosts")]
    tasks = ("Learn which host key each host offers", "Render the block", "Read what the nodes should agree in")
    chosen += [("--start-at-task", task) for task in tasks]
    for words in chosen:
        site.add("good", *rebuild, *words)
    for words, ended in zip(chosen, site.run(), strict=True):
        assert ended.code != 0 and not ended.contacts, f"{words}: {ended.text}"
        assert "The hosts of this play are not chosen: " in ended.text, ended.text
        assert "nothing was changed and no host was contacted" in ended.text, ended.text
