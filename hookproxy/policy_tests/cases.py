"""Reads files with cases: TOML and YAML as people write them, and audit files, whose calls and decisions are cases.

What cannot be read is an error with its file and line: a case that is silently missing would pass (law 3).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from ..audit.records import BadLine, CallRecord, joined, read
from ..config.errors import line_of
from ..config.parse import read_tables
from ..dialects.shared.hook_file import suggestion
from ..jsonrpc import raw_json
from ..model.errors import ConfigError, UserError, file_hint
from ..model.similar_names import similar_file
from ..policy import methods
from ..protocol import calls
from ..protocol.approval_messages import Approval
from ..trial.replay import recorded_outcome
from ..trial.run import TrialCall
from . import tables

if TYPE_CHECKING:
    from ..config.errors import FindLine

TOML: Final = (".toml",)
YAML: Final = (".yaml", ".yml")
RECORDED: Final = (".jsonl",)
KINDS: Final = (*TOML, *YAML, *RECORDED)
"""The ends of names of files with cases."""

FOLDER: Final = "${FOLDER}"
"""In texts of a case: the folder in which it runs."""

EMPTY_RESULT: Final = b'{"content":[]}'
_JSON: Final = ("arguments", "params", "result")
"""Keys whose values are JSON, in which null is a value like others."""

_EXAMPLE: Final = (
    """case = [{ name = "no rm", call = { tool = "rm", arguments = { } }, expect = { decision = "deny" } }]"""
)
_POLICIES: Final = ("hookproxy.toml", "gateway.toml")
_ANSWERS: Final = {"allow": Approval.ONCE, "deny": Approval.NO}
_MOST_BYTES: Final = 16 * 1024 * 1024  # of a file that people write; audit files are read line by line


class TextExpected(Struct, frozen=True):
    """What a text must be like."""

    whole: str | None = None
    """All of it; None: it may be anything."""
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


class Expected(Struct, frozen=True):
    """What must come out of a step; what is None is not compared."""

    decision: str | None = None
    reason: TextExpected | None = None
    arguments: bytes | None = None
    """JSON."""
    reads: TextExpected | None = None
    failure: bool = False
    """A hook fails."""


class Step(Struct, frozen=True):
    """One call or request of a case."""

    call: TrialCall
    expected: Expected
    at: float = 0.0
    """When it happens, in seconds since 1970; 0: now."""
    times: int = 1


class Case(Struct, frozen=True):
    """A session with one or several calls."""

    name: str
    file: str
    line: int
    steps: tuple[Step, ...]
    server: str = ""
    """Empty: the default."""
    agent: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    setup: str = ""

    @property
    def place(self) -> str:
        """File and line, for people."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def needs_folder(self) -> bool:
        """It runs in a folder of its own."""
        return bool(self.files or self.setup)


class Skipped(Struct):
    """Recorded calls that cannot be cases, and those that are cases with a part of their arguments."""

    digests: int = 0
    """Recorded only with a digest of their arguments."""
    limited: int = 0
    """Refused by a rate limit or a sink of data, which depends on the calls before."""
    undecided: int = 0
    in_part: int = 0
    """Parts of their arguments are masked or left out: they are judged as they are recorded."""


class CasesOfFile(Struct, frozen=True):
    """What a file with cases has."""

    path: str
    cases: tuple[Case, ...]
    config: str = ""
    """The absolute path of the policy that it names; empty: it names none."""
    skipped: Skipped = msgspec.field(default_factory=Skipped)


def read_cases(path: str) -> CasesOfFile:
    """Read one file. Raises ConfigError, UserError."""
    if path.endswith(RECORDED):
        return _read_recorded(path)
    _check_name(path)
    text = _text(path)
    find_line: FindLine = line_of
    if path.endswith(TOML):
        members = read_tables(path, text)
    else:
        from ..dialects.shared.yaml_file import load

        members, find_line = load(path, text, "write `case:`, and the cases below it, each with a -"), _line_of_yaml
    if "cases" in members and "case" not in members:
        raise ConfigError(_at(path, text, find_line, "cases"), "unknown key cases", "did you mean 'case'?")
    try:
        file = msgspec.convert(members, tables.CaseFile)
    except msgspec.ValidationError as problem:
        from ..config.pydantic_models import explanation

        raise explanation(path, text, members, tables.CaseFile, str(problem), find_line) from None
    reader = _Reader(path, text, find_line)
    reader.check_values(members)
    cases = tuple(reader.case(number, case) for number, case in enumerate(file.case))
    return CasesOfFile(path, cases, "" if file.config is None else _policy_named(path, file.config, text, find_line))


