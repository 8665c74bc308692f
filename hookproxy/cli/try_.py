"""`hookproxy try`: runs one call, or one other event, through the configured hooks, without a server.

It uses the code of `run`: hooks run for real, but no call is forwarded, no person is asked, and nothing is audited.

Exit status: 0 the call is allowed, also if a hook failed and the call goes on; 1 it is refused, or a person would have
to be asked, or a hook hides its result or marks it as an error; 2 it is not allowed only because a hook failed, or it
could not be tried; 4 no policy is loaded: nothing could refuse it.
"""

from __future__ import annotations

import os
import shlex
import uuid
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from ..checks.startup_notes import KeyLines
from ..config.load import Loaded, make_data_folders
from ..config.toml_text import ask_fallback
from ..dialects.shared.hook_file import suggestion
from ..hooks import failures
from ..hooks.coverage import coverage
from ..jsonrpc import raw_json
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, UserError
from ..model.hooks import Ended, Event, HookSpec, Tool, Verdict
from ..policy import methods
from ..policy.presets import PRESETS
from ..trial.observe import ObservedRun
from ..trial.report import DECIDING_EVENTS, DEFAULT_RESULTS, TrialReport, json_object, text_of, try_call
from ..trial.run import SESSION_EVENTS, SIDE_EVENTS, TrialCall, TrialResult
from . import findings
from .agent_entry import use_entry
from .common import show, tell, unread_file, working_directory
from .given_json import read_given
from .hook_runtime import redirected_output, run_until_done
from .layout import Page, Rows, alias_text, as_json, diff, document, label, new_page, short_path
from .offline import policy_named, require_policy
from .options import ENTRY_OPTIONS, GATEWAY_OPTIONS, HOOK_OPTIONS, Parser
from .progress import waiting

_TOOL_NAME_NOTE: Final = (
    "TOOL is the server's own name of the tool: to try mcp__git__git_commit, write git_commit --name git"
)
"""For people who give the name that hooks of some systems see."""


def main(arguments: Sequence[str]) -> int:
    """Try the call or event, and print the result. Returns the exit status."""
    _check_quotes(arguments)
    options = build_parser().parse_args(list(arguments))
    event = _event(options.event)
    attempt = _attempt(options, event)
    cwd = working_directory()
    entry = use_entry(options, cwd)
    cwd = entry.cwd if entry else cwd
    policy = policy_named(options, cwd)
    loaded, environ = policy.loaded, policy.environ
    findings.stop_if_strict(loaded, options.strict, environ)
    tell(unread_file(options.config, loaded.path, cwd))
    require_policy([loaded], "to try")
    tell(*findings.lines(loaded, environ), *loaded.remarks, *make_data_folders(loaded))
    session_id = os.environ.get("CLAUDE_CODE_SESSION_ID") or str(uuid.uuid4())
    session = policy.session(session_id, options.name or "server", cwd)
    tell(_about_tool_name(loaded, attempt.tool, session.server))
    with waiting("the hooks"), redirected_output():
        report = run_until_done(partial(try_call, loaded, attempt, event, session, environ))
    show(json_output(report) if options.json else text_output(report, cwd, verbose=options.verbose))
    return report.status


def _about_tool_name(loaded: Loaded, tool: str, server: str) -> str:
    """A sentence about a tool's name that nothing in the configuration knows; empty if something does."""
    if tool.startswith("mcp__"):
        return _TOOL_NAME_NOTE
    if "/" in tool and not methods.is_method(tool) and (near := suggestion(tool, methods.JUDGED)):
        return f"{tool!r} is tried as the name of a tool: no method that can be judged has this name ({near})"
    settings = loaded.settings
    if not tool or not (loaded.groups or settings.has_rules or settings.limits or settings.has_flow):
        return ""
    found = coverage(loaded.groups, settings, server, [Tool(tool)])
    if found.seen or found.ruled or any(alias.tool == tool for alias in settings.aliases):
        return ""
    presets = [name for name, preset in PRESETS.naming(tool) if any(alias.tool == tool for alias in preset.tools)]
    hint = f"; preset = {presets[0]!r} in hookproxy.toml gives it the name that hooks know" if presets else ""
    return f"no hook, rule or alias is about a tool {tool!r}{hint}"


