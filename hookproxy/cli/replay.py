"""`hookproxy replay`: runs recorded calls through the hooks as they are configured now, and shows what would differ.

Exit status: 0 every call would be decided as recorded; 1 some would be decided differently; 2 the replay failed, for
example because no recorded call can be replayed; 4 no policy is loaded.
`docs/json-output.md` describes the document of `--json`.
"""

from __future__ import annotations

import os
import textwrap
import uuid
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import to_builtins

from ..audit.records import CallRecord, Entry, open_file, read
from ..audit.view import files
from ..config.load import Loaded, make_data_folders
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, UserError
from ..trial.replay import (
    Difference,
    NotAdmitted,
    Outcome,
    RecordedSession,
    Replay,
    SessionOf,
    Tally,
    UnreadableLine,
    same_for_all,
)  # fmt: skip
from ..trial.run import EVENTS_AFTER
from .agent_entry import use_entry
from .common import load_named, show, tell, working_directory
from .hook_runtime import redirected_output, run_until_done
from .layout import MOST_LINES, as_json, diff, document, label, new_page
from .offline import gateway_named, groups_named, policy_at, require_policy, server_named
from .options import ENTRY_OPTIONS, GATEWAY_OPTIONS, HOOK_OPTIONS, Parser
from .progress import waiting

if TYPE_CHECKING:
    from datetime import datetime

    from ..config.gateway import GatewayConfig

VERSION: Final = 1
"""The number of the JSON document's format."""

_HEAD: Final = f'{{\n  "v": {VERSION},\n  "differences": ['
_SUMMARY_LINES: Final = 6  # on a terminal: the notes and the last line
_MAX_NAMED: Final = 5  # calls with masked arguments: `--json` names more
_MAX_UNREAD_LINES: Final = 1000  # named in the document: more would not help anybody


