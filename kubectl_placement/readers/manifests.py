"""
Read objects from files: manifests as kubectl reads them, and dumps as `kubectl get -o yaml` writes them.

Reads YAML and JSON with several documents and `v1` Lists, in UTF-8 or, with a byte order mark, UTF-16; the
files of a folder by name; `-` is stdin.
"""

import codecs
import csv
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from kubectl_placement.hub.dump import Dump, InvalidManifest, Object
from kubectl_placement.hub.dump_files import dump_of, kind_of
from placement_ac.core.api.constants import Resource
from placement_ac.core.api.fields import Obj, get_texts
from placement_ac.core.api.shapes import ApiModel, validate
from placement_ac.core.safe_yaml import (
    TOO_MANY_ALIASES,
    VALUES_PER_CHARACTER,
    NotYaml,
    as_in_json,
    load_documents,
)

SUFFIXES: Final = (".json", ".yaml", ".yml")
"""The files of a folder that kubectl reads."""
STDIN: Final = "-"
MAX_LEVELS: Final = 200
"""A schema in a CRD has some 60; every reader of objects copes with as many, even if it recurses."""
_TOO_DEEP: Final = (
    f"remove the levels beyond {MAX_LEVELS}, or the alias by which it contains itself: "
    "it is nested too deeply"
)
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""Beginnings of a file that the `>` of Windows' PowerShell has written."""
_LONGEST_INT: Final = 20
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_URL: Final = re.compile("https?://")
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_NAME: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.:]*|")


def files_of(value: str) -> list[str]:
    """Return the names in a value of `-f`: as in kubectl, a line of CSV. Raises InvalidManifest."""
    try:
        return next(csv.reader([value]), [])
    except csv.Error:
        raise InvalidManifest("separate names by commas, and put one with a line break in quotes") from None


def read_manifests(names: Iterable[str]) -> list[Object]:
    """Return the objects in these files, folders, or stdin. Raises InvalidManifest.

    One to be created with `generateName` has no name.
    """
    sources = (source for name in names for source in _sources(name))
    return [
        obj for source in sources for document in _documents(source) for obj in _unfolded(document, source[0])
    ]


def read_dump(names: Iterable[str]) -> Dump:
    """Return the dump in these files, folders, or stdin. Raises InvalidManifest.

    A typed list, like a SecretList, says that its kind was read, even if it is empty.
    """
    documents = [
        (doc, source[0]) for name in names for source in _sources(name) for doc in _documents(source)
    ]
    objects = (obj for document, name in documents for obj in _unfolded(document, name))
    named = (_with_texts(obj) for obj in objects if "name" in obj["metadata"])
    return dump_of(named, filter(None, (_kind_of_list(document) for document, _ in documents)))


def _with_texts(obj: Object) -> Object:
    """Return an object as an API server keeps it: a label or an annotation that is null is ""."""
    metadata = obj["metadata"]
    texts = {field: metadata.get(field) or {} for field in ("labels", "annotations")}
    if not any(None in pairs.values() for pairs in texts.values()):
        return obj
    return obj | {"metadata": metadata | {field: get_texts(pairs) for field, pairs in texts.items()}}


def _kind_of_list(document: Any) -> Resource | None:
    """Return the kind of an empty typed list; None for anything else."""
    if not isinstance(document, dict) or document.get("items") != []:
        return None
    name = str(document.get("kind"))
    kind, version = kind_of({"apiVersion": document.get("apiVersion"), "kind": name.removesuffix("List")})
    return kind.at(version) if kind and name.endswith("List") else None


