# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job meets on a node, against what it needs."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import static_jobs

MISSING = "libibverbs.so.1: cannot open shared object file: No such file or directory"


def meets(sample: Any, *names: str, **found: Any) -> None:
    """What a job finds on these nodes."""
    for name in names:
        sample.static[name]["job"]["found"].update(found)


def without_verbs(sample: Any, name: str, error: str = MISSING, **variables: str) -> None:
    sample.static[name]["rdma"] = ["mlx5_0", "mlx5_1"]
    sample.static[name]["environment"] = {key: {"value": one, "source": "/x"} for key, one in variables.items()}
    meets(sample, name, verbs={"name": "", "error": error})


def test_rdma_devices_without_their_library(sample: Any) -> None:
    without_verbs(sample, "n2")
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-019", "warning", ("n2",))
    assert one.cause == f"NCCL cannot use the RDMA devices of n2 (mlx5_0, mlx5_1): {MISSING}, so it takes TCP"
    assert "ansible n2 " in one.command and one.command.endswith('"dnf -y install libibverbs"')
    assert sample.again(one) == [("GC-NODE-019", "warning", ("n2",))]


def test_it_is_an_error_where_jobs_may_take_nothing_else(sample: Any) -> None:
    without_verbs(sample, "n1")
    without_verbs(sample, "n2", NCCL_NET="IB")
    found = [one for one in sample.found() if one[0] == "GC-NODE-019"]
    assert found == [("GC-NODE-019", "warning", ("n1",)), ("GC-NODE-019", "error", ("n2",))]


def test_a_library_that_is_there_and_cannot_be_loaded_is_not_installed_again(sample: Any) -> None:
    without_verbs(sample, "n2", "libibverbs.so.1: file too short")
    (one,) = sample.findings()
    assert "file too short" in one.cause and one.command == ""


def test_jobs_that_do_not_want_rdma_need_no_library(sample: Any) -> None:
    without_verbs(sample, "n1", NCCL_IB_DISABLE="1")
    meets(sample, "n2", verbs={"name": "libibverbs.so.1", "error": ""})
    assert "GC-NODE-019" not in [one.id for one in sample.findings()]


PLUGIN = "libnccl-net.so"
NO_PLUGIN = f"{PLUGIN}: cannot open shared object file: No such file or directory"


def test_a_plugin_of_nccl_on_some_members_only(sample: Any) -> None:
    meets(sample, "n1", "n3", gpus=8, plugin={"name": PLUGIN, "error": ""})
    meets(sample, "n2", gpus=8, plugin={"name": "", "error": NO_PLUGIN})
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NCCL-005", "warning", ("n2",))
    assert one.cause == "NCCL loads different network plugins: libnccl-net.so on n1, n3, none on n2"
    assert one.evidence == (f"n2: {NO_PLUGIN}",)
    assert sample.again(one) == [("GC-NCCL-005", "warning", ())]


@pytest.mark.parametrize("name", ["", PLUGIN])
def test_a_plugin_on_all_members_with_gpus_or_on_none(sample: Any, name: str) -> None:
    meets(sample, "n1", "n2", gpus=8, plugin={"name": name, "error": "" if name else NO_PLUGIN})
    assert sample.found() == []


@pytest.mark.parametrize(("size", "told"), [(1 << 30, False), ((1 << 30) - 1, True), (64 << 20, True), (0, True)])
def test_shared_memory_that_is_too_small(sample: Any, size: int, told: bool) -> None:
    meets(sample, "n1", "n3", shared_memory={"bytes": size, "free_bytes": size, "mounted": size > 0})
    found = sample.findings()
    assert [(one.id, one.severity, one.hosts) for one in found] == (
        [("GC-NODE-020", "warning", ("n1", "n3"))] if told else []
    )
    for one in found:
        assert one.cause == f"/dev/shm of n1, n3 has {size >> 20} MiB, NCCL and data loaders need 1024"
        # What is no mount of its own cannot be mounted larger.
        assert one.command.endswith('"mount -o remount,size=50% /dev/shm"') if size else one.command == ""


@pytest.mark.parametrize(("free", "told"), [(512 << 20, False), ((512 << 20) - 1, True)])
def test_shared_memory_that_is_full(sample: Any, free: int, told: bool) -> None:
    """Eight ranks on each node."""
    meets(sample, "n2", shared_memory={"bytes": 8 << 30, "free_bytes": free, "mounted": True})
    found = sample.findings()
    assert [(one.id, one.severity, one.hosts) for one in found] == (
        [("GC-NODE-020", "warning", ("n2",))] if told else []
    )
    for one in found:
        assert one.cause == "/dev/shm of n2 has 511 of 8192 MiB free, 8 ranks need 512" and one.command == ""


