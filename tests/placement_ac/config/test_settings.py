"""Settings are validated and frozen; a flag counts before the environment."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from placement_ac.config.load import load
from placement_ac.config.policy import placement_policy
from placement_ac.config.settings import Settings, default_of, descriptions, setting_as_flag
from placement_ac.core.api.errors import BadSettings
from placement_ac.core.inputs.rights import FRAMEWORKS, parse_external

KNOWN = ", ".join(f"PLACEMENT_AC_{name.upper()}" for name in Settings.model_fields)


@pytest.mark.parametrize(
    ("flags", "environment", "expected"),
    [
        pytest.param({}, {}, {}, id="defaults"),
        pytest.param({"kubeconfig": "/x"}, {}, {"kubeconfig": Path("/x")}, id="a flag"),
        pytest.param({}, {"PLACEMENT_AC_CONTEXT": "c"}, {"context": "c"}, id="the environment"),
        pytest.param(
            {"context": "flag"}, {"PLACEMENT_AC_CONTEXT": "env"}, {"context": "flag"}, id="a flag before it"
        ),
        pytest.param(
            {"context": None}, {"PLACEMENT_AC_CONTEXT": "env"}, {"context": "env"}, id="no flag given"
        ),
        pytest.param(
            {"credentials": "access-provider, secret"},
            {},
            {"credentials": ("access-provider", "secret")},
            id="a list of words",
        ),
        pytest.param({"credentials": ("secret",)}, {}, {"credentials": ("secret",)}, id="a list"),
        pytest.param({}, {"HOME": "/root", "KUBECONFIG": "x"}, {}, id="others' variables"),
        pytest.param(
            {},
            {
                "PLACEMENT_AC_PORT": "tcp://10.0.0.1:80",
                "PLACEMENT_AC_PORT_80_TCP_ADDR": "10.0.0.1",
                "PLACEMENT_AC_SERVICE_HOST": "10.0.0.1",
                "PLACEMENT_AC_METRICS_SERVICE_PORT_HTTP": "80",
            },
            {},
            id="what Kubernetes sets for a Service of our name",
        ),
    ],
)
def test_where_a_setting_comes_from(flags: Any, environment: Any, expected: Any) -> None:
    assert load(flags, environment).settings == Settings(**expected)


def test_the_environment_is_the_processes_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACEMENT_AC_LOG_LEVEL", "debug")
    assert load({}).settings.log_level == "debug"


@pytest.mark.parametrize(
    ("flags", "environment", "message"),
    [
        pytest.param(
            {},
            {"PLACEMENT_AC_QUACK": "1"},
            f"PLACEMENT_AC_QUACK: there is no such setting; known are {KNOWN}",
            id="an unknown variable",
        ),
        pytest.param(
            {"nonsense": 1},
            {},
            "nonsense: 1 is not possible: Extra inputs are not permitted",
            id="an unknown flag",
        ),
        pytest.param(
            {"cluster_names": "{name}"},
            {},
            "cluster-names: '{name}' is not possible: Input should be '{placement}-{cluster}' or '{cluster}'",
            id="an unknown form of names",
        ),
        pytest.param(
            {"kueue_namespace": "Kueue System"},
            {},
            "kueue-namespace: 'Kueue System' is not possible: "
            "a namespace has lower-case letters, digits and '-', at most 63",
            id="no namespace",
        ),
        pytest.param(
            {"credentials": "secret,guess"},
            {},
            "credentials: 'guess' is not possible: "
            "Input should be 'profile-secret', 'secret' or 'access-provider'",
            id="an unknown way",
        ),
        pytest.param(
            {"credentials": "secret,secret"},
            {},
            "credentials: 'secret,secret' is not possible: name each only once",
            id="a way twice",
        ),
        pytest.param(
            {"placement_namespace": "teams,teams"},
            {},
            "placement-namespace: 'teams,teams' is not possible: name each only once",
            id="a namespace twice",
        ),
        pytest.param(
            {"placement_namespace": "teams,"},
            {},
            "placement-namespace: '' is not possible: a namespace has lower-case letters, digits and '-', "
            "at most 63",
            id="a namespace without a name",
        ),
        pytest.param(
            {"cluster_proxy": "http://proxy"},
            {},
            "cluster-proxy: 'http://proxy' is not possible: it is the URL of a server, https://…",
            id="a proxy without TLS",
        ),
        pytest.param(
            {"metrics_bind_address": "8080"},
            {},
            "metrics-bind-address: '8080' is not possible: it is HOST:PORT or :PORT, with a port up to 65535",
            id="no address",
        ),
        pytest.param(
            {"health_probe_bind_address": ":65536"},
            {},
            "health-probe-bind-address: ':65536' is not possible: "
            "it is HOST:PORT or :PORT, with a port up to 65535",
            id="no port",
        ),
        pytest.param(
            {"frameworks": "batch/job,batch/cronjob"},
            {},
            "frameworks: 'batch/job,batch/cronjob' is not possible: MultiKueue has no job kind "
            f"'batch/cronjob'; known are {', '.join(FRAMEWORKS)}",
            id="an unknown job kind",
        ),
        pytest.param(
            {"external_frameworks": "PipelineRun"},
            {},
            f"external-frameworks: 'PipelineRun' is not possible: {parse_external('PipelineRun')}",
            id="half an external kind",
        ),
        pytest.param(
            {"kueue_version": "0.19"},
            {},
            "kueue-version: '0.19' is not possible: a release is like 0.19.1 or v0.18.6",
            id="half a release",
        ),
        pytest.param(
            {"leader_elect_resource_name": "A Lease"},
            {},
            "leader-elect-resource-name: 'A Lease' is not possible: "
            "it has lower-case letters, digits, '-' and '.', at most 253",
            id="no name of a Lease",
        ),
        pytest.param(
            {"log_level": "loud"},
            {"PLACEMENT_AC_LOG_FORMAT": "xml"},
            "PLACEMENT_AC_LOG_FORMAT: 'xml' is not possible: Input should be 'text' or 'json'; "
            "log-level: 'loud' is not possible: Input should be 'debug', 'info', 'warning' or 'error'",
            id="two at once",
        ),
    ],
)
def test_impossible_settings_are_reported(flags: Any, environment: Any, message: str) -> None:
    with pytest.raises(BadSettings) as refused:
        load(flags, environment)
    assert str(refused.value) == message


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().context = "other"


@pytest.mark.parametrize(
    "text", ["0s", "0.5s", "2s", "60s", "61s", "90s", "2m", "90m", "1h", "25h", "3600.5s", "1234567s"]
)
def test_a_duration_is_printed_as_users_write_it(text: str) -> None:
    assert setting_as_flag("settle", Settings(settle=text).settle) == text


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        pytest.param("settle", "\u0663", id="a number of seconds"),
        pytest.param("settle", "\u0663s", id="a duration"),
        pytest.param("metrics_bind_address", ":\u0663", id="a port"),
    ],
)
def test_only_ascii_digits_are_digits(setting: str, text: str) -> None:
    with pytest.raises(ValidationError):
        Settings(**{setting: text})


def test_defaults_as_users_write_them() -> None:
    names = ("settle", "waiting_grace", "mass_loss_grace", "credentials_validity", "drain_deadline")
    assert [default_of(name) for name in names] == ["30s", "60s", "5m", "24h", ""]


def test_every_setting_is_described() -> None:
    assert [*descriptions()] == [*Settings.model_fields]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param({"waiting_grace": "10s"}, "set at least 15s", id="a grace that Kueue cannot keep"),
        pytest.param({"unlist_after": "1h"}, "set --dispatcher true", id="a stable list without dispatcher"),
    ],
)
def test_settings_that_would_harm_jobs_are_refused(flags: dict[str, str], message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        load(flags)


def test_the_stable_list_is_on_with_the_dispatcher() -> None:
    policies = [placement_policy(load(flags).settings) for flags in ({}, {"dispatcher": "true"})]
    assert [policy.unlist_after for policy in policies] == [0.0, 3600.0]
    off = load({"dispatcher": "true", "unlist_after": "0"}).settings
    assert placement_policy(off).unlist_after == 0.0
