"""Runs a hook that is a set of Cedar policies: what they permit and none forbids is allowed, all else is refused.

The principal is the user, in their groups; the action is the tool; the resource is the server; the context is the whole
input document. Cedar skips a policy whose condition cannot be evaluated, so that a `forbid` would not forbid: here such
an error is a failure, which refuses (law 3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from importlib import import_module
from typing import Final, Protocol, cast

import msgspec

from ..model.errors import ConfigError, install_command
from ..model.hooks import HookSpec
from . import policy_result
from .policy import open_policies
from .runner import Report, StatefulRunner

_MOST_BYTES: Final = 4_096  # of an input that is evaluated in this process: 2,000 numbers, which take 10 ms
_RESERVED: Final = frozenset({"__entity", "__extn", "__expr"})
"""Keys by which Cedar's JSON spells entities and extensions: an argument of the agent must not become one."""

_DECIMALS: Final = 4  # digits after the point that Cedar's decimals have
_LARGEST_DECIMAL: Final = Decimal("922337203685477.5807")
_LONG_NUMBER: Final = re.compile(rb"\d{19}")  # it may be beyond 64 bits
_ID: Final = re.compile(r'\A(?:@\w+(?:\s*\("(?:\\.|[^"\\])*"\))?\s*)*?@id\s*\("((?:\\.|[^"\\])+)"\)')
_POLICY_ID: Final = re.compile(r"\bpolicy\d+\b")
_STATEMENT_END: Final = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|(?P<end>;)', re.DOTALL)
_STATEMENT_START: Final = re.compile(r"(?:\s|//[^\n]*(?:\n|\Z))*")


