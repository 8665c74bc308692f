"""The agent's requests in flight whose answers no hook judges: which answers are welcome, and which are not."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from itertools import repeat
from typing import Final

from . import fast_scan

_MAX_CANCELLED: Final = 1024  # cancelled requests that are remembered; agents cancel a few at a time


class RequestKind(Enum):
    """Requests by what their answers are good for."""

    OTHER = auto()
    INITIALIZE = auto()
    TOOLS_LIST = auto()
    SUBSCRIPTION = auto()  # answered only when the server ends it


REQUEST_KINDS: Final = {
    b'"initialize"': RequestKind.INITIALIZE,
    b'"tools/list"': RequestKind.TOOLS_LIST,
    b'"subscriptions/listen"': RequestKind.SUBSCRIPTION,
}


class InFlight(dict[bytes, RequestKind]):
    """By the key of its id, a request stays until it is answered or cancelled; then its late answer is thought of."""

    def __init__(self) -> None:
        super().__init__()
        self._duplicates: dict[bytes, int] = {}  # `7` and `"7"` have one key; more than one of them is counted here
        self._cancelled: dict[bytes, None] = {}  # cancelled, not answered yet; the oldest first
        self._blocked: set[bytes] = set()  # those of them whose late answer does not pass
        self.released: dict[bytes, bytes] = {}
        """Judged calls among them, whose answers nobody has to see: the id of each as the agent spelled it."""
        self.hook_tool_calls: set[bytes] = set()
        """Tool calls of our own that are not answered."""

    @property
    def is_simple(self) -> bool:
        """No two requests have the same key, and no answer is to stay away: each ends a request of the agent."""
        return not (self._duplicates or self.blocks_any)

    @property
    def blocks_any(self) -> bool:
        """Some answer that may come is not for the agent."""
        return bool(self._blocked or self.hook_tool_calls)

    @property
    def awaits_session_data(self) -> bool:
        """An answer may come that tells of the session or of its tools."""
        return any(kind is RequestKind.INITIALIZE or kind is RequestKind.TOOLS_LIST for kind in self.values())

    @property
    def awaits_response(self) -> bool:
        """An answer to the agent is still to come."""
        return any(kind is not RequestKind.SUBSCRIPTION for kind in self.values())

    def settle_hook_tool_call(self, key: bytes) -> bool:
        """A tool call of our own is answered; False: there is none."""
        found = key in self.hook_tool_calls
        self.hook_tool_calls.discard(key)
        return found

    def abandon_hook_tool_call(self, key: bytes) -> None:
        """Nobody waits for this errand any more; its late answer is nobody's."""
        self.hook_tool_calls.discard(key)
        self.cancel(key, late_answer_passes=False)

    def note(self, key: bytes, kind: RequestKind) -> None:
        """A request goes to the server."""
        if key in self:
            self._duplicates[key] = self._duplicates.get(key, 0) + 1
        self[key] = kind

    def note_released(self, key: bytes, spelled: bytes) -> None:
        """A judged call goes to the server, and is a request like any other from now on."""
        self.note(key, RequestKind.OTHER)
        self.released[key] = spelled

    def settle(self, key: bytes) -> RequestKind | None:
        """An answer is there, or none will be; None: nothing in flight has this key."""
        self.released.pop(key, None)
        kind = self.get(key)
        more = self._duplicates.pop(key, 0)
        if more > 1:
            self._duplicates[key] = more - 1
        if kind is not None and not more:
            del self[key]
        return kind

    def note_all(self, keys: list[bytes]) -> bool:
        """Note many that are worth no look, if none is there already; else note nothing, and give False."""
        if len(keys) == 1:  # by far the most frequent, and twice as fast
            fits = keys[0] not in self and keys[0] not in self._cancelled
            if fits:
                self[keys[0]] = RequestKind.OTHER
            return fits
        fresh = dict.fromkeys(keys, RequestKind.OTHER)
        if len(fresh) != len(keys) or not self.keys().isdisjoint(fresh):
            return False
        if self._cancelled and not self._cancelled.keys().isdisjoint(fresh):
            return False
        self.update(fresh)
        return True

    def settle_all(self, found: list[fast_scan.Head], key_of: Callable[[bytes], bytes]) -> bool:
        """Settle all answers among these, if each is worth no look; else settle nothing, and give False."""
        if len(found) == 1:  # by far the most frequent, and twice as fast
            return not found[0].id or self._settle_one(found[0], key_of)
        keys: list[bytes] = []
        for head in found:
            if head.id:
                if head.method:
                    return False
                keys.append(bytes(head.id))
        return not keys or self._settle_each(keys if fast_scan.are_plain_integers(keys) else [*map(key_of, keys)])

    def _settle_one(self, head: fast_scan.Head, key_of: Callable[[bytes], bytes]) -> bool:
        key = key_of(bytes(head.id))
        if head.method or self.get(key) is not RequestKind.OTHER:
            return False
        del self[key]
        if self.released:
            self.released.pop(key, None)
        return True

    def _settle_each(self, keys: list[bytes]) -> bool:
        kinds = [*map(self.pop, keys, repeat(None))]
        if kinds.count(RequestKind.OTHER) != len(keys):
            self.update((key, kind) for key, kind in zip(keys, kinds, strict=True) if kind is not None)
            return False
        if self.released:
            for key in keys:
                self.released.pop(key, None)
        return True

    def cancel(self, key: bytes, *, late_answer_passes: bool) -> None:
        """A request with this key was cancelled; that of a judged call must not pass, whatever else has the key."""
        if not late_answer_passes:
            self._blocked.add(key)
        self._cancelled[key] = None
        if len(self._cancelled) > _MAX_CANCELLED:
            passing = next((one for one in self._cancelled if one not in self._blocked), None)
            self.take_late_response(next(iter(self._cancelled)) if passing is None else passing)

    def take_late_response(self, key: bytes) -> bool:
        """True if this is the late answer to a cancelled request, and passes."""
        passes = key in self._cancelled and key not in self._blocked
        self._cancelled.pop(key, None)
        self._blocked.discard(key)
        return passes

    def was_cancelled(self, key: bytes) -> bool:
        """A cancelled request may still be answered with this key."""
        return key in self._cancelled

    def is_blocked(self, key: bytes) -> bool:
        """The answer to an errand or a cancelled judged call may come with this key, and must not pass as another's."""
        return key in self._blocked or key in self.hook_tool_calls

    def passes_unread(self, key: bytes | None) -> bool:
        """An answer with this key passes unseen; None: whichever it has, for JavaScript servers write the id last."""
        if key is None:
            return bool(self) and not (self.blocks_any or self.released)
        return key in self and key not in self.released and not self.is_blocked(key)
