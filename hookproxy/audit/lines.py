"""The lines of the audit: JSON with all that is known about a call, or a note, but without secrets.

How a line is made: its members are put together, with texts or with digests of them as the configuration says; secrets
are replaced in them; then those members follow that say who has written it; all of it is one line of JSON.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from time import time
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from ..jsonrpc import normalize, raw_json
from ..model.hooks import Ended, Event, HookRun, Permission, Session, Verdict
from ..model.principal import Principal
from ..model.settings import Arguments, Results, Settings
from ..policy.methods import TOOLS_CALL
from . import os_user
from .call_record import Record, RefusedMessage, WatchedCall

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..jsonrpc.redact import Redaction
    from ..secrets.mask import Masking
    from .call_record import Skipped


class Removes(Protocol):
    """Removes secrets."""

    def known_values(self, text: str) -> str:
        """From a text, those that are known from other texts, and nothing else."""

    def text(self, text: str) -> str:
        """From a text, all."""

    def json(self, raw: bytes) -> bytes:
        """From a JSON value, all."""


VERSION: Final = 1
"""The format's number: `v` in each line."""

MESSAGE: Final = "message"
"""The cause of refusals that concern a message and not a call."""

TEXT_LIMIT: Final = 64 * 1024
"""Bytes of a hook's input or output, or of a result; of longer ones a digest is kept."""

_LONGEST: Final = 144 * 1024 * 1024  # bytes of arguments in a line; readers accept more (`records.LONGEST`)
_STDERR_LIMIT: Final = 2000  # bytes kept of the end of a hook's standard error: the last lines of a traceback
_AFTER_CALL: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_NOT_REDACTED: Final = frozenset(
    {
        *(
            "time",
            "session",
            "server",
            "tool",
            "method",
            "alias",
            "event",
            "dialect",
            "decision",
            "result",
            "changed",
            "verdict",
            "would",
        ),
        *("ended", "outcome", "arguments_sha256", "rewritten_sha256", "call", "cause", "stdout_sha256"),
        *("interception_point", "mode", "session_id", "timestamp", "input_identity", "enforced_identity"),
        *("input_sha256", "result_before_sha256", "result_after_sha256", "message_sha256"),
    }
)
"""Members of a line that are not redacted: they hold names and times, by which people search."""

_KEPT_ARGUMENTS: Final = frozenset({"arguments", "rewritten", "masked"})
"""Members of a line that are masked before all others."""

_LEFT_OUT_IF_EMPTY: Final = (
    *(
        "call",
        "native",
        "method",
        "alias",
        "interceptions",
        "skipped",
        "repeats",
        "cause",
        "by",
        "place",
        "exceeds",
        "labels",
        "chains",
        "asked_by",
        "answered",
        "answered_by",
        "edited",
        "monitor",
    ),
)
"""Members of a call's line that most calls do not have."""

_CHOSEN_NAMES: Final = frozenset({"tool", "alias", "tool_name"})
"""Names among them that the agent chooses: only values that are known to be secret are removed."""

_UNCHANGED: Final = _NOT_REDACTED - _CHOSEN_NAMES
_NUMBERS: Final = frozenset({bool, int, float, type(None)})


