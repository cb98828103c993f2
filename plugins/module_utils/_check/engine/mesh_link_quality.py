# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links that are slow or lose packets, compared with the cluster's other links.  Pure.

No absolute threshold: what is fast for one network is slow for another. A link is compared with the links that do not
touch the one of its ends, and with those that do not touch the other: a bad node does not hide in an average that it
made itself.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    finding,
    fixes,
    mesh_format,
    set_cover,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends, Link, Links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_medians import Ordered, Others
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.set_cover import Cause

# Of four nodes, six links do not touch a given one; of three it is two, which are a rough measure.
LEAST_REFERENCE = 6
FEWEST_REFERENCE = 2
# A busy machine makes a transfer of a few milliseconds many times slower; so: this much slower than the median, ...
SLOW_FACTOR = 8.0
# ... and so many times farther from it than links usually are (median absolute deviation, on a logarithmic scale).
SLOW_DEVIATIONS = 6.0
# With fewer links a machine that was busy looks the same by chance: three of twelve, in 2 % of runs on busy cores.
LEAST_SLOW = 4
# Of three nodes, so much slower than the two links to compare with, and all links of one direction. Of healthy
# namespaces on busy cores no link was more than 6 times slower than the median of the six.
VERY_SLOW_FACTOR = 20.0
# One direction of the only link of two nodes, compared with the other one; there it was up to 3 times.
ONE_WAY_FACTOR = 30.0
# So many times the median's retransmissions (taken as 1 at least), on a link with half the median's rate or less. They
# are the fewest of four measurements (quality.py) of 1 MiB, about 750 segments of 1,500 bytes; 5 are 0.7 % even then.
LOSSY_FACTOR = 5
LOSSY_SLOWDOWN = 2.0
FEW_SLOWDOWN = 4.0
_KINDS = {set_cover.LINK: finding.LINK, set_cover.NODE: finding.NODE}


@dataclass(frozen=True)
class _Usual:
    """Of those other links.  rate: median, bytes per second.  deviation: of log2(rate).  retransmits: median.

    few: whether they are a rough measure only.
    """

    rate: float
    deviation: float
    retransmits: float
    few: bool = False


def findings(
    hosts: Sequence[str], links: Links, labels: Mapping[str, Mapping[str, str]] | None = None
) -> list[Finding]:
    """Warnings, as few as possible.  Links without a measured rate are left out."""
    measured = {ends: link for ends, link in links.items() if link.bytes_per_second}
    lossy: dict[Ends, bool] = {}
    again = Ordered({ends: link.retransmits or 0 for ends, link in measured.items()})
    without = _without(hosts, measured, again)
    for ends, link in measured.items():
        references = [usual for usual in (without[host] for host in ends) if usual is not None]
        if any(_is_lossy(link, usual) or _is_slow(link, usual) for usual in references):
            lossy[ends] = any(_is_lossy(link, usual) for usual in references)
    rates = Ordered({ends: link.bytes_per_second or 0.0 for ends, link in measured.items()})
    if len(hosts) == 2:
        return [_finding(cause, hosts, measured, rates, again) for cause in _one_way(measured)]
    if not lossy:
        return []
    causes = set_cover.explain(dict.fromkeys(lossy, ((0, 0),)), measured, hosts, labels)
    sure = [one for one in causes if _is_sure(one, lossy, len(hosts) == 3) or _lose_together(one, measured, again)]
    return [_finding(cause, hosts, measured, rates, again) for cause in sure]


def _one_way(measured: Mapping[Ends, Link]) -> list[Cause]:
    """Of two nodes the slow direction."""
    return [
        Cause(set_cover.LINK, ends, "", (ends,), 1)
        for ends, link in measured.items()
        if (ends[1], ends[0]) in measured
        and (link.bytes_per_second or 0.0) * ONE_WAY_FACTOR <= (measured[ends[1], ends[0]].bytes_per_second or 0.0)
    ]


def _without(hosts: Sequence[str], measured: Mapping[Ends, Link], again: Ordered) -> dict[str, _Usual | None]:
    """Host to what is usual of the links that do not touch it."""
    own: dict[str, list[Ends]] = {host: [] for host in hosts}
    for ends in measured:
        for host in ends:
            own[host].append(ends)
    rates = Ordered({ends: math.log2(link.bytes_per_second or 1.0) for ends, link in measured.items()})
    return {host: _usual(rates.without(links), again.without(links)) for host, links in own.items()}


