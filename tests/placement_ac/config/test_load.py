"""Settings from a file: below flags and environment, refused by file, line and key, shown with the source."""

import json
from pathlib import Path
from typing import Any

import pytest

from placement_ac.cli.run import shown
from placement_ac.config.layout import LAYOUT, PATHS
from placement_ac.config.load import PREFIX, REMOVED, flag_name, load
from placement_ac.config.settings import Settings
from placement_ac.core.api.errors import BadSettings
from tests.support import commands


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def from_file(path: Path, text: str, environment: Any = None, **flags: Any) -> Settings:
    path.write_text(text, "utf-8")
    loaded = load({"config": str(path)} | flags, environment or {})
    return loaded.settings.model_copy(update={"config": None})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", {}, id="empty"),
        pytest.param("# nothing yet\n", {}, id="a comment"),
        pytest.param("---\n{}\n", {}, id="no keys"),
        pytest.param("removal: {drainDeadline: 1h30m}", {"drain_deadline": 5400.0}, id="a duration"),
        pytest.param("removal: {drainDeadline: 90}", {"drain_deadline": 90.0}, id="seconds"),
        pytest.param(
            "dispatch:\n  enabled: true\n  stepSize: 5",
            {"dispatcher": True, "step_size": 5},
            id="plain values",
        ),
        pytest.param("kueue: {version: 0.19.1}", {"kueue_version": "0.19.1"}, id="a text"),
        pytest.param("context: 0.19", {"context": "0.19"}, id="a text like a number"),
        pytest.param("context: 2026-08-01", {"context": "2026-08-01"}, id="a text like a date"),
        pytest.param("context: 'null'", {"context": "null"}, id="a text like nothing"),
        pytest.param("credentials: {methods: [secret]}", {"credentials": ("secret",)}, id="a list"),
        pytest.param(
            "credentials:\n  methods:\n  - access-provider\n  - secret",
            {"credentials": ("access-provider", "secret")},
            id="a list over lines",
        ),
        pytest.param(
            "credentials: {methods: 'access-provider,secret'}",
            {"credentials": ("access-provider", "secret")},
            id="a list as text",
        ),
        pytest.param("kueue: {frameworks: []}", {"frameworks": ()}, id="an empty list"),
        pytest.param(
            "context: &a x\nkueue: {namespace: *a}",
            {"context": "x", "kueue_namespace": "x"},
            id="an alias",
        ),
        pytest.param(
            '{"removal": {"drainDeadline": "2h"}, "dispatch": {"enabled": true}}',
            {"drain_deadline": 7200.0, "dispatcher": True},
            id="JSON",
        ),
    ],
)
def test_a_config_file_is_read_into_settings(path: Path, text: str, expected: Any) -> None:
    assert from_file(path, text) == Settings(**expected)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "- secret", "it is not a mapping; write a setting like removal: {drainDeadline: 2h}", id="a list"
        ),
        pytest.param(
            "debug", "it is not a mapping; write a setting like removal: {drainDeadline: 2h}", id="a word"
        ),
        pytest.param(
            "a: [",
            "it is not YAML: line 1: expected the node content, but found '<stream end>'",
            id="no YAML",
        ),
        pytest.param(
            "a: 1\n---\nb: 1", "it is not YAML: line 2: but found another document", id="two documents"
        ),
        pytest.param("context: \x07", "it is not YAML: it has control characters", id="a bell"),
    ],
)
def test_a_file_that_holds_no_settings_is_named(path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadSettings) as refused:
        from_file(path, text)
    assert str(refused.value) == f"{path}: {problem}"


