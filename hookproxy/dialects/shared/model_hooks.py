"""Entries of hook files that ask a language model, types `prompt` and `agent`: what several systems have in common.

They run where hookproxy.toml names a model in `[model]`, and are reported elsewhere.
"""

from __future__ import annotations

from typing import Final

from ...model.hooks import Event
from ...model.model_endpoint import ModelHook
from ..dialect import HookFile
from .handler_types import Handler
from .hook_file import Table

KEYS: Final = ("prompt", "model")
"""The keys that only such entries have."""

TIMEOUTS: Final = {"prompt": 30.0, "agent": 60.0}
"""Seconds, "Defaults: 600 for command, 30 for prompt, 60 for agent" (Claude Code's reference of hooks)."""

EVENTS: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
"""The events behind MCP at which the answer of a model counts."""

_LABEL_LENGTH: Final = 40  # characters of a prompt that its label shows: people recognise it
ONLY_READS: Final = (
    "its model can read and search files below the folder in which the agent works (Read, Grep, Glob); it runs nothing,"
    " so it cannot run a test suite"
)
"""What people should know of a hook of type `agent`."""


def read_model_hook(
    file: HookFile, entry: Table, event: Event, kind: str, *, takes_context: bool = False
) -> Handler | str:
    """The handler of an entry of this type, or why it cannot run. Raises ConfigError for one without a prompt.

    `takes_context`: the system's models may answer with `additionalContext`.
    """
    entry.require("prompt", 'write "prompt": "Is this safe? $ARGUMENTS"')
    prompt, model = entry.text("prompt"), entry.text("model")
    if not prompt.strip():
        raise entry.error("prompt", "is empty", "write what the model should judge")
    if file.model is None:
        return f"type {kind!r} is not supported: hookproxy has no model to ask; [model] in hookproxy.toml names one"
    if event not in EVENTS:
        return f"the answer of a model has no effect at {event}, as documented"
    text = " ".join(prompt.split())
    label = text if len(text) <= _LABEL_LENGTH else f"{text[: _LABEL_LENGTH - 1]}…"
    return Handler(
        kind,
        f"{kind}: {label}",
        model=ModelHook(prompt, file.model, file.model.model(model), takes_context),
        timeout=TIMEOUTS[kind],
    )
