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

from msgspec import Struct
from msgspec.structs import replace

from ..checks.startup_notes import KeyLines, finding
from ..dialects.shared.hook_file import suggestion
from ..hooks.explain import ANY_OTHER, Answer, Explanation, HookAbout, RuleAbout, explain, hooks_of_call
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS
from ..model.hooks import Session, Tool
from ..model.settings import Limit, OnAsk
from .common import load_named, show, split_command, tell, unread_file, working_directory
from .layout import Page, document, label, new_page, short_path
from .offline import OfflinePolicy, closed, gateway_named, policy_at, server_named, users_named
from .options import GATEWAY_OPTIONS, HOOK_OPTIONS, Parser
from .tool_lists import KnownTools, known_tools

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..gateway.identities import Identity
    from ..trial.run import TrialResult

VERSION: Final = 1
"""The version of the JSON document's format."""

_WORDS: Final = {Answer.ALLOW: "allowed", Answer.ASK: "a person is asked", Answer.DENY: "refused"}
_STYLES: Final = {Answer.ALLOW: "green", Answer.ASK: "bold yellow", Answer.DENY: "bold red"}
_VERBS: Final = {Answer.ALLOW: "allows it", Answer.ASK: "asks a person", Answer.DENY: "refuses it"}
_CALL: Final = {"allow": Answer.ALLOW, "asked-allow": Answer.ALLOW, "asked": Answer.ASK}
"""What becomes of a call, by the decision of a trial; all others refuse it."""
_MOST_SHOWN: Final = 3  # rules and hooks in a cell of the table: more is for `explain` of the tool


class _Row(Struct, frozen=True):
    """What holds for one tool."""

    answer: Answer
    explanation: Explanation
    reason: str = ""
    """Of a call with arguments: why."""
    by: str = ""
    """Of a call with arguments: who decides, in words, with the place; empty: no rule and no limit."""

    @property
    def is_sure(self) -> bool:
        """No arguments that are not known change it."""
        return bool(self.by or self.reason) or not self.explanation.otherwise


class _Subject(Struct, frozen=True):
    """Whose calls at which server are explained."""

    policy: OfflinePolicy
    name: str
    config: GatewayConfig | None = None

    @property
    def identity(self) -> Identity | None:
        """Who calls; None: nobody in particular."""
        return self.policy.identity

    @property
    def server(self) -> GatewayServer | None:
        """The server of a gateway."""
        return self.policy.server

    @property
    def admitted(self) -> bool:
        """The user may use the server at all."""
        return self.server is None or self.identity is None or self.server.allows(self.identity.principal)


def main(arguments: Sequence[str]) -> int:
    """Print what holds. Returns the exit status."""
    words, command = split_command(arguments)
    options = build_parser().parse_args(words)
    cwd = working_directory()
    subjects = list(_subjects(options, command, cwd))
    tools = known_tools(subjects[0].policy, options.tools, command or subjects[0].policy.session("", "", cwd).command)
    explained = [(subject, list(_rows(subject, options, tools, cwd))) for subject in subjects]
    if options.json:
        show(document({"v": VERSION, "explanations": [_members(subject, rows) for subject, rows in explained]}))
    else:
        page = new_page()
        for subject, rows in explained:
            _print(page, subject, rows, options.tool, cwd)
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
    parser.add_argument("--name", metavar="SERVER", help="the server's name as hooks see it (default: server)")
    parser.add_common(*GATEWAY_OPTIONS, "--json")
    return parser


def _subjects(options: Namespace, command: Sequence[str], cwd: str) -> Iterator[_Subject]:
    """Whose calls are meant: a user of a gateway may be known with several lists of groups. Raises UserError."""
    config = gateway_named(options, cwd)
    if config is None:
        from .run import server_name

        loaded = load_named(options, cwd)
        tell(unread_file(options.config, loaded.path, cwd))
        if not (loaded.groups or loaded.settings.rule_count or loaded.settings.limits or loaded.settings.managed):
            tell("no hook and no rule is configured: name files with --config FILE or --hooks FILE")
        name = options.name or (server_name(command) if command else "server")
        yield _Subject(OfflinePolicy(loaded, os.environ), name)
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
        yield _Subject(policy_at(server, identity), server.name, config)


# --- what holds ---


