"""How a session begins: with `initialize`, or with the first request of the stateless era; and whose it is."""

from __future__ import annotations

import contextlib
from typing import Final

import msgspec

from ..jsonrpc import raw_json
from . import calls
from .responses import Members

_FIRST_WITH_ELICITATION: Final = "2025-06-18"  # versions are dates, which sort as texts do


class Handshake:
    """What the agent told of itself. A session that has begun stays so."""

    def __init__(self) -> None:
        self.opened = False
        """The session has begun: `initialize`, or the first request of the stateless era but `server/discover`."""
        self.uses_initialize = False
        """It began with `initialize`."""
        self.agent_name = ""
        """Name and version as the agent gave them."""
        self._supports_forms = False
        self._initialized = False
        self._version = ""
        self._meta: Members = {}
        self._has_judged_call = False

    @property
    def supports_elicitation(self) -> bool:
        """The agent takes questions to the person as requests: it said so, and the handshake is over."""
        return self._supports_forms and self._initialized and self._version >= _FIRST_WITH_ELICITATION

    def note_initialize(self, params: Members) -> None:
        """The params of an `initialize` request."""
        self.opened = self.uses_initialize = True
        self.agent_name = calls.client_name(params.get("clientInfo"))
        self._supports_forms = supports_forms(params.get("capabilities"))

    def note_result(self, result: Members) -> None:
        """The result of `initialize`, which says what version is spoken."""
        self._version = raw_json.text(bytes(result.get("protocolVersion", b""))) or ""

    def note_initialized(self) -> None:
        """The agent has ended the handshake."""
        self._initialized = True

    def meta_for_own_request(self, at_hand: Members | None) -> Members | None:
        """What `params._meta` of a request of ours to the server has to hold; None: none can be made yet.

        In the stateless era: what the call `at_hand` says of protocol and agent; where there is none, what the agent's
        last judged call said. We can do nothing for the server, whatever the agent can. An agent that calls before its
        handshake is over shall not be rid of its guard: a server that takes its call takes ours.
        """
        meta = self._meta if at_hand is None else _protocol_members(at_hand)
        if meta:
            return {**meta, calls.CAPABILITIES_KEY: msgspec.Raw(b"{}")}
        return {} if self._has_judged_call or (self._initialized and self._version) else None

    def note_meta(self, meta: Members) -> None:
        """`params._meta` of a request that counts: in which era, and as whom, the agent speaks now."""
        self._meta = _protocol_members(meta)

    def note_judged_call(self, meta: Members) -> None:
        """`params._meta` of a tool call that is judged."""
        self._has_judged_call = True
        self._meta = _protocol_members(meta)

    def note_stateless_request(self, meta: Members) -> None:
        """`params._meta` of any other request."""
        if not self.opened and calls.PROTOCOL_VERSION_KEY in meta:
            self.opened = True
            self.agent_name = calls.client_name(meta.get(calls.CLIENT_INFO_KEY))
            self.note_meta(meta)

    def note_request(self, members: Members, method: bytes, initializes: bool) -> None:
        """Any request but a tool call; one without readable params belongs to neither era."""
        if method == b'"server/discover"' or "params" not in members:
            return
        with contextlib.suppress(ValueError):
            params = raw_json.fields(bytes(members["params"]))
            if initializes:
                self.note_initialize(params)
            else:
                self.note_stateless_request(calls.meta(bytes(params.get("_meta", b""))))

    def note_call(self, meta: Members) -> None:
        """`params._meta` of a tool call: it opens a session of an agent that greets nobody, too."""
        self.note_stateless_request(meta)
        self.opened = True


def _protocol_members(meta: Members) -> Members:
    """What a request of ours says of protocol and agent, as one with this `_meta` does; nothing in the older era."""
    if calls.PROTOCOL_VERSION_KEY not in meta:
        return {}
    return {key: meta[key] for key in (calls.PROTOCOL_VERSION_KEY, calls.CLIENT_INFO_KEY) if key in meta}


def supports_forms(capabilities: bytes | msgspec.Raw | None) -> bool:
    """True if an agent with these capabilities shows forms to the person: `elicitation` is `{}`, or has `form`."""
    try:
        elicitation = raw_json.fields(raw_json.fields(capabilities or b"{}").get("elicitation", b"5"))
    except ValueError:
        return False
    return not elicitation or "form" in elicitation
