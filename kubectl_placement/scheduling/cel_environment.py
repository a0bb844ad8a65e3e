"""
The environments in which OCM and an API server compile and evaluate CEL, on the runtime of the CEL project.

Pure. Two environments of cel-expr-python make one of ours: one has the declarations, with the types of
Kubernetes (`kubernetes.Quantity`), and compiles; the other has the functions, and evaluates what the first
compiled. One alone does not do: a function in Python can return no value of such a type, and a declared
function with a type of its own no value at all. Sources: open-cluster-management.io/sdk-go `pkg/cel/common`
(`BaseEnvOpts`), k8s.io/apiserver `pkg/cel/environment/base.go`. `cel_answers.json` in the tests has what
cel-go answers.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from cel_expr_python import cel  # type: ignore[import-untyped]  # its stubs are not marked as such

ITERATIONS: Final = 9_999
"""Of all macros in one evaluation together. The runtime's own limit, which cannot be set."""
DEPTH: Final = 32
"""Of an expression, as the runtime's parser counts: a sum of 31 terms is 32 deep. It cannot be set."""

_SHOWN: Final = 120
_TYPES: Final = {
    "Quantity": "kubernetes.Quantity",
    "Semver": "kubernetes.Semver",
    "IP": "net.IP",
    "CIDR": "net.CIDR",
    "URL": "kubernetes.URL",
    "Format": "kubernetes.NamedFormat",
}
_KINDS: Final = {
    **{
        name: getattr(cel.Type, name.upper()) for name in ("bool", "bytes", "double", "int", "uint", "string")
    },
    **{name: getattr(cel.Type, name.upper()) for name in ("list", "map", "dyn", "timestamp", "duration")},
}
_SIGNATURE: Final = re.compile(
    r"(?:(?P<target>[\w(),]+)\.)?(?P<name>[a-zA-Z.\d]+)\((?P<args>.*)\) (?P<result>\S+)"
)
_STRING_OF: Final = ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint")
_LOCATED: Final = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")

Implementation: TypeAlias = Callable[..., Any]


class RefusedError(ValueError):
    """The expression does not compile; the message says what is wrong and where."""


class NotEvaluatedError(Exception):
    """The expression is beyond a limit of this runtime, which cel-go does not have: its value is unknown."""


@dataclass(frozen=True, slots=True)
class Function:
    """An overload: its signature, as `Quantity.add(int) Quantity`, and what it does.

    A value of one of Kubernetes' types is a map of one entry at run time, from the type's name: an
    implementation takes and returns that entry's value, see `opaque`. An error that it raises is the
    expression's, which `||` may ignore.
    """

    signature: str
    implementation: Implementation


def opaque(name: str, value: object) -> dict[str, object]:
    """Return a value of the type `name` (`Quantity`) as the runtime holds it. Equal values are equal maps."""
    return {_TYPES[name]: value}


class Program:
    """A compiled expression."""

    def __init__(self, expression: cel.Expression) -> None:
        self._expression = expression

    def is_true(self, variables: Mapping[str, object]) -> bool:
        """Say whether it gives true; an error or another value counts as false. Raises NotEvaluatedError."""
        value = self.evaluate(variables)
        return value.type() == cel.Type.BOOL and bool(value.value())

    def error(self, variables: Mapping[str, object]) -> str:
        """Return why its evaluation fails, empty if it does not. Raises NotEvaluatedError."""
        value = self.evaluate(variables)
        return str(value)[:_SHOWN] if value.type() == cel.Type.ERROR else ""

    def evaluate(self, variables: Mapping[str, object]) -> cel.Value:
        """Return the value, of the type ERROR if the evaluation fails. Raises NotEvaluatedError.

        `value()` of a null takes a reference too many, which ends the process before Python 3.12: ask
        `type()` first.
        """
        try:
            return self._expression.eval(data=variables)
        except RuntimeError as error:
            if "Iteration budget exceeded" in str(error):
                raise NotEvaluatedError(f"it takes more than {ITERATIONS:,} iterations") from error
            raise NotEvaluatedError(f"the runtime gives up: {_brief(error)}") from error
        except MemoryError as error:
            raise NotEvaluatedError("its values grow too large") from error


