"""The audit log: one JSON line for each call, in one write. A required audit leaves no call unrecorded (law 3)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from time import time
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ..jsonrpc import normalize, raw_json
from ..model.call_end import CallEnd, Refused, Responded
from ..model.counts import counted
from ..model.decision import Proceed
from ..model.hooks import Ended, Event, HookRun, HookSpec, Permission, Session, Verdict
from ..model.principal import Principal
from ..model.settings import Results, Settings
from ..protocol.calls import Call
from . import os_user

if TYPE_CHECKING:
    from ..jsonrpc.redact import Redaction
    from .append_file import AppendFile
    from .telemetry import Collector, Span

MESSAGE: Final = "message"
"""The cause of refusals that concern a message and not a call."""

NOT_WRITTEN: Final = "the audit log cannot be written"
"""The beginning of the sentence that is reported then."""

VERSION: Final = 1
"""The format's number: `v` in each line."""

_WAITING_LIMIT: Final = 1024 * 1024  # bytes kept while the file cannot be written: a full disk must not fill memory
_LONGEST: Final = 144 * 1024 * 1024  # bytes of arguments in a line; readers accept more (`records.LONGEST`)
_STDERR_LIMIT: Final = 2000  # bytes kept of the standard error of a hook: the last lines of a traceback
_TEXT_LIMIT: Final = 64 * 1024  # bytes of a hook's input or output, or of a result; of longer ones a digest is kept
_RUN_DIGITS: Final = 6  # hexadecimal digits of the ids of a run's calls: two of a hundred runs have the same in 1/3000
_MOST_DEFERRED: Final = 64  # records that wait for an idle moment: writing them takes 2 ms
DEFERRED_SECONDS: Final = 0.02
"""A record that need not be written at once is written after this time: by then the call has been forwarded."""
_AFTER_CALL: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_NOT_REDACTED: Final = frozenset(
    {
        *("time", "session", "server", "tool", "alias", "event", "dialect", "decision", "result", "changed", "verdict"),
        *("ended", "outcome", "arguments_sha256", "rewritten_sha256", "call", "cause", "stdout_sha256"),
        *("input_sha256", "result_before_sha256", "result_after_sha256", "message_sha256"),
    }
)
"""Members of a line that are not redacted: they hold names and times, by which people search."""

_LEFT_OUT_IF_EMPTY: Final = ("call", "alias", "skipped", "repeats", "cause", "by", "place", "answered")
"""Members of a call's line that most calls do not have."""

_CHOSEN_NAMES: Final = frozenset({"tool", "alias", "tool_name"})
"""Names among them that the agent chooses: only values that are known to be secret are removed."""


class Skipped(Struct, frozen=True):
    """A configured hook that did not run for a call."""

    spec: HookSpec
    why: str
    """A sentence for people, without a full stop."""


class RefusedMessage(Struct, frozen=True):
    """A message of the agent that was refused before it was a call: it cannot be read for certain, or must not pass."""

    why: str
    """A sentence."""
    id: bytes = b"null"
    """The id to which the refusal responds, as spelled."""
    line: bytes = b""
    """The message; empty: it is not known any more, because it was too long."""
    agent: str = ""
    """Name and version as the agent gave them."""


