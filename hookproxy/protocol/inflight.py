"""The tables of the agent's requests in flight: those that no hook judges, and the judged calls.

judged call   HELD ──release──▶ FORWARDED ──take_response──▶ ANSWERED ──finish──▶ gone
               ▲ │                 │                          │ │
               │ └──stop──▶ STOPPED└────────cancel────────────┘ │
               └──────────────────────prepare_retry─────────────┘
"""

from __future__ import annotations

from enum import Enum, auto
from itertools import repeat
from typing import Final

from . import fast_scan
from .calls import Call, Phase, Progress, id_key, new_id

_MAX_CANCELLED: Final = 1024  # cancelled requests that are remembered: agents cancel a few at a time
_MAX_BARRED_BYTES: Final = 8 * 1024 * 1024  # of memory for barred ids: some 50,000 cancelled calls in one session
_BYTES_PER_ID: Final = 150  # of memory for a barred id, without its own characters: two entries in tables


class RequestKind(Enum):
    """What the proxy needs the response to a request for."""

    OTHER = auto()
    INITIALIZE = auto()
    TOOLS_LIST = auto()
    SUBSCRIPTION = auto()  # answered only when the server ends the subscription
    DISCOVER = auto()  # this and the next two only where something of what the server says may be withheld
    PROMPTS_LIST = auto()
    TEMPLATES_LIST = auto()


INITIALIZE: Final = b'"initialize"'
TOOLS_LIST: Final = b'"tools/list"'

REQUEST_KINDS: Final = {
    INITIALIZE: RequestKind.INITIALIZE,
    TOOLS_LIST: RequestKind.TOOLS_LIST,
    b'"subscriptions/listen"': RequestKind.SUBSCRIPTION,
}


OPENING: Final = (INITIALIZE, b'"server/discover"')
"""The methods by which an agent opens a session in either era."""

GUARDED_KINDS: Final = {
    **REQUEST_KINDS,
    b'"server/discover"': RequestKind.DISCOVER,
    b'"prompts/list"': RequestKind.PROMPTS_LIST,
    b'"resources/templates/list"': RequestKind.TEMPLATES_LIST,
}
"""The same, where something of what the server says may be withheld."""

ANNOUNCED: Final = {GUARDED_KINDS[method]: method for method in GUARDED_KINDS.keys() - REQUEST_KINDS.keys()}
"""The methods of the kinds that are distinguished only there."""

SESSION_DATA: Final = frozenset({*GUARDED_KINDS.values()} - {RequestKind.SUBSCRIPTION})
"""The kinds whose responses say what the server is and has."""


