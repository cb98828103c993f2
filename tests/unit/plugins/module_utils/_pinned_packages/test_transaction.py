# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dnf's plan and dnf's complaints, as dnf 4.14 printed them on a node of the lab."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import transaction
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Evr, Package
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.transaction import Step, parse_plan

INSTALL = """\
Last metadata expiration check: 0:00:01 ago on Sat Nov 21 12:35:22 2026.
Dependencies resolved.
================================================================================
 Package                    Arch      Version               Repository     Size
================================================================================
Installing:
 nvidia-driver-cuda         x86_64    3:580.95.05-1.el9     lab-nvidia    5.7 k
Installing dependencies:
 nvidia-driver-cuda-libs    x86_64    3:580.95.05-1.el9     lab-nvidia    5.6 k
Removing:
 badpost                    x86_64    1-1                   @lab-nvidia      0  
Enabling module streams:
 nvidia-driver                        580-open                                  
Skipping packages with broken dependencies:
 needs                      x86_64    1-1                   lab-nvidia    5.6 k

Transaction Summary
================================================================================
Install  2 Packages
Remove   1 Package

Total download size: 11 k
Installed size: 0  
"""  # noqa: W291
DOWNGRADE = """\
================================================================================
Downgrading:
 libnccl            x86_64      2.26.5-1+cuda12.9         lab-nvidia      6.2 k
 libnccl-devel      x86_64      2.26.5-1+cuda12.9         lab-nvidia      5.7 k

Transaction Summary
================================================================================
Downgrade  2 Packages
"""
REMOVE = """\
================================================================================
Removing:
 libnccl            x86_64      2.27.7-1+cuda13.0        @lab-nvidia       17  
Removing dependent packages:
 libnccl-devel      x86_64      2.27.7-1+cuda13.0        @lab-nvidia        0  

"""  # noqa: W291
#: Not printed by the lab's dnf, which widens its table when nobody watches; dnf/cli/output.py wraps on a terminal.
WRAPPED = """\
Installing:
 a-rather-long-name-of-a-package
                    x86_64  1-1   lab-nvidia  5.7 k
     replacing  an-old-name.x86_64 0-9
 libnccl            x86_64  2-1   lab-nvidia  6.2 k

"""


def package(name: str, version: str, release: str, epoch: str = "0") -> Package:
    return Package(name, Evr(epoch, version, release), "x86_64")


def test_what_dnf_plans() -> None:
    assert parse_plan(INSTALL) == (
        Step("install", package("nvidia-driver-cuda", "580.95.05", "1.el9", "3")),
        Step("install", package("nvidia-driver-cuda-libs", "580.95.05", "1.el9", "3")),
        Step("remove", package("badpost", "1", "1")),
    )
    assert [step.kind for step in parse_plan(DOWNGRADE)] == ["downgrade", "downgrade"]
    assert [step.is_dependent for step in parse_plan(REMOVE)] == [False, True]
    assert parse_plan(WRAPPED) == (
        Step("install", package("a-rather-long-name-of-a-package", "1", "1")),
        Step("remove", package("an-old-name", "0", "9")),
        Step("install", package("libnccl", "2", "1")),
    )
    assert parse_plan("Dependencies resolved.\nNothing to do.\nComplete!\n") == ()


def test_sentences_have_both_versions() -> None:
    installed = [package("libnccl", "2.28.9", "1+cuda13.0")]
    assert transaction.sentences(parse_plan(DOWNGRADE), installed) == (
        "downgrade libnccl from 2.28.9-1+cuda13.0 to 2.26.5-1+cuda12.9",
        "downgrade libnccl-devel 2.26.5-1+cuda12.9",
    )


def test_what_is_installed_afterwards() -> None:
    old, new, kernel = package("libnccl", "1", "1"), package("libnccl", "2", "1"), package("kernel", "6", "1")
    goes = Package("gone", Evr("0", "1", "1"), "x86_64", has_scriptlet=True)
    next_kernel = package("kernel", "7", "1")
    steps = (Step("upgrade", new), Step("install", next_kernel), Step("remove", package("gone", "1", "1")))
    assert transaction.after([old, goes, kernel], steps) == (kernel, new, next_kernel)
    assert transaction.after([old, goes], ()) == (old, goes)


