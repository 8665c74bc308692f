"""Reads the exit status and the output of a Kiro hook into a verdict. Kiro reads no JSON."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Event, HookResult, HookSpec, Verdict
from ..shared import exit_status
from ..shared.exit_status import ExitStatusRules
from .hook_file import IDE_0, VERSION_1

_AGENT_FILES: Final = ExitStatusRules(contexts=(Event.SESSION_START,))
_WITH_CONTEXT: Final = (Event.SESSION_START, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
"""In the IDE, the standard output of a command that succeeds "is added to the agent's context"; before a call, nothing
of it was measured to reach the model."""
_VERSION_1: Final = ExitStatusRules(contexts=_WITH_CONTEXT, comments=True)
_IDE_0: Final = ExitStatusRules(denies=lambda code: code != 0, contexts=_WITH_CONTEXT, comments=True)
"""The IDE's page says that any exit status other than 0 blocks. IDE 1.1 was measured to block for 2 only; what 0.x does
is not known."""


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run. Never raises."""
    rules = _VERSION_1 if VERSION_1 in spec.traits else _IDE_0 if IDE_0 in spec.traits else _AGENT_FILES
    return exit_status.read_output(rules, spec, result)
