"""Writes the hooks of one system's file as a hook file of another: one entry for each event runs `hookproxy hook`.

Whatever the other system cannot say is in the notes (law 3). Nothing is written to the disk here; it is read only to
find out which words of a command line are files.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.agent_side import AgentSide, Can, HookOutput, event_names, side_of, split_mcp_name, user_path
from ..dialects.dialect import Dialect, Group, WrittenEntry
from ..dialects.registry import STANDARDS, hook_system
from ..model.hooks import Event, HookSpec, Order
from ..model.settings import OnFailure
from ..policy import matchers
from . import paths

_TOOL_EVENTS = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)

_JUDGING: Final = frozenset((Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST))
"""The events at which a hook can refuse a call."""

HARMLESS: Final = (
    "Read",
    "Glob",
    "Grep",
    "Bash",
    "Write",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "WebFetch",
    "WebSearch",
)
"""Familiar names, from those whose calls change the least."""

_LEFT_OUT: Final = "left out"

_NOT_JUDGED: Final = "hookproxy did not run, so that no hook judged this call: it is refused"
"""The reason of a refusal without hookproxy."""
_NO_FOLDER: Final = "the folder in which this hook works is missing, so that it cannot judge"
"""The reason of a refusal by a hook whose system does not read the message of `cd`."""

_EXTRA: Final = 5.0
"""Seconds: an agent waits longer than the hook's own timeout, whose consequence it would not hear otherwise."""


class Place(Struct, frozen=True):
    """Where the new file is to be used, and how it may name things there."""

    project: str = ""
    """The folder in which agents start its hooks; empty: any folder."""
    folder: str = ""
    """The folder to which the paths of the new files are relative; empty: it is not known."""
    program: tuple[str, ...] = ("hookproxy",)
    """The words that start hookproxy."""
    portable: bool = False
    """It names no path of this machine that could be avoided, so that others can use it too."""
    of_user: bool = False
    """It is a person's own, for all projects, and not the file of one project."""
    any_folder: bool = False
    """The hooks are a person's own: they run in whatever project the agent works on."""
    fails_closed: bool = False
    """Calls are refused where a hook fails, or where hookproxy is missing."""


class Converted(Struct, frozen=True):
    """The files that were written, and what they cannot say."""

    files: Mapping[str, str]
    """Their texts by their paths in the project, or for a person's own in the home folder."""
    notes: tuple[str, ...]
    hooks: int
    """The number of hooks in them."""
    entries: tuple[WrittenEntry, ...]
    program: str
    """What the entries start."""
    tools: Mapping[str, tuple[str, ...]]
    """For each event, as the target spells it: tools for which its hooks run. They have familiar names, or are
    spelled mcp__SERVER__TOOL."""
    server: tuple[str, ...] = ()
    """The command line of the server that offers the hooks as interceptors; empty: entries run them."""


class _Hook(Struct, frozen=True):
    """One hook, as a part of an entry."""

    options: tuple[str, ...]
    """The options of `hookproxy hook` that are about it."""
    line: str
    """Its own command line."""
    names: tuple[str, ...]
    timeout: float
    has_default_timeout: bool
    fails_closed: bool
    parallel: bool
    """Its system runs it beside the others."""


def convert(groups: Sequence[Group], target: AgentSide, place: Place) -> Converted:
    """The hooks of these groups as hooks of the target's agent."""
    by_event: dict[str, dict[_Hook, Event]] = {}
    tools: dict[str, dict[str, None]] = {}
    notes: dict[str, list[str]] = {}
    for group in groups:
        for spec in group.hooks:
            if reason := _impossible(spec, target):
                notes.setdefault(f"{_LEFT_OUT}: {reason}", []).append(spec.source)
                continue
            hook = _hook(spec, group.dialect, target, place)
            for name in event_names(target, spec.event):
                by_event.setdefault(name, {})[hook] = spec.event  # one program may be several hooks, of which one runs
                tools.setdefault(name, {})[_tool_for(spec, group.dialect)] = None
            losses = list(_losses(spec, group.dialect, target))
            if place.portable and paths.names_machine(hook.line, os.path.expanduser("~")):
                losses.append("its command names a path in your home folder, which others have not")
            for note in losses:
                notes.setdefault(note, []).append(spec.source)
    entries = [_entry(name, hooks, target, place) for name, hooks in by_event.items()]
    return Converted(
        _files(entries, target, place),
        tuple(sentence(text, sources) for text, sources in notes.items()),
        len({hook for hooks in by_event.values() for hook in hooks}),
        tuple(entries),
        place.program[0],
        {name: tuple(of_event) for name, of_event in tools.items()},
    )


def sentence(text: str, sources: Sequence[str]) -> str:
    """A sentence about hooks, once, however many there are: the first one is named."""
    subject = f"{sources[0]} and {len(sources) - 1} more" if len(sources) > 1 else sources[0]
    if text.startswith(_LEFT_OUT):
        return f"{subject} {'are' if len(sources) > 1 else 'is'} {text}"
    return f"{subject}: {text}"