class InFlight(dict[bytes, RequestKind]):
    """Requests by the key of their id, until they are answered or cancelled. Late responses are remembered as well."""

    def __init__(self) -> None:
        super().__init__()
        self._duplicates: dict[bytes, int] = {}  # `7` and `"7"` have one key: how many more requests have it
        self._cancelled: dict[bytes, None] = {}  # cancelled and not answered yet, the oldest first
        self._barred: set[bytes] = set()  # the ids of cancelled judged calls: no response to them may ever pass
        self._barred_bytes = 0
        self.ids_may_repeat = True
        """The agent may give a request the id of an earlier one. Otherwise no id needs to be barred: a response that
        is for no request in flight passes to nobody."""
        self.spelled: dict[bytes, bytes] = {}
        """The ids of requests as the agent spelled them, where the key does not say it, and of all `released` ones."""
        self.released: dict[bytes, bytes] = {}
        """The judged calls among them, whose responses pass without being read: each id as the agent spelled it."""
        self.unjudged_calls = 0
        """How many calls that no hook judges have gone to the server since the session began."""
        self.hook_tool_calls: set[bytes] = set()
        """Tool calls of hooks that are not answered yet."""
        self._opening: bytes | None = None  # the key of the first of OPENING in this session
        self._awaits_opening = False

    @property
    def is_simple(self) -> bool:
        """True if all keys differ and no response is blocked: each response ends one request of the agent."""
        return not (self._duplicates or self.blocks_any)

    @property
    def blocks_any(self) -> bool:
        """True if a response may come that must not reach the agent."""
        return bool(self._barred or self.hook_tool_calls)

    @property
    def awaits_session_data(self) -> bool:
        """True if the response to `initialize` or `tools/list` may come."""
        return not SESSION_DATA.isdisjoint(self.values())

    @property
    def awaits_response(self) -> bool:
        """True if the agent still awaits a response."""
        return any(kind is not RequestKind.SUBSCRIPTION for kind in self.values())

    def note_opening(self, key: bytes) -> None:
        """A request by which the agent opens the session goes to the server."""
        if self._opening is None:
            self._opening = key
            self._awaits_opening = True

    @property
    def awaits_opening(self) -> bool:
        """True if the server has not even answered the request by which the agent opens the session."""
        return self._awaits_opening and self._opening in self

    def settle_hook_tool_call(self, key: bytes) -> bool:
        """Note that a hook's tool call is answered, or given up: late responses are dropped. False: there is none."""
        was_in_flight = key in self.hook_tool_calls
        self.hook_tool_calls.discard(key)
        return was_in_flight

    def note(self, key: bytes, kind: RequestKind, spelled: bytes = b"") -> None:
        """Note a request that goes to the server, whose id is `spelled` so; empty: as its key."""
        if spelled and spelled != key:
            self.spelled[key] = spelled
        if key in self:
            self._duplicates[key] = self._duplicates.get(key, 0) + 1
        self[key] = kind

    def note_released(self, key: bytes, spelled: bytes, kind: RequestKind = RequestKind.OTHER) -> None:
        """Note a judged call that goes to the server and is a request like any other from now on."""
        self.note(key, kind)
        self.released[key] = self.spelled[key] = spelled

    def unanswered(self) -> list[bytes]:
        """The ids of the requests that no hook judges and no server has answered, as the agent spelled them."""
        return [self.spelled.get(key, key) for key in self if key not in self.released]

    def settle(self, key: bytes) -> RequestKind | None:
        """End a request that is answered or cancelled. None: no request in flight has this key."""
        if self.spelled:
            self.spelled.pop(key, None)
            self.released.pop(key, None)
        if key == self._opening:  # a later request may have its id
            self._awaits_opening = False
        kind = self.get(key)
        more = self._duplicates.pop(key, 0)
        if more > 1:
            self._duplicates[key] = more - 1
        if kind is not None and not more:
            del self[key]
        return kind

    def note_all(self, keys: list[bytes]) -> bool:
        """Note many requests of kind OTHER if none of the keys is known yet. False: nothing was noted."""
        if len(keys) == 1:  # by far the most frequent, and twice as fast
            return self.note_one(keys[0])
        fresh = dict.fromkeys(keys, RequestKind.OTHER)
        if len(fresh) != len(keys) or not self.keys().isdisjoint(fresh):
            return False
        if not (self._cancelled.keys().isdisjoint(fresh) and self._barred.isdisjoint(fresh)):
            return False
        self.update(fresh)
        self.unjudged_calls += len(fresh)
        return True

    def note_one(self, key: bytes) -> bool:
        """As `note_all` for one request."""
        fits = key not in self and key not in self._cancelled and key not in self._barred
        if fits:
            self[key] = RequestKind.OTHER
            self.unjudged_calls += 1
        return fits

    def settle_all(self, heads: list[fast_scan.Head]) -> bool:
        """Settle all responses among these if each ends a request of kind OTHER. False: nothing was settled."""
        if len(heads) == 1:  # by far the most frequent, and twice as fast
            (head,) = heads
            return not head.method and self._settle(id_key(bytes(head.id))) if head.id else bool(head.method)
        keys: list[bytes] = []
        for head in heads:
            if head.id and not head.method:
                keys.append(bytes(head.id))
            elif head.id or not head.method:  # with neither, it may be a response without an id
                return False
        return not keys or self._settle_each(keys if fast_scan.are_plain_integers(keys) else [*map(id_key, keys)])

    def settle_simple(self, key: bytes) -> bool:
        """Settle a request of kind OTHER if the table is simple. False: nothing was settled."""
        return not (self._duplicates or self._barred or self.hook_tool_calls) and self._settle(key)

    def _settle(self, key: bytes) -> bool:
        if self.get(key) is not RequestKind.OTHER:
            return False
        del self[key]
        if self.spelled:
            self.spelled.pop(key, None)
            self.released.pop(key, None)
        return True

    def _settle_each(self, keys: list[bytes]) -> bool:
        kinds = [*map(self.pop, keys, repeat(None))]
        if kinds.count(RequestKind.OTHER) != len(keys):
            self.update((key, kind) for key, kind in zip(keys, kinds, strict=True) if kind is not None)
            return False
        if self.spelled:
            for key in keys:
                self.spelled.pop(key, None)
                self.released.pop(key, None)
        return True

    def cancel(self, key: bytes) -> None:
        """Note that a request with this key was cancelled. Its late response may pass."""
        self._cancelled[key] = None
        if len(self._cancelled) > _MAX_CANCELLED:
            del self._cancelled[next(iter(self._cancelled))]

    def bar(self, key: bytes) -> None:
        """Note that a judged call with this key was cancelled: the server may answer at any time, or twice.

        So no response with this key passes, and no request of the agent gets it, until the session ends.
        """
        if self.ids_may_repeat and key not in self._barred:
            self._barred.add(key)
            self._barred_bytes += len(key) + _BYTES_PER_ID

    @property
    def can_bar_more(self) -> bool:
        """False if so many ids are barred that no further call may be judged, because it may be cancelled as well."""
        return self._barred_bytes < _MAX_BARRED_BYTES

    def take_late_response(self, key: bytes) -> bool:
        """Note the late response to a cancelled request. False: there is no such request, or it must not pass."""
        was_cancelled = key in self._cancelled
        self._cancelled.pop(key, None)
        return was_cancelled and key not in self._barred

    def was_cancelled(self, key: bytes) -> bool:
        """True if a cancelled request with this key may still be answered."""
        return key in self._cancelled

    def is_blocked(self, key: bytes) -> bool:
        """True if a response with this key must not pass: it answers a hook's tool call or a cancelled judged call."""
        return key in self._barred or key in self.hook_tool_calls

    def passes_unread(self, key: bytes | None) -> bool:
        """True if a response with this key passes without being read; None: any, as some servers write the id last."""
        if key is None:
            return bool(self) and not (self.blocks_any or self.released)
        return key in self and key not in self.released and not self.is_blocked(key)


