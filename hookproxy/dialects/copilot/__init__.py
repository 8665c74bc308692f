"""GitHub Copilot CLI: its hook files, in two editions of its reference."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output

DIALECT: Final = Dialect(
    files=hook_file.OLDER_FORMAT,
    described_by="GitHub's hooks reference for Copilot CLI, docs.github.com, as of spring 2026",
    output_fields=output.FIELDS,
    order=Order.SERIAL,
    tool_names=ToolNames.BARE,
    read_hook_file=partial(hook_file.read_hook_file, hook_file.OLDER_FORMAT),
    write_input=input.write_input,
    read_output=output.read_output,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    spellings_for=hook_file.spellings_for,
    recognises=hook_file.recognises,
    options=("fire_permission_request", "tool_args"),
    folders=(".github/hooks", ".copilot/hooks"),
    last_answer_counts=True,
    agents=("github-copilot-developer",),
    variables=(
        "COPILOT_AGENT_SESSION_ID",
        "COPILOT_CLI",
        "COPILOT_CLI_BINARY_VERSION",
        "COPILOT_LOADER_PID",
        "COPILOT_PROJECT_DIR",
    ),
    constant_environment=True,
)

CURRENT: Final = replace(
    DIALECT,
    files=hook_file.CURRENT_FORMAT,
    described_by="GitHub's hooks reference, docs.github.com/en/copilot/reference/hooks-reference, as of autumn 2026",
    output_fields=output.CURRENT_FIELDS,
    read_hook_file=partial(hook_file.read_hook_file, hook_file.CURRENT_FORMAT),
    find_plugin=hook_file.find_plugin,
    read_output=output.read_output_current,
    unframed=output.without_progress,
    recognises=lambda _members: False,
    longest_feedback=output.MAX_JOINED_CONTEXT,
    user_files=(UserFiles(".copilot", "hooks/*.json", "COPILOT_HOME"),),
    project_files=(".github/hooks/*.json",),
)
"""The same where failures of preToolUse hooks deny, and the output of postToolUse hooks is read."""
