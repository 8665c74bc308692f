"""`hookproxy explain`: who may call what, which rule, hook or limit decides it, where that is written, and what would
change it. Nothing is called, and no hook runs.

Exit status: 0 the call is allowed, or a table was printed; 1 it is refused, a person must be asked, or the arguments
decide; 2 it cannot be said. `docs/json-output.md` describes the document of `--json`.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..dialects.shared.hook_file import suggestion
from ..hooks.explain import ANY_OTHER, Answer, explain, hooks_of_call
from ..hooks.idle import servers_named
from ..model.errors import EXIT_FINDINGS
from ..model.hooks import Session, Tool
from .common import load_named, show, split_command, tell, unread_file, working_directory
from .explained import Row, Subject, members, print_subject
from .layout import document, new_page
from .offline import OfflinePolicy, closed, gateway_named, policy_at, server_named, users_named
from .options import GATEWAY_OPTIONS, HOOK_OPTIONS, Parser
from .tool_lists import KnownTools, known_tools

if TYPE_CHECKING:
    from ..model.settings import Settings
    from ..trial.run import TrialResult

VERSION: Final = 1
"""The version of the JSON document's format."""

_CALL: Final = {"allow": Answer.ALLOW, "asked-allow": Answer.ALLOW, "asked": Answer.ASK}
"""What becomes of a call, by the decision of a trial; all others refuse it."""


def main(arguments: Sequence[str]) -> int:
    """Print what holds. Returns the exit status."""
    words, command = split_command(arguments)
    options = build_parser().parse_args(words)
    cwd = working_directory()
    subjects = list(_subjects(options, command, cwd))
    tools = known_tools(subjects[0].policy, options.tools, command or subjects[0].policy.session("", "", cwd).command)
    explained = [(subject, list(_rows(subject, options, tools, cwd))) for subject in subjects]
    if options.json:
        show(document({"v": VERSION, "explanations": [members(subject, rows) for subject, rows in explained]}))
    else:
        page = new_page(short=not options.verbose)
        for subject, rows in explained:
            print_subject(page, subject, rows, options.tool, cwd)
        show(page.text)
    if options.tool is None:
        return 0
    sure = all(row.answer is Answer.ALLOW and row.is_sure for _, rows in explained for row in rows)
    return 0 if sure and all(subject.admitted for subject in subjects) else EXIT_FINDINGS


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "explain",
        "Say what becomes of calls of a tool, which rule, hook or limit decides it, where that is written, and what "
        "would change it; without TOOL, of all tools that are known. Of a gateway's file, for one user at one server. "
        "Nothing is called, and no hook runs. Exit status: 0 allowed, 1 refused, asked about, or decided by arguments "
        "that are not given, 2 it cannot be said.",
        rest="[-- COMMAND [ARG...]]",
    )
    parser.add_argument("tool", metavar="TOOL", nargs="?", help="the server's own name of the tool")
    parser.add_argument(
        "arguments",
        metavar="ARGUMENTS",
        nargs="?",
        help="a JSON object: what becomes of this call (default: of all calls of the tool)",
    )
    parser.add_argument(
        "--tools", metavar="FILE", help="the server's tools: what it answered to tools/list, as JSON; or give COMMAND"
    )
    parser.add_common(*HOOK_OPTIONS)
    parser.add_common("--name")
    parser.add_common(*GATEWAY_OPTIONS, "--verbose", "--json")
    return parser


def _subjects(options: Namespace, command: Sequence[str], cwd: str) -> Iterator[Subject]:
    """Whose calls are meant: a user of a gateway may be known with several lists of groups. Raises UserError."""
    config = gateway_named(options, cwd)
    if config is None:
        from .run import server_name

        loaded = load_named(options, cwd)
        tell(unread_file(options.config, loaded.path, cwd))
        if loaded.watched is not None:
            from ..hooks.watched import summary

            tell(summary(loaded.watched))
        elif not (loaded.has_policy or loaded.settings.managed):
            tell("no hook and no rule is configured: name files with --config FILE or --hooks FILE")
        name = options.name or (server_name(command) if command else "server")
        tell("" if options.name or command else _of_named_servers(loaded.settings))
        yield Subject(OfflinePolicy(loaded, os.environ), name)
        return
    server = server_named(options, config)
    if config.closed:
        raise closed(config)
    if options.user is None and (server.rules_for_users or server.table.users is not None):
        tell("without --user, rules for some people and allow of the server are left out")
    if config.gateway.oidc is not None and options.user is not None and options.groups is None:
        tell(
            f"what {config.gateway.oidc.issuer} says of {options.user} is not known here: --groups A,B names its groups"
        )
    for identity in users_named(options, config) or (None,):
        yield Subject(policy_at(server, identity), server.name, config)