def test_the_script_is_one_transaction() -> None:
    assert transaction.script(["a"], ["b"], ["c", "d"]) == "remove a\nreinstall b\ninstall c\ninstall d\n"


def test_packages_with_the_wrong_signature() -> None:
    text = (
        "Package unsigned-1-1.x86_64.rpm is not signed\nPublic key for foreign-1-1.x86_64.rpm is not installed\n"
        "Error: GPG check FAILED\n"
    )
    unsigned, foreign = transaction.signature_sentences(text)
    assert unsigned.startswith("dnf refuses unsigned-1-1.x86_64.rpm: the package is not signed. Fix: ")
    assert foreign.startswith("dnf refuses foreign-1-1.x86_64.rpm: no trusted key of the node has made its signature.")


def test_a_key_of_the_repository_that_does_not_fit() -> None:
    """The wording of dnf/base.py when the repository names a key file."""
    text = (
        'The GPG keys listed for the "NVIDIA" repository are already installed but they are not correct for this '
        "package.\nCheck that the correct key URLs are configured for this repository.. Failing package is: "
        "libnccl-2.28.9-1+cuda13.0.x86_64\n GPG Keys are configured as: file:///etc/pki/key\nError: GPG check FAILED\n"
    )
    (foreign,) = transaction.signature_sentences(text)
    assert foreign.startswith("dnf refuses libnccl-2.28.9-1+cuda13.0.x86_64: no trusted key")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "metadata already locked by 418\n  The application with PID 418 is: sleep\n    Memory : 1.8 M RSS\n",
            "process 418 (sleep) holds dnf's lock",
        ),
        ("RPMDB already locked by 7\n", "process 7 holds dnf's lock"),
        (
            "RPM: error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)\n"
            "Error: Could not run transaction.\n",
            "another process holds rpm's lock",
        ),
        ("Error: GPG check FAILED\n", ""),
    ],
)
def test_somebody_else_is_at_work(text: str, expected: str) -> None:
    assert transaction.busy(text) == expected


def test_scriptlets_that_failed_are_told_once() -> None:
    line = "warning: %post(badpost-1-1.x86_64) scriptlet failed, exit status 3\n"
    assert transaction.scriptlet_warnings(line + "\n" + line) == (
        "The scriptlet %post of badpost-1-1.x86_64 failed with exit status 3; rpm calls the package installed.",
    )


@pytest.mark.parametrize(
    ("out", "err", "expected"),
    [
        (
            "(try to add '--skip-broken' to skip uninstallable packages or '--nobest' to use not only best)\n",
            "Error: \n Problem: conflicting requests\n"
            "  - nothing provides nothing-here >= 3 needed by needs-1-1.x86_64\n",
            "Problem: conflicting requests; nothing provides nothing-here >= 3 needed by needs-1-1.x86_64",
        ),
        (
            "All matches were filtered out by modular filtering for argument: kmod-nvidia-open-dkms\n" + REMOVE,
            "Error: Unable to find a match: kmod-nvidia-open-dkms\nOperation aborted.\n",
            "Error: Unable to find a match: kmod-nvidia-open-dkms; "
            "All matches were filtered out by modular filtering for argument: kmod-nvidia-open-dkms",
        ),
        ("", "Error: dnf was ended by signal 9\n", "Error: dnf was ended by signal 9"),
        ("one\ntwo\n", "", "one; two"),
    ],
)
def test_the_lines_that_decide(out: str, err: str, expected: str) -> None:
    assert transaction.decisive(out, err) == expected


def test_the_diff_has_versions_locks_and_streams() -> None:
    found = transaction.diff(
        ["b", "a"], {"a": "1-1"}, {"a": "2-1", "b": "3-1"}, (["a-0:1-1.*"], ["a-0:2-1.*"]), ([], ["m:1"])
    )
    assert found["before"] == "a 1-1\nb not installed\nlock a-0:1-1.*\n"
    assert found["after"] == "a 2-1\nb 3-1\nlock a-0:2-1.*\nmodule stream m:1\n"
