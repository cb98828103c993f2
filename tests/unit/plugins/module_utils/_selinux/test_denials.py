# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of real logs to sentences. All were recorded in the lab's virtual machine (Debian's policy), but for those of
containers and of network file systems, which are written by hand after the same pattern."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import denials

PREFIX = "/opt/gpu-cluster/torch"
PORT = (
    'type=AVC msg=audit(1795251422.468:558): avc:  denied  { name_bind } for  pid=2208 comm="sshd" src=2222 '
    "scontext=system_u:system_r:sshd_t:s0 tcontext=system_u:object_r:unreserved_port_t:s0 tclass=tcp_socket "
    "permissive=0"
)
PORT_AGAIN = PORT.replace("1795251422.468:558", "1795251422.476:559")
#: The same event in the journal, as the kernel's own line and as an audit record.
PORT_OF_KERNEL = PORT.replace("type=AVC msg=audit", "audit: type=1400 audit")
PORT_OF_JOURNAL = PORT.replace("type=AVC msg=audit(1795251422.468:558): ", "AVC ")
SEARCH = (
    'type=AVC msg=audit(1795251453.364:632): avc:  denied  { search } for  pid=2258 comm="sshd" name="export" '
    'dev="vda" ino=131073 scontext=system_u:system_r:sshd_t:s0 tcontext=system_u:object_r:default_t:s0 tclass=dir '
    "permissive=0"
)
KEYS = (
    'type=AVC msg=audit(1795251454.256:638): avc:  denied  { open } for  pid=2266 comm="sshd" '
    'path="/export/home/train/.ssh/authorized_keys" dev="vda" ino=131077 scontext=system_u:system_r:sshd_t:s0 '
    "tcontext=system_u:object_r:default_t:s0 tclass=file permissive=1"
)
MEMFD = (
    'type=AVC msg=audit(1795251018.712:53): avc:  denied  { execute } for  pid=278 comm="firewalld" '
    'path=2F6D656D66643A6C6962666669202864656C6574656429 dev="tmpfs" ino=3 scontext=system_u:system_r:firewalld_t:s0 '
    "tcontext=system_u:object_r:firewalld_tmpfs_t:s0 tclass=file permissive=0"
)
CAPABILITY = (
    'type=AVC msg=audit(1795251020.764:65): avc:  denied  { dac_read_search } for  pid=404 comm="chronyc" '
    "capability=2  scontext=system_u:system_r:chronyc_t:s0 tcontext=system_u:system_r:chronyc_t:s0 tclass=capability "
    "permissive=0"
)
PIPE = (
    'type=AVC msg=audit(1795252012.120:701): avc:  denied  { write } for  pid=2358 comm="load_policy" '
    'path="pipe:[19140]" dev="pipefs" ino=19140 scontext=unconfined_u:unconfined_r:load_policy_t:s0-s0:c0.c1023 '
    "tcontext=unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023 tclass=fifo_file permissive=0"
)
NFS = SEARCH.replace("default_t", "nfs_t")
UNLABELLED = SEARCH.replace("default_t", "unlabeled_t").replace("sshd_t", "chronyd_t")
CONTAINER = (
    'type=AVC msg=audit(1795252012.120:801): avc:  denied  { read write } for  pid=99 comm="python3" '
    'path="/dev/nvidia0" dev="devtmpfs" ino=9 scontext=system_u:system_r:container_t:s0:c1,c2 '
    "tcontext=system_u:object_r:xserver_misc_device_t:s0 tclass=chr_file permissive=0"
)
CONTAINER_FILE = (
    'type=AVC msg=audit(1795252012.120:803): avc:  denied  { open } for  pid=99 comm="cat" path="/srv/data/x" '
    'dev="vda" ino=9 scontext=system_u:system_r:container_t:s0:c1,c2 tcontext=system_u:object_r:var_t:s0 tclass=file '
    "permissive=0"
)
USER_AVC = (
    "type=USER_AVC msg=audit(1795252012.120:802): pid=1 uid=0 auid=4294967295 ses=4294967295 "
    "subj=system_u:system_r:init_t:s0 msg='avc:  denied  { start } for auid=n/a uid=0 gid=0 "
    'path="/opt/gpu-cluster/torch-1/job.service" cmdline="" function="method" scontext=system_u:system_r:chronyd_t:s0 '
    'tcontext=system_u:object_r:usr_t:s0 tclass=service permissive=0  exe="/usr/lib/systemd/systemd" sauid=0 '
    "hostname=? addr=? terminal=?'"
)


def parsed(*lines: str) -> list[denials.Denial]:
    found = [denials.parse(line) for line in lines]
    assert all(found)
    return [denial for denial in found if denial]


