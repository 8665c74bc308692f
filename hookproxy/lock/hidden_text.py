"""Text that hides something from a person who reads it, whether it is pinned or not.

How it works: the texts of a server, or of one listed entry, are searched for what a model reads and a person does not
see: invisible characters and tags, bidirectional controls, control sequences of terminals, comments of HTML, base64 of
a text, and text far behind blanks. Text that names another server's tool is reported as well. Characters that a writing
system needs, such as joiners between letters, are not reported. Nothing here judges what a text means.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from ..model.counts import counted
from .changes import shortened
from .description import Description, Entry
from .names import is_unseen, shown, skeleton

_TAGS: Final = range(0xE0000, 0xE0080)
_BIDIRECTIONAL: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_JOINERS: Final = frozenset("\u200c\u200d")  # which several scripts and emoji need between letters
_SPECIAL: Final = re.compile(r"[^\x20-\x7e\n\r\t\x1b]")
_ANSI: Final = re.compile("[\x1b\x90\x9b\x9d]")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{24,}")
"""Eighteen bytes, in which three words have place."""
_LONGEST_DECODED: Final = 4096  # characters of one such text: its beginning shows what it is
_MOST_DECODED: Final = 100  # of one text, in which there are usually none
_SHARE_OF_TEXT: Final = 0.95  # of its characters are printable; of random bytes, two in five
_FEWEST_DECODED: Final = 12  # characters: fewer may be printable by chance
_FAR: Final = re.compile(r"\s{100,}\S")  # a hundred blanks or empty lines: nobody scrolls over so many
_COMMENT: Final = re.compile(r"<!--|<!\[CDATA\[")
_MOST_REPORTED: Final = 20  # of one server: a person reads no more
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
    """What a text hides, each kind once."""
    yield from _in_characters(text)
    if _ANSI.search(text):
        yield "a terminal's control sequence (ANSI)"
    if _COMMENT.search(text):
        yield "an HTML comment"
    if any(map(_is_base64, _BASE64.findall(text)[:_MOST_DECODED])):
        yield "text in base64"
    if _FAR.search(text):
        yield "text after a hundred blanks"


def _in_characters(text: str) -> Iterator[str]:
    counts = dict.fromkeys(("tag character", "bidirectional control", "invisible character"), 0)
    for match in _SPECIAL.finditer(text):
        character = match[0]
        if ord(character) in _TAGS:
            counts["tag character"] += 1
        elif character in _BIDIRECTIONAL:
            counts["bidirectional control"] += 1
        elif is_unseen(character) and not _is_needed(text, match.start()):
            counts["invisible character"] += 1
    yield from (counted(count, what) for what, count in counts.items() if count)


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
    """True if it is the base64 of a text, wherever it begins: paths, digests and long names are that of no text."""
    plain = text[:_LONGEST_DECODED].replace("-", "+").replace("_", "/")
    return any(_is_text(base64.b64decode(piece[: len(piece) & ~3])) for piece in (plain[at:] for at in range(4)))


def _is_text(data: bytes) -> bool:
    text = data.replace(b"\0", b"").decode(errors="replace")  # without what UTF-16 has between the letters
    seen = sum((character.isprintable() or character in "\n\r\t") and character != "\ufffd" for character in text)
    return seen >= _SHARE_OF_TEXT * max(len(text), _FEWEST_DECODED)


def in_server(description: Description, others: Mapping[str, Description] | None = None) -> tuple[Hidden, ...]:
    """What the texts of a server hide. `others` are the other servers of the lock, whose tools it must not speak of."""
    foreign = _foreign_tools(description, others or {})
    texts = [*_identity_texts(description)]
    for entry in description.entries.values():
        texts += in_entry_texts(entry)
    return tuple(_hidden(texts, foreign))[:_MOST_REPORTED]


def in_entry(entry: Entry, foreign: Mapping[str, str] | None = None) -> tuple[Hidden, ...]:
    """What one entry hides. `foreign`: other servers' tools by name, with the name of their server.

    It may have the same name as one of them.
    """
    others = foreign or {}
    if entry.name in others:
        others = {name: server for name, server in others.items() if name != entry.name}
    return tuple(_hidden(in_entry_texts(entry), others))[:_MOST_REPORTED]


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
                f"the name of {shown(shortened(name))}, a tool of the server {shown(foreign[name])}",
            )


def _identity_texts(description: Description) -> Iterator[Text]:
    identity = description.identity
    for path in ("name", "version", "title", "instructions"):
        yield "server", path, getattr(identity, path)
    for path, text in _texts(msgspec.json.decode(identity.details), "details", 0):
        yield "server", shown(shortened(path)), text


def in_entry_texts(entry: Entry) -> list[Text]:
    """All texts of an entry that a model reads: also keys, because a schema's properties are named by the server."""
    subject = f"{entry.kind.value} {shown(shortened(entry.name))}"
    return [(subject, shown(shortened(path)), text) for path, text in _texts(entry.members(), "", 0)]


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
