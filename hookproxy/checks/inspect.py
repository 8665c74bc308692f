"""What is configured, hook by hook, and what about it cannot work: told before anything runs.

A *finding* is what does not do what its author wrote: an entry that never runs or fires, a matcher that matches no
tool, a script that cannot start, a timeout in another unit, a login shell, a file without a hook. Whatever start-up
notes is one, too. A *remark* is what may well be meant, because it depends on what is not known here: that a hook named
twice runs once; that profiles are not read, for they may set nothing that it needs; that a tool's server must be the
one behind us; that an agent runs a file's hooks by itself, for another agent may be the one to connect. Where we run
inside that very agent, this is a finding.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ..config.load import Loaded
from ..dialects.dialect import Dialect, Group
from ..dialects.registry import DIALECTS
from ..model.hooks import HookSpec
from . import commands, effective_settings
from .report import ConfiguredHook, Finding, HookEntry, Report
from .startup_notes import KeyLines, concerns, event_of, finding

_OF_DIALECTS: Final = {
    "claw": "its document starts hooks with sh -lc, and hookproxy with sh -c: what only profiles set is not there"
}
"""What a dialect's hooks meet here otherwise than their document says."""

_TESTS: Final = (
    (effective_settings.never_matching, "never matches"),
    (effective_settings.never_meant, ""),
    (effective_settings.odd_timeout, "timeout"),
    (commands.problems, ""),
)
"""What is looked for in a hook, and the words by which a note of start-up's says so already."""


def inspect(loaded: Loaded, environ: Mapping[str, str]) -> Report:
    """All hooks that are configured, with what is to be said about each and about their files."""
    files = KeyLines()
    notes = _each_once(finding(note, files) for note in loaded.notes)
    running = list(_running(loaded, environ, files, notes))
    told = {note for entry in running for note in entry.findings}
    left = {note: _idle(note, loaded.groups) for note in notes if note not in told}
    files_order = [*(group.source for group in loaded.groups), *(note.file for note in notes)]
    entries = sorted(
        [*running, *(entry for entry in left.values() if entry)],
        key=lambda entry: (files_order.index(entry.file), entry.line or 0),
    )
    of_files = [*(note for note, entry in left.items() if not entry), *_of_files(loaded, _twice, environ)]
    settings = loaded.settings
    rules = settings.allow or settings.ask or settings.deny or settings.limits
    if not (loaded.groups or loaded.notes or rules or settings.audit_file or loaded.managed):
        of_files.append(Finding("", None, "", "no hook is configured: name hook files with --hooks or --config"))
    return Report(
        loaded.settings,
        tuple(entries),
        _each_once([*(note for entry in entries for note in entry.findings), *of_files]),
        _each_once(
            [
                *(note for entry in entries for note in entry.remarks),
                *_of_files(loaded, _remarks, environ),
                *effective_settings.remarks(settings),
            ]
        ),
        loaded.managed,
        loaded.trust.dependencies if loaded.trust else None,
    )


def _running(
    loaded: Loaded, environ: Mapping[str, str], files: KeyLines, notes: Sequence[Finding]
) -> Iterator[HookEntry]:
    """The hooks that are asked when their occasion comes."""
    first: dict[tuple[object, ...], str] = {}
    for group in loaded.groups:
        inherited = _inherited(group, environ)
        for spec in group.hooks:
            key = spec.source.removeprefix(f"{group.source}: ")
            line = files.line(group.source, key)
            place = f"{group.source}:{line}" if line else spec.source
            identity = (group.managed, group.dialect.name, *spec.identity)
            again = _again(place, first[identity]) if identity in first else ""
            first.setdefault(identity, place)
            hook = ConfiguredHook(spec, group, loaded.settings, inherited)
            noted = [note for note in notes if concerns(note, group.source, key)]
            yield _entry(hook, Finding(group.source, line, key, again), noted)


