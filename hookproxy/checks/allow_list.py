"""Proposes an allow list from what a server says of its tools: read-only ones are allowed, about the rest a person is
asked. Pure.

What is written is only what hookproxy says itself: of a server's texts, names alone, and only those that a rule can
name exactly. Another name could be a glob, a comment or the end of a string; such a tool stays refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ..dialects.dialect import claude_tool_name
from ..hooks.familiar_tools import FamiliarTools
from ..model.hooks import Tool
from ..policy import methods
from ..policy.presets import PRESETS, preset_for

SOURCE: Final = "allow-list"
"""What wrote the rules, for people."""

_NAME: Final = re.compile(r"(?!mcp__)[A-Za-z0-9_.-]{1,128}(?:/[A-Za-z0-9_.-]{1,64})*")
"""A tool's name that means only itself in a rule, as it stands."""
_READING: Final = frozenset({"Read", "Grep", "Glob", "LS"})
"""Familiar names of tools that change nothing and send nothing elsewhere."""
_ACTING: Final = frozenset({"Bash", "Write", "Edit", "MultiEdit", "WebFetch"})
"""Those of tools that do, whatever their server says of them: an address can carry out whatever was read."""
_VERB: Final = re.compile(
    r"(?:.*[./])?(?i:add|append|apply|approve|cancel|clear|close|commit|create|delete|deploy|destroy|disable|drop|edit|"
    r"eval|exec|execute|insert|install|kill|merge|modify|move|patch|pay|post|publish|purge|push|put|remove|rename|"
    r"replace|reset|restart|revoke|run|save|send|set|shutdown|start|stop|submit|transfer|truncate|uninstall|update|"
    r"upload|upsert|write)(?![a-z]).*",
    re.DOTALL,
)
"""Names that begin with a word for changing something: no annotation makes such a tool one that only reads."""
_WIDTH: Final = 100  # columns of a line with rules


class AllowList(Struct, frozen=True):
    """The rules for the tools of one server, by what hookproxy knows of each."""

    by_annotation: tuple[str, ...] = ()
    """Allowed: the server says that they only read."""
    by_preset: tuple[str, ...] = ()
    """Allowed: hookproxy knows them as tools that only read."""
    ask: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    """Names of tools that no rule can name exactly: they stay refused."""
    known: tuple[str, ...] = ()
    """Rules that are left out, because the configuration has them already."""

    @property
    def allow(self) -> tuple[str, ...]:
        """All that is allowed."""
        return (*self.by_annotation, *self.by_preset)


def propose(
    tools: Iterable[Tool],
    command: Sequence[str],
    server: str,
    server_info: str,
    *,
    with_server: bool = False,
    known: Collection[str] = (),
) -> AllowList:
    """The rules for these tools.

    `command` is the server's command line, `server` its name as hooks see it, `server_info` the name that it gives
    itself; empty: not known. `with_server`: a rule names the server, too, so that it holds for this one only. `known`
    are rules that stand in the configuration: what a person has decided is not proposed again.
    """
    listed = list(tools)
    familiar = FamiliarTools(command, server=server)
    familiar.note_tools(listed, server_info)
    preset = PRESETS.get(preset_for(command, server_info) or "")
    found: dict[str, list[str]] = {"annotation": [], "preset": [], "ask": [], "unnamed": [], "known": []}
    for tool in listed:
        rule = rule_for(tool.name, server if with_server else "")
        if not rule:
            found["unnamed"].append(tool.name)
        elif rule in known or tool.name in known:
            found["known"].append(rule)
        else:
            aliases = [*familiar.aliases(tool.name), *((preset.aliases_of(tool.name) or ()) if preset else ())]
            names = {tool.name, *(alias.name for alias in aliases)}
            by_preset = bool(preset) and any(alias.name in _READING for alias in aliases)
            found[_why(tool, names, by_preset)].append(rule)
    return AllowList(*map(tuple, found.values()))


def rule_for(tool: str, server: str = "") -> str:
    """The rule that names this tool and no other; empty if there is none."""
    if not _NAME.fullmatch(tool) or methods.glob_names_method(tool):
        return ""
    if not server:
        return tool
    rule = claude_tool_name(server, tool)
    return rule if _NAME.fullmatch(rule.removeprefix("mcp__")) else ""


def _why(tool: Tool, names: Collection[str], by_preset: bool) -> str:
    """Where the rule belongs, by the names of the fields of `AllowList`."""
    if not _ACTING.isdisjoint(names):
        return "ask"
    if by_preset:
        return "preset"
    if _VERB.fullmatch(tool.name):
        return "ask"
    hints = msgspec.json.decode(tool.annotations) if tool.annotations else {}
    reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True
    return "annotation" if reads else "ask"


def text_of(rules: AllowList) -> str:
    """The tables of hookproxy.toml with these rules."""
    return "\n".join((
        "# Only these tools: what no rule is about is refused, and the agent does not see it.",
        "",
        "[permissions]",
        'default = "deny"',
        *_list("allow", [
            ("tools that only read, as their server says itself", rules.by_annotation),
            ("tools that only read, as hookproxy knows them", rules.by_preset),
        ]),
        *_list("ask", [("a person must say yes: move to allow what you trust, remove what nobody needs", rules.ask)]),
        "",
    ))  # fmt: skip


def _list(key: str, parts: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    if not any(rules for _, rules in parts):
        return
    yield f"{key} = ["
    for remark, rules in parts:
        if rules:
            yield f"    # {remark}"
            yield from _lines(rules)
    yield "]"


def _lines(rules: Sequence[str]) -> Iterator[str]:
    line = ""
    for rule in rules:
        item = f'"{rule}",'
        if line and len(line) + len(item) + 1 > _WIDTH:
            yield f"    {line}"
            line = ""
        line = f"{line} {item}".lstrip()
    if line:
        yield f"    {line}"