def _files(entries: Sequence[WrittenEntry], target: AgentSide, place: Place) -> Mapping[str, str]:
    """The target's hook file, with a script for each command line if it holds paths only."""
    if not entries:
        return {}

    def placed(path: str) -> str:
        return user_path(target, path) if place.of_user else path

    scripts: dict[str, str] = {}
    if target.script_folder:
        scripts = {
            f"{target.script_folder}/hookproxy-{number}.sh": entry.command for number, entry in enumerate(entries, 1)
        }
        entries = [
            replace(one, command=os.path.join(place.folder, placed(path)))
            for one, path in zip(entries, scripts, strict=True)
        ]
    texts = {**target.write_hook_file(entries), **{path: f"#!/bin/sh\n{line}\n" for path, line in scripts.items()}}
    return {placed(path): text for path, text in texts.items()}


def _impossible(spec: HookSpec, target: AgentSide) -> str:
    """Why a hook cannot run in the target's agent; empty: it can."""
    if spec.headers:
        return "the headers of its requests cannot be named on a command line"
    if spec.type not in ("command", "warm", "interceptor"):
        return f"a hook of type {spec.type} has no command"
    if not event_names(target, spec.event):
        return f"{target.name} has no event for {spec.event}"
    if side_of(spec.dialect) is None:
        return f"hooks of {spec.dialect} cannot run in other agents"
    return ""


def _losses(spec: HookSpec, source: Dialect, target: AgentSide) -> Iterator[str]:
    """What of a hook is not so in the target's agent."""
    yield from _losses_of_entry(spec, source, target)
    yield from _losses_of_output(spec, target)


def _losses_of_entry(spec: HookSpec, source: Dialect, target: AgentSide) -> Iterator[str]:
    """What its own file says of a hook, and the target's cannot."""
    if spec.background:
        yield f"{target.name} waits for it, because it knows no background hooks as {source.name} does"
    closed = source.name in STANDARDS and spec.on_failure in (None, OnFailure.DENY)  # as they are in agents, too
    if not closed and (spec.on_failure is not None or spec.withholds):
        yield "on_failure is left out"
    if target.name in STANDARDS and source.name not in STANDARDS and spec.matcher not in ("", "*"):
        yield f"its matcher names tools as {source.name} does, and each host of {target.name} has names of its own"


def _losses_of_output(spec: HookSpec, target: AgentSide) -> Iterator[str]:
    """What a hook may decide, and the target's agent cannot do."""
    before = spec.event is Event.PRE_TOOL_USE
    if before and Can.ASK not in target.can:
        yield f"where a hook asks a person, the call is refused: {target.name} does not let hooks ask"
    if before and Can.REWRITE not in target.can:
        yield f"where a hook rewrites arguments, the call is refused: {target.name} does not let hooks rewrite them"
    if spec.event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        if Can.REPLACE not in target.can:
            yield f"hooks cannot replace the tool's output: {target.name} does not let them"
        if not target.can & (Can.TELL_AFTER | Can.BLOCK_AFTER):
            yield f"feedback does not reach the model: {target.name} has no place for it"


def _hook(spec: HookSpec, source: Dialect, target: AgentSide, place: Place) -> _Hook:
    fails_closed = spec.fails_closed or place.fails_closed
    return _Hook(
        tuple(_options(spec, source, target, fails_closed)),
        _line(spec, place),
        _names(spec, target) if target.has_matchers and spec.event in _TOOL_EVENTS else (),
        spec.timeout,
        spec.timeout == source.default_timeout,
        fails_closed,
        source.order in (Order.PARALLEL, Order.TOGETHER) and not spec.sequential,
    )


def _entry(event_name: str, hooks: Mapping[_Hook, Event], target: AgentSide, place: Place) -> WrittenEntry:
    """The entry that runs all hooks of an event."""
    events = set(hooks.values())
    return WrittenEntry(
        event_name,
        _command(list(hooks), target, place, judges=bool(events & _JUDGING)),
        names=tuple(dict.fromkeys(name for hook in hooks for name in hook.names))
        if all(h.names for h in hooks)
        else (),
        timeout=_timeout(list(hooks), target, is_session=not events.intersection(_TOOL_EVENTS)),
        fails_closed=any(hook.fails_closed for hook in hooks),
    )


def _timeout(hooks: Sequence[_Hook], target: AgentSide, is_session: bool) -> float:
    """The target's timeout in seconds; 0: its default, which is longer than the hooks may take."""
    seconds = [hook.timeout for hook in hooks]
    needed = (max(seconds) if all(hook.parallel for hook in hooks) else sum(seconds)) + _EXTRA
    default = hook_system(target.name).default_timeout
    usual = all(hook.has_default_timeout for hook in hooks) and (is_session or default > needed)
    return 0.0 if usual else needed


