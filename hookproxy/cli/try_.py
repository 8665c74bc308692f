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
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.text import Text

from ..checks.startup_notes import KeyLines
from ..config.load import Loaded, load
from ..dialects.dialect import Group
from ..dialects.shared import input
from ..jsonrpc import raw_json
from ..model.aliases import Alias
from ..model.decision import Proceed
from ..model.errors import CANNOT, FINDINGS, UserError, look
from ..model.hooks import Ended, Event, HookResult, HookSpec, Session, Verdict
from ..model.settings import OnAsk, OnFailure, Settings
from ..trial.observe import ObservedRun
from ..trial.run import SESSION_EVENTS, SIDE_EVENTS, TrialCall, TrialResult, TrialRunner, plan
from ..trial.why_not import SkippedHook, skipped_hooks
from .common import add_sources, here, parser, show
from .hook_runtime import hooks_at_work, run
from .layout import as_json, diff, document, known_as, label, new_page, put, row, short, visible

if TYPE_CHECKING:
    import argparse

    from rich.console import Console


_MOST: Final = 10_000  # characters of one text: some screens full; `--json` has all
_ALLOWED: Final = {"allow": "allowed", "asked-allow": "allowed", "": "nothing is decided"}
_WANTS: Final = {
    "stop": "wants all other calls that wait for their hooks to be denied, too",
    "hides": "hides the result from the model",
    "retry": "has the call repeated",
}
"""What a verdict can want, by the member that says so."""

_STYLES: Final = {0: "green", FINDINGS: "bold red", CANNOT: "bold yellow"}


class Told(Struct, frozen=True):
    """A trial with what it was about."""

    attempt: TrialCall
    event: Event | None
    """The one that was tried alone."""
    server: str
    settings: Settings
    groups: Sequence[Group]
    trial: TrialResult
    skipped_hooks: Sequence[SkippedHook]

    @property
    def status(self) -> int:
        """The exit status: 0 allowed; 1 refused, or a person would be asked; 2 not allowed because a hook failed."""
        if self.trial.allowed:
            return 0
        return CANNOT if self.trial.failed else FINDINGS

    @property
    def word(self) -> str:
        """The decision in a word or two."""
        trial = self.trial
        if trial.allowed:
            return _ALLOWED[trial.decision]
        if trial.failed:
            return (
                "refused, for a hook failed" if trial.decision in ("deny", "asked-deny") else "the result is withheld"
            )
        if trial.decision == "asked":
            return "a person would be asked"
        return "refused" if trial.decision in ("deny", "asked-deny") else "allowed, but the result is refused"

    @property
    def because(self) -> tuple[str, str]:
        """Who decided, in words, and why. Of a question that is tried alone, nobody but the trial wants to ask it."""
        if self.event is Event.PERMISSION_REQUEST and isinstance(self.trial.hook_decision, Proceed):
            return "", ""
        return self.trial.decided_by

    @property
    def alias(self) -> Alias | None:
        """What hooks call the tool; None: what the server does."""
        return next((one for one in self.settings.aliases if one.tool == self.attempt.tool), None)

    @property
    def question(self) -> str:
        """What a person would be asked."""
        return "" if self.event is Event.PERMISSION_REQUEST else self.trial.question

    def place(self, spec: HookSpec) -> tuple[str, str]:
        """The file and the key of a hook."""
        for group in self.groups:
            if any(one is spec for one in group.hooks):
                return group.source, spec.source.removeprefix(f"{group.source}: ")
        return "", spec.source


def for_people(told: Told, cwd: str) -> str:
    """All of it, the decision last."""
    page, files = new_page(), KeyLines()
    with page.capture() as shown:
        for run in told.trial.observation.runs:
            _head(page, told, run.spec, files, cwd)
            _run(page, run)
        for one in told.skipped_hooks:
            _head(page, told, one.spec, files, cwd)
            row(page, label("not run"), one.why)
            put(page, Text())
        _changes(page, told)
        _decision(page, told)
    return shown.get()


def _head(page: Console, told: Told, spec: HookSpec, files: KeyLines, cwd: str) -> None:
    file, key = told.place(spec)
    line = files.line(file, key)
    place = visible(short(f"{file}:{line}" if line else file, cwd), page)
    put(page, Text.assemble((place, "bold"), "  ", visible(key, page)))
    row(page, label("event"), f"{spec.event}, {spec.dialect}")
    row(page, label("runs"), spec.runs or spec.label)


