"""What a hook's matcher, timeout and trouble rule come to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..hooks.select import OF_TOOLS
from ..model.hooks import Ended, Event, HookResult
from ..model.settings import OnFailure, Settings, ToolNames
from ..policy import matchers
from .report import ConfiguredHook, FailureEffect, Finding

LONG: Final = 1000.0
"""Seconds. Agents give up on a call long before: who writes such a number means milliseconds."""

SHORT: Final = 0.1
"""Seconds. Hardly a program starts, reads and answers in less: who writes such a number means another unit."""

_SEES_BARE: Final = "hooks of this file see TOOL alone"
_SEES_MCP: Final = 'hooks of this file see mcp__SERVER__TOOL, unless tool_names is "bare"'

_FAILED: Final = HookResult(Ended.EXITED, 1)
_BEFORE: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
_AFTER: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_ELICITATION_EVENTS: Final = (Event.ELICITATION, Event.ELICITATION_RESULT)
_AWAITED: Final = (*_BEFORE, *_AFTER, Event.SESSION_START, Event.SESSION_END)
"""Occasions at which something waits until the hooks have spoken."""


def failure_effect(hook: ConfiguredHook) -> FailureEffect:
    """What follows when this hook fails, by the same rules as in `policy`."""
    spec = hook.spec
    rule = spec.on_failure or hook.group.on_failure or hook.settings.on_failure
    if spec.background or rule is OnFailure.ALLOW:
        return FailureEffect.CONTINUE
    if spec.event in _BEFORE or _answers(hook):
        return FailureEffect.BLOCK if rule is OnFailure.DENY or _fails_closed(hook) else FailureEffect.CONTINUE
    if spec.event in _AFTER:
        if rule is OnFailure.DENY or spec.withholds:
            return FailureEffect.WITHHOLD
        return FailureEffect.INFORM_MODEL if _fails_closed(hook) else FailureEffect.CONTINUE
    return FailureEffect.CONTINUE


def _fails_closed(hook: ConfiguredHook) -> bool:
    """By its own field, or because that is what its dialect makes of the plainest failure."""
    return hook.spec.fails_closed or hook.group.dialect.read(hook.spec, _FAILED).fails_closed


def is_awaited(hook: ConfiguredHook) -> bool:
    """Something waits for what this hook says."""
    return (hook.spec.event in _AWAITED or _answers(hook)) and not hook.spec.background


def _answers(hook: ConfiguredHook) -> bool:
    """It may answer a question of the server, or change the answer."""
    return hook.spec.event in _ELICITATION_EVENTS and hook.group.dialect.answers


def odd_timeout(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about a timeout that looks as if its unit were another one."""
    seconds = hook.spec.timeout
    if seconds < SHORT:
        yield f"a timeout of {seconds:g} seconds is too short for a program to answer: is the unit another one?"
    elif seconds >= LONG and not hook.spec.background and seconds != hook.group.dialect.default_timeout:
        yield f"a timeout of {seconds:g} seconds is longer than agents wait for a call: are milliseconds meant?"


def never_matching(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about a matcher that can match no tool here, whatever server and tool are called.

    How it is written raises the question, and the matcher itself, tried on names, answers it: what counts as a
    name, a list or a pattern is each dialect's own affair.
    """
    written, matches = hook.spec.matcher, hook.spec.matches
    if hook.spec.event not in OF_TOOLS:
        return
    names = matchers.plain_names(written)
    servers = [name for name in names if matchers.is_server(name) and not matches(f"{name}__tool")]
    for server in servers:
        yield f"matcher {written!r} never matches {server}'s tools: write {server}__.*"
    if servers or hook.group.match_all_names or any(map(matches, _aliases(hook))):
        return
    if hook.group.tool_names is ToolNames.BARE:
        parts = [part.lstrip("^(") for part in written.split("|")]
        bare = ["tool", *(part.rpartition("__")[2] for part in parts)]
        if all(part.startswith("mcp__") for part in parts) and not any(map(matches, bare)):
            yield f"matcher {written!r} never matches: {_SEES_BARE}"
    elif names:
        composed = [name if name.startswith("mcp__") else f"mcp__server__{name}" for name in names]
        if not any(map(matches, composed)):
            yield f"matcher {written!r} never matches: {_SEES_MCP}"


def _aliases(hook: ConfiguredHook) -> list[str]:
    """The familiar names that tools have here."""
    return [one.name for one in hook.settings.aliases if one.name]


def never_meant(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about an `if` whose tool can be none here."""
    rule = hook.spec.only_if
    name = rule.partition("(")[0].strip()
    if not name or "*" in name or name in _aliases(hook):
        return
    if hook.group.tool_names is ToolNames.BARE:
        if name.startswith("mcp__"):
            yield f"`if` {rule!r} never holds: {_SEES_BARE}"
    elif not name.startswith("mcp__"):
        yield f"`if` {rule!r} never holds: {_SEES_MCP}"


def remarks(settings: Settings) -> Iterator[Finding]:
    """Sentences about aliases; they are about no file, for several may have a say in them."""
    used = dict.fromkeys(one.preset for one in settings.aliases if one.preset)
    if used:
        from ..policy.presets import PRESETS

        for name in used:
            preset = PRESETS[name]
            if preset.others:
                text = f"hooks know these of {preset.server} by their own names alone: {', '.join(preset.others)}"
                yield Finding("", None, "preset", f"preset {name}: {text}")
            yield from (Finding("", None, "preset", f"preset {name}: {note}") for note in preset.notes)
    tools = {one.tool for one in settings.aliases}
    for one in settings.aliases:
        if one.name in tools and one.name != one.tool:
            text = f"hooks know {one.tool} as {one.name}, which is another tool's own name: what is for one is for both"
            yield Finding("", None, f"tools.{one.tool}", text)