def _usual(rates: Others, again: Others) -> _Usual | None:
    if len(rates) < FEWEST_REFERENCE:
        return None
    middle = rates.median()
    return _Usual(2**middle, rates.deviation(middle), again.median(), len(rates) < LEAST_REFERENCE)


def _is_slow(link: Link, usual: _Usual) -> bool:
    distance = math.log2(usual.rate) - math.log2(link.bytes_per_second or 1.0)
    if usual.few:
        return distance >= math.log2(VERY_SLOW_FACTOR)
    return distance >= max(math.log2(SLOW_FACTOR), SLOW_DEVIATIONS * usual.deviation)


def _is_lossy(link: Link, usual: _Usual) -> bool:
    lost = (link.retransmits or 0) >= LOSSY_FACTOR * max(1.0, usual.retransmits)
    slowdown = FEW_SLOWDOWN if usual.few else LOSSY_SLOWDOWN
    return lost and (link.bytes_per_second or 0.0) * slowdown <= usual.rate


def _is_sure(cause: Cause, lossy: Mapping[Ends, bool], three: bool) -> bool:
    """Slow without any loss: a machine that was busy is that on some of its links, a slow card on all of them."""
    if 2 * sum(lossy[ends] for ends in cause.links) >= len(cause.links):
        return True
    least = 2 if three else LEAST_SLOW
    return len(cause.links) >= least and cause.kind != set_cover.LINK and cause.share >= set_cover.GROUP_SHARE


def _lose_together(cause: Cause, measured: Mapping[Ends, Link], again: Ordered) -> bool:
    """Slow links of one node that lose as much as one link must, taken together: one lucky measurement hides a loss.

    A cable of 20 Mbit/s into a short queue loses 0 to 177 segments in the best of four measurements.
    """
    lost = sum(measured[ends].retransmits or 0 for ends in cause.links)
    usual = again.without(cause.links).median() * len(cause.links)
    enough = len(cause.links) >= 2 and cause.kind != set_cover.LINK and cause.share >= set_cover.GROUP_SHARE
    return enough and lost >= LOSSY_FACTOR * max(1.0, usual)


def _finding(
    cause: Cause, hosts: Sequence[str], measured: Mapping[Ends, Link], rates: Ordered, retransmits: Ordered
) -> Finding:
    own = [measured[ends] for ends in cause.links]
    rate, usual = statistics.median(link.bytes_per_second or 0.0 for link in own), rates.without(cause.links).median()
    again, usually = statistics.median(link.retransmits or 0 for link in own), retransmits.without(cause.links).median()
    lossy = again >= LOSSY_FACTOR * max(1.0, usually)
    others = "in the other direction" if len(hosts) == 2 else "between the others"
    return Finding(
        "GC-NET-007",
        cause.nodes,
        f"the data network is {'slow and loses packets' if lossy else 'slow'} {mesh_format.where(cause)}: "
        f"{_text(rate)}, {_text(usual)} {others}",
        "look at the speed that the card negotiated, at the errors it counts, at its cable and at the switch's port",
        (
            f"{len(own)} of {cause.of} links, {usual / rate:.0f} times slower than the median of the others",
            f"retransmitted segments of 1 MiB: {again:.0f}, {usually:.0f} {others} (medians)",
        ),
        Subject(_KINDS.get(cause.kind, finding.GROUP), cause.nodes, label=", ".join(one.text for one in cause.labels)),
        confidence=round(0.8 * cause.share, 2),
        look=fixes.look(cause.nodes, "ip -s -s link"),
        reproduce=fixes.check(_enough(hosts, cause.links[0])),
    )


def _enough(hosts: Sequence[str], ends: Ends) -> list[str]:
    """The link and two further nodes to compare it with, in the order of the hosts."""
    further = [host for host in hosts if host not in ends][:2]
    return [host for host in hosts if host in ends or host in further]


def _text(bytes_per_second: float) -> str:
    """In MB/s of 10**6 bytes."""
    return f"{bytes_per_second / 1e6:.3g} MB/s"
