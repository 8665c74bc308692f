"""Gemini CLI: the hooks of its settings files and of its extensions."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output

DIALECT: Final = Dialect(
    files=hook_file.FORMAT,
    described_by="Gemini CLI's source and hooks reference, github.com/google-gemini/gemini-cli, as of August 2026",
    output_fields=output.FIELDS,
    order=Order.TOGETHER,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    hook_identity=lambda spec: (spec.label, *spec.identity),  # `getHookKey`, and what else a run depends on,
    settle=output.settle,
    after_results_only=True,
    mcp_tool_name=hook_file.mcp_tool_name,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    recognises_at_home=hook_file.recognises_at_home,
    folders=(".gemini", ".gemini/extensions/*/hooks"),
    find_plugin=hook_file.find_plugin,
    notifications={"permission_prompt": "ToolPermission"},
    agents=("gemini-cli-mcp-client",),
    constant_environment=True,
    variables=("GEMINI_CWD", "GEMINI_PLANS_DIR", "GEMINI_PROJECT_DIR", "GEMINI_SESSION_ID", "CLAUDE_PROJECT_DIR"),
    user_files=(UserFiles(".gemini", "settings.json"),),
    project_files=(".gemini/settings.json",),
)
