"""`hookproxy replay`: recorded calls on the hooks as they are configured now, to see what a change would change.

Exit status: 0 each call would be decided as it was; 1 some would not; 2 it could not be done, as where nothing that is
recorded can be replayed.

`--json` prints one document. A key is never taken away or given another meaning without another `v`; new ones may come.

    v            1
    differences  one object for each call that would be decided otherwise, in the order of the record:
      line, time, session, server, tool, id   as recorded; the line from 1
      before, after   decision ("allow", "deny", "asked-allow", "asked-deny"; "asked": a person would be), by and reason
                      in words, arguments: those that run; null where none do, or it is not known which
    status       the exit status
    replayed     how many calls were replayed, and of these
    differing    how many would be decided otherwise
    troubled     how many met a hook that failed
    digests      how many calls could not be replayed, for the record has a digest of their arguments alone
    undecided    … for they ended before they were decided
    limited      … for a limit refused them, which is about the times of calls
    unread       … or lines, for they cannot be read, or not by this hookproxy
    unread_lines the first 1000 of these: line, why
    notes        what else is to be known
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import to_builtins
from rich.text import Text

from ..audit.records import CallRecord, Entry, read
from ..audit.view import files
from ..config.load import Loaded, load
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, UserError
from ..trial.replay import Difference, Outcome, Replay, UnreadableLine
from ..trial.run import EVENTS_AFTER
from .common import add_sources, here, parser, show
from .hook_runtime import hooks_at_work, run
from .layout import as_json, count, diff, document, label, new_page, put, row, visible

if TYPE_CHECKING:
    import argparse
    from datetime import datetime

USAGE: Final = (
    "hookproxy replay AUDIT [--tool GLOB]... [--since WHEN] [--config FILE] [--hooks [DIALECT=]FILE]... [--json]"
)
VERSION: Final = 1
"""The number of the JSON document's format."""

_HEAD: Final = f'{{\n  "v": {VERSION},\n  "differences": ['
_MOST_UNREAD: Final = 1000  # lines named in the document: more say no more


def main(arguments: Sequence[str]) -> int:
    """Replay, and print what would be decided otherwise; gives the exit status."""
    chosen = options().parse_args(list(arguments))
    since = files.since(chosen.since, files.now()) if chosen.since is not None else None
    cwd = here()
    loaded = load(chosen.config, chosen.hooks, None, os.environ, cwd)
    for note in loaded.notes:
        sys.stderr.write(f"hookproxy: {note}\n")
    entries = _chosen(read(os.path.join(cwd, chosen.audit)), chosen.tool, since)
    writer = _ForPrograms() if chosen.json else _ForPeople()
    return run(partial(_replayed, loaded, entries, writer, cwd))


async def _replayed(loaded: Loaded, entries: Iterable[Entry], writer: _ForPeople | _ForPrograms, cwd: str) -> int:
    async with Replay(loaded, os.environ, cwd) as replay:
        finding = replay.over(entries)
        while True:
            with hooks_at_work():
                found = await anext(finding, None)
            if found is None:
                break
            writer.add(found)
    tally = replay.tally
    nothing = not tally.replayed and bool(tally.digests or tally.unread)
    status = EXIT_USER_ERROR if nothing else EXIT_FINDINGS if tally.differing else 0
    writer.end(replay, status, _notes(loaded))
    if nothing:
        raise UserError("no call could be replayed", 'a record with [audit] arguments = "full" can be')
    return status


def _notes(loaded: Loaded) -> list[str]:
    """What a replay leaves out."""
    specs = [spec for group in loaded.groups for spec in group.hooks]
    settings, notes = loaded.settings, []
    if not (specs or settings.allow or settings.ask or settings.deny or settings.limits):
        notes.append("no hook and no rule is configured: --config FILE or --hooks FILE names some")
    if any(spec.event in EVENTS_AFTER for spec in specs):
        notes.append("hooks after a call were not asked, for no result is recorded")
    if any(spec.background and spec.event not in EVENTS_AFTER for spec in specs):
        notes.append("hooks that nobody waits for were not run, for they decide nothing")
    return notes


# --- what is to be replayed ---