def _sources(name: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each file, and its text."""
    if name == STDIN:
        yield "stdin", _text("stdin", sys.stdin.read)
        return
    if _URL.match(name):
        raise InvalidManifest(f"{name}: download it, and name the file: URLs are not read")
    try:
        files = _files(Path(name))
    except OSError as error:
        raise InvalidManifest(f"{name}: {error.strerror}") from None
    for file in files:
        yield str(file), _text(str(file), partial(_read, file))


def _read(file: Path) -> str:
    content = file.read_bytes()
    return content.decode("utf-16" if content.startswith(_UTF16) else "utf-8")


def _files(path: Path) -> list[Path]:
    """Return the path, or the files in this folder. Raises OSError, InvalidManifest."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise InvalidManifest(f"{path}: no file in it ends in {', '.join(SUFFIXES)}")
    return files


def _text(name: str, read: Callable[[], str]) -> str:
    try:
        return read()
    except OSError as error:
        raise InvalidManifest(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidManifest(f"{name}: it is not UTF-8 text") from None


def _documents(source: tuple[str, str]) -> Iterator[Any]:
    """Yield what each document holds, as far as there is anything in it."""
    name, text = source
    try:
        documents = _stream(text) or load_documents(text)
    except NotYaml as error:
        raise InvalidManifest(f"{name}: {_TOO_DEEP if error.is_too_deep else error}") from None
    if _are_nested_too_deeply(documents):
        raise InvalidManifest(f"{name}: {_TOO_DEEP}")
    if "*" in text and _count_values(documents, {}) > VALUES_PER_CHARACTER * len(text):
        raise InvalidManifest(f"{name}: {TOO_MANY_ALIASES}")
    yield from (document for document in documents if document is not None)


def _stream(text: str) -> list[Any]:
    """Return the objects of a text in JSON, one or several; []: it is something else.

    They are YAML as well, which takes a hundred times as long to read.
    """
    decoder = json.JSONDecoder(parse_int=_integer, parse_float=_finite, parse_constant=_finite)
    documents, rest = [], text.lstrip()
    try:
        while rest.startswith("{"):
            document, end = decoder.raw_decode(rest)
            documents.append(document)
            rest = rest[end:].lstrip()
        if "\\ud" in text.lower():
            json.dumps(documents, ensure_ascii=False).encode()  # half of a pair of surrogates is no text
    except (ValueError, RecursionError):
        return []
    return [] if rest else documents


def _integer(text: str) -> float:
    """Return a number as Go reads it: beyond 64 bits it is a float."""
    value = int(text) if len(text) <= _LONGEST_INT else _finite(text)
    return value if _INT_MIN <= value <= _INT_MAX else _finite(text)


def _finite(text: str) -> float:
    """Return a number. Raises ValueError for NaN, Infinity, and what is beyond all floats."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return as_in_json(value)


def _are_nested_too_deeply(documents: list[Any]) -> bool:
    """Whether one has more than MAX_LEVELS, or contains itself: YAML's aliases make that possible."""
    level: Iterable[Any] = (documents,)
    for _ in range(MAX_LEVELS + 1):
        values = (value for node in level for value in (node.values() if isinstance(node, dict) else node))
        level = {id(value): value for value in values if isinstance(value, dict | list | tuple)}.values()
        if not level:
            return False
    return True


def _count_values(node: Any, known: dict[int, int]) -> int:
    """Return how many values there are, with those that aliases repeat. `known`: the number by id."""
    if not isinstance(node, dict | list | tuple):
        return 1
    if id(node) not in known:
        values = node.values() if isinstance(node, dict) else node
        known[id(node)] = 1 + sum(_count_values(value, known) for value in values)
    return known[id(node)]


def _unfolded(document: Any, name: str) -> Iterator[Object]:
    """Yield the object, or those in a List."""
    if Path(name).name in _KUSTOMIZATIONS:
        folder = Path(name).parent
        raise InvalidManifest(f"{name}: use `kubectl kustomize {folder} | …` and -f -: it is no object")
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise InvalidManifest(f"{name}: a document has no kind, so it is no Kubernetes object")
    if not isinstance(document.get("apiVersion"), str):
        raise InvalidManifest(f"{name}: the {document['kind']} has no apiVersion")
    items = document.get("items")
    if document["kind"].endswith("List") and isinstance(items, list):
        for item in items:
            yield from _unfolded(_of_list(item, document), name)
        return
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(
        metadata.get("name", metadata.get("generateName")), str
    ):
        raise InvalidManifest(f"{name}: the {document['kind']} has no metadata.name")
    if problem := metadata_problem(document):
        raise InvalidManifest(
            f"{name}: the {document['kind']} {metadata.get('name', '')} cannot be read: {problem}"
        )
    if not _are_names(document["apiVersion"], metadata):
        raise InvalidManifest(
            f"{name}: the {document['kind']} has a name or namespace that no API server accepts"
        )
    yield document


def _are_names(api_version: str, metadata: dict[str, Any]) -> bool:
    """Whether an API server accepts name and namespace: they become part of commands to paste.

    Names of roles may be anything; they are part of no command.
    """
    given = (metadata.get("name") or "", metadata.get("namespace") or "")
    return api_version.startswith("rbac.authorization.k8s.io/") or all(map(_NAME.fullmatch, given))


def _of_list(item: Any, around: Object) -> Any:
    """Return an item of a typed list with its kind, which the API server omits."""
    if not isinstance(item, dict) or around["kind"] == "List":
        return item
    return {"apiVersion": around["apiVersion"], "kind": around["kind"].removesuffix("List")} | item


# -- metadata: every object needs it; other malformed fields are reported where they are read


class _Strict(ApiModel, strict=True):
    """A schema that converts neither text to numbers nor numbers to text."""


def _is_tree(value: object) -> object:
    """Validate `fieldsV1`: nested maps. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError("it must be a map of maps")  # noqa: TRY004  # pydantic converts it to its error
    for child in value.values():
        _is_tree(child)
    return value


class _Owner(_Strict):
    kind: str
    name: str
    uid: str


class _Manager(_Strict):
    manager: str = ""
    operation: str = ""
    fields_v1: Annotated[Any, AfterValidator(_is_tree)] = Field(default_factory=dict)


class _Metadata(_Strict):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    owner_references: list[_Owner] | None = None
    managed_fields: list[_Manager] | None = None


def metadata_problem(obj: Obj) -> str:
    """Return the field of `metadata` that is invalid, and why; "" if all are valid."""
    return validate(_Metadata, obj, "metadata")[1]
