"""One JSON line per call, one write each; where the configuration requires it, no call goes unrecorded (law 3)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field

from ..jsonrpc import normalize, raw_json
from ..model.hooks import Ended, HookRun, Permission, Session, Verdict
from ..model.settings import Settings
from ..protocol.calls import Call
from . import os_user

if TYPE_CHECKING:
    from ..jsonrpc.redact import Redaction
    from .append_file import Ledger
    from .telemetry import Collector, Span

VERSION: Final = 1
"""The format's number: `v` in each line."""

_WAITING_LIMIT: Final = 1024 * 1024  # bytes kept while the file cannot be written: a full disk must not fill memory
_LONGEST: Final = 144 * 1024 * 1024  # bytes of arguments, beyond which readers of the line give up (`records.LONGEST`)
_STDERR: Final = 10_000  # bytes of what a hook that failed left behind, such as a traceback
_NAMES: Final = frozenset(
    {
        *("time", "session", "server", "tool", "alias", "event", "dialect", "decision", "result", "changed", "verdict"),
        *("ended", "outcome", "arguments_sha256", "rewritten_sha256"),
    }
)
"""Members of a line that only name something: no secret stands in them, and what they name is to be found by them."""


class Record(Struct):
    """What is known of one call, filled in as it goes on. Times are in milliseconds."""

    session: str
    server: str
    tool: str
    id: bytes
    """As the agent spelled it."""
    arguments: bytes
    """As the agent sent them, normalised."""
    agent: str = ""
    """Name and version as the agent gave them."""
    alias: str = ""
    """What hooks call the tool, where that is not its name."""
    hook_runs: list[HookRun] = field(default_factory=list)
    final: bytes = b""
    """The rewritten arguments, where a hook rewrote them."""
    decision: str = ""
    """`allow`, `deny`, `asked-allow`, `asked-deny`; nothing if the call was cancelled before."""
    by: str = ""
    """Who refused it: a hook's label, a permission rule, a limit's key."""
    reason: str = ""
    """Why it was refused, or what else should be known."""
    result: str = "ok"
    """`ok`, `error`, `refused`, `cancelled`, `lost`; `pending` if it goes on in further requests."""
    result_changed: bool = False
    repeats: int = 0
    """How often the call was made again because a hook said so."""
    ms: float = 0.0
    span: Span | None = None
    """What of it goes to a collector, until it is written."""


class Audit:
    """The audit file, opened when the first line is due; without a file nothing happens."""

    def __init__(self, settings: Settings) -> None:
        self.path = os_user.place(settings.audit_file)
        self.enabled = bool(self.path) or settings.otel  # somebody is to know what calls come to
        self.required = settings.audit_required
        self._digest = settings.audit_digest
        self._waiting: list[bytes] = []
        self._size = 0  # bytes that wait
        self._lost = 0  # lines that there was no room for
        self._stuck = False  # readers know that the file cannot be rotated
        self._collector = _collector(settings) if settings.otel else None
        if self.path:  # else nothing of this is imported
            self._ledger = _ledger(settings, self.path)
            self._redaction = _redaction(settings)
            self._writer = os_user.writer()

    def failure(self) -> str:
        """Empty if a line can be written now, as far as can be known; else why not."""
        if not self.path:
            return "no audit file is configured" if self.required else ""
        try:
            if self._waiting:
                self._flush()
            else:
                self._ledger.ready()
        except OSError as problem:
            return f"{problem.filename or self.path}: {problem.strerror}"
        return ""

    def begin(self, record: Record, call: Call) -> tuple[tuple[str, str], ...]:
        """A call has come. Gives the variables by which its hooks go on with its trace, if it has one."""
        if self._collector is None:
            return ()
        record.span = self._collector.begin(record, call)
        return record.span.env

    def write(self, record: Record) -> str:
        """Append the record's line; gives why it could not be written, or nothing. The line is tried again later."""
        if record.span is not None:
            record.span.end(record)
            record.span = None
        return self._add(self._members(record)) if self.path else ""

    def note(self, session: Session, text: str) -> str:
        """Append a line about something that belongs to no call; gives why it could not be written, or nothing."""
        if not self.path:
            return ""
        return self._add({"v": VERSION, "time": _now(), "session": session.id, "server": session.server, "note": text})

    def _add(self, members: dict[str, object]) -> str:
        line = self._line(members)
        if self._size + len(line) > _WAITING_LIMIT and self._waiting:
            self._lost += 1
        else:
            self._waiting.append(line)
            self._size += len(line)
        return self.failure()

    def _line(self, members: dict[str, object]) -> bytes:
        if self._redaction is not None:
            members = redacted(members, self._redaction)
        return raw_json.one_line(raw_json.encode(_clean({**members, **self._writer}))) + b"\n"

    def close(self) -> None:
        """Write what waits, and close the file; a line that cannot be written now is lost."""
        if self.path:
            if self._waiting:
                self.failure()
            self._ledger.close()
        if self._collector is not None:
            self._collector.close()

    def _flush(self) -> None:
        """Write what waits, each line in one write, so that many writers of a file do not mix. Raises OSError."""
        while self._waiting:
            self._ledger.append(self._waiting[0])
            self._size -= len(self._waiting.pop(0))
            if not self._waiting:
                self._waiting += [self._line({"v": VERSION, "time": _now(), "note": text}) for text in self._news()]
                self._size = sum(map(len, self._waiting))

    def _news(self) -> list[str]:
        """What readers should know of the audit itself, once."""
        lost, self._lost = self._lost, 0
        stuck, self._ledger.stuck = self._ledger.stuck, ""
        told = stuck and not self._stuck
        self._stuck = bool(stuck)
        return [f"{lost} lines lost"] * bool(lost) + [f"the file is over its limit: {stuck}"] * bool(told)

    def _members(self, record: Record) -> dict[str, object]:
        final = normalize.normalize(record.final) if record.final else b""
        digest = self._digest or len(record.arguments) + len(final) > _LONGEST
        given = {"arguments": record.arguments, "rewritten": final} if final else {"arguments": record.arguments}
        changed = ["arguments"] * bool(final) + ["result"] * record.result_changed
        return {
            "v": VERSION,
            "time": _now(),
            "session": record.session,
            "server": record.server,
            "tool": record.tool,
            **({"alias": record.alias} if record.alias else {}),
            "id": msgspec.Raw(record.id),
            **{f"{name}_sha256" if digest else name: _as_kept(raw, digest) for name, raw in given.items()},
            "hooks": [_hook(one) for one in record.hook_runs],
            "changed": changed,
            **({"repeats": record.repeats} if record.repeats else {}),
            "decision": record.decision,
            **({"by": record.by} if record.by else {}),
            "reason": record.reason,
            "result": record.result,
            "ms": round(record.ms, 3),
            "hook_ms": round(sum(one.result.ms for one in record.hook_runs), 3),
            "agent": record.agent,
        }


