"""Reading a hub with few rights: missing rights are reported in one line."""

from pathlib import Path

import pytest
import yaml

from kubectl_placement.cli.hub_options import HubSource, read_once
from kubectl_placement.hub.kinds import ALL_KINDS, DECISION_KINDS
from kubectl_placement.readers.hub_reader import read_kinds
from placement_ac.cli.login_options import with_client
from placement_ac.core.api.constants import ADMISSION_CHECK, SECRET
from placement_ac.core.api.errors import ApiError
from placement_lab.hub import Hub
from tests.support.real_hub import HubMaker


def test_nothing_is_written_and_nothing_is_watched(hub: Hub, kubeconfig: Path) -> None:
    hub.journal.clear()
    read_once(HubSource(kubeconfig=kubeconfig), ALL_KINDS)
    assert {(entry.method, "watch" in entry.query) for entry in hub.journal} == {("GET", False)}
    assert len(hub.journal) > len(ALL_KINDS)


def test_the_schema_says_how_many_clusters_kueue_takes(kubeconfig: Path) -> None:
    view = read_once(HubSource(kubeconfig=kubeconfig), DECISION_KINDS).view
    assert (view.facts.clusters_max, view.facts.cluster_version) == (20, "v1beta2")


def test_a_hub_that_does_not_answer_is_an_error(kubeconfig: Path) -> None:
    content = yaml.safe_load(kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    kubeconfig.write_text(yaml.safe_dump(content))
    with pytest.raises(ApiError):
        read_once(HubSource(kubeconfig=kubeconfig), DECISION_KINDS)


def test_a_kind_that_the_hub_does_not_serve_is_none_at_all(a_hub: HubMaker, tmp_path: Path) -> None:
    with a_hub(crds=()) as bare:
        bare.write_kubeconfig(tmp_path / "bare")
        dump = with_client(
            HubSource(kubeconfig=tmp_path / "bare"),
            lambda client: read_kinds(client, (ADMISSION_CHECK, SECRET), {}),
        )
    assert (dump.knows(ADMISSION_CHECK), dump.of(ADMISSION_CHECK)) == (True, ())
    assert list(dump.served) == [SECRET]
    assert not dump.schemas
