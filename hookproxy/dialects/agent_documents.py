"""The documents that agents give to hooks: their members, and by which of them each agent is known.

It imports no dialect: an agent runs `hookproxy hook` at each of its calls.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ..jsonrpc import raw_json
from .index import DOCUMENTS


class Members:
    """The members of a document, each with the type that is wanted. Wrong types count as absent."""

    def __init__(self, raw: bytes) -> None:
        """Raises Unreadable, DuplicateKeys, and ValueError for what is not UTF-8: readers would see different texts."""
        try:
            raw.decode()
        except UnicodeDecodeError:
            raise ValueError("it is not UTF-8") from None
        self._raw = {name: bytes(value) for name, value in raw_json.fields(raw).items()}

    def __contains__(self, name: str) -> bool:
        return name in self._raw

    def raw(self, name: str, default: bytes = b"") -> bytes:
        """A member's JSON text."""
        return self._raw.get(name, default)

    def text(self, *names: str) -> str:
        """The first of these members that is a string; else an empty one."""
        found = (raw_json.text(self._raw[name]) for name in names if name in self._raw)
        return next((text for text in found if text), "")

    def object(self, name: str) -> Members:
        """A member that is an object; empty if it is not. Raises DuplicateKeys."""
        raw = self._raw.get(name, b"")
        return Members(raw if raw.startswith(b"{") else b"{}")

    def required(self, *names: str) -> str:
        """As `text`. Raises ValueError if there is none."""
        found = self.text(*names)
        if not found:
            raise ValueError(f"the document has no {names[0]}")
        return found


class DocumentSigns(Struct, frozen=True):
    """What the documents of one agent have, and those of other agents do not."""

    has: tuple[str, ...] = ()
    """Members of every document."""
    lacks: tuple[str, ...] = ()
    """Members of other agents' documents, which are similar otherwise."""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Members that are one of these texts; `@*` stands for all that begin with `@`."""

    def fit(self, members: Members) -> bool:
        """Whether a document is this agent's. Without any sign, none is."""
        return (
            bool(self.has or self.values)
            and all(name in members for name in self.has)
            and not any(name in members for name in self.lacks)
            and all(_is_one_of(members.text(name), texts) for name, texts in self.values.items())
        )


def _is_one_of(text: str, patterns: tuple[str, ...]) -> bool:
    return any(text.startswith(sign[:-1]) if sign.endswith("*") else text == sign for sign in patterns)


def is_of(agent: str, members: Members) -> bool:
    """Whether this agent gives such a document to its hooks."""
    return DocumentSigns(*DOCUMENTS[agent]).fit(members)


def agents_of(members: Members) -> tuple[str, ...]:
    """The agents that give such a document to their hooks, by the names of their dialects."""
    return tuple(name for name in DOCUMENTS if is_of(name, members))
