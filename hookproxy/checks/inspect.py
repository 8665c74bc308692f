"""Lists every configured hook, and finds what cannot work before anything runs.

A *finding* is something that does not do what its author wrote: an entry that never runs, a matcher that matches no
tool, a script that cannot start, a timeout in another unit, a login shell. Every note of start-up is a finding, too.

A *remark* is something that may be intended. What can never happen behind MCP is a remark, because the file is as its
own agent needs it. So is what depends on facts that are not known here: a hook that is named twice runs once; profile
files are not read; the server of a tool must be the one behind hookproxy; an agent may run the hooks of a file itself.
If hookproxy runs inside that agent, the last one is a finding.
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
from ..dialects.shared.hook_file import suggestion
from ..dialects.shared.model_hooks import ONLY_READS
from ..hooks import failures
from ..hooks.coverage import HookCoverage
from ..hooks.idle import near_name, near_server
from ..model.errors import printable
from ..model.hooks import HookSpec
from ..model.settings import Settings
from . import commands, effective_settings
from .flow_entries import labels_of_nobody, labels_without_sink, misspelled_annotations, unread_variables
from .idle_rules import (
    arguments_that_match_nothing,
    default_that_refuses_all,
    if_that_matches_nothing,
    matcher_of_no_method,
    misspelt_aliases,
    misspelt_matcher,
    misspelt_rules,
    rules_like_expressions,
    rules_of_no_method,
    rules_with_escapes,
    shadowed_rules,
    unclear_rules,
)
from .report import CheckedServer, ConfiguredHook, Finding, HookEntry, Report
from .startup_notes import KeyLines, concerns, event_of, finding

_SIMILAR_TOOL: Final = 0.8  # of two names: `git_psuh` and `git_push`, but not `git_pull`
_MOST_TOOLS: Final = 4  # names in a sentence: `check` lists all below it
_DIALECT_REMARKS: Final = {
    "claw": "its document starts hooks with sh -lc, but hookproxy uses sh -c: settings of profile files do not apply"
}
"""Differences from a dialect's document that affect all its hooks."""

NO_HOOK: Final = (
    "no hook is configured: name hook files with --hooks or --config, or write a first guard with "
    "hookproxy init guard --user"
)
"""The finding if nothing at all is configured."""
_CHECKS_BESIDE_TOOLS: Final = (
    (if_that_matches_nothing, ""),
    (effective_settings.suspicious_timeout, "timeout"),
    (commands.problems, ""),
    (matcher_of_no_method, ""),
    (effective_settings.matcher_that_is_a_rule, ""),
    (effective_settings.matcher_of_several, ""),
)
_CHECKS_OF_RULES: Final = (
    rules_of_no_method,
    rules_like_expressions,
    arguments_that_match_nothing,
    rules_with_escapes,
    misspelt_aliases,
    effective_settings.audit_place,
)
_CHECKS: Final = (
    (effective_settings.never_matching, "never matches"),
    (effective_settings.never_matching_if, ""),
    *_CHECKS_BESIDE_TOOLS,
)
"""The checks of a hook, each with a part of the text of a start-up note that already reports the same. When the tools
of the server are known, the first ones are replaced by what the hook really sees."""


