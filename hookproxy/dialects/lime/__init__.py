"""Lime's hooks."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output, tools

DIALECT: Final = Dialect(
    name=hook_file.NAME,
    described_by="Lime's hooks page, lime-docs.pages.dev/config/hooks, as of 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields=output.FIELDS,
    order=Order.SERIAL,
    default_timeout=hook_file.TIMEOUT,
    tool_names=ToolNames.BARE,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    tool_spellings=tools.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    options=("await_post",),
    folders=(".lime",),
    suffixes=(".json", ".toml"),
    agents=("lime",),
    variables=("HOOK_EVENT", "HOOK_TOOL_INPUT", "HOOK_TOOL_IS_ERROR", "HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT"),
    user_files=(UserFiles(".lime", "settings.json"),),
    project_files=(".lime/settings.local.json",),
)
