"""Determines the effect of a hook's failure, and finds matchers, rules, timeouts and aliases that make no sense."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..dialects.shared.hook_file import suggestion
from ..hooks.select import TOOL_EVENTS, decides_call
from ..model.aliases import FAMILIAR_NAMES, spelled_names
from ..model.hooks import Ended, Event, HookResult
from ..model.settings import OnFailure, SeenNames, Settings, ToolNames
from ..policy import decide, matchers
from ..policy.rule_repairs import in_plain_signs
from .report import ConfiguredHook, FailureEffect, Finding

LONG_TIMEOUT: Final = 1000.0
"""Seconds. Agents give up on a call long before: such a number is meant in milliseconds."""

SHORT_TIMEOUT: Final = 0.1
"""Seconds. Hardly any program starts and answers in less time: such a number is meant in another unit."""

_SIMILAR: Final = 0.7  # of a name in a matcher and a familiar one: `Bahs` and `Bash`
_SEES_BARE: Final = "hooks of this file see only TOOL"

_FAILED: Final = HookResult(Ended.EXITED, 1)
_BEFORE: Final = (Event.PRE_TOOL_USE, Event.PRE_MCP_TOOL_CALL, Event.PERMISSION_REQUEST)
_AFTER: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_ELICITATION_EVENTS: Final = (Event.ELICITATION, Event.ELICITATION_RESULT)
_AWAITED: Final = (*_BEFORE, *_AFTER, Event.SESSION_START, Event.SESSION_END)
"""Events at which something waits until the hooks are done."""


def failure_effect(hook: ConfiguredHook) -> FailureEffect:
    """What happens when this hook fails, by the same rules as in `policy`."""
    spec = hook.spec
    rule = decide.failure_rule(spec, hook.settings, hook.group.on_failure)
    if spec.background or rule is OnFailure.ALLOW:
        return FailureEffect.CONTINUE
    if spec.event in _BEFORE or _may_answer_elicitations(hook):
        return FailureEffect.BLOCK if rule is OnFailure.DENY or _fails_closed(hook) else FailureEffect.CONTINUE
    if spec.event in _AFTER:
        if rule is OnFailure.DENY or spec.withholds:
            return FailureEffect.WITHHOLD
        return FailureEffect.INFORM_MODEL if _fails_closed(hook) else FailureEffect.CONTINUE
    return FailureEffect.CONTINUE


def _fails_closed(hook: ConfiguredHook) -> bool:
    """Whether it fails closed, by its own field or because its dialect denies after the simplest failure."""
    return hook.spec.fails_closed or hook.group.dialect.read_output(hook.spec, _FAILED).fails_closed


def is_awaited(hook: ConfiguredHook) -> bool:
    """Whether something waits for the output of this hook."""
    return (hook.spec.event in _AWAITED or _may_answer_elicitations(hook)) and not hook.spec.background


def _may_answer_elicitations(hook: ConfiguredHook) -> bool:
    """Whether the hook may answer an elicitation of the server, or change the answer."""
    return hook.spec.event in _ELICITATION_EVENTS and hook.group.dialect.answers_elicitations


def seen_names(hook: ConfiguredHook) -> SeenNames | None:
    """Under which names the hook runs for a tool with a familiar name; None: its matcher, `if` or system says which."""
    group, spec = hook.group, hook.spec
    own = group.dialect.mcp_tool_name("server", "tool") if group.tool_names is ToolNames.MCP else "tool"
    if spec.event not in TOOL_EVENTS or spec.only_if or not spec.matches(own):
        return None
    if not any(map(spec.matches, _recognised(hook))):
        return None
    return group.names if group.names is SeenNames.OWN or decides_call(spec) else SeenNames.FAMILIAR


def suspicious_timeout(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about a timeout that seems to be in another unit than seconds."""
    seconds = hook.spec.timeout
    if seconds < SHORT_TIMEOUT:
        yield f"a timeout of {seconds:g} seconds is too short for a program to answer: is another unit meant?"
    elif seconds >= LONG_TIMEOUT and not hook.spec.background and seconds != hook.group.dialect.default_timeout:
        yield f"a timeout of {seconds:g} seconds is longer than agents wait for a call: are milliseconds meant?"


def audit_place(settings: Settings) -> Iterator[str]:
    """A sentence about the path of the audit file, if it cannot be one, or has what is not replaced in it."""
    path = settings.audit_file
    if re.search(r"\$\w|\$\{", path):
        yield f"audit.file: variables are not replaced in {path!r}: write ~ for the home folder, or the whole path"
    elif unknown := re.search(r"\{(?!user\})[^{}/]*\}", path):
        yield f"audit.file: only {{user}} is replaced: write it for {unknown[0]}"
    elif not path.endswith("/") and os.path.isdir(path):
        yield f"audit.file: {path} cannot be written, because it is a folder: write {path}/ for a file in it"


