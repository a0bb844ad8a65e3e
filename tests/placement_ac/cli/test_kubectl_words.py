"""Words as kubectl reads them: values of short options and of flags behind `=`."""

from pathlib import Path

import click
import pytest

from placement_ac.cli.kubectl_words import as_click_reads, with_command_first
from placement_lab.hub import Hub
from tests.support import commands

PARAMS = [
    click.Argument(["name"]),
    click.Option(["-o", "--output"]),
    click.Option(["-n", "--namespace"]),
    click.Option(["-f", "--follow"], is_flag=True),
    click.Option(["--tail"], type=int),
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("-o=name", "-o name", id="a short option"),
        pytest.param("-n==x", "-n =x", id="a value that begins with ="),
        pytest.param("-oname -n x --output=y", "-oname -n x --output=y", id="what click reads itself"),
        pytest.param("--follow=true -f=T --follow=1", "--follow -f --follow", id="a flag that is set"),
        pytest.param("--follow=false -f=0 --follow=F a", "a", id="a flag that is not set"),
        pytest.param("--follow=maybe", "--follow=maybe", id="a flag with another value: click objects"),
        pytest.param("-n -o=x a=b --other=1 -x=1", "-n -o=x a=b --other=1 -x=1", id="what is no option"),
        pytest.param("a -- -o=x --follow=true", "a -- -o=x --follow=true", id="the words of another command"),
        pytest.param("--tail=-1", "--tail=-1", id="a negative number"),
    ],
)
def test_words_of_kubectl(words: str, expected: str) -> None:
    assert as_click_reads(words.split(), PARAMS) == expected.split()


def test_an_empty_value_of_a_short_option_stays() -> None:
    assert as_click_reads(["-n=", "a"], PARAMS) == ["-n", "", "a"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            "--context hub -n=x status -o name", "status --context hub -n=x -o name", id="two options"
        ),
        pytest.param("status --context hub", "status --context hub", id="none"),
        pytest.param("--context", "--context", id="no value"),
        pytest.param("--context hub", "--context hub", id="no command"),
        pytest.param("-n x --help", "-n x --help", id="another option"),
        pytest.param("-o name status", "-o name status", id="an option that not each command has"),
    ],
)
def test_options_before_the_command(words: str, expected: str) -> None:
    assert with_command_first(words.split()) == expected.split()


def test_commands_read_them(hub: Hub, tmp_path: Path) -> None:
    hub.write_kubeconfig(tmp_path / "hub")
    run = commands.on_hub(tmp_path / "hub")
    given = run("jobs", "-o=json", "-n=team", "--all-namespaces=false", "--watch=false")
    assert (given.exit_code, given.stdout) == (0, run("jobs", "-o", "json", "-n", "team").stdout)
    before = commands.run("--kubeconfig", str(tmp_path / "hub"), "-n", "team", "jobs", "-o=json")
    assert (before.exit_code, before.stdout) == (0, given.stdout)
    wrong = run("jobs", "--watch=maybe")
    assert (wrong.exit_code, "does not take a value" in wrong.output) == (2, True)


def test_an_empty_kubeconfig_is_none(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.write_kubeconfig(tmp_path / "hub")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "hub"))
    assert commands.run("status", "--kubeconfig", "", "-o", "name").exit_code == 0


def test_a_caller_acts_as_another_user_by_kubectls_options(hub: Hub, tmp_path: Path) -> None:
    hub.write_kubeconfig(tmp_path / "hub")
    run = commands.on_hub(tmp_path / "hub")
    jane = run("status", "--as=jane")
    assert (jane.exit_code, "you may not list admissionchecks" in jane.output) == (1, True)
    assert run("status", "--as", "jane", "--as-group=system:masters", "--as-uid=1").exit_code == 0
    nobody = run("status", "--as-group", "system:masters")
    assert (nobody.exit_code, "set as, or remove as-uid, as-groups" in nobody.output) == (1, True)
