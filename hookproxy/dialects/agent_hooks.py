"""AGENT-HOOKS-0.1: our own hooks with `type = "agent-hooks"`, which read an AgentContext and print a Verdict.

The standard is a contract between a host and the interceptors in its process, and knows no hook files and no processes.
Here an interceptor is a program: the context is its standard input, the verdict its standard output, and any other end
of it is the failure that the standard calls `interceptor_failed`. `agent_hooks_verdicts` reads and writes them, and
`agent_hooks_host` does what the standard demands of a host beyond that.

Hooks run one after another, each on the arguments as those before it have left them, and all of them run: the
composition profile `sequential/run_all`. A `deny` with `approval` asks the person, once for all hooks of the event.
An `allow` is not an approval: rules and other hooks still decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..model.hooks import HookResult, HookRun, HookSpec, Order, Verdict
from ..model.settings import ToolNames
from .agent_hooks_host import AgentHooksHost
from .agent_hooks_verdicts import (
    NAME,
    POINTS,
    RESERVED,
    Composition,
    of_host,
    read_output,
    real_arguments,
    real_output,
    with_result,
    write_input,
)
from .dialect import Dialect, Effect, for_names

FIELDS: Final = for_names({
    Effect.DECIDES: "decision",
    Effect.REASON: "reason message",
    Effect.REWRITES: "transform",
    Effect.REPLACES: "transform",
    Effect.TELLS_PERSON: "warnings",
    Effect.NONE: "approval evidence result_labels",
})  # fmt: skip


AGENT_HOOKS: Final = Dialect(
    name=NAME,
    events={str(event): event for event in POINTS},
    default_timeout=5.0,  # section 7 recommends it
    described_by="AGENT-HOOKS-0.1 of responsibleai/agent-hooks, spec/AGENT-HOOKS-0.1.md, as of July 2026",
    output_fields=FIELDS,
    order=Order.PIPELINE,
    tool_names=ToolNames.BARE,
    write_input=write_input,
    read_output=read_output,
    only_verdicts=True,
    real_arguments=real_arguments,
    real_output=real_output,
    with_result=with_result,
    constant_environment=True,
    host=AgentHooksHost(),
)
"""The system of our own hooks of this type. It has no files, so it is a standard in the registry, and no dialect."""


def composed(composition: Composition) -> Dialect:
    """The system with another composition profile."""
    match composition.profile:
        case "parallel/strictest":
            asks = composition.on_transform_conflict == "approval"
            return replace(AGENT_HOOKS, order=composition.order, settle=partial(_strictest, asks=asks))
        case "parallel/unanimous":
            asks = composition.on_disagreement == "approval"
            return replace(AGENT_HOOKS, order=composition.order, read_output=partial(_unanimous, asks=asks))
        case _:
            return replace(AGENT_HOOKS, order=composition.order)


def _strictest(runs: Sequence[HookRun], *, asks: bool) -> Sequence[HookRun]:
    """The runs with one rewrite at most: that of hooks that are outvoted does not count, and two of them conflict."""
    rewriting = [run for run in runs if run.verdict.arguments is not None or run.verdict.replacement is not None]
    outvoted = any(run.verdict.permission is not None for run in runs)
    if not rewriting or (len(rewriting) == 1 and not outvoted):
        return runs
    kept = [replace(run, verdict=replace(run.verdict, arguments=None, replacement=None)) for run in runs]
    if outvoted:
        return kept
    conflict = of_host(rewriting[-1].spec, f"{RESERVED}transform_conflict", asks=asks)
    return [*kept, replace(rewriting[-1], verdict=conflict)]


def _unanimous(spec: HookSpec, result: HookResult, *, asks: bool) -> Verdict:
    """The verdict of a run where all hooks must allow: anything else is a disagreement."""
    verdict = read_output(spec, result)
    changes = (verdict.permission, verdict.arguments, verdict.replacement)
    if verdict.failure or changes == (None, None, None):
        return verdict
    reason = f"{RESERVED}composition_disagreement"
    return replace(of_host(spec, reason, asks=asks), messages=(*verdict.messages, *filter(None, [verdict.reason])))
