# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One text that a program prints, and one cause that texts lead to.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

#: Whom a text speaks of: the one that printed it, somebody else, or nobody in particular.
SELF = "self"
PEER = "peer"
NOBODY = "nobody"

#: How a line of the tables is known: seen on nodes without GPU, read in the source, or reported by others.
SEEN = "seen"
READ = "read in the source"
REPORTED = "reported"


@dataclass(frozen=True)
class Cause:
    """What is behind a group of texts.

    kind: its name in the answers of ``explain``.  explained_by: the beginnings of ids of findings that lead to these
    texts; with one of those the text is its evidence, and no finding of its own.  fix: a sentence.  command: what does
    it, run as it stands; empty where no command does.  look: what narrows the cause and changes nothing.
    """

    id: str
    kind: str
    fix: str
    explained_by: tuple[str, ...] = ()
    command: str = ""
    look: str = ""


@dataclass(frozen=True)
class Text:
    """One text.

    words: a regular expression over the text with single spaces, upper and lower case alike; never line numbers or
    names of files, which change with every release.  Its groups name what the text names: ``rank``, ``ranks``,
    ``address``, ``port``, ``interface``, ``host``.  cause: the id of a ``Cause``.  about: ``SELF``, ``PEER`` or
    ``NOBODY``.  says: what it means, as part of a sentence.  versions: those it is known of, empty for all.
    swapped: whether its port has the two bytes exchanged.  weak: whether it only wraps or follows another error: any
    other text of the same process is closer to the cause then.  fix: what helps, empty for that of the cause.  command:
    what mends it, run as it stands; look: what narrows the cause and changes nothing.  Without either, those of the
    cause hold, unless the text has a fix of its own.  limit: the limit of the node that has to be low for this meaning,
    empty for none; otherwise: what the text says where it is unlimited.
    """

    words: str
    cause: str
    about: str
    says: str
    known: str = SEEN
    versions: tuple[str, ...] = ()
    swapped: bool = False
    command: str = ""
    look: str = ""
    fix: str = ""
    weak: bool = False
    limit: str = ""
    otherwise: str = ""


#: Shows which file system is full, of data or of files.
DISK = "df -h /run /dev/shm /tmp; df -i /run /dev/shm /tmp"
#: The limit of locked memory, and what an RDMA text says that can't be about it.
MEMLOCK = "memlock"
NOT_MEMLOCK = "RDMA memory can't be registered: nvidia_peermem is not loaded, or the memory is full"