def _check_name(path: str) -> None:
    """Raise UserError if there is no file of this name, or its name is not that of a file with cases."""
    if os.path.basename(path) in _POLICIES:
        raise UserError(f"{path}: is a policy, not a file with cases", f"hookproxy test --config {shlex.quote(path)}")
    if not os.path.lexists(path):
        hint = similar_file(path) or "name a file with cases, or a folder with such files"
        raise UserError(f"{path}: there is no such file", hint)
    if not path.endswith(KINDS):
        raise UserError(f"{path}: is not a file with cases", f"its name must end with {', '.join(KINDS)}")


def _policy_named(path: str, named: str, text: str, find_line: FindLine) -> str:
    """The absolute path of the policy that a file names. Raises ConfigError if there is none."""
    config = os.path.normpath(os.path.join(os.path.dirname(path), os.path.expanduser(named)))
    if not os.path.isfile(config):
        hint = similar_file(config) or "name a hookproxy.toml or a gateway.toml that exists"
        raise ConfigError(_at(path, text, find_line, "config"), f"config: there is no file {config}", hint)
    return config


def require_cases(file: CasesOfFile, shown_path: str) -> None:
    """Raise UserError for a file without cases: it would pass whatever the policy is."""
    if file.cases:
        return
    if file.skipped.digests:
        problem = "records only digests of the arguments of calls"
        raise UserError(f"{shown_path}: {problem}", 'record the arguments: [audit] arguments = "full"')
    raise UserError(f"{shown_path}: has no cases", f"write one: {_EXAMPLE}")


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as problem:
        raise UserError(f"{path}: cannot be read: {problem.strerror}", file_hint(path, problem)) from None
    if len(raw) > _MOST_BYTES:
        raise UserError(f"{path}: is longer than {_MOST_BYTES} bytes", "divide it into several files")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}", "is not UTF-8", "save it as UTF-8") from None


def _at(path: str, text: str, find_line: FindLine, *at: str | int) -> str:
    line = find_line(text, at)
    return f"{path}:{line}" if line else path


def _line_of_yaml(text: str, at: Sequence[str | int]) -> int | None:
    """As `line_of`, for a text that is YAML."""
    import yaml

    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = None
    for part in at:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == part), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line


