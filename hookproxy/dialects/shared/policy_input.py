"""The input of policy engines: one document, the same for all of them, about one call.

It is written from what is certain (law 1): the arguments are the bytes that would be forwarded, under the names by
which the hook sees them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ...model.hooks import Document, EventContext
from ...model.principal import Principal
from .input import json_line, utf8

TYPES: Final = ("cel", "cedar", "opa")
"""The handler types of policy engines."""

MEMBERS: Final = ("tool", "server", "arguments", "agent", "user", "groups", "session", "labels")
"""The members of the document, in its order. Each is always there; a text that is not known is empty.

`groups` is null where it is in doubt in which groups the user is: no policy may decide by that, whatever it says.
`labels` is null where nothing gives any: a policy that tests an empty list would allow all.
"""


def write_input(context: EventContext) -> Document:
    """The document about a call. There are no variables."""
    session, principal = context.session, context.session.principal
    members = {
        "tool": utf8(context.tool_name),
        "server": utf8(session.server),
        "arguments": msgspec.Raw(context.arguments),
        "agent": utf8(context.agent),
        "user": utf8(principal.name) if principal else "",
        "groups": _groups(principal) if principal else [],
        "session": utf8(session.id),
        "labels": context.labels,
    }
    return Document(json_line(members), env={}, names_caller=True)


def _groups(principal: Principal) -> list[str] | None:
    return None if principal.in_doubt or principal.doubted else [utf8(name) for name in principal.groups]
