"""The documents say what the code does: tables, commands, links and output are compared with it."""

import base64
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import click
import pytest
import trustme

from placement_ac import (
    credentials,
    entrance,
    events,
    kube,
    made,
    model,
    names,
    operator,
    probing,
    queues,
    sync,
    vitals,
    workqueue,
)
from placement_ac.cli.main import COMMANDS, main
from placement_ac.demo.play import Outcome
from placement_ac.demo.shows import PlainShow, document
from placement_ac.demo.stories import STEPS
from placement_ac.hub import Hub
from placement_ac.measures import MEASURES
from placement_ac.settings import Settings, default_of
from placement_ac.snapshot import Made, Terms
from placement_ac.sources import PREFIX
from placement_ac.ways import Unusable
from tests.hub.driver import Controllers, Driver, eventually

ROOT = Path(__file__).resolve().parents[2]
README, CHANGELOG = ROOT / "README.md", ROOT / "CHANGELOG.md"
REFERENCE, ARCHITECTURE = ROOT / "docs" / "reference.md", ROOT / "docs" / "architecture.md"
MONITORING = ROOT / "docs" / "monitoring.md"
CONTRIBUTING, CREDENTIALS = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "credentials.md"
DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), ROOT / "samples" / "README.md")

Row = tuple[str, ...]
NOW = datetime(2026, 8, 1, tzinfo=UTC)


# -- reading Markdown


def lines_of(text: str, *, code: bool) -> Iterator[str]:
    """Yield the lines inside of fences, or those outside."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced is code:
            yield line


def section(path: Path, heading: str) -> str:
    """Return what stands under a heading, with the headings below it."""
    text = path.read_text("utf-8")
    begin = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert begin, f"{path.name} has no heading {heading!r}"
    rest = text[begin.end() :]
    end = re.search(rf"^#{{1,{len(begin[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def tables(path: Path, heading: str) -> list[list[Row]]:
    """Return the tables under a heading: rows of cells, without their head and without backticks."""
    found: list[list[Row]] = [[]]
    for line in section(path, heading).splitlines():
        if line.startswith("|"):
            found[-1].append(tuple(cell.strip().replace("`", "") for cell in line.strip("|").split("|")))
        elif found[-1]:
            found.append([])
    return [rows[2:] for rows in found if rows]


def table(path: Path, heading: str) -> list[Row]:
    """Return the first table under a heading."""
    return tables(path, heading)[0]


def spans(path: Path) -> list[str]:
    """Return what stands in code: the lines of fences, and the spans in backticks."""
    text = path.read_text("utf-8")
    prose = "\n".join(lines_of(text, code=False))
    return [
        *(line.strip() for line in lines_of(text, code=True)),
        *(" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)),
    ]


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a document."""
    heads = [line.lstrip("#") for line in lines_of(path.read_text("utf-8"), code=False) if line[:1] == "#"]
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


# -- conditions, settings, names, times

REASON_TABLES = [
    pytest.param(README, "What the condition says", id="README"),
    pytest.param(REFERENCE, "The condition `Active` and its reasons", id="reference"),
]
GOOD = (names.ACTIVE, names.SOME_CLUSTERS_UNUSABLE)


@pytest.mark.parametrize(("path", "heading"), REASON_TABLES)
def test_every_reason_and_its_sentence(path: Path, heading: str) -> None:
    wanted = [
        ("True" if reason in GOOD else "False", reason, sentence)
        for reason, sentence in names.REASONS.items()
    ]
    assert table(path, heading) == wanted


def test_every_reason_has_a_cure() -> None:
    _, cures = tables(REFERENCE, "The condition `Active` and its reasons")
    assert [row[0] for row in cures] == list(names.REASONS)
    assert [row for row in cures if not all(row)] == []


def settings() -> Iterator[Row]:
    """Yield flag, environment and default of each setting."""
    for name in Settings.model_fields:
        yield f"--{name.replace('_', '-')}", PREFIX + name.upper(), default_of(name)


def test_every_setting() -> None:
    assert [row[:3] for row in table(REFERENCE, "Settings")] == list(settings())
    assert [row[:2] for row in table(README, "Settings")] == [
        (flag, default) for flag, _, default in settings()
    ]


@pytest.mark.parametrize("path", [README, REFERENCE], ids=lambda path: path.stem)
def test_every_setting_has_a_meaning(path: Path) -> None:
    assert [row for row in table(path, "Settings") if not row[-1]] == []


