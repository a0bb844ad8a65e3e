"""The graph: nodes, edges, paths, counting nodes; and names and messages are escaped."""

import json
import re
from html.parser import HTMLParser

import pytest

from kubectl_placement.graph.mermaid import mermaid
from kubectl_placement.graph.model import CLUSTER, Graph, GraphEdge, build_graph
from kubectl_placement.status.model import CheckStatus, ClusterRow, QueueRow, WorkloadRow
from tests.support import commands, pictures


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
    story = pictures.check_status(
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


def test_nodes_that_two_checks_share_are_drawn_once() -> None:
    one = pictures.check_status(
        "one", placement="kueue-system/p", config="p", clusters=(ClusterRow("a", "listed"),)
    )
    graph = build_graph(
        [one, pictures.check_status("two", placement=one.placement, config="p", clusters=one.clusters)]
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
    many = pictures.check_status(
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


class Elements(HTMLParser):
    """Collects the elements of a page, their attributes, and the text of the one with the data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1] == ("script", {"id": "data", "type": "application/json"}):
            self.data += data.strip()


BRANCHES = {"hostile": pictures.hostile(), "large": pictures.large(), "nothing": pictures.nothing()}


@pytest.mark.parametrize("check_status", BRANCHES.values(), ids=BRANCHES)
def test_others_words_are_in_the_data_of_the_page_alone(check_status: CheckStatus) -> None:
    page, empty = (Elements(pictures.graph_page(statuses)) for statuses in ([check_status], []))
    assert page.found == empty.found
    assert [name for _, attributes in page.found for name in attributes if name.startswith("on")] == []
    assert {name for tag, attributes in page.found for name in attributes if name in ("src", "href")} == {
        "href"
    }
    [status] = [detail["status"] for detail in json.loads(page.data)["details"]]
    assert status["name"] == pictures.shown(check_status.name)


def test_mermaid_has_others_words_in_numbers() -> None:
    text = mermaid(build_graph([pictures.hostile()]))
    labels = re.findall(r'"([^"]*)"', text)
    assert labels != []
    assert [label for label in labels if re.search(r"[<>`&|]", label.replace("<br/>", ""))] == []
    skeleton = re.sub(r'"[^"]*"', '""', text)
    box = r'    n\d+(\[""\]|\{\{""\}\})(:::\w+)?'
    edge = r'    n\d+ (-->|==>|-\.->)(\|""\|)? n\d+'
    allowed = re.compile(f"flowchart LR|{box}|{edge}|    classDef .*")
    assert [line for line in skeleton.splitlines() if not allowed.fullmatch(line)] == []


def test_status_draws_it_once() -> None:
    done = commands.run("status", "--watch", "-o", "mermaid")
    assert (done.exit_code, "use --watch without -o mermaid" in done.stderr) == (2, True)
