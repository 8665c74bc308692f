"""How a session begins: with `initialize`, or with the first request of the stateless era; and whose it is."""

from __future__ import annotations

import contextlib

from . import calls, wire
from .replies import Members


class Greeting:
    """What the agent told of itself. A session that has begun stays so."""

    def __init__(self) -> None:
        self.opened = False
        """The session has begun: `initialize`, or the first request of the stateless era but `server/discover`."""
        self.handshake = False
        """It began with `initialize`."""
        self.agent = ""
        """Name and version as the agent gave them."""

    def initialize(self, params: Members) -> None:
        """The params of an `initialize` request."""
        self.opened = self.handshake = True
        self.agent = calls.introduced(params.get("clientInfo"))

    def request(self, meta: Members) -> None:
        """`params._meta` of any other request."""
        if not self.opened and calls.PROTOCOL_VERSION_KEY in meta:
            self.opened = True
            self.agent = calls.introduced(meta.get(calls.CLIENT_INFO_KEY))

    def heard(self, members: Members, method: bytes, initializes: bool) -> None:
        """Any request but a tool call; one without readable params belongs to neither era."""
        if method == b'"server/discover"' or "params" not in members:
            return
        with contextlib.suppress(ValueError):
            params = wire.fields(bytes(members["params"]))
            if initializes:
                self.initialize(params)
            else:
                self.request(calls.meta(params))

    def call(self, meta: Members) -> None:
        """`params._meta` of a tool call: it opens a session of an agent that greets nobody, too."""
        self.request(meta)
        self.opened = True