def sentence(line: str, prefix: str = PREFIX) -> str:
    (finding,) = denials.findings(parsed(line), prefix)
    return finding.sentence()


def test_every_field_of_a_port() -> None:
    (denial,) = parsed(PORT)
    assert (denial.when, denial.serial, denial.comm, denial.port, denial.path) == (
        1795251422.468,
        558,
        "sshd",
        2222,
        "",
    )
    assert (denial.permissions, denial.tclass, denial.permissive) == (("name_bind",), "tcp_socket", False)
    assert denials.type_of(denial.source) == "sshd_t" and denials.type_of(denial.target) == "unreserved_port_t"
    assert denial.raw.startswith("avc: denied { name_bind } for pid=2208") and denial.raw.endswith("permissive=0")


def test_fields_of_files() -> None:
    keys, memfd, search, capability, pipe = parsed(KEYS, MEMFD, SEARCH, CAPABILITY, PIPE)
    assert keys.path == "/export/home/train/.ssh/authorized_keys" and keys.permissive
    assert memfd.path == "/memfd:libffi (deleted)"
    assert search.path == "export"
    assert (capability.path, capability.port, capability.permissions) == ("", 0, ("dac_read_search",))
    # The number of a pipe is another one each time, and would make each denial its own.
    assert pipe.path == "pipe"


def test_a_daemon_may_deny_in_the_name_of_the_kernel() -> None:
    (denial,) = parsed(USER_AVC)
    assert (denial.comm, denial.tclass, denial.permissions) == ("systemd", "service", ("start",))
    assert denial.target == "system_u:object_r:usr_t:s0"


@pytest.mark.parametrize("line", ["", "type=SYSCALL msg=audit(1.2:3): arch=c000003e", "avc:  granted  { load_policy }"])
def test_other_lines_are_no_denials(line: str) -> None:
    assert denials.parse(line) is None


def test_one_event_in_three_logs_is_one_denial() -> None:
    in_journal = denials.parse(PORT_OF_JOURNAL, 1795251422.468, 558)
    assert in_journal is not None
    (once,) = denials.unique([*parsed(PORT, PORT_OF_KERNEL), in_journal])
    assert once.serial == 558
    assert len(denials.unique(parsed(PORT, PORT_AGAIN))) == 2


def test_what_happens_again_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    denials.time.tzset()
    found = denials.findings(denials.unique(parsed(PORT_AGAIN, MEMFD, PORT)), PREFIX)
    assert [finding.times for finding in found] == [2, 1]
    assert found[0].sentence() == (
        "SELinux denied sshd name_bind on tcp port 2222 since 08:57:02 on 2026-11-21 (2 times); fix: list port 2222 in "
        "gpu_cluster_ports.ssh and run site.yml with --tags selinux_policy before sshd "
        "is restarted"
    )
    # What nobody can explain comes last, however early it was.
    assert found[1].fix == "" and found[1].first < found[0].first
    assert found[1].sentence() == (
        "SELinux denied firewalld execute on file /memfd:libffi (deleted) (firewalld_tmpfs_t) since 08:50:18 "
        "on 2026-11-21"
    )
    as_dict = found[0].as_dict()
    assert (as_dict["when"], as_dict["last"], as_dict["times"]) == (
        "2026-11-21T08:57:02+0000",
        "2026-11-21T08:57:02+0000",
        2,
    )


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        (SEARCH, "selinux_policy_users"),
        (KEYS, "like: /home"),
        (NFS, "use_nfs_home_dirs: true"),
        (UNLABELLED, "touch /.autorelabel and reboot"),
        (CONTAINER, "container_use_devices: true"),
        (CONTAINER_FILE, "label=disable, as gpu-cluster-run --image does, or give its volume the option :z"),
        (CONTAINER_FILE.replace("var_t", "nfs_t"), "or selinux_policy_booleans: {virt_use_nfs: true}"),
        (KEYS.replace("sshd", "init").replace("/export/home/train", f"{PREFIX}-0123/bin"), f"restorecon -RF {PREFIX}*"),
    ],
)
def test_known_causes_have_a_fix(line: str, fix: str) -> None:
    assert fix in sentence(line)


@pytest.mark.parametrize(
    "line",
    [
        CAPABILITY,
        PIPE,
        MEMFD,
        PORT.replace("sshd", "chronyd"),
        USER_AVC,
        CONTAINER_FILE.replace("container_t", "container_runtime_t"),
    ],
)
def test_other_causes_are_not_explained_away(line: str) -> None:
    assert "fix:" not in sentence(line)


def test_a_permissive_host_denies_nothing() -> None:
    assert sentence(KEYS).startswith("SELinux would deny (it is permissive here) sshd open on file /export/home/train")
    assert sentence(SEARCH).startswith("SELinux denied sshd search on dir export (default_t)")
