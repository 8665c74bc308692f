"""Rules and matchers that name no tool of a server, and what their authors may have meant. Pure.

A misspelt rule is silent otherwise (law 3). Names of a server are quoted and cut: sentences with them may be printed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct

from ..dialects.dialect import claude_tool_name
from ..dialects.shared.hook_file import suggestion
from ..model.aliases import FAMILIAR_NAMES
from ..policy import matchers
from ..policy.rule_repairs import glob_meant

_OF_SERVER: Final = re.compile(r"mcp__((?:(?!__).)+)(?:__(.*))?", re.DOTALL)
_SIMILAR: Final = 0.8  # of two names: `git_psuh` and `git_push`, but not `git_pull`
_SIMILAR_GLOB: Final = 0.7  # of a name and a glob without its stars, as `*_comit` and `git_commit`
_LONGEST_NAME: Final = 60  # characters of a tool's name that is suggested
_MOST_COMPARED: Final = 500  # tools: comparing one takes tens of microseconds


class IdleRule(Struct, frozen=True):
    """A permission rule that is about no tool of the server, and about no method."""

    decision: str
    text: str
    place: str
    """File, line and key; empty if not known."""
    near: str = ""
    """What may be meant, in a few words; empty if nothing is like it."""

    is_general: bool = False
    """It may be meant for other servers: it names a familiar tool, or many tools by a glob, or another server."""

    @staticmethod
    def of(decision: str, text: str, place: str, server: str, tools: Collection[str]) -> IdleRule:
        """The rule with what may be meant; the last two are as in `near_name`."""
        name = name_of(text)
        near = near_name(name, server, tools)
        of_other = name.startswith("mcp__") and not name.startswith(f"mcp__{_as_named(server)}__")
        is_general = not near and (name in FAMILIAR_NAMES or bool(set(name) & set("*?[")) or of_other)
        return IdleRule(decision, text, place, near, is_general)


def name_of(rule: str) -> str:
    """The name in a rule, without what it says of arguments."""
    return matchers.rule(rule).text.partition("(")[0]


def servers_named(rules: Iterable[str]) -> list[str]:
    """The servers that rules are about by their names, in order."""
    return sorted(
        {found[1] for rule in rules if (found := _OF_SERVER.fullmatch(name_of(rule))) and "*" not in found[1]}
    )


def near_name(name: str, server: str, tools: Collection[str]) -> str:
    """What may be meant by a name, a glob or a word of a matcher that is nobody's; empty if nothing is like it.

    `tools` are the names of the server's tools, and `server` is its own as hooks see it; empty: not known.
    """
    listed = [tool for tool in tools if len(tool) <= _LONGEST_NAME][:_MOST_COMPARED]
    if glob := glob_meant(name):
        return f"write {glob!r}: rules are globs, in which a dot is only a dot"
    if of_server := _OF_SERVER.fullmatch(name):
        return _near_on_server(of_server[1], of_server[2] or "", server, listed)
    if re.match(r"mcp_(?!_)", name):
        return "names of servers' tools begin with two lines: mcp__SERVER__TOOL"
    if stars := set(name) & set("*?["):
        bare = re.sub(r"[*?\[\]]+", "", name)
        return suggestion(bare, [*listed, *FAMILIAR_NAMES], _SIMILAR_GLOB) if len(bare) > len(stars) + 2 else ""
    if name.casefold() in map(str.casefold, FAMILIAR_NAMES):
        return "" if name in FAMILIAR_NAMES else suggestion(name, FAMILIAR_NAMES, _SIMILAR)
    if swapped := next((known for known in sorted(FAMILIAR_NAMES) if sorted(known) == sorted(name)), ""):
        return f"did you mean {swapped!r}?"  # in a short name two swapped letters leave little that is alike
    return suggestion(name, [*listed, *FAMILIAR_NAMES], _SIMILAR)


def _fits(tool: str, listed: Sequence[str]) -> bool:
    """Whether the name of a tool in a rule for another server, or a glob that is more than a star, fits one of this."""
    if not re.search(r"[A-Za-z0-9]", tool):
        return False
    fits = matchers.rule(tool).name.fullmatch
    return any(fits(name) for name in listed)


def _as_named(server: str) -> str:
    """A server's name as it stands in the names of its tools."""
    return claude_tool_name(server, "").removeprefix("mcp__").removesuffix("__")


def _near_on_server(named: str, tool: str, server: str, listed: Sequence[str]) -> str:
    """What may be meant by `mcp__NAMED__TOOL`."""
    if not server:
        return ""
    own = _as_named(server)
    if named == own:
        near = suggestion(tool, listed, _SIMILAR) if tool and not set(tool) & set("*?[") else ""
        return near.replace("'", f"'mcp__{own}__", 1)
    if sorted(named) == sorted(own) or suggestion(named, [own], _SIMILAR):  # short names differ by two letters at once
        return f"did you mean 'mcp__{own}{'__' * bool(tool)}{tool}'?"
    if _fits(tool, listed) or named.casefold() in re.split(r"[^a-z0-9]+", own.casefold()):
        return f"the server is {own!r} here: --name {named} names it"
    return ""


def misspelt(settings_rules: Iterable[str], known: Collection[str]) -> Iterable[tuple[str, str]]:
    """The rules with a name that is nobody's, whatever the server is, each with what may be meant.

    `known` are names that tools have by the configuration, or that tools of well-known servers have.
    """
    for text in settings_rules:
        name = name_of(text)
        if name in known or matchers.rule(text).names_methods or set(name) & set("*?[") or name.startswith("mcp__"):
            continue
        if name.casefold() not in map(str.casefold, FAMILIAR_NAMES) and (near := near_name(name, "", ())):
            yield text, near