def test_the_ways_to_credentials_in_their_order() -> None:
    rows = table(REFERENCE, "Credentials")
    assert [row[0] for row in rows] == list(names.WAYS)
    looked_for = re.findall(r"Secrets (\S+), then (\S+), in", rows[1][1])
    assert looked_for == [credentials.secret_names("<cluster>")]


def test_names_labels_and_annotations() -> None:
    account = default_of("credentials_account")
    assert [row[1] for row in table(REFERENCE, "Names, labels and annotations")] == [
        names.OUR_CONTROLLER,
        "the Placement's name",
        f"{names.PER_PLACEMENT}; or {names.SHARED}, see the setting --cluster-names",
        f"{names.LABEL_MANAGED_BY}: {names.MANAGED_BY}",
        names.LABEL_PLACEMENT,
        names.LABEL_CLUSTER,
        f'{names.ANNOTATION_ADOPT}: "true"',
        names.ANNOTATION_DRAINING,
        f"{account}; or {names.ADDON_ACCOUNT}, after placement-ac adopt",
        f"{account}-<cluster>; or {names.ADDON_ACCOUNT}-<cluster>, after placement-ac adopt",
        names.ANNOTATION_ACCOUNT,
        f'{names.LABEL_SYNC}: "true"',
        names.FIELD_MANAGER,
    ]


def test_times() -> None:
    assert [float(row[1]) for row in table(REFERENCE, "Times")] == [
        names.SETTLE_SECONDS,
        names.REGROUP_SECONDS,
        names.RIVAL_SECONDS,
        names.QUIET_SECONDS,
        names.HEAL_SECONDS,
        names.OPEN_SECONDS,
        names.GATE_MOST_SECONDS,
        names.ASK_FRESH_SECONDS,
        names.ASK_AGAIN_SECONDS,
        names.LOST_SECONDS,
        names.STRANDED_SECONDS,
        names.EDITED_SECONDS,
        names.UNUSABLE_SECONDS,
        events.AGAIN_SECONDS,
        operator.DISCOVERY_SECONDS,
        operator.REDISCOVERY_SECONDS,
        operator.PATIENCE_SECONDS,
        sync.RELIST_SECONDS,
        workqueue.FIRST_BACKOFF_SECONDS,
        workqueue.MOST_BACKOFF_SECONDS,
        probing.GOOD_SECONDS,
        probing.BAD_SECONDS,
        queues.BELIEVED_SECONDS,
        entrance.CREDENTIALS_SECONDS,
        entrance.EXPIRY_SECONDS,
        kube.TIMEOUT_SECONDS,
        kube.WATCH_SECONDS,
        kube.SILENCE_SECONDS,
        vitals.REVIVE_SECONDS,
        vitals.DEAD_SECONDS,
        vitals.AWAY_SECONDS,
        vitals.LATE_SECONDS,
    ]


def test_events() -> None:
    rows = table(REFERENCE, "Events")
    assert {row[0]: row[1] for row in rows} == {name: kind for name, (kind, _) in names.EVENTS.items()}
    for name, _, _, when in rows:
        assert when.startswith(names.EVENTS[name][1])
    code = "".join(
        path.read_text("utf-8")
        for path in (ROOT / "placement_ac").glob("*.py")
        if path.name not in ("names.py", "events.py")
    )
    constants = [
        key for key, value in vars(names).items() if isinstance(value, str) and value in names.EVENTS
    ]
    assert [key for key in constants if not re.search(rf"\b{key}\b", code)] == [], "posted nowhere"


def test_metrics() -> None:
    wanted = [(m.name, m.type, ", ".join(m.labels), m.told.replace("`", "")) for m in MEASURES]
    assert table(MONITORING, "Metrics") == wanted


# -- credentials


def an(kind: names.Kind, name: str, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "c", **rest.pop("metadata", {})}
    return {
        "apiVersion": kind.at(kind.versions[0]).api_version,
        "kind": kind.kind,
        "metadata": metadata,
    } | rest


def encoded(token: str) -> dict[str, str]:
    """What OCM reports."""
    data = {"token": token.encode(), "ca.crt": trustme.CA().cert_pem.bytes()}
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


