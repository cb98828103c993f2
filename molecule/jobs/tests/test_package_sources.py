# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Package sources on a node without internet: signed packages from a mirror, and every way to fail of a mirror."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lab_mirror
import pytest
from lab_cluster import Cluster, Ended

PLAYBOOK = """\
- name: Set up package sources
  hosts: "{node}"
  gather_facts: false
  roles: [baremetal.gpu_cluster.package_sources]
"""
STATE = (
    "sha256sum /etc/yum.repos.d/* /etc/dnf/dnf.conf /etc/pki/rpm-gpg/* 2>/dev/null | grep -v SHA; "
    "stat -c '%n %a %U' /etc/yum.repos.d/* /etc/dnf/dnf.conf; rpm -q gpg-pubkey | sort; true"
)
SAVE = (
    "rm -rf /var/tmp/sources; mkdir /var/tmp/sources; cp -a /etc/yum.repos.d /etc/dnf/dnf.conf /var/tmp/sources/; "
    "rpm -q gpg-pubkey > /var/tmp/sources/keys; true"
)
RESTORE = (
    "rpm -e labtool 2>/dev/null; for key in $(rpm -q gpg-pubkey); do grep -qxF $key /var/tmp/sources/keys || "
    "rpm -e --allmatches $key 2>/dev/null; done; rm -rf /etc/yum.repos.d /etc/pki/rpm-gpg/*gpu-cluster* "
    "/var/cache/dnf/gpu-cluster-* /var/cache/dnf/crb*; rmdir /etc/pki/rpm-gpg /etc/pki 2>/dev/null; "
    "cp -a /var/tmp/sources/yum.repos.d /etc/; cp -a /var/tmp/sources/dnf.conf /etc/dnf/; rm -rf /var/tmp/sources"
)
OUR_FILE = "/etc/yum.repos.d/gpu-cluster.repo"
SYSTEM_OFF = [{"id": "lab-os", "state": "disabled"}, {"id": "lab-nvidia", "state": "disabled"}]


