"""An index answers as plain sets would, whatever comes and goes."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from placement_ac.cache.index import WAITING_MOST, Id, Table

THINGS = st.frozensets(st.sampled_from("xyz"))
IDS = st.sampled_from([("", "a"), ("", "b"), ("n", "a")])
asked = st.booleans()


@given(st.lists(st.tuples(IDS, st.none() | THINGS, asked), max_size=12))
def test_an_index_answers_as_plain_sets_would(steps: list[tuple[Id, frozenset[str] | None, bool]]) -> None:
    table: Table[frozenset[str]] = Table(key=lambda thing: thing)
    copies = []
    for id_, thing, at_once in steps:
        if thing is None:
            table.drop(id_)
        else:
            table.put(id_, thing)
        if at_once:
            assert (id_ in table.keys("key").ids("x")) == bool(thing and "x" in thing)
        copies.append((table.copy(), dict(table.things)))
    for one, things in [*copies, (table, table.things)]:
        wanted = {key: {id_ for id_, thing in things.items() if key in thing} for key in "xyz"}
        found = one.keys("key")
        assert {key: set(found.ids(key)) for key in "xyz"} == wanted
        assert set(found) == {key for key, ids in wanted.items() if ids}
        assert all((key in found) == bool(ids) for key, ids in wanted.items())


def test_what_was_there_before_does_not_wait_for_ever_to_be_asked() -> None:
    asked: list[int] = []
    table: Table[int] = Table(key=lambda thing: asked.append(thing) or (str(thing),))
    for number in range(WAITING_MOST):
        table.put(("", str(number)), number)
    assert asked == []
    table.put(("", "last"), WAITING_MOST)
    assert asked == list(range(WAITING_MOST + 1))
    assert table.by("key", "7") == [7]
    table.put(("", "7"), -7)
    for number in range(WAITING_MOST):
        table.drop(("", str(number)) if number != 7 else ("", "last"))
    assert asked[WAITING_MOST + 1 : WAITING_MOST + 3] == [7, -7]
    assert (table.by("key", "-7"), table.by("key", "7"), table.by("key", "8")) == ([-7], [], [])


def test_a_table_without_indexes_keeps_nothing_of_what_was_there() -> None:
    table: Table[list[int]] = Table()
    before: list[int] = [1]
    held = sys.getrefcount(before)
    for thing in (before, [2]):
        table.put(("", "a"), thing)
    table.put(("", "b"), before)
    table.drop(("", "b"))
    assert sys.getrefcount(before) == held
