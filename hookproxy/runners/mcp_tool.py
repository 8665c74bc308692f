"""Runs a hook that is a tool of the MCP server behind the proxy: the text of the tool's result is the hook's output.

Law 3: a server that is not connected, an error, and a response without a result are failures, each with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..jsonrpc import raw_json
from ..model.hooks import Document, HookResult, HookSpec
from .runner import CallTool, Runner, result_of

_PLACEHOLDER: Final = re.compile(r"\$\{([^${}]+)\}")


def runner_for(call_tool: CallTool) -> Runner:
    """The runner that calls tools with `call_tool`."""

    async def run_tool_hook(spec: HookSpec, document: Document, _env: Mapping[str, str]) -> HookResult:
        arguments = fill_template(spec.input, bytes(document.stdin))
        return await result_of(call_tool(spec.server, spec.tool, arguments), spec.timeout)

    return run_tool_hook


def fill_template(template: bytes, document: bytes) -> bytes:
    """The JSON value with each `${a.b}` in its strings replaced by that member of the document, or by nothing.

    A string stays a string, whatever is put into it: nothing in the document can become another argument.
    """
    if b"${" not in template:
        return template
    first = template[:1]
    if first == b"{":
        members = (
            (raw_json.encode(name), fill_template(bytes(raw), document))
            for name, raw in raw_json.fields(template).items()
        )
        return b"{%b}" % b",".join(b"%b:%b" % member for member in members)
    if first == b"[":
        return b"[%b]" % b",".join(fill_template(bytes(item), document) for item in raw_json.items(template))
    text = _PLACEHOLDER.sub(lambda placeholder: _value(document, placeholder[1]), raw_json.text(template) or "")
    return raw_json.encode(text.encode(errors="replace").decode())


def _value(document: bytes, path: str) -> str:
    """The member of the document at the path `a.b.c`: a string as it is, anything else as JSON."""
    value = document.strip()
    for name in path.split("."):
        try:
            value = bytes(raw_json.fields(value)[name])
        except (KeyError, ValueError):
            return ""
    output = raw_json.text(value)
    if output is not None:
        return output
    return "" if value == b"null" else value.decode(errors="replace")
