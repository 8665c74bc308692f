"""Runs a hook that is an expression in CEL: true allows the call, false refuses it, an error refuses it.

The expression is compiled once. The language has no loops but macros over lists and maps (`all`, `exists`, `map`), so
its work is bounded by the input and by how deep macros lie in each other; `ends_at_once` computes that bound.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Final, Protocol

import msgspec

from ..dialects.shared.policy_input import MEMBERS
from ..model.errors import ConfigError, install_command
from ..model.hooks import HookSpec
from . import policy_result
from .policy import open_policies
from .runner import Report, StatefulRunner

_PACKAGE: Final = "common-expression-language"
_FUNCTIONS: Final = (
    "size", "contains", "startsWith", "endsWith", "matches", "int", "uint", "double", "string", "bytes", "timestamp",
    "duration", "type", "dyn", "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek",
    "getHours", "getMinutes", "getSeconds", "getMilliseconds",
)  # fmt: skip
"""The functions that the package has without any of its additions in Python."""

_TYPES: Final = frozenset({"int", "uint", "double", "string", "bool", "bytes", "list", "map", "null_type", "type"})
"""The names of types, with which `type(…)` is compared."""

_MOST_BYTES: Final = 16_384  # of an input that is evaluated in this process: 8,000 numbers, which take 5 ms
_MOST_STEPS: Final = 1 << 24  # the same, to the power of macros in macros: a few milliseconds
_MACROS: Final = ("all", "exists", "exists_one", "existsOne", "map", "filter")
_TOKEN: Final = re.compile(
    r"""(?P<text>[rR][bB]?(?:'{3}.*?'{3}|"{3}.*?"{3}|'[^'\n]*'|"[^"\n]*")"""
    r"""|(?:'{3}(?:\\.|[^\\])*?'{3}|"{3}(?:\\.|[^\\])*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))"""
    r"""|(?P<note>//[^\n]*)|\b(?P<call>[A-Za-z_]\w*)\s*\(|(?P<open>\()|(?P<close>\))""",
    re.DOTALL,
)
_LITERAL: Final = re.compile(r"""\s*[rR]?(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")\s*\)""")
"""What follows `matches(` where the pattern is a text."""

_LONG_NUMBER: Final = re.compile(rb"\d{19}")  # it may be beyond 64 bits
_PLACE: Final = re.compile(r"<input>:(\d+):(\d+): (?:Syntax error: )?([^\n]*)")


class _Program(Protocol):
    """An expression as the package has compiled it."""

    def execute(self, context: dict[str, object]) -> object:
        """Its value. Raises all kinds of exceptions."""

    def variables(self) -> list[str]:
        """All names in it, also those that macros bind."""

    def functions(self) -> list[str]:
        """All functions and operators in it."""