def _ledger(settings: Settings, path: str) -> Ledger:
    from .append_file import Ledger, Ways

    return Ledger(
        path,
        Ways(
            chain=settings.audit_chain,
            shared=settings.audit_shared,
            private=path != settings.audit_file and not settings.audit_shared,
            limit=settings.audit_max_file_bytes,
        ),
    )


def _collector(settings: Settings) -> Collector:
    from .telemetry import Collector

    return Collector(settings.otel_endpoint, os_user.writer(), lambda one: _in_a_word(one.verdict))


def _redaction(settings: Settings) -> Redaction | None:
    if not (settings.audit_redact or settings.audit_redact_keys):
        return None
    from ..jsonrpc import redact

    return redact.of(settings.audit_redact, settings.audit_redact_keys)


def redacted(members: dict[str, object], secrets: Redaction) -> dict[str, object]:
    """The members of a line without secrets: in what the agent sent, and in what hooks and we said of it."""

    def of(name: str, value: object) -> object:
        if isinstance(value, str):
            return value if name in _NAMES else secrets.text(value)
        if isinstance(value, list):
            return [of(name, item) for item in value]
        if isinstance(value, dict):
            return {key: of(key, item) for key, item in value.items()}
        return msgspec.Raw(secrets.json(bytes(value))) if isinstance(value, msgspec.Raw) and name != "id" else value

    return {name: of(name, value) for name, value in members.items()}


def _clean(value: object) -> object:
    """The same with text that came from the operating system and is no UTF-8 made so."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def _as_kept(raw: bytes, digest: bool) -> object:
    return _sha256(raw) if digest else msgspec.Raw(raw)


def _sha256(raw: bytes) -> str:
    import hashlib  # 2 ms, for those who have the audit hold digests

    return hashlib.sha256(raw).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _hook(one: HookRun) -> dict[str, object]:
    spec, result, verdict = one.spec, one.result, one.verdict
    return {
        "source": spec.source,
        "event": spec.event,
        "dialect": spec.dialect,
        "command": spec.target,
        "ended": result.ended.value,
        "exit": result.code,
        "ms": round(result.ms, 3),
        "outcome": _outcome(one),
        "verdict": _in_a_word(verdict),
        "reason": verdict.failure or verdict.reason,
        "feedback": list(verdict.feedback),
        "messages": list(verdict.messages),
        **({"stderr": _told(result.stderr)} if result.ended is Ended.FAILED and result.stderr else {}),
    }


def _told(stderr: bytes) -> str:
    """The end of what a hook that failed left behind, where the reason stands."""
    return stderr[-_STDERR:].decode(errors="replace")


def _outcome(one: HookRun) -> str:
    """How the run came out, in the words of code-assist's document: `success`, `blocking` and so on."""
    if one.result.ended in (Ended.TIMED_OUT, Ended.CANCELLED):
        return "cancelled"
    if one.verdict.permission is Permission.DENY or one.verdict.stop:
        return "blocking"
    return "non_blocking_error" if one.verdict.failure else "success"


def _in_a_word(verdict: Verdict) -> str:
    """The most that a hook said: a permission outweighs a rewrite, and that a comment."""
    if verdict.failure:
        return "trouble"
    if verdict.permission is not None:
        return verdict.permission.name.lower()
    if verdict.arguments is not None:
        return "rewrite"
    if verdict.replacement is not None:
        return "replace"
    return "comment" if verdict.feedback else "none"