def matcher_that_is_a_rule(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about a matcher of hookproxy.toml that looks for the parentheses of a rule in a tool's name."""
    written = hook.spec.matcher
    if hook.group.match_all_names and hook.spec.event in TOOL_EVENTS and matchers.is_rule(written):
        name = written.partition("(")[0]
        yield f"matcher {written!r} is a permission rule: write matcher = {name!r} and if = {written!r}"


def matcher_of_several(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about a matcher of hookproxy.toml that lists names as no matcher does, or that has an empty name."""
    written = hook.spec.matcher
    if not hook.group.match_all_names or hook.spec.event not in TOOL_EVENTS:
        return
    if re.fullmatch(r"/(.+)/[a-z]*", written):
        yield f"matcher {written!r} looks for the slashes, too: write {written.rpartition('/')[0][1:]!r}"
    elif (plain := in_plain_signs(written)) != written:
        yield f"matcher {written!r} has signs of another script: write {plain!r}"
    elif re.fullmatch(r"\w+(?:(?:\s+(?:and|or|und|oder)\s+|\s*;\s*|\s+)\w+)+", written):
        names = "|".join(re.split(r"\s+(?:and|or|und|oder)\s+|\s*;\s*|\s+", written))
        yield f"matcher {written!r} matches no tool: write {names!r}"
    elif re.fullmatch(r"\w*(?:\|\w*)+", written) and "" in written.split("|"):
        names = "|".join(filter(None, written.split("|")))
        yield f"matcher {written!r} has an empty name, which matches every tool: write {names!r}"


def never_matching(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about a matcher that can match no tool here, whatever the names of server and tool are."""
    if not any(matcher_that_is_a_rule(hook)):
        yield from _never_matching(hook, _aliases(hook))


def matching_only_aliases(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about a matcher that matches only names of Claude Code's tools, which some tools of servers get."""
    if any(_never_matching(hook, ())) and not any(never_matching(hook)):
        names = [name for name in _aliases(hook) if hook.spec.matches(name)]
        shown = " or ".join(dict.fromkeys(names))
        yield f"it runs only for tools that are known as {shown}: hookproxy check -- COMMAND shows which these are"


def _never_matching(hook: ConfiguredHook, aliases: Sequence[str]) -> Iterator[str]:
    """As `never_matching`, if tools may get these names.

    The text of the matcher gives the names to try, and the matcher itself decides: each dialect has its own rules for
    what is a name, a list or a pattern.
    """
    written, matches = hook.spec.matcher, hook.spec.matches
    if hook.spec.event not in TOOL_EVENTS:
        return
    names = matchers.plain_names(written)
    servers = [name for name in names if matchers.is_server(name) and not matches(f"{name}__tool")]
    for server in servers:
        yield f"matcher {written!r} never matches {server}'s tools: write {server}__.*"
    if servers or hook.group.match_all_names or any(map(matches, aliases)):
        return
    if hook.group.tool_names is ToolNames.BARE:
        parts = [part.lstrip("^(") for part in written.split("|")]
        bare = ["tool", *(part.rpartition("__")[2] for part in parts)]
        if all(part.startswith("mcp__") for part in parts) and not any(map(matches, bare)):
            yield f"matcher {written!r} never matches: {_SEES_BARE}"
    elif names:
        dialect = hook.group.dialect
        composed = [name if name.startswith("mcp__") else dialect.mcp_tool_name("server", name) for name in names]
        if not any(map(matches, composed)):
            near = (suggestion(name, aliases, _SIMILAR) for name in names)
            hint = next(filter(None, near), "")
            yield f"matcher {written!r} never matches: {hint and f'{hint} '}{_sees_mcp(hook)}"


def _sees_mcp(hook: ConfiguredHook) -> str:
    name = hook.group.dialect.mcp_tool_name("SERVER", "TOOL")
    return f'hooks of this file see {name}, unless tool_names is "bare"'


def _aliases(hook: ConfiguredHook) -> list[str]:
    """The names that aliases give to tools, or may give to them."""
    return [*(alias.name for alias in hook.settings.aliases if alias.name), *_recognised(hook)]


def _recognised(hook: ConfiguredHook) -> Iterable[str]:
    """The familiar names that a tool may get by itself, as the hook's system spells them."""
    layer = (hook.settings.managed or Settings()) if hook.group.managed else hook.settings
    return spelled_names(FAMILIAR_NAMES, hook.group.dialect.tool_spellings) if layer.auto_aliases else ()


def never_matching_if(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about an `if` that can match no tool here."""
    rule = hook.spec.only_if
    name = rule.partition("(")[0].strip()
    if not name or "*" in name or name in _aliases(hook):
        return
    if hook.group.tool_names is ToolNames.BARE:
        if name.startswith("mcp__"):
            yield f"`if` {rule!r} never matches: {_SEES_BARE}"
    elif not name.startswith("mcp__"):
        yield f"`if` {rule!r} never matches: {_sees_mcp(hook)}"


def alias_remarks(settings: Settings) -> Iterator[Finding]:
    """Remarks about aliases. They name no file, because several files may define aliases."""
    used = dict.fromkeys(alias.preset for alias in settings.aliases if alias.preset)
    if used:
        from ..policy.presets import PRESETS

        for name in used:
            preset = PRESETS[name]
            if preset.others:
                text = f"hooks see these tools of {preset.server} under their own names: {', '.join(preset.others)}"
                yield Finding("", None, "preset", f"preset {name}: {text}")
            yield from (Finding("", None, "preset", f"preset {name}: {note}") for note in preset.notes)
    tools = {alias.tool for alias in settings.aliases}
    for alias in settings.aliases:
        if alias.name in tools and alias.name != alias.tool:
            both = "is also another tool's name: hooks for one run for both"
            text = f"hooks see {alias.tool} as {alias.name}, which {both}"
            yield Finding("", None, f"tools.{alias.tool}", text)
