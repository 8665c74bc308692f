"""What is learned, as the text of a hookproxy.toml: each rule with its evidence in a comment. Pure.

Law: names and arguments are whatever an agent or a server makes of them. None ends its string or its comment, and what
looks like a secret in one is masked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ..model.counts import counted
from ..model.errors import toml_comment, toml_string
from ..policy import methods
from ..policy.rules import parsed
from .masked import cleaned, example
from .observations import Observations, Outcome, Seen
from .proposal import Learned, Lost, PermissionName, Proposal

_MOST_NAMES: Final = 3  # agents and users of a rule
_MOST_LOST: Final = 12  # tools with lost calls: the most calls first
_HEADINGS: Final[Mapping[PermissionName, str]] = {
    "deny": "Denied, as it was.",
    "ask": "A person is asked, as before, or because nothing tells these calls from those that were denied.",
    "allow": "Allowed, because it passed.",
}


def toml_of(proposal: Proposal, observations: Observations, sources: Sequence[str]) -> str:
    """The text. `sources` are the files that were read. Raises nothing, whatever was recorded."""
    return "".join(f"{line}\n" for line in _lines(proposal, observations, sources))


def _lines(proposal: Proposal, observations: Observations, sources: Sequence[str]) -> Iterator[str]:
    yield from _head(proposal, observations, sources)
    yield ""
    yield "[permissions]"
    yield 'default = "deny"  # whatever no rule below is about is refused'
    yield 'unreadable = "deny"  # and so is a command line that nobody can read for certain'
    for permission in _HEADINGS:
        rules = proposal.of(permission)
        if rules:
            yield ""
            yield from toml_comment(_HEADINGS[permission])
            yield f"{permission} = ["
            for learned in rules:
                yield from toml_comment(_evidence(learned, several_users=len(observations.users) > 1), "    ")
                yield f"    {toml_string(learned.rule)},"
            yield "]"
    if proposal.lost:
        yield ""
        yield from _lost(proposal.lost)
    yield ""
    yield "# Not learned, or not certain:"
    for remark in (*proposal.remarks, *_not_counted(observations)):
        yield from toml_comment(remark, bullet="- ")
    if unnamed := _unnamed_methods(proposal):
        yield from toml_comment(f"These requests pass, because no rule names their methods: {unnamed}.", bullet="- ")


def _head(proposal: Proposal, observations: Observations, sources: Sequence[str]) -> Iterator[str]:
    calls, servers = counted(observations.records, "call"), counted(len(observations.servers), "server")
    by = f", by {_names(observations.agents)}" if observations.agents else ""
    users = f", of {_names(observations.users)}" if len(observations.users) > 1 else ""
    yield from toml_comment(f"Learned by `hookproxy learn` from {calls} of {servers}{by}{users}: {', '.join(sources)}.")
    yield from toml_comment(
        "Read it before you use it: it allows what was done, and nobody has said that all of it was right. Nothing is "
        "changed until you make it a hookproxy.toml of yours. `hookproxy replay` shows what it would decide otherwise."
    )
    passing = f"{proposal.passing} of {proposal.passed}" if proposal.passed else "none, because none was seen"
    yield from toml_comment(
        f"Of the calls that had passed, it lets pass {passing}. Of the calls that had been denied, "
        f"{counted(proposal.denied, 'call')}, it lets pass none."
    )
    if len(observations.users) > 1:
        yield from toml_comment(
            "The rules are for all users together: what passed for one and was denied for another is asked about. "
            "`--user NAME` learns for one of them."
        )
    if len(observations.servers) > 1 and any("/" in rule.rule.partition("(")[0] for rule in proposal.rules):
        yield from toml_comment(
            "Rules about methods, such as resources/read, hold for all servers: they have no server's name."
        )


def _evidence(learned: Learned, *, several_users: bool) -> str:
    seen = learned.seen
    parts = [_counts(seen), f"{learned.different} different" if learned.different > 1 else ""]
    text = ", ".join(filter(None, parts))
    if seen.agents:
        text += f", by {_names(seen.agents)}"
    if seen.users and several_users:
        text += f", of {_names(seen.users)}"
    if seen.first:
        first, last = seen.first[:10], seen.last[:10]
        text += f", {first}" if first == last else f", {first} to {last}"
    if learned.example:
        text += f". Such as {example(learned.example)}"
    if learned.permission == "allow":
        text += f". Opens {learned.opens}."
    return text


def _counts(seen: Seen) -> str:
    return ", ".join(f"{number} {outcome.value}" for outcome in Outcome if (number := seen.count(outcome)))


def _lost(lost: Sequence[Lost]) -> Iterator[str]:
    calls = counted(sum(tool.calls for tool in lost), "call")
    yield from toml_comment(f"What would be refused or asked about, of that which had passed: {calls}.")
    for tool in sorted(lost, key=lambda tool: -tool.calls)[:_MOST_LOST]:
        server = f" ({tool.server})" if tool.server else ""
        text = f"{tool.calls} of {tool.tool}{server}, {'asked about' if tool.asks else 'refused'}"
        if tool.why:
            text += f": {tool.why}"
        for arguments in tool.examples:
            text += f"; {example(arguments)}"
        yield from toml_comment(text, bullet="- ")
    if len(lost) > _MOST_LOST:
        yield from toml_comment(f"and {counted(len(lost) - _MOST_LOST, 'other tool')}", bullet="- ")


def _unnamed_methods(proposal: Proposal) -> str:
    """The methods about which no rule is: the default does not hold for them."""
    named = [parsed(learned.rule) for learned in proposal.rules]
    return ", ".join(method for method in methods.JUDGED if not any(rule.names_tool(method) for rule in named))


def _not_counted(observations: Observations) -> Iterable[str]:
    if observations.sent:
        yield (
            f"Of {counted(observations.sent, 'call')} the audit does not say whether the server did what was asked. "
            'They count; [audit] results = "outcome" records it.'
        )
    yield from [f"Not counted, {counted(number, 'time')}: {why}." for why, number in observations.left_out.items()]


def _names(table: Mapping[str, int]) -> str:
    names = sorted(table, key=lambda name: (-table[name], name))
    shown = [cleaned(name) for name in names[:_MOST_NAMES]]
    return " and ".join((*shown, *([f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else [])))
