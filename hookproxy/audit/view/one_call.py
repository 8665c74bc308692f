"""One call of an audit file as text for people: its decision, its hooks, and what they changed."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from ...flow.sentences import drawn
from ...model.errors import UserError
from ..records import CallRecord, HookRun, Monitor, joined
from .table import Screen, refusal_text, time_of

_LONGEST: Final = 100_000  # characters of one text: as much as a terminal keeps
_LISTED: Final = 5  # ids in an error message
_LABEL: Final = 11  # columns of the names on the left
_NARROWEST: Final = 30  # columns for a text, however narrow the screen is
_DIFF_HEADER: Final = 2  # lines of a unified diff that name files


def find(records: Iterable[CallRecord], call: str, path: str) -> list[CallRecord]:
    """The records of the call with this id, or whose id begins so. Raises UserError if there is none, or several."""
    by_key: dict[tuple[str, str, int], list[CallRecord]] = {}
    for record in records:
        if record.call.startswith(call):
            by_key.setdefault(record.key, []).append(record)
    exact = {key: lines for key, lines in by_key.items() if key[0] == call} or by_key
    if not exact:
        raise UserError(f"{path}: there is no call {call!r}", "`hookproxy audit` lists the calls with their ids")
    if len(exact) > 1:
        ids = list(dict.fromkeys(key[0] for key in exact))
        if len(ids) == 1:
            sessions = ", ".join(dict.fromkeys(key[1] for key in exact))
            raise UserError(f"{path}: several sessions have a call {call!r}", f"add --session: {sessions}")
        more = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
        raise UserError(f"{path}: {call!r} may be several calls", f"name one: {', '.join(ids[:_LISTED])}{more}")
    (lines,) = exact.values()
    return [record for record in joined(lines) if isinstance(record, CallRecord)]


def text_of(records: Sequence[CallRecord], screen: Screen) -> Iterator[str]:
    """The lines about a call, without line feeds. A call that ran as a task has several records."""
    for number, record in enumerate(records):
        if number:
            yield ""
        yield from _text(record, screen)


def _text(record: CallRecord, screen: Screen) -> Iterator[str]:
    visible = screen.visible
    yield screen.paint(visible(record.full_name), "bold")
    rows = [
        ("call", record.call),
        ("time", f"{time_of(record)} ({record.ms:.0f} ms, hooks {record.hook_ms:.0f} ms)"),
        ("session", record.session),
        ("agent", record.agent),
        ("by", f"{record.user} on {record.host}, process {record.pid}"),
        ("alias", record.alias),
        ("id", bytes(record.id).decode(errors="replace")),
        ("decision", record.decision or "none: the call ended before"),
        ("refused", refusal_text(record) if record.result == "refused" else ""),
        ("reason", record.reason if record.result != "refused" else ""),
        ("exceeds", ", ".join(record.exceeds)),
        ("labels", ", ".join(record.labels)),
        ("asked by", record.asked_by),
        ("answered", f"{record.answered}, with other arguments" if record.edited else record.answered),
        ("result", _RESULTS.get(record.result, record.result)),
        ("repeats", str(record.repeats) if record.repeats else ""),
    ]
    yield from _facts(rows, screen)
    for chain in record.chains:
        yield ""
        yield screen.paint("would carry" if record.result == "refused" else "carried", "bold")
        yield from (f"  {visible(line)}" for line in drawn(chain, screen.symbol("└▶", "->")))
    yield from _arguments(record, screen)
    for run in record.hooks:
        yield ""
        yield from _hook(run, screen)
    if not record.hooks:
        yield ""
        yield "no hook ran"
    if record.skipped:
        yield ""
        yield screen.paint("not run", "bold")
        for hook in record.skipped:
            yield visible(f"  {hook.event} {hook.command} ({hook.source}): {hook.why}")
    yield from _result(record, screen)
    if record.monitor is not None:
        yield from _monitor(record.monitor, screen)


def _monitor(watched: Monitor, screen: Screen) -> Iterator[str]:
    """What a policy would have done that is only watched."""
    yield ""
    yield screen.paint("only watched", "bold") + (f" ({screen.visible(watched.policy)})" if watched.policy else "")
    rows = [
        ("changed", watched.sentence or "nothing would have been changed"),
        ("decision", watched.decision or "none: the call ended before"),
        ("place", watched.place),
    ]
    yield from _facts(rows, screen)
    if after := _pretty(bytes(watched.rewritten)):
        yield screen.paint("arguments, as they would have been forwarded", "bold")
        yield from _indented(after, screen)
    for run in watched.hooks:
        yield ""
        yield from _hook(run, screen)


_RESULTS: Final = {
    "sent": "sent: the call was forwarded, and its response was not read",
    "begun": "begun: the call was forwarded, and its end is not recorded: hookproxy was stopped",
    "pending": "pending: the call goes on in further requests",
    "lost": "lost: the server exited before it answered",
}


def _facts(rows: Iterable[tuple[str, str]], screen: Screen, indent: str = "") -> Iterator[str]:
    """Names with their values; those without a value are left out."""
    for name, value in rows:
        before = f"{indent}{name.ljust(_LABEL)}"
        for number, line in enumerate(_broken(screen.visible(value), screen.width, len(before)) if value else ()):
            yield f"{indent}{screen.paint(name.ljust(_LABEL), 'dim')}{line}" if not number else " " * len(before) + line


def _broken(text: str, width: int, column: int) -> list[str]:
    """The text in lines that fit the screen from this column on, broken between words; without a width in one."""
    room = max(width - column, _NARROWEST)
    if not width or len(text) <= room:
        return [text]
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)


def _arguments(record: CallRecord, screen: Screen) -> Iterator[str]:
    before, after = _pretty(bytes(record.arguments)), _pretty(bytes(record.rewritten))
    yield from _partial(record, screen)
    if before and after:
        yield screen.paint("arguments, as the agent sent them and as they were forwarded", "bold")
        yield from _diff(before, after, screen)
    elif before:
        yield screen.paint("arguments", "bold")
        yield from _indented(before, screen)
    else:
        changed = f", rewritten to {record.rewritten_sha256}" if record.rewritten_sha256 else ""
        yield screen.paint("arguments", "bold") + " (digests only)"
        yield screen.visible(f"  SHA-256 {record.arguments_sha256}{changed}")


def _partial(record: CallRecord, screen: Screen) -> Iterator[str]:
    """An empty line, with what is not recorded of the arguments behind it."""
    yield ""
    if record.masked:
        text = f"masked: {', '.join(record.masked)}"
        yield screen.paint(screen.visible(text), "dim")
    if record.left_out:
        yield screen.paint(f"left out: {record.left_out:,} bytes of the arguments", "dim")
    if record.is_partial and (digest := record.arguments_sha256):
        yield screen.paint(screen.visible(f"SHA-256 of all arguments: {digest}"), "dim")


def _hook(run: HookRun, screen: Screen) -> Iterator[str]:
    yield screen.paint(screen.visible(f"{run.event} hook {run.command}"), "bold")
    verdict = run.verdict_word
    rows = [
        ("source", f"{run.source} ({run.dialect})"),
        ("saw", run.tool_name),
        ("ended", f"{run.how_it_ended} after {run.ms:.0f} ms"),
        ("verdict", f"{verdict}: {run.reason}" if run.reason else verdict),
    ]
    rows += [("feedback", text) for text in run.feedback] + [("message", text) for text in run.messages]
    rows += [("problem", text) for text in run.unread]
    yield from _facts(rows, screen, "  ")
    for name, text, digest in (
        ("got", run.input, run.input_sha256),
        ("printed", run.stdout, run.stdout_sha256),
        ("on standard error", run.stderr, ""),
    ):
        if text:
            yield f"  {screen.paint(name, 'dim')}"
            yield from _indented(_pretty(text.encode()) if name != "on standard error" else text, screen, "    ")
        elif digest:
            yield from _facts([(name, f"SHA-256 {digest}")], screen, "  ")


def _result(record: CallRecord, screen: Screen) -> Iterator[str]:
    if "result" not in record.changed:
        return
    yield ""
    if record.result_before and record.result_after:
        yield screen.paint("response, of the server and as the agent got it", "bold")
        yield from _diff(_pretty(record.result_before.encode()), _pretty(record.result_after.encode()), screen)
    else:
        yield screen.paint("response", "bold") + " (changed by hooks; digests only)"
        yield screen.visible(f"  SHA-256 {record.result_before_sha256}, changed to {record.result_after_sha256}")


def _pretty(raw: bytes) -> str:
    """JSON over many lines, with numbers as they are spelled; text that is not JSON stays as it is."""
    try:
        return msgspec.json.format(raw, indent=2).decode(errors="replace") if raw else ""
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return raw.decode(errors="replace")


def _diff(before: str, after: str, screen: Screen) -> Iterator[str]:
    lines = difflib.unified_diff(before[:_LONGEST].splitlines(), after[:_LONGEST].splitlines(), lineterm="", n=3)
    for number, line in enumerate(lines):
        if line.startswith("@@"):
            yield "  ..."
        elif number >= _DIFF_HEADER:
            style = {"-": "red", "+": "green"}.get(line[:1], "")
            yield screen.paint(f"  {screen.visible(line)}", style)


def _indented(text: str, screen: Screen, indent: str = "  ") -> Iterator[str]:
    for line in text[:_LONGEST].splitlines():
        yield from (indent + part for part in _broken(screen.visible(line), screen.width, len(indent)))
    if len(text) > _LONGEST:
        yield f"{indent}... and {len(text) - _LONGEST} more characters: see --json"