OURS = {"labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY}}
REPORTED = an(names.SECRET, "placement-ac", data=encoded("token"))
NO_TOKEN = model.token(an(names.SECRET, "placement-ac"))


def grant(kind: names.Kind, *conditions: dict[str, Any], **metadata: Any) -> model.Grant:
    status = {"conditions": [{"message": "", **one} for one in conditions]}
    return model.grant(an(kind, "placement-ac", metadata=OURS | metadata, status=status))


def cluster(**config: str) -> model.ManagedCluster:
    return model.managed_cluster(
        an(names.MANAGED_CLUSTER, "c", spec={"managedClusterClientConfigs": [config]})
    )


IN_FORCE, REFUSED = (
    {"type": names.DONE[0], "status": status, "reason": "Because"} for status in ("True", "False")
)
WITH_CLUSTER = Made("c", NOW, terms=Terms(provision=True), managed=cluster(url="https://c"))
WITH_ACCOUNT = replace(WITH_CLUSTER, account=grant(names.ACCOUNT, IN_FORCE))
WITH_TOKEN = replace(WITH_ACCOUNT, token=model.token(REPORTED))
USED = replace(WITH_TOKEN, terms=Terms())
PROFILES = replace(USED, terms=Terms(form="cluster-profile"))
EXPIRED = replace(model.secret(an(names.SECRET, "placement-ac-c")), problem="", what="token", expires=NOW)
PROFILE = model.profile(an(names.CLUSTER_PROFILE, "c"))

MESSAGES = [
    replace(WITH_CLUSTER, terms=Terms(provision=True, served=False)),
    replace(WITH_CLUSTER, managed=None),
    replace(WITH_CLUSTER, account=grant(names.ACCOUNT, labels={})),
    WITH_CLUSTER,
    replace(WITH_CLUSTER, account=grant(names.ACCOUNT)),
    replace(WITH_CLUSTER, account=grant(names.ACCOUNT, REFUSED)),
    WITH_ACCOUNT,
    replace(WITH_ACCOUNT, token=NO_TOKEN),
    replace(WITH_TOKEN, managed=cluster()),
    replace(WITH_TOKEN, managed=cluster(url="https://c", caBundle="?")),
    replace(WITH_TOKEN, managed=cluster(url="http://c")),
    replace(WITH_TOKEN, permission=grant(names.PERMISSION)),
    USED,
    replace(USED, secret=EXPIRED),
    PROFILES,
    replace(PROFILES, profile=PROFILE),
]
"""What comes to each of the messages, in their order in the table."""


def test_what_a_message_means() -> None:
    rows = table(CREDENTIALS, "What a message means")
    assert [row for row in rows if not row[1]] == []
    told = [made.way_made(seen) for seen in MESSAGES]
    patterns = [re.sub(r"<\w+>", "(.+)", re.escape(row[0])) for row in rows]
    assert [
        (pattern, way)
        for pattern, way in zip(patterns, told, strict=True)
        if not (isinstance(way, Unusable) and re.fullmatch(pattern, way.why))
    ] == []


# -- commands


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found
    return found


def flags(of: click.Command) -> set[str]:
    return {flag for option in of.params for flag in option.opts if flag.startswith("--")}


def test_every_command() -> None:
    rows = table(REFERENCE, "Commands and exit codes")
    assert {row[0]: row[1] for row in rows} == {
        f"placement-ac {name}": told for name, told in COMMANDS.items()
    }


@pytest.mark.parametrize("name", ["hub", "demo", "adopt", "cleanup"])
def test_every_option(name: str) -> None:
    rows = table(REFERENCE, f"Options of `{name}`")
    assert {flag for row in rows for flag in re.findall(r"--[a-z-]+", row[0])} == flags(command(name))


def test_defaults_of_the_hub() -> None:
    told = {row[0].split()[0]: row[1] for row in table(REFERENCE, "Options of `hub`")}
    assert told == {option.opts[0]: str(option.default) for option in command("hub").params}


def test_every_command_line_in_the_documents_is_possible() -> None:
    wrong = []
    for path in DOCUMENTS:
        for line in spans(path):
            for words in re.findall(r"(?<!=)placement-ac((?: [^|#\s]+)+)", line):
                name, *rest = words.split()
                if name not in COMMANDS and not name.startswith("-"):
                    wrong.append(line)
                known = flags(command(name)) if name in COMMANDS else {"--version", "--help"}
                wrong += [line for word in (name, *rest) if word.startswith("--") and word not in known]
    assert wrong == []


def test_what_is_made_can_be_made() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    told = {str(path.relative_to(ROOT)): _made(spans(path)) for path in DOCUMENTS}
    assert {"demo", "test"} <= told["README.md"]
    assert {name: made - targets for name, made in told.items() if made - targets} == {}
    assert [row[0] for row in table(CONTRIBUTING, "Set up") if row[0][5:] not in targets] == []


def _made(code: Iterable[str]) -> set[str]:
    return {target for line in code for target in re.findall(r"(?:^|\s)make ([a-z-]+)", line)}


# -- the demo


def test_the_keys_of_the_demos_document() -> None:
    assert [row[0] for row in table(REFERENCE, "The JSON document of the demo")] == list(document(outcome()))


def test_the_step_in_the_readme_is_shown_like_that(capsys: pytest.CaptureFixture[str]) -> None:
    show, shown = PlainShow(), outcome()
    show.begins(shown.number, shown.step)
    show.ends(shown)
    told = section(README, "What the demo shows").partition("```console\n")[2].partition("```")[0]
    assert told.strip() == capsys.readouterr().out.strip()


def outcome() -> Outcome:
    """Return what the demo's second step comes to."""
    step = STEPS[1]
    secrets = dict(zip(step.wanted, ("kueue-admin-cluster2-kubeconfig", "multikueue-cluster3"), strict=True))
    condition = {"type": "Active", "status": "True", "reason": names.ACTIVE, "message": names.GENERATED}
    config = {"kind": "MultiKueueConfig", "spec": {"clusters": step.wanted}}
    return Outcome(
        number=2,
        step=step,
        right=True,
        elapsed=116,
        reaction=30,
        decided=step.clusters,
        objects=[config, *(_multikueue_cluster(name, secret) for name, secret in secrets.items())],
        condition=condition,
    )


def _multikueue_cluster(name: str, secret: str) -> dict[str, Any]:
    return {
        "kind": "MultiKueueCluster",
        "metadata": {"name": name},
        "spec": {"clusterSource": {"kubeConfig": {"location": secret, "locationType": "Secret"}}},
        "status": {"conditions": [{"type": "Active", "status": "True"}]},
    }


# -- the tree


def test_every_module_stands_in_the_architecture_once() -> None:
    package = ROOT / "placement_ac"
    modules = [str(path.relative_to(package)) for path in package.rglob("*.py") if path.name != "__init__.py"]
    told = [row[0] for rows in tables(ARCHITECTURE, "What each module does") for row in rows]
    assert sorted(told) == sorted(modules)


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_layers_are_those_of_the_import_contract() -> None:
    contracts = project()["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    told = lines_of(section(ARCHITECTURE, "The layers"), code=True)
    assert list(told) == [layer.replace("placement_ac.", "") for layer in layers]


def test_the_changelog_has_an_entry_for_this_version() -> None:
    version = project()["project"]["version"]
    assert re.search(rf"^## \[{re.escape(version)}\] - \S+$", CHANGELOG.read_text("utf-8"), re.MULTILINE)


def test_the_readme_asks_for_the_python_that_the_package_asks_for() -> None:
    least = project()["project"]["requires-python"].removeprefix(">=")
    assert f"Python {least} or newer" in README.read_text("utf-8")
    assert ("Python", f"{least} or newer") in table(README, "Compatibility")


def test_files_that_are_named_exist() -> None:
    named = {
        (path.name, span)
        for path in (README, ARCHITECTURE, REFERENCE, CONTRIBUTING)
        for line in spans(path)
        for span in re.findall(r"\b(?:samples|tests)/[\w./-]*\w", line)
    }
    assert len(named) > 5
    assert {(name, span) for name, span in named if not (ROOT / span).exists()} == set()


def test_links_lead_somewhere() -> None:
    links = [
        (path, target)
        for path in DOCUMENTS
        for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(lines_of(path.read_text("utf-8"), code=False)))
        if not target.startswith("https://")
    ]
    assert len(links) > 10
    assert [(str(path), target) for path, target in links if not _leads_somewhere(path, target)] == []


def _leads_somewhere(path: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    found = (path.parent / file).resolve() if file else path
    return found.is_relative_to(ROOT) and found.exists() and (not anchor or anchor in anchors(found))


# -- the rights


MANAGED = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
WHEN = "2026-01-01T00:00:00Z"


def test_the_rights_are_what_the_controller_asks_for(hub: Hub, admin: Driver, tmp_path: Path) -> None:
    """One cluster by Secret, one by ClusterProfile; a Workload that is answered, nominated, and lost."""
    rights, leading, *_ = tables(README, "Install it")
    providers = tmp_path / "providers.json"
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": "true"}
    providers.write_text(json.dumps({"providers": [{"name": "ocm", "execConfig": command}]}))
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.secrets_for("a")
    admin.profile("b", accessProviders=[{"name": "ocm"}])
    for name in ("a", "b"):
        _managed_cluster(admin, name)
    ocm = admin.in_namespace("teams")
    ocm.placement("p")
    ocm.decide("p", "a", "b")
    with Controllers(allowed(hub, admin, tmp_path, rights + leading)) as controllers:
        controllers.start(
            placement_namespace=TEAMS, dispatcher=True, access_providers=providers, leader_elect=True
        )
        eventually(lambda: admin.listed("p"), ["p-a", "p-b"])
        eventually(lambda: admin.reason("p"), "Active")
        for name in admin.clusters():
            connected = _condition("Active")
            admin.ask("PATCH", admin.kueue("multikueueclusters", name, "status"), connected, "merge")
        _a_workload_with_quota(admin)
        eventually(lambda: admin.ask("GET", f"{WORKLOADS}/w")["status"].get("nominatedClusterNames"))
        ocm.decide("p")
        ocm.placement_says("p", 0)
        eventually(lambda: admin.reason("p"), "NoClusterSelected")
        eventually(lambda: "cannot be asked" in admin.active("p")["message"])
        for name in ("a", "b"):
            admin.ask("DELETE", f"{MANAGED}/{name}")
        eventually(admin.clusters, [])
        ocm.decide("p", "a", "b")  # as at first: that event is there already
        eventually(lambda: asked(hub), one_by_one(rights + leading))


def test_the_rights_for_making_and_probing(hub: Hub, admin: Driver, tmp_path: Path) -> None:
    """Credentials are made, renewed, and taken away again; nobody answers at the cluster's address."""
    rights, _leading, making, probing = (
        wanted for wanted in tables(README, "Install it") if len(wanted[0]) == 4
    )
    admin.namespace("w")
    _managed_cluster(admin, "w", managedClusterClientConfigs=[{"url": "https://127.0.0.1:1"}])
    admin.check("p")
    ocm = admin.in_namespace("teams")
    ocm.placement("p")
    ocm.decide("p", "w")
    with Controllers(allowed(hub, admin, tmp_path, rights + making + probing)) as controllers:
        controllers.start(
            placement_namespace=TEAMS, credentials_provision="managed-serviceaccount", credentials_probe=True
        )
        eventually(lambda: admin.get(f"{ACCOUNT}/placement-ac"))
        _ocm_reports(admin, "one")
        made = eventually(lambda: admin.get(MADE_SECRET))["data"]
        _ocm_reports(admin, "two")
        eventually(lambda: (admin.get(MADE_SECRET) or {}).get("data") not in (made, None))
        eventually(lambda: "cannot be reached" in admin.active("p").get("message", ""))
        ocm.decide("p")
        ocm.placement_says("p", 0)
        eventually(lambda: [admin.get(path) for path in (MADE_SECRET, *GRANTS)], [None] * 3)
        wanted = one_by_one(making + probing)
        eventually(lambda: asked(hub) - one_by_one(rights), wanted)


AUTHENTICATION = "/apis/authentication.open-cluster-management.io/v1beta1/namespaces/w"
ACCOUNT = f"{AUTHENTICATION}/managedserviceaccounts"
PERMISSION = "/apis/rbac.open-cluster-management.io/v1alpha1/namespaces/w/clusterpermissions"
GRANTS = (f"{ACCOUNT}/placement-ac", f"{PERMISSION}/placement-ac")
SECRETS = "/api/v1/namespaces/{}/secrets"
MADE_SECRET = f"{SECRETS.format('kueue-system')}/placement-ac-w"


def _managed_cluster(admin: Driver, name: str, **spec: Any) -> None:
    managed = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
    admin.ask("POST", MANAGED, managed | {"metadata": {"name": name}, "spec": spec})


def _ocm_reports(admin: Driver, token: str) -> None:
    """Say as OCM does that the account and the permission are in force, and what the token is."""
    data = encoded(token)
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "placement-ac"}, "data": data}
    if admin.try_("POST", SECRETS.format("w"), body).status_code == 409:
        admin.ask("PATCH", f"{SECRETS.format('w')}/placement-ac", {"data": data}, "merge")
    for path, done in zip(GRANTS, names.DONE, strict=True):
        eventually(lambda path=path: admin.get(path))
        admin.ask("PATCH", f"{path}/status", _condition(done), "merge")


