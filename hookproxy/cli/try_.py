"""`hookproxy try`: one call, or one other occasion, on the hooks as they are configured, without a server.

By the code of `run`: hooks run for real, and nothing is forwarded, asked or audited. Exit status: 0 the call is
allowed, also where a hook failed and the call goes on; 1 it is refused, or a person would have to be asked, or a hook
hides its result or calls it an error; 2 it is not allowed only because a hook failed, or it could not be tried.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..config.load import Loaded, load
from ..jsonrpc import raw_json
from ..model.errors import UserError, look
from ..model.hooks import Event, Session
from ..trial.run import BESIDE, OF_NO_TOOL, Attempt, Trials, plan
from ..trial.why_not import absent
from .common import add_sources, here, parser, show
from .hook_runtime import hooks_at_work, run
from .try_json import for_programs
from .try_text import Told, for_people

if TYPE_CHECKING:
    import argparse

USAGE: Final = (
    "hookproxy try TOOL [ARGUMENTS] [--event EVENT] [--result RESULT] "
    "[--config FILE] [--hooks [DIALECT=]FILE]... [--name SERVER] [--json]"
)
_RESULTS: Final = {
    Event.POST_TOOL_USE: b'{"content":[]}',
    Event.POST_TOOL_USE_FAILURE: b'{"content":[{"type":"text","text":"The tool failed."}],"isError":true}',
}
"""What a call comes to where nobody says."""

_COMPOSED: Final = "TOOL is the name that the server has for it: to try mcp__git__git_commit, git_commit --name git"
"""What people should know who give the name that hooks of some systems see."""

_DECIDING: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST, *_RESULTS)
_LONGEST: Final = 64 * 1024 * 1024  # bytes of a JSON text: the longest message that is judged, by default


def main(arguments: Sequence[str]) -> int:
    """Try it, and print what came of it; gives the exit status."""
    chosen = options().parse_args(list(arguments))
    event = _event(chosen.event)
    attempt = _attempt(chosen, event)
    cwd = here()
    loaded = load(chosen.config, chosen.hooks, None, os.environ, cwd)
    for note in loaded.notes:
        sys.stderr.write(f"hookproxy: {note}\n")
    if attempt.tool.startswith("mcp__"):
        sys.stderr.write(f"hookproxy: {_COMPOSED}\n")
    session = _session(chosen.name, cwd)
    with hooks_at_work():
        told = run(partial(_tried, loaded, attempt, event, session))
    show(for_programs(told) if chosen.json else for_people(told, cwd))
    return told.status


async def _tried(loaded: Loaded, attempt: Attempt, event: Event | None, session: Session) -> Told:
    planned = plan(event, attempt.result is not None, loaded.settings)
    async with Trials(loaded.groups, planned, session, os.environ, loaded.trust) as trials:
        if event is None or event in _DECIDING:
            trial = await trials.call(attempt)
        else:
            trial = await trials.beside(event, attempt)
        missing = absent(loaded.groups, trials, trial, attempt.tool)
    return Told(attempt, event, session.server, loaded.settings, loaded.groups, trial, missing)


def _session(server: str, cwd: str) -> Session:
    project = os.environ.get("CLAUDE_PROJECT_DIR") or cwd
    return Session(os.environ.get("CLAUDE_CODE_SESSION_ID") or str(uuid.uuid4()), server, cwd, project)


# --- what is to be tried ---


def options() -> argparse.ArgumentParser:
    """What its command line takes."""
    taken = parser(
        "try",
        USAGE,
        "Try a call on the hooks and rules that are configured, without a server. Hooks run for real; nothing is "
        "forwarded, asked or audited. Exit status: 0 allowed, 1 refused or a person would be asked, 2 trouble.",
    )
    taken.add_argument("tool", metavar="TOOL", nargs="?", help="the tool's name, as the server knows it")
    taken.add_argument(
        "arguments", metavar="ARGUMENTS", nargs="?", default="{}", help="a JSON object; - reads it, @FILE has it"
    )
    taken.add_argument("--event", help="this occasion alone, such as PostToolUse (default: the whole call)")
    taken.add_argument("--result", help="the CallToolResult that it comes to, as ARGUMENTS")
    add_sources(taken)
    taken.add_argument("--name", metavar="SERVER", default="server", help="the server's name as hooks see it")
    taken.add_argument("--json", action="store_true", help="one JSON document, for programs")
    return taken


def _event(name: str | None) -> Event | None:
    """The event, however a dialect spells it."""
    if name is None:
        return None
    known = {_folded(event): event for event in (*_DECIDING, *BESIDE)}
    if _folded(name) in known:
        return known[_folded(name)]
    raise UserError(f"--event: {name!r} cannot be tried", f"known: {', '.join(known.values())}")


def _folded(name: str) -> str:
    return name.replace("_", "").casefold()


def _attempt(chosen: argparse.Namespace, event: Event | None) -> Attempt:
    if not chosen.tool and event not in OF_NO_TOOL:
        raise UserError("no tool is named", f"usage: {USAGE}")
    tool = chosen.tool or ""
    if not _is_text(tool):
        raise UserError(f"the tool's name {tool!r} is not UTF-8", "write it in UTF-8, as an agent does")
    if "-" == chosen.arguments == chosen.result:
        raise UserError(
            "standard input cannot be both the arguments and the result", "put one of them into a file: @FILE"
        )
    arguments = _object("ARGUMENTS", chosen.arguments)
    result = _object("--result", chosen.result) if chosen.result is not None else None
    return Attempt(tool, arguments, _fitting(result, event))


def _is_text(name: str) -> bool:
    try:
        return bool(name.encode()) or not name
    except UnicodeEncodeError:
        return False


def _fitting(result: bytes | None, event: Event | None) -> bytes | None:
    """The result for what is tried: none is needed before a call, and one that fits after it."""
    if event is not None and event not in _RESULTS:
        if result is not None:
            raise UserError(f"--result: {event} comes without a result", "leave out --event to try the whole call")
        return None
    if event is None or result is None:
        return result if event is None else _RESULTS[event]
    failed = bytes(raw_json.fields(result).get("isError", b"false")) == b"true"
    if failed is not (event is Event.POST_TOOL_USE_FAILURE):
        other = Event.POST_TOOL_USE_FAILURE if failed else Event.POST_TOOL_USE
        raise UserError(f"--result: is {'an' if failed else 'no'} error, which is for {other}", f"--event {other}")
    return result


def _object(name: str, given: str) -> bytes:
    """A JSON object, from where it is said to be. Twin keys are left for the judgement of what reads them."""
    raw = _read(name, given)
    try:
        if not isinstance(json.loads(raw.decode(), parse_constant=raw_json.no_constant), dict):
            raise raw_json.Unreadable("not a JSON object")
    except (ValueError, RecursionError) as problem:
        raise UserError(
            f"{name}: {_why(problem)}", """a JSON object is expected, as in '{"path": "a.txt"}'"""
        ) from None
    return raw


def _why(problem: ValueError | RecursionError) -> str:
    match problem:
        case raw_json.Unreadable():
            return str(problem)
        case UnicodeDecodeError():
            return f"not UTF-8 at byte {problem.start}"
        case json.JSONDecodeError():
            return f"not JSON: {problem.msg} at character {problem.pos + 1}"
        case ValueError():
            return "a number too long to be read"
        case RecursionError():
            return "nested too deep"


def _read(name: str, given: str) -> bytes:
    if given != "-" and not given.startswith("@"):
        return os.fsencode(given).strip()
    where = "standard input" if given == "-" else given[1:]
    if not where:
        raise UserError(f"{name}: no file is named", "@FILE reads it from FILE, - from standard input")
    try:
        with open(0 if given == "-" else where, "rb", closefd=given != "-") as file:
            raw = file.read(_LONGEST + 1)
    except (OSError, ValueError) as problem:
        if isinstance(problem, OSError):
            raise UserError(f"{name}: {where} cannot be read: {problem.strerror}", look(where, problem)) from None
        raise UserError(f"{name}: {where} cannot be read: {problem}", "name a file that can be there") from None
    if len(raw) > _LONGEST:
        raise UserError(f"{name}: {where} is longer than {_LONGEST} bytes", "no agent could send that: make it shorter")
    return raw.removeprefix(b"\xef\xbb\xbf").strip()
