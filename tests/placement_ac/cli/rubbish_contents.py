"""Rubbish for any file that a command reads."""

from typing import Any, Final

import yaml


def bomb(levels: int) -> str:
    """Return YAML whose last line means 9 to the power of `levels` items."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def manifest(**fields: Any) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}} | fields)


def object_of(kind: str, group: str, **fields: Any) -> str:
    return manifest(apiVersion=group, kind=kind, **fields)


OCM: Final = "cluster.open-cluster-management.io/v1beta1"
KUEUE: Final = "kueue.x-k8s.io/v1beta1"
LIST_BOMB: Final = "\n".join(
    [
        "x0: &x0 {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
        "x1: &x1 {apiVersion: v1, kind: List, items: [" + ", ".join(["*x0"] * 9) + "]}",
        *(
            f"x{n}: &x{n} {{apiVersion: v1, kind: List, items: [" + ", ".join([f"*x{n - 1}"] * 9) + "]}"
            for n in range(2, 8)
        ),
        "apiVersion: v1",
        "kind: List",
        "items: [" + ", ".join(["*x7"] * 9) + "]",
    ]
)
"""Lists of lists that mean 43 million objects."""
CONTENTS: Final[dict[str, str | bytes]] = {
    "empty": "",
    "a line break": "\n",
    "spaces": "   \n  ",
    "a tab": "\t",
    "a comment": "# nothing\n",
    "three dashes": "---\n---\n---\n",
    "dots": "...\n",
    "null": "null",
    "true": "true",
    "a number": "1",
    "a huge number": "9" * 5000,
    "a huge exponent": "1e999999",
    "nan": ".nan",
    "an infinite number": "a: .inf",
    "a time": "2024-01-01T00:00:00Z",
    "a day that is none": "a: 2024-02-31",
    "an hour that is none": "a: 2024-01-01T99:99:99Z",
    "sexagesimal": "a: 1:99:99",
    "an octal that is none": "a: 0o9",
    "plain text": "plain text",
    "a list": "- a\n- list\n",
    "an empty list": "[]",
    "a list of nothing": "- \n- \n",
    "an empty map": "{}",
    "a map": "a: b",
    "a key that is a number": "1: 2",
    "a key that is null": "null: 2",
    "a key that is a list": "[1, 2]: 3",
    "a key that is a map": "{a: b}: 3",
    "a key with many digits": "1" * 5000 + ": 1",
    "a key twice": "a: 1\na: 2",
    "a setting twice": "removal: {settle: 1, settle: 2}",
    "a section twice": "removal: {settle: 1}\nremoval: {settle: 2}",
    "a merge": "a: &a {b: c}\nd: {<<: *a}",
    "a merge of nothing": "<<: 1",
    "a merge of itself": "&a {<<: *a}",
    "an alias of nothing": "a: *b",
    "an alias of itself": "&a [*a]",
    "a map that contains itself": "a: &a {b: *a}",
    "an object that contains itself": ("&a {apiVersion: v1, kind: List, metadata: {name: a}, items: [*a]}"),
    "a billion laughs": bomb(8),
    "a billion laughs as an object": (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{bomb(8)}"
    ),
    "a billion laughs of lists": LIST_BOMB,
    "a billion laughs as names": f"{bomb(8)}\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: *a7}}",
    "a tag of Python": "!!python/object/apply:os.system [false]",
    "an unknown tag": "!x a",
    "a binary that is none": "a: !!binary '?'",
    "an integer that is none": "a: !!int x",
    "a float that is none": "a: !!float x",
    "a boolean that is none": "a: !!bool x",
    "a time that is none": "a: !!timestamp x",
    "a set": "!!set {a, b}",
    "an ordered map": "!!omap [a: b]",
    "an ordered map that is none": "!!omap [1]",
    "pairs": "!!pairs [a: b]",
    "a version": "%YAML 9.9\n---\na: b",
    "a directive": "%X\n---\na: b",
    "braces": "}{",
    "a brace that stays open": "{a: [",
    "a quote that stays open": 'a: "b',
    "an escape that is none": 'a: "\\q"',
    "an escape of a surrogate": 'a: "\\ud800"',
    "a NUL in quotes": 'a: "\\0"',
    "a kubeconfig with a NUL": 'kubeconfig: "a\\0b"',
    "settings with a NUL": 'credentials: {accessProviders: "a\\0b"}\nclusterProxy: {ca: "a\\0b"}',
    "settings with another NUL": 'clusterProxy: {ca: "a\\0b"}',
    "settings with a surrogate": 'context: "\\ud800"',
    "settings with Arabic digits": "removal: {settle: ٣}\nmetrics: {bindAddress: ':٣'}",
    "settings of any size": f"removal: {{settle: {'9' * 400}}}\ndispatch: {{stepSize: {'9' * 5000}}}",
    "a setting that is a map": "removal: {settle: {a: b}}",
    "a setting that is a list": "removal: {settle: [a, b]}",
    "a setting that nests itself": "removal: {settle: &a [*a]}",
    "a list that nests itself": "credentials: {methods: &a [*a]}",
    "a section that nests itself": "removal: &a {removal: *a}",
    "the file itself": "config: here",
    "deep lists": "[" * 1500,
    "deep lists that end": "[" * 1200 + "]" * 1200,
    "deep maps": "{a: " * 3000 + "}" * 3000,
    "deep indents": "".join(f"{' ' * n}a:\n" for n in range(300)),
    "deep JSON": '{"a":' * 3000 + "1" + "}" * 3000,
    "deep dashes": "- " * 3000 + "a",
    "a long line": "a" * 200_000,
    "many lines": "a\n" * 20_000,
    "JSON": '{"a": 1}',
    "JSON of text": '"text"',
    "JSON with a comma too many": '{"a": 1,}',
    "JSON lines": '{"a": 1}\n{"b": 2}\n',
    "JSON with nan": '{"a": NaN}',
    "JSON with a surrogate": '{"a": "\\ud800"}',
    "binary": bytes(range(256)),
    "NUL bytes": b"\0" * 1000,
    "a NUL": "a: b\0c",
    "not UTF-8": b"a: \xff\xfe",
    "half a character": "a: ü".encode()[:-1],
    "Latin 1": "a: ü".encode("latin-1"),
    "UTF-16": "a: b".encode("utf-16"),
    "UTF-32": "a: b".encode("utf-32"),
    "a byte order mark": b"\xef\xbb\xbfa: b",
    "a byte order mark inside": "a: b\n\ufeffc: d",
    "CRLF": "a: b\r\nc: d\r\n",
    "CR": "a: b\rc: d\r",
    "an escape character": "a: \x1b[31m",
    "a control character": "a: \x01",
    "a line separator": "a: b\u2028c",
    "ELF": b"\x7fELF" + bytes(200),
    "gzip": b"\x1f\x8b\x08\0" + bytes(200),
    "PEM": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    "half PEM": "-----BEGIN CERTIFICATE-----\n",
    "a key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    "an object": manifest(),
    "an object without a name": manifest(metadata={}),
    "an object without metadata": manifest(metadata=None),
    "a name that is a number": manifest(metadata={"name": 1}),
    "a name with a slash": manifest(metadata={"name": "a/b"}),
    "a name with a NUL": manifest(metadata={"name": "a\0b"}),
    "a kind that is a list": manifest(kind=["a"]),
    "a version that is a number": manifest(apiVersion=1),
    "labels that are a list": manifest(metadata={"name": "a", "labels": ["b"]}),
    "managed fields of rubbish": manifest(metadata={"name": "a", "managedFields": [{"fieldsV1": [1]}]}),
    "a list of rubbish": manifest(kind="List", items=[1, None, "a"]),
    "a list that is a map": manifest(kind="List", items={"a": "b"}),
    "a typed list": object_of("PlacementList", OCM, items=[{"spec": {}}]),
    "a Placement of rubbish": object_of("Placement", OCM, spec=["a"]),
    "a Placement with numbers": object_of(
        "Placement",
        OCM,
        spec={"numberOfClusters": "٣", "clusterSets": 1, "predicates": 1, "tolerations": "a"},
    ),
    "a Placement with huge numbers": object_of("Placement", OCM, spec={"numberOfClusters": 10**400}),
    "a Placement with CEL": object_of(
        "Placement",
        OCM,
        spec={
            "predicates": [
                {
                    "requiredClusterSelector": {
                        "celSelector": {
                            "celExpressions": [
                                "semver('\u0661.\u0662.\u0663').major() > 0",
                                "((((",
                                "'a'.matches('(((a*)*)*')",
                                "[1][5] == 1",
                                "9999999999999999999999",
                            ]
                        }
                    }
                }
            ]
        },
    ),
    "a decision of rubbish": object_of(
        "PlacementDecision", OCM, status={"decisions": [1, {"clusterName": 2}]}
    ),
    "a check of rubbish": object_of("AdmissionCheck", KUEUE, spec=1, status=["a"]),
    "a check that is ours": object_of(
        "AdmissionCheck",
        KUEUE,
        spec={
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {"apiGroup": 1, "kind": [], "name": {}},
        },
        status={"conditions": {"a": "b"}},
    ),
    "a config of rubbish": object_of("MultiKueueConfig", KUEUE, spec={"clusters": {"a": 1}}),
    "a cluster of rubbish": object_of("MultiKueueCluster", KUEUE, spec={"kubeConfig": []}, status=1),
    "a queue of rubbish": object_of(
        "ClusterQueue", KUEUE, spec={"admissionChecks": 1, "resourceGroups": "a"}
    ),
    "a Workload of rubbish": object_of(
        "Workload", KUEUE, spec={"podSets": [{"count": "٣"}]}, status={"admissionChecks": [{"state": 1}]}
    ),
    "a Secret of rubbish": manifest(kind="Secret", data={"kubeconfig": "?"}),
    "a Deployment of rubbish": object_of(
        "Deployment",
        "apps/v1",
        metadata={"name": "a", "namespace": "placement-ac-system"},
        spec={
            "template": {
                "spec": {
                    "containers": [
                        1,
                        {
                            "name": "controller",
                            "args": ["--config", "a\0b", "--settle=٣"],
                            "env": [{"name": 1}],
                        },
                    ]
                }
            }
        },
    ),
    "an Event of rubbish": manifest(kind="Event", involvedObject=1, lastTimestamp="a", count="٣"),
    "providers that are text": "providers: text",
    "providers of rubbish": "providers: [1, null, {name: []}]",
    "no providers": "providers: []",
    "a provider with suffixes of rubbish": (
        "providers: [{name: a, execConfig: {apiVersion: client.authentication.k8s.io/v1, command: "
        "'a\\0b'}, allowedServerSuffixes: ['..', '[', 1]}]"
    ),
    "a kubeconfig of text": "current-context: c\ncontexts: text",
    "an embedded hub's of rubbish": "current-context: placement-ac\nclusters: {0: 1}",
    "a hub's with an odd server": (
        "current-context: embedded-hub\nclusters: [{cluster: {server: 'https://[::1'}}]"
    ),
    "a hub's with a long host": (
        "current-context: embedded-hub\nclusters: [{cluster: {server: 'https://" + "a" * 64 + ":1'}}]"
    ),
}
"""The contents of any file."""
