"""`hookproxy guard install` and `guard uninstall`: the entries in agents' hook files that start the guard's client.

Exit status: 0 it is done; 1 some agents' files stay as they are; 2 nothing was done.
"""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from ..config.load import load
from ..dialects.agent_side import AgentSide, agent_side, names
from ..dialects.shared.hook_file import suggestion
from ..files.create import remove_empty
from ..guard import entries
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, UserError
from ..trust.sources import state_folder
from ..wrapping import files, hook_entries, undo, written
from ..wrapping.diff import unified
from ..wrapping.files import Snapshot
from ..wrapping.syntax_tree import Edit, apply_edits
from . import guard_entries, guard_service, wrap
from .common import create, show_line, tell, working_directory
from .guard_entries import Unjudged
from .layout import shortened
from .options import Parser

_LONGEST_SOCKET: Final = 103  # bytes, on a Mac; 107 on Linux


class Change(Struct, frozen=True):
    """A hook file that is to get the guard's entries."""

    path: str
    text: str
    """Its whole text, if it is new."""
    snapshot: Snapshot | None = None
    edits: tuple[Edit, ...] = ()


def install_parser() -> Parser:
    """The parser of the command line after `guard install`."""
    parser = Parser(
        "guard install",
        "Put an entry for each event into the hook file of an agent, so that the guard judges the agent's own tools. "
        "What else is in the file stays as it is.",
    )
    parser.add_argument("agents", metavar="AGENT", nargs="+", help=f"one of {', '.join(names())}")
    closed = parser.add_mutually_exclusive_group()
    closed.add_argument(
        "--fail-closed",
        action="store_true",
        default=None,
        help="refuse calls that the guard cannot judge (default: as [guard] fail_closed says, which is true)",
    )
    closed.add_argument(
        "--no-fail-closed",
        dest="fail_closed",
        action="store_false",
        help="let the agent decide about calls that the guard cannot judge: most let them go on",
    )
    parser.add_argument(
        "--service", action="store_true", help="also let systemd or launchd start the guard, as a service of your own"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_common("--verbose")
    return parser


def uninstall_parser() -> Parser:
    """The parser of the command line after `guard uninstall`."""
    parser = Parser("guard uninstall", "Take the guard's entries out of agents' hook files again, byte for byte.")
    parser.add_argument("agents", metavar="AGENT", nargs="*", help=f"one of {', '.join(names())}")
    parser.add_argument("--all", action="store_true", help="of all agents")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_common("--verbose")
    return parser


def install(arguments: Sequence[str], socket: str) -> int:
    """Write the entries. Returns the exit status."""
    options = install_parser().parse_args(list(arguments))
    sides = [_side(name) for name in options.agents]
    unjudged = without_guard(options.fail_closed)
    service = guard_service.texts_of(socket) if options.service else {}
    failed = 0
    _tell_of_owner(options.agents)
    with shortened(verbose=options.verbose, end=0):
        for side in sides:
            try:
                _install(side, command_line(side, socket, unjudged), options)
                tell(f"{side.name}: {guard_entries.if_none_judges(side.name, unjudged)}", prefix="")
                tell(*guard_entries.limits(side), prefix="")
            except UserError as error:
                if len(sides) == 1:
                    raise
                failed += 1
                wrap.report_error(error)
        if options.dry_run:
            for path, text in service.items():
                _show(Change(path, text))
    if service and not options.dry_run:
        guard_service.install(service, socket)
    if failed == len(sides) and not service:
        return EXIT_USER_ERROR
    return EXIT_FINDINGS if failed else 0


def _tell_of_owner(agents: Sequence[str]) -> None:
    if other := guard_entries.other_owner():
        what = f"hookproxy: the home folder belongs to {other}, whose agents cannot use what root writes there"
        tell(f"{what}; sudo -u {other} -H hookproxy guard install {' '.join(agents)}", prefix="")


def _install(side: AgentSide, line: str, options: Namespace) -> None:
    """Write the entries of one agent. Raises UserError."""
    if _take_out_former(side, line, options) and options.dry_run:
        tell(f"{side.name}: and then the entries are written anew", prefix="")
        return
    for change in [*changes(side, line)]:
        _show(change) if options.dry_run else write(change)


def uninstall(arguments: Sequence[str]) -> int:
    """Take the entries out. Returns the exit status."""
    options = uninstall_parser().parse_args(list(arguments))
    if bool(options.agents) == options.all:
        raise UserError("name agents, or all of them", "hookproxy guard uninstall AGENT… or --all")
    sides = [_side(name) for name in (names() if options.all else options.agents)]
    state, record = _record()
    failed, done = _report_unrecorded(record, sides), list[str]()
    if options.all and not options.dry_run:
        done += guard_service.uninstall(record)
    with shortened(verbose=options.verbose, end=0):
        for path in dict.fromkeys(path for side in sides for path in guard_entries.paths(side)):
            if path not in record.inserted and path not in record.created:
                continue
            try:
                _take_out(path, record, options)
                done.append(path)
            except UserError as error:
                failed = True
                wrap.report_error(error)
    if not options.dry_run and done:
        remove_empty(record.folders)
        written.update(state, lambda now: now.without(done))
        remove_empty([*record.folders, state])
    if not (done or failed):
        tell("no hook file of these agents has entries of the guard")
    return EXIT_FINDINGS if failed else 0


def _report_unrecorded(record: written.Written, sides: Sequence[AgentSide]) -> bool:
    """Report the files that must stay as they are. Returns whether there are any."""
    errors = [*guard_entries.unrecorded(record, sides)]
    for error in errors:
        wrap.report_error(error)
    return bool(errors)


def command_line(side: AgentSide, socket: str, unjudged: Unjudged) -> str:
    """The command line of this agent's entries. Raises UserError."""
    if len(os.fsencode(socket)) > _LONGEST_SOCKET:
        raise UserError(f"{socket}: the path is too long for a socket", "set XDG_STATE_HOME to a shorter one")
    program = guard_entries.program_path()
    fails_closed = unjudged is not Unjudged.AGENT_DECIDES
    return entries.command(side, socket, program, entries.places(os.environ), fails_closed=fails_closed)


def without_guard(closed: bool | None) -> Unjudged:
    """What an option says of calls that no guard can judge; None: what the configuration says. Raises UserError."""
    loaded = load(None, [], None, os.environ, working_directory())
    if loaded.managed is not None:
        return Unjudged.MANAGED
    closed = loaded.settings.guard_fail_closed if closed is None else closed
    return Unjudged.REFUSED if closed else Unjudged.AGENT_DECIDES


def _side(name: str) -> AgentSide:
    side = agent_side(name)
    if side is None:
        hint = suggestion(name, names()) or f"expected one of {', '.join(names())}"
        raise UserError(f"{name!r} is not an agent whose hooks can ask the guard", hint)
    return side


def changes(side: AgentSide, line: str) -> Iterator[Change]:
    """What must change in the agent's files so that they have these entries. Raises UserError."""
    for path, text in guard_entries.texts(side, line).items():
        if not os.path.lexists(path):
            yield Change(path, text)
            continue
        snapshot = files.read(path)
        if present := guard_entries.found_in([path]):
            if _has(snapshot.text, line):
                tell(f"{path}: has these entries already", prefix="")
                continue
            if any(entry.agent in side.also_reads for entry in present):
                tell(f"{path}: has entries already that {side.name} runs, too", prefix="")
                continue
            hint = "take these entries out by hand, and then install them anew"
            raise UserError(f"{path} has other entries of the guard, which hookproxy did not write", hint)
        yield Change(path, "", snapshot, tuple(hook_entries.insertions(path, snapshot.text, text)))


def _take_out_former(side: AgentSide, line: str, options: Namespace) -> bool:
    """Take out what an older hookproxy has written into the agent's files. Returns whether it has. Raises UserError."""
    state, record = _record()
    former = [
        path
        for path in guard_entries.paths(side)
        if (path in record.inserted or path in record.created)
        and any(entry.agent == side.name for entry in guard_entries.found_in([path]))
        and not _has(files.read(path).text, line)
    ]
    for path in former:
        _take_out(path, record, options)
    if former and not options.dry_run:
        written.update(state, lambda now: now.without(former))
    return bool(former)


def _record() -> tuple[str, written.Written]:
    state = state_folder(os.environ, os.path.expanduser("~"))
    return state, written.read(state) if state else written.Written()


def _has(text: str, line: str) -> bool:
    return line in text or _escaped(line) in text


def _escaped(line: str) -> str:
    return json.dumps(line, ensure_ascii=False)[1:-1]


def _show(change: Change) -> None:
    before = change.snapshot.text if change.snapshot else ""
    edits = change.edits if change.snapshot else (Edit(0, 0, change.text),)
    wrap.show_lines(unified(change.path, before, list(edits)))


def write(change: Change) -> None:
    """Change the file, and record it. Raises UserError; then it is unchanged."""
    if change.snapshot is None:
        folders = create({change.path: change.text}, "try again")  # it was not there a moment ago
        wrap.remember(lambda record: record.with_created({change.path: change.text}, folders), "rm", change.path)
        show_line(f"{change.path}: written")
        return
    backup = files.replace(change.snapshot, apply_edits(change.snapshot.text, change.edits))

    def record(now: written.Written) -> written.Written:
        for edit in change.edits:
            now = now.with_inserted(change.path, edit.text)
        return now

    wrap.remember(record, "mv", backup, change.path)
    show_line(f"{change.path}: entries added; backup: {backup}")


def _take_out(path: str, record: written.Written, options: Namespace) -> None:
    restored = undo.restore(path, record)
    if restored is None:
        return
    if options.dry_run:
        before = restored.snapshot.text
        wrap.show_lines(unified(path, before, [Edit(0, len(before), restored.text or "")]))
        return
    show_line(undo.undo(restored))
    if backup := undo.needless_backup(path):
        os.unlink(backup)
