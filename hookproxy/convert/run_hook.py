"""Runs hooks of some system as one hook of another system's agent: `hookproxy hook`.

Each hook gets the document that it was written for, and their decision is translated back. Several hooks run together
as those of their own system's file do. Law 3: what cannot be read or
translated refuses the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import time
from typing import Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from ..dialects.agent_documents import Members, agents_of
from ..dialects.agent_side import (
    AgentSide,
    HookDecision,
    HookOutput,
    NothingToJudge,
    agent_side,
    convertible,
    event_names,
    side_of,
)
from ..dialects.dialect import Dialect, Group, HookFile, HookList, WrittenEntry
from ..dialects.registry import STANDARDS
from ..dialects.shared.hook_file import merge
from ..hooks.evaluate import Evaluation, Hooks
from ..jsonrpc import nesting, normalize
from ..model.aliases import FAMILIAR_NAMES, spelled_names
from ..model.errors import UserError
from ..model.hooks import Event, EventContext, HookRun, HookSpec
from ..model.settings import OnFailure, Settings, ToolNames
from ..policy import matchers, methods
from . import hook_decision as decisions

_BEFORE: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
_AFTER: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_SETTINGS: Final = Settings(auto_aliases=False)
"""No configuration counts here: the agent has its own rules, and asks its person itself."""


SERVER_MARKS: Final = ("mcp", "@", "__")
"""What names of servers' tools have in one system or another, and names of agents' own tools have not."""

FAILED: Final = "failed: "
"""The beginning of a line about a hook that failed, on standard error."""

_NAME_AGENT: Final = "name the agent: hookproxy hook --for AGENT …"


class ForeignHook(Struct, frozen=True):
    """A hook of one system that an agent of another one runs."""

    dialect: Dialect
    """The system that the hook was written for."""
    command: str
    """A command line for the shell."""
    event_name: str = ""
    """The event at which it is configured, as its own system spells it; empty: the one that the agent reports."""
    matcher: str = ""
    only_if: str = ""
    timeout: float = 0.0
    fails_closed: bool = False
    """A failure of the hook refuses the call, whatever its system says of failures."""


def recognise_agent(document: bytes) -> AgentSide:
    """The agent's system, from the document that it gave. Raises UserError if that is not clear."""
    try:
        members = Members(document)
    except ValueError as unreadable:
        raise UserError(f"the document on standard input cannot be read: {unreadable}", _NAME_AGENT) from None
    fitting = agents_of(members)
    side = agent_side(fitting[0]) if len(fitting) == 1 else None
    if side is not None:
        return side
    which = " or ".join(fitting) or "no known agent"
    raise UserError(f"the document on standard input comes from {which}", _NAME_AGENT)


async def run_hooks(
    hooks: Sequence[ForeignHook], side: AgentSide, document: bytes, environ: Mapping[str, str]
) -> HookOutput:
    """What the agent reads for its document. Raises UserError for a document or a hook that cannot be read.

    On cancel the hooks are ended with their whole process groups.
    """
    try:
        event = side.read_document(document, environ)
        contexts = [normalised(context, _SETTINGS.max_depth) for context in (event.context, *event.others)]
    except NothingToJudge as nothing:
        return nothing.output
    except ValueError as unreadable:
        raise UserError(f"the document on standard input cannot be read: {unreadable}", _hint(side)) from None
    groups, notes = _groups(hooks, contexts[0], side)
    if not groups:
        return with_lines(side.write_output(event, HookDecision()), notes)
    server = contexts[0].session.server if contexts[0].alias is None else None  # it is the agent's own tool
    all_hooks = Hooks(groups, _SETTINGS, server, environ)
    runs: list[HookRun] = []
    async with all_hooks.runners, anyio.create_task_group() as tasks:
        all_hooks.open(tasks, lambda _run: None, lambda: None)
        decision = decisions.combined([await _decide(all_hooks, context, runs) for context in contexts])
    decision, problems = expressible(decision, side, event.context)
    output = side.write_output(event, decision)
    return with_lines(output, [*notes, *problems, *failures(runs)])


def with_lines(output: HookOutput, lines: Sequence[str]) -> HookOutput:
    """The output with further lines for people behind its own on standard error."""
    return replace(output, stderr="\n".join((*filter(None, [output.stderr]), *lines)))


def failures(runs: Sequence[HookRun]) -> list[str]:
    """A line for people about each hook that failed."""
    return [f"{FAILED}{run.spec.label}: {run.verdict.failure}" for run in runs if run.verdict.failure]


def _groups(hooks: Sequence[ForeignHook], context: EventContext, side: AgentSide) -> tuple[list[Group], list[str]]:
    """The hooks of this event, those of one system together, and sentences about what cannot run. Raises UserError."""
    groups: list[Group] = []
    notes: list[str] = []
    for hook in hooks:
        hook = replace(hook, dialect=knowing_own_tools(hook.dialect))
        hook_list = _read_hook(hook, context, side)
        notes += hook_list.notes
        specs = _specs(hook, hook_list, context)
        if groups and groups[-1].dialect.name == hook.dialect.name:
            groups[-1] = replace(groups[-1], hooks=(*groups[-1].hooks, *specs))
        elif specs:
            tool_names = ToolNames.BARE if context.alias is not None else hook.dialect.tool_names
            of_own_file = hook.dialect.name in STANDARDS  # matchers of hookproxy.toml are tried on both names
            groups.append(Group(hook.dialect, "", specs, tool_names, match_all_names=of_own_file))
    return groups, notes