class Lines:
    """Makes the lines of one audit. What redacts them is imported with the first line."""

    def __init__(self, settings: Settings, principal: Principal | None = None, policy: str = "") -> None:
        """`principal` has opened the session at a gateway, whose policy has this version."""
        self._settings = settings
        self._principal = principal
        self._policy = policy
        self._arguments_kept = settings.audit_arguments
        self._full_after = settings.audit_results is Results.FULL
        self.hidden: Removes | None = None
        """Removes the secrets of the session; None: it hides none."""
        self._made: tuple[Redaction | None, dict[str, object]] | None = None

    def of_call(self, record: Record) -> bytes:
        """The line about a call. Secret values in the JSON texts of the record are removed from all of its members.

        Raises OSError if what redacts it cannot be made, as the other methods.
        """
        masking = self._masking()
        members = self._members(record, masking)
        return self._encoded(members, record, masking)

    def hooks_of(self, record: Record) -> bytes:
        """The hooks that have run for a call, as its line has them: a JSON array. Raises as `of_call`."""
        return bytes(raw_json.fields(self.of_call(record))["hooks"]) if record.hook_runs else b"[]"

    def _masking(self) -> Masking | None:
        """What masks one line; None: nothing is masked."""
        if self._arguments_kept is not Arguments.MASKED:
            return None
        from ..secrets.mask import Masking

        return Masking()

    def of_note(self, text: str, session: Session | None = None, by: str = "") -> bytes:
        """The line about something that belongs to no call; without a session, about the audit itself, or all sessions.

        `by` is the id of who has done it.
        """
        return self._encoded({**_head(session), "note": text, **({"by": by} if by else {})})

    def of_refusal(self, session: Session, refusal: RefusedMessage) -> bytes:
        """The line about a message that was refused before it was a call."""
        named = {"note": f"refused a message of the agent: {refusal.why}", "id": msgspec.Raw(refusal.id)}
        decided = {"decision": "deny", "cause": MESSAGE, "reason": refusal.why, "result": "refused"}
        # in a text that nobody can read for certain, no member can be found that is to be redacted
        line = refusal.line
        if self.hidden is not None:
            line = self.hidden.text(line.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        shows = self._arguments_kept is Arguments.FULL or self._looks_harmless(line)
        full = shows and not self._settings.audit_redact_keys
        shown = _texts_or_digests({"message": line.rstrip(b"\r\n")} if line else {}, full)
        return self._encoded({**_head(session), **named, **decided, **shown, "agent": refusal.agent})

    def _looks_harmless(self, line: bytes) -> bool:
        """True if a message may be recorded that nobody can read for certain: nothing in it is to be masked."""
        masking = self._masking()
        if masking is None or len(line) > TEXT_LIMIT or b"\\" in line:
            return False
        text = line.decode(errors="replace")
        return masking.text(text) is text

    def _encoded(
        self, members: dict[str, object], record: Record | None = None, masking: Masking | None = None
    ) -> bytes:
        if self.hidden is not None:
            members = _redacted(members, self.hidden, with_digest=False)
        if masking is None:
            masking = self._masking()
        if masking is not None and _may_be_masked(members, masking):
            members = _redacted(members, masking, _KEPT_ARGUMENTS)
        redaction, writer = self._redaction_and_writer()
        if redaction is not None:
            documents = () if record is None else _documents(record)
            members = _redacted(members, redaction.with_values_of(documents))
        members.update(writer)
        try:
            line = raw_json.encode(members)
        except UnicodeEncodeError:
            line = raw_json.encode(_clean(members))
        return raw_json.one_line(line) + b"\n"

    def _redaction_and_writer(self) -> tuple[Redaction | None, dict[str, object]]:
        if self._made is None:
            writer = os_user.writer(self._principal)
            if self._policy:
                writer["policy"] = self._policy
            if (bundle := self._settings.bundle) is not None:
                writer["bundle"] = {"version": bundle.version, "ring": bundle.ring, "digest": bundle.digest}
            self._made = _redaction(self._settings), writer
        return self._made

    def _members(self, record: Record, masking: Masking | None) -> dict[str, object]:
        """The members of a call's line, but for those that say who has written it. Secrets are in them."""
        members = {
            "v": VERSION,
            "time": _time(record.at),
            "call": record.call,
            "native": record.native,
            "session": record.session,
            "server": record.server,
            "tool": record.tool,
            "method": record.method if record.method != TOOLS_CALL else "",
            "alias": record.alias,
            "id": msgspec.Raw(record.id),
            **self._arguments(record, masking),
            "hooks": self._hooks(record) if record.hook_runs or record.earlier_hooks else (),
            "interceptions": _interceptions(record),
            "skipped": record.skipped and _skipped(record.skipped),
            "changed": ["arguments"] * bool(record.final) + ["result"] * record.result_changed,
            **(self._changed_result(record) if record.result_changed else {}),
            "repeats": record.repeats,
            "decision": record.decision,
            "cause": record.cause,
            "by": record.by,
            "place": record.place,
            "exceeds": record.exceeds,
            "reason": record.reason,
            "labels": record.labels,
            "chains": msgspec.to_builtins(record.chains) if record.chains else (),
            "asked_by": record.asked_by,
            "answered": record.answered,
            "answered_by": record.answered_by,
            "edited": record.edited,
            "result": record.result,
            "ms": round(record.ms, 3),
            "hook_ms": round(record.earlier_ms + record.own_hook_ms, 3),
            "agent": record.agent,
            "monitor": {} if record.watched is None else self._monitor(record.watched, record, masking),
        }
        for name in _LEFT_OUT_IF_EMPTY:
            if not members[name]:
                del members[name]
        return members

    def _hooks(self, record: Record) -> list[object]:
        return [*record.earlier_hooks, *(self._hook(run, record.tool) for run in record.hook_runs)]

    def _monitor(self, watched: WatchedCall, record: Record, masking: Masking | None) -> dict[str, object]:
        """What a policy would have done that is only watched, without what it has in common with the call."""
        from .would_be import decision_of, would_be  # only with such a policy

        own = watched.record
        if own is None:
            return {}
        # without a rewrite, its arguments are those of the call: to mask them again would take as long as to judge it
        kept = self._arguments(own, masking) if own.final else {}
        members = {
            "policy": watched.replaces,
            "would": would_be(record, watched),
            "decision": decision_of(own),
            "cause": own.cause,
            "by": own.by,
            "place": own.place,
            "reason": own.reason,
            "hooks": [self._hook(run, own.tool) for run in own.hook_runs],
            **{name: value for name, value in kept.items() if name.startswith("rewritten")},
            "hook_ms": round(own.own_hook_ms, 3),
        }
        return {name: value for name, value in members.items() if value}

    def _arguments(self, record: Record, masking: Masking | None) -> dict[str, object]:
        """The arguments before and after rewriting: what is kept of them, or their digests."""
        given = {"arguments": record.arguments}
        if record.final:
            given["rewritten"] = normalize.normalize(record.final)
        if self.hidden is not None:
            given = {name: self.hidden.json(raw) for name, raw in given.items()}
        if masking is not None:
            return _masked(given, masking)
        if self._arguments_kept is Arguments.FULL and sum(map(len, given.values())) <= _LONGEST:
            return {name: msgspec.Raw(raw) for name, raw in given.items()}
        return {f"{name}_sha256": _sha256(raw) for name, raw in given.items()}

    def _changed_result(self, record: Record) -> dict[str, object]:
        """The response before and after hooks changed it, or the digests."""
        texts = {"result_before": record.result_before, "result_after": record.result_after}
        return _texts_or_digests({name: raw.rstrip(b"\n") for name, raw in texts.items()}, self._full_after)

    def _hook(self, run: HookRun, tool: str) -> dict[str, object]:
        spec, result, verdict = run.spec, run.result, run.verdict
        before = self._arguments_kept is not Arguments.DIGEST
        full = self._full_after if spec.event in _AFTER_CALL else before
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
            **({"unread": list(run.unread)} if run.unread else {}),
            **_texts_or_digests({name: text for name, text in texts.items() if text}, full),
            **({"stderr": result.stderr[-_STDERR_LIMIT:].decode(errors="replace")} if result.stderr else {}),
        }