@dataclass(frozen=True)
class Site:
    """What the site has: a web server, its folder, and the fingerprints of its keys by name."""

    mirror: lab_mirror.Mirror
    folder: Path
    keys: dict[str, str]

    def entry(self, name: str, folder: str = "", key: str = "site", **more: Any) -> dict[str, Any]:
        return {
            "id": name,
            "baseurl": f"{self.mirror.url}/{folder or name}",
            "gpg_key": f"{self.mirror.url}/keys/{key}.asc",
            "gpg_fingerprints": [self.keys["site"]],
            **more,
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("mirror")
    keys = lab_mirror.Keys(tmp_path_factory.mktemp("keys") / "g")
    fingerprints = {"site": keys.make("site"), "foreign": keys.make("foreign")}
    fingerprints["old"] = keys.make("old", expires="30d", when="20240101T000000")
    (folder / "keys").mkdir()
    for name in fingerprints:
        (folder / "keys" / f"{name}.asc").write_text(keys.public(name))
    packages = {
        "tools": [("labtool", "site", "noarch"), ("libnccl", "site", "x86_64"), ("libnccl", "site", "aarch64")],
        "bad": [
            ("tamperedtool", "site", "noarch"),
            ("foreigntool", "foreign", "noarch"),
            ("unsignedtool", "", "noarch"),
        ],
        "arm": [("libnccl", "site", "aarch64")],
    }
    for repository, content in packages.items():
        (folder / repository).mkdir()
        built = [lab_mirror.build(folder / repository, keys, signer, name, arch=arch) for name, signer, arch in content]
        if repository == "bad":
            lab_mirror.tamper(built[0])
        lab_mirror.index(folder / repository)
    (folder / "text" / "repodata").mkdir(parents=True)
    (folder / "text" / "repodata" / "repomd.xml").write_text("maintenance until noon")
    (folder / "simple" / "torch").mkdir(parents=True)
    wheel = "torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl"
    (folder / "simple" / "torch" / "index.html").write_text(
        f'<!DOCTYPE html><a href="../../{wheel}#sha256=0">torch</a>'
    )
    mirror = lab_mirror.Mirror(folder)
    yield Site(mirror, folder, fingerprints)
    mirror.close()
    keys.close()


class Node:
    """The node under test, and the role on it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.name = next(iter(cluster.hosts))
        self.folder = folder
        self.playbook = folder / "sources.yml"
        self.playbook.write_text(PLAYBOOK.format(node=self.name))

    def apply(self, repositories: list[dict[str, Any]], *arguments: str, **settings: Any) -> Ended:
        # The mirror is a thread of this process, on a machine that other tests keep busy.
        variables = {"package_sources_repositories": repositories, "package_sources_timeout_seconds": 20}
        variables.update({f"package_sources_{name}": value for name, value in settings.items()})
        file = self.folder / "variables.json"
        file.write_text(json.dumps(variables))
        return self.cluster.play(str(self.playbook), "-e", f"@{file}", *arguments)

    def changes(self, repositories: list[dict[str, Any]], *arguments: str, **settings: Any) -> int:
        """How many tasks of a run that must end well have changed something."""
        ended = self.apply(repositories, *arguments, **settings)
        found = re.search(rf"^{self.name} +: ok=\d+ +changed=(\d+)", ended.text, re.MULTILINE)
        assert ended.code == 0 and found, ended.text
        return int(found.group(1))

    def refused(self, repositories: list[dict[str, Any]], **settings: Any) -> str:
        """What is said by a run that must fail, on one line; it must not have changed anything."""
        before = self.state
        ended = self.apply(repositories, **settings)
        assert ended.code == 2, ended.text
        assert "Nothing was changed." in ended.text
        assert self.state == before
        return " ".join(ended.text.split())

    def run(self, command: str) -> str:
        return self.cluster.shell(self.name, command)

    @property
    def state(self) -> str:
        return self.run(STATE)

    @property
    def enabled(self) -> set[str]:
        return {line.split()[0] for line in self.run("dnf -q repolist --enabled | tail -n +2").splitlines()}

    def install(self, name: str) -> str:
        """What dnf says, and whether the package is there afterwards."""
        return self.run(f"dnf -y install {name} 2>&1; rpm -q {name}; cat /usr/share/{name}/version; true")


@pytest.fixture
def node(cluster: Cluster, tmp_path: Path) -> Iterator[Node]:
    found = Node(cluster, tmp_path)
    before = found.state
    found.run(SAVE)
    yield found
    found.run(RESTORE)
    assert found.state == before


def test_without_internet_packages_come_from_a_signed_mirror(node: Node, site: Site) -> None:
    wanted = [*SYSTEM_OFF, site.entry("tools", packages=["labtool"])]
    site.mirror.requests.clear()
    assert node.changes(wanted) == 1
    assert node.enabled == {"gpu-cluster-tools"}
    assert "/keys/site.asc" in site.mirror.requests
    said = node.install("labtool")
    assert "labtool 1\n" in said and "labtool-1-1.noarch" in said

    # The second run asks again, past dnf's cache, for no more than the list of the metadata.
    site.mirror.requests.clear()
    assert node.changes(wanted) == 0
    assert site.mirror.requests == ["/tools/repodata/repomd.xml"]

    # What is no longer wanted goes, what was switched off is switched on again, and the key that stays is named.
    ended = node.apply([{"id": "lab-os"}, {"id": "lab-nvidia"}])
    assert ended.code == 0 and "still trusts the key" in ended.text
    assert node.enabled == {"lab-os", "lab-nvidia"}
    assert node.run(f"ls {OUR_FILE} /etc/pki/rpm-gpg/*gpu-cluster* 2>/dev/null; true") == ""


def test_only_packages_with_the_pinned_signature_are_installed(node: Node, site: Site) -> None:
    assert node.changes([*SYSTEM_OFF, site.entry("bad")]) == 1
    for name in ("tamperedtool", "foreigntool", "unsignedtool"):
        said = node.install(name)
        assert f"package {name} is not installed" in said, said
        assert re.search(r"(?i)gpg|not signed|digest|signature", said), said


def test_every_mirror_that_cannot_be_used_has_its_sentence(node: Node, site: Site, tmp_path: Path) -> None:
    closed = lab_mirror.closed_port()
    tls = lab_mirror.Mirror(site.folder)
    tls.secure(tmp_path)
    with lab_mirror.silent_server() as silent:
        said = node.refused(
            [
                site.entry("wrong-path"),
                site.entry("portal", "portal/tools"),
                site.entry("text", "text"),
                {**site.entry("closed"), "baseurl": f"{closed}/tools"},
                {**site.entry("silent"), "baseurl": f"{silent}/tools"},
                {**site.entry("name"), "baseurl": "http://mirror.invalid/tools"},
                {**site.entry("tls"), "baseurl": f"{tls.url}/tools"},
                {**site.entry("folder"), "baseurl": "file:///srv/no-such-repository"},
                site.entry("foreign", "tools", key="foreign"),
                {**site.entry("old", "tools", key="old"), "gpg_fingerprints": [site.keys["old"]]},
                site.entry("no-key", "tools", key="nothing"),
            ],
            timeout_seconds=5,
        )
    tls.close()
    variable, url = "package_sources_repositories", site.mirror.url
    for sentence in (
        f"{variable}[wrong-path].baseurl = '{url}/wrong-path': the mirror answers 404 for repodata/repomd.xml.",
        f"[portal].baseurl = '{url}/portal/tools': the mirror answers with a web page 'Sign in to the network'",
        f"[silent].baseurl = '{silent}/tools': the mirror did not answer within ",
        f"[closed].baseurl = '{closed}/tools': the mirror refuses the connection.",
        "the name mirror.invalid is not known to the node",
        f"[text].baseurl = '{url}/text': the mirror answers with something else than repodata/repomd.xml: it is no XML",
        "[tls].baseurl = 'https://",
        "the certificate of the mirror is not accepted: self-signed certificate.",
        # What follows is the system's own word for it, in the language of the node.
        "the node cannot read repodata/repomd.xml: ",
        f"[foreign].gpg_key: the key from {url}/keys/foreign.asc has the fingerprint {site.keys['foreign']}, "
        f"and pinned is {site.keys['site']}.",
        f"the key {site.keys['old']} from {url}/keys/old.asc has expired on 2024-01-31.",
        f"[no-key].gpg_key = '{url}/keys/nothing.asc': the mirror answers 404 for the key.",
    ):
        assert sentence in said, f"{sentence}\n{said}"


def test_a_repository_without_what_is_needed_is_refused(node: Node, site: Site) -> None:
    said = node.refused([site.entry("nvidia", "arm"), site.entry("more", "tools", packages=["cuda-toolkit-13-0"])])
    assert "[nvidia].baseurl = " in said and "the repository is for aarch64, and this node is x86_64." in said
    assert "the repository offers none of the wanted packages cuda-toolkit-13-0." in said


def test_a_fresh_cache_of_dnf_hides_nothing(node: Node, site: Site) -> None:
    mirror = lab_mirror.Mirror(site.folder)
    node.run(f"echo '{(site.folder / 'keys' / 'site.asc').read_text()}' > /var/tmp/sources/site.asc")
    entry = {**site.entry("tools"), "baseurl": f"{mirror.url}/tools", "gpg_key": "file:///var/tmp/sources/site.asc"}
    assert node.changes([entry]) == 1
    # dnf takes metadata for old that is older than the file of the repository, so it reads them once more.
    node.run("dnf -q --disablerepo='lab-*' makecache")
    mirror.close()
    assert "labtool" in node.run("dnf -q --disablerepo='lab-*' repoquery labtool")
    said = node.refused([entry])
    assert f"[tools].baseurl = '{mirror.url}/tools': the mirror refuses the connection." in said


def test_a_key_that_rpm_refuses_leaves_everything_as_it_was(node: Node, site: Site) -> None:
    """The same primary key, so the fingerprint fits; but its own signature over it is damaged."""
    good = (site.folder / "keys" / "site.asc").read_text().splitlines()
    data = [number for number, line in enumerate(good) if len(line) == 64]
    broken = good[data[-2]]
    good[data[-2]] = broken[:10] + ("A" if broken[10] != "A" else "B") + broken[11:]
    good = [line for line in good if not line.startswith("=")]
    (site.folder / "keys" / "broken.asc").write_text("\n".join(good) + "\n")
    before = node.state
    ended = node.apply([site.entry("tools", key="broken")])
    said = " ".join(ended.text.split())
    assert ended.code == 2 and f"rpm does not take the key {site.keys['site']}" in said, said
    assert "Everything is as it was before." in said
    assert node.state == before


def test_a_change_that_fails_halfway_is_taken_back(node: Node, site: Site) -> None:
    """The key file comes last, when rpm has the key and dnf the repository; and its folder leads nowhere."""
    node.run("mkdir -p /etc/pki/rpm-gpg; mv /etc/pki/rpm-gpg /etc/pki/away; ln -s /nowhere /etc/pki/rpm-gpg")
    before = node.state
    try:
        ended = node.apply([*SYSTEM_OFF, site.entry("tools")])
        after = node.state
    finally:
        node.run("rm /etc/pki/rpm-gpg; mv /etc/pki/away /etc/pki/rpm-gpg")
    said = " ".join(ended.text.split())
    assert ended.code == 2 and "/etc/pki/rpm-gpg" in said and "Everything is as it was before." in said, said
    assert after == before


def test_everything_goes_through_the_proxy(node: Node, site: Site) -> None:
    proxy = lab_mirror.Proxy()
    direct = site.entry("bad", proxy="none")
    assert node.changes([site.entry("tools"), direct], proxy=proxy.url) == 1
    assert f"{site.mirror.url}/tools/repodata/repomd.xml" in proxy.requests
    assert f"{site.mirror.url}/keys/site.asc" in proxy.requests
    assert not [url for url in proxy.requests if "/bad/" in url]
    assert "labtool-1-1" in node.install("labtool")
    assert f"{site.mirror.url}/tools/labtool-1-1.noarch.rpm" in proxy.requests
    proxy.close()
    said = node.refused([site.entry("tools")], proxy=proxy.url)
    assert f"the proxy {proxy.url} refuses the connection." in said
    assert node.changes([site.entry("tools")], proxy="none") == 1
    assert "proxy" not in node.run("cat /etc/dnf/dnf.conf")


def test_a_mirror_with_a_certificate_of_the_sites_own_authority(node: Node, site: Site, tmp_path: Path) -> None:
    tls = lab_mirror.Mirror(site.folder)
    certificate = tls.secure(tmp_path)
    node.run(f"echo '{certificate}' > /var/tmp/sources/site-ca.pem")
    entry = {**site.entry("tools"), "baseurl": f"{tls.url}/tools", "gpg_key": f"{tls.url}/keys/site.asc"}
    assert node.changes([entry], ca_certificate="/var/tmp/sources/site-ca.pem") == 1
    assert "labtool-1-1" in node.install("labtool")
    assert "/tools/labtool-1-1.noarch.rpm" in tls.requests
    tls.close()


def test_check_mode_changes_nothing_and_shows_everything(node: Node, site: Site) -> None:
    entry = site.entry("tools", gpg_key=str(site.folder / "keys" / "site.asc"))
    before = node.state
    ended = node.apply([entry], "--check", "--diff")
    assert ended.code == 0 and "changed=1" in ended.text, ended.text
    for line in ("+[gpu-cluster-tools]", f"+baseurl={site.mirror.url}/tools/", "+gpgcheck=1", f"+{site.keys['site']}"):
        assert line in ended.text, ended.text
    assert node.state == before
    assert node.changes([entry]) == 1
    assert node.changes([entry], "--check") == 0


def test_crb_is_switched_on_in_the_file_it_is_in(node: Node, site: Site) -> None:
    text = "# kept\r\n[baseos]\nname=BaseOS\nbaseurl=file:///srv/repo/os\ngpgcheck=0\nenabled = 1\n\n[crb]\nname=CRB\n"
    text += f"baseurl={site.mirror.url}/tools\n#enabled=1\nenabled = 0  \ngpgcheck=0"
    file = "/etc/yum.repos.d/centos.repo"

    def write(content: str) -> None:
        node.run(f"printf '{content.encode('unicode_escape').decode()}' > {file}; chmod 0640 {file}")

    write(text)
    assert node.changes([{"id": "crb"}]) == 1
    assert node.run(f"cat -A {file}") == text.replace("enabled = 0  ", "enabled=1").replace("\r", "^M").replace(
        "\n", "$\n"
    )
    assert node.run(f"stat -c %a {file}") == "640\n"
    assert "crb" in node.enabled
    assert node.changes([{"id": "crb"}]) == 0

    # A node that uses nothing of the distribution's has repositories of the site.
    write(text.replace("enabled = 1", "enabled = 0"))
    ended = node.apply([{"id": "crb"}])
    assert "changed=0" in ended.text and "no repository crb in use" in ended.text, ended.text

    # One that cannot be read is not switched on, and the node says so itself.
    write(text.replace(f"{site.mirror.url}/tools", f"{site.mirror.url}/nothing"))
    assert "the node's own repository crb cannot be read" in node.refused([{"id": "crb"}])


def test_by_default_the_repositories_of_a_site_are_left_alone(node: Node) -> None:
    """The lab has its own for everything, as a site without internet would; no address is asked."""
    assert node.changes([{"id": "epel"}, {"id": "nvidia"}]) == 0
    assert node.enabled == {"lab-os", "lab-nvidia"}


def test_wheels_are_looked_for_early(node: Node, site: Site) -> None:
    index = f"{site.mirror.url}/simple"
    said = node.refused(
        [], wheel_index_url=index, wheel_requirements=["torch==2.14.0", "numpy==2.3.4"], wheel_prefix="/x"
    )
    assert f"package_sources_wheel_index_url = '{index}'" in said
    assert "the index holds no wheel of torch==2.14.0 for x86_64; it has 2.13.0+cpu." in said
    assert "the index answers 404 for numpy/." in said
    assert node.changes([], wheel_index_url=index, wheel_requirements=["torch==2.13.0"], wheel_prefix="/x") == 0
    variables = {"requirements": {"torch": "torch_runtime_version"}}
    wheels = {"wheel_index_url": index, "wheel_requirements": ["torch==2.14.0"], "wheel_prefix": "/x"}
    assert "torch_runtime_version = '2.14.0': the index " in node.refused([], wheel_variables=variables, **wheels)
    said = node.refused([], wheel_folder="/srv/no-wheels", wheel_requirements=["torch==2.13.0"], wheel_prefix="/x")
    assert "package_sources_wheel_folder = '/srv/no-wheels': the node has no such folder." in said


def test_pins_that_no_repository_has_are_refused_with_the_sources(node: Node, site: Site) -> None:
    """The repositories count as they are going to be: labtool is in one that this very run would add."""
    wanted = [*SYSTEM_OFF, site.entry("tools", packages=["labtool"])]
    pin = {"name": "labtool", "version": "9", "family": "", "variable": "lab_version"}
    said = node.refused(wanted, packages=[pin])
    assert "lab_version = '9': no repository of the node offers that version of labtool; there are 1-1." in said
    assert node.changes(wanted, packages=[{**pin, "version": "1"}]) == 1
