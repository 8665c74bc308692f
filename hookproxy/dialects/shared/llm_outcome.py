"""Reads the response of a tool as Gemini CLI and Qwen Code give it to their hooks: `llmContent` and `returnDisplay`."""

from __future__ import annotations

import msgspec

from ...jsonrpc import raw_json
from ...model.hooks import Outcome
from ..agent_documents import Members
from ..agent_side import text_outcome


def llm_outcome(response: Members, duration_ms: int = 0) -> Outcome:
    """The text that the model gets; a failure if the response has an error."""
    error = response.object("error").text("message")
    content = response.raw("llmContent")
    text = raw_json.text(content)
    if text is None:
        parts = raw_json.items(content) if content.startswith(b"[") else [msgspec.Raw(content or b'""')]
        text = "\n".join(_part(bytes(part)) for part in parts)
    return text_outcome(text or error, failed=bool(error), duration_ms=duration_ms)


def _part(raw: bytes) -> str:
    text = Members(raw).text("text") if raw.startswith(b"{") else raw_json.text(raw)
    return text or raw.decode(errors="replace")