def _condition(kind: str) -> dict[str, Any]:
    condition = {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": WHEN}
    return {"status": {"conditions": [condition]}}


def _a_workload_with_quota(admin: Driver) -> None:
    admin.namespace("default")
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    spec = {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}]}
    job = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"}}
    admin.ask("POST", WORKLOADS, job | {"spec": spec})
    entries = [
        {"name": name, "state": "Pending", "message": "", "lastTransitionTime": WHEN} for name in ("p", "mk")
    ]
    status = _condition("QuotaReserved")["status"] | {"admissionChecks": entries}
    status["admission"] = {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": 1}]}
    admin.ask("PATCH", f"{WORKLOADS}/w/status", {"status": status}, "merge")


def one_by_one(rights: Iterable[Row]) -> set[Row]:
    """Return the rights of a table: group, resource (and which, if it names some), verb, namespace."""
    found = set()
    for row in rights:
        resource, named, which = row[1].partition(" named ")
        for verb, name, where in product(row[2].split(", "), which.split(", "), WHERE[row[3]]):
            found.add((_group(row[0]), f"{resource}{named}{name}", verb, where))
    return found


def allowed(hub: Hub, admin: Driver, folder: Path, rights: Iterable[Row]) -> Path:
    """Return a kubeconfig for somebody who has the rights of a table, and no others."""
    for namespace in sorted({where for spaces in WHERE.values() for where in spaces}):
        rules = [_rule(row) for row in rights if namespace in WHERE[row[3]]]
        kind, path = "ClusterRole", RBAC
        if namespace:
            kind, path = "Role", f"{RBAC}/namespaces/{namespace}"
            admin.namespace(namespace)
        admin.ask("POST", f"{path}/{kind.lower()}s", {"metadata": {"name": "r"}, "rules": rules})
        admin.ask("POST", f"{path}/{kind.lower()}bindings", _bound(kind))
    kubeconfig = hub.kubeconfig()
    kubeconfig["users"][0]["user"]["token"] = hub.add_user("controller", groups=())
    path = folder / "allowed"
    path.write_text(json.dumps(kubeconfig))
    return path


RBAC = "/apis/rbac.authorization.k8s.io/v1"
TEAMS = "more-teams,teams"
WHERE = {
    "cluster-wide": ("",),
    "in Kueue's namespace": ("kueue-system",),
    "in each Placement namespace": tuple(TEAMS.split(",")),
}
"""What the tables say → the namespaces of the Roles."""


def _rule(row: Row) -> dict[str, Any]:
    resource, _, named = row[1].partition(" named ")
    rule = {"apiGroups": [_group(row[0])], "resources": [resource], "verbs": row[2].split(", ")}
    return rule | ({"resourceNames": named.split(", ")} if named else {})


def _bound(kind: str) -> dict[str, Any]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "controller"}
    return {"metadata": {"name": "r"}, "roleRef": role, "subjects": [subject]}


