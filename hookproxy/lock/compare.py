"""Compares what a server says with what is pinned of it: one entry, one page of a list, or all of it.

An entry is unchanged if its canonical text is the pinned one: nothing else is read of it then. Only of one that differs
is found out what differs. A page knows the names of the pages before it (`Names`), so that a second tool which readers
might take for the first is reported wherever it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec
import msgspec.structs
from msgspec import Struct

from ..jsonrpc.raw_json import AMBIGUOUS
from .changes import Change, What, member_changes
from .description import Description, Entry, Identity, Kind, canonical, entry, is_same, names_in
from .names import fold, is_unseen, skeleton

_SPELLINGS: Final = 2  # per entry: a server spells it in one way, and in another one after an update of its library


class Compared(Struct, frozen=True):
    """One listed entry, and what differs; no changes: it is as it was pinned."""

    name: str
    """Its name, or one that is pinned if it may have several; empty: it has none that can be read."""
    changes: tuple[Change, ...]


def unreadable(kind: Kind, error: ValueError, name: str = "") -> Compared:
    """An entry that cannot be read; `name` is one that it may have."""
    return Compared(name, (Change(What.UNREADABLE, kind.value, name, after=str(error)),))


class Names:
    """The names in a list so far, over all of its pages. A list that is read anew has new ones."""

    def __init__(self) -> None:
        self._by_fold: dict[str, str] = {}

    def note(self, name: str) -> str | None:
        """Note a name. Returns the earlier one that readers take for the same; None: there is none."""
        folded = fold(name)
        first = self._by_fold.get(folded)
        if first is None:
            self._by_fold[folded] = name
        return first


class Pinned:
    """What is pinned of one server."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self._spellings: dict[Kind, dict[bytes, Compared]] = {
            kind: {} for kind in Kind
        }  # of pinned entries as they came
        self._entries: dict[Kind, dict[str, Entry]] = {kind: {} for kind in Kind}
        self._keys = {kind: kind.key for kind in Kind}
        for (kind, name), pinned in description.entries.items():
            self._entries[kind][name] = pinned
            _ = pinned.quotes  # counted now, so that no listing waits for it

    def has(self, kind: Kind, name: str) -> bool:
        """True if something of this name is pinned: before any listing, it may be called."""
        return name in self._entries[kind]

    def compare_page(
        self, kind: Kind, page: Iterable[bytes | msgspec.Raw], names: Names | None = None
    ) -> list[Compared]:
        """Compare the entries of a page, in its order. `names` are those of the pages before it."""
        names = Names() if names is None else names
        return [self.compare_entry(kind, raw, names) for raw in page]

    def compare_entry(self, kind: Kind, raw: bytes | msgspec.Raw, names: Names) -> Compared:
        """Compare one entry of a list. `names` are those before it."""
        data = bytes(raw)
        unchanged = self._spellings[kind].get(data) or self._unchanged(kind, data)
        if unchanged is not None:
            first = names.note(unchanged.name)
            # if that is another name, it is the other one that is pinned so, too, or is new
            return unchanged if first != unchanged.name else Compared(first, (self._twice(kind, first, first),))
        try:
            return self._compare_read(entry(kind, data), names)
        except AMBIGUOUS as error:
            known = (name for name in names_in(kind, data) if self.has(kind, name))
            return unreadable(kind, error, next(known, ""))

    def _unchanged(self, kind: Kind, data: bytes) -> Compared | None:
        """What is said of a pinned entry, which came in this spelling for the first time; None: it differs."""
        pinned = is_same(self._entries[kind], self._keys[kind], data)
        if pinned is None:
            return None
        spellings, unchanged = self._spellings[kind], Compared(pinned.name, ())
        if len(spellings) >= _SPELLINGS * len(self._entries[kind]):
            spellings.clear()
        spellings[data] = unchanged
        return unchanged

    def _compare_read(self, came: Entry, names: Names) -> Compared:
        """As `compare_entry` for an entry that was not recognised at once, such as one with many escapes."""
        kind, first = came.kind, names.note(came.name)
        pinned = self._entries[kind].get(came.name)
        if pinned is not None and pinned.text == came.text and first != came.name:
            return Compared(came.name, ())
        twice = () if first is None else (self._twice(kind, came.name, first),)
        return Compared(came.name, (*twice, *self._changes(came)))

    @staticmethod
    def _twice(kind: Kind, name: str, first: str) -> Change:
        return Change(What.TWICE, kind.value, name, like=first)

    def compare_identity(self, came: Identity) -> tuple[Change, ...]:
        """Compare a server's own name, version, title, capabilities and instructions."""
        return tuple(_identity_changes(self.description.identity, came))

    def compare(self, came: Description) -> tuple[Change, ...]:
        """Compare all that a server says, and what it says no longer."""
        changes = [*self.compare_identity(came.identity)]
        for kind in Kind:
            names = Names()
            texts = [item.text for (its_kind, _), item in came.entries.items() if its_kind is kind]
            changes += [change for compared in self.compare_page(kind, texts, names) for change in compared.changes]
        return (*changes, *self.removed(came.entries))

    def removed(self, listed: Iterable[tuple[Kind, str]], kinds: Sequence[Kind] = tuple(Kind)) -> list[Change]:
        """What is pinned of these kinds, and not in complete lists of them."""
        there = set(listed)
        return [
            Change(What.REMOVED, kind.value, name)
            for kind, name in self.description.entries
            if kind in kinds and (kind, name) not in there
        ]

    def _changes(self, came: Entry) -> Iterator[Change]:
        pinned = self.description.entries.get((came.kind, came.name))
        if pinned is not None:
            yield from member_changes(came.kind.value, came.name, pinned.members(), came.members())
            return
        word, name = came.kind.value, came.name
        if same_body := self._by_body.get((came.kind, _body(came))):
            yield Change(What.RENAMED, word, name, like=same_body)
        if like := self._by_skeleton.get((came.kind, skeleton(name))):
            yield Change(What.LOOK_ALIKE, word, name, like=like)
        if any(map(is_unseen, name)):
            yield Change(What.UNSEEN, word, name)
        yield Change(What.ADDED, word, name, after=came.text.decode())

    @cached_property
    def _by_body(self) -> Mapping[tuple[Kind, bytes], str]:
        return {(pinned.kind, _body(pinned)): pinned.name for pinned in self.description.entries.values()}

    @cached_property
    def _by_skeleton(self) -> Mapping[tuple[Kind, str], str]:
        return {(pinned.kind, skeleton(pinned.name)): pinned.name for pinned in self.description.entries.values()}


