"""
Requests to an API server as data, and the meaning of its answers: what does not differ from server to server.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

import requests
import yaml

JSON: Final = "application/json"
YAML: Final = "application/yaml"
JSON_PATCH, MERGE, STRATEGIC = (
    f"application/{kind}+json" for kind in ("json-patch", "merge-patch", "strategic-merge-patch")
)
APPLY: Final = "application/apply-patch+yaml"

Object = dict[str, Any]


class Step(NamedTuple):
    """A request. `body`: text as it is, anything else as JSON."""

    name: str
    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = "*/*"


class Server(Protocol):
    """An API server: a `Client` of the tests is one."""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response: ...


def exchanges(server: Server, steps: Iterable[Step]) -> Iterator[Object]:
    """Send the requests and yield each with the meaning of its answer."""
    seen: dict[str, Any] = {}
    for step in steps:
        path, body = _quoted(step.path, seen), _quoted(step.body, seen)
        prefix = body["metadata"].get("generateName") if _has_metadata(body) else None
        answer = server.ask(step.method, path, body, Content_Type=step.content_type, Accept=step.accept)
        content = _content(answer)
        if _has_metadata(content):
            seen[step.name] = content["metadata"]
        yield {
            "name": step.name,
            "request": f"{step.method} {step.path}",
            "status": answer.status_code,
            "answer": meaning(content, prefix),
        } | ({"warning": answer.headers["Warning"]} if "Warning" in answer.headers else {})


def _has_metadata(body: Any) -> bool:
    return isinstance(body, dict) and isinstance(body.get("metadata"), dict)


def _quoted(value: Any, seen: dict[str, Any]) -> Any:
    """Fill in the uids and versions of earlier answers."""
    if isinstance(value, dict):
        return {key: _quoted(one, seen) for key, one in value.items()}
    if isinstance(value, list):
        return [_quoted(one, seen) for one in value]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        key = "uid" if match[1] == "uid" else "resourceVersion"
        return str(seen.get(match[2], {}).get(key, ""))

    return re.sub(r"\{(uid|version):([\w-]+)\}", fill, value)


def _content(answer: requests.Response) -> Any:
    if "yaml" in answer.headers.get("Content-Type", ""):
        return {"yaml": yaml.safe_load(answer.text)}
    lines = [line for line in answer.text.splitlines() if line]
    try:
        if len(lines) > 1 and '"type"' in lines[0][:10]:
            return [json.loads(line) for line in lines]
        return json.loads(answer.text)
    except ValueError:
        return answer.text


_VERSIONS: Final = {"resourceVersion", "continue"}
_UID: Final = re.compile(r"\b(?!0{8})[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_NUMBER: Final = re.compile(r"(current: |in record \()\d+")
_RUN_TIMES: Final = {"creationTimestamp", "deletionTimestamp", "time"}


def meaning(content: Any, prefix: str | None = None) -> Any:
    """Return an answer without the uids, versions, times and names with that prefix of this server."""
    text = json.dumps(_folded_parts(content))
    text = _NUMBER.sub(r"\1<version>", _UID.sub("<uid>", text))
    if prefix:
        text = re.sub(rf"\b{prefix}[a-z0-9]{{5}}\b", f"{prefix}<5>", text)
    return json.loads(text)


def _folded_parts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _part(key, one) for key, one in sorted(value.items())}
    return [_folded_parts(one) for one in value] if isinstance(value, list) else value


def _part(key: str, value: Any) -> Any:
    if key in _VERSIONS and value:
        return "<version>"
    if key in _RUN_TIMES and value:
        return "<time>"
    return _folded_parts(value)


_INVALID: Final = re.compile(r"( is invalid): .*", re.DOTALL)
_COMPOSED: Final = re.compile(r'Invalid value: (?:[\[{].*[\]}]|"\{.*\}"): ', re.DOTALL)
_GRAMMAR: Final = re.compile(
    r'(Invalid value: "[^"]*"): '
    r"(?:a lowercase RFC|a valid |name part|prefix part|must be no more than|must not contain|no ).*"
)
_WORDS: Final = re.compile(
    r"^(the object provided is unrecognized|error decoding (?:patch|YAML)|couldn't get version/kind"
    r"|no kind .* in scheme|invalid continue token"
    r'|\w+ in version "\w+" cannot be handled as a \w+\b(?!: strict))(.*)',
    re.DOTALL,
)
_SELECTOR: Final = re.compile(
    r"^(?:unable to parse|found '|field label not supported|\"[^ ]+ is not a known field selector).*$"
)
_STORAGE: Final = re.compile(r"StorageError: .* AdditionalErrorMsg: ")
_GOT: Final = re.compile(r"(: expected [^,]*), got .*")


def folded(value: Any) -> Any:
    """
    Return an answer without what may differ: Go's words for what it cannot decode and for the grammar of
    names, composed values in messages, the order of managers and causes, and the owners of a map itself.
    """
    if isinstance(value, list):
        return [folded(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "Status":
        return _folded_status(value)
    parts = {key: folded(one) for key, one in value.items()}
    if isinstance(managers := parts.get("managedFields"), list):
        parts["managedFields"] = sorted(map(_without_dots, managers), key=json.dumps)
    return parts


def _folded_status(status: Object) -> Object:
    details = dict(status.get("details") or {})
    message = str(status.get("message", ""))
    if causes := details.get("causes"):
        known = {(cause.get("field", ""), cause["reason"], _words(cause["message"])) for cause in causes}
        details["causes"] = sorted(map(list, known))
        message = _INVALID.sub(r"\1", message)
    return status | {"details": details, "message": _words(message)}


def _words(message: str) -> str:
    message = _COMPOSED.sub("Invalid value: <value>: ", message)
    message = _SELECTOR.sub("<selector>", _STORAGE.sub("", message))
    return _GOT.sub(r"\1", _WORDS.sub(r"\1", _GRAMMAR.sub(r"\1: <grammar>", message)))


def _without_dots(fields: Object) -> Object:
    return {
        key: _without_dots(value) if isinstance(value, dict) else value
        for key, value in sorted(fields.items())
        if key != "."
    }
