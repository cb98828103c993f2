# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SELinux that enforces, limits that are raised and what is left after a reboot: on a kernel of its own.

The policy is Debian's, which denies some of Debian's own programs at every boot. What it denied before any role ran,
and by hand, is in the file that prepare.yml left on the machine: nothing else may be denied.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
from lab_cluster import Cluster
from lab_network import message_of, recap, wait_for
from lab_selinux import KEYS, NODE, PEER, SSHD_KEYS, VARIABLES, base, denials, login, mode, new_denials, now, state
from lab_static import looks

UNDO = "gpu-cluster-selinux-undo"
#: What the host has added to the policy, the number of transactions, and what the role remembers.
STORE = "cd /var/lib/selinux/*/active && sha256sum commit_num *.local && cat /var/lib/gpu-cluster/selinux.json"


@pytest.fixture
def permissive(machine: Cluster) -> Iterator[None]:
    """A host that somebody made permissive, for now and for later."""
    machine.shell(NODE, "setenforce 0; sed -i s/^SELINUX=.*/SELINUX=permissive/ /etc/selinux/config")
    yield
    machine.shell(
        NODE,
        f"rm -rf {KEYS} {SSHD_KEYS}; systemctl restart sshd; systemctl stop {UNDO}.timer 2>/dev/null; "
        "setenforce 1; sed -i s/^SELINUX=.*/SELINUX=enforcing/ /etc/selinux/config",
    )


def test_roles_ran_and_jobs_run_under_enforcing(machine: Cluster, settled: dict[str, str], key_of_train: None) -> None:
    """Everything that site.yml set, a login of the ordinary user, and no denial that was not there before."""
    found = settled
    assert (found["mode"], found["next boot"]) == ("Enforcing", "SELINUX=enforcing")
    assert "2222" in found["labels"], found
    assert found["buffers"].split() == ["33554432", "33554432"]
    locked, files = found["limits of a service"].split()
    assert locked == "unlimited" and int(files) >= 131072
    locked, files, context = login(machine, "ulimit -l; ulimit -n; id -Z")
    assert locked == "unlimited" and int(files) >= 131072 and "unconfined_t" in context
    assert found["firewall"].startswith("running") and found["wrong labels"] == "", found
    address = machine.fabric_address(NODE)
    through_the_mesh = machine.shell(NODE, f"runuser -u train -- ssh -n -o BatchMode=yes {address} id -Z").strip()
    assert "unconfined_t" in through_the_mesh
    assert new_denials(machine) == []


def test_the_check_reads_the_limits_of_the_ranks_user_under_enforcing(machine: Cluster) -> None:
    """It starts a service for them, and SELinux has to let that service answer."""
    since = now(machine)
    seen = looks(machine, "-i", VARIABLES)[NODE]
    assert seen["limits"]["memlock"] == -1 and seen["limits"]["nofile"] >= 131072, seen
    # These the kernel does not show to a container.
    sizes = machine.shell(NODE, "cd /proc/sys/net/ipv4/neigh/default; cat gc_thresh2 gc_thresh3").split()
    table = seen["neighbour_tables"]["ipv4"]
    assert [table["gc_thresh2"], table["gc_thresh3"]] == [int(size) for size in sizes]
    assert new_denials(machine, since) == []


def test_sshd_takes_its_second_port_because_it_is_labelled(machine: Cluster) -> None:
    """The port plan names two, role ssh_mesh sets them, and role selinux_policy labels the second."""
    machine.shell(NODE, "systemctl restart sshd")
    sockets = machine.shell(NODE, "ss -Hltnp 'sport = :2222'; ps -o label= -C sshd | head -1")
    assert "sshd" in sockets and "sshd_t" in sockets
    banner = machine.shell(NODE, "exec 3<>/dev/tcp/127.0.0.1/2222; head -c 7 <&3")
    assert banner == "SSH-2.0"


@pytest.mark.long
def test_without_the_label_sshd_is_denied_its_port(machine: Cluster) -> None:
    """So the role does not take the label back while sshd listens there."""
    ended = base(machine, selinux_policy_ssh_ports=[22])
    assert ended.code != 0 and "sshd of this host uses port 2222" in ended.text, ended.text
    since = now(machine)
    try:
        machine.shell(NODE, "semanage port -d -p tcp 2222")
        machine.shell(NODE, "systemctl restart sshd; sleep 1")
        assert machine.shell(NODE, "ss -Hltn 'sport = :2222'") == ""
        (sentence,) = denials(machine, since)["sentences"]
        assert sentence.startswith("SELinux denied sshd name_bind on tcp port 2222 since ")
        assert "fix: list port 2222 in gpu_cluster_ports.ssh" in sentence
    finally:
        back = base(machine)
        machine.shell(NODE, "systemctl restart sshd")
    assert back.code == 0 and recap(back, NODE)["changed"] == 1, back.text