class JudgedCalls(dict[bytes, Call]):
    """The judged calls by the key of their id, until their response has left; a repeated one also by its `sent_key`.

    What must hold: none of them is cancelled, and a cancelled one that the server has is barred in `requests`.
    """

    def __init__(self, requests: InFlight) -> None:
        super().__init__()
        self._requests = requests

    @property
    def awaits_response(self) -> bool:
        """True if the agent still awaits the server's response to one of them."""
        return any(call.phase is Phase.FORWARDED for call in self.values())

    def release(self, call: Call, *, unseen: bool = False) -> bool:
        """Note that an allowed call goes to the server. False: it must not, because the agent has cancelled it.

        With `unseen`, its response passes without being read, so the call leaves the table now.
        """
        if call.phase is not Phase.HELD:
            return False
        call.phase = Phase.FORWARDED
        if call.progress is Progress.NOT_SENT:
            call.progress = Progress.NO_RESPONSE
        if unseen:
            self._forget(call)
            kind = RequestKind.SUBSCRIPTION if call.listens else RequestKind.OTHER
            self._requests.note_released(call.key, call.id, kind)
        return True

    def finish(self, call: Call) -> bool:
        """Note that the call's response goes to the agent. False: it must not (it is cancelled, or has had one)."""
        if self.get(call.key) is not call:
            return False
        self._forget(call)
        return True

    def cancel(self, call: Call) -> bool:
        """Note that the agent has cancelled the call. True: the server has it, so it gets the cancellation."""
        has_it = call.phase in (Phase.FORWARDED, Phase.ANSWERED)
        if has_it:
            self._requests.bar(call.key)
        call.phase = Phase.CANCELLED
        self._forget(call)
        return has_it

    def prepare_retry(self, call: Call) -> bool:
        """Make an answered call ready to be sent again. False: the agent has cancelled it.

        It gets an id of our own, because a session must not use an id twice.
        """
        if call.phase is not Phase.ANSWERED:
            return False
        if call.sent_id:
            del self[call.sent_key]
        call.phase, call.sent_id, call.response_line, call.response = Phase.HELD, new_id(), b"", None
        call.sent_key = id_key(call.sent_id)
        self[call.sent_key] = call
        return True

    def _forget(self, call: Call) -> None:
        del self[call.key]
        self.pop(call.sent_key, None)
