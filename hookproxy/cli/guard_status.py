"""`hookproxy guard status` and `guard stop`: the guard that runs now. Neither starts one.

Exit status: 0 it runs, or has ended; 1 `status`: none runs; 2 it cannot be asked.
`docs/json-output.md` describes the document of `--json`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import msgspec

from .. import __version__
from ..guard import controls
from ..guard.status import Status
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS
from . import guard_entries
from .common import show, tell
from .guard_entries import Entry
from .layout import Rows, new_page
from .options import Parser


def status_parser() -> Parser:
    """The parser of the command line after `guard status`."""
    parser = Parser(
        "guard status",
        "Show the guard that runs now: its process, version and configuration, the sessions that it knows, the events "
        "that it judges and the calls whose end it waits for. Exit status 1: none runs.",
    )
    parser.add_common("--json")
    return parser


def stop_parser() -> Parser:
    """The parser of the command line after `guard stop`."""
    return Parser(
        "guard stop",
        "End the guard as soon as it has answered the events that it judges now. The next event starts another one.",
    )


def show_status(arguments: Sequence[str], socket: str) -> int:
    """Print it. Returns the exit status. Raises UserError."""
    options = status_parser().parse_args(list(arguments))
    status = controls.ask(socket, "status")
    if options.json:
        members = {} if status is None else msgspec.to_builtins(status)
        known: dict[str, object] = {"v": 1, "running": status is not None, "socket": socket}
        known |= {"installed_version": __version__, "entries": [_members(entry) for entry in guard_entries.recorded()]}
        show(json.dumps(known | members, indent=2) + "\n")
    else:
        page = new_page()
        if status is not None:
            page.section("the guard", _rows(status))
        page.section("entries in agents' hook files", _entry_rows())
        show(page.text)
        if status is None:
            tell("no guard runs: the next event of an agent starts one", prefix="")
    return 0 if status is not None else EXIT_FINDINGS


def stop(arguments: Sequence[str], socket: str) -> int:
    """End it. Returns the exit status. Raises UserError."""
    stop_parser().parse_args(list(arguments))
    status = controls.ask(socket, "stop")
    tell("no guard runs" if status is None else f"the guard ends: process {status.pid}", prefix="")
    return 0


def _members(entry: Entry) -> dict[str, object]:
    return {"agent": entry.agent, "path": entry.path, "fails_closed": entry.fails_closed}


def _entry_rows() -> Rows:
    for entry in guard_entries.recorded():
        away = "calls are refused" if entry.fails_closed else "the agent decides"
        yield entry.agent, f"{entry.path}: if no guard answers, {away}"


def _rows(status: Status) -> Rows:
    yield "process", f"{status.pid}, since {datetime.fromtimestamp(status.since):%Y-%m-%d %H:%M:%S}"
    other = f"; {__version__} is installed, and the next event starts it" if status.version != __version__ else ""
    yield "version", f"{status.version}{other}"
    yield "config", status.config or "none"
    if status.problem:
        yield "problem", f"nothing is judged: {status.problem}"
    if status.fails_closed:
        yield "closed", "calls that no guard can judge are refused, by entries that are installed now"
    if status.idle_seconds:
        yield "ends", f"after {status.idle_seconds:g} seconds without an event"
    yield "events", f"{counted(status.clients, 'event')} judged now, {counted(status.open_calls, 'call')} not ended yet"
    for session in status.sessions:
        yield "session", f"{session.agent} {session.session}"