class _Reader:
    """Makes cases of the tables of one file."""

    def __init__(self, path: str, text: str, find_line: FindLine) -> None:
        self._path = path
        self._text = text
        self._find_line = find_line

    def check_values(self, members: object, at: tuple[str | int, ...] = (), *, as_json: bool = False) -> None:
        """Raise ConfigError for a key without a value, whose meaning would be lost, and for what no JSON can say."""
        if isinstance(members, dict):
            for key, value in members.items():
                self.check_values(value, (*at, key), as_json=as_json or key in _JSON)
                if value is None and not as_json:
                    raise self._error((*at, key), "has no value", "write one, or remove the key")
        elif isinstance(members, list):
            for number, value in enumerate(members):
                self.check_values(value, (*at, number), as_json=as_json)
        elif isinstance(members, float) and not isfinite(members):
            raise self._error(at, f"is {members}, which JSON cannot say", "write a number, or a text")

    def case(self, number: int, table: tables.Case) -> Case:
        """Raises ConfigError for a case that does nothing, or expects nothing."""
        at: tuple[str | int, ...] = ("case", number)
        if table.steps:
            alone = next((name for name in ("call", "request", "expect") if getattr(table, name) is not None), "")
            if alone:
                raise self._error((*at, alone), "stands beside steps", "put it into a step: [[case.steps]]")
            steps = [self._step((*at, "steps", place), step, table) for place, step in enumerate(table.steps)]
        else:
            steps = [self._step(at, table, table)]
        if any(step.call.result is not None for step in steps):
            steps = [
                step
                if step.call.result is not None
                else msgspec.structs.replace(step, call=msgspec.structs.replace(step.call, result=EMPTY_RESULT))
                for step in steps
            ]
        self._check_times(at, steps)
        for path in table.files:
            if os.path.isabs(path) or ".." in path.split("/") or "\0" in path or not path.strip("/."):
                raise self._error((*at, "files"), f"{path!r} is not a path below the case's folder", "write dir/file")
        if table.groups is not None and table.user is None:
            raise self._error((*at, "groups"), "are the groups of a user", 'name the user, too: user = "…"')
        line = self._find_line(self._text, at) or 0
        return Case(
            table.name or steps[0].call.tool,
            self._path,
            line,
            tuple(steps),
            table.server or "",
            table.agent,
            table.user or "",
            tuple(name.removeprefix("@") for name in table.groups or ()),
            tuple(table.files.items()),
            table.setup or "",
        )

    def _check_times(self, at: tuple[str | int, ...], steps: Sequence[Step]) -> None:
        """Raise ConfigError if some steps have a time and others have none, or one is before the step above it."""
        for number, (before, step) in enumerate(pairwise(steps), 1):
            key = (*at, "steps", number)
            if bool(before.at) is not bool(step.at):
                raise self._error(
                    key, "and the step above do not both have a time", "write a time for each, or for the case"
                )
            if step.at < before.at:
                raise self._error((*key, "time"), "is before that of the step above", "put the steps in order")

    def _error(self, at: Sequence[str | int], problem: str, hint: str) -> ConfigError:
        key = ".".join(str(part) if isinstance(part, str) else f"[{part}]" for part in at).replace(".[", "[")
        return ConfigError(_at(self._path, self._text, self._find_line, *at), f"{key} {problem}", hint)

    def _step(self, at: Sequence[str | int], table: tables.Step, case: tables.Case) -> Step:
        if (table.call is None) is (table.request is None):
            problem = "has no call" if table.call is None else "has a call and a request"
            hint = 'write call = { tool = "…", arguments = { } }, or request = { method = "…" }'
            raise self._error(at, problem, hint)
        expect = table.expect
        if expect is None or expect == tables.Expect():
            raise self._error(at, "expects nothing", 'write expect = { decision = "deny" }')
        tool, arguments = self._called(at, table)
        time = table.time or case.time
        if time is not None and time.tzinfo is None:
            raise self._error((*at, "time"), "has no time zone", f"write time = {time.isoformat()}+01:00, or Z for UTC")
        answer = table.answer or case.answer
        result = table.result if table.result is not None else case.result
        call = TrialCall(
            tool,
            raw_json.encode(arguments),
            None if result is None else self._result((*at, "result"), result),
            answer=None if answer is None else _ANSWERS[answer],
        )
        expected = Expected(
            expect.decision,
            self._expected_text((*at, "expect", "reason"), expect.reason),
            None if expect.arguments is None else raw_json.encode(expect.arguments),
            self._expected_text((*at, "expect", "reads"), expect.reads),
            expect.failure,
        )
        times = table.times if table is case or table.times != 1 else case.times
        return Step(call, expected, time.timestamp() if time is not None else 0.0, times)

    def _called(self, at: Sequence[str | int], table: tables.Step) -> tuple[str, dict[str, object]]:
        """The tool or method, and its arguments or params."""
        if table.call is not None:
            return table.call.tool, table.call.arguments
        assert table.request is not None, "one of both is there"
        method, params = table.request.method, table.request.params
        if method == "tools/call":
            name, arguments = params.get("name"), params.get("arguments", {})
            if not isinstance(name, str) or not isinstance(arguments, dict):
                raise self._error((*at, "request"), "names no tool", 'write call = { tool = "…" } in its place')
            return name, arguments
        if not methods.is_method(method):
            hint = suggestion(method, methods.JUDGED) or f"these are judged: {', '.join(methods.JUDGED)}"
            raise self._error((*at, "request"), f"{method!r} is not a method that hooks or rules judge", hint)
        return method, params

    def _result(self, at: Sequence[str | int], value: object) -> bytes:
        if isinstance(value, str):
            return raw_json.encode({"content": [{"type": "text", "text": value}]})
        if isinstance(value, dict):
            return raw_json.encode(value)
        raise self._error(at, "is neither a text nor a table", 'write result = "…", or result = { content = [ ] }')

    def _expected_text(self, at: Sequence[str | int], value: object) -> TextExpected | None:
        if value is None:
            return None
        if isinstance(value, str):
            return TextExpected(value)
        hint = 'write it whole, or { contains = "…", lacks = "…" }'
        if not isinstance(value, dict) or not value:
            raise self._error(at, "is neither a text nor a table", hint)
        parts: dict[str, tuple[str, ...]] = {}
        for name, texts in value.items():
            if name not in ("contains", "lacks"):
                near = suggestion(name, ("contains", "lacks")) or hint
                raise self._error((*at, name), "is an unknown key", near)
            listed = [texts] if isinstance(texts, str) else texts
            if not isinstance(listed, list) or not listed or not all(text and isinstance(text, str) for text in listed):
                raise self._error((*at, name), "is neither a text nor a list of texts", f'write {name} = "…"')
            parts[name] = tuple(listed)
        return TextExpected(None, parts.get("contains", ()), parts.get("lacks", ()))


