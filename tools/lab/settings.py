# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, addresses and folders of the lab. Everything that it makes on the machine is called `gpulab`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from project import ROOT, cache_dir

from lab.flavour import DEFAULT, FLAVOURS, Flavour, chosen

PREFIX = "gpulab"
MAX_NODES = 16

#: The folders below `inventories` that list nodes of the lab, each with the number of its first node. What uses one
#: of them does not touch the nodes of the others.
MAIN = "lab"
FIRST_NODES = {MAIN: 1, "jobs": 11}

MANAGEMENT_BRIDGE = f"{PREFIX}-mgmt"
FABRIC_BRIDGE = f"{PREFIX}-fab"
MANAGEMENT_HOST_ADDRESS = "198.18.10.1/24"
OUTSIDER_LINK = f"{PREFIX}-out"

RECIPE = Path(__file__).resolve().parent / "recipe"

# What belongs to the running machine and is gone after a reboot.
RUN = Path("/run") / PREFIX
MOUNT_NAMESPACE = RUN / "mnt"
UNIFIED = RUN / "unified"
OWNER_FILE = RUN / "owner.json"
LOCK = Path("/run/lock") / f"{PREFIX}.lock"
OUTSIDER_LOCK = Path("/run/lock") / f"{PREFIX}-outsider.lock"
JOB_IMAGE_LOCK = Path("/run/lock") / f"{PREFIX}-job-image.lock"
CGROUP_PARENT = f"/{PREFIX}"


@dataclass(frozen=True)
class Node:
    """One node, by its number: all names and addresses follow from it."""

    number: int

    @property
    def name(self) -> str:
        """Inventory name and host name."""
        return f"n{self.number}"

    @property
    def container(self) -> str:
        return f"{PREFIX}-n{self.number}"

    @property
    def management_address(self) -> str:
        return f"198.18.10.{10 + self.number}"

    @property
    def fabric_address(self) -> str:
        """The address that the collection is to set; the lab leaves the interface unconfigured."""
        return f"198.18.20.{10 + self.number}/24"

    @property
    def links(self) -> tuple[str, str]:
        """This machine's ends of the node's management and fabric cables."""
        return f"{PREFIX}-m{self.number}", f"{PREFIX}-f{self.number}"

    @property
    def macs(self) -> tuple[str, str]:
        """Fixed, as on real hardware: a reimaged node keeps its network cards."""
        return f"02:67:70:10:00:{self.number:02x}", f"02:67:70:20:00:{self.number:02x}"


def nodes(count: int, first: int = 1) -> list[Node]:
    return [Node(number) for number in range(first, first + count)]


@dataclass(frozen=True)
class Paths:
    """The files of one checkout's lab and the cache it uses; ``el`` is the Enterprise Linux that its nodes show."""

    checkout: Path
    cache: Path
    el: int = DEFAULT

    @property
    def flavour(self) -> Flavour:
        return FLAVOURS[self.el]

    def kept(self, name: str) -> Path:
        """A folder of the cache that each flavour has for itself: none removes what another one has made."""
        return self.cache / (name if self.el == DEFAULT else f"{name}-el{self.el}")

    @property
    def state(self) -> Path:
        return self.checkout / ".lab"

    @property
    def key(self) -> Path:
        return self.state / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.state / "known_hosts"

    @property
    def state_file(self) -> Path:
        return self.state / "state.json"

    def hosts_file(self, name: str) -> Path:
        return self.checkout / "inventories" / name / "hosts.yml"

    @property
    def image_cache(self) -> Path:
        return self.kept("lab")

    @property
    def storage(self) -> Path:
        """podman's images and containers; the lab never touches the machine's own."""
        return self.image_cache / "storage"

    @property
    def wheels(self) -> Path:
        return self.cache / "wheels"

    @property
    def images(self) -> Path:
        """Archives of container images, for podman on the nodes."""
        return self.cache / "images"


def here() -> Paths:
    """The lab of this checkout."""
    return Paths(checkout=ROOT, cache=cache_dir().resolve(), el=chosen(OWNER_FILE, ROOT))