def _group(told: str) -> str:
    return "" if told == "(core)" else told


RESOURCE = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>v\w+)(?:/namespaces/(?P<where>[^/]+))?/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?"
)
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}


def asked(hub: Hub) -> set[Row]:
    """Return the rights that the controller's requests took, kopf's too: group, resource, verb, namespace."""
    found = set()
    few = {where for spaces in WHERE.values() for where in spaces}
    for request in hub.journal:
        where = RESOURCE.fullmatch(request.path)
        if not where or not request.user_agent.startswith(("placement-ac", "kopf/")):
            continue
        resource = where["plural"] + (f"/{where['sub']}" if where["sub"] else "")
        if named := re.fullmatch(r"metadata.name=(\S+)", request.query.get("fieldSelector", "")):
            resource += f" named {named[1]}"
        if where["name"] and where["plural"] in ("deployments", "leases"):
            resource += f" named {where['name']}"
        verb = VERBS.get(request.method) or _reading(request.query, where["name"])
        namespace = where["where"] if where["where"] in few else ""  # in any other: by the ClusterRole
        found.add((where["group"] or "", resource, verb, namespace))
        if request.status == 201:  # an apply that makes the object needs both rights
            found.add((where["group"] or "", resource, "create", namespace))
    return found


def _reading(query: dict[str, str], name: str | None) -> str:
    return "watch" if "watch" in query else "get" if name else "list"
