# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host keys that nodes keep of each other against those that each has."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import static_host_keys

OF_TRAIN, OF_ALL = "/home/train/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"


def kept(member: str, *keys: str, name: str = "", user: str = "train", path: str = OF_TRAIN) -> dict[str, Any]:
    lines = [{"key": f"ED25519 SHA256:{key}", "place": f"{path}:{number}"} for number, key in enumerate(keys, 1)]
    return {"user": user, "member": member, "name": name or member, "keys": lines}


def test_the_key_that_a_member_has_now(sample: Any) -> None:
    sample.static["n1"]["known_hosts"] = [kept("n2", "n2"), kept("n3", "old", "n3")]
    assert sample.findings() == []


def test_an_old_key_is_a_warning_with_its_place_and_both_keys(sample: Any) -> None:
    sample.static["n1"]["known_hosts"] = [kept("n2", "old"), kept("n2", "old", name="192.0.2.2", path=OF_ALL)]
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-SSH-005", "warning", ("n1",))
    assert one.cause == "old ssh host keys of n2 are kept on n1: ssh of train refuses to log in there"
    assert one.evidence == (
        f"{OF_TRAIN}:1: ED25519 SHA256:old for n2; n2 has ED25519 SHA256:n2",
        f"{OF_ALL}:1: ED25519 SHA256:old for 192.0.2.2; n2 has ED25519 SHA256:n2",
    )
    steps = f"runuser -u train -- ssh-keygen -R n2 -f {OF_TRAIN}; ssh-keygen -R 192.0.2.2 -f {OF_ALL}"
    assert one.command == f'ansible n1 -i <inventory> --become -m ansible.builtin.shell -a "{steps}"'
    assert one.variables == {} and sample.again(one) == [("GC-SSH-005", "warning", ("n1",))]


def test_roots_own_file_and_another_port(sample: Any) -> None:
    sample.static["n1"]["known_hosts"] = [
        kept("n2", "old", name="[n2]:2222", user="root", path="/admin/.ssh/known_hosts")
    ]
    (one,) = sample.findings()
    assert one.command.endswith("-a \"ssh-keygen -R '[n2]:2222' -f /admin/.ssh/known_hosts\"")
    assert one.cause.endswith("ssh of root refuses to log in there")


def test_a_home_that_nodes_share_is_told_once(sample: Any) -> None:
    for name in ("n1", "n3"):
        sample.static[name]["known_hosts"] = [kept("n2", "old")]
    assert sample.found() == [("GC-SSH-005", "warning", ("n1", "n3"))]


def test_a_member_whose_keys_are_not_known_accuses_nobody(sample: Any) -> None:
    for name in ("n1", "n3"):
        sample.static[name]["known_hosts"] = [kept("n2", "old")]
    sample.static["n2"]["host_keys"] = []
    assert sample.findings() == []
    del sample.static["n2"]
    assert sample.findings() == []


def test_it_is_an_error_where_mpirun_of_this_check_was_refused(sample: Any) -> None:
    sample.static["n1"]["known_hosts"] = [kept("n2", "old")]
    sample.static["n3"]["known_hosts"] = [kept("n2", "old")]
    failed = {
        "host": "n2",
        "code": 255,
        "text": "REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.",
    }
    others = [
        {"host": "n3", "code": 255, "text": "Permission denied"},
        {"host": "n4", "code": 0, "text": failed["text"]},
    ]

    def severities(*said: dict[str, Any], user: str = "train") -> list[tuple[str, tuple[str, ...]]]:
        report = sample.diagnose(user=user, openmpi={"n1": {"ssh": list(said)}})
        return [(one.severity, one.hosts) for one in report.findings if one.id == "GC-SSH-005"]

    assert static_host_keys.refused({"n1": {"ssh": [failed, *others]}, "n2": {}}) == {("n1", "n2")}
    assert severities(*others) == [("warning", ("n1", "n3"))]
    assert severities(failed) == [("error", ("n1",)), ("warning", ("n3",))]
    assert severities(failed, user="other") == [("warning", ("n1", "n3"))]