def _interceptions(record: Record) -> list[Mapping[str, object]]:
    """The records that systems of hooks demand of their events, with what a person has said about them afterwards."""
    made = [run.interception for run in record.hook_runs if run.interception]
    if record.decision not in ("asked-allow", "asked-deny") or not made:
        return made
    return [_answered(interception, record) for interception in made]


def _answered(interception: Mapping[str, object], record: Record) -> Mapping[str, object]:
    verdict = interception["verdict"]
    if "resolved_by" in interception or not (isinstance(verdict, dict) and "approval" in verdict):
        return interception
    if record.decision == "asked-allow":
        kept = {name: value for name, value in verdict.items() if name == "warnings"}
        return {**interception, "verdict": {"decision": "allow", **kept}, "resolved_by": "approval"}
    return {**interception, "resolved_by": "rejection"} if record.answered_by else interception


def _skipped(hooks: Sequence[Skipped]) -> list[dict[str, str]]:
    return [
        {"source": hook.spec.source, "event": hook.spec.event, "command": hook.spec.target, "why": hook.why}
        for hook in hooks
    ]


def _head(session: Session | None) -> dict[str, object]:
    about = {} if session is None else {"session": session.id, "server": session.server}
    return {"v": VERSION, "time": _time(), **about}


def _redaction(settings: Settings) -> Redaction | None:
    if not (settings.audit_redact or settings.audit_redact_keys or settings.audit_secrets):
        return None
    from ..jsonrpc import redact

    return redact.of(settings.audit_redact, settings.audit_redact_keys, settings.audit_secrets)


