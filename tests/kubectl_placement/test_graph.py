"""The graph: nodes, edges, paths, counting nodes; and names and messages are escaped."""

import re
from xml.etree import ElementTree as ET

import pytest

from kubectl_placement.cli.graph import draw
from kubectl_placement.graph.model import CLUSTER, Graph, GraphEdge, build_graph
from kubectl_placement.status.model import ClusterRow, QueueRow, WorkloadRow
from tests.support import pictures

FORMS = ("mermaid", "svg", "html")


def lines(graph: Graph) -> list[str]:
    """Return the edges as text: `=`: on a Workload's path, `.`: to a target not in use."""
    names = {node.id: f"{node.kind} {node.name}" for node in graph.nodes}
    return sorted(f"{names[e.source]} {_kind(e)}> {names[e.target]} {e.label}".rstrip() for e in graph.edges)


def _kind(edge: GraphEdge) -> str:
    return "=" if edge.on_workload_path else "-" if edge.in_use else "."


def test_the_path_of_a_workload() -> None:
    assert lines(build_graph([pictures.story()])) == [
        "AdmissionCheck demo => Placement kueue-system/demo",
        "AdmissionCheck multikueue -> MultiKueueConfig demo",
        "ClusterQueue queue -> AdmissionCheck multikueue",
        "ClusterQueue queue => AdmissionCheck demo",
        "LocalQueue default/user-queue => ClusterQueue queue",
        "MultiKueueConfig demo -> cluster cluster2 rank 1 · score 80",
        "MultiKueueConfig demo => cluster cluster3",
        "Placement kueue-system/demo => MultiKueueConfig demo",
        "Workload default/next .> LocalQueue default/user-queue",
        "Workload default/train => LocalQueue default/user-queue",
    ]


def test_where_only_kueues_own_check_is_listed_the_path_leads_by_it() -> None:
    queue = QueueRow("queue", "True", "", ("multikueue",), ("default/user-queue",))
    story = pictures.branch(
        clusters=(ClusterRow("cluster3", "listed", running=1),),
        queues=(queue,),
        users=("multikueue",),
        jobs=(WorkloadRow("default", "train", "user-queue", "running", "cluster3"),),
    )
    assert [line for line in lines(build_graph([story])) if "=>" in line] == [
        "AdmissionCheck multikueue => MultiKueueConfig demo",
        "ClusterQueue queue => AdmissionCheck multikueue",
        "LocalQueue default/user-queue => ClusterQueue queue",
        "MultiKueueConfig demo => cluster cluster3",
        "Workload default/train => LocalQueue default/user-queue",
    ]


def test_what_two_checks_share_is_there_once() -> None:
    one = pictures.branch(
        "one", placement="kueue-system/p", config="p", clusters=(ClusterRow("a", "listed"),)
    )
    graph = build_graph(
        [one, pictures.branch("two", placement=one.placement, config="p", clusters=one.clusters)]
    )
    assert [node.name for node in graph.nodes] == ["one", "kueue-system/p", "p", "a", "two"]


def test_a_large_fleet_is_counted_by_state() -> None:
    clusters = [node for node in build_graph([pictures.large()]).nodes if node.column == CLUSTER]
    assert len(clusters) == 22
    assert [(node.name, node.style, len(node.names)) for node in clusters[20:]] == [
        ("653 clusters", "beyond", 653),
        ("327 clusters", "unusable", 327),
    ]


def test_many_workloads_and_queues_are_counted() -> None:
    queues = tuple(f"team/queue-{n}" for n in range(100))
    jobs = tuple(WorkloadRow("team", f"job-{n}", "queue-7", "running", "a", gpus=2) for n in range(50))
    many = pictures.branch(
        clusters=(ClusterRow("a", "listed", running=50),),
        queues=(QueueRow("queue", "True", "", ("demo",), queues),),
        jobs=jobs,
    )
    output = [(node.kind, node.name, node.caption) for node in build_graph([many]).nodes if node.column < 2]
    assert output == [
        ("LocalQueue", "team/queue-7", ""),
        ("LocalQueues", "99 LocalQueues", ""),
        ("Workloads", "50 Workloads", "100 GPUs, runs on a"),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_tree_gives_the_same_picture(form: str) -> None:
    once, again = (draw(build_graph([pictures.story(), pictures.every_state()]), form, "x") for _ in range(2))
    assert once == again


@pytest.mark.parametrize("branch", [pictures.hostile(), pictures.large(), pictures.nothing()], ids=str)
def test_an_svg_is_xml_of_drawing_elements_alone(branch: pictures.CheckStatus) -> None:
    root = ET.fromstring(draw(build_graph([branch]), "svg", "x"))
    tags = {element.tag.partition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "g", "polygon", "text", "path"}
    assert {name for element in root.iter() for name in element.attrib if name.startswith("on")} == set()


def test_mermaid_has_others_words_in_numbers() -> None:
    text = draw(build_graph([pictures.hostile()]), "mermaid", "x")
    labels = re.findall(r'"([^"]*)"', text)
    assert labels != []
    assert [label for label in labels if re.search(r"[<>`&|]", label.replace("<br/>", ""))] == []
    skeleton = re.sub(r'"[^"]*"', '""', text)
    box = r'    n\d+(\[""\]|\{\{""\}\})(:::\w+)?'
    edge = r'    n\d+ (-->|==>|-\.->)(\|""\|)? n\d+'
    allowed = re.compile(f"flowchart LR|{box}|{edge}|    classDef .*")
    assert [line for line in skeleton.splitlines() if not allowed.fullmatch(line)] == []
