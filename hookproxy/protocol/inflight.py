"""The agent's requests in flight whose answers no hook judges: which answers are welcome, and which are not."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from itertools import repeat
from typing import Final

from . import fast_scan

_LAPSED_LIMIT: Final = 1024  # cancelled requests that are remembered; agents cancel a few at a time


class Kind(Enum):
    """Requests by what their answers are good for."""

    OTHER = auto()
    INITIALIZE = auto()
    TOOLS_LIST = auto()
    ENDLESS = auto()  # answered only when the server ends it


KINDS: Final = {
    b'"initialize"': Kind.INITIALIZE,
    b'"tools/list"': Kind.TOOLS_LIST,
    b'"subscriptions/listen"': Kind.ENDLESS,
}


class InFlight(dict[bytes, Kind]):
    """By the key of its id, a request stays until it is answered or cancelled; then its late answer is thought of."""

    def __init__(self) -> None:
        super().__init__()
        self._doubles: dict[bytes, int] = {}  # `7` and `"7"` have one key; more than one of them is counted here
        self._lapsed: dict[bytes, None] = {}  # cancelled, not answered yet; the oldest first
        self._barred: set[bytes] = set()  # those of them whose late answer does not pass
        self.allowed: dict[bytes, bytes] = {}
        """Judged calls among them, whose answers nobody has to see: the id of each as the agent spelled it."""
        self.hook_tool_calls: set[bytes] = set()
        """Tool calls of our own that are not answered."""

    @property
    def simple(self) -> bool:
        """No two requests have the same key, and no answer is to stay away: each ends a request of the agent."""
        return not (self._doubles or self.bars)

    @property
    def bars(self) -> bool:
        """Some answer that may come is not for the agent."""
        return bool(self._barred or self.hook_tool_calls)

    @property
    def telling(self) -> bool:
        """An answer may come that tells of the session or of its tools."""
        return any(kind is Kind.INITIALIZE or kind is Kind.TOOLS_LIST for kind in self.values())

    @property
    def owed(self) -> bool:
        """An answer to the agent is still to come."""
        return any(kind is not Kind.ENDLESS for kind in self.values())

    def settle_hook_tool_call(self, key: bytes) -> bool:
        """A tool call of our own is answered; False: there is none."""
        found = key in self.hook_tool_calls
        self.hook_tool_calls.discard(key)
        return found

    def give_up(self, key: bytes) -> None:
        """Nobody waits for this errand any more; its late answer is nobody's."""
        self.hook_tool_calls.discard(key)
        self.lapse(key, late_answer_passes=False)

    def note(self, key: bytes, kind: Kind) -> None:
        """A request goes to the server."""
        if key in self:
            self._doubles[key] = self._doubles.get(key, 0) + 1
        self[key] = kind

    def allow(self, key: bytes, spelled: bytes) -> None:
        """A judged call goes to the server, and is a request like any other from now on."""
        self.note(key, Kind.OTHER)
        self.allowed[key] = spelled

    def settle(self, key: bytes) -> Kind | None:
        """An answer is there, or none will be; None: nothing in flight has this key."""
        self.allowed.pop(key, None)
        kind = self.get(key)
        more = self._doubles.pop(key, 0)
        if more > 1:
            self._doubles[key] = more - 1
        if kind is not None and not more:
            del self[key]
        return kind

    def note_all(self, keys: list[bytes]) -> bool:
        """Note many that are worth no look, if none is there already; else note nothing, and give False."""
        if len(keys) == 1:  # by far the most frequent, and twice as fast
            fits = keys[0] not in self and keys[0] not in self._lapsed
            if fits:
                self[keys[0]] = Kind.OTHER
            return fits
        fresh = dict.fromkeys(keys, Kind.OTHER)
        if len(fresh) != len(keys) or not self.keys().isdisjoint(fresh):
            return False
        if self._lapsed and not self._lapsed.keys().isdisjoint(fresh):
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
        return not keys or self._settle_each(keys if fast_scan.are_plain(keys) else [*map(key_of, keys)])

    def _settle_one(self, head: fast_scan.Head, key_of: Callable[[bytes], bytes]) -> bool:
        key = key_of(bytes(head.id))
        if head.method or self.get(key) is not Kind.OTHER:
            return False
        del self[key]
        if self.allowed:
            self.allowed.pop(key, None)
        return True

    def _settle_each(self, keys: list[bytes]) -> bool:
        kinds = [*map(self.pop, keys, repeat(None))]
        if kinds.count(Kind.OTHER) != len(keys):
            self.update((key, kind) for key, kind in zip(keys, kinds, strict=True) if kind is not None)
            return False
        if self.allowed:
            for key in keys:
                self.allowed.pop(key, None)
        return True

    def lapse(self, key: bytes, *, late_answer_passes: bool) -> None:
        """A request with this key was cancelled; that of a judged call must not pass, whatever else has the key."""
        if not late_answer_passes:
            self._barred.add(key)
        self._lapsed[key] = None
        if len(self._lapsed) > _LAPSED_LIMIT:
            passing = next((one for one in self._lapsed if one not in self._barred), None)
            self.late(next(iter(self._lapsed)) if passing is None else passing)

    def late(self, key: bytes) -> bool:
        """True if this is the late answer to a cancelled request, and passes."""
        passes = key in self._lapsed and key not in self._barred
        self._lapsed.pop(key, None)
        self._barred.discard(key)
        return passes

    def lapsed(self, key: bytes) -> bool:
        """A cancelled request may still be answered with this key."""
        return key in self._lapsed

    def barred(self, key: bytes) -> bool:
        """The answer to an errand or a cancelled judged call may come with this key, and must not pass as another's."""
        return key in self._barred or key in self.hook_tool_calls

    def welcome(self, key: bytes | None) -> bool:
        """An answer with this key passes unseen; None: whichever it has, for JavaScript servers write the id last."""
        if key is None:
            return bool(self) and not (self.bars or self.allowed)
        return key in self and key not in self.allowed and not self.barred(key)