def inspect(
    loaded: Loaded, environ: Mapping[str, str], server: CheckedServer | None = None, *, allows_users: bool = False
) -> Report:
    """All configured hooks, with findings and remarks about each hook and each file.

    With the tools of a `server`, a hook that sees none of them is a finding. `allows_users`: there are rules of single
    users besides.
    """
    key_lines = KeyLines()
    notes = _each_once(finding(note, key_lines) for note in loaded.notes)
    remarks = _each_once(finding(remark, key_lines) for remark in loaded.remarks)
    coverage = {id(of_hook.spec): of_hook for of_hook in server.coverage.hooks} if server and server.coverage else {}
    running = list(_running_entries(loaded, environ, key_lines, notes, coverage))
    of_running = {note for entry in running for note in entry.findings}
    not_running = {
        **{note: _entry_that_cannot_run(note, loaded.groups) for note in notes if note not in of_running},
        **{remark: _entry_that_cannot_run(remark, loaded.groups, is_remark=True) for remark in remarks},
    }
    file_order = [*(group.source for group in loaded.groups), *(note.file for note in (*notes, *remarks))]
    entries = sorted(
        [*running, *(entry for entry in not_running.values() if entry)],
        key=lambda entry: (file_order.index(entry.file), entry.line or 0),
    )
    settings = loaded.settings
    of_files = [note for note in notes if note in not_running and not not_running[note]]
    of_files += _file_findings(loaded, _runs_twice, environ)
    of_files += [finding(text, key_lines) for texts in _CHECKS_OF_RULES for text in texts(settings)]
    of_server = (*_idle_rules(server), *_idle_flow(server), *_idle_secrets(settings, server), *_misspelt_tools(server))
    of_files += [finding(text, key_lines) for text in of_server]
    has_hooks = allows_users or any(group.hooks for group in loaded.groups)
    of_files += [finding(text, key_lines) for text in default_that_refuses_all(settings, has_hooks=has_hooks)]
    of_flow = (*misspelled_annotations(settings), *unread_variables(settings))
    of_flow += (*labels_of_nobody(settings, loaded.groups),)
    of_files += [finding(text, key_lines) for text in of_flow]
    if settings.secrets is not None or settings.approvals.webhook is not None:
        from . import secret_entries  # it needs the engine for patterns, and few have these tables

        of_files += [Finding("", None, "", text) for text in secret_entries.unknown_rules(settings.secrets)]
        missing = [Finding("", None, "", text) for text in secret_entries.missing_values(settings, environ)]
    else:
        missing = []
    rules = settings.has_rules or settings.limits or settings.has_flow
    audit = settings.audit_file and not settings.audit_default
    watched = loaded.watched
    if (of_watched := loaded.of_watched) is not None:  # their hooks must be able to run, too
        entries_of_watched = _running_entries(of_watched, environ, key_lines, notes, {})
        of_files += [note for entry in entries_of_watched for note in entry.findings if note not in notes]
    others = rules or audit or settings.secrets is not None
    if not (loaded.groups or watched or loaded.notes or loaded.remarks or others or loaded.managed):
        of_files.append(Finding("", None, "", NO_HOOK))
    return Report(
        loaded.settings,
        tuple(entries),
        _each_once([*(note for entry in entries for note in entry.findings), *of_files]),
        _each_once(
            [
                *(remark for entry in entries for remark in entry.remarks),
                *(remark for remark in remarks if not not_running[remark]),
                *_file_findings(loaded, _remarks, environ),
                *effective_settings.alias_remarks(settings),
                *(finding(text, key_lines) for text in (*shadowed_rules(settings), *misspelt_rules(settings, server))),
                *(finding(text, key_lines) for text in unclear_rules(settings)),
                *(finding(text, key_lines) for text in labels_without_sink(settings)),
                *missing,
                *_server_remarks(server),
            ]
        ),
        loaded.managed,
        loaded.trust.dependencies if loaded.trust and loaded.trust.required else None,
        server,
        watched,
    )


def _idle_rules(server: CheckedServer | None) -> Iterator[str]:
    """A sentence for each rule that is about no tool of the server, unless it may be meant for other servers."""
    if server is None or server.coverage is None or not server.coverage.tools:
        return
    tools = server.coverage.tools
    has = ", ".join(tools[:_MOST_TOOLS]) + (" and others" if len(tools) > _MOST_TOOLS else "")
    for rule in server.coverage.idle_rules:
        if not rule.is_general:
            place = rule.place or f"permissions.{rule.decision}"
            why = rule.near or f"it has {has}"
            yield f"{place}: {rule.decision} {rule.text!r} is about no tool of this server ({printable(why)})"


def _idle_flow(server: CheckedServer | None) -> Iterator[str]:
    """A sentence for each source or sink that is about no tool of the server, as in `_idle_rules`."""
    for covered in server.flow if server is not None else ():
        for rule in covered.idle:
            near = f" ({printable(rule.near)})" if rule.near else ""
            yield f"{rule.place}: the {rule.decision} names {rule.text!r}, which is not a tool of this server{near}"
        for rule in covered.idle_servers:
            yield f"{rule.place}: the {rule.decision} names {rule.text!r}, which is not this server ({rule.near})"