def normalised(context: EventContext, max_depth: int) -> EventContext:
    """The context of an agent's document as hooks and rules may read it.

    Raises ValueError for arguments that are nested deeper than `max_depth`, and for a tool that hooks and rules would
    take for a method of MCP: `*` does not name these.
    """
    if methods.is_method(context.tool):
        raise ValueError("its tool's name is that of a method, which rules know by this name")
    normal = normalize.normalize(context.arguments)
    if nesting.is_deeper(normal, max_depth):
        raise ValueError("the arguments are nested deeper than many hooks can read")
    return replace(context, arguments=normal, at=time())


def expressible(decision: HookDecision, side: AgentSide, context: EventContext) -> tuple[HookDecision, list[str]]:
    """The decision that the agent can express, and sentences about what it cannot."""
    if context.event in _AFTER:
        return decisions.within_after(decision, side.can, side.name)
    if context.event not in _BEFORE:
        return decision, []
    decision, problems = decisions.within(decision, side.can, side.name)
    if side.merges:
        decision = decisions.without_removals(decision, context.arguments, side.name)
    return decision, problems


def _hint(side: AgentSide) -> str:
    return f"it must be what {side.name} gives to a hook; for another agent, name it: --for AGENT"


async def _decide(hooks: Hooks, context: EventContext, all_runs: list[HookRun]) -> HookDecision:
    """The decision for one context; its runs are added to `all_runs`."""
    runs: list[HookRun] = []
    try:
        return await _decision_of_runs(hooks, context, runs)
    finally:
        all_runs += runs


async def _decision_of_runs(hooks: Hooks, context: EventContext, runs: list[HookRun]) -> HookDecision:
    if context.event is Event.PRE_TOOL_USE:
        evaluation: Evaluation = await hooks.run_pre_hooks(context, None, runs)
        return decisions.before_call(evaluation.decision, runs)
    if context.event in _AFTER:
        return decisions.after_call(await hooks.run_post_hooks(context, runs), runs)
    runs += await hooks.run_event_hooks(context)
    return (
        decisions.permission_request(runs) if context.event is Event.PERMISSION_REQUEST else decisions.other_event(runs)
    )


def _read_hook(hook: ForeignHook, context: EventContext, agent: AgentSide) -> HookList:
    """The hook as its own system reads it from a file; none if that system has no such event."""
    side = side_of(hook.dialect.name)
    if side is None:
        raise UserError(
            f"hooks of {hook.dialect.name} cannot run in other agents", f"--as one of {', '.join(convertible())}"
        )
    event = (hook.event_name,) if hook.event_name else event_names(side, context.event)
    matcher = "" if _may_name_server(hook, context, agent) else hook.matcher
    entries = [WrittenEntry(name, hook.command, (), matcher, hook.only_if, hook.timeout) for name in event]
    project = context.session.project_dir
    if side.read_command is not None:
        found = merge(side.read_command(entry, project) for entry in entries)
    else:
        files = side.write_hook_file(entries) if entries else {}
        found = merge(
            hook.dialect.read_hook_file(HookFile(f"{project}/{path}", text, project, cwd=context.session.cwd))
            for path, text in files.items()
        )
    if entries and not found.hooks:  # a hook that can never run guards nothing
        reasons = "; ".join((*found.notes, *found.remarks))
        raise UserError(f"{hook.dialect.name} cannot run this hook: {reasons}", "correct --event, --matcher and --if")
    return found


def knowing_own_tools(dialect: Dialect) -> Dialect:
    """The dialect whose hooks see the agent's own tools by its own system's names of such tools.

    A dialect is about servers' tools, and its hooks may know these by further names, which the agent's side has not.
    """
    side = side_of(dialect.name)
    if side is None or not side.own_tools:
        return dialect
    return replace(dialect, tool_spellings=side.own_tools, spellings_for=None)


def _specs(hook: ForeignHook, hook_list: HookList, context: EventContext) -> tuple[HookSpec, ...]:
    """The hooks of this event. Some systems have one for servers' tools and one for their own that do what the agent's
    tool does: then the latter is meant, and the command does not run twice.
    """
    specs = tuple(spec for spec in hook_list.hooks if spec.event is context.event)
    known = context.alias.names if context.alias else ()
    spelled = spelled_names(known, hook.dialect.tool_spellings) if hook.dialect.tool_spellings else {}
    specs = tuple(spec for spec in specs if any(map(spec.matches, spelled))) or specs
    if not hook.fails_closed:
        return specs
    return tuple(replace(spec, fails_closed=True, on_failure=OnFailure.DENY) for spec in specs)


def _may_name_server(hook: ForeignHook, context: EventContext, agent: AgentSide) -> bool:
    """Whether the matcher may be about the tool's server, which this agent does not name: then the hook runs.

    Only a list of tools that agents have of their own cannot be about one. If the tool may be the agent's own as well,
    a matcher counts that has a mark of servers' names.
    """
    if not context.tool or context.session.server:
        return False
    if context.alias is not None:
        marked = any(mark in hook.matcher.lower() for mark in SERVER_MARKS)
        return marked and not agent.own_names_are_unique
    own = {
        *FAMILIAR_NAMES,
        *(spelling.name for of_tool in hook.dialect.tool_spellings.values() for spelling in of_tool),
    }
    words = matchers.plain_names(hook.matcher)
    return not words or not own.issuperset(words)
