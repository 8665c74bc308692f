"""How a session begins: with `initialize`, or with the first request of the stateless era; and which agent it is."""

from __future__ import annotations

import contextlib
from typing import Final

import msgspec

from ..jsonrpc import raw_json
from . import calls
from .responses import Members

_FIRST_WITH_ELICITATION: Final = "2025-06-18"  # versions are dates, which sort as texts do


class Handshake:
    """The agent's data from the beginning of the session. A session that has begun does not begin again."""

    def __init__(self) -> None:
        self.opened = False
        """The session has begun, with `initialize` or a stateless request other than `server/discover`."""
        self.uses_initialize = False
        """The session began with `initialize`."""
        self.agent_name = ""
        """The agent's name and version, as it gave them."""
        self.server_name = ""
        """The server's name, as it gave it in the result of `initialize`."""
        self.capabilities = b"{}"
        """What the agent declared that it can do, as it spelled it."""
        self._supports_forms = False
        self._initialized = False
        self._version = ""
        self._meta: Members = {}
        self._has_judged_call = False

    @property
    def supports_elicitation(self) -> bool:
        """The agent accepts `elicitation/create` requests: it declared this, and the handshake is complete."""
        return self._supports_forms and self._initialized and self._version >= _FIRST_WITH_ELICITATION

    @property
    def protocol_version(self) -> str:
        """The version that the handshake has agreed on, or that the agent's requests name; empty: it is not known."""
        return self._version or raw_json.text(bytes(self._meta.get(calls.PROTOCOL_VERSION_KEY, b""))) or ""

    def note_result(self, result: Members) -> None:
        """Note the result of `initialize`, which has the protocol version and the server's name."""
        self._version = raw_json.text(bytes(result.get("protocolVersion", b""))) or ""
        self.server_name = calls.texts_of(result.get("serverInfo"), "name")

    def note_initialized(self) -> None:
        """Note that the agent has completed the handshake."""
        self._initialized = True

    def meta_for_own_request(self, at_hand: Members | None) -> Members | None:
        """Return the `params._meta` for a request of hookproxy's own to the server; None: no request is possible yet.

        In the stateless era, it has the protocol version and the agent's name from the call `at_hand`, else from the
        last judged call, and no capabilities. A server that accepts a call before the handshake accepts ours.
        """
        meta = self._meta if at_hand is None else _protocol_members(at_hand)
        if meta:
            return {**meta, calls.CAPABILITIES_KEY: msgspec.Raw(b"{}")}
        return {} if self._has_judged_call or (self._initialized and self._version) else None

    def note_judged_call(self, meta: Members) -> None:
        """Note the `params._meta` of a judged tool call."""
        self._has_judged_call = True
        self._meta = _protocol_members(meta)

    def _note_stateless_request(self, meta: Members) -> None:
        """Note the `params._meta` of a request. In the stateless era, the first one begins the session."""
        if not self.opened and calls.PROTOCOL_VERSION_KEY in meta:
            self.opened = True
            self.agent_name = calls.texts_of(meta.get(calls.CLIENT_INFO_KEY), "name", "version")
            self.capabilities = bytes(meta.get(calls.CAPABILITIES_KEY, b"{}"))
            self._meta = _protocol_members(meta)

    def note_request(self, members: Members, method: bytes, initializes: bool) -> None:
        """Note any request other than a tool call. One without readable params belongs to neither era."""
        if method == b'"server/discover"' or "params" not in members:
            return
        with contextlib.suppress(ValueError):
            params = raw_json.fields(bytes(members["params"]))
            if initializes:
                self.opened = self.uses_initialize = True
                self.agent_name = calls.texts_of(params.get("clientInfo"), "name", "version")
                self.capabilities = bytes(params.get("capabilities", b"{}"))
                self._supports_forms = supports_forms(self.capabilities)
            else:
                self._note_stateless_request(calls.meta(bytes(params.get("_meta", b""))))

    def note_call(self, meta: Members) -> None:
        """Note the `params._meta` of a tool call. It begins the session even without a handshake."""
        self._note_stateless_request(meta)
        self.opened = True


def _protocol_members(meta: Members) -> Members:
    """Return the members of this `_meta` that name the protocol version and the agent; none in the handshake era."""
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