def test_a_home_that_cannot_be_used(sample: Any) -> None:
    meets(sample, "n1", "n2", home={"path": "/home/train", "problem": "does not exist"})
    meets(sample, "n3", home={"path": "/home/train", "problem": "belongs to uid 7, and uid 4000 cannot write to it"})
    missing, others = sample.findings()
    assert (missing.id, missing.severity, missing.hosts) == ("GC-NODE-021", "warning", ("n1", "n2"))
    assert missing.cause == "the home of train on n1, n2 cannot be used: /home/train does not exist"
    assert others.hosts == ("n3",) and "belongs to uid 7" in others.cause


def test_a_temporary_folder_that_cannot_be_used(sample: Any) -> None:
    place = {"path": "/scratch/tmp", "set": True, "problem": "does not exist", "noexec": False}
    meets(sample, "n2", temporary=place)
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-022", "warning", ("n2",))
    assert one.cause == "temporary files of jobs on n2: /scratch/tmp (TMPDIR) does not exist"


@pytest.mark.parametrize(("gpus", "told"), [(0, False), (8, True)])
def test_noexec_counts_where_code_is_compiled_for_gpus(sample: Any, gpus: int, told: bool) -> None:
    meets(sample, "n2", gpus=gpus, temporary={"path": "/tmp", "set": False, "problem": "", "noexec": True})
    found = sample.findings()
    assert [(one.id, one.hosts) for one in found] == ([("GC-NODE-022", ("n2",))] if told else [])
    assert all("/tmp is mounted noexec" in one.cause and "TMPDIR" in one.fix for one in found)


def test_numa_nodes_without_memory(sample: Any) -> None:
    empty = [{"node": 0, "cpus": "0-5,24-29"}, {"node": 3, "cpus": "18-23"}]
    meets(sample, "n1", "n2", numa_nodes_without_memory=empty)
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-023", "warning", ("n1", "n2"))
    assert one.cause == "NUMA nodes of n1, n2 without memory: 0 (processors 0-5,24-29), 3 (processors 18-23)"


def test_a_node_that_gave_no_answer_is_a_note(sample: Any) -> None:
    sample.static["n2"]["job"] = {"found": None, "why": "no answer within 3 s"}
    del sample.static["n3"]["job"]
    assert sample.found() == []
    assert static_jobs.notes(sample.static) == [
        "home, /tmp and shared memory of jobs on n2 were not read: no answer within 3 s"
    ]
    assert static_jobs.notes(sample.static)[0] in sample.diagnose().notes


@pytest.mark.parametrize("odd", [{"gpus": -1}, {"verbs": {"name": ""}}, {"home": "x"}, {"more": 1}])
def test_an_answer_of_another_form_is_not_judged(sample: Any, odd: dict[str, Any]) -> None:
    meets(sample, "n2", **odd)
    report = sample.diagnose()
    assert [(one.id, one.hosts) for one in report.findings] == [("GC-HOST-006", ("n2",))]


def mount(problem: str, path: str = "/shared") -> dict[str, str]:
    return {"path": path, "type": "nfs4", "source": "nas:/shared", "problem": problem}


def test_a_mount_that_hangs_is_one_finding_also_where_the_home_is_on_it(sample: Any) -> None:
    hangs = "does not answer within 3 s"
    meets(sample, "n1", "n2", mounts=[mount("")])
    meets(sample, "n2", mounts=[mount(hangs)], home={"path": "/shared/train", "problem": hangs})
    meets(sample, "n3", mounts=[mount("cannot be looked at: Stale file handle")])
    hanging, stale = sample.findings()
    assert (hanging.id, hanging.severity, hanging.hosts) == ("GC-NODE-030", "warning", ("n2",))
    assert hanging.cause == "/shared on n2, mounted from nas:/shared (nfs4), does not answer within 3 s"
    assert "umount -l /shared" in hanging.fix and "port 2049" in hanging.fix
    assert (stale.id, stale.hosts) == ("GC-NODE-030", ("n3",)) and stale.fix.startswith("end the jobs that use it")


def test_a_home_beside_a_mount_that_hangs_is_a_finding_of_its_own(sample: Any) -> None:
    meets(sample, "n1", mounts=[mount("does not answer within 3 s", "/home/tra")])
    meets(sample, "n1", home={"path": "/home/train", "problem": "does not exist"})
    assert sorted(one.id for one in sample.findings()) == ["GC-NODE-021", "GC-NODE-030"]
