"""Factory Droid's hooks: those of Claude Code as of 2025, with a file, variables and rewrites of their own."""

from __future__ import annotations

from typing import Final

from ...model.aliases import ToolSpelling
from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output

DIALECT: Final = Dialect(
    name=hook_file.NAME,
    described_by="Factory's hooks reference, docs.factory.ai/harness/hooks, as of June 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields=output.FIELDS,
    order=Order.PARALLEL,
    default_timeout=hook_file.TIMEOUT,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    tool_spellings={
        "Bash": (ToolSpelling("Execute"), ToolSpelling("Bash")),
        "Write": (ToolSpelling("Create"), ToolSpelling("Write")),
        "WebFetch": (ToolSpelling("FetchUrl"), ToolSpelling("WebFetch")),
    },
    recognises=hook_file.recognises,
    shape_of="claude",
    folders=(".factory", ".factory/hooks"),
    find_plugin=hook_file.find_plugin,
    read_folder=hook_file.read_folder,
    constant_environment=True,
    variables=("FACTORY_PROJECT_DIR", "DROID_PLUGIN_ROOT"),
    user_files=(UserFiles(".factory", "hooks.json"), UserFiles(".factory", "settings.json")),
    project_files=(".factory/hooks.json", ".factory/settings.json", ".factory/settings.local.json"),
)