def _run(page: Console, run: ObservedRun) -> None:
    row(page, label("stdin"), _shortened(run.stdin))
    if run.variables:
        row(page, label("set"), "\n".join(f"{name}={_line(value)}" for name, value in run.variables.items()))
    if run.removed_variables:
        row(page, label("hidden"), ", ".join(run.removed_variables))
    if run.result is not None:
        _result(page, run.result)
    if run.hook_run is not None:
        said = "\n".join(verdict(run.hook_run.verdict)) or "nothing"
        row(page, label("verdict"), said, _style(run.hook_run.verdict))
    put(page, Text())


def _result(page: Console, result: HookResult) -> None:
    ended = f"exit status {result.code}" if result.ended is Ended.EXITED else result.ended.value
    if result.ended is Ended.SIGNALLED:
        ended = f"ended by signal {result.code}"
    if result.detail:
        ended = f"{ended}: {result.detail}"
    cut = ", and what it printed over the limit is lost" if result.cut else ""
    row(page, label("answer"), f"{ended}, after {result.ms:.1f} ms{cut}")
    for name, printed in (("stdout", result.stdout), ("stderr", result.stderr)):
        if printed.strip():
            row(page, label(name), _shortened(printed))


def verdict(said: Verdict) -> Iterator[str]:
    """What a hook said, a line for each thing."""
    if said.failure:
        yield f"trouble: it {said.failure}"
    if said.permission is not None:
        yield said.permission.name.lower() + (f": {said.reason}" if said.reason else "")
    elif said.reason:
        yield f"reason: {said.reason}"
    for name, raw in (("arguments", said.arguments), ("result", said.replacement)):
        if raw is not None:
            yield f"rewrites the {name}: {_shortened(raw)}"
    yield from (text for asked, text in _WANTS.items() if getattr(said, asked))
    for kind, texts in (("model", said.feedback), ("person", said.messages)):
        yield from (f"tells the {kind}: {one}" for one in texts)
    yield from (f"allows for the session: {one}" for one in said.allows)


def _style(said: Verdict) -> str:
    return "yellow" if said.failure else ""


def _changes(page: Console, told: Told) -> None:
    """The arguments, and the result if one was given, before and after."""
    trial, attempt = told.trial, told.attempt
    may_run = trial.decision in ("allow", "asked-allow", "asked")
    if may_run and told.event in (None, Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST):
        diff(page, "arguments", attempt.arguments, trial.proposed or attempt.arguments)
    if attempt.result is not None and trial.answer and trial.decision in ("allow", "asked-allow"):
        diff(page, "result", attempt.result, trial.answer)


def _decision(page: Console, told: Told) -> None:
    trial = told.trial
    of = f"{told.attempt.tool} of {told.server}"
    put(page, Text.assemble(visible(of, page), ": ", (told.word, _STYLES[told.status])))
    if told.alias:
        row(page, label("to hooks"), known_as(told.alias))
    for name, said in (*_because(told), *_told(trial)):
        row(page, label(name), _line(said))
    for one in trial.observation.remarks:
        row(page, label("note"), _line(one))


def _because(told: Told) -> Iterator[tuple[str, str]]:
    """Why it was decided so."""
    trial = told.trial
    if trial.unreadable:
        yield "reason", trial.unreadable
    elif not trial.is_judged:
        yield "reason", "no hook and no rule is about this call: it passes as it came"
    by, reason = told.because
    if by:
        yield "by", by
    if reason:
        yield "reason", reason
    if told.question:
        yield "asked", told.question
    if trial.decision == "asked":
        yield "fallback", _cannot_ask(told.settings)


def _cannot_ask(settings: Settings) -> str:
    """What follows where the agent cannot ask."""
    if settings.on_ask is not OnAsk.ELICIT:
        return settings.on_ask
    if settings.prompter:
        return f"where the agent cannot ask, {settings.prompter[0]} would"
    allowed = settings.on_ask_fallback is OnFailure.ALLOW
    return f"where the agent cannot ask, the call would be {'allowed' if allowed else 'refused'}"


def _told(trial: TrialResult) -> Iterator[tuple[str, str]]:
    """What the model reads in place of a result, or why that is kept from it."""
    comments = trial.observation.comments
    if trial.decision in ("deny", "asked-deny") and trial.answer:
        yield "model", "\n".join(input.blocks(bytes(raw_json.fields(trial.answer).get("content", b"[]"))))
    elif comments is not None:
        for one in comments.withheld:
            yield "withheld", f"the {one.spec.event} hook {one.spec.label} {one.verdict.failure}"
        if comments.hidden_by:
            yield "hidden", f"by {comments.hidden_by}"
        if comments.failed:
            yield "error", "a hook calls the result an error"


