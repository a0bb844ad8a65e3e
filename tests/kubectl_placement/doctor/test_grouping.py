"""One cause is one finding, with the names of all clusters that it concerns."""

from dataclasses import replace

from kubectl_placement.doctor.finding import Finding, fail, ok, warn
from kubectl_placement.doctor.grouping import grouped


def of(cluster: str, finding: Finding) -> Finding:
    return replace(finding, check="worker-jobs", cluster=cluster)


def test_findings_that_differ_only_in_the_cluster_are_one() -> None:
    found = [
        of(name, fail("install a CRD", f"kubectl get crd x | kubectl --context {name} create -f -"))
        for name in ("c1", "c10", "c2")
    ]
    assert grouped(found) == (
        replace(
            found[0],
            message="c1, c10, c2: install a CRD",
            fix="for CLUSTER in c1 c10 c2; do kubectl get crd x | kubectl --context ${CLUSTER} create -f -; "
            "done",
        ),
    )


def test_a_name_within_the_message_stands_for_each() -> None:
    found = [
        of(name, warn(f"cluster {name} is left out: create Secret multikueue-{name}", f"kubectl x {name}"))
        for name in ("a", "b")
    ]
    [one] = grouped(found)
    assert one.message == "a, b: cluster CLUSTER is left out: create Secret multikueue-CLUSTER"


def test_fixes_with_quotes_stay_one_by_one() -> None:
    found = [of(name, fail("no", f"kubectl patch {name} -p '{{}}'")) for name in ("a", "b")]
    assert grouped(found)[0].fix == "kubectl patch a -p '{}'\nkubectl patch b -p '{}'"


def test_other_causes_and_what_is_right_stay_alone() -> None:
    found = (of("a", fail("x", "f")), of("b", fail("y", "f")), of("a", ok("z")), of("b", ok("z")))
    assert grouped(found) == found
    assert [one.message for one in grouped(found, named=True)] == ["a: x", "b: y", "a: z", "b: z"]


def test_only_the_whole_name_stands_for_each() -> None:
    found = [of(name, warn(f"{name}. mk-{name} {name}:{name}")) for name in ("a", "b")]
    found += [of(name, warn(f"{name}-x {name}.x x{name} {name}1")) for name in ("a", "b")]
    assert [one.message for one in grouped(found)] == [
        "a, b: CLUSTER. mk-CLUSTER CLUSTER:CLUSTER",
        "a-x a.x xa a1",
        "b-x b.x xb b1",
    ]
