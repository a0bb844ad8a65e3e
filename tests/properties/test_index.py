"""An index answers as plain sets would, whatever comes and goes."""

from hypothesis import given
from hypothesis import strategies as st

from placement_ac.cache.index import Id, Table

KEYS = st.frozensets(st.sampled_from("xyz"))
IDS = st.sampled_from([("", "a"), ("", "b"), ("n", "a")])


@given(st.lists(st.tuples(IDS, st.none() | KEYS), max_size=12))
def test_an_index_answers_as_plain_sets_would(steps: list[tuple[Id, frozenset[str] | None]]) -> None:
    table: Table[frozenset[str]] = Table(frozenset, key=lambda keys: keys)
    copies = []
    for id_, keys in steps:
        if keys is None:
            table.remove(id_)
        else:
            table.put(id_, keys)
        assert (id_ in table.index("key").ids("x")) == bool(keys and "x" in keys)
        copies.append((table.copy(), dict(table.objects)))
    for one, objects in [*copies, (table, table.objects)]:
        wanted = {key: {id_ for id_, keys in objects.items() if key in keys} for key in "xyz"}
        found = one.index("key")
        assert {key: set(found.ids(key)) for key in "xyz"} == wanted
        assert set(found) == {key for key, ids in wanted.items() if ids}
        assert all((key in found) == bool(ids) for key, ids in wanted.items())
        assert [one.by("key", key) for key in "xyz"] == [
            [objects[id_] for id_ in sorted(wanted[key])] for key in "xyz"
        ]
        for id_ in objects:
            assert found.used_by_others("xyz", id_) == [key for key in "xyz" if wanted[key] - {id_}]