class Environment:
    """Compiles expressions over `variables` (name: type, as `map(string,dyn)`).

    `extensions`: those of the runtime with their versions, None for the latest.
    """

    def __init__(
        self,
        variables: Mapping[str, str],
        extensions: Mapping[str, int | None],
        functions: Iterable[Function],
        comparisons: Iterable[tuple[str, str]] = (),
    ) -> None:
        declared = list(functions)
        known = {"extensions": [_extension(*each) for each in extensions.items()]}
        names = [{"name": name, **_type(type_)} for name, type_ in variables.items()]
        merged = _merged(declared)  # overloads of functions that the runtime has
        own = [each for each in declared if _parsed(each.signature)["name"] not in merged]
        self._names = {_parsed(each.signature)["name"] for each in declared}
        self._checker = cel.NewEnv(
            config=_config({
                **known,
                "stdlib": {"exclude_functions": [{"name": "string"}]},  # declared again, with more
                "variables": names,
                "functions": _declarations(own),
            }),
            extensions=[cel.CelExtension("overloads", [*merged.values(), *_comparisons(comparisons)])],
        )  # fmt: skip
        self._runtime = cel.NewEnv(
            config=_config({**known, "variables": names}),
            extensions=[cel.CelExtension("kubernetes", _implementations(declared))],
        )

    def compile(self, text: str) -> Program:
        """Return the compiled expression. Raises RefusedError, NotEvaluatedError."""
        try:
            checked = self._checker.compile(_with_optionals(text))
        except TypeError as error:
            raise RefusedError("it is no valid text") from error  # a half of a surrogate pair
        except RuntimeError as error:
            raise self._objection(str(error)) from error
        return Program(self._runtime.deserialize(checked.serialize()))

    def _objection(self, message: str) -> Exception:
        if "recursion" in message:
            return NotEvaluatedError(f"it is more than {DEPTH} deep")
        match = _LOCATED.search(message)
        if match is None:
            return NotEvaluatedError(f"the runtime gives up: {_brief(message)}")
        line, column, what = match.groups()
        what = what.removesuffix(" (in container '')")
        if what.startswith("Syntax error"):
            what = "syntax error"  # the runtime lists every token that it would take
        elif (name := what.removeprefix("undeclared reference to ").strip("'")) in self._names:
            what = f"no overload of '{name}' takes as many arguments"
        return RefusedError(f"{what[:_SHOWN]} at line {line}, column {column}")


def _brief(error: object) -> str:
    """Return the runtime's message without its code, and without what Python prints of a function."""
    return re.split(r" for '| \[|\n", re.sub("^[A-Z_]+: ", "", str(error)))[0][:_SHOWN]


# -- declarations


def _config(content: Mapping[str, object]) -> cel.EnvConfig:
    return cel.NewEnvConfigFromYaml(json.dumps(content))


def _extension(name: str, version: int | None) -> dict[str, object]:
    return {"name": name} if version is None else {"name": name, "version": version}


def _parsed(signature: str) -> dict[str, Any]:
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(signature)
    target, args = match["target"], _split(match["args"])
    # `ip.isCanonical` is a function in a namespace, `IP.family` one of a type.
    if target and target.partition("(")[0] not in _TYPES | _KINDS:
        return {"name": f"{target}.{match['name']}", "target": "", "args": args, "result": match["result"]}
    return {"name": match["name"], "target": target or "", "args": args, "result": match["result"]}


def _split(types: str) -> list[str]:
    """Split `list(int),int` at the commas that are in no brackets."""
    return re.findall(r"[^,()]+(?:\((?:[^()]|\([^()]*\))*\))?", types)


def _type(text: str) -> dict[str, object]:
    """Return `map(string,dyn)` as the configuration of the runtime has it."""
    name, _, inner = text.partition("(")
    params = [_type(each) for each in _split(inner.removesuffix(")"))] if inner else []
    if name == "optional":
        name = "optional_type"
    return {"type_name": _TYPES.get(name, name), **({"params": params} if params else {})}


def _declarations(functions: Iterable[Function]) -> list[dict[str, object]]:
    table: dict[str, list[dict[str, object]]] = defaultdict(list)
    for each in functions:
        parsed = _parsed(each.signature)
        target = {"target": _type(parsed["target"])} if parsed["target"] else {}
        args = [_type(arg) for arg in parsed["args"]]
        table[parsed["name"]].append(
            {"id": each.signature, **target, "args": args, "return": _type(parsed["result"])}
        )
    table["string"] += [
        {"id": f"{kind}_to_string", "args": [_type(kind)], "return": _type("string")} for kind in _STRING_OF
    ]
    return [{"name": name, "overloads": overloads} for name, overloads in table.items()]