def _shortened(raw: bytes) -> str:
    return _line(raw.decode(errors="backslashreplace"))


def _line(said: str) -> str:
    rest = len(said) - _MOST
    return f"{said[:_MOST]}\n… {rest} characters more, all of which --json has" if rest > 0 else said


VERSION: Final = 1
"""The number of the document's format."""

_RUN: Final = (
    *("stdin", "variables", "hidden", "ended", "exit", "detail", "ms", "stdout", "stderr", "cut", "verdict"),
)
"""The keys that are null for a hook that was not run."""


def for_programs(told: Told) -> str:
    """The document."""
    trial, attempt = told.trial, told.attempt
    by, reason = told.because
    return document(
        {
            "v": VERSION,
            "status": told.status,
            "decision": trial.decision or None,
            "by": by,
            "reason": trial.unreadable or reason,
            "failed": trial.failed,
            "question": told.question or None,
            "tool": attempt.tool,
            "server": told.server,
            "event": told.event,
            "alias": told.alias and {"as": told.alias.name or None, "arguments": dict(told.alias.arguments)},
            "arguments": {"before": as_json(attempt.arguments), "after": as_json(_after(trial, attempt))},
            "result": {"before": as_json(attempt.result), "after": as_json(trial.answer)},
            "hooks": [
                *(_ran(run) for run in trial.observation.runs),
                *(_spec(one.spec) | {"absent": one.why} | dict.fromkeys(_RUN) for one in told.skipped_hooks),
            ],
            "remarks": trial.observation.remarks,
        }
    )


def _after(trial: TrialResult, attempt: TrialCall) -> bytes | None:
    return None if trial.decision in ("deny", "asked-deny") else trial.proposed or attempt.arguments


def _spec(spec: HookSpec) -> dict[str, object]:
    return {
        "source": spec.source,
        "dialect": spec.dialect,
        "event": spec.event,
        "label": spec.label,
        "command": spec.runs,
        "matcher": spec.matcher,
        "if": spec.only_if,
        "timeout": spec.timeout,
        "background": spec.background,
    }


def _ran(run: ObservedRun) -> dict[str, object]:
    members = _spec(run.spec) | {"absent": None} | dict.fromkeys(_RUN)
    members |= {"stdin": _decoded(run.stdin), "variables": dict(run.variables), "hidden": list(run.removed_variables)}
    if run.result is not None:
        result = run.result
        members |= {"ended": result.ended.value, "exit": result.code, "detail": result.detail, "cut": result.cut}
        members |= {"ms": round(result.ms, 3), "stdout": _decoded(result.stdout), "stderr": _decoded(result.stderr)}
    if run.hook_run is not None:
        said = run.hook_run.verdict
        members["verdict"] = {
            "permission": said.permission.name.lower() if said.permission else None,
            "reason": said.reason,
            "arguments": as_json(said.arguments),
            "feedback": said.feedback,
            "replacement": as_json(said.replacement),
            "messages": said.messages,
            "stop": said.stop,
            "hides": said.hides,
            "retry": said.retry,
            "allows": said.allows,
            "trouble": said.failure,
        }
    return members


def _decoded(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


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


async def _tried(loaded: Loaded, attempt: TrialCall, event: Event | None, session: Session) -> Told:
    planned = plan(event, attempt.result is not None, loaded.settings)
    async with TrialRunner(loaded.groups, planned, session, os.environ, loaded.trust) as trials:
        if event is None or event in _DECIDING:
            trial = await trials.call(attempt)
        else:
            trial = await trials.run_event(event, attempt)
        missing = skipped_hooks(loaded.groups, trials, trial, attempt.tool)
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
    known = {_folded(event): event for event in (*_DECIDING, *SIDE_EVENTS)}
    if _folded(name) in known:
        return known[_folded(name)]
    raise UserError(f"--event: {name!r} cannot be tried", f"known: {', '.join(known.values())}")


def _folded(name: str) -> str:
    return name.replace("_", "").casefold()


def _attempt(chosen: argparse.Namespace, event: Event | None) -> TrialCall:
    if not chosen.tool and event not in SESSION_EVENTS:
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
    return TrialCall(tool, arguments, _fitting(result, event))


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
