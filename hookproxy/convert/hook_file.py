"""Writes the hooks of one system's file as a hook file of another: each entry runs `hookproxy hook`. Pure.

Whatever the other system cannot say is in the notes (law 3).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.agent_side import AgentSide, Can, Entry, agent_side, event_names, split_mcp_name
from ..dialects.dialect import Dialect, Group
from ..dialects.registry import DIALECTS
from ..model.hooks import Event, HookSpec
from ..policy import matchers

_TOOL_EVENTS = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)

_EXTRA: Final = 5.0
"""Seconds: an agent waits longer than the hook's own timeout, whose consequence it would not hear otherwise."""


class Converted(Struct, frozen=True):
    """The files that were written, and what they cannot say."""

    files: Mapping[str, str]
    """Their texts by their paths in the project."""
    notes: tuple[str, ...]
    hooks: int
    """The number of hooks in them."""


def convert(groups: Sequence[Group], target: AgentSide, project: str = "") -> Converted:
    """The hooks of these groups as hooks of the target's agent; `project` is the folder where agents start hooks."""
    entries: list[Entry] = []
    notes: list[str] = []
    for group in groups:
        for spec in group.hooks:
            reason = _impossible(spec, target)
            if reason:
                notes.append(f"{spec.source} is left out: {reason}")
                continue
            names = event_names(target, spec.event)
            entries += [_entry(spec, name, group.dialect, target, project) for name in names]
            notes += [f"{spec.source}: {note}" for note in _losses(spec, group.dialect, target)]
    entries = list(dict.fromkeys(entries))  # one program may be several hooks, of which one runs for each call
    return Converted(_files(entries, target, project), tuple(dict.fromkeys(notes)), len(entries))


def _files(entries: Sequence[Entry], target: AgentSide, project: str) -> Mapping[str, str]:
    """The target's hook file, with a script for each command line if it holds paths only."""
    if not entries:
        return {}
    if not target.script_folder:
        return target.write_hook_file(entries)
    scripts = {f"{target.script_folder}/hookproxy-{number}.sh": one for number, one in enumerate(entries, 1)}
    with_paths = [replace(one, command=f"{project}/{path}" if project else path) for path, one in scripts.items()]
    texts = {path: f"#!/bin/sh\n{one.command}\n" for path, one in scripts.items()}
    return {**target.write_hook_file(with_paths), **texts}


def _impossible(spec: HookSpec, target: AgentSide) -> str:
    """Why a hook cannot run in the target's agent; empty: it can."""
    if spec.type not in ("command", "warm"):
        return f"a hook of type {spec.type} has no command"
    if not event_names(target, spec.event):
        return f"{target.name} has no event for {spec.event}"
    if agent_side(spec.dialect) is None:
        return f"hooks of {spec.dialect} cannot run in other agents"
    return ""


def _losses(spec: HookSpec, source: Dialect, target: AgentSide) -> Iterator[str]:
    """What of a hook the target's agent cannot do."""
    if spec.background:
        yield f"{target.name} waits for it, because it knows no background hooks as {source.name} does"
    if spec.on_failure is not None or spec.withholds:
        yield "on_failure is left out"
    before = spec.event is Event.PRE_TOOL_USE
    if before and Can.ASK not in target.can:
        yield f"where it asks a person, the call is refused: {target.name} lets no hook ask"
    if before and Can.REWRITE not in target.can:
        yield f"where it rewrites arguments, the call is refused: {target.name} lets no hook rewrite them"
    if spec.event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        if Can.REPLACE not in target.can:
            yield f"it cannot replace the tool's output: {target.name} lets no hook do so"
        if not target.can & (Can.TELL_AFTER | Can.BLOCK_AFTER):
            yield f"its feedback does not reach the model: {target.name} has no place for it"