class Record(Struct):
    """What is known about one call, filled in during the call. Times are in milliseconds."""

    session: str
    server: str
    tool: str
    id: bytes
    """JSON, as the agent spelled it."""
    arguments: bytes
    """JSON, as the agent sent them, normalised."""
    agent: str = ""
    """Name and version as the agent gave them."""
    alias: str = ""
    """The tool's name for hooks, if it has an alias."""
    hook_runs: list[HookRun] = field(default_factory=list)
    final: bytes = b""
    """The rewritten arguments, if a hook rewrote them."""
    decision: str = ""
    """`allow`, `deny`, `asked-allow`, `asked-deny`; empty if the call was cancelled before."""
    call: str = ""
    """Its id in the audit: that of the run, and its number in it."""
    by: str = ""
    """Who refused it: a hook's label, a permission rule, a limit's key."""
    cause: str = ""
    """Why it was refused, as a `RefusalCause`; `stopped` by a hook that stopped all calls, or `audit`."""
    place: str = ""
    """Where the rule or limit that refused it is configured: file, line and key."""
    reason: str = ""
    """Why it was refused, in the words of the person who said no if there are any; or another remark about it."""
    result: str = "ok"
    """`ok`, `error`, `refused`, `cancelled`, `lost`; `pending` if it continues in further requests; `sent` if nobody
    reads its response; `begun` in the line that is written before a call whose record is required is forwarded."""
    answered: str = ""
    """What a person has answered on a console, who, and from where."""
    result_before: bytes = b""
    """The server's response, if hooks changed it."""
    result_after: bytes = b""
    """The response that the agent got instead."""
    skipped: Sequence[Skipped] = ()
    """The configured hooks for events of calls that did not run."""
    repeats: int = 0
    """How often the call was repeated because a hook asked for it."""
    ms: float = 0.0
    at: float = 0.0
    """When it ended, in seconds since 1970."""
    begun: bool = False
    """A line that it has begun is written."""
    span: Span | None = None
    """The call's telemetry span, until the record is written."""

    @property
    def result_changed(self) -> bool:
        """Hooks changed the response."""
        return bool(self.result_after)

    def note_allowed(self, proceed: Proceed) -> None:
        """The call may be forwarded."""
        self.decision, self.final = "asked-allow" if proceed.asked else "allow", proceed.arguments or b""

    def note_end(self, end: CallEnd) -> None:
        """Derive from how the call has ended what is recorded of it. What a person has said about it stays."""
        self.result, self.reason = end.result, end.reason or self.reason
        if isinstance(end, Refused):
            self.decision = "asked-deny" if end.asked else "deny"
            self.cause, self.by, self.place = end.cause, end.by, end.place
        elif isinstance(end, Responded) and end.asks:
            self.decision = "asked"


