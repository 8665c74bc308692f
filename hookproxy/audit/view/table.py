"""Records as lines for people: one row for each call, and below it its arguments and its hooks' verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style

from ...model.errors import printable
from ..records import BadLine, CallRecord, Entry, HookRun, NoteRecord

_ELLIPSIS: Final = "…"


class Screen(msgspec.Struct, frozen=True):
    """The screen, or other output, that something is shown on."""

    width: int
    """Columns; 0 if lines may have any length, as in a file."""
    encoding: str
    paint: Callable[[str, str], str]
    """Renders a text in a style; returns the text itself without colours."""

    def visible(self, text: str) -> str:
        """The text on one line, with control characters escaped: whoever calls a tool may choose it."""
        return printable(text).encode(self.encoding, "backslashreplace").decode(self.encoding)

    def symbol(self, sign: str, ascii_text: str) -> str:
        """The character `sign` if the encoding has it, else `ascii_text`."""
        try:
            sign.encode(self.encoding)
        except UnicodeEncodeError:
            return ascii_text
        return sign

    def fitted(self, text: str, width: int) -> str:
        """The visible text, cut or padded to exactly so many columns."""
        return set_cell_size(self.cut(text, width), width)

    def cut(self, text: str, width: int) -> str:
        """The visible text, cut to so many columns."""
        shown = self.visible(text)
        if cell_len(shown) <= width:
            return shown
        end = self.symbol(_ELLIPSIS, "...")
        return set_cell_size(shown, max(width - len(end), 0)).rstrip() + end


def screen() -> Screen:
    """Our standard output: its width and colours if it is a terminal; NO_COLOR is respected.

    For rich, FORCE_COLOR makes a terminal of everything: a pipe would get cut lines.
    """
    console = Console(highlight=False)
    is_terminal = console.is_terminal and console.file.isatty()
    coloured = is_terminal and console.color_system is not None and not console.no_color

    def paint(text: str, style: str) -> str:
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if coloured and style else text

    return Screen(console.width if is_terminal else 0, console.encoding, paint)


_TIME: Final = 19  # columns: 2026-11-21 16:50:01
_DECISION: Final = 11  # asked-allow
_RESULT: Final = 9  # cancelled
_MS: Final = 7
_ID: Final = 9  # a3f09c-17; a longer one is not cut, because it is to be copied
_WIDE: Final = 100  # columns: a narrower screen has no room for MS
_MOST_MS: Final = 9_999_999  # milliseconds that fit the column: nearly three hours
_BEFORE_TOOL: Final = _TIME + _DECISION + _RESULT + _ID + 4 * 2
_INDENT: Final = "    "
_LONGEST: Final = 2000  # characters of a line below a row, if the screen has no width; `--json` shows all

_STYLES: Final = {"allow": "green", "asked-allow": "green", "deny": "bold red", "asked-deny": "bold red"}
_RESULTS: Final = {"error": "yellow", "lost": "yellow", "cancelled": "yellow"}


def header(screen: Screen) -> str:
    """The table's header."""
    ms = f"{'MS':>{_MS}}  " if _has_ms(screen) else ""
    names = f"{'TIME':{_TIME}}  {'DECISION':{_DECISION}}  {'RESULT':{_RESULT}}  {ms}{'CALL':{_ID}}  TOOL"
    return screen.paint(names, "bold")


def rows(entry: Entry, screen: Screen, own_writer: tuple[str, str]) -> Iterator[str]:
    """The lines for one record, without line feeds. Writers other than `own_writer` (user, host) are named."""
    if isinstance(entry, CallRecord):
        yield _call(entry, screen)
        if entry.monitor is not None and (would := entry.monitor.sentence):
            yield screen.paint(_INDENT + _cut(f"only watched: {would}", screen), "yellow")
        for text, style in _below(entry, own_writer):
            yield screen.paint(_INDENT + _cut(text, screen), style)
    elif isinstance(entry, NoteRecord):
        time = screen.fitted(time_of(entry), _TIME)
        note = f"{entry.server}: {entry.note}" if entry.server else entry.note
        yield screen.paint(f"{time}  {_cut(note, screen, _TIME + 2)}", "dim")
    else:
        assert isinstance(entry, BadLine), entry


