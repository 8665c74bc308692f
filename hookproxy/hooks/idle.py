"""Rules and matchers that name no tool of a server, and what their authors may have meant. Pure.

A misspelt rule is silent otherwise (law 3). Names of a server are quoted and cut: sentences with them may be printed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ..dialects.dialect import claude_tool_name
from ..dialects.shared.hook_file import suggestion
from ..model.aliases import FAMILIAR_NAMES
from ..model.similar_names import nearest
from ..policy import matchers
from ..policy.rule_repairs import argument_repair, as_glob, glob_meant, in_plain_signs, rule_repair

_OF_SERVER: Final = re.compile(r"mcp__((?:(?!__).)+)(?:__(.*))?", re.DOTALL)
_SIMILAR: Final = 0.8  # of two names: `git_psuh` and `git_push`, but not `git_pull`
_SIMILAR_GLOB: Final = 0.7  # of a name and a glob without its stars, as `*_comit` and `git_commit`
_SHORTEST_PART: Final = 6  # characters: `list_` and `lint_` are alike by chance
_OTHER_FORM: Final = re.compile(r"(.+?)(?:__|[.:])(.+)|mcp_(?!_)(.+)", re.DOTALL)
"""Names of a server's tool as other programs write them: `files__read`, `files.read`, `mcp_files_read`."""
_GROUP: Final = re.compile(r"\((?:\?:)?([^()]+)\)")
_STARS: Final = frozenset("*?[")
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
        is_general = not near and (name in FAMILIAR_NAMES or bool(set(name) & _STARS) or of_other)
        return IdleRule(decision, text, place, near, is_general)


class UnmatchedRule(Struct, frozen=True):
    """A permission rule or a limit that can match nothing as it is written, whatever the tools are."""

    decision: str
    text: str
    why: str
    """With how to write it, as a predicate of the rule."""


def name_of(rule: str) -> str:
    """The name in a rule, without what it says of arguments."""
    return matchers.rule(rule).text.partition("(")[0]


def why_unmatched(rule: str) -> str:
    """Why a rule can match nothing as it is written, and how to write it, for people; empty: it may match."""
    name = name_of(rule)
    if (plain := in_plain_signs(name)) != name:
        return f"has signs of another script: write {rule.replace(name, plain, 1)!r}"
    if name.startswith("!"):
        return f"is about no tool: {rule_repair(rule)}"
    repair = argument_repair(rule)
    return f"matches no arguments as it is meant: {repair}" if repair else ""


def servers_named(rules: Iterable[str]) -> list[str]:
    """The servers that rules are about by their names, in order."""
    return sorted(
        {found[1] for rule in rules if (found := _OF_SERVER.fullmatch(name_of(rule))) and "*" not in found[1]}
    )


def near_name(name: str, server: str, tools: Collection[str]) -> str:
    """What may be meant by a name or a glob that is nobody's; empty if nothing is like it.

    `tools` are the names of the server's tools, and `server` is its own as hooks see it; empty: not known.
    """
    if glob := glob_meant(name):
        return f"write {glob!r}: rules are globs, in which a dot is only a dot"
    return _near(name, server, _compared(tools))


def near_matched(pattern: str, server: str, tools: Collection[str]) -> Iterator[str]:
    """As `near_name`, for each alternative of a matcher that matches no tool."""
    listed = _compared(tools)
    for name in matchers.plain_names(pattern) or _alternatives(pattern):
        bare = name.removeprefix("^").removesuffix("$")
        yield _near(bare if bare.startswith("mcp__") else as_glob(name), server, listed)


def near_server(named: str, server: str) -> str:
    """What may be meant by the name of a server that is not this one; empty if it may be another one."""
    # short names differ by two letters at once
    is_near = named != server and (sorted(named) == sorted(server) or suggestion(named, [server], _SIMILAR))
    return f"did you mean {server!r}?" if is_near else ""


def _alternatives(pattern: str) -> Iterator[str]:
    """The alternatives of a regular expression, and of the first group in each."""
    for part in re.split(r"\|(?![^(]*\))", pattern):
        if group := _GROUP.search(part):
            yield from (f"{part[: group.start()]}{name}{part[group.end() :]}" for name in group[1].split("|"))
        else:
            yield part


