"""Asks the guard that listens at a socket how it is, or to end. It starts none."""

from __future__ import annotations

from time import monotonic

import msgspec

from ..model.errors import UserError
from . import client
from .exchange import Control, write_control
from .status import Status


def ask(path: str, control: Control) -> Status | None:
    """How the guard is that listens there, and that has been asked this; None: nobody listens. Raises UserError."""
    until = monotonic() + client.START_SECONDS
    try:
        guard = client.connected(path, until)
        if guard is None:
            return None
        _, output, _ = client.exchange(guard, write_control(control), until)
        return msgspec.json.decode(output, type=Status)
    except EOFError:  # it is of another version, or is about to end: either way it listens no more
        return None
    except (OSError, ValueError) as problem:
        message, _, hint = str(problem).removeprefix("error: ").partition("\nhint: ")  # as it says why it cannot start
        raise UserError(
            f"{path}: the guard cannot be asked: {message}", hint or "end its process, whose name has guard"
        ) from None