# --- the command line ---


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "try",
        "Try a call on the configured hooks and rules, without a server. Hooks run for real, but no call is forwarded, "
        "no person is asked, and nothing is audited. Exit status: 0 allowed, 1 refused or a person would be asked, "
        "2 not allowed because a hook failed, or the call could not be tried, 4 no policy is loaded.",
    )
    parser.add_argument(
        "tool", metavar="TOOL", nargs="?", help="the server's own name of the tool, or a method such as resources/read"
    )
    parser.add_argument(
        "arguments",
        metavar="ARGUMENTS",
        nargs="?",
        default="{}",
        help="a JSON object; - reads it from standard input, @FILE from a file",
    )
    parser.add_argument("--event", help="try only this event, such as PostToolUse (default: the whole call)")
    parser.add_argument("--result", help="the CallToolResult of the call, given in the same ways as ARGUMENTS")
    parser.add_common(*HOOK_OPTIONS)
    parser.add_common("--name")
    parser.add_common(*ENTRY_OPTIONS, *GATEWAY_OPTIONS, "--fail-closed", "--strict")
    parser.add_argument("--verbose", action="store_true", help="on a terminal, also show what each hook got")
    parser.add_common("--json")
    return parser


def _event(name: str | None) -> Event | None:
    """The event, in any dialect's spelling."""
    if name is None:
        return None
    known = {_normalized(event): event for event in (*DECIDING_EVENTS, *SIDE_EVENTS)}
    if _normalized(name) in known:
        return known[_normalized(name)]
    near = suggestion(name, map(str, known.values())) or f"known: {', '.join(known.values())}"
    raise UserError(f"--event: {name!r} cannot be tried", near)


def _check_quotes(arguments: Sequence[str]) -> None:
    """Raise UserError if the shell has taken JSON apart, or the first word is JSON instead of a tool."""
    if arguments and arguments[0].lstrip().startswith("{"):
        raise UserError("no tool is named before ARGUMENTS", f"hookproxy try TOOL {shlex.quote(arguments[0])}")
    tool, brace, rest = (arguments[0] if arguments else "").partition("{")
    if brace and tool.rstrip() != tool and rest.rstrip().endswith("}"):
        hint = f"hookproxy try {shlex.quote(tool.rstrip())} {shlex.quote(brace + rest)}"
        raise UserError("TOOL and ARGUMENTS are in one word", hint)
    for word, following in pairwise(arguments):
        if word.lstrip().startswith("{") and not word.rstrip().endswith("}") and not following.startswith("--"):
            hint = """put it into single quotes: hookproxy try TOOL '{"path": "a.txt"}'"""
            raise UserError(f"the shell has divided ARGUMENTS into several words: {word} {following}", hint)


def _normalized(name: str) -> str:
    return name.replace("_", "").casefold()


def _attempt(options: Namespace, event: Event | None) -> TrialCall:
    """The call to try. Raises UserError for a tool name, arguments or a result that cannot be used."""
    if not options.tool and event not in SESSION_EVENTS:
        raise build_parser().wrong("no tool is named")
    tool = options.tool or ""
    if os.fsencode(tool).decode(errors="replace") != tool:
        raise UserError(f"the tool's name {tool!r} is not UTF-8", "write it in UTF-8, as an agent does")
    if "-" == options.arguments == options.result:
        raise UserError(
            "standard input cannot be both the arguments and the result", "put one of them into a file: @FILE"
        )
    if event is not None and methods.JUDGED.get(tool) is methods.Direction.FROM_SERVER:
        hint = "leave out --event; with --result, hooks after it see the agent's answer"
        raise UserError(f"{tool} is a request of the server, which is tried as a whole", hint)
    arguments = json_object("ARGUMENTS", read_given("ARGUMENTS", options.arguments))
    result = json_object("--result", read_given("--result", options.result)) if options.result is not None else None
    return TrialCall(tool, arguments, _result_for(event, result))