def test_settings_that_were_removed_are_refused_with_what_to_do(path: Path) -> None:
    assert not REMOVED.keys() & Settings.model_fields.keys()
    for name, fix in REMOVED.items():
        variable = f"{PREFIX}{name.upper()}"
        with pytest.raises(
            BadSettings, match=rf"^{variable}: there is no such setting any more; "
        ) as refused:
            load({}, {variable: "x"})
        assert str(refused.value).endswith(fix)
    path.write_text("".join(f"{flag_name(name)}: x\n" for name in REMOVED), "utf-8")
    with pytest.raises(BadSettings) as refused:
        load({"config": str(path)}, {})
    for at, (name, fix) in enumerate(REMOVED.items(), 1):
        assert f"{path}:{at}: {flag_name(name)}: there is no such setting any more; {fix}" in str(
            refused.value
        )


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("value", ["=x", ""], ids=["with a value", "alone"])
def test_a_flag_that_was_removed_is_refused_by_each_command(command: str, value: str) -> None:
    for name in REMOVED if value else [*REMOVED][:1]:
        run = commands.run(command, f"--{flag_name(name)}{value}")
        problem = f"--{flag_name(name)}: there is no such setting any more; {REMOVED[name]}"
        assert (run.exit_code, problem in " ".join(run.output.split())) == (2, True), run.output


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "drain-deadline: 2h",
            "drain-deadline: write removal: {drainDeadline: …} instead",
            id="as before there were sections",
        ),
        pytest.param(
            "credentials: secret",
            "credentials: write credentials: {methods: …} instead",
            id="before it was a section",
        ),
        pytest.param(
            "drainDeadline: 2h", "drainDeadline: write removal: {drainDeadline: …} instead", id="no section"
        ),
        pytest.param(
            "dispatch: {cluster_names: x}",
            "dispatch.cluster_names: write clusterNames: … instead",
            id="another section",
        ),
        pytest.param(
            "removal.settle: 1m", "removal.settle: write removal: {settle: …} instead", id="with a dot"
        ),
        pytest.param(
            "removal: {drainDeadlin: 2h}",
            "removal.drainDeadlin: there is no such setting; did you mean removal.drainDeadline?",
            id="nearly",
        ),
        pytest.param(
            "removl: {settle: 1m}",
            "removl: there is no such setting; did you mean removal?",
            id="nearly a section",
        ),
        pytest.param(
            "scores: on",
            "scores: write its settings below it, some of enabled, gpus, nodes",
            id="no section's",
        ),
        pytest.param(
            "scores: {gpus: a}\nscores: {nodes: true}",
            "scores: it is given twice; keep one",
            id="a section twice",
        ),
        pytest.param(
            "config: /other",
            "config: a file cannot name another one; give it as a flag or in the environment",
            id="another file",
        ),
        pytest.param("context: a\ncontext: b", "context: it is given twice; keep one", id="twice"),
        pytest.param(
            "context:",
            "context: it has no value; write one, in quotes if need be, or take the line out",
            id="no value",
        ),
        pytest.param(
            "context: !mine x",
            "context: it has no value; write one, in quotes if need be, or take the line out",
            id="a tag of its own",
        ),
        pytest.param(
            "context: [a]",
            "context: one value belongs here, not a list",
            id="one, not a list",
        ),
        pytest.param(
            "context: {a: b}",
            "context: one value belongs here, not a mapping",
            id="one, not a mapping",
        ),
        pytest.param(
            "credentials: {methods: {a: b}}",
            "credentials.methods: write a list of plain values, or one text with commas",
            id="a list, not a mapping",
        ),
        pytest.param(
            "credentials: {methods: [[secret]]}",
            "credentials.methods: write a list of plain values, or one text with commas",
            id="a list in a list",
        ),
        pytest.param(
            "dispatch: {enabled: 2}",
            "dispatch.enabled: '2' is not possible: it is true or false",
            id="no boolean",
        ),
        pytest.param(
            "dispatch: {stepSize: true}",
            "dispatch.stepSize: 'true' is not possible: it is a whole number",
            id="no number",
        ),
        pytest.param(
            "removal: {drainDeadline: 1:30}",
            "removal.drainDeadline: '1:30' is not possible: a duration is like 90s, 5m or 1h30m",
            id="no duration",
        ),
        pytest.param(
            "credentials: {methods: [secret, vault]}",
            "credentials.methods: 'vault' is not possible: "
            "Input should be 'profile-secret', 'secret' or 'access-provider'",
            id="an impossible part",
        ),
        pytest.param(
            "clusterProxy: {url: 'https://me:secret@proxy'}",
            "clusterProxy.url: 'https://…@proxy' is not possible: it is the URL of a server, https://…",
            id="a password",
        ),
    ],
)
def test_an_error_is_reported_by_file_line_and_key(path: Path, text: str, problem: str) -> None:
    """The last line is the one that is wrong."""
    with pytest.raises(BadSettings) as refused:
        from_file(path, f"# ours\n\n{text}")
    line = len(f"# ours\n\n{text}".splitlines())
    assert str(refused.value) == f"{path}:{line}: {problem}"