def _call(entry: CallRecord, screen: Screen) -> str:
    decision = screen.paint(screen.fitted(entry.decision or "none", _DECISION), _STYLES.get(entry.decision, ""))
    result = screen.paint(screen.fitted(entry.result, _RESULT), _RESULTS.get(entry.result, ""))
    ms = f"{min(entry.ms, _MOST_MS):>{_MS}.0f}  " if _has_ms(screen) else ""
    call = screen.visible(entry.call).ljust(_ID)
    tool = _cut(entry.full_name, screen, _BEFORE_TOOL + len(ms) + len(call) - _ID)
    time = screen.fitted(time_of(entry), _TIME)
    return f"{time}  {decision}  {result}  {ms}{screen.paint(call, 'dim')}  {screen.paint(tool, 'bold')}"


def _has_ms(screen: Screen) -> bool:
    return not screen.width or screen.width >= _WIDE


def _below(entry: CallRecord, own_writer: tuple[str, str]) -> Iterator[tuple[str, str]]:
    if entry.arguments:
        yield _json(entry.arguments), "dim"
    if entry.rewritten:
        yield f"ran with {_json(entry.rewritten)}", "cyan"
    reason_shown = False
    for run in entry.hooks:
        if run.verdict not in ("", "none"):
            reason_shown = reason_shown or run.reason == entry.reason
            yield _hook_line(run), "red" if run.verdict in ("deny", "trouble") else ""
    if entry.result == "refused" and (text := refusal_text(entry, with_reason=not reason_shown)):
        yield text, ""
    elif entry.reason and not reason_shown:
        yield entry.why, ""
    writer = (entry.user or own_writer[0], entry.host or own_writer[1])
    if writer != own_writer:
        yield f"{writer[0]} on {writer[1]}" + (f", {entry.agent}" if entry.agent else ""), "dim"


_CAUSES: Final = {
    "ask denied": "it needs a person's approval, and on_ask is deny",
    "cannot ask": "the agent cannot ask the person, and nobody else could be asked (on_ask_fallback)",
    "declined": "the person said no",
    "not answered": "nobody answered, or not in time",
    "audit": "the audit log could not be written",
    "stopped": "a hook stopped all calls",
}
"""What is shown for a cause of a refusal; for other causes, the reason says it."""


def refusal_text(entry: CallRecord, *, with_reason: bool = True) -> str:
    """Who refused the call, where that is configured, and why; empty if the record does not say more than a hook."""
    parts = [_CAUSES.get(entry.cause, "")]
    if with_reason or entry.place:
        parts.insert(0, f"{entry.by} ({entry.place})" if entry.place else entry.by)
        parts.append(entry.reason)
    return ": ".join(part for part in parts if part)


def _hook_line(run: HookRun) -> str:
    texts = [run.reason] if run.reason else [*run.feedback, *run.messages]
    return f"{run.verdict_word}: {run.command}" + (f": {' '.join(texts)}" if texts else "")


def _json(raw: object) -> str:
    return bytes(memoryview(raw)[: 4 * _LONGEST]).decode(errors="replace")  # type: ignore[arg-type]  # msgspec.Raw is a buffer


def _cut(text: str, screen: Screen, column: int = len(_INDENT)) -> str:
    """The text, cut to the room from this column on."""
    if not screen.width:
        return screen.visible(text) if len(text) <= _LONGEST else screen.visible(text[:_LONGEST]) + "..."
    return screen.cut(text[:_LONGEST], max(screen.width - column, 10))


def time_of(entry: CallRecord | NoteRecord) -> str:
    """The record's time in this machine's time zone."""
    try:
        return entry.at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if entry.at else entry.time
    except (OverflowError, ValueError):  # in the first or last year that datetime knows
        return entry.time
