# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NFS for real: a machine that mounts from its own kernel's file server, with SELinux enforcing.

What a dead server does to whoever looks at the mount, what a stale handle and root_squash look like, homes, and boots.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_cluster import Cluster, patience
from lab_network import message_of, wait_for
from lab_nfs import CLEAN, DATA, DROP, EXPORT, PASS, SERVE, SERVER, SQUASHED, go, mounts, shell
from lab_selinux import NODE, VARIABLES, base, denials, login, now
from lab_shared_storage import Case, go_through
from lab_static import looks

HOME = {"path": "/lab-home", "source": f"{SERVER}:{SQUASHED}", "type": "nfs4", "writable": True}
SILENT = f"/data: it is mounted from {SERVER}:{EXPORT} and does not answer within 5 s"
MADE_ANEW = (
    f"exportfs -u '*:{EXPORT}'; rm -rf {EXPORT}.old; mv {EXPORT} {EXPORT}.old; mkdir -m 1777 {EXPORT}; "
    "exportfs -ra; exportfs -f; sleep 1"
)
#: A client that has lost packets for seconds tries again only after as many.
ANSWERS = "timeout 240 stat -f /data"
IS_MOUNTED = "grep -c ' /data nfs4' /proc/mounts || true"


@pytest.fixture(scope="module", autouse=True)
def fixture_server(machine: Cluster) -> Iterator[None]:
    """An export for all, and one with root_squash."""
    machine.shell(NODE, SERVE)
    yield
    machine.shell(NODE, CLEAN)


@pytest.fixture(name="mounted")
def fixture_mounted(machine: Cluster) -> Iterator[None]:
    """The export at /data; mounted and answering also after a test that failed."""
    (made,) = go(machine, [mounts(DATA)])
    assert not made.get("failed"), made
    yield
    machine.shell(NODE, f"{PASS}; exportfs -ra; systemctl reset-failed; umount -l /data; systemctl restart data.mount")


@pytest.mark.long
def test_mounted_written_and_a_dead_server_is_named(machine: Cluster) -> None:
    """Nothing waits longer than its time, and when the server is back everything goes on.

    One limit for all steps: it is in the unit, and another one would be a change.
    """
    limited = mounts(DATA, seconds=20)
    write = "runuser -u train -- sh -c 'echo x > /data/x'; ls -lZ /data /export/data; cat /data/x"
    made, written, dead, _passed, back = go(
        machine,
        [limited, shell(f"{write}; {DROP}"), limited, shell(f"{PASS}; {ANSWERS}"), limited],
    )
    assert made["changed"] and not made.get("failed"), made
    assert written["stdout"].endswith("\nx") and "train train system_u:object_r:nfs_t" in written["stdout"], written
    silent = SILENT.replace("5 s", "20 s")
    assert dead["failed"] and dead["msg"].startswith(silent), dead
    assert "if the server does not come back: umount -l /data" in dead["msg"]
    assert not back["changed"] and not back.get("failed"), back


@pytest.mark.long
def test_the_role_mounts_with_its_package_and_a_second_run_changes_nothing(
    machine: Cluster, mounted: None, tmp_path: Path
) -> None:
    """nfs-utils is a package of the lab without content; the programs are Debian's."""
    variables = {"shared_storage_user": "train"}
    cases = [Case([DATA], variables, before="systemctl stop data.mount"), Case([DATA], variables)]
    said = go_through(machine, [NODE], cases, tmp_path)[NODE]
    assert [(one.changed, one.message) for one in said] == [(True, ""), (False, "")]
    assert machine.shell(NODE, "rpm -q nfs-utils").startswith("nfs-utils-")


@pytest.mark.long
def test_a_stale_handle_is_named_and_the_fix_mends_it(machine: Cluster, mounted: None) -> None:
    """The export is removed, and another file system is there under its name."""
    _new, stale, _unmounted, mended = go(
        machine, [shell(MADE_ANEW), mounts(DATA), shell("umount -l /data"), mounts(DATA)]
    )
    assert stale["failed"] and "its handle is stale: the server has another file system there now" in stale["msg"], (
        stale
    )
    assert "umount -l /data on this node, and run this again" in stale["msg"]
    assert mended["changed"] and not mended.get("failed"), mended


