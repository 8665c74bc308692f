"""What the server says it is and has, where something of that must not reach the agent.

That are the responses to `initialize`, `server/discover` and the lists of tools, prompts and resource templates. Lists
are *guarded* where tools are shown otherwise than the server lists them, or where what it says is compared with what is
pinned. What must hold then:

- A request for them is `awaited` as soon as it goes to the server, until its response has come, or it is cancelled.
  Meanwhile each line of the server is read closely: no reader may take another one for the response.
- No other request of the agent gets its id, and its response never comes in a batch.
- A request about what is withheld is refused, alone and in a batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Final

from ..jsonrpc import raw_json
from . import actions, calls, feedback
from .calls import id_key
from .inflight import GUARDED_KINDS, REQUEST_KINDS, SESSION_DATA, InFlight, RequestKind
from .responses import Members
from .shown_tools import ShownTools
from .tool_list import cursor_of

WhyWithheld = Callable[[bytes, bytes], str]
"""Says of a request, by its method and its params as spelled, why it is refused; empty: it is not."""

OF_REFUSED: Final = "what a server that is refused says by itself"


def _withholds_nothing(_method: bytes, _params: bytes) -> str:
    return ""


class SessionData:
    """Which requests are for what the server says of itself, and what of that is withheld."""

    def __init__(self, requests: InFlight) -> None:
        self._requests = requests
        self._kinds = REQUEST_KINDS
        self._cursors: dict[bytes, bytes] = {}  # of requests for further pages, as spelled
        self._why_withheld: WhyWithheld = _withholds_nothing
        self.awaited: set[bytes] = set()
        """The keys of the requests whose responses are still to come; always the same set."""
        self.shown: ShownTools | None = None
        """The tools as the agent sees them; None: as the server lists them."""
        self.is_guarded = False
        """Something of what the server says of itself must not reach the agent."""
        self.refuses_server = False
        """Nothing that the server asks or says by itself reaches the agent."""

    def show(self, shown: ShownTools | None, why_withheld: WhyWithheld | None) -> None:
        """Show tools so from now on. With `why_withheld`, each response that says what the server has is an action."""
        self.shown = shown
        self.is_guarded = shown is not None or why_withheld is not None
        self._kinds = GUARDED_KINDS if why_withheld is not None else REQUEST_KINDS
        self._why_withheld = why_withheld or _withholds_nothing

    def kind(self, method: bytes) -> RequestKind:
        """The kind of a request of this method."""
        return self._kinds.get(method, RequestKind.OTHER)

    def why_withheld(self, method: bytes, members: Members) -> str:
        """Why a request is refused, because what it is about is withheld; empty: it is not."""
        return self._why_withheld(method, bytes(members.get("params", b""))) if self.is_guarded else ""

    def refused(self, method: bytes, members: Members) -> actions.Refused | None:
        """The refusal of a request that is about what is withheld, or whose response would be like another one."""
        if not self.is_guarded:
            return None
        key, raw_id = id_key(bytes(members["id"])), calls.response_id(members)
        if key in self._requests and not SESSION_DATA.isdisjoint((self.kind(method), self._requests[key])):
            return actions.Refused("Its id is the id of a request that is in flight.", raw_id)
        if why := self.why_withheld(method, members):
            return actions.Refused(why, raw_id, code=feedback.REFUSED)
        return None

    def refuses_in_batch(self, batch: Iterable[tuple[Members, bytes]]) -> bool:
        """Whether a batch of the agent must not pass, because its responses would have to be read alone."""
        return self.is_guarded and any(
            self.kind(method) in SESSION_DATA or self.why_withheld(method, members)
            for members, method in batch
            if "id" in members
        )

    def is_in_batch(self, keys: Iterable[bytes]) -> bool:
        """Whether a batch of the server has a response that must be read alone."""
        return self.is_guarded and any(self._requests.get(key) in SESSION_DATA for key in keys)

    def note(self, key: bytes, kind: RequestKind, members: Members) -> None:
        """Note a request that goes to the server."""
        if self.is_guarded and kind in SESSION_DATA:
            self.awaited.add(key)
            if cursor := cursor_of(members):
                self._cursors[key] = cursor

    def note_cancelled(self, key: bytes, kind: RequestKind) -> bool:
        """Note that a request was cancelled. True: its late response must not pass either."""
        self.take_cursor(key)
        return self.is_guarded and kind in SESSION_DATA

    def take_cursor(self, key: bytes) -> bytes:
        """Note that the response to a request has come. Returns the cursor of the request; empty: it had none."""
        self.awaited.discard(key)
        return self._cursors.pop(key, b"") if self._cursors else b""

    def of_refused(self, body: bytes) -> actions.ServerAction:
        """The action for a line, not a response, of a server that is refused."""
        with contextlib.suppress(ValueError):
            members = raw_json.fields(body)
            if "id" in members and "method" in members:
                return actions.SendBack(feedback.error(bytes(members["id"]), feedback.SERVER_IS_REFUSED), "")
        return actions.Dropped(OF_REFUSED)