def _entry(spec: HookSpec, event_name: str, source: Dialect, target: AgentSide, project: str) -> Entry:
    return Entry(
        event_name,
        _command(spec, source, target, project),
        names=_names(spec, target) if target.has_matchers and spec.event in _TOOL_EVENTS else (),
        timeout=_timeout(spec, source, target),
        fails_closed=spec.fails_closed,
    )


def _timeout(spec: HookSpec, source: Dialect, target: AgentSide) -> float:
    """The target's timeout in seconds; 0: its default, which is longer than the hook may take."""
    default = DIALECTS[target.name].default_timeout
    if spec.timeout == source.default_timeout and (spec.event not in _TOOL_EVENTS or default > spec.timeout + _EXTRA):
        return 0.0
    return spec.timeout + _EXTRA


def _command(spec: HookSpec, source: Dialect, target: AgentSide, project: str) -> str:
    """The command line that runs the hook: `hookproxy hook --for TARGET --as SOURCE … -- COMMAND`."""
    words = ["hookproxy", "hook", "--for", target.name, "--as", source.name]
    first_name = next((name for name, event in source.events.items() if event is spec.event), "")
    side = agent_side(source.name)
    usual = event_names(side, spec.event) if side else ()  # what `hookproxy hook` takes without --event
    several = bool(target.also) or len(set(target.events.values())) < len(target.events)
    if several or (spec.event_name and usual != (spec.event_name,)):
        words += ["--event", spec.event_name or first_name]
    if spec.matcher and (side is None or side.has_matchers):  # else it only describes for which tools the event is
        words += ["--matcher", spec.matcher]
    if spec.only_if:
        words += ["--if", spec.only_if]
    if spec.timeout != source.default_timeout:
        words += ["--timeout", f"{spec.timeout:g}"]
    if spec.fails_closed:
        words.append("--fail-closed")
    line = "; ".join((*_setup(spec, project), spec.shell or shlex.join(spec.argv)))
    return f"{shlex.join(words)} -- {shlex.quote(line)}"


def _setup(spec: HookSpec, project: str) -> Iterator[str]:
    """Shell commands that give the hook its own folder and variables. Without its folder it cannot judge: exit 2."""
    if spec.cwd not in ("", project):
        yield f"cd {shlex.quote(spec.cwd)} || exit 2"
    for name, value in (one for one in spec.env if one[1] != project):  # the project's folder is set for every hook
        yield f"export {name}={shlex.quote(value)}"


def _names(spec: HookSpec, target: AgentSide) -> tuple[str, ...]:
    """The tools that a plain matcher lists, as the target spells them; none if one of them cannot be spelled.

    The hook itself still tries its own matcher, so this only saves runs.
    """
    source = agent_side(spec.dialect)
    if spec.matcher in ("", "*") or (source is not None and not source.has_matchers):
        return ()
    listed = matchers.plain_names(spec.matcher)
    probes = (probe for name in listed for probe in (f"{name}_", f"_{name}", f"MCP:{name}", name.swapcase()))
    if any(map(spec.matches, probes)):  # a name is part of longer ones here, which nobody can list
        return ()
    spelled = [_spelled(name, spec.dialect, target) for name in listed]
    return tuple(dict.fromkeys(name for names in spelled for name in names)) if all(spelled) else ()


def _spelled(name: str, source: str, target: AgentSide) -> tuple[str, ...]:
    """The target's names for a tool that the source's matcher names; empty: it is not known."""
    server_tool = split_mcp_name(name)
    if server_tool is not None:
        found = target.mcp_tool_name(*server_tool)
        exact = found == name or not any("_" in part for part in server_tool)  # else `_` may stand for any character
        return (found,) if exact else ()
    side = agent_side(source)
    of_source, of_target = side.tool_spellings() if side else {}, target.tool_spellings()
    known = [one for one, spellings in of_source.items() if any(each.name == name for each in spellings)]
    known = known if of_source else [name]
    if not of_target:
        return tuple(known)
    return tuple(spelling.name for one in known for spelling in of_target.get(one, ()))