def open_runner(hooks: list[HookSpec], report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`."""
    return open_policies(hooks, report, compile_policy)


def compile_policy(spec: HookSpec) -> _Policies:
    """The policies, parsed and validated. Raises ConfigError for some that cannot be evaluated."""
    return _Policies(spec)


# --- what is used of the package, which need not be installed where this is checked ---


class _Diagnostics(Protocol):
    errors: list[str]
    reasons: list[str]


class _Decision(Protocol):
    name: str


class _Result(Protocol):
    decision: _Decision
    diagnostics: _Diagnostics


class _ValidationError(Protocol):
    policy_id: str
    error: str


class _ValidationResult(Protocol):
    validation_passed: bool
    errors: list[_ValidationError]


class _PolicySet(Protocol):
    def __len__(self) -> int: ...

    def from_str(self, text: str, /) -> _PolicySet:
        """The policies of a text. Raises ValueError."""


class _Schema(Protocol):
    def from_str(self, text: str, /) -> _Schema:
        """The schema of a text. Raises ValueError."""


class _Cedar(Protocol):
    PolicySet: _PolicySet
    Schema: _Schema

    def is_authorized(
        self, request: dict[str, object], policies: _PolicySet, entities: list[_Entity], schema: _Schema | None
    ) -> _Result:
        """The decision. Raises all kinds of exceptions."""

    def validate_policies(self, policies: str, schema: _Schema) -> _ValidationResult:
        """What does not fit the schema."""


_Entity = dict[str, object]


def _package(spec: HookSpec) -> _Cedar:
    """The package. Raises ConfigError if it is not installed."""
    try:
        package: object = import_module("cedarpy")
    except ModuleNotFoundError as missing:
        if missing.name != "cedarpy":
            raise
        problem = "needs the package cedarpy, which is not installed"
        raise ConfigError(spec.source, problem, install_command("cedar")) from None
    return cast("_Cedar", package)


class _Policies:
    """Parsed policies."""

    def __init__(self, spec: HookSpec) -> None:
        package = _package(spec)
        self._spec = spec
        self._is_authorized = package.is_authorized
        self._policies = _parse(spec, package.PolicySet)
        self._names = _names(spec.policy)
        self._schema = _schema(spec, package.Schema) if spec.policy_schema else None
        if self._schema is not None:
            _validate(spec, package.validate_policies(spec.policy, self._schema))

    def ends_at_once(self, size: int) -> bool:
        """As `policy.Policy`."""
        return size <= _MOST_BYTES

    def evaluate(self, document: bytes) -> bytes:
        """As `policy.Policy`."""
        try:
            members = _decode(document)
            if members["groups"] is None:
                raise policy_result.failed(policy_result.GROUPS_IN_DOUBT)
            request, entities = _request(members)
        except (ValueError, RecursionError) as error:
            raise policy_result.failed(f"cannot judge the arguments of the call: {error}") from None
        try:
            result = self._is_authorized(request, self._policies, entities, self._schema)
            decision, diagnostics = result.decision.name, result.diagnostics
        except Exception as error:
            raise policy_result.failed(f"cannot be evaluated: {error}") from None
        except BaseException as panic:
            if type(panic).__name__ != "PanicException":  # a defect of the package, which pyo3 raises so
                raise
            raise policy_result.failed(f"cannot be evaluated: {panic}") from None
        if diagnostics.errors or decision not in ("Allow", "Deny"):
            raise policy_result.failed(f"cannot be evaluated: {self._named('; '.join(diagnostics.errors)) or decision}")
        decided = [self._names.get(policy, policy) for policy in sorted(diagnostics.reasons, key=_number)]
        if decision == "Allow":
            return policy_result.output(self._spec, allowed=True, because=f"permitted by {', '.join(decided)}")
        because = f"forbidden by {', '.join(decided)}" if decided else "no policy permits it"
        return policy_result.output(self._spec, allowed=False, because=because)

    def _named(self, text: str) -> str:
        """A message of Cedar, with the names of policies for their numbers."""
        return _POLICY_ID.sub(lambda number: self._names.get(number[0], number[0]), text)


# --- the request ---


def _request(members: dict[str, object]) -> tuple[dict[str, object], list[_Entity]]:
    """Cedar's request and its entities for an input document. Raises ValueError for what Cedar cannot hold."""
    context = _cedar_value(members)
    user, groups = members["user"], members["groups"]
    assert isinstance(groups, list)
    principal = {"type": "User", "id": user}
    parents: list[_Entity] = [{"type": "Group", "id": group} for group in groups]
    request: dict[str, object] = {
        "principal": principal,
        "action": {"type": "Action", "id": members["tool"]},
        "resource": {"type": "Server", "id": members["server"]},
        "context": context,
    }
    entities: list[_Entity] = [
        {"uid": principal, "attrs": {}, "parents": parents},
        {"uid": request["resource"], "attrs": {}, "parents": []},
    ]
    entities += [{"uid": parent, "attrs": {}, "parents": []} for parent in parents]
    return request, entities


def _decode(document: bytes) -> dict[str, object]:
    """The document's members. Raises ValueError, also for an integer that Cedar cannot hold."""
    if not _LONG_NUMBER.search(document):
        return msgspec.json.decode(document, type=dict[str, object])
    members: dict[str, object] = json.loads(document)
    return members


def _cedar_value(value: object) -> object:
    """The value in Cedar's JSON. A member that is null is absent. Raises ValueError for what Cedar cannot hold."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError("an integer has more than 64 bits")
        return value
    if isinstance(value, float):
        return {"__extn": {"fn": "decimal", "arg": _decimal(value)}}
    if isinstance(value, dict):
        if reserved := _RESERVED & value.keys():
            raise ValueError(f"it has a member {min(reserved)!r}, which means something else to Cedar")
        return {name: _cedar_value(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_cedar_value(item) for item in value]
    raise ValueError("a list contains null, which Cedar does not have")


def _decimal(value: float) -> str:
    """A number as Cedar's decimal. Raises ValueError for one that is not exactly one."""
    number = Decimal(repr(value))
    exponent = number.normalize().as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -_DECIMALS or abs(number) > _LARGEST_DECIMAL:
        raise ValueError(
            f"the number {value!r} is not a decimal of Cedar, which has {_DECIMALS} digits after the point"
        )
    text = format(number.normalize(), "f")
    return text if "." in text else f"{text}.0"


# --- reading policies ---


def _parse(spec: HookSpec, policy_set: _PolicySet) -> _PolicySet:
    try:
        policies = policy_set.from_str(spec.policy)
    except ValueError as error:
        raise _error(spec, _broken_line(spec.policy, policy_set), f"cannot be read as Cedar: {error}") from None
    if not len(policies):
        raise _error(spec, 1, "contains no policy, so every call would be refused")
    return policies


def _broken_line(text: str, policy_set: _PolicySet) -> int:
    """The line at which the first policy begins that cannot be read."""
    for line, statement in _statements(text):
        try:
            policy_set.from_str(statement)
        except ValueError:
            return line
    return 1


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each policy of the text, with the line at which it begins."""
    at = 0
    ends = [token.end() for token in _STATEMENT_END.finditer(text) if token["end"]]
    for end in [*ends, len(text)]:
        blanks = _STATEMENT_START.match(text, at)
        start = blanks.end() if blanks else at
        if start < end:
            yield text.count("\n", 0, start) + 1, text[start:end]
        at = end


def _schema(spec: HookSpec, schema: _Schema) -> _Schema:
    try:
        return schema.from_str(spec.policy_schema)
    except ValueError as error:
        raise ConfigError(spec.source, f"the schema cannot be read as Cedar: {error}", _HINT) from None


def _validate(spec: HookSpec, result: _ValidationResult) -> None:
    """Raise ConfigError for the first policy that does not fit the schema."""
    lines = [line for line, _ in _statements(spec.policy)]
    for error in result.errors:
        number = _number(error.policy_id)
        raise _error(spec, lines[number] if number < len(lines) else 1, f"does not fit the schema: {error.error}")
    if not result.validation_passed:
        raise _error(spec, 1, "does not fit the schema")


def _names(text: str) -> dict[str, str]:
    """The names that policies have by `@id("…")`, by the ids that Cedar gives to them."""
    found = {f"policy{number}": _ID.search(statement) for number, (_, statement) in enumerate(_statements(text))}
    return {policy: name[1] for policy, name in found.items() if name}


def _number(policy_id: str) -> int:
    """The place of a policy in its text, which its id has."""
    digits = policy_id.removeprefix("policy")
    return int(digits) if digits.isdecimal() else 0


_HINT: Final = "docs/policy-engines.md has an example"


def _error(spec: HookSpec, line: int, problem: str) -> ConfigError:
    if spec.policy_file:
        return ConfigError(f"{spec.policy_file}:{line}", problem, _HINT)
    return ConfigError(spec.source, f"policy, line {line}: {problem}", _HINT)