class Audit:
    """The audit file, opened when the first line is to be written. Without a configured file nothing happens."""

    def __init__(self, settings: Settings, principal: Principal | None = None, policy: str = "") -> None:
        """`principal` has opened the session at a gateway, whose policy has this version."""
        self._principal = principal
        self._policy = policy
        self.path = os_user.audit_path(settings.audit_file)
        self.needs_results = settings.otel or (bool(self.path) and settings.audit_results is not Results.NONE)
        """Results of calls are recorded somewhere."""
        self.required = settings.audit_required
        self._settings = settings
        self._run = os.urandom(_RUN_DIGITS).hex()[:_RUN_DIGITS]
        self._numbers = count(1)
        self._full_before = not settings.audit_digest
        self._full_after = settings.audit_results is Results.FULL
        self.schedule: Callable[[], None] | None = None
        """Calls `flush` soon. If it is set, records of the default file are not written at once."""
        self._may_defer = settings.audit_default and not settings.audit_required
        self._deferred: list[Record] = []
        self._waiting: list[bytes] = []
        self._size = 0  # bytes in `_waiting`
        self._lost = 0  # lines dropped because `_waiting` was full
        self._rotation_failed = False  # a note about the failed rotation is in the file
        self._collector = _collector(settings) if settings.otel else None
        self._opened: _Opened | None = None  # these modules are imported with the first line
        self.in_flight: dict[str, tuple[Record, Call, float]] = {}
        """The calls that have not ended, by their ids, with the time at which they came, in seconds since 1970."""
        self.on_ended: Callable[[Record], None] | None = None
        """Called with each call that has ended."""

    def report_to(self, report: Callable[[str], None]) -> None:
        """Report problems of telemetry there, from any thread."""
        if self._collector is not None:
            from . import telemetry

            telemetry.report_to(report)

    def failure(self) -> str:
        """Why no line can be written now; empty if one can, as far as that can be known."""
        if not self.path:
            return "no audit file is configured" if self.required else ""
        try:
            if self._waiting:
                self._flush()
            else:
                self._open().file.ready()
        except OSError as error:
            return f"{error.filename or self.path}: {error.strerror}"
        return ""

    def _open(self) -> _Opened:
        if self._opened is None:
            writer = os_user.writer(self._principal)
            if self._policy:
                writer["policy"] = self._policy
            self._opened = _Opened(_append_file(self._settings, self.path), _redaction(self._settings), writer)
        return self._opened

    def begin(self, record: Record, call: Call) -> tuple[tuple[str, str], ...]:
        """Give a call its id, and begin its span. Returns the variables that carry its trace context to hooks."""
        record.call = f"{self._run}-{next(self._numbers)}"
        self.in_flight[record.call] = record, call, time()
        if self._collector is None:
            return ()
        record.span = self._collector.begin(record, call)
        return record.span.env

    def write_begun(self, record: Record) -> str:
        """If records are required, append a line before the call is forwarded. Returns why it could not be written.

        Then nothing of it is kept: the call is refused.
        """
        if not (self.required and self.path) or record.begun:
            return ""
        try:
            if self._waiting:
                self._flush()
            line = self._line(self.members(replace(record, result="begun")), record)
            self._open().file.append(line, leave_space=True)
        except OSError as error:
            return f"{error.filename or self.path}: {error.strerror}"
        record.begun = True
        return ""

    def write(self, record: Record) -> str:
        """Append the record's line. Returns why it could not be written, or nothing; then it is tried again later."""
        if record.span is not None:
            record.span.end(record)
            record.span = None
        record.at = time()
        self.in_flight.pop(record.call, None)
        if self.on_ended is not None:
            self.on_ended(record)
        if not self.path:
            return ""
        self._deferred.append(record)
        if self.schedule is not None and self._may_defer and len(record.arguments) <= _TEXT_LIMIT:
            if len(self._deferred) == 1:
                self.schedule()
            if len(self._deferred) < _MOST_DEFERRED:
                return ""
        return self.flush()

    def flush(self) -> str:
        """Append the lines of the records that wait for an idle moment. Otherwise as `write`."""
        records, self._deferred = self._deferred, []
        for record in records:
            self._keep(self.members(record), record)
        return self.failure()

    def note(self, session: Session, text: str) -> str:
        """Append a line about something that belongs to no call. Returns why it could not be written, or nothing."""
        if not self.path:
            return ""
        self.flush()
        self._keep({"v": VERSION, "time": _time(), "session": session.id, "server": session.server, "note": text})
        return self.failure()

    def note_refusal(self, session: Session, refusal: RefusedMessage) -> str:
        """Append a line about a message that was refused before it was a call. Otherwise as `note`."""
        if not self.path:
            return ""
        self.flush()
        named = {"note": f"refused a message of the agent: {refusal.why}", "id": msgspec.Raw(refusal.id)}
        decided = {"decision": "deny", "cause": MESSAGE, "reason": refusal.why, "result": "refused"}
        # in a text that nobody can read for certain, no member can be found that is to be redacted
        full = self._full_before and not self._settings.audit_redact_keys
        shown = _texts_or_digests({"message": refusal.line.rstrip(b"\r\n")} if refusal.line else {}, full)
        about = {"v": VERSION, "time": _time(), "session": session.id, "server": session.server}
        self._keep({**about, **named, **decided, **shown, "agent": refusal.agent})
        return self.failure()

    def _keep(self, members: dict[str, object], record: Record | None = None) -> None:
        """Keep the line until it is written. If too many wait, it is lost, and counted."""
        line = self._line(members, record)
        if self._size + len(line) > _WAITING_LIMIT and self._waiting:
            self._lost += 1
        else:
            self._waiting.append(line)
            self._size += len(line)

    def line(self, record: Record) -> bytes:
        """The line about a call as it would be written. Raises OSError if what redacts it cannot be made."""
        return self._line(self.members(record), record)

    def _line(self, members: dict[str, object], record: Record | None = None) -> bytes:
        """The line with these members. Secret values in the JSON texts of the record are removed from all of them."""
        opened = self._open()
        if opened.redaction is not None:
            documents = () if record is None else _documents(record)
            members = redacted(members, opened.redaction.with_values_of(documents))
        members.update(opened.writer)
        try:
            line = raw_json.encode(members)
        except UnicodeEncodeError:
            line = raw_json.encode(_clean(members))
        return raw_json.one_line(line) + b"\n"

    def close(self) -> str:
        """Write the waiting lines, and close the file. A line that cannot be written now is lost: returns why."""
        problem = ""
        if self.path:
            if self._deferred or self._waiting:
                problem = self.flush()
            if self._opened is not None:
                self._opened.file.close()
        if self._collector is not None:
            self._collector.close()
        return problem

    def _flush(self) -> None:
        """Write the waiting lines, none in two writes, so that lines of several writers do not mix. Raises OSError."""
        file = self._open().file
        while self._waiting:
            written = file.append_some(self._waiting)
            self._size -= sum(map(len, self._waiting[:written]))
            del self._waiting[:written]
            if not self._waiting and (self._lost or file.rotation_error or self._rotation_failed):
                self._waiting += [
                    self._line({"v": VERSION, "time": _time(), "note": text}) for text in self._own_notes()
                ]
                self._size = sum(map(len, self._waiting))

    def _own_notes(self) -> list[str]:
        """Notes about the audit itself, each once: lost lines, and a file that cannot be rotated."""
        lost, self._lost = self._lost, 0
        file = self._open().file
        rotation_error, file.rotation_error = file.rotation_error, ""
        is_new = rotation_error and not self._rotation_failed
        self._rotation_failed = bool(rotation_error)
        return [f"{counted(lost, 'line')} lost"] * bool(lost) + [
            f"the file is over its limit: {rotation_error}"
        ] * bool(is_new)

    def members(self, record: Record) -> dict[str, object]:
        """The members of a call's line, but for those that say who has written it. Secrets are in them."""
        members = {
            "v": VERSION,
            "time": _time(record.at),
            "call": record.call,
            "session": record.session,
            "server": record.server,
            "tool": record.tool,
            "alias": record.alias,
            "id": msgspec.Raw(record.id),
            **self._arguments(record),
            "hooks": [self._hook(run, record.tool) for run in record.hook_runs] if record.hook_runs else [],
            "skipped": [_skipped(one) for one in record.skipped] if record.skipped else None,
            "changed": ["arguments"] * bool(record.final) + ["result"] * record.result_changed,
            **(self._changed_result(record) if record.result_changed else {}),
            "repeats": record.repeats,
            "decision": record.decision,
            "cause": record.cause,
            "by": record.by,
            "place": record.place,
            "reason": record.reason,
            "answered": record.answered,
            "result": record.result,
            "ms": round(record.ms, 3),
            "hook_ms": round(sum(run.result.ms for run in record.hook_runs), 3) if record.hook_runs else 0.0,
            "agent": record.agent,
        }
        for name in _LEFT_OUT_IF_EMPTY:
            if not members[name]:
                del members[name]
        return members

    def _arguments(self, record: Record) -> dict[str, object]:
        """The arguments before and after rewriting, or their digests."""
        given = {"arguments": record.arguments}
        if record.final:
            given["rewritten"] = normalize.normalize(record.final)
        if self._full_before and sum(map(len, given.values())) <= _LONGEST:
            return {name: msgspec.Raw(raw) for name, raw in given.items()}
        return {f"{name}_sha256": _sha256(raw) for name, raw in given.items()}

    def _changed_result(self, record: Record) -> dict[str, object]:
        """The response before and after hooks changed it, or the digests."""
        texts = {"result_before": record.result_before, "result_after": record.result_after}
        return _texts_or_digests({name: raw.rstrip(b"\n") for name, raw in texts.items()}, self._full_after)

    def _hook(self, run: HookRun, tool: str) -> dict[str, object]:
        spec, result, verdict = run.spec, run.result, run.verdict
        full = self._full_after if spec.event in _AFTER_CALL else self._full_before
        texts: dict[str, bytes | bytearray] = {"input": run.input, "stdout": result.stdout}
        return {
            "source": spec.source,
            "event": spec.event,
            "dialect": spec.dialect,
            "command": spec.target,
            **({"tool_name": run.tool_name} if run.tool_name not in ("", tool) else {}),
            "ended": result.ended.value,
            "exit": result.code,
            "ms": round(result.ms, 3),
            "outcome": _outcome(run),
            "verdict": verdict_word(verdict),
            "reason": verdict.failure or verdict.reason,
            "feedback": list(verdict.feedback),
            "messages": list(verdict.messages),
            **_texts_or_digests({name: text for name, text in texts.items() if text}, full),
            **({"stderr": _stderr_end(result.stderr)} if result.stderr else {}),
        }


