"""Runs a hook that is a tool of the MCP server behind us: what the tool answers as text is what the hook prints.

Law 3: a server that is not connected, an error and an answer without a result are trouble, each with its reason.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from ..jsonrpc import raw_json
from ..model.hooks import Document, Ended, HookResult, HookSpec
from .event_watch import Limit, watch_of
from .runner import CallTool, NoAnswer, Runner

_PLACE: Final = re.compile(r"\$\{([^${}]+)\}")


def through(call_tool: CallTool) -> Runner:
    """The runner that asks by `call_tool`."""

    async def run(spec: HookSpec, document: Document, _env: Mapping[str, str]) -> HookResult:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        ended, said, detail = Ended.FAILED, b"", ""
        try:
            with Limit(watch_of(loop), spec.timeout):
                said = await call_tool(spec.server, spec.tool, filled(spec.input, bytes(document.stdin)))
            ended = Ended.EXITED
        except TimeoutError:
            ended = Ended.TIMED_OUT
        except NoAnswer as problem:
            detail = str(problem)
        return HookResult(ended, stdout=said, ms=(loop.time() - begun) * 1000, detail=detail)

    return run


def filled(template: bytes, document: bytes) -> bytes:
    """The JSON value with `${a.b}` in its texts replaced by the document's member; one that is not there is empty.

    A text stays a text, whatever is put into it: nothing in the document can become another argument.
    """
    if b"${" not in template:
        return template
    kind = template[:1]
    if kind == b"{":
        members = (
            (raw_json.encode(name), filled(bytes(raw), document)) for name, raw in raw_json.fields(template).items()
        )
        return b"{%b}" % b",".join(b"%b:%b" % member for member in members)
    if kind == b"[":
        return b"[%b]" % b",".join(filled(bytes(item), document) for item in raw_json.items(template))
    text = _PLACE.sub(lambda place: _value(document, place[1]), raw_json.text(template) or "")
    return raw_json.encode(text.encode(errors="replace").decode())


def _value(document: bytes, path: str) -> str:
    """A member of the document, found by the names on the way to it: a text as it is, anything else as JSON."""
    value = document.strip()
    for name in path.split("."):
        try:
            value = bytes(raw_json.fields(value)[name])
        except (KeyError, ValueError):
            return ""
    said = raw_json.text(value)
    if said is not None:
        return said
    return "" if value == b"null" else value.decode(errors="replace")