def main(arguments: Sequence[str]) -> int:
    """Replay the calls and print what would be decided differently. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    since = files.since(options.since, files.now()) if options.since is not None else None
    cwd = working_directory()
    audit = os.path.join(cwd, options.audit)
    if not os.path.lexists(audit):
        open_file(audit).close()  # it raises, before anything is said about policies
    entry = use_entry(options, cwd)
    session_of, policies = _sessions(options, entry.cwd if entry else cwd)
    require_policy(policies, "to replay with")
    for loaded in policies:
        tell(*loaded.notes, *loaded.remarks, *make_data_folders(loaded))
    entries = _filtered(read(audit), options.tool, since)
    output = _JsonOutput() if options.json else _TextOutput(all_lines=options.verbose)
    return run_until_done(partial(_replay, session_of, entries, output, _notes(policies)))


def _sessions(options: Namespace, cwd: str) -> tuple[SessionOf, Sequence[Loaded]]:
    """What judges each recorded call, and all policies that may. Raises UserError."""
    config = gateway_named(options, cwd)
    if config is None:
        loaded = load_named(options, cwd)
        loaded = loaded.as_if_enforced if options.watched else loaded
        return same_for_all(loaded, os.environ, cwd), [loaded]
    from ..gateway import hooks_account

    hooks_account.use(config)
    groups_named(options)
    servers = config.servers.values() if options.server is None else [server_named(options, config)]
    return partial(_session_at_gateway, config, options), [
        server.loaded.as_if_enforced if options.watched else server.loaded for server in servers
    ]


def _session_at_gateway(config: GatewayConfig, options: Namespace, record: CallRecord) -> RecordedSession:
    """What the gateway would judge this call by: of its user at its server, unless the options name others."""
    name, user = options.server or record.server, options.user or record.user
    server = config.servers.get(name)
    if server is None:
        raise NotAdmitted(f"{config.path} has no server {name}")
    if not user:
        raise UserError("no user is recorded, so it was not a call at a gateway", "name one: --user NAME")
    from ..gateway.identities import identities

    identity = identities(config, user, groups_named(options))[0]
    if config.closed:
        raise NotAdmitted(f"nothing may pass: {config.closed}")
    if not server.allows(identity.principal):
        raise NotAdmitted(f"servers.{name}.allow of {config.path} leaves out {user}")
    policy = policy_at(server, identity)
    loaded = policy.loaded.as_if_enforced if options.watched else policy.loaded
    return RecordedSession(loaded, policy.environ, policy.session(str(uuid.uuid4()), name, server.cwd))


async def _replay(
    session_of: SessionOf, entries: Iterable[Entry], output: _TextOutput | _JsonOutput, notes: Sequence[str]
) -> int:
    async with Replay(session_of) as replay:
        results = replay.over(entries)
        while True:
            with waiting(f"the hooks of call {replay.tally.replayed + 1}"), redirected_output():
                result = await anext(results, None)
            if result is None:
                break
            output.add(result)
    tally = replay.tally
    impossible = not tally.replayed and bool(tally.digests or tally.unread)
    status = EXIT_USER_ERROR if impossible else EXIT_FINDINGS if tally.differing else 0
    output.end(replay, status, notes)
    if impossible:
        raise UserError(
            "no call could be replayed", 'record the arguments: [audit] arguments = "masked", the default, or "full"'
        )
    return status


def _notes(policies: Sequence[Loaded]) -> list[str]:
    """What the replay leaves out."""
    specs = [spec for loaded in policies for group in loaded.groups for spec in group.hooks]
    notes = []
    if any(loaded.watched for loaded in policies):
        notes.append("what is only watched was not replayed: --watched replays it as if it were in force")
    if any(spec.event in EVENTS_AFTER for spec in specs):
        notes.append("hooks after a call were not run, because results are not recorded")
    if any(spec.background and spec.event not in EVENTS_AFTER for spec in specs):
        notes.append("background hooks were not run, because they decide nothing")
    return notes


# --- the command line ---


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "replay",
        "Run recorded calls through the hooks and rules that are configured now, and list every decision that would "
        "differ. Hooks for events before a call run for real, with all their side effects. No call is forwarded, "
        "no person is asked, and nothing is audited. Hooks after a call are not run, because results are not recorded. "
        "Exit status: 0 no difference, 1 differences, 2 the replay failed, 4 no policy is loaded.",
    )
    parser.add_argument("audit", metavar="AUDIT", help="an audit file that has the arguments of calls")
    parser.add_argument(
        "--tool", metavar="GLOB", action="append", default=[], help="only calls of these tools, for example write_*"
    )
    parser.add_argument("--since", metavar="WHEN", help="only calls since then: 2026-11-21, 2026-11-21T08:00, 7d, 2h")
    parser.add_argument(
        "--watched", action="store_true", help='replay what is only watched (mode = "monitor") as if it were in force'
    )
    parser.add_common(*HOOK_OPTIONS, *ENTRY_OPTIONS, *GATEWAY_OPTIONS)
    parser.add_argument("--verbose", action="store_true", help="on a terminal, show all that would differ")
    parser.add_common("--json")
    return parser


def _filtered(entries: Iterable[Entry], tools: Sequence[str], since: datetime | None) -> Iterator[Entry]:
    """The entries without calls of other tools or earlier times. A call with an unreadable time is kept."""
    for entry in entries:
        if isinstance(entry, CallRecord):
            if tools and not any(fnmatchcase(entry.tool, pattern) for pattern in tools):
                continue
            if since and entry.at and entry.at < since:
                continue
        yield entry


# --- the output ---


class _TextOutput:
    """For people: a block for each difference or unread line, as it is found, and a summary.

    On a terminal, blocks for which there is no room are only counted, unless all lines are wanted.
    """

    def __init__(self, *, all_lines: bool) -> None:
        self._room = 0 if all_lines or not new_page().width else MOST_LINES - _SUMMARY_LINES
        self._limited = self._room > 0
        self._left_out = 0

    def add(self, result: Difference | UnreadableLine) -> None:
        """Print one block."""
        text = self._block(result)
        self._room -= text.count("\n")
        if self._limited and (self._room < 0 or self._left_out):
            self._left_out += 1
        else:
            show(text)

    def _block(self, result: Difference | UnreadableLine) -> str:
        page = new_page()
        if isinstance(result, UnreadableLine):
            page.row(label("not read"), f"line {result.line}: {result.why}")
        else:
            record = result.record
            rest = f"{record.time}, id {bytes(record.id).decode(errors='replace')}, line {record.line}"
            page.line((f"{record.tool} of {record.server}", "bold"), f"  {rest}")
            page.row(label("was"), _decision_text(result.before))
            page.row(label("now"), _decision_text(result.after), "bold")
            if record.is_partial:
                page.row(label("but"), f"{partial_text(record)}: a hook or rule that looks there sees the mark")
            if result.before.arguments and result.after.arguments:
                diff(page, "  arguments", result.before.arguments, result.after.arguments)
            else:
                page.line()
        return page.text

    def end(self, replay: Replay, status: int, notes: Sequence[str]) -> None:
        """Print the notes and the summary."""
        page, tally = new_page(short=self._limited), replay.tally
        if self._left_out:
            page.line((f"{self._left_out} more: --verbose shows all", "dim"))
        parts = [
            f"{counted(tally.replayed, 'call')} replayed",
            f"{tally.differing or 'none'} would be decided differently",
            f"{tally.failed_hooks} with a hook that failed" if tally.failed_hooks else "",
            f"{tally.digests} recorded with only a digest of the arguments" if tally.digests else "",
            f"{tally.undecided} recorded as never decided" if tally.undecided else "",
            f"{tally.limited} recorded as refused by a rate limit or a sink" if tally.limited else "",
            f"{counted(tally.unread, 'line')} not read" if tally.unread else "",
        ]
        for note in (*notes, *_partial_note(tally)):
            page.row(label("note"), note)
        page.line((", ".join(filter(None, parts)), "bold red" if status else "bold"))
        show(page.text)


def partial_text(record: CallRecord) -> str:
    """Which parts of the arguments are not recorded."""
    masked = f"masked: {', '.join(record.masked)}" if record.masked else ""
    left_out = f"{record.left_out:,} bytes left out" if record.left_out else ""
    return f"the record lacks parts of its arguments ({'; '.join(filter(None, (masked, left_out)))})"


def _partial_note(tally: Tally) -> Iterator[str]:
    """Which calls were replayed without some parts of their arguments, and what that means."""
    if not tally.partial:
        return
    named = ", ".join(tally.partial_calls[:_MAX_NAMED])
    more = f" and {tally.partial - _MAX_NAMED} more" if tally.partial > _MAX_NAMED else ""
    yield (
        f"{counted(tally.partial, 'call')} ran with masked or missing parts of the arguments ({named}{more}): a hook "
        "or rule that looks there sees the mark, and may decide otherwise than about the call itself"
    )


def _decision_text(judged: Outcome) -> str:
    by = f", by {judged.by}" if judged.by else ""
    reason = f": {judged.reason}" if judged.reason else ""
    return f"{judged.decision}{by}{reason}"


class _JsonOutput:
    """For programs: one document, written piece by piece, because there may be more differences than memory holds."""

    def __init__(self) -> None:
        self._unread: list[UnreadableLine] = []
        self._first = True

    def add(self, result: Difference | UnreadableLine) -> None:
        """Write one difference. Unread lines are kept for the end."""
        if isinstance(result, UnreadableLine):
            if len(self._unread) < _MAX_UNREAD_LINES:
                self._unread.append(result)
            return
        record = result.record
        members = {
            **{name: getattr(record, name) for name in ("line", "time", "session", "server", "tool")},
            "id": as_json(bytes(record.id)),
            "before": _members(result.before),
            "after": _members(result.after),
            "masked": list(record.masked),
            "left_out": record.left_out,
        }
        show((f"{_HEAD}\n" if self._first else ",\n") + textwrap.indent(document(members).rstrip("\n"), "    "))
        self._first = False

    def end(self, replay: Replay, status: int, notes: Sequence[str]) -> None:
        """Write what comes after the differences."""
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
