"""The annotation on events about the list: what is written is read, what others write there is ignored."""

import json
from typing import Any, Final

import pytest

from placement_ac.core.api.list_change import ANNOTATION, SIZE_MAX, ClusterChange, ListChange, list_change_of

DRAINS: Final = ClusterChange("b", cause="not selected any more", state="1 Workload runs there")


def event(annotation: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {ANNOTATION: annotation}}}


@pytest.mark.parametrize(
    ("change", "annotation"),
    [
        pytest.param(
            ListChange("added", (ClusterChange("a", 80), ClusterChange("c", cause="x", again=True))),
            '{"change":"added","clusters":[{"name":"a","score":80},{"name":"c","cause":"x","again":true}]}',
            id="added",
        ),
        pytest.param(
            ListChange("added", (ClusterChange("a", 0),)),
            '{"change":"added","clusters":[{"name":"a","score":0}]}',
            id="a score of 0",
        ),
        pytest.param(
            ListChange("draining", (DRAINS,)),
            '{"change":"draining","clusters":[{"name":"b","cause":"not selected any more",'
            '"state":"1 Workload runs there"}]}',
            id="draining",
        ),
        pytest.param(
            ListChange("removed", (ClusterChange("a"),), 7),
            '{"change":"removed","clusters":[{"name":"a"}],"more":7}',
            id="more",
        ),
    ],
)
def test_a_change_is_compact_json_and_is_read_back(change: ListChange, annotation: str) -> None:
    assert change.to_json() == annotation
    assert list_change_of(event(annotation)) == change


def test_an_annotation_has_a_limit() -> None:
    many = tuple(ClusterChange(f"c{number}", cause='"' * 500) for number in range(100))
    annotation = ListChange("added", many).to_json()
    found = list_change_of(event(annotation))
    assert found
    assert found.clusters
    assert (found.clusters, found.more) == (many[: len(found.clusters)], 100 - len(found.clusters))
    assert len(annotation) <= SIZE_MAX
    assert ListChange("added", (ClusterChange("c", cause="x" * SIZE_MAX),)).to_json() == (
        '{"change":"added","clusters":[],"more":1}'
    )


def test_of_a_newer_version_the_known_fields_are_read() -> None:
    newer = {"change": "added", "clusters": [{"name": "a", "region": "eu"}], "since": 1}
    assert list_change_of(event(json.dumps(newer))) == ListChange("added", (ClusterChange("a"),))


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(None, id="null"),
        pytest.param(7, id="a number"),
        pytest.param("1 cluster more: a (score 9)", id="text"),
        pytest.param("[" * 20_000, id="deep"),
        pytest.param('{"change":"moved","clusters":[]}', id="another change"),
        pytest.param('{"change":"added","clusters":[{"name":""}]}', id="no name"),
        pytest.param('{"change":"added","clusters":[{"name":"' + 257 * "a" + '"}]}', id="a long name"),
        pytest.param('{"change":"added","clusters":[{"name":"a","score":1e99}]}', id="a large score"),
        pytest.param('{"change":"added","clusters":[{"name":"a","score":"NaN"}]}', id="no score"),
        pytest.param('{"change":"added","clusters":[],"more":-1}', id="less than none"),
        pytest.param('{"change":"added","clusters":[{"name":"\\ud800"}]}', id="half a character"),
        pytest.param('{"change":"added","clusters":[]}' + " " * SIZE_MAX, id="too long"),
    ],
)
def test_an_annotation_that_others_wrote_counts_as_no_change(annotation: Any) -> None:
    assert list_change_of(event(annotation)) is None


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({}, id="no metadata"),
        pytest.param({"metadata": None}, id="null"),
        pytest.param({"metadata": {"annotations": [ANNOTATION]}}, id="a list"),
    ],
)
def test_an_event_without_the_annotation_has_none(obj: dict[str, Any]) -> None:
    assert list_change_of(obj) is None