def _compared(tools: Collection[str]) -> list[str]:
    return [tool for tool in tools if len(tool) <= _LONGEST_NAME][:_MOST_COMPARED]


def _near(name: str, server: str, listed: Sequence[str]) -> str:
    if of_server := _OF_SERVER.fullmatch(name):
        return _near_on_server(of_server[1], of_server[2] or "", server, listed)
    if near := _near_in_other_form(name, server, listed):
        return near
    if re.match(r"mcp_(?!_)", name):
        return "names of servers' tools begin with two lines: mcp__SERVER__TOOL"
    if set(name) & _STARS:
        return _near_glob(name, listed, FAMILIAR_NAMES)
    if name.casefold() in map(str.casefold, FAMILIAR_NAMES):
        return "" if name in FAMILIAR_NAMES else suggestion(name, FAMILIAR_NAMES, _SIMILAR)
    if swapped := next((known for known in sorted(FAMILIAR_NAMES) if sorted(known) == sorted(name)), ""):
        return f"did you mean {swapped!r}?"  # in a short name two swapped letters leave little that is alike
    return suggestion(name, [*listed, *FAMILIAR_NAMES], _SIMILAR)


def _near_in_other_form(name: str, server: str, listed: Sequence[str]) -> str:
    """What may be meant by a tool of this server whose name is written as other programs write it."""
    found, own = _OTHER_FORM.fullmatch(name), _as_named(server)
    if not server or found is None:
        return ""
    if found[3]:
        tool = next((tool for tool in listed if found[3] in (f"{own}_{tool}", f"{server}_{tool}")), "")
    else:
        is_own = found[1] in (own, server) or near_server(found[1], own)
        tool = (found[2] if _fits(found[2], listed) else nearest(found[2], listed, _SIMILAR)) if is_own else ""
    return f"did you mean {f'mcp__{own}__{tool}'!r}?" if tool else ""


def _near_glob(glob: str, listed: Sequence[str], others: Collection[str] = ()) -> str:
    """What may be meant by a glob: the tool that begins or ends nearly so, or one of all names that is nearly so."""
    bare = re.sub(r"[*?\[\]]+", "", glob)
    if len(bare) <= len(set(glob) & _STARS) + 2:
        return ""
    length, parts = len(bare), {}
    if glob == f"{bare}*":
        parts = {tool[:length]: tool for tool in reversed(listed)}
    elif glob == f"*{bare}":
        parts = {tool[-length:]: tool for tool in reversed(listed)}
    near = next((part for part in parts if sorted(part) == sorted(bare)), "")
    if near := near or (nearest(bare, parts, _SIMILAR) if length >= _SHORTEST_PART else ""):
        return f"did you mean {parts[near]!r}?"
    others = () if "_" in bare else others  # no familiar name has one: `read_*` is not a misspelt `Read`
    return suggestion(bare, [*listed, *others], _SIMILAR_GLOB)


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
        glob = as_glob(tool)
        near = _near_glob(glob, listed) if set(glob) & _STARS else suggestion(glob, listed, _SIMILAR)
        return near.replace("'", f"'mcp__{own}__", 1)
    if near_server(named, own):
        return f"did you mean 'mcp__{own}{'__' * bool(tool)}{tool}'?"
    if _fits(as_glob(tool), listed) or named.casefold() in re.split(r"[^a-z0-9]+", own.casefold()):
        return f"the server is {own!r} here: --name {named} names it"
    return ""


def misspelt(settings_rules: Iterable[str], known: Collection[str]) -> Iterable[tuple[str, str]]:
    """The rules with a name that is nobody's, whatever the server is, each with what may be meant.

    `known` are names that tools have by the configuration, or that tools of well-known servers have.
    """
    for text in settings_rules:
        name = name_of(text)
        if name in known or matchers.rule(text).names_methods or set(name) & _STARS or name.startswith("mcp__"):
            continue
        if name.casefold() not in map(str.casefold, FAMILIAR_NAMES) and (near := near_name(name, "", ())):
            yield text, near
