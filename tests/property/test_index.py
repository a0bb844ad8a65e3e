"""An index answers as plain sets would, whatever comes and goes."""

from hypothesis import given
from hypothesis import strategies as st

from placement_ac.index import Id, Table

THINGS = st.frozensets(st.sampled_from("xyz"))
IDS = st.sampled_from([("", "a"), ("", "b"), ("n", "a")])


@given(st.lists(st.tuples(IDS, st.none() | THINGS), max_size=12))
def test_an_index_answers_as_plain_sets_would(steps: list[tuple[Id, frozenset[str] | None]]) -> None:
    table: Table[frozenset[str]] = Table(key=lambda thing: thing)
    copies = []
    for id_, thing in steps:
        if thing is None:
            table.drop(id_)
        else:
            table.put(id_, thing)
        copies.append((table.copy(), dict(table.things)))
    for one, things in [*copies, (table, table.things)]:
        wanted = {key: {id_ for id_, thing in things.items() if key in thing} for key in "xyz"}
        found = one.keys("key")
        assert {key: set(found.ids(key)) for key in "xyz"} == wanted
        assert set(found) == {key for key, ids in wanted.items() if ids}
        assert all((key in found) == bool(ids) for key, ids in wanted.items())
