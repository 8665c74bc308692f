"""Kiro's hooks in their three forms: those of agent files, those of version 1, and those of IDE 0.x.

Agent files are Kiro CLI's before version 3 and Amazon Q's. All forms share names of tools and of the server's tools.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, HookResult, HookSpec, Order, Verdict
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from ..shared import exit_status
from ..shared.events import AFTER_CALL
from ..shared.exit_status import ExitStatusRules
from . import hook_file, input, matchers

_REST: Final = b" ... truncated"

_AGENT_FILES: Final = ExitStatusRules(contexts=(Event.SESSION_START,))
_WITH_CONTEXT: Final = (Event.SESSION_START, *AFTER_CALL)
"""In the IDE, the standard output of a command that succeeds "is added to the agent's context"; before a call, nothing
of it was measured to reach the model."""
_VERSION_1: Final = ExitStatusRules(contexts=_WITH_CONTEXT, comments=True)
_IDE_0: Final = ExitStatusRules(denies=lambda code: code != 0, contexts=_WITH_CONTEXT, comments=True)
"""The IDE's page says that any exit status other than 0 blocks. IDE 1.1 was measured to block for 2 only; what 0.x does
is not known."""


def _read_output(spec: HookSpec, result: HookResult) -> Verdict:
    if hook_file.is_of_agent_file(spec):
        size = hook_file.output_size(spec)
        cut = replace(result, stdout=_cut(result.stdout, size), stderr=_cut(result.stderr, size))
        return exit_status.read_output(_AGENT_FILES, spec, cut)
    return exit_status.read_output(_VERSION_1 if hook_file.VERSION_1 in spec.traits else _IDE_0, spec, result)


def _cut(stream: bytes, size: int) -> bytes:
    """The whole characters among the first `size` bytes of a stream, and what Kiro says of the rest."""
    if len(stream) <= size:
        return stream
    return stream[:size].decode(errors="ignore").encode() + _REST


DIALECT: Final = Dialect(
    name=hook_file.NAME,
    described_by="Kiro's pages, kiro.dev/docs/hooks, and docs/hooks.md of aws/amazon-q-developer-cli, as of 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields={},
    order=Order.TOGETHER,
    default_timeout=hook_file.TIMEOUT,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=_read_output,
    hook_identity=lambda spec: (spec.source,) if hook_file.is_of_agent_file(spec) else spec.identity,
    mcp_tool_name=matchers.mcp_tool_name,
    tool_spellings=matchers.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    read_folder=hook_file.read_folder,
    folders=hook_file.FOLDERS,
    suffixes=hook_file.SUFFIXES,
    agents=("Kiro CLI", "Q DEV CLI"),
    variables=("USER_PROMPT",),
    user_files=(
        UserFiles(".kiro", "hooks/*.json"),
        UserFiles(".kiro", "agents/*.json"),
        UserFiles(".aws/amazonq", "cli-agents/*.json"),
    ),
    project_files=(
        ".kiro/hooks/*.json",
        ".kiro/hooks/*.kiro.hook",
        ".kiro/agents/*.json",
        ".amazonq/cli-agents/*.json",
    ),
)