def compare(pinned: Description, came: Description) -> tuple[Change, ...]:
    """All differences between what is pinned of a server and what it says now."""
    return Pinned(pinned).compare(came)


IDENTITY: Final = ("name", "version", "title", "instructions", "details", "capabilities")
"""What is pinned of a server beside its lists."""


OF_SERVER: Final = "server"
WORDS: Final = {"tool": Kind.TOOL, "prompt": Kind.PROMPT, "template": Kind.TEMPLATE}
"""What may stand before a name and a colon, where a name alone would be another thing."""


def is_named(key: tuple[Kind, str], name: str) -> bool:
    """True if `name` says this entry: `KIND:NAME`, or its name alone, unless that is a member of the server."""
    word, colon, rest = name.partition(":")
    if colon and word in WORDS:
        return key == (WORDS[word], rest)
    return name not in IDENTITY and not (colon and word == OF_SERVER) and key[1] == name


def accept(pinned: Description, came: Description, names: Collection[str]) -> Description:
    """What is pinned, with what came instead for these tools, prompts, templates and members of the server.

    `names` are as for `is_named`. An entry of this name that came no longer is left out.
    """
    of_server = {name.removeprefix(f"{OF_SERVER}:") for name in names}
    members = {member: getattr(came.identity, member) for member in IDENTITY if member in of_server}
    kept = {key: item for key, item in pinned.entries.items() if not any(is_named(key, name) for name in names)}
    new = {key: item for key, item in came.entries.items() if any(is_named(key, name) for name in names)}
    return Description(msgspec.structs.replace(pinned.identity, **members), {**kept, **new})


def _body(item: Entry) -> bytes:
    """The entry without its name."""
    return canonical(msgspec.json.encode({key: value for key, value in item.members().items() if key != item.kind.key}))


def _identity_changes(before: Identity, after: Identity) -> Iterator[Change]:
    for member in ("name", "version", "title", "instructions"):
        old, new = getattr(before, member), getattr(after, member)
        if old != new:
            what = What.ADDED if not old else What.REMOVED if not new else What.CHANGED
            yield Change(what, "server", "", member, before=old, after=new)
    old_details, new_details = bytes(before.details), bytes(after.details)
    if old_details != new_details:
        what = What.ADDED if old_details == b"{}" else What.REMOVED if new_details == b"{}" else What.CHANGED
        yield Change(what, "server", "", "details", before=old_details.decode(), after=new_details.decode())
    old_capabilities, new_capabilities = bytes(before.capabilities), bytes(after.capabilities)
    if old_capabilities != new_capabilities:
        texts = old_capabilities.decode(), new_capabilities.decode()
        yield Change(What.CHANGED, "server", "", "capabilities", before=texts[0], after=texts[1])
