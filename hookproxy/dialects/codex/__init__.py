"""OpenAI Codex's hooks."""

from __future__ import annotations

from typing import Final

from ...model.aliases import ToolSpelling
from ...model.hooks import Order
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output

_EDITS: Final = (ToolSpelling(hook_file.PATCH),)
_SHELLS: Final = ("Bash", "shell", "local_shell", "shell_command", "exec_command")
"""The name of all shell tools in hooks, and the tools' own names, which matchers of published files list."""

DIALECT: Final = Dialect(
    files=hook_file.FORMAT,
    described_by="the source of OpenAI Codex, codex-rs/hooks, and its hooks page, as of 0.159 (October 2026)",
    output_fields=output.FIELDS,
    order=Order.PARALLEL,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    hook_identity=lambda spec: (spec.source,),
    settle=output.settle,
    mcp_tool_name=hook_file.mcp_tool_name,
    tool_spellings={
        "Bash": tuple(map(ToolSpelling, _SHELLS)),
        "Edit": _EDITS,
        "MultiEdit": _EDITS,
        "Write": _EDITS,
    },
    real_arguments=input.real_arguments,
    recognises=hook_file.recognises,
    recognises_at_home=hook_file.recognises_at_home,
    shape_of="claude",
    folders=(".codex",),
    find_plugin=hook_file.find_plugin,
    read_folder=hook_file.read_folder,
    suffixes=(".json", ".toml"),
    agents=("codex-mcp-client",),
    constant_environment=True,
    user_files=(UserFiles(".codex", "hooks.json", "CODEX_HOME"), UserFiles(".codex", "config.toml", "CODEX_HOME")),
    project_files=(".codex/hooks.json", ".codex/config.toml"),
)