@pytest.mark.long
def test_the_check_and_preflight_name_a_mount_that_hangs_and_one_that_is_stale(machine: Cluster, mounted: None) -> None:
    machine.shell(NODE, DROP)
    began = time.monotonic()
    (mount,) = looks(machine, "-i", VARIABLES)[NODE]["job"]["found"]["mounts"]
    assert mount == {
        "path": "/data",
        "type": "nfs4",
        "source": f"{SERVER}:{EXPORT}",
        "problem": "does not answer within 3 s",
    }
    preflight, _passed, _gone, stale = go(
        machine,
        [
            {"baremetal.gpu_cluster.host_preflight": {}},
            shell(f"{PASS}; {ANSWERS}"),
            shell(MADE_ANEW),
            {"baremetal.gpu_cluster.host_preflight": {"install_path": "/data/torch"}},
        ],
    )
    assert time.monotonic() - began < 240 * patience()
    (note,) = [note for note in preflight["notes"] if note["variable"] == "network storage"]
    assert note["value"] == f"/data (nfs4, from {SERVER}:{EXPORT})" and "does not answer within 10 s" in note["rule"]
    (note,) = [note for note in stale["notes"] if note["variable"] == "network storage"]
    assert "its handle is stale" in note["rule"] and note["fix"].startswith("umount -l /data"), note
    (problem,) = [one for one in stale["problems"] if one["variable"] == "torch_runtime_prefix"]
    assert problem["rule"].startswith("the place of the environment cannot be looked at: "), problem


@pytest.mark.long
def test_an_environment_on_storage_that_hangs_is_refused_by_preflight(machine: Cluster, mounted: None) -> None:
    machine.shell(NODE, DROP)
    (found,) = go(machine, [{"baremetal.gpu_cluster.host_preflight": {"install_path": "/data/torch"}}])
    (problem,) = [one for one in found["problems"] if one["variable"] == "torch_runtime_prefix"]
    assert "its storage does not answer" in problem["rule"]


@pytest.mark.long
def test_a_job_in_a_folder_that_hangs_is_refused_with_the_mount(machine: Cluster, mounted: None) -> None:
    """Its own logs are in the home, which answers."""
    machine.shell(
        NODE, "install -o train -m 0755 /dev/null /data/job.sh; printf '#!/bin/sh\\necho ok\\n' > /data/job.sh"
    )
    job = f"cd /; timeout 120 runuser -u train -- gpu-cluster-run --nodes {NODE} --mode env --log-dir /tmp/lab-nfs-logs"
    good = machine.shell(NODE, f"{job} /data/job.sh 2>&1")
    assert "all ranks have ended well" in good, good
    machine.shell(NODE, DROP)
    bad = machine.shell(NODE, f"{job} /data/job.sh 2>&1; echo code $?; rm -rf /tmp/lab-nfs-logs")
    where = f"/data/job.sh is on storage that does not answer within 10 seconds (/data, mounted from {SERVER}:{EXPORT}"
    assert where in bad and "nothing was started; exit code 69" in bad, bad
    left = machine.shell(NODE, "pgrep -fa '[g]pu-cluster-run' || true")
    assert left == "", left


@pytest.mark.long
def test_root_squash_is_named_where_root_gets_no_further(machine: Cluster, mounted: None) -> None:
    """Root looks into it, and makes a folder in it for a mount below; the cluster's user can write."""
    squashed = {**DATA, "source": f"{SERVER}:{SQUASHED}"}
    below = {"path": "/data/sub", "source": f"{SERVER}:{EXPORT}", "type": "nfs4"}
    _stopped, as_root, as_train, in_it, chown, _gone, back = go(
        machine,
        [
            mounts({"path": "/data", "state": "absent"}, unmount_ok=True),
            mounts(squashed, user=""),
            mounts(squashed),
            mounts(squashed, below),
            {"ansible.builtin.file": {"path": "/data/made", "state": "directory", "owner": "train"}},
            mounts({"path": "/data", "state": "absent"}, unmount_ok=True),
            mounts(DATA),
        ],
    )
    assert as_root["failed"] and "root cannot look into it: " in as_root["msg"], as_root
    assert "set shared_storage_user to the user of the jobs" in as_root["msg"] and "root_squash" in as_root["msg"]
    assert not as_train.get("failed"), as_train
    assert in_it["failed"] and "/data/sub: the folder could not be made: " in in_it["msg"], in_it
    assert "root_squash" in in_it["msg"]
    assert chown["failed"], chown
    assert not back.get("failed"), back


