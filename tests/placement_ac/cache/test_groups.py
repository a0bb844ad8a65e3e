"""Where the groups of jobs were placed last: how much of it is remembered."""

from placement_ac.cache.groups import GROUPS_BYTES, GroupPlaces
from placement_ac.core.api.constants import ANNOTATION_GROUP
from tests.support.jobs_to_dispatch import job


def test_the_groups_are_bounded_in_bytes() -> None:
    """Anybody who may create a Job names a group, of up to 8 KB."""
    places = GroupPlaces()
    jobs = [
        job(str(number), cluster="p-a", annotations={ANNOTATION_GROUP: f"{number}{'x' * 8_000}"})
        for number in range(400)
    ]
    for one in jobs:
        places.take(one)
    known = places.of(jobs, lambda cluster: cluster)
    assert jobs[-1].job.annotation(ANNOTATION_GROUP) in {name for _, name in known}
    assert 100 < len(known) < GROUPS_BYTES / 8_000