def _inherited(group: Group, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that decide which programs a group's hooks find."""
    if not group.managed:
        return environ
    from ..trust.managed_files import environment

    return environment(environ)


def _again(place: str, before: str) -> str:
    """What is remarked on a hook that is configured a second time."""
    what = "its file is named twice" if place == before else f"it is the same hook as {before}"
    return f"{what}: where both match, it runs once"


def _entry(hook: ConfiguredHook, place: Finding, noted: list[Finding]) -> HookEntry:
    """The hook at `place`, whose text is a remark on it, if it is any."""
    spec = hook.spec
    found = [
        text
        for test, words in _TESTS
        if not (words and any(words in note.text for note in noted))
        for text in test(hook)
    ]
    return HookEntry(
        place.file,
        place.line,
        place.key,
        dialect=hook.group.dialect.name,
        event=spec.event,
        event_name=_spelled(spec, hook.group.dialect, place.key),
        matcher=spec.matcher,
        only_if=spec.only_if,
        command=spec.shell or shlex.join(spec.argv) or spec.runs or spec.label,
        timeout=spec.timeout,
        on_failure=effective_settings.failure_effect(hook),
        fires=True,
        awaited=effective_settings.is_awaited(hook),
        findings=(*noted, *(replace(place, text=text) for text in found)),
        remarks=tuple(replace(place, text=text) for text in (place.text, _reach(spec)) if text),
        managed=hook.group.managed,
    )


def _reach(spec: HookSpec) -> str:
    """Whom a hook that is a tool needs behind us; empty: it is none."""
    if not spec.server:
        return ""
    needs = f"behind hookproxy, started with --name {shlex.quote(spec.server)}"
    return f"the tool is called where its server {spec.server!r} is the one {needs}; no other can be asked"


def _spelled(spec: HookSpec, dialect: Dialect, key: str) -> str:
    """The event as the file has it."""
    names = [name for name, event in dialect.events.items() if event is spec.event]
    return spec.event_name or event_of(key, names) or next(iter(names), spec.event)


def _idle(note: Finding, groups: Sequence[Group]) -> HookEntry | None:
    """The entry that a note is about, which is no running hook; None: it is about something else."""
    owners = [group.dialect for group in groups if group.source == note.file]
    known = [name for dialect in owners or DIALECTS.values() for name in (*dialect.events, *dialect.unavailable)]
    event_name = event_of(note.key, known)
    if not event_name:
        return None
    dialect = owners[0].name if owners else ""
    event = owners[0].events.get(event_name, "") if owners else ""
    return HookEntry(note.file, note.line, note.key, dialect, event, event_name, findings=(note,))


def _of_files(
    loaded: Loaded, test: Callable[[Group, Mapping[str, str]], Iterable[str]], environ: Mapping[str, str]
) -> Iterator[Finding]:
    """What is to be said about whole files."""
    for group in loaded.groups:
        yield from (Finding(group.source, None, "", text) for text in test(group, environ))


def _remarks(group: Group, environ: Mapping[str, str]) -> Iterator[str]:
    """What else there is to know about the hooks of a file."""
    system = group.dialect.name.partition("@")[0]
    if system in _OF_DIALECTS:
        yield _OF_DIALECTS[system]
    if _lies_in_place(group) != _runs_inside(group, environ):
        yield f"{_agents(group)} runs such a file's hooks itself: behind hookproxy they would run twice"


def _twice(group: Group, environ: Mapping[str, str]) -> Iterator[str]:
    """Whether the agent that connects is certain enough to be one that runs these hooks itself."""
    if _lies_in_place(group) and _runs_inside(group, environ):
        yield f"{_agents(group)}, and this runs inside it, runs these hooks itself: with hookproxy it runs them twice"


def _agents(group: Group) -> str:
    """As people may know them: their names in `clientInfo` are not always those of the product."""
    return f"an agent that calls itself {' or '.join(map(repr, group.dialect.agents))}"


def _lies_in_place(group: Group) -> bool:
    """The file lies where its agents look for hooks."""
    folder = os.path.dirname(group.source)
    return _has_agents(group) and any(folder.endswith(f"/{inner}") for inner in group.dialect.folders)


def _runs_inside(group: Group, environ: Mapping[str, str]) -> bool:
    """The environment is one of its agents'. The project's folder does not tell: people set that for hookproxy."""
    names = [name for name in group.dialect.variables if not name.endswith("_DIR")]
    return _has_agents(group) and not environ.keys().isdisjoint(names)


def _has_agents(group: Group) -> bool:
    return bool(group.dialect.agents) and not group.match_all_names  # no agent reads hookproxy.toml


def _each_once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))