def _command(hooks: Sequence[_Hook], target: AgentSide, place: Place, judges: bool) -> str:
    """The command line that runs the hooks: `hookproxy hook --for TARGET --as SOURCE … -- COMMAND`."""
    start = shlex.join((*place.program, "hook", "--for", target.name))
    if len(hooks) == 1:
        line = f"{start} {shlex.join(hooks[0].options)} -- {shlex.quote(hooks[0].line)}"
    else:
        line = " ".join((start, *(f"{shlex.join(hook.options)} --run {shlex.quote(hook.line)}" for hook in hooks)))
    return f"{refusing_start(target)} {line}" if place.fails_closed and judges else line


def refusing_start(target: AgentSide) -> str:
    """The beginning of a command line that refuses the call, as the agent reads it, if the rest of it does not run.

    It does not depend on the shell that the agent uses, which may be the person's own. The last word is the reason.
    """
    output = target.refuse(_NOT_JUDGED)
    if not output.status:
        script, last = "printf '%s\\n' \"$0\"", output.stdout.decode().strip()
    else:
        stream = "" if output.stdout else " >&2"
        script = f'{{ [ $? = {output.status} ] || echo "$0"{stream}; exit {output.status}; }}'
        last = _NOT_JUDGED
    return shlex.join(("sh", "-c", f'"$@" || {script}', last))


def _options(spec: HookSpec, source: Dialect, target: AgentSide, fails_closed: bool) -> Iterator[str]:
    """The options of `hookproxy hook` that are about this hook."""
    yield from ("--as", source.name)
    first_name = next((name for name, event in source.events.items() if event is spec.event), "")
    side = side_of(source.name)
    usual = event_names(side, spec.event) if side else ()  # what `hookproxy hook` takes without --event
    several = bool(target.also) or len(set(target.events.values())) < len(target.events)
    if several or (spec.event_name and usual != (spec.event_name,)):
        yield from ("--event", spec.event_name or first_name)
    if spec.matcher and (side is None or side.has_matchers):  # else it only describes for which tools the event is
        yield from ("--matcher", spec.matcher)
    if spec.only_if:
        yield from ("--if", spec.only_if)
    if spec.timeout != source.default_timeout:
        yield from ("--timeout", f"{spec.timeout:g}")
    if fails_closed:
        yield "--fail-closed"


def _line(spec: HookSpec, place: Place) -> str:
    """The hook's own command line, or its server's address."""
    if spec.url:
        return spec.url
    command = spec.shell or shlex.join(spec.argv)
    if not (place.portable or place.any_folder) and (folder := spec.cwd or place.project):
        command = paths.absolute(spec, folder)
    line = "; ".join((*_setup(spec, place.project), command))
    return paths.relative(line, place.project) if place.portable and place.project else line


def _setup(spec: HookSpec, project: str) -> Iterator[str]:
    """Shell commands that give the hook its own folder and variables. It refuses calls if its folder is missing."""
    if spec.cwd not in ("", project):
        yield f"cd {shlex.quote(spec.cwd)} || {_refusal(side_of(spec.dialect))}"
    for name, value in spec.env:
        if value != project:  # which is set for every hook
            yield f"export {name}={shlex.quote(value)}"


def _refusal(side: AgentSide | None) -> str:
    """The shell command by which a hook of this system refuses a call; None: of one whose agent runs no commands."""
    output = side.refuse(_NO_FOLDER) if side else HookOutput(status=2)
    if not output.stdout:
        return f"exit {output.status}"  # the shell has written why
    return f"{{ printf '%s\\n' {shlex.quote(output.stdout.decode().strip())}; exit {output.status}; }}"


def _tool_for(spec: HookSpec, source: Dialect) -> str:
    """A tool for which the hook runs, of all agents' own if possible: a familiar name, or mcp__SERVER__TOOL."""
    side = side_of(source.name)
    spellings = side.tool_spellings() if side else {}
    for name in HARMLESS:
        spelled = [spelling.name for spelling in spellings.get(name, ())] if spellings else [name]
        if any(map(spec.matches, spelled)):
            return name
    named = (name for name in matchers.plain_names(spec.matcher) if split_mcp_name(name))
    return next(named, "mcp__hookproxy__try")


def _names(spec: HookSpec, target: AgentSide) -> tuple[str, ...]:
    """The tools that a plain matcher lists, as the target spells them; none if one of them cannot be spelled.

    The hook itself still tries its own matcher, so this only saves runs.
    """
    source = side_of(spec.dialect)
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
    side = side_of(source)
    of_source, of_target = side.tool_spellings() if side else {}, target.tool_spellings()
    known = [familiar for familiar, of_tool in of_source.items() if name in {spelling.name for spelling in of_tool}]
    known = known if of_source else [name]
    if not of_target:
        return tuple(known)
    return tuple(spelling.name for familiar in known for spelling in of_target.get(familiar, ()))