def _result_for(event: Event | None, result: bytes | None) -> bytes | None:
    """The result of the call: none for an event before the call; for one after it, the given or the default result."""
    if event is not None and event not in DEFAULT_RESULTS:
        if result is not None:
            raise UserError(f"--result: {event} has no result", "leave out --event to try the whole call")
        return None
    if event is None or result is None:
        return result if event is None else DEFAULT_RESULTS[event]
    is_error = bytes(raw_json.fields(result).get("isError", b"false")) == b"true"
    if is_error is not (event is Event.POST_TOOL_USE_FAILURE):
        other = Event.POST_TOOL_USE_FAILURE if is_error else Event.POST_TOOL_USE
        raise UserError(
            f"--result: is {'an' if is_error else 'not an'} error, which is for {other}", f"--event {other}"
        )
    return result


# --- the output for people ---

_MAX_SHOWN: Final = 10_000  # characters of one text, which are some screens full; `--json` shows all
_EFFECTS: Final = {
    "stop": "denies all other calls that are waiting for their hooks",
    "hides": "hides the result from the model",
    "retry": "repeats the call",
}
"""Further effects of a verdict, by its member."""

_STYLES: Final = {0: "green", EXIT_FINDINGS: "bold red", EXIT_USER_ERROR: "bold yellow"}


def text_output(report: TrialReport, cwd: str, *, verbose: bool) -> str:
    """Every hook, the changes, and last the decision; on a terminal what each hook got only with `verbose`."""
    page = new_page(short=not verbose)
    _text(page, report, cwd)
    if report.watched is not None:
        page.line()
        page.line(("only watched: what follows would happen if it were in force, and changes nothing", "bold"))
        page.line()
        _text(page, report.watched, cwd)
    return page.text


def _text(page: Page, report: TrialReport, cwd: str) -> None:
    files = KeyLines()
    runs = Counter(id(observed.spec) for observed in report.trial.observation.runs)
    for observed in report.trial.observation.runs:
        _heading(page, report, observed.spec, files, cwd)
        if observed.hook_run and runs[id(observed.spec)] > 1:
            page.row(label("tool"), f"{observed.hook_run.tool_name}; it runs once under each name")
        _run(page, observed)
    with page.details():
        for hook in report.not_run:
            _heading(page, report, hook.spec, files, cwd)
            page.row(label("not run"), hook.why)
            page.line()
    _changes(page, report)
    page.begin_end()
    _decision(page, report)


def _heading(page: Page, report: TrialReport, spec: HookSpec, files: KeyLines, cwd: str) -> None:
    file, key = report.place(spec)
    line = files.line(file, key)
    page.line((short_path(f"{file}:{line}" if line else file, cwd), "bold"), f"  {key}" if key != file else "")
    page.row(label("event"), f"{spec.event}, {spec.dialect}")
    page.row(label("command"), spec.target or spec.label)


def _run(page: Page, observed: ObservedRun) -> None:
    with page.details():
        for name, text in _run_rows(observed):
            page.row(label(name), text)
    if observed.hook_run is not None:
        verdict = observed.hook_run.verdict
        text = "\n".join(verdict_lines(verdict)) or "nothing"
        page.row(label("verdict"), text, "yellow" if verdict.failure else "")
        for unread in observed.hook_run.unread:
            page.row(label("unread"), unread, "yellow")
    page.line()


