"""The cases about logins: as kubectl in the same shell."""

import pytest

from tests.published.cases.scripts import run_case, section

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def test_the_first_file_of_a_list_wins() -> None:
    output = run_case("01")
    found = "admissioncheck.kueue.x-k8s.io/check-of-hub-a\n"
    assert section(output, "placement-ac status -o name") == found
    assert section(output, "placement-ac --context hub-a status") == found
    assert section(output, "placement-ac cleanup (dry run)") == "nothing to delete\nrc=0\n"
    assert section(output, "a later file with an empty current-context") == f"{2 * found}rc=0\n"
    assert section(output, "an empty first file").startswith(f"{2 * found}rc=0\n")
    assert "hub-b" not in output
    assert output.count(", context hub-a\n") == 1  # cleanup names it, on stderr


def test_the_hub_is_reached_where_no_proxy_names_it() -> None:
    output = run_case("02")
    check = "admissioncheck.kueue.x-k8s.io/gpu"
    both = f"-- kubectl\n{check}\n-- placement-ac status\n{check}"
    proxy = "HTTPS_PROXY=http://127.0.0.1:9"
    for variables in (
        "NONE=1",
        f"{proxy} NO_PROXY=HUB",
        f"{proxy} NO_PROXY=localhost,.svc,.cluster.local,HUB/16",
        "https_proxy=http://127.0.0.1:9 no_proxy=HUB",
        f"{proxy} NO_PROXY=*",
    ):
        assert section(output, variables).strip() == both, variables
    assert "Cannot connect to host 127.0.0.1:9" in section(output, f"{proxy}\n")
    assert "condition: False" in section(output, "the controller in such an environment")


def test_workers_are_reached_through_the_proxy_of_the_environment() -> None:
    output = run_case("02", "run2.sh")
    by_kubectl, _, by_doctor = output.partition("doctor --workers: ")
    assert "the proxy saw: CONNECT worker.example.invalid:6443" in by_kubectl
    assert "its proxy answered with HTTP 502" in by_doctor
    assert "the proxy saw: CONNECT worker.example.invalid:6443" in by_doctor


def test_a_plugin_that_fails_is_a_login_that_fails() -> None:
    output = run_case("03")
    for title in (
        "as kubectl rewrites it",
        "a path relative to the kubeconfig",
        "an environment variable without a value",
    ):
        assert section(output, title).endswith("-- placement-ac status\nNo checks found\nrc=0\n"), title
    missing = section(output, "the plugin is not installed").partition("-- placement-ac status\n")[2]
    assert missing.startswith("Error: cannot log in with ")
    assert "plugin no-such-cloud-cli cannot be started: No such file or directory" in missing
    assert "Install the CLI: https://cloud.example/cli" in missing
    assert missing.endswith("\nrc=1\n")
    refused = section(output, "the plugin refuses").partition("-- placement-ac status\n")[2]
    problem = "get-token-with-refusal ended with code 255: Error: Your session has expired."
    assert problem in refused
    assert refused.endswith("\nrc=1\n")
    assert problem in section(output, "the controller, when the plugin refuses")
    assert "system:anonymous" not in output


def test_kubeconfig_comes_before_the_account_of_a_pod() -> None:
    names = [line.partition(": ")[2].strip() for line in run_case("21").splitlines()]
    assert names == 4 * ["admissioncheck.kueue.x-k8s.io/check-of-the-hub"]


def test_as_is_obeyed() -> None:
    output = run_case("22")
    assert "kubectl whoami:       jane\n" in output
    for command in ("status: ", "cleanup:"):
        [line] = [line for line in output.splitlines() if line.startswith(f"placement-ac {command}")]
        assert "Error: " in line
        assert "may not list" in line or 'User "jane" cannot list' in line
