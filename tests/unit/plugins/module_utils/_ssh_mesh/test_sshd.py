# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps the mesh from working on a node, out of what sshd and ssh say there."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files, sshd

#: A part of what OpenSSH 9.2 prints for `sshd -T -C user=train` once the drop-in is in force.
GOOD = f"""\
port 22
permitrootlogin without-password
pubkeyauthentication yes
authenticationmethods any
maxsessions 128
maxstartups 256:30:512
persourcemaxstartups none
trustedusercakeys {files.USER_CA}
revokedkeys {files.REVOKED}
authorizedprincipalsfile none
hostcertificate {files.HOST_CERTIFICATE}
casignaturealgorithms ssh-ed25519,ecdsa-sha2-nistp256,rsa-sha2-512
pubkeyacceptedalgorithms ssh-ed25519-cert-v01@openssh.com,ecdsa-sha2-nistp256-cert-v01@openssh.com
hostkeyalgorithms ssh-ed25519-cert-v01@openssh.com,ecdsa-sha2-nistp256-cert-v01@openssh.com
"""
CLIENT = f"""\
port 22
stricthostkeychecking true
globalknownhostsfile {files.KNOWN_HOSTS}
revokedhostkeys {files.REVOKED}
identityfile {files.user_key("train")}
"""


def with_line(text: str, line: str) -> dict[str, list[str]]:
    """The settings with one line changed or added."""
    keyword = line.split()[0]
    return sshd.parse(
        "".join(f"{one}\n" for one in [*text.splitlines(), line] if one == line or one.split()[0] != keyword)
    )


def test_a_server_that_is_right() -> None:
    good = sshd.parse(GOOD)
    assert sshd.refusals(good, "train", ["train"], "ed25519") == []
    assert sshd.differences(good, 256, 128) == []
    assert sshd.foreign(good, "train") == []


INCLUDES = [
    ("Include /etc/ssh/sshd_config.d/*.conf\n", True),
    ("  include sshd_config.d/*.conf\n", True),
    ('Include "/etc/ssh/site.conf" /etc/ssh/sshd_config.d/*.conf\n', True),
    ("Include=/etc/ssh/sshd_config.d/*.conf\n", True),
    ("#Include /etc/ssh/sshd_config.d/*.conf\n", False),
    ("Include /etc/ssh/site.d/*.conf\n", False),
    ("", False),
]


@pytest.mark.parametrize(("main", "included"), INCLUDES)
def test_whether_the_drop_in_is_included(main: str, included: bool) -> None:
    assert sshd.includes(main, files.SERVER) is included


LOGINS = [
    ("allowusers alice bob", "AllowUsers"),
    ("allowusers t*", ""),
    ("allowusers train@198.18.20.*", ""),
    ("allowusers * !train", "AllowUsers"),
    ("denyusers t????", "DenyUsers"),
    ("denyusers alice", ""),
    ("allowgroups wheel", "AllowGroups"),
    ("allowgroups gpu", ""),
    ("denygroups gpu", "DenyGroups"),
]


@pytest.mark.parametrize(("line", "named"), LOGINS)
def test_who_is_let_in(line: str, named: str) -> None:
    problems = sshd.refusals(with_line(GOOD, line), "train", ["train", "gpu"], "ed25519")
    assert [f" {named} " in one and "train" in one for one in problems] == ([True] if named else [])


REFUSED = [
    ("pubkeyauthentication no", "PubkeyAuthentication no"),
    ("authenticationmethods publickey,password", "AuthenticationMethods publickey,password"),
    ("casignaturealgorithms rsa-sha2-512", "casignaturealgorithms"),
    ("pubkeyacceptedalgorithms ecdsa-sha2-nistp256-cert-v01@openssh.com", "ssh_mesh_key_type: ecdsa"),
    ("hostkeyalgorithms ssh-ed25519", "hostkeyalgorithms"),
]


@pytest.mark.parametrize(("line", "named"), REFUSED)
def test_what_no_certificate_gets_through(line: str, named: str) -> None:
    (problem,) = sshd.refusals(with_line(GOOD, line), "train", [], "ed25519")
    assert named in problem


LISTENS = [
    ("", True),
    ("listenaddress 0.0.0.0:22\nlistenaddress [::]:22", True),
    ("listenaddress 198.18.10.11:22\nlistenaddress 198.18.20.11:2222\nlistenaddress [2001:db8::11]:22", True),
    ("listenaddress 198.18.10.11:22\nlistenaddress [::]:22", False),
]