def _rows(subject: _Subject, options: Namespace, known: KnownTools, cwd: str) -> Iterator[_Row]:
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
        row = _Row(explanation.decision, explanation)
        if options.arguments is not None:
            row = _of_call(subject, row, session, known, options.arguments)
        yield row


def _of_call(subject: _Subject, row: _Row, session: Session, known: KnownTools, arguments: str) -> _Row:
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
    return _Row(
        _CALL.get(trial.decision, Answer.DENY),
        replace(row.explanation, hooks=hooks),
        trial.unreadable or reason or ("" if by else "no rule is about this call"),
        ", ".join(filter(None, (by, _place_of(trial, subject)))),
    )


async def _judged(subject: _Subject, session: Session, known: KnownTools, tool: str, raw: bytes) -> TrialResult:
    from ..trial.run import TrialCall, TrialRunner, plan

    loaded = subject.policy.loaded
    session = replace(session, command=session.command or tuple(known.command))
    async with TrialRunner((), plan(None, False, loaded.settings), session, subject.policy.environ) as trials:
        trials.hooks.note_tools(known.tools, known.server_info)
        return await trials.call(TrialCall(tool, raw))


def _place_of(trial: TrialResult, subject: _Subject) -> str:
    """Where the rule or limit that decides a call is written; empty if none does."""
    decision = trial.hook_decision
    if place := getattr(decision, "place", ""):
        return str(place)
    request = getattr(decision, "approval_request", None)
    if request is None:
        return ""
    settings = subject.policy.loaded.settings
    of_layer = settings.managed if request.managed and settings.managed else settings
    return of_layer.rule_places.get(f"ask {request.rule}", "")


# --- for people ---


def _print(page: Page, subject: _Subject, rows: Sequence[_Row], tool: str | None, cwd: str) -> None:
    if not subject.admitted:
        what = f"{tool} of {subject.name}" if tool else subject.name
        page.line(f"{what}{_for_whom(subject)}: ", ("refused", _STYLES[Answer.DENY]))
        for name, text in _not_admitted(subject, cwd):
            page.row(label(name), text)
        page.line()
    elif tool is not None:
        _print_one(page, subject, rows[0], cwd)
    else:
        _print_table(page, subject, rows, cwd)


def _for_whom(subject: _Subject) -> str:
    if subject.identity is None:
        return ""
    groups = ", ".join(subject.identity.principal.groups) or "no group"
    return f", for {subject.identity.principal.name} in {groups} ({subject.identity.known_by})"


def _not_admitted(subject: _Subject, cwd: str) -> Iterator[tuple[str, str]]:
    config, server, identity = subject.config, subject.server, subject.identity
    assert config, "only a gateway has users"
    assert server, "as above"
    assert identity, "as above"
    place = _shown(f"{config.path}: servers.{server.name}.allow", cwd)
    yield "by", place
    yield (
        "reason",
        f"it names {', '.join(server.table.users or ()) or 'nobody'}; for all others there is no such server",
    )
    yield "change", f'add "{identity.principal.name}", or a group with @ in front, to {place}'


def _print_one(page: Page, subject: _Subject, row: _Row, cwd: str) -> None:
    explanation = row.explanation
    some = f", and {_some(row)}" if not row.is_sure else ""
    unless = ", unless a hook refuses it" if row.answer is not Answer.DENY and explanation.deciding_hooks else ""
    page.line(
        f"{explanation.tool} of {subject.name}{_for_whom(subject)}: ",
        (f"{_WORDS[row.answer]}{some}{unless}", _STYLES[row.answer] if row.is_sure else "bold yellow"),
    )
    for name, text in _details(subject, row, cwd):
        page.row(label(name), text)
    page.line()


def _some(row: _Row) -> str:
    """What other rules do to some calls."""
    denied = any(rule.decision is Answer.DENY for rule in row.explanation.otherwise)
    return "some calls are refused" if denied else "about some calls a person is asked"