def _run_rows(observed: ObservedRun) -> Rows:
    """What a hook got, and what it did."""
    yield "stdin", _start(observed.stdin)
    if observed.variables:
        yield "set", "\n".join(f"{name}={_start(value)}" for name, value in observed.variables.items())
    if observed.removed_variables:
        yield "unset", ", ".join(observed.removed_variables)
    if (result := observed.result) is None:
        return
    ended = f"exit status {result.code}" if result.ended is Ended.EXITED else result.ended.value
    if result.ended is Ended.SIGNALLED:
        ended = f"ended by signal {result.code}"
    if result.detail:
        ended = f"{ended}: {result.detail}"
    cut = ", and its output over the limit is lost" if result.cut else ""
    yield "ended", f"{ended}, after {result.ms:.1f} ms{cut}"
    for name, output in (("stdout", result.stdout), ("stderr", result.stderr)):
        if output.strip():
            yield name, _start(output)


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """A line for each part of a verdict."""
    if verdict.failure:
        yield f"failure: {verdict.failure}"
    if verdict.permission is not None:
        yield verdict.permission.name.lower() + (f": {verdict.reason}" if verdict.reason else "")
    elif verdict.reason:
        yield f"reason: {verdict.reason}"
    for name, raw in (("arguments", verdict.arguments), ("_meta", verdict.meta), ("result", verdict.replacement)):
        if raw is not None:
            yield f"rewrites the {name}: {_start(raw)}"
    yield from (text for member, text in _EFFECTS.items() if getattr(verdict, member))
    for reader, texts in (("model", verdict.feedback), ("person", verdict.messages)):
        yield from (f"for the {reader}: {text}" for text in texts)
    yield from (f"allows for the session: {rule}" for rule in verdict.allows)


def _changes(page: Page, report: TrialReport) -> None:
    """The arguments before and after, and the result if one was given."""
    trial, attempt = report.trial, report.attempt
    may_run = trial.decision in ("allow", "asked-allow", "asked")
    if may_run and report.event in (None, Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST):
        diff(page, "arguments", attempt.arguments, trial.proposed or attempt.arguments)
    if attempt.result is not None and trial.response and trial.decision in ("allow", "asked-allow"):
        diff(page, "result", attempt.result, trial.response)


def _decision(page: Page, report: TrialReport) -> None:
    trial = report.trial
    call = f"{report.attempt.tool} of {report.server}"
    page.line(f"{call}: ", (report.decision, _STYLES[report.status]))
    if report.alias:
        page.row(label("alias"), alias_text(report.alias))
    for name, text in (*_reasons(report), *_model_output(trial)):
        page.row(label(name), _start(text))
    for remark in trial.observation.remarks:
        page.row(label("note"), _start(remark))


def _reasons(report: TrialReport) -> Rows:
    """Rows with the reasons of the decision."""
    trial = report.trial
    if trial.unreadable:
        yield "reason", trial.unreadable
    elif not trial.is_judged:
        yield "reason", "no hook or rule applies to this call: it passes unchanged"
    by, reason = report.decided_by
    if by:
        yield "by", by
    if reason:
        yield "reason", reason
    if trial.decision in ("allow", "asked-allow", "asked") and (failed := _failed_guards(trial)):
        who = "1 hook has failed" if failed == 1 else f"{failed} hooks have failed"
        yield "but", f"{who}, which does not stop the call: --fail-closed refuses it then"
    if report.approval_text:
        yield "asked", report.approval_text
    if trial.decision == "asked":
        yield "fallback", ask_fallback(report.settings)


def _failed_guards(trial: TrialResult) -> int:
    """How many hooks that could have refused the call have failed instead."""
    runs = [run for run in trial.observation.runs if run.hook_run is not None and run.hook_run.verdict.failure]
    return len({id(run.spec) for run in runs if failures.decides(run.spec)})


