"""The pages of a server's lists, as far as the agent has read them: a list is compared as a whole once all are there.

An agent reads a page with the cursor of the page before it, may read one twice, and may begin anew at any time. So a
page is known by its cursor, and is never changed: what follows it begins with a copy.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..lock.description import Entry, Kind

_MOST_LISTS: Final = 4  # that are read in pages at the same time: agents read one after another
_MOST_NAMES: Final = 50_000  # on the pages of one list: many times what servers have
_MOST_PINNED: Final = 32 * 1024 * 1024  # bytes of one list that its first use pins: half of what the file may have


class Pages(Struct):
    """The pages of a list so far."""

    whole: bool = False
    """It is known from the first page on."""
    names: list[str] = []
    first: dict[tuple[Kind, str], Entry] = {}
    """The entries, if the first use of this kind pins them."""
    bytes_left: int = _MOST_PINNED

    def copy(self) -> Pages:
        """The same pages, for a next one."""
        return Pages(self.whole, [*self.names], {**self.first}, self.bytes_left)

    def note(self, name: str) -> None:
        """Note a name of the next page. A list that is too long is not known as a whole any more."""
        if len(self.names) >= _MOST_NAMES or self.bytes_left < 0:
            self.whole = False
            self.first.clear()
        else:
            self.names.append(name)

    def note_first(self, kind: Kind, came: Entry) -> None:
        """Note an entry that the first use pins."""
        self.first[kind, came.name] = came
        self.bytes_left -= len(came.text)


class ListPages:
    """The pages before each cursor that the server has given."""

    def __init__(self) -> None:
        self._by_cursor: dict[tuple[Kind, bytes], Pages] = {}

    def before(self, kind: Kind, cursor: bytes) -> Pages:
        """The pages before the one that a request with this cursor, as spelled, is for; empty: it is the first.

        Before a page whose cursor came from nowhere that is known, anything may be.
        """
        if not cursor:
            return Pages(whole=True)
        known = self._by_cursor.get((kind, _text(cursor)))
        return Pages() if known is None else known.copy()

    def keep(self, kind: Kind, cursor: bytes, pages: Pages) -> None:
        """Keep the pages before the one that the server gives for this cursor."""
        if len(self._by_cursor) >= _MOST_LISTS:
            del self._by_cursor[next(iter(self._by_cursor))]
        self._by_cursor[kind, _text(cursor)] = pages


def _text(raw: bytes) -> bytes:
    """A cursor in one spelling."""
    text = raw_json.text(raw)
    return raw if text is None else text.encode()