class _Opened(Struct):
    """What is needed to write lines."""

    file: AppendFile
    redaction: Redaction | None
    writer: dict[str, object]


def _append_file(settings: Settings, path: str) -> AppendFile:
    from .append_file import AppendFile, FileOptions

    return AppendFile(
        path,
        FileOptions(
            chain=settings.audit_chain,
            key_file=settings.audit_chain_key_file,
            shared=settings.audit_shared,
            # nobody named the default file: a link in its place would choose where the lines go, also root's
            private=(settings.audit_default or path != settings.audit_file) and not settings.audit_shared,
            limit=settings.audit_max_file_bytes,
            keep=settings.audit_keep_files,
        ),
    )


def _collector(settings: Settings) -> Collector:
    from .telemetry import Collector

    return Collector(settings.otel_endpoint, os_user.writer(), lambda run: verdict_word(run.verdict))


def _redaction(settings: Settings) -> Redaction | None:
    if not (settings.audit_redact or settings.audit_redact_keys):
        return None
    from ..jsonrpc import redact

    return redact.of(settings.audit_redact, settings.audit_redact_keys)


def redacted(members: dict[str, object], secrets: Redaction) -> dict[str, object]:
    """The members of a line with secrets replaced, in the agent's values as well as in texts of hooks and hookproxy."""

    def of(name: str, value: object) -> object:
        if isinstance(value, str):
            return _redacted_text(name, value, secrets)
        if isinstance(value, list):
            return [of(name, item) for item in value]
        if isinstance(value, dict):
            return {key: of(key, item) for key, item in value.items()}
        return _redacted_json(name, value, secrets) if isinstance(value, msgspec.Raw) else value

    line = {name: of(name, value) for name, value in members.items()}
    if line.get("tool") != (tool := members.get("tool")) and isinstance(tool, str):
        line["tool_sha256"] = _sha256(tool.encode(errors="replace"))  # an agent cannot hide which tool it called
    return line