def _details(subject: _Subject, row: _Row, cwd: str) -> Iterator[tuple[str, str]]:
    explanation = row.explanation
    yield from _reasons(subject, row, cwd)
    if row.answer is Answer.ASK and subject.config is not None and (approvers := subject.config.roles.approver):
        yield "asks", f"{', '.join(approvers)}, but never who calls (roles.approver)"
    for hook in explanation.hooks:
        yield "hook", _hook(hook, explanation, cwd)
    for limit in explanation.limits:
        yield "limit", _limit(limit, subject, cwd)
    if explanation.is_hidden:
        yield "hidden", "the list of tools that agents get does not have it"
    if explanation.known_as:
        yield "names", f"hooks and rules may know it as {', '.join(explanation.known_as)}, too"
    for text in _changes(subject, row, cwd):
        yield "change", text


def _reasons(subject: _Subject, row: _Row, cwd: str) -> Iterator[tuple[str, str]]:
    """Who decides, and why."""
    explanation = row.explanation
    if row.by or row.reason:
        if row.by:
            yield "by", _shown(row.by, cwd)
        if row.reason:
            yield "reason", row.reason
        return
    if explanation.by is None:
        yield "by", "no rule is about every call of it, and what no rule is about is allowed"
    else:
        yield "by", _written(explanation.by, subject, cwd)
    for rule in explanation.otherwise:
        yield "some", f"{_VERBS[rule.decision]} if its arguments match {_written(rule, subject, cwd)}"


def _written(rule: RuleAbout, subject: _Subject, cwd: str) -> str:
    """A rule, for whom it is, and where it is written."""
    of_people = subject.server.rules_for_users if subject.server else ()
    users = next((table.users for table, places in of_people if rule.place in places.values()), ())
    people = f" for {', '.join(users)}" if users else ""
    return f"{_rule(rule)}{people}, {_shown(rule.place, cwd)}"


def _rule(rule: RuleAbout) -> str:
    return f"the {'managed ' if rule.managed else ''}{rule.decision} rule {rule.text}"


def _hook(hook: HookAbout, explanation: Explanation, cwd: str) -> str:
    spec = hook.spec
    what = "may refuse it" if hook in explanation.deciding_hooks else "decides nothing before the call"
    only = f", only if {spec.only_if}" if spec.only_if else ""
    names = [name for name in hook.names if name != explanation.tool]
    seen = f", sees it as {' and '.join(names)}" if names else ""
    managed = ", managed" if hook.group.managed else ""
    return f"{spec.event}: {spec.target or spec.label} ({what}{only}{seen}{managed}), {_shown(spec.source, cwd)}"


def _amount(limit: Limit) -> dict[str, int]:
    return {"bytes": limit.size} if limit.size else {"calls": limit.calls}


def _limit(limit: Limit, subject: _Subject, cwd: str) -> str:
    whose = "" if subject.server is None else " of all users together" if limit.together else " of one user"
    return f"{limit.amount} of {limit.tool}{whose} per {limit.per}, {_shown(limit.place, cwd)}"


def _changes(subject: _Subject, row: _Row, cwd: str) -> Iterator[str]:
    """What would make it another answer."""
    explanation, by = row.explanation, row.explanation.by
    settings = subject.policy.loaded.settings
    if row.by and by is None:  # of this call alone: its rule is about arguments
        yield f"remove it from {_shown(row.by.rpartition(', ')[2], cwd)}, or let it name other arguments"
        return
    if by is not None and by.decision is not Answer.ALLOW:
        place = _shown(by.place, cwd)
        rest = tuple(rule for rule in explanation.rules if rule is not by and rule.text != by.text)
        after = replace(explanation, rules=rest)
        who = "only root can remove it" if by.managed else "remove it"
        yield f"{who} from {place}: then {_what_follows(after, subject, cwd)}"
        if by.decision is Answer.ASK and row.answer is not Answer.ASK:
            yield f'on_ask = "{settings.on_ask}" answers for the person: on_ask = "{OnAsk.ELICIT}" asks'
        return
    table = f"[servers.{subject.name}.permissions]" if subject.server is not None else "[permissions]"
    file = short_path(subject.config.path if subject.config else subject.policy.loaded.path or "hookproxy.toml", cwd)
    name = explanation.tool
    yield f'under {table} of {file}, deny = ["{name}"] refuses it, and ask = ["{name}"] asks a person'
    if subject.server is not None:
        yield f"for some people only: the same with users = […] under [[servers.{subject.name}.permissions.for]]"


