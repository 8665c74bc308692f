"""What `explain` has found out, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..checks.startup_notes import KeyLines, finding
from ..hooks.explain import ANY_OTHER, Answer, Explanation, HookAbout, RuleAbout
from ..model.counts import counted
from ..model.limits import Beyond, Limit
from ..model.settings import OnAsk
from .layout import Page, label, short_path
from .offline import OfflinePolicy

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..gateway.identities import Identity

_WORDS: Final = {Answer.ALLOW: "allowed", Answer.ASK: "a person is asked", Answer.DENY: "refused"}
_STYLES: Final = {Answer.ALLOW: "green", Answer.ASK: "bold yellow", Answer.DENY: "bold red"}
_VERBS: Final = {Answer.ALLOW: "allows it", Answer.ASK: "asks a person", Answer.DENY: "refuses it"}
_OF_SOME: Final = {
    Answer.ALLOW: "some calls are allowed",
    Answer.ASK: "about some calls a person is asked",
    Answer.DENY: "some calls are refused",
}
_MOST_SHOWN: Final = 3  # rules and hooks in a cell of the table: more is for `explain` of the tool
_LINES: Final = KeyLines()


class Row(Struct, frozen=True):
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


class Subject(Struct, frozen=True):
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


# --- for people ---


def print_subject(page: Page, subject: Subject, rows: Sequence[Row], tool: str | None, cwd: str) -> None:
    """Print what holds for a user at a server: of this tool whole, or a table of all; None: no tool is named."""
    if not subject.admitted:
        what = f"{tool} of {subject.name}" if tool else subject.name
        page.line(f"{what}{for_whom(subject.identity)}: ", ("refused", _STYLES[Answer.DENY]))
        for name, text in _not_admitted(subject, cwd):
            page.row(label(name), text)
        page.line()
    elif tool is not None:
        _print_one(page, subject, rows[0], cwd)
    else:
        _print_table(page, subject, rows, cwd)


def for_whom(identity: Identity | None) -> str:
    """The user that is meant, and how the groups are known; empty: nobody in particular."""
    if identity is None:
        return ""
    groups = ", ".join(identity.principal.groups) or "no group"
    return f", for {identity.principal.name} in {groups} ({identity.known_by})"


def _not_admitted(subject: Subject, cwd: str) -> Iterator[tuple[str, str]]:
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


def _print_one(page: Page, subject: Subject, row: Row, cwd: str) -> None:
    explanation = row.explanation
    some = f", and {_some(row)}" if not row.is_sure else ""
    unless = ""
    if explanation.deciding_hooks and row.answer is not Answer.DENY:
        unless = ", unless a hook refuses it"
    elif explanation.deciding_hooks and explanation.by is not None and explanation.by.is_default:
        unless = ", unless a hook allows it or asks"
    page.line(
        f"{explanation.tool} of {subject.name}{for_whom(subject.identity)}: ",
        (f"{_WORDS[row.answer]}{some}{unless}", _STYLES[row.answer] if row.is_sure else "bold yellow"),
    )
    for name, text in _details(subject, row, cwd):
        page.row(label(name), text)
    page.line()


def _some(row: Row) -> str:
    """What other rules do to some calls."""
    answers = {rule.decision for rule in row.explanation.otherwise} - {row.answer}
    strictest = next((answer for answer in reversed(Answer) if answer in answers), row.answer)
    return _OF_SOME[strictest]


def _details(subject: Subject, row: Row, cwd: str) -> Iterator[tuple[str, str]]:
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


def _reasons(subject: Subject, row: Row, cwd: str) -> Iterator[tuple[str, str]]:
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


def _written(rule: RuleAbout, subject: Subject, cwd: str) -> str:
    """A rule, for whom it is, and where it is written."""
    of_people = subject.server.rules_for_users if subject.server else ()
    users = next((table.users for table, places in of_people if rule.place in places.values()), ())
    people = f" for {', '.join(users)}" if users else ""
    return f"{_rule(rule)}{people}, {_shown(rule.place, cwd)}"


def _rule(rule: RuleAbout) -> str:
    managed = "managed " if rule.managed else ""
    return f"the {managed}{rule.text}" if rule.is_default else f"the {managed}{rule.decision} rule {rule.text}"


def _hook(hook: HookAbout, explanation: Explanation, cwd: str) -> str:
    spec = hook.spec
    what = "may refuse it" if hook in explanation.deciding_hooks else "decides nothing before the call"
    only = f", only if {spec.only_if}" if spec.only_if else ""
    names = [name for name in hook.names if name != explanation.tool]
    seen = f", sees it as {' and '.join(names)}" if names else ""
    managed = ", managed" if hook.group.managed else ""
    return f"{spec.event}: {spec.target or spec.label} ({what}{only}{seen}{managed}), {_shown(spec.source, cwd)}"


def _limit_members(limit: Limit) -> dict[str, object]:
    members: dict[str, object] = {"tool": limit.tool, limit.measure.value: limit.most, "per": limit.per}
    if limit.window:
        members["window"] = limit.window
    if limit.within is not None:
        members["within"] = limit.within
    return members if limit.beyond is Beyond.DENY else {**members, "then": limit.beyond}


def _limit(limit: Limit, subject: Subject, cwd: str) -> str:
    whose = "" if subject.server is None else " of all users together" if limit.together else " of one user"
    return f"{limit.amount} of {limit.tool}{whose} {limit.span}, {_shown(limit.place, cwd)}"


def _changes(subject: Subject, row: Row, cwd: str) -> Iterator[str]:
    """What would make it another answer."""
    explanation, by = row.explanation, row.explanation.by
    settings = subject.policy.loaded.settings
    if row.by and by is None:  # of this call alone: its rule is about arguments
        yield f"remove it from {_shown(row.by.rpartition(', ')[2], cwd)}, or let it name other arguments"
        return
    if by is not None and by.is_default:
        who = "only root can change it: " if by.managed else ""
        yield f'{who}allow = ["{explanation.tool}"] beside {_shown(by.place, cwd)} allows it, and ask a person is asked'
        return
    if by is not None and by.decision is not Answer.ALLOW:
        place = _shown(by.place, cwd)
        after = explanation.without(by)
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


def _what_follows(explanation: Explanation, subject: Subject, cwd: str) -> str:
    by = explanation.by
    some = ", unless its arguments match another rule" if explanation.otherwise else ""
    if by is None:
        return f"it is allowed{some}"
    return f"{_written(by, subject, cwd)} {_VERBS[by.decision]}{some}"


def _print_table(page: Page, subject: Subject, rows: Sequence[Row], cwd: str) -> None:
    page.line((f"tools of {subject.name}", "bold"), for_whom(subject.identity))
    names = ["any other" if row.explanation.tool == ANY_OTHER else row.explanation.tool for row in rows]
    width = min(max(map(len, names), default=0), 40)
    for name, row in zip(names, rows, strict=True):
        word = _WORDS[row.answer] if row.is_sure else f"{_WORDS[row.answer]}, {_some(row)}"
        why = "; ".join(_cells(row, cwd))
        page.row((f"  {name.ljust(width)}  ", ""), f"{word}{': ' * bool(why)}{why}", "" if row.is_sure else "yellow")
    page.line()


def _cells(row: Row, cwd: str) -> Iterator[str]:
    explanation = row.explanation
    rules = [*explanation.otherwise, *([explanation.by] if explanation.by else [])]
    yield from (
        f"{rule.text if rule.is_default else f'{rule.decision} {rule.text}'} ({_shown(rule.place, cwd)})"
        for rule in rules[:_MOST_SHOWN]
    )
    if len(rules) > _MOST_SHOWN:
        yield f"{len(rules) - _MOST_SHOWN} more rules"
    if row.answer is not Answer.DENY and (hooks := explanation.deciding_hooks):
        labels = ", ".join(dict.fromkeys(hook.spec.label for hook in hooks[:_MOST_SHOWN]))
        yield f"{counted(len(hooks), 'hook')} may refuse: {labels}{' …' if len(hooks) > _MOST_SHOWN else ''}"
    for limit in explanation.limits:
        yield f"{limit.amount} {limit.span}"


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


def members(subject: Subject, rows: Sequence[Row]) -> dict[str, object]:
    """The members of one explanation in the JSON document."""
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


def _row_members(subject: Subject, row: Row) -> dict[str, object]:
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
        "limits": [{**_limit_members(limit), **_place_members(limit.place)} for limit in explanation.limits],
        "known_as": explanation.known_as,
        "hidden": explanation.is_hidden,
        "change": list(_changes(subject, row, "/nowhere")),
    }


def _place_members(place: str) -> dict[str, object]:
    found = finding(f"{place} ", _LINES)
    return {"file": found.file, "line": found.line, "key": found.key or found.text.strip()}