def test_what_the_policy_does_not_know_is_refused_at_once(machine: Cluster) -> None:
    before = machine.shell(NODE, STORE)
    ended = base(
        machine,
        selinux_policy_booleans={"use_nfs_homedirs": True},
        selinux_policy_fcontexts=[{"path": "/data", "type": "bim_t"}],
    )
    message = message_of(ended, NODE)
    for words in ("Refused, nothing was changed", "use_nfs_homedirs: the policy", "set use_nfs_home_dirs", "'bim_t'"):
        assert words in message
    assert machine.shell(NODE, STORE) == before


@pytest.mark.long
def test_booleans_and_labels_come_and_go_in_one_transaction(machine: Cluster) -> None:
    """A home outside of /home: sshd reads its keys, and the last run leaves nothing of it."""
    export = machine.shell(NODE, "semanage export")
    machine.shell(
        NODE,
        "mkdir -p /export/home /data/tools; cp -a /home/train /export/home; usermod -d /export/home/train train; "
        "install -d -o train -g train -m 0700 /export/home/train/.ssh; "
        "install -o train -g train -m 0600 ~root/.ssh/authorized_keys /export/home/train/.ssh; "
        "cp /bin/true /data/tools; chcon -R -t default_t /export /data",
    )
    wanted = {
        "selinux_policy_booleans": {"use_nfs_home_dirs": True},
        "selinux_policy_users": ["train"],
        "selinux_policy_fcontexts": [{"path": "/data/tools", "type": "bin_t"}],
    }
    try:
        with pytest.raises(subprocess.CalledProcessError):
            login(machine, "true")
        checked = base(machine, "--check", **wanted)
        assert recap(checked, NODE)["changed"] == 1 and machine.shell(NODE, "semanage export") == export, checked.text
        ended = base(machine, **wanted)
        assert ended.code == 0 and recap(ended, NODE)["changed"] == 1, ended.text
        assert "unconfined_t" in login(machine, "id -Z")[0]
        found = machine.shell(NODE, "getsebool use_nfs_home_dirs; stat -c %C /data/tools/true")
        assert "--> on" in found and "bin_t" in found
    finally:
        machine.shell(NODE, "usermod -d /home/train train")
        back = base(machine)
        machine.shell(NODE, "rm -rf /export /data")
    assert back.code == 0 and recap(back, NODE)["changed"] == 1, back.text
    left = machine.shell(NODE, "semanage export; getsebool use_nfs_home_dirs")
    assert (
        left.replace("boolean -m -0 use_nfs_home_dirs\n", "")
        == export.replace("boolean -m -0 use_nfs_home_dirs\n", "") + "use_nfs_home_dirs --> off\n"
    )


def test_a_permissive_host_enforces_when_the_controller_comes_back(machine: Cluster, permissive: None) -> None:
    ended = base(machine)
    assert ended.code == 0 and mode(machine) == ["Enforcing", "SELINUX=enforcing"], ended.text
    assert machine.shell(NODE, "ls /run/systemd/transient | grep selinux; true") == ""


def test_enforcing_that_locks_everybody_out_is_taken_back(machine: Cluster, permissive: None) -> None:
    """Keys in a place that sshd may not read once labels count."""
    machine.shell(
        NODE,
        f"mkdir {KEYS}; cp ~root/.ssh/authorized_keys {KEYS}/root; chcon -R -t default_t {KEYS}; "
        f"echo 'AuthorizedKeysFile {KEYS}/%u' > {SSHD_KEYS}; systemctl restart sshd",
    )
    ended = base(machine, selinux_policy_confirm_seconds=15)
    assert "Nobody can log in to vm1 since it enforces" in message_of(ended, NODE)
    assert mode(machine)[1] == "SELINUX=permissive"
    wait_for(lambda: mode(machine)[0] == "Permissive", 30, "the timer on the host")
    # It is sshd-session that reads them since OpenSSH 9.8.
    assert re.search(r"sshd(-session)? search on dir keys \(default_t\)", " ".join(denials(machine)["sentences"]))


def test_a_relabelling_that_waits_keeps_a_host_from_enforcing(machine: Cluster, permissive: None) -> None:
    machine.shell(NODE, "touch /.autorelabel; chcon -t default_t /etc/ssh/sshd_config")
    try:
        message = message_of(base(machine), NODE)
    finally:
        machine.shell(NODE, "rm /.autorelabel; restorecon /etc/ssh/sshd_config")
    for words in ("must not enforce yet", "/.autorelabel is there", "/etc/ssh/sshd_config"):
        assert words in message
    assert mode(machine) == ["Permissive", "SELINUX=permissive"]


@pytest.mark.long
def test_everything_is_still_there_after_a_reboot(
    machine: Cluster, settled: dict[str, str], key_of_train: None
) -> None:
    machine.lab("reboot", deadline=400)
    assert state(machine) == settled
    assert login(machine, "ulimit -l")[0] == "unlimited"
    assert new_denials(machine, "boot") == []


@pytest.mark.long
def test_a_second_run_of_all_roles_changes_nothing(machine: Cluster) -> None:
    """As molecule.yml calls them."""
    both = ("-i", VARIABLES, "-i", PEER)
    again = machine.play("molecule/vm/converge.yml", *both, "--skip-tags", "openmpi,monitoring", deadline=900)
    assert again.code == 0 and recap(again, NODE)["changed"] == 0, again.text