def options() -> argparse.ArgumentParser:
    """What its command line takes."""
    taken = parser(
        "replay",
        USAGE,
        "Run recorded calls through the hooks and rules that are configured now, and list every decision that would "
        "differ. The hooks for what comes before a call run for real, with all that they do beside judging; nothing "
        "is forwarded, asked or audited. Hooks after a call are not run, for no result is recorded. "
        "Exit status: 0 no difference, 1 some, 2 could not do it.",
    )
    taken.add_argument("audit", metavar="AUDIT", help="an audit file, which holds the arguments in full")
    taken.add_argument("--tool", metavar="GLOB", action="append", default=[], help="only these tools, as write_*")
    taken.add_argument("--since", metavar="WHEN", help="only calls since then: 2026-11-21, 2026-11-21T08:00, 7d, 2h")
    add_sources(taken)
    taken.add_argument("--json", action="store_true", help="one JSON document, for programs")
    return taken


def _chosen(entries: Iterable[Entry], tools: Sequence[str], since: datetime | None) -> Iterator[Entry]:
    """Without the calls that nobody asks for. One whose time cannot be read may be meant."""
    for entry in entries:
        if isinstance(entry, CallRecord):
            if tools and not any(fnmatchcase(entry.tool, pattern) for pattern in tools):
                continue
            if since and entry.at and entry.at < since:
                continue
        yield entry


# --- how it is shown ---


class _ForPeople:
    """A block for each thing, as it is found, and the sum."""

    def add(self, found: Difference | UnreadableLine) -> None:
        """One thing."""
        page = new_page()
        with page.capture() as shown:
            if isinstance(found, UnreadableLine):
                row(page, label("not read"), f"line {found.line}: {found.why}")
            else:
                record = found.record
                head = f"{record.tool} of {record.server}"
                rest = f"{record.time}, id {bytes(record.id).decode(errors='replace')}, line {record.line}"
                put(page, Text.assemble((visible(head, page), "bold"), "  ", visible(rest, page)))
                row(page, label("was"), _words(found.before))
                row(page, label("now"), _words(found.after), "bold")
                if found.before.arguments and found.after.arguments:
                    diff(page, "  arguments", found.before.arguments, found.after.arguments)
                else:
                    put(page, Text())
        show(shown.get())

    def end(self, replay: Replay, status: int, notes: Sequence[str]) -> None:
        """The sum."""
        page, tally = new_page(), replay.tally
        parts = [
            f"{count(tally.replayed, 'call')} replayed",
            f"{tally.differing or 'none'} would be decided otherwise",
            f"{tally.failed_hooks} met a hook that failed" if tally.failed_hooks else "",
            f"{tally.digests} recorded with a digest of the arguments alone" if tally.digests else "",
            f"{tally.undecided} recorded as never decided" if tally.undecided else "",
            f"{tally.limited} recorded as refused by a limit" if tally.limited else "",
            f"{count(tally.unread, 'line')} not read" if tally.unread else "",
        ]
        with page.capture() as shown:
            for note in notes:
                row(page, label("note"), note)
            put(page, Text(", ".join(part for part in parts if part), "bold red" if status else "bold"))
        show(shown.get())


def _words(judged: Outcome) -> str:
    by = f", by {judged.by}" if judged.by else ""
    reason = f": {judged.reason}" if judged.reason else ""
    return f"{judged.decision}{by}{reason}"


class _ForPrograms:
    """One document, written as it comes to be: there may be more differences than memory holds."""

    def __init__(self) -> None:
        self._unread: list[UnreadableLine] = []
        self._first = True

    def add(self, found: Difference | UnreadableLine) -> None:
        """One difference; lines that were not read come at the end."""
        if isinstance(found, UnreadableLine):
            if len(self._unread) < _MOST_UNREAD:
                self._unread.append(found)
            return
        record = found.record
        members = {
            **{name: getattr(record, name) for name in ("line", "time", "session", "server", "tool")},
            "id": as_json(bytes(record.id)),
            "before": _members(found.before),
            "after": _members(found.after),
        }
        show((f"{_HEAD}\n" if self._first else ",\n") + textwrap.indent(document(members).rstrip("\n"), "    "))
        self._first = False

    def end(self, replay: Replay, status: int, notes: Sequence[str]) -> None:
        """What stands after them."""
        rest = {
            "status": status,
            **to_builtins(replay.tally),
            "unread_lines": to_builtins(self._unread),
            "notes": notes,
        }
        show((f"{_HEAD}]" if self._first else "\n  ]") + "," + document(rest).removeprefix("{"))


def _members(judged: Outcome) -> dict[str, object]:
    return {
        "decision": judged.decision,
        "by": judged.by,
        "reason": judged.reason,
        "arguments": as_json(judged.arguments),
    }