def _idle_secrets(settings: Settings, server: CheckedServer | None) -> Iterator[str]:
    """A sentence for each `[[secrets.restore]]` and `[[secrets.off]]` that nearly is about this server or its tools."""
    if settings.secrets is None or server is None or server.coverage is None:
        return
    from ..policy.tool_tables import idle_tables, is_about

    for key, table in idle_tables(settings.secrets, server.name, server.coverage.tools):
        if not is_about(table.server, server.name):
            if near := near_server(table.server, server.name):
                yield f"{key}: {table.server!r} is not this server ({printable(near)})"
        elif near := near_name(table.tool, server.name, server.coverage.tools):
            yield f"{key}: {table.tool!r} is not a tool of this server ({printable(near)})"


def _misspelt_tools(server: CheckedServer | None) -> Iterator[str]:
    """A sentence for each `[tools.X]` that is about no tool of the server, and nearly has the name of one."""
    if server is None or server.coverage is None:
        return
    for tool in server.unknown_tools:
        if near := suggestion(tool, server.coverage.tools, _SIMILAR_TOOL):
            yield f"tools.{tool}: is not a tool of this server ({printable(near)})"


def _server_remarks(server: CheckedServer | None) -> Iterator[Finding]:
    if server and server.noise:
        what = "1 line that is" if server.noise == 1 else f"{server.noise} lines that are"
        yield Finding("", None, "", f"the server printed {what} not JSON on standard output")
    for hidden in server.hidden if server else ():
        yield Finding("", None, "", f"the server's texts hide something: {hidden}")


def _running_entries(
    loaded: Loaded,
    environ: Mapping[str, str],
    key_lines: KeyLines,
    notes: Sequence[Finding],
    coverage: Mapping[int, HookCoverage],
) -> Iterator[HookEntry]:
    """An entry for each hook that can run. `coverage` is what each hook sees of a server, by its spec's identity."""
    first: dict[tuple[object, ...], str] = {}
    for group in loaded.groups:
        inherited = _inherited(group, environ)
        for spec in group.hooks:
            key = spec.source.removeprefix(f"{group.source}: ")
            line = key_lines.line(group.source, key)
            shown = f"{group.source}:{line}" if line else spec.source
            identity = (group.managed, group.dialect.name, *spec.identity)
            duplicate = ""
            if before := first.get(identity):
                what = "its file is named twice" if shown == before else f"it is the same hook as {before}"
                duplicate = f"{what}: where both match, it runs once"
            first.setdefault(identity, shown)
            hook = ConfiguredHook(spec, group, loaded.settings, inherited)
            own_notes = [note for note in notes if concerns(note, group.source, key)]
            place = Finding(group.source, line, key, duplicate)
            yield _entry(hook, place, own_notes, coverage.get(id(spec)))