def _what_follows(explanation: Explanation, subject: _Subject, cwd: str) -> str:
    by = explanation.by
    some = ", unless its arguments match another rule" if explanation.otherwise else ""
    if by is None:
        return f"it is allowed{some}"
    return f"{_written(by, subject, cwd)} {_VERBS[by.decision]}{some}"


def _print_table(page: Page, subject: _Subject, rows: Sequence[_Row], cwd: str) -> None:
    page.line((f"tools of {subject.name}", "bold"), _for_whom(subject))
    names = ["any other" if row.explanation.tool == ANY_OTHER else row.explanation.tool for row in rows]
    width = min(max(map(len, names), default=0), 40)
    for name, row in zip(names, rows, strict=True):
        word = _WORDS[row.answer] if row.is_sure else f"{_WORDS[row.answer]}, {_some(row)}"
        why = "; ".join(_cells(row, cwd))
        page.row((f"  {name.ljust(width)}  ", ""), f"{word}{': ' * bool(why)}{why}", "" if row.is_sure else "yellow")
    page.line()


def _cells(row: _Row, cwd: str) -> Iterator[str]:
    explanation = row.explanation
    rules = [*explanation.otherwise, *([explanation.by] if explanation.by else [])]
    yield from (f"{rule.decision} {rule.text} ({_shown(rule.place, cwd)})" for rule in rules[:_MOST_SHOWN])
    if len(rules) > _MOST_SHOWN:
        yield f"{len(rules) - _MOST_SHOWN} more rules"
    if row.answer is not Answer.DENY and (hooks := explanation.deciding_hooks):
        labels = ", ".join(dict.fromkeys(hook.spec.label for hook in hooks[:_MOST_SHOWN]))
        yield f"{counted(len(hooks), 'hook')} may refuse: {labels}{' …' if len(hooks) > _MOST_SHOWN else ''}"
    for limit in explanation.limits:
        yield f"{limit.amount} per {limit.per}"


_LINES: Final = KeyLines()


def _shown(place: str, cwd: str) -> str:
    """A place with its line, and the file as it is seen from here."""
    if not place:
        return "whose place is not known"
    before, comma, rest = place.rpartition(", ")
    found = finding(f"{rest} ", _LINES)
    at = f"{short_path(found.file, cwd)}:{found.line}" if found.line else short_path(found.file, cwd)
    key = found.key or found.text.strip()
    return f"{before}{comma}{f'{at}: {key}' if found.file else rest}"


# --- for programs ---


def _members(subject: _Subject, rows: Sequence[_Row]) -> dict[str, object]:
    principal = subject.identity.principal if subject.identity else None
    return {
        "file": subject.config.path if subject.config else subject.policy.loaded.path or None,
        "server": subject.name,
        "user": principal and principal.name,
        "groups": principal and list(principal.groups),
        "known_by": subject.identity and subject.identity.known_by,
        "admitted": subject.admitted,
        "tools": [_row_members(subject, row) for row in rows] if subject.admitted else [],
    }


def _row_members(subject: _Subject, row: _Row) -> dict[str, object]:
    explanation = row.explanation
    return {
        "tool": None if explanation.tool == ANY_OTHER else explanation.tool,
        "decision": row.answer,
        "sure": row.is_sure,
        "by": row.by or (explanation.by and _rule(explanation.by)),
        "reason": row.reason,
        "rules": [
            {
                "decision": rule.decision,
                "rule": rule.text,
                "always": rule.always,
                "managed": rule.managed,
                **_place_members(rule.place),
            }
            for rule in explanation.rules
        ],
        "hooks": [
            {
                "event": hook.spec.event,
                "label": hook.spec.label,
                "decides": hook in explanation.deciding_hooks,
                "if": hook.spec.only_if,
                "names": hook.names,
                "managed": hook.group.managed,
                **_place_members(hook.spec.source),
            }
            for hook in explanation.hooks
        ],
        "limits": [
            {"tool": limit.tool, **_amount(limit), "per": limit.per, **_place_members(limit.place)}
            for limit in explanation.limits
        ],
        "known_as": explanation.known_as,
        "hidden": explanation.is_hidden,
        "change": list(_changes(subject, row, "/nowhere")),
    }


def _place_members(place: str) -> dict[str, object]:
    found = finding(f"{place} ", _LINES)
    return {"file": found.file, "line": found.line, "key": found.key or found.text.strip()}
