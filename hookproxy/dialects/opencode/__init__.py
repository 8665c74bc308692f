"""OpenCode's plugins: modules in TypeScript or JavaScript, each of which runs in a process of its own that stays.

How it works: `hook_file` makes a worker of each module, for both events the same one. `plugin_host.mjs` is its
program, which loads the module by Bun or Node and calls its functions. `documents` writes what it reads, and reads what
it prints.
"""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ..dialect import Dialect, UserFiles
from . import documents, hook_file

DIALECT: Final = Dialect(
    name=hook_file.NAME,
    described_by="OpenCode's page on plugins, opencode.ai/docs/plugins, and packages/plugin of its sources, as of 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields=documents.FIELDS,
    order=Order.PIPELINE,
    default_timeout=hook_file.TIMEOUT,
    only_verdicts=True,
    read_hook_file=hook_file.read_hook_file,
    write_input=documents.write_input,
    read_output=documents.read_output,
    mcp_tool_name=hook_file.mcp_tool_name,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    folders=hook_file.FOLDERS,
    read_folder=hook_file.read_folder,
    suffixes=hook_file.SUFFIXES,
    modules=True,
    after_results_only=True,
    agents=("opencode",),
    constant_environment=True,
    user_files=(UserFiles(".config/opencode", "plugin"), UserFiles(".config/opencode", "plugins")),
    project_files=(".opencode/plugin", ".opencode/plugins"),
)
