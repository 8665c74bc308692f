"""Reads the exit status and the output of a Kiro hook into a verdict. Kiro reads no JSON."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, HookResult, HookSpec, Verdict
from ..shared import exit_status
from ..shared.exit_status import ExitStatusRules
from .hook_file import VERSION_1, is_of_agent_file, output_size

_REST: Final = b" ... truncated"

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
    if is_of_agent_file(spec):
        size = output_size(spec)
        cut = replace(result, stdout=_cut(result.stdout, size), stderr=_cut(result.stderr, size))
        return exit_status.read_output(_AGENT_FILES, spec, cut)
    return exit_status.read_output(_VERSION_1 if VERSION_1 in spec.traits else _IDE_0, spec, result)


def _cut(stream: bytes, size: int) -> bytes:
    """The whole characters among the first `size` bytes of a stream, and what Kiro says of the rest."""
    if len(stream) <= size:
        return stream
    return stream[:size].decode(errors="ignore").encode() + _REST
