"""Says why configured hooks did not run for a call, for its audit record. Pure; cached where only the tool decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ..audit.call_record import Record, Skipped
from ..model.aliases import Alias
from ..model.hooks import Event, HookSpec
from . import bounded_cache
from .select import HookGroups

_EVENTS: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_MAX_LISTED: Final = 50  # hooks in one record: more are a large collection, and a line must stay short
_REFUSED_BY_HOOK: Final = ("denied", "hook failed", "hook failed closed")
_ENDED: Final = "the call had ended before"


class _OfTool(Struct, frozen=True):
    """The hooks of a tool's calls."""

    matching: tuple[HookSpec, ...]
    not_matching: tuple[Skipped, ...]


class SkippedHooks:
    """The hooks of one run that do not run for a call, each with the reason."""

    def __init__(self, groups: HookGroups) -> None:
        self._groups = groups
        self._tools: dict[tuple[str, str, bool], _OfTool] = {}

    def of(self, record: Record, alias: Alias | None) -> Sequence[Skipped]:
        """The configured hooks for events of calls that did not run for this call, which has ended.

        `alias` is the one that its tool had in it.
        """
        key = (record.tool, alias.name, alias.automatic) if alias is not None else (record.tool, "", False)
        of_tool = self._tools.get(key)
        if of_tool is None:
            of_tool = self._read(record.tool, alias)
            bounded_cache.keep(self._tools, key, of_tool)
        if len(of_tool.matching) == 1 and record.hook_runs and record.hook_runs[0].spec is of_tool.matching[0]:
            return of_tool.not_matching  # true of most calls
        ran = {id(run.spec) for run in record.hook_runs}
        skipped = [Skipped(spec, _why(spec, record)) for spec in of_tool.matching if id(spec) not in ran]
        return (*skipped, *of_tool.not_matching)[:_MAX_LISTED]

    def _read(self, tool: str, alias: Alias | None) -> _OfTool:
        selected = (of_group for event in _EVENTS for of_group in self._groups.select(event, tool, alias))
        views = [matched.spec for of_group in selected for matched in of_group.hooks]
        matching = list({id(spec): spec for spec in views}.values())  # a hook may run under several names
        matching_ids = {id(spec) for spec in matching}
        others = (spec for group in self._groups.groups for spec in group.hooks if spec.event in _EVENTS)
        own_names = self._groups.own_names(tool)
        names = own_names if alias is None or not alias.name else (*own_names, alias.name)
        not_matching = tuple(
            Skipped(spec, _why_not(spec, matching, names)) for spec in others if id(spec) not in matching_ids
        )
        return _OfTool(tuple(matching), not_matching[:_MAX_LISTED])


def _why_not(spec: HookSpec, matching: Sequence[HookSpec], names: Sequence[str]) -> str:
    """Why a hook is not among those for the tool with these names."""
    if not any(map(spec.matches, names)):
        return f"{spec.matched_by} does not match the tool"
    same = [other for other in matching if other.identity == spec.identity and other.dialect == spec.dialect]
    if same:
        return f"it is the same hook as {same[0].source}, which runs once"
    return f"{spec.matched_by} does not match the name that it sees"


def _why(spec: HookSpec, record: Record) -> str:
    """Why a hook for the tool did not run for this call."""
    if spec.background:
        return "it runs in the background, and its end is not recorded here"
    if spec.event is Event.PERMISSION_REQUEST:
        if not (spec.every_call or record.decision.startswith("asked")):
            return "no person had to be asked"
    elif spec.event is not Event.PRE_TOOL_USE and (reason := _why_not_after(spec.event, record.result)):
        return reason
    if record.cause in _REFUSED_BY_HOOK and record.result == "refused":
        return "an earlier hook had refused the call"
    return f"{spec.condition} does not match the call" if spec.only_if or spec.accepts else _ENDED


def _why_not_after(event: Event, result: str) -> str:
    """Why hooks for this event after a call did not run; empty: it occurred."""
    if result == "refused":
        return "the call was refused"
    if result == "ok":
        return "" if event is Event.POST_TOOL_USE else "the call succeeded"
    if result == "pending":
        return "the call goes on in further requests"
    return "the call did not succeed" if event is Event.POST_TOOL_USE else ""
