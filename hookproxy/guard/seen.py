"""What hooks get with a call that may differ between an agent's event and the server's own run. Pure.

If it is the same on both sides, hooks have seen under the guard what they would see in the run: the names by which the
tool is known, its arguments' types, and what the server says of it.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from ..model.hooks import EventContext, Tool

_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest_of(context: EventContext, listed: Tool | None) -> str:
    """`listed` is the tool's entry in `tools/list`; None: it was not listed."""
    schema = b"" if listed is None else listed.input_schema
    return sha256(_ENCODER.encode((context.alias, context.annotations, schema))).hexdigest()


def digest_of_arguments(normalised: bytes) -> bytes:
    """Of the exact arguments of a call."""
    return sha256(normalised).digest()
