"""Whether arguments that a hook or a person has written in place of a call's own are such that the tool can get them.

They must mean one thing to everybody who reads them (law 1), and fit what the server lists.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio.to_thread

from ..jsonrpc import nesting, schema
from ..model.hooks import EventContext, Tool
from ..policy import methods

_SAME_NAMES: Mapping[str, str] = {}


def check(context: EventContext, sent: bytes, max_depth: int) -> None:
    """Raise ValueError for arguments, under the server's names, that hooks and the server may read differently, or not
    at all."""
    if nesting.is_deeper(sent, max_depth):  # as for what an agent sends: some hooks could not read it
        raise ValueError(f"nested deeper than {max_depth} levels (max_depth)")
    if context.alias is not None:
        context.alias.check(sent)
    if methods.JUDGED.get(context.tool) is methods.Direction.FROM_AGENT:
        from ..policy import resource_aliases  # for rewrites of such requests only
        from ..protocol import method_forms

        method_forms.check_rewrite(context.tool, context.arguments, sent)
        resource_aliases.check(context.tool, sent)


async def mismatch(listed: Tool | None, sent: bytes, names: Mapping[str, str] = _SAME_NAMES) -> str:
    """Why the arguments do not fit the tool's inputSchema; empty if they do, or if none is listed.

    `names` maps an argument's name in the schema to the reader's name.
    """
    if listed is None or not listed.input_schema:
        return ""
    # in a thread: the validator takes 70 ms to import, and a schema may be written to take long
    return await anyio.to_thread.run_sync(schema.mismatch, listed.input_schema, sent, names)