@pytest.fixture(name="home_on_nfs")
def fixture_home_on_nfs(machine: Cluster) -> Iterator[list[str]]:
    """The home of train is a mount; its keys are there. Gives what the module warned of."""
    (made,) = go(machine, [mounts(HOME)])
    assert not made.get("failed"), made
    to_home = "umask 077; cd /lab-home; mkdir -p .ssh; cat > .ssh/authorized_keys"
    keys = f"cat ~root/.ssh/authorized_keys | runuser -u train -- sh -c '{to_home}'"
    machine.shell(NODE, f"{keys}; usermod -d /lab-home train")
    (again,) = go(machine, [mounts(HOME)])
    yield again.get("warnings", [])
    machine.shell(NODE, f"{PASS}; usermod -d /home/train train")
    base(machine)
    go(machine, [mounts({"path": "/lab-home", "state": "absent"}, unmount_ok=True)])


@pytest.mark.long
def test_keys_in_a_home_on_nfs_need_a_boolean_that_the_roles_name_and_set(
    machine: Cluster, home_on_nfs: list[str]
) -> None:
    wanted = "{use_nfs_home_dirs: true}"
    (warning,) = home_on_nfs
    assert (
        warning.startswith("/lab-home: the home of train is on it, and SELinux does not let sshd") and wanted in warning
    )
    since = now(machine)
    with pytest.raises(subprocess.CalledProcessError):
        login(machine, "true")
    assert any(wanted in sentence for sentence in denials(machine, since)["sentences"])
    named = base(machine, selinux_policy_users=["train"])
    assert named.code == 0 and f"selinux_policy_booleans: {wanted}" in named.text, named.text
    given = base(machine, selinux_policy_users=["train"], selinux_policy_booleans={"use_nfs_home_dirs": True})
    assert given.code == 0 and "is on a network file system" not in given.text, given.text
    assert "unconfined_t" in login(machine, "pwd; id -Z")[1]


@pytest.mark.long
def test_a_home_whose_server_is_dead_ends_the_role_in_time(machine: Cluster, home_on_nfs: list[str]) -> None:
    """And the check gives its finding about the mount, not a second one about the home."""
    machine.shell(NODE, DROP)
    message = message_of(base(machine, selinux_policy_users=["train"]), NODE)
    assert f"The home /lab-home of train is on /lab-home (nfs4, from {SERVER}:{SQUASHED})" in message, message
    job = looks(machine, "-i", VARIABLES)[NODE]["job"]
    said = job["found"]
    assert said is not None, job
    assert said["home"] == {"path": "/lab-home", "problem": "does not answer within 3 s"}
    assert [one["problem"] for one in said["mounts"]] == ["does not answer within 3 s"]


#: Packets to the server get lost from the beginning of the boot on.
DROP_AT_BOOT = f"""
cat > /etc/systemd/system/lab-nfs-drop.service <<'END'
[Unit]
DefaultDependencies=no
Before=remote-fs-pre.target network.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c "{DROP}"
[Install]
WantedBy=sysinit.target
END
systemctl daemon-reload
systemctl enable lab-nfs-drop.service
"""
NO_DROP_AT_BOOT = "systemctl disable lab-nfs-drop.service; rm -f /etc/systemd/system/lab-nfs-drop.service"


@pytest.mark.long
def test_a_boot_without_the_server_ends_and_the_mount_comes_with_the_server(machine: Cluster, mounted: None) -> None:
    """The server is dead before the machine goes down, with data that it was not sent, and while it boots."""
    machine.shell(NODE, "systemctl enable nfs-server")
    machine.shell(NODE, DROP_AT_BOOT)
    try:
        machine.shell(NODE, f"{DROP}; (dd if=/dev/zero of=/data/unsent bs=64k count=16 >/dev/null 2>&1 &) ; sleep 2")
        said = machine.lab("reboot", deadline=600)
        assert machine.lab("ssh", NODE, "hostname").strip() == "vm1", said
        assert machine.shell(NODE, IS_MOUNTED).strip() == "0"
        assert "data.mount" in machine.shell(NODE, "systemctl --failed --plain --no-legend --type=mount")
        machine.shell(NODE, f"{PASS}; {NO_DROP_AT_BOOT}")
        wait_for(lambda: machine.shell(NODE, IS_MOUNTED).strip() == "1", 240, "the mount after the server came")
        # With the server on the machine itself, which starts in the same boot.
        machine.lab("reboot", deadline=600)
        wait_for(lambda: machine.shell(NODE, IS_MOUNTED).strip() == "1", 240, "the mount after a boot")
        (again,) = go(machine, [mounts(DATA)])
        assert not again["changed"] and not again.get("failed"), again
    finally:
        machine.shell(NODE, f"{NO_DROP_AT_BOOT}; systemctl disable --quiet nfs-server; {SERVE}")