def _model_output(trial: TrialResult) -> Rows:
    """Rows with what the model gets in place of a result, or why it does not get the result."""
    comments = trial.observation.comments
    record = trial.record
    if record is not None and methods.JUDGED.get(record.tool) is methods.Direction.FROM_SERVER:
        if trial.response:
            yield "server", trial.response.decode(errors="replace").strip()
        return
    if trial.decision in ("deny", "asked-deny") and trial.response:
        yield "model", text_of(trial.response)
    elif comments is not None:
        for hook_run in comments.withheld:
            yield "withheld", f"the {hook_run.spec.event} hook {hook_run.spec.label} {hook_run.verdict.failure}"
        if comments.hidden_by:
            yield "hidden", f"by {comments.hidden_by}"
        if comments.failed:
            yield "error", "a hook marks the result as an error"


def _start(value: str | bytes) -> str:
    """The text, or the beginning of a long text."""
    text = value if isinstance(value, str) else _decoded(value)
    rest = len(text) - _MAX_SHOWN
    return f"{text[:_MAX_SHOWN]}\n… {rest} more characters; --json shows the whole text" if rest > 0 else text


def _decoded(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


# --- the output for programs ---

VERSION: Final = 1
"""The version of the document's format."""

_RUN: Final = ("stdin", "variables", "hidden", "ended", "exit", "detail", "ms", "stdout", "stderr", "cut", "verdict")


def json_output(report: TrialReport) -> str:
    """The JSON document."""
    return document({"v": VERSION, **_members(report), "watched": report.watched and _members(report.watched)})


def _members(report: TrialReport) -> dict[str, object]:
    trial, attempt = report.trial, report.attempt
    by, reason = report.decided_by
    final = None if trial.decision in ("deny", "asked-deny") else trial.proposed or attempt.arguments
    return {
        "status": report.status,
        "decision": trial.decision or None,
        "by": by,
        "reason": trial.unreadable or reason,
        "failed": trial.failed,
        "question": report.approval_text or None,
        "tool": attempt.tool,
        "server": report.server,
        "event": report.event,
        "alias": report.alias and {"as": report.alias.name or None, "arguments": dict(report.alias.arguments)},
        "arguments": {"before": as_json(attempt.arguments), "after": as_json(final)},
        "result": {"before": as_json(attempt.result), "after": as_json(trial.response)},
        "hooks": [
            *(_run_members(observed) for observed in trial.observation.runs),
            *(_spec_members(hook.spec, hook.why) for hook in report.not_run),
        ],
        "remarks": trial.observation.remarks,
    }


def _spec_members(spec: HookSpec, why_not_run: str | None = None) -> dict[str, object]:
    """The members that each hook has; the others are null for one that was not run."""
    return {
        "source": spec.source,
        "dialect": spec.dialect,
        "event": spec.event,
        "label": spec.label,
        "command": spec.target,
        "matcher": spec.matcher,
        "if": spec.only_if,
        "timeout": spec.timeout,
        "background": spec.background,
        "absent": why_not_run,
        **dict.fromkeys(_RUN),
    }


def _run_members(observed: ObservedRun) -> dict[str, object]:
    members = _spec_members(observed.spec) | {
        "stdin": _decoded(observed.stdin),
        "variables": dict(observed.variables),
        "hidden": list(observed.removed_variables),
    }
    if observed.result is not None:
        result = observed.result
        members |= {"ended": result.ended.value, "exit": result.code, "detail": result.detail, "cut": result.cut}
        members |= {"ms": round(result.ms, 3), "stdout": _decoded(result.stdout), "stderr": _decoded(result.stderr)}
    if observed.hook_run is not None:
        verdict = observed.hook_run.verdict
        members["verdict"] = {
            "permission": verdict.permission.name.lower() if verdict.permission else None,
            "reason": verdict.reason,
            "arguments": as_json(verdict.arguments),
            "feedback": verdict.feedback,
            "replacement": as_json(verdict.replacement),
            "messages": verdict.messages,
            "unread": observed.hook_run.unread,
            "stop": verdict.stop,
            "hides": verdict.hides,
            "retry": verdict.retry,
            "allows": verdict.allows,
            "trouble": verdict.failure,
        }
    return members