def _masked(given: dict[str, bytes], masking: Masking) -> dict[str, object]:
    """Arguments without secrets, which rules have found some, how much is left out, and digests of the whole.

    There is no digest if somebody who reads the rest could find a short password by trying.
    """
    from .kept_arguments import kept

    shown = {name: kept(raw, masking) for name, raw in given.items()}
    members: dict[str, object] = {name: msgspec.Raw(masking.with_known(part.raw)) for name, part in shown.items()}
    if masking.rules:
        members["masked"] = sorted(masking.rules)
    if left_out := sum(part.left_out for part in shown.values()):
        members["left_out"] = left_out
    if not masking.guessable or left_out:
        members.update({f"{name}_sha256": _sha256(raw) for name, raw in given.items()})
    return members


def _redacted(
    members: dict[str, object],
    secrets: Removes,
    without: Collection[str] = frozenset(),
    *,
    with_digest: bool = True,
) -> dict[str, object]:
    """The members of a line with secrets replaced, in the agent's values as well as in texts of hooks and hookproxy.

    Members named in `without` stay. With a digest of the tool's name, an agent cannot hide which tool it called by an
    argument that it says is secret. It cannot choose what `[secrets]` finds, of which a digest would tell guesses.
    """

    def of(name: str, value: object) -> object:
        if isinstance(value, str):
            return _redacted_text(name, value, secrets)
        if isinstance(value, list):
            return [of(name, item) for item in value]
        if isinstance(value, dict):
            return of_members(value)
        return _redacted_json(name, value, secrets) if isinstance(value, msgspec.Raw) else value

    def of_members(members: dict[str, object]) -> dict[str, object]:
        return {
            name: value
            if (kind := type(value)) in _NUMBERS or (name in _UNCHANGED and kind is str)
            else of(name, value)
            for name, value in members.items()
        }

    line = {**members, **of_members({name: value for name, value in members.items() if name not in without})}
    if with_digest and line.get("tool") != (tool := members.get("tool")) and isinstance(tool, str):
        line["tool_sha256"] = _sha256(tool.encode(errors="replace"))
    return line


def _may_be_masked(members: Mapping[str, object], masking: Masking) -> bool:
    """False if no member has anything to mask: true of most lines."""
    try:
        raw = raw_json.encode({name: value for name, value in members.items() if name not in _KEPT_ARGUMENTS})
    except UnicodeEncodeError:
        return True
    return masking.may_find(raw)


def _redacted_text(name: str, text: str, secrets: Removes) -> str:
    if name in _CHOSEN_NAMES:
        return secrets.known_values(text)
    return text if name in _NOT_REDACTED else secrets.text(text)


def _redacted_json(name: str, raw: msgspec.Raw, secrets: Removes) -> msgspec.Raw:
    if name != "id":
        return msgspec.Raw(secrets.json(bytes(raw)))
    text = bytes(raw).decode()
    return raw if secrets.known_values(text) == text else msgspec.Raw(b'"[redacted]"')


def _documents(record: Record) -> list[bytes | bytearray]:
    """The JSON texts of a call that may hold secrets."""
    outputs = [run.result.stdout for run in record.hook_runs if 0 < len(run.result.stdout) <= TEXT_LIMIT]
    results = [raw for raw in (record.result_before, record.result_after) if len(raw) <= TEXT_LIMIT]
    watched = () if record.watched is None or record.watched.record is None else _documents(record.watched.record)
    return [record.arguments, record.final, *outputs, *results, *watched]


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
        if full and len(text) <= TEXT_LIMIT:
            members[name] = text.decode(errors="replace")
        else:
            members[f"{name}_sha256"] = _sha256(text)
    return members


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