def _of_named_servers(settings: Settings) -> str:
    """What says that rules are about servers by their names; empty if none is."""
    named = servers_named((*settings.deny, *settings.ask, *settings.allow))
    return f"rules name {' and '.join(named)}, and no server is named here: --name {named[0]} does" if named else ""


# --- what holds ---


def _rows(subject: Subject, options: Namespace, known: KnownTools, cwd: str) -> Iterator[Row]:
    loaded, session = subject.policy.loaded, subject.policy.session("", subject.name, cwd)
    tools = list(known.tools)
    if options.tool is not None:
        listed = [tool for tool in tools if tool.name == options.tool]
        if not listed and known.complete:
            near = (
                suggestion(options.tool, [tool.name for tool in tools]) or "hookproxy explain without TOOL lists them"
            )
            tell(f"the server lists no tool {options.tool}: {near}")
        tools = listed or [Tool(options.tool)]
    elif not known.complete:
        tools = [*tools, Tool(ANY_OTHER)]
    command = session.command or known.command
    for explanation in explain(loaded.groups, loaded.settings, session.server, tools, command, known.server_info):
        row = Row(explanation.decision, explanation)
        if options.arguments is not None:
            row = _of_call(subject, row, session, known, options.arguments)
        yield row


def _of_call(subject: Subject, row: Row, session: Session, known: KnownTools, arguments: str) -> Row:
    """What becomes of one call: judged by the code of a session, without hooks. Raises UserError."""
    from ..jsonrpc import normalize
    from ..trial.report import json_object
    from .hook_runtime import run_until_done

    raw = json_object("ARGUMENTS", os.fsencode(arguments).strip())
    loaded, tool = subject.policy.loaded, row.explanation.tool
    trial: TrialResult = run_until_done(partial(_judged, subject, session, known, tool, raw))
    listed = next((one for one in known.tools if one.name == tool), Tool(tool))
    try:
        running = hooks_of_call(loaded.groups, loaded.settings, session, listed, normalize.normalize(raw))
    except ValueError as why:
        return replace(row, answer=Answer.DENY, by="the call itself", reason=str(why))
    hooks = tuple(hook for hook in row.explanation.hooks if id(hook.spec) in running)
    by, reason = trial.decided_by
    return Row(
        _CALL.get(trial.decision, Answer.DENY),
        replace(row.explanation, hooks=hooks),
        trial.unreadable or reason or ("" if by else "no rule is about this call"),
        ", ".join(filter(None, (by, _place_of(trial, subject)))),
    )


async def _judged(subject: Subject, session: Session, known: KnownTools, tool: str, raw: bytes) -> TrialResult:
    from ..trial.run import TrialCall, TrialRunner, plan

    loaded = subject.policy.loaded
    session = replace(session, command=session.command or tuple(known.command))
    async with TrialRunner((), plan(None, False, loaded.settings), session, subject.policy.environ) as trials:
        trials.hooks.note_tools(known.tools, known.server_info)
        return await trials.call(TrialCall(tool, raw))


def _place_of(trial: TrialResult, subject: Subject) -> str:
    """Where the rule or limit that decides a call is written; empty if none does."""
    decision = trial.hook_decision
    if place := getattr(decision, "place", ""):
        return str(place)
    request = getattr(decision, "approval_request", None)
    if request is None:
        return ""
    settings = subject.policy.loaded.settings
    of_layer = settings.managed if request.managed and settings.managed else settings
    # hooks are left out, so a request without a rule is that of the default
    return of_layer.rule_places.get(f"ask {request.rule}" if request.rule else "default", "")
