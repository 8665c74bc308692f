"""Which hooks let a call pass if they fail: those whose system's document, or whose configuration, says so (law 3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..dialects.dialect import Group
from ..model.counts import counted
from ..model.hooks import Ended, HookResult, HookRun, HookSpec
from ..model.settings import Settings
from ..policy import decide
from .read_verdict import must_be_clean, read_verdict

_FAILURES: Final = (
    HookResult(Ended.EXITED, 1),
    HookResult(Ended.EXITED, 0, b'{"'),
    HookResult(Ended.SIGNALLED, 9),
    HookResult(Ended.TIMED_OUT),
    HookResult(Ended.NOT_STARTED),
)
"""How hooks fail: systems refuse after some of these, and pass after others."""


def decides(spec: HookSpec) -> bool:
    """Whether a call waits for this hook."""
    return spec.event in decide.PRE_EVENTS and not spec.background


def lets_pass(group: Group, spec: HookSpec, settings: Settings) -> bool:
    """Whether a call passes after one of the ways in which this hook may fail."""
    if not decides(spec) or must_be_clean(group, spec, settings):
        return False
    runs = (HookRun(spec, result, read_verdict(group, spec, result, settings)) for result in _FAILURES)
    return not all(decide.blocks(run, settings, group.on_failure) for run in runs)


def summary(groups: Iterable[Group], settings: Settings) -> str:
    """One line for people: `2 of 5 hooks let a call pass if they fail`; empty: none does."""
    deciding = [(group, spec) for group in groups for spec in group.hooks if decides(spec)]
    passing = sum(lets_pass(group, spec, settings) for group, spec in deciding)
    return passing_sentence(passing, len(deciding)) if passing else ""


def passing_sentence(passing: int, deciding: int) -> str:
    """The same from both numbers, of which none is 0."""
    if passing == 1:
        return f"1 of {counted(deciding, 'hook')} lets a call pass if it fails"
    return f"{passing} of {counted(deciding, 'hook')} let a call pass if they fail"
