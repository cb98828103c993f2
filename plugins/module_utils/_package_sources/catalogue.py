# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repositories that the collection knows, by EL version and architecture. Data, and nothing else.

Where each value comes from (read in stored copies of these sources, no address was contacted):

* EPEL 9: metalink as in its release package. EPEL 10 has minor versions, as ``epel-10.1`` for EL 10.1, and is renaming
  the others: CentOS Stream has ``epel-10``, from September 2026 on ``epel-10s``; Red Hat and its rebuilds have
  ``epel-z-10``, which leads to the newest minor version (rpm-software-management/mock, pull request 1811, and
  mock-core-configs/etc/mock/templates/epel-10.tpl and epel-z-10.tpl). MirrorManager is asked which of them it knows.
  Fingerprints are those with which MariaDB/mariadb-docker pins the keys; the keys that voxpupuli/puppet-epel ships have
  them.
* NVIDIA: addresses and key files as in NVIDIA's repository files. The fingerprint of D42D0685 is printed in
  NVIDIA/cuda-repo-management, SIGNATURES.md. For EL 10 another key signs, CDF6BA43 (AlmaLinux's
  almalinux-release-nvidia-driver.spec). No source for its whole fingerprint was found, and the short one identifies
  nothing: anybody can make a key that ends so.
* CRB: ``crb`` in CentOS Stream, Rocky and Alma, ``codeready-builder-for-rhel-N-ARCH-rpms`` in RHEL. Its key is the
  distribution's, so it has no address here: the node's own definition is switched on.
* ``libnccl`` is a package of NVIDIA's repository (NVIDIA/nccl, pkg/redhat/nccl.spec.in), ``dkms`` one of EPEL.
"""

from __future__ import annotations

from dataclasses import dataclass

CRB, EPEL, NVIDIA = "crb", "epel", "nvidia"

#: What RPM calls the architecture -> what NVIDIA's folders call it. Other architectures have no builds there.
NVIDIA_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "sbsa"}

_EPEL_FINGERPRINTS = {
    9: "FF8AD1344597106ECE813B918A3872BF3228467C",
    10: "7D8D15CBFC4E62688591FB2633D98517E37ED158",
}
_NVIDIA_KEYS = {9: "D42D0685", 10: "CDF6BA43"}
_NVIDIA_FINGERPRINTS = {9: ("610C7B14E068A878070DA4E99CD0A493D42D0685",)}

METALINK = "https://mirrors.fedoraproject.org/metalink"

#: The index that pip asks where nothing else is configured.
PYPI = "https://pypi.org/simple"

#: The folder with an index for each build of PyTorch, such as cu130 and cpu.
PYTORCH = "https://download.pytorch.org/whl"


@dataclass(frozen=True)
class Node:
    """What decides which repositories fit: major version, VERSION_ID (10.1), RPM's name of the architecture."""

    major: int
    version: str
    arch: str


@dataclass(frozen=True)
class Known:
    """A repository that is wanted by its name alone.

    ``own_ids`` are the ids under which a node may define it already. ``packages`` tell it from others: a node to which
    an enabled repository offers them needs no second one. Of ``metalinks`` the first counts that their server knows.
    No address: only the node's own definition can be used, and
    only where the node also uses one of ``beside``, or another one of the same file.
    """

    id: str
    title: str
    own_ids: tuple[str, ...]
    beside: tuple[str, ...] = ()
    baseurl: str = ""
    metalinks: tuple[str, ...] = ()
    gpg_key: str = ""
    fingerprints: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    #: Said where the fingerprint is missing.
    key_hint: str = ""


def _epel_names(node: Node) -> tuple[str, ...]:
    """What MirrorManager calls the EPEL that fits, the best first."""
    major = node.major
    if major < 10:
        return (f"epel-{major}",)
    if node.version == str(major):
        return (f"epel-{major}s", f"epel-{major}")
    return (f"epel-{node.version}", f"epel-z-{major}")


def known_repositories(node: Node) -> dict[str, Known]:
    """The catalogue for one node, by id."""
    major, arch = node.major, node.arch
    found = {
        CRB: Known(
            id=CRB,
            title=f"CodeReady Linux Builder {major}",
            own_ids=("crb", f"codeready-builder-for-rhel-{major}-{arch}-rpms"),
            # In one file with CRB in CentOS Stream, Rocky and RHEL, in another one in Alma.
            beside=("baseos", f"rhel-{major}-for-{arch}-baseos-rpms"),
        ),
        EPEL: Known(
            id=EPEL,
            title=f"Extra Packages for Enterprise Linux {major}",
            own_ids=("epel",),
            metalinks=tuple(f"{METALINK}?repo={name}&arch={arch}" for name in _epel_names(node)),
            gpg_key=f"https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-{major}",
            fingerprints=(_EPEL_FINGERPRINTS[major],) if major in _EPEL_FINGERPRINTS else (),
            packages=("dkms",),
        ),
    }
    nvidia_arch = NVIDIA_ARCHITECTURES.get(arch)
    if nvidia_arch and major in _NVIDIA_KEYS:
        folder = f"https://developer.download.nvidia.com/compute/cuda/repos/rhel{major}/{nvidia_arch}"
        found[NVIDIA] = Known(
            id=NVIDIA,
            title=f"NVIDIA CUDA for Enterprise Linux {major}",
            own_ids=(f"cuda-rhel{major}-{nvidia_arch}",),
            baseurl=folder,
            gpg_key=f"{folder}/{_NVIDIA_KEYS[major]}.pub",
            fingerprints=_NVIDIA_FINGERPRINTS.get(major, ()),
            packages=("libnccl",),
            key_hint=f"the key that NVIDIA publishes for EL {major} ends in {_NVIDIA_KEYS[major]}",
        )
    return found