def _merged(functions: Iterable[Function]) -> dict[str, cel.FunctionDecl]:
    """Return the declarations that add to functions of the runtime: lists have `indexOf`, too."""
    table: dict[str, list[cel.Overload]] = defaultdict(list)
    for each in functions:
        parsed = _parsed(each.signature)
        if parsed["name"] in ("indexOf", "lastIndexOf"):
            kinds = [_standard(kind) for kind in (parsed["target"], *parsed["args"])]
            table[parsed["name"]].append(cel.Overload(each.signature, cel.Type.INT, kinds, True))
    return {name: cel.FunctionDecl(name, overloads) for name, overloads in table.items()}


def _standard(text: str) -> cel.Type:
    name, _, inner = text.partition("(")
    if name == "list" and inner:
        return cel.Type.List(_standard(inner.removesuffix(")")))
    return _KINDS[name]


def _comparisons(pairs: Iterable[tuple[str, str]]) -> list[cel.FunctionDecl]:
    kinds = [(_KINDS[left], _KINDS[right]) for left, right in pairs]
    return [
        cel.FunctionDecl(
            f"_{sign}_",
            [
                cel.Overload(f"{word}_{left.name()}_{right.name()}", cel.Type.BOOL, [left, right])
                for left, right in kinds
            ],
        )
        for sign, word in (("<", "less"), ("<=", "less_equals"), (">", "greater"), (">=", "greater_equals"))
        if kinds
    ]


# -- implementations


def _implementations(functions: Iterable[Function]) -> list[cel.FunctionDecl]:
    """Return one implementation for all overloads that the runtime cannot tell apart: it sees maps alone."""
    table: dict[tuple[str, bool, tuple[str, ...]], list[tuple[tuple[str, ...], Implementation]]] = {}
    for each in functions:
        parsed = _parsed(each.signature)
        types = tuple(t.partition("(")[0] for t in (parsed["target"], *parsed["args"]) if t)
        kinds = tuple("map" if t in _TYPES else t for t in types)
        table.setdefault((parsed["name"], bool(parsed["target"]), kinds), []).append(
            (types, each.implementation)
        )
    decls: dict[str, list[cel.Overload]] = defaultdict(list)
    for (name, is_member, kinds), choices in table.items():
        parameters = [_KINDS[kind] for kind in kinds]
        decls[name].append(
            cel.Overload(f"{name}{kinds}{is_member}", cel.Type.DYN, parameters, is_member, _chosen(choices))
        )
    return [cel.FunctionDecl(name, overloads) for name, overloads in decls.items()]


def _chosen(choices: list[tuple[tuple[str, ...], Implementation]]) -> Implementation:
    def call(*arguments: Any) -> Any:
        for types, implementation in choices:
            if all(
                name not in _TYPES or _TYPES[name] in value
                for name, value in zip(types, arguments, strict=True)
            ):
                return implementation(
                    *(
                        value[_TYPES[name]] if name in _TYPES else value
                        for name, value in zip(types, arguments, strict=True)
                    )
                )
        raise TypeError("no such overload")

    return call


# -- optional values of functions

OPAQUE: Final = (
    r"//[^\n]*"
    r"|[bB]?[rR][bB]?(?:\"\"\".*?\"\"\"|'''.*?'''|\"[^\"\n]*\"|'[^'\n]*')"
    r"|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
)
"""Comments and texts."""
_CALLS: Final = re.compile(
    rf"(?:{OPAQUE})|(?P<validate>\.\s*validate\s*\()|(?P<named>\bformat\s*\.\s*named\s*\()|(?P<open>\()|(?P<close>\))",
    re.DOTALL,
)
OPTIONALS: Final = {"validate": ".?errors", "named": ".?format"}
"""A function in Python cannot return an optional value: these return a map, and `.?` makes one of it."""


def _with_optionals(text: str) -> str:
    parts, open_calls, done = [], list[str](), 0
    for token in _CALLS.finditer(text):
        kind = token.lastgroup
        if kind == "close" and open_calls:
            parts.append(text[done : token.end()] + OPTIONALS.get(open_calls.pop(), ""))
            done = token.end()
        elif kind and kind != "close":
            open_calls.append(kind)
    return "".join(parts) + text[done:]
