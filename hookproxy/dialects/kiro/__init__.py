"""Kiro's hooks in their three forms: those of agent files, those of version 1, and those of IDE 0.x.

Agent files are Kiro CLI's before version 3 and Amazon Q's. All forms share names of tools and of the server's tools.
"""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, matchers, output

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
    read_output=output.read_output,
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