def _inherited(group: Group, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment that determines which programs a group's hooks find."""
    if not group.managed:
        return environ
    from ..trust.managed_files import environment

    return environment(environ)


def _entry(hook: ConfiguredHook, place: Finding, notes: list[Finding], coverage: HookCoverage | None) -> HookEntry:
    """The entry of the hook at `place`. The text of `place` is a remark on it, unless it is empty."""
    spec = hook.spec
    checks = _CHECKS if coverage is None else _CHECKS_BESIDE_TOOLS
    found = [
        text
        for check, words in checks
        if not (words and any(words in note.text for note in notes))
        for text in check(hook)
    ]
    if coverage is not None and coverage.why_never:
        found.insert(0, f"never runs for this server: {coverage.why_never}")
    about_aliases = effective_settings.matching_only_aliases(hook) if coverage is None else ()
    about_server = (
        f"the tool is called only if its server {spec.server!r} is behind hookproxy, started with --name "
        f"{shlex.quote(spec.server)}"
    )
    about_model = ONLY_READS if spec.type == "agent" else ""
    misspelt = misspelt_matcher(hook) if coverage is None else ()
    remarks = (place.text, about_server if spec.server else "", about_model, *about_aliases, *misspelt)
    return HookEntry(
        place.file,
        place.line,
        place.key,
        dialect=hook.group.dialect.name,
        event=spec.event,
        event_name=_event_name(spec, hook.group.dialect, place.key),
        matcher=spec.matcher,
        only_if=spec.only_if,
        command=spec.module or spec.shell or shlex.join(spec.argv) or spec.target or spec.label,
        timeout=spec.timeout,
        on_failure=effective_settings.failure_effect(hook),
        decides=failures.decides(spec),
        lets_pass=failures.lets_pass(hook.group, spec, hook.settings),
        fires=True,
        awaited=effective_settings.is_awaited(hook),
        findings=(*notes, *(replace(place, text=text) for text in found)),
        remarks=tuple(replace(place, text=text) for text in remarks if text),
        managed=hook.group.managed,
        label=spec.label,
        sees_values=spec.sees_values,
        names=effective_settings.seen_names(hook),
        tools=None if coverage is None else coverage.seen,
    )


def _event_name(spec: HookSpec, dialect: Dialect, key: str) -> str:
    """The event as the file spells it."""
    names = [name for name, event in dialect.events.items() if event is spec.event]
    return spec.event_name or event_of(key, names) or next(iter(names), spec.event)


def _entry_that_cannot_run(note: Finding, groups: Sequence[Group], is_remark: bool = False) -> HookEntry | None:
    """The entry of a hook that cannot run, if the note is about one; else None. The note is a finding or a remark."""
    owners = [group.dialect for group in groups if group.source == note.file]
    known = [name for dialect in owners or DIALECTS.values() for name in (*dialect.events, *dialect.unavailable)]
    event_name = event_of(note.key, known)
    if not event_name:
        return None
    dialect = owners[0].name if owners else ""
    event = owners[0].events.get(event_name, "") if owners else ""
    findings, remarks = ((), (note,)) if is_remark else ((note,), ())
    return HookEntry(note.file, note.line, note.key, dialect, event, event_name, findings=findings, remarks=remarks)


def _file_findings(
    loaded: Loaded, check: Callable[[Group, Mapping[str, str]], Iterable[str]], environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Findings or remarks about whole files."""
    for group in loaded.groups:
        yield from (Finding(group.source, None, "", text) for text in check(group, environ))


def _remarks(group: Group, environ: Mapping[str, str]) -> Iterator[str]:
    """Remarks about the hooks of a file."""
    system = group.dialect.name.partition("@")[0]
    if system in _DIALECT_REMARKS:
        yield _DIALECT_REMARKS[system]
    if _is_where_agents_look(group) != _runs_inside(group, environ):
        yield f"{_agent_names(group)} runs the hooks of this file itself: with hookproxy they would run twice"


def _runs_twice(group: Group, environ: Mapping[str, str]) -> Iterator[str]:
    """A finding if the agent that connects almost certainly runs these hooks itself."""
    if _is_where_agents_look(group) and _runs_inside(group, environ):
        yield f"{_agent_names(group)} runs these hooks itself, and hookproxy runs inside it: they run twice"


def _agent_names(group: Group) -> str:
    """The agents, by their names in `clientInfo`, which are not always the names of the products."""
    return f"an agent that calls itself {' or '.join(map(repr, group.dialect.agents))}"


def _is_where_agents_look(group: Group) -> bool:
    """Whether the file is in a folder where its agents look for hooks."""
    folder = os.path.dirname(group.source)
    return _has_agents(group) and any(folder.endswith(f"/{inner}") for inner in group.dialect.folders)


def _runs_inside(group: Group, environ: Mapping[str, str]) -> bool:
    """Whether one of its agents set the environment. The project folder does not count: people set it for hookproxy."""
    names = [name for name in group.dialect.variables if not name.endswith("_DIR")]
    return _has_agents(group) and not environ.keys().isdisjoint(names)


def _has_agents(group: Group) -> bool:
    return bool(group.dialect.agents) and not group.match_all_names  # no agent reads hookproxy.toml


def _each_once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))
