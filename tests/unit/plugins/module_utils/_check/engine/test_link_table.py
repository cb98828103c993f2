# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A table of links tells what the mapping told that it was made of, link by link and as a whole."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import link_table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.link_table import ALPHABET, Table

Plain = dict[str, dict[str, Any]]


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def plain(count: int, dice: random.Random, values: list[Any]) -> Plain:
    """Some links have no value, and some nodes none at all."""
    rows = {
        source: {target: dice.choice(values) for target in names(count) if target != source and dice.random() < 0.9}
        for source in names(count)
    }
    return {source: row for source, row in rows.items() if row and dice.random() < 0.9}


def again(table: Table) -> Table:
    """As somebody reads it who has only the file."""
    return Table.read(table.nodes, json.loads(json.dumps(table.as_dict())))


@pytest.mark.parametrize("seed", range(30))
def test_a_table_is_the_mapping_that_it_was_made_of(seed: int) -> None:
    dice = random.Random(seed)
    values = dice.choice([["ok"], ["ok", "timeout", "EPERM"], [0, 3, 7], [0.5, 2.25], list(range(1, len(ALPHABET)))])
    pairs = plain(dice.randint(2, 9), dice, values)
    table = Table.of(pairs, names(9)[:4])
    for one in (table, again(table)):
        assert one == pairs and list(one) == [node for node in one.nodes if node in pairs] and len(one) == len(pairs)
        told = Counter(value for row in pairs.values() for value in row.values())
        assert one.counts() == told and one.within == 0
        if told and not isinstance(values[0], str):
            assert link_table.median(told) == statistics.median(told.elements())
            every = sorted(told.elements())
            assert [found[0] for found in one.worst(5, largest=False)] == every[:5]
            assert [found[0] for found in one.worst(5, largest=True)] == every[::-1][:5]
            assert all(pairs[source][target] == value for value, source, target in one.worst(5, largest=True))
    with pytest.raises(KeyError):
        table["nobody"]


def test_rows_that_are_alike_stand_there_once() -> None:
    """Also where each node has no value for itself, and one node is not reached."""
    hosts = names(50)
    pairs = {one: {two: "timeout" if two == "n7" else "ok" for two in hosts if two != one} for one in hosts}
    table = Table.of(pairs)
    assert table.usual == "." * 7 + "D" + "." * 42 and table.rows == {} and table == pairs
    assert link_table.changes(table, table) == {("ok", "ok"): 49 * 49, ("timeout", "timeout"): 49}
    assert len(list(link_table.changed(table, table, [("ok", "ok")]))) == len(list(table.links(["ok"]))) == 49 * 49
    pairs["n3"]["n4"] = "EPERM"
    del pairs["n9"]
    assert Table.of(pairs).rows.keys() == {"n3", "n9"} and Table.of(pairs) == pairs
    assert Table.of({}, hosts) == {} and Table.of({}).as_dict() == {"values": {}, "rows": {}}


@pytest.mark.parametrize(("spread", "most"), [(0.02, 0.001), (0.2, 0.01), (2.0, 0.1)])
def test_many_numbers_share_characters_and_the_table_knows_how_wrong_that_is(spread: float, most: float) -> None:
    dice = random.Random(5)
    hosts = names(60)
    pairs = {one: {two: dice.lognormvariate(20, spread) for two in hosts if two != one} for one in hosts}
    pairs["n1"]["n2"], pairs["n2"]["n1"] = 0, 1e3
    table = Table.of(pairs)
    assert 0 < table.within <= most
    for source, row in pairs.items():
        for target, value in row.items():
            told = table[source][target]
            assert math.isclose(told, value, rel_tol=table.within + 0.0011), (told, value)
    assert table["n1"]["n2"] == 0 and len(json.dumps(table.as_dict())) < 60 * 60 + 60 * 12 + 3000
    assert Table.of(table, hosts) is table, "what was rounded once is not rounded again"


def test_whole_numbers_stay_whole() -> None:
    hosts = names(20)
    pairs = {
        one: {two: 3 * place + 7 * last for last, two in enumerate(hosts) if two != one}
        for place, one in enumerate(hosts)
    }
    values = Table.of(pairs).values_of.values()
    assert Table.of(pairs).within > 0 and all(isinstance(value, int) for value in values)


def test_numbers_of_any_size_and_a_hundred_errors_have_characters() -> None:
    hosts = names(30)
    dice = random.Random(3)
    pairs: Plain = {one: {two: 10 ** dice.uniform(-300, 300) for two in hosts if two != one} for one in hosts}
    assert set(Table.of(pairs).values_of) <= set(ALPHABET)
    errors = {
        one: {two: f"E{place}{last}" for last, two in enumerate(hosts) if two != one} for place, one in enumerate(hosts)
    }
    assert link_table.OTHER in Table.of(errors).values_of.values() and Table.of(errors).counts()[link_table.OTHER] > 700


@pytest.mark.parametrize("seed", range(10))
def test_what_changed_between_two_tables_of_other_nodes(seed: int) -> None:
    dice = random.Random(seed)
    old, new = (plain(dice.randint(2, 8), dice, [1, 2, 30]) for _table in range(2))
    turned = names(8)[::-1]
    both = Counter(
        (old[source][target], new[source][target])
        for source in new
        for target in new[source]
        if target in old.get(source, {})
    )
    tables = Table.of(old), Table.of(new, turned)
    assert link_table.changes(*tables) == both
    found = list(link_table.changed(*tables, {(1, 30), (2, 30)}))
    assert len(found) == both[1, 30] + both[2, 30]
    for source, target, was, now in found:
        assert (old[source][target], new[source][target]) == (was, now) and now == 30
