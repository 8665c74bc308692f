"""Text that hides something from a person who reads it: whatever is pinned. Nothing here judges what a text says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from ..model.errors import printable
from .changes import shortened
from .description import Description, Entry
from .names import is_unseen, skeleton

_TAGS: Final = range(0xE0000, 0xE0080)
_BIDIRECTIONAL: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_JOINERS: Final = frozenset("\u200c\u200d")  # which several scripts and emoji need between letters
_ANSI: Final = re.compile("\x1b|\x9b|\x9d|\\\\(?:x1b|u001b|e|033)\\[")
_BASE64: Final = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{40,}={0,2}(?![A-Za-z0-9+/=_-])")
"""Forty characters without a break: thirty bytes, in which a sentence has place, and longer than any usual word."""
_COMMENT: Final = re.compile(r"<!--|<!\[CDATA\[")
_MOST_TOLD: Final = 20  # of one server: a person reads no more
_TEXTS: Final = frozenset(("description", "title", "default", "$comment", "examples", "const", "enum", "name"))
_DEEPEST: Final = 64


class Hidden(Struct, frozen=True):
    """Something that a text hides."""

    subject: str
    """As `tool send_mail`, printable."""
    path: str
    """The member, printable."""
    what: str
    """What is hidden there, without quoting it."""

    def line(self) -> str:
        """One line for people."""
        return f"{self.subject}: {self.path} has {self.what}" if self.path else f"{self.subject} has {self.what}"


def in_text(text: str) -> Iterator[str]:
    """What a text hides, each kind once, with the number of characters where they are counted."""
    if not text.isascii() or not text.isprintable():
        yield from _in_characters(text)
    if _ANSI.search(text):
        yield "a terminal's control sequence (ANSI)"
    if _COMMENT.search(text):
        yield "an HTML comment"
    if any(map(_is_base64, _BASE64.findall(text))):
        yield "text in base64"


def _in_characters(text: str) -> Iterator[str]:
    counts = {"tag characters (U+E0000)": 0, "bidirectional controls": 0, "invisible characters": 0}
    for at, character in enumerate(text):
        if character.isascii() and (character.isprintable() or character in "\n\r\t\x1b"):
            continue
        code = ord(character)
        if code in _TAGS:
            counts["tag characters (U+E0000)"] += 1
        elif character in _BIDIRECTIONAL:
            counts["bidirectional controls"] += 1
        elif is_unseen(character) and not _is_needed(text, at):
            counts["invisible characters"] += 1
    yield from (f"{count} {what}" for what, count in counts.items() if count)


def _is_needed(text: str, at: int) -> bool:
    """True for what writing needs: a mark or a joiner after a letter, one selector after an emoji, a lone BOM never."""
    character, before = text[at], text[at - 1] if at else " "
    if any(ord(character) in selectors for selectors in _SELECTORS):
        return unicodedata.category(before) in ("So", "Sm", "Po", "Lo", "Nd") and at + 1 == _end_of_selectors(text, at)
    if character in _JOINERS:
        return (
            not before.isascii() and at + 1 < len(text) and not text[at + 1].isascii() and not is_unseen(text[at + 1])
        )
    is_mark = unicodedata.category(character) in ("Mn", "Me") and character != "\u034f"
    return is_mark and not before.isspace() and not text[max(at - 4, 0) : at + 1].isspace() and before not in _JOINERS


def _end_of_selectors(text: str, at: int) -> int:
    while at < len(text) and any(ord(text[at]) in selectors for selectors in _SELECTORS):
        at += 1
    return at


def _is_base64(text: str) -> bool:
    """True unless it is a path, a long word, a digest, a UUID, or a name made of words."""
    letters = text.rstrip("=")
    if re.fullmatch(r"[0-9a-fA-F-]+|[a-z_-]+|[A-Z_-]+|[\w-]*(?:/[\w.-]*)*", letters) and (
        "/" in text or "_" in text or "-" in text
    ):
        return False
    kinds = sum(1 for pattern in ("[a-z]", "[A-Z]", "[0-9]") if re.search(pattern, letters))
    return kinds == 3 or (kinds == 2 and text != letters)


def in_server(description: Description, others: Mapping[str, Description] | None = None) -> tuple[Hidden, ...]:
    """What the texts of a server hide. `others` are the other servers of the lock, whose tools it must not speak of."""
    foreign = _foreign_tools(description, others or {})
    texts = [*_identity_texts(description)]
    for entry in description.entries.values():
        texts += in_entry_texts(entry)
    return tuple(_hidden(texts, foreign))[:_MOST_TOLD]


def in_entry(entry: Entry, foreign: Mapping[str, str] | None = None) -> tuple[Hidden, ...]:
    """What one entry hides. `foreign`: other servers' tools by name, with the name of their server."""
    return tuple(_hidden(in_entry_texts(entry), foreign or {}))[:_MOST_TOLD]


def in_instructions(instructions: str, foreign: Mapping[str, str] | None = None) -> tuple[Hidden, ...]:
    """What the instructions of a server hide."""
    return tuple(_hidden([("server", "instructions", instructions)], foreign or {}))


Text = tuple[str, str, str]  # the subject, the place, and the text


def _hidden(texts: Iterable[Text], foreign: Mapping[str, str]) -> Iterator[Hidden]:
    for subject, path, text in texts:
        for what in in_text(text):
            yield Hidden(subject, path, what)
        for name in _named(text, foreign):
            yield Hidden(
                subject,
                path,
                f"the name of {printable(shortened(name))}, a tool of the server {printable(foreign[name])}",
            )


def _identity_texts(description: Description) -> Iterator[Text]:
    identity = description.identity
    for path in ("name", "version", "title", "instructions"):
        yield "server", path, getattr(identity, path)


def in_entry_texts(entry: Entry) -> list[Text]:
    """All texts of an entry that a model reads: also keys, because a schema's properties are named by the server."""
    subject = f"{entry.kind.value} {printable(shortened(entry.name))}"
    return [(subject, printable(shortened(path)), text) for path, text in _texts(entry.members(), "", 0)]


def _texts(value: object, path: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if not path.endswith("icons.src"):  # an image is base64 by its nature
            yield path, value
    elif isinstance(value, dict) and depth < _DEEPEST:
        for key, member in value.items():
            inner = f"{path}.{key}" if path else key
            if any(in_text(key)):
                yield path, key
            yield from _texts(member, inner, depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for member in value:
            yield from _texts(member, path, depth + 1)


_SHORT_NAME: Final = 6  # characters: shorter names of tools without a low line or hyphen are usual words
_WORD: Final = re.compile(r"[\w-]+")


def _foreign_tools(description: Description, others: Mapping[str, Description]) -> dict[str, str]:
    own = {skeleton(name) for _, name in description.entries}
    return {name: server for name, server in tool_names(others).items() if skeleton(name) not in own}


def tool_names(servers: Mapping[str, Description]) -> dict[str, str]:
    """The tools of servers by names that are no usual words, with the server's name."""
    return {
        name: server
        for server, description in servers.items()
        for kind, name in description.entries
        if kind.value == "tool"
        and _WORD.fullmatch(name)
        and (re.search(r"[a-z][A-Z]|[_-]|\d", name) and len(name) >= _SHORT_NAME)
    }


def _named(text: str, foreign: Mapping[str, str]) -> list[str]:
    return [] if not foreign else [word for word in dict.fromkeys(_WORD.findall(text)) if word in foreign]
