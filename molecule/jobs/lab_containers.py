# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""podman on nodes, and docs/containers.md as its reader takes it: scripts and commands out of its blocks."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from lab_cluster import PROJECT, Cluster, patience
from lab_launcher import LEFT, write

PAGE = PROJECT / "docs" / "containers.md"
#: What the page says to omit on members without a GPU.
GPUS = "--device nvidia.com/gpu=all "
#: The page's names, and those of the lab.
IMAGE = "registry.example.com/train:1"
TRAIN, TINY = "localhost/train:1", "localhost/tiny:1"
#: A root file system of the node's own programs: what each of them needs, without links.
MAKE_TINY = f"""
set -e
files=$(for program in /bin/sh /usr/bin/cat /usr/bin/env /usr/bin/id /usr/bin/setsid /usr/bin/sleep; do
    echo $program
    ldd $program | grep -o '/[^ ]*'
done | sort -u)
tar --create --dereference --file - $files 2> /dev/null | su - train -c 'cd /; podman import --quiet - {TINY} 2>&1'
"""
#: The process with which podman keeps a user's namespace, until his last session ends, is none of a job.
KEEPER = "catatonit -P"


def blocks(text: str = "") -> list[str]:
    """The page's blocks of shell."""
    return re.findall(r"^```sh\n(.*?)^```", text or PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def block(words: str) -> str:
    """The only block with these words, for members without GPUs."""
    found = [one for one in blocks() if words in one]
    assert len(found) == 1, f"{len(found)} blocks of {PAGE.name} have {words!r}"
    return found[0].replace(GPUS, "")


def adapted(text: str, names: Mapping[str, str]) -> str:
    """The same with other names than the page's; each of them must be there."""
    for theirs, ours in names.items():
        assert theirs in text, f"{theirs!r} is not in:\n{text}"
        text = text.replace(theirs, ours)
    return text


def put_script(cluster: Cluster, nodes: Iterable[str], path: str) -> None:
    """The script that the page says is at this path, on nodes."""
    text = block(f"# {path} ")
    for name in nodes:
        folder = Path(path).parent
        cluster.shell(name, f"mkdir -p {folder} && chmod 0755 /data {folder} && chown -R train: /data")
        write(cluster, name, path, text)
        cluster.shell(name, f"chmod 0755 {path}")


def archive(cluster: Cluster) -> str:
    """The archive of the image for jobs, as nodes see it; it is made when the cache does not have it."""
    said = cluster.lab("job-image", deadline=1200).splitlines()[-1]
    return f"/srv/images/{Path(said.rpartition(':')[0]).name}"


def as_train(command: str) -> str:
    """A command of the cluster's user, as a line of root's shell: it holds no single quotes."""
    return f"su - train -c 'cd / && {command}'"


def remains(cluster: Cluster, deadline: float = 20) -> list[str]:
    """What the cluster's user still has on any node, when so many seconds were not enough: processes and containers."""
    end = time.monotonic() + deadline * patience()
    while True:
        processes = [line for line in cluster.on_all(LEFT) if not line.endswith(KEEPER)]
        containers = cluster.on_all(as_train('podman ps --all --noheading --format "container {{.Names}} {{.Status}}"'))
        found = [*processes, *(line for line in containers if ": container " in line)]
        if not found or time.monotonic() >= end:
            return found
        time.sleep(0.5)


def clear(cluster: Cluster, nodes: Iterable[str]) -> None:
    """Without containers, the images of the tests, the user's keeper of namespaces, and the page's folder."""
    wipe = f"podman rm --all --force --time 0; podman rmi --force {TINY} {TRAIN}; podman system migrate"
    cluster.on_each(nodes, f"{as_train(f'({wipe}) > /dev/null 2>&1; true')}; rm -rf /data")
