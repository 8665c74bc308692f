"""Writes the hooks of any file as interceptors (SEP-2624): a table whose server is `hookproxy interceptors serve`.

The server reads the hook file itself, so nothing of it is translated. Law 3: what a host of interceptors has no event
or no word for is in the notes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ..config.hook_files import LoadedHookFile
from ..dialects import interceptors_side
from ..dialects.agent_side import AgentSide
from ..dialects.registry import STANDARDS
from ..model.hooks import Event, HookSpec
from .hook_file import Converted, Place, sentence
from .run_hook import SERVER_MARKS


def as_interceptors(loaded: Sequence[LoadedHookFile], side: AgentSide, place: Place) -> Converted:
    """The hooks of these files as interceptors of one server."""
    notes: dict[str, list[str]] = {}
    served: list[HookSpec] = []
    for file in loaded:
        for spec in file.group.hooks:
            if spec.event not in side.events.values() and spec.event not in side.also:
                notes.setdefault(f"left out: interceptors have no event for {spec.event}", []).append(spec.source)
                continue
            served.append(spec)
            for loss in _losses(spec):
                notes.setdefault(loss, []).append(spec.source)
    argv = [*place.program, "interceptors", "serve", *_options(loaded, place)]
    text = interceptors_side.table("hookproxy", argv)
    told = tuple(sentence(loss, sources) for loss, sources in notes.items())
    return Converted({side.file: text} if served else {}, told, len(served), (), place.program[0], {}, tuple(argv))


def _options(loaded: Sequence[LoadedHookFile], place: Place) -> Iterator[str]:
    """The options that name the files."""
    for dialect, path in dict.fromkeys((file.group.dialect.name, file.named_by) for file in loaded):
        shown = os.path.relpath(path, place.folder) if place.portable and place.folder else path
        yield from ("--config", shown) if dialect in STANDARDS else ("--hooks", f"{dialect}={shown}")
    if place.fails_closed:
        yield "--fail-closed"


def _losses(spec: HookSpec) -> Iterator[str]:
    if spec.event is Event.PRE_TOOL_USE:
        yield "where a hook asks a person, the call is refused: interceptors cannot ask"
    else:
        yield "feedback does not reach the model: it is a message for the host"
    if any(mark in spec.matcher.lower() for mark in SERVER_MARKS):
        yield "its matcher names a server, and hosts do not say which one a message is of: add --name SERVER to argv"