def open_runner(hooks: list[HookSpec], report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`."""
    return open_policies(hooks, report, compile_policy)


def compile_policy(spec: HookSpec) -> _Expression:
    """The expression, compiled. Raises ConfigError for one that cannot be evaluated."""
    return _Expression(spec)


class _Expression:
    """A compiled expression, and what bounds the work of its evaluation."""

    def __init__(self, spec: HookSpec) -> None:
        self._spec = spec
        self._program = _compile(spec)
        bound, self._depth, self._computes_patterns = _survey(spec.expression)
        if self._depth and "matches" in self._program.functions():
            self._depth += 1  # a regular expression is compiled anew each time: 50 µs
        names = set(self._program.variables())
        for name in sorted(names - {*MEMBERS} - _TYPES - bound):
            hint = f"the names are {', '.join(MEMBERS)}"
            raise _error(spec, f"uses {name!r}, which is not known", hint)
        called = [name for name in self._program.functions() if name.isidentifier() and not name.startswith("_")]
        for name in called:
            if name not in _FUNCTIONS:
                raise _error(
                    spec,
                    f"calls {name!r}, which is not a function here",
                    f"there are {', '.join(_FUNCTIONS)}, and the macros {', '.join(_MACROS)} and has",
                )
        self._names = tuple(name for name in MEMBERS if name in names)
        self._decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])

    def ends_at_once(self, size: int) -> bool:
        """As `policy.Policy`."""
        steps = (size + len(self._spec.expression)) ** (self._depth + 1)  # lists may stand in the expression, too
        return size <= _MOST_BYTES and (not self._depth or steps <= _MOST_STEPS) and not self._computes_patterns

    def evaluate(self, document: bytes) -> bytes:
        """As `policy.Policy`."""
        try:
            members = self._decoder.decode(document)
            context: dict[str, object] = {name: _value(bytes(members[name])) for name in self._names}
        except (ValueError, RecursionError) as error:
            raise policy_result.failed(f"cannot read the arguments of the call: {error}") from None
        if "groups" in context and context["groups"] is None:
            raise policy_result.failed(policy_result.GROUPS_IN_DOUBT)
        try:
            value = self._program.execute(context)
        except Exception as error:
            raise policy_result.failed(_describe(error)) from None
        except BaseException as panic:
            if type(panic).__name__ != "PanicException":  # a defect of the package, which pyo3 raises so
                raise
            raise policy_result.failed(f"cannot be evaluated: {panic}") from None
        if value is not True and value is not False:
            raise policy_result.failed(f"gives {type(value).__name__}, not true or false")
        return policy_result.output(self._spec, allowed=value is True)


def _value(raw: bytes) -> object:
    """A member as CEL gets it. Raises ValueError for an integer that has no exact value there."""
    if not _LONG_NUMBER.search(raw):
        return msgspec.json.decode(raw)
    return json.loads(raw, parse_int=_integer)


def _integer(digits: str) -> int:
    if len(digits) > len("-18446744073709551615") or not -(1 << 63) <= (number := int(digits)) < 1 << 64:
        raise ValueError(f"an integer has more than 64 bits: {digits[:30]}")
    return number


def _describe(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"asks for {error.args[0]!r}, which this call does not have: test it with has(…), or with 'NAME' in …"
    return f"cannot be evaluated: {error}"


def _survey(expression: str) -> tuple[set[str], int, bool]:
    """The names that macros bind, how many macros lie in each other, and whether a regular expression is computed."""
    names, open_calls, deepest, computed = set[str](), list[bool](), 0, False
    for token in _TOKEN.finditer(expression):
        if token["call"] or token["open"]:
            open_calls.append(token["call"] in _MACROS)
            rest = expression[token.end() :]
            computed = computed or (token["call"] == "matches" and _LITERAL.match(rest) is None)
            if open_calls[-1]:
                deepest = max(deepest, sum(open_calls))
                if bound := re.match(r"\s*([A-Za-z_]\w*)\s*,", rest):
                    names.add(bound[1])
        elif token["close"] and open_calls:
            open_calls.pop()
    return names, deepest, computed


def _compile(spec: HookSpec) -> _Program:
    try:
        compiled: _Program = _package(spec).compile(spec.expression)
    except ValueError as error:
        place = _PLACE.search(str(error))
        problem = f"line {place[1]}, column {place[2]}: {place[3]}" if place else str(error).partition("\n")[0]
        hint = f"write a condition over {', '.join(MEMBERS)}"
        raise _error(spec, f"cannot be read: {_short(problem)}", hint) from None
    return compiled


def _short(problem: str) -> str:
    """Without the list of all tokens that might have stood there."""
    return problem.partition(" expecting {")[0][:200]


class _Package(Protocol):
    def compile(self, expression: str) -> _Program:
        """Raises ValueError."""


def _package(spec: HookSpec) -> _Package:
    """The package's compiled module. Raises ConfigError if it is not installed."""
    module = _compiled_module()
    if module is None:
        raise ConfigError(spec.source, f"needs the package {_PACKAGE}, which is not installed", install_command("cel"))
    return module


@cache
def _compiled_module() -> _Package | None:
    """The module `cel.cel`, without the package around it, which imports a terminal's line editor: 0.3 s."""
    package = find_spec("cel")
    folders = list(package.submodule_search_locations or ()) if package else []
    found = PathFinder.find_spec("cel.cel", folders) if folders else None
    if found is None or found.loader is None:
        return None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    compiled: _Package = module
    return compiled


def _error(spec: HookSpec, problem: str, hint: str) -> ConfigError:
    return ConfigError(spec.source, f"expression {problem}", hint)
