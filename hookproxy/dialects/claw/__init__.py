"""claw-code's hooks, as two dialects.

`claw` follows the hooks page: command strings, plain text, two events. `claw@current` is the program of August 2026,
which has a third event, allows matcher groups beside command strings, and reads JSON.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from ...model.hooks import Document, Event, EventContext, HookSpec, Order, Outcome
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from ..shared import input as shared_input
from . import hook_file, output


def _write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document and the variables. The tool's input is in `tool_input`, `tool_input_json` and HOOK_TOOL_INPUT."""
    variable, cut = shared_input.tool_input_variable(context.arguments)
    failed = context.event is Event.POST_TOOL_USE_FAILURE
    has_run = context.event is not Event.PRE_TOOL_USE
    output = shared_input.result_text(context.outcome or Outcome()) if has_run else None
    document = {
        "hook_event_name": spec.event_name,
        "tool_name": context.tool_name,
        "tool_input": msgspec.Raw(context.arguments),
        "tool_input_json": context.arguments.decode(),
        "tool_error" if spec.event_name == hook_file.FAILURE_EVENT else "tool_output": output,
        "tool_result_is_error": failed,
    }
    env = {
        "HOOK_EVENT": spec.event_name,
        "HOOK_TOOL_NAME": context.tool_name,
        shared_input.TOOL_INPUT: variable,
        "HOOK_TOOL_IS_ERROR": "1" if failed else "0",
    }
    if output is not None:
        env["HOOK_TOOL_OUTPUT"] = output
    return Document(stdin=shared_input.json_line(document), env=env, cut=cut)


DIALECT: Final = Dialect(
    files=hook_file.DOCUMENTED,
    described_by="claw-code's page on its hook system, as of April 2026",
    order=Order.UNTIL_DENIED,
    tool_names=ToolNames.BARE,
    write_input=_write_input,
    read_output=output.read_output,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.CURRENT.fits,
    folders=(".claw", ".claude"),
    agents=("runtime",),  # the name that claw-code gives as an MCP client
    variables=("HOOK_EVENT", "HOOK_TOOL_INPUT", "HOOK_TOOL_IS_ERROR", "HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT"),
)

CURRENT: Final = replace(
    DIALECT,
    files=hook_file.CURRENT,
    described_by="the source of claw-code, rust/crates/runtime, as of August 2026",
    output_fields=output.FIELDS,
    read_hook_file=hook_file.CURRENT.read,
    read_output=output.read_output_current,
    recognises=lambda _members: False,
    user_files=(UserFiles(".claw", "settings.json", "CLAW_CONFIG_HOME"),),
    project_files=(".claw.json", ".claw/settings.json", ".claw/settings.local.json"),
)