def test_all_errors_are_reported_at_once(path: Path) -> None:
    with pytest.raises(BadSettings) as refused:
        from_file(path, "quark: 1\ncontext: [a]")
    known = ", ".join(LAYOUT)
    assert str(refused.value).split("; ") == [
        f"{path}:1: quark: there is no such setting",
        f"known are {known}",
        f"{path}:2: context: one value belongs here, not a list",
    ]


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"context: \xe9")
    message = {}
    for name in ("none", "", "latin"):
        with pytest.raises(BadSettings) as refused:
            load({"config": str(tmp_path / name)}, {})
        message[name] = str(refused.value)
    assert message == {
        "none": f"cannot read the settings file {tmp_path / 'none'}: No such file or directory",
        "": f"cannot read the settings file {tmp_path}: Is a directory; "
        "name the file in it, like config.yaml",
        "latin": f"{tmp_path / 'latin'}: it is not text in UTF-8",
    }


def test_a_flag_counts_before_the_environment_before_the_file(path: Path) -> None:
    path.write_text("context: file\nkueue: {namespace: file}\ncredentials: {account: file}\n")
    environment = {
        "PLACEMENT_AC_CONFIG": str(path),
        "PLACEMENT_AC_CONTEXT": "environment",
        "PLACEMENT_AC_KUEUE_NAMESPACE": "environment",
    }
    loaded = load({"context": "flag"}, environment)
    names = ("context", "kueue_namespace", "credentials_account", "log_level", "config")
    assert {name: (getattr(loaded.settings, name), loaded.sources[name]) for name in names} == {
        "context": ("flag", "flag"),
        "kueue_namespace": ("environment", "environment PLACEMENT_AC_KUEUE_NAMESPACE"),
        "credentials_account": ("file", f"file {path}"),
        "log_level": ("info", "default"),
        "config": (path, "environment PLACEMENT_AC_CONFIG"),
    }


def test_a_configmap_is_mounted_as_links_that_are_swapped(tmp_path: Path) -> None:
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "config.yaml").write_text(f"context: c{number}\n")
    (tmp_path / "..data").symlink_to("1")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    flags = {"config": str(tmp_path / "config.yaml")}
    first = load(flags, {}).settings.context
    (tmp_path / "new").symlink_to("2")
    (tmp_path / "new").rename(tmp_path / "..data")
    assert (first, load(flags, {}).settings.context) == ("c1", "c2")


# -- as they are printed

GIVEN = {
    "context": 'a: #"b"',
    "credentials": "secret,access-provider",
    "credentials_validity": "1234567.5s",
    "dispatcher": "true",
    "settle": "90.5s",
    "frameworks": "",
    "cluster_proxy": "https://proxy/path",
}


def test_every_setting_has_its_place_in_the_file() -> None:
    assert {*PATHS} == {*Settings.model_fields} - {"config"}


def test_the_yaml_is_a_settings_file(path: Path) -> None:
    first = load(GIVEN, {})
    again = from_file(path, shown(first, "yaml"))
    assert again == first.settings
    assert shown(load({"config": str(path)}, {}), "yaml").startswith(f'# config: "{path}"  # flag\n')


def test_the_table() -> None:
    rows = {line.split()[0]: line.split()[1:] for line in shown(load(GIVEN, {}), "table").splitlines()}
    wanted = ("SETTING", "kubeconfig", "credentials", "credentials-validity", "dispatcher", "step-size")
    assert {name: rows[name] for name in wanted} == {
        "SETTING": ["VALUE", "SOURCE"],
        "kubeconfig": ["default"],
        "credentials": ["secret,access-provider", "flag"],
        "credentials-validity": ["1234567.5s", "flag"],
        "dispatcher": ["true", "flag"],
        "step-size": ["3", "default"],
    }
    assert len(rows) == len(Settings.model_fields) + 1


def test_the_command_prints_and_connects_to_nobody(path: Path) -> None:
    path.write_text("kubeconfig: /nowhere\n")
    words = ["run", "--print-settings", "-o", "json", "--config", str(path)]
    run = commands.run(*words, env={"PLACEMENT_AC_STEP_SIZE": "4"})
    assert run.exit_code == 0
    rows = {row["name"]: (row["value"], row["source"]) for row in json.loads(run.output)}
    assert {name: rows[name] for name in ("kubeconfig", "step-size", "drain-deadline")} == {
        "kubeconfig": ("/nowhere", f"file {path}"),
        "step-size": (4, "environment PLACEMENT_AC_STEP_SIZE"),
        "drain-deadline": (None, "default"),
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["-o", "json"], "use --output only with --print-settings", id="output alone"),
        pytest.param(["--print-settings", "--step-size", "0"], "step-size: '0' is not possible", id="bad"),
        pytest.param(["--config", "/nowhere"], "cannot read the settings file /nowhere", id="no file"),
    ],
)
def test_wrong_words(words: list[str], message: str) -> None:
    run = commands.run("run", *words)
    assert run.exit_code == 2
    assert message in run.output