# --- recorded calls ---


def _read_recorded(path: str) -> CasesOfFile:
    """The calls of an audit file, each with its decision. Raises UserError for a line that is not a record."""
    skipped = Skipped()
    return CasesOfFile(path, tuple(_recorded_cases(path, skipped)), skipped=skipped)


def _recorded_cases(path: str, skipped: Skipped) -> Iterator[Case]:
    for record in joined(read(path)):
        if isinstance(record, BadLine):
            raise ConfigError(f"{path}:{record.line}", record.why, "remove the line, or name another file")
        if not isinstance(record, CallRecord):
            continue
        outcome = recorded_outcome(record)
        decision = "ask" if outcome.decision.startswith("asked") else outcome.decision
        if record.by.startswith("limits[") or record.chains:
            skipped.limited += 1
        elif decision not in ("allow", "deny", "ask"):
            skipped.undecided += 1
        elif not record.arguments:
            skipped.digests += 1
        else:
            skipped.in_part += record.is_partial
            raw_id = calls.response_id({"id": record.id})
            call = TrialCall(record.tool, bytes(record.arguments), id=b"1" if raw_id == b"null" else raw_id)
            if outcome.decision in ("asked-allow", "asked-deny"):
                call = msgspec.structs.replace(call, answer=_ANSWERS[outcome.decision.removeprefix("asked-")])
            failed = any(hook.verdict == "trouble" for hook in record.hooks)
            expected = Expected(decision, arguments=outcome.arguments or None, failure=failed)
            yield Case(
                f"{record.tool} of {record.server}", path, record.line, (Step(call, expected),),
                record.server, record.agent, record.user, record.groups,
            )  # fmt: skip


# --- what is put into texts ---


def in_folder(step: Step, folder: str) -> Step:
    """The step as it is in this folder."""

    def put(raw: bytes) -> bytes:
        return raw.replace(FOLDER.encode(), raw_json.encode(folder)[1:-1])

    def put_all(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text.replace(FOLDER, folder) for text in texts)

    def put_text(text: TextExpected | None) -> TextExpected | None:
        if text is None:
            return None
        whole = None if text.whole is None else text.whole.replace(FOLDER, folder)
        return TextExpected(whole, put_all(text.contains), put_all(text.lacks))

    call, expected = step.call, step.expected
    call = msgspec.structs.replace(
        call, arguments=put(call.arguments), result=None if call.result is None else put(call.result)
    )
    expected = msgspec.structs.replace(
        expected,
        arguments=None if expected.arguments is None else put(expected.arguments),
        reason=put_text(expected.reason),
        reads=put_text(expected.reads),
    )
    return msgspec.structs.replace(step, call=call, expected=expected)