@pytest.mark.parametrize(("text", "heard"), LISTENS)
def test_where_sshd_listens(text: str, heard: bool) -> None:
    problems = sshd.deaf_address(sshd.parse(text), "198.18.20.11")
    assert problems == [] if heard else "listens on 198.18.10.11, :: alone" in problems[0]
    assert (sshd.deaf_address(sshd.parse(text), "2001:DB8:0::11") == []) is ("[" in text or not text)


def test_an_authority_of_a_type_that_is_not_taken() -> None:
    """In FIPS mode, after ssh_mesh_key_type was changed without making the authority's keys anew."""
    fips = with_line(GOOD, "casignaturealgorithms ecdsa-sha2-nistp256,rsa-sha2-512")
    old, new = "ssh-ed25519 AAAA", "ecdsa-sha2-nistp256 AAAA"
    (problem,) = sshd.refusals(fips, "train", [], "ecdsa", (old, old))
    assert "keys of the type ssh-ed25519 (casignaturealgorithms)" in problem
    for authorities in ((new, new), ("ssh-rsa AAAA", new), ("(made by the first run)",) * 2, ()):
        assert sshd.refusals(fips, "train", [], "ecdsa", authorities) == []


@pytest.mark.parametrize("line", ["permitrootlogin no", "permitrootlogin forced-commands-only"])
def test_root_who_may_not_log_in(line: str) -> None:
    assert len(sshd.refusals(with_line(GOOD, line), "root", ["root"], "ed25519")) == 1
    assert sshd.refusals(with_line(GOOD, line), "train", [], "ed25519") == []


@pytest.mark.parametrize("line", ["trustedusercakeys /etc/ssh/site_ca.pub", "revokedkeys /etc/ssh/revoked"])
def test_an_authority_of_the_site(line: str) -> None:
    (problem,) = sshd.foreign(with_line(GOOD, line), "train")
    assert line.split()[1] in problem
    assert "train" in problem


OVERRIDDEN = [
    ("maxstartups 10:30:100", "MaxStartups 10:30:100"),
    ("maxsessions 10", "MaxSessions 10"),
    ("trustedusercakeys none", "TrustedUserCAKeys none"),
    ("revokedkeys none", "RevokedKeys none"),
    ("authorizedprincipalsfile %h/principals", "AuthorizedPrincipalsFile %h/principals"),
    ("hostcertificate /etc/ssh/other", "HostCertificate /etc/ssh/other"),
    ("persourcemaxstartups 20", "PerSourceMaxStartups"),
]


@pytest.mark.parametrize(("line", "named"), OVERRIDDEN)
def test_what_another_file_sets_first(line: str, named: str) -> None:
    (problem,) = sshd.differences(with_line(GOOD, line), 256, 128)
    assert named in problem


CLIENTS = [
    ("globalknownhostsfile /etc/ssh/ssh_known_hosts", "GlobalKnownHostsFile"),
    ("revokedhostkeys none", "RevokedHostKeys"),
    ("stricthostkeychecking ask", "StrictHostKeyChecking"),
    ("identityfile ~/.ssh/id_rsa", "IdentityFile"),
    ("proxycommand /usr/bin/sss_ssh_knownhostsproxy -p %p %h", "ProxyCommand"),
    ("proxyjump gate", "ProxyJump"),
    ("knownhostscommand /usr/bin/sss_ssh_knownhosts %H", "KnownHostsCommand"),
]


@pytest.mark.parametrize(("line", "named"), CLIENTS)
def test_a_client_that_goes_its_own_way(line: str, named: str) -> None:
    assert sshd.client_differences(sshd.parse(CLIENT), "train") == []
    (problem,) = sshd.client_differences(with_line(CLIENT, line), "train")
    assert named in problem
    assert "train" in problem


def test_listeners() -> None:
    heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    rest = "00000000:00000000 00:00000000 00000000     0        0"
    nobody = "0" * 32
    four = (
        heading
        + f"   0: 00000000:0016 00000000:0000 0A {rest} 812 1 0000000000000000 100 0 0 10 0\n"
        + f"   1: 0B1412C6:08AF 0C1412C6:C350 01 {rest} 813 1 0000000000000000 20 4 30 10 -1\n"
    )
    six = (
        heading
        + f"   0: {nobody}:08AE {nobody}:0000 0A {rest} 814 1 0000000000000000 100 0 0 10 0\n"
        + f"   1: {nobody}:0016 {nobody}:0000 0A {rest} 815 1 0000000000000000 100 0 0 10 0\n"
    )
    assert sshd.listening(four, six, "") == {22: {"812", "815"}, 2222: {"814"}}
    assert sshd.missing_ports([22, 2222, 2223], {22, 2222}) == [2223]