def _redacted_text(name: str, text: str, secrets: Redaction) -> str:
    if name in _CHOSEN_NAMES:
        return secrets.known_values(text)
    return text if name in _NOT_REDACTED else secrets.text(text)


def _redacted_json(name: str, raw: msgspec.Raw, secrets: Redaction) -> msgspec.Raw:
    if name != "id":
        return msgspec.Raw(secrets.json(bytes(raw)))
    text = bytes(raw).decode()
    return raw if secrets.known_values(text) == text else msgspec.Raw(b'"[redacted]"')


def _documents(record: Record) -> list[bytes | bytearray]:
    """The JSON texts of a call that may hold secrets."""
    outputs = [run.result.stdout for run in record.hook_runs if 0 < len(run.result.stdout) <= _TEXT_LIMIT]
    results = [raw for raw in (record.result_before, record.result_after) if len(raw) <= _TEXT_LIMIT]
    return [record.arguments, record.final, *outputs, *results]


def _clean(value: object) -> object:
    """The same value with all text valid UTF-8; text from the operating system may not be."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def _sha256(raw: bytes | bytearray) -> str:
    import hashlib  # importing it takes 2 ms: only for digests

    return hashlib.sha256(raw).hexdigest()


def _time(at: float = 0.0) -> str:
    """A time in seconds since 1970 as lines have it; without one, the present."""
    second, microseconds = divmod(round((at or time()) * 1_000_000), 1_000_000)
    return f"{_second(second)}.{microseconds // 1000:03}+00:00"


@lru_cache(maxsize=1)  # many calls end in the same second
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").removesuffix("+00:00")


def _texts_or_digests(texts: dict[str, bytes | bytearray], full: bool) -> dict[str, object]:
    """Members with these texts; their digests if they are not to be recorded in full, or are too long."""
    members: dict[str, object] = {}
    for name, text in texts.items():
        if full and len(text) <= _TEXT_LIMIT:
            members[name] = text.decode(errors="replace")
        else:
            members[f"{name}_sha256"] = _sha256(text)
    return members


def _skipped(one: Skipped) -> dict[str, object]:
    return {"source": one.spec.source, "event": one.spec.event, "command": one.spec.target, "why": one.why}


def _stderr_end(stderr: bytes) -> str:
    """The end of a hook's standard error, which usually has the reason of a failure."""
    return stderr[-_STDERR_LIMIT:].decode(errors="replace")


def _outcome(run: HookRun) -> str:
    """The outcome of the run, in the terms of code-assist's document: `success`, `blocking` and so on."""
    if run.result.ended in (Ended.TIMED_OUT, Ended.CANCELLED):
        return "cancelled"
    if run.verdict.permission is Permission.DENY or run.verdict.stop:
        return "blocking"
    return "non_blocking_error" if run.verdict.failure else "success"


def verdict_word(verdict: Verdict) -> str:
    """The strongest part of a verdict, as the audit file spells it: permission before rewrite before feedback."""
    if verdict.failure:
        return "trouble"
    if verdict.permission is not None:
        return verdict.permission.name.lower()
    if verdict.arguments is not None or verdict.meta is not None:
        return "rewrite"
    if verdict.replacement is not None:
        return "replace"
    return "comment" if verdict.feedback else "none"
