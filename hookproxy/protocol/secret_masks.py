"""Masks the secrets of one session in messages, JSON values and texts: a placeholder stands in the place of each.

How it works. The finder searches a message as a whole, so that a member's name says what its value is, and says where
in which string a secret stands. Two places are read besides: texts in base64, and texts of content blocks that a reader
may put together. Only the bytes of secrets are replaced, by splices; a message without one is the same object (law 2).

What must hold: members by which both sides find each other again (`id`, `method`, tokens of progress) stay as they are.
A string stays a string. Where a whole text is a handle, such as a URI or a cursor, the server gets its own text back
(`handles`): it has given it, and means it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..model.newest_entries import NewestEntries

if TYPE_CHECKING:
    from ..secrets.literals import Secret
    from ..secrets.placeholders import Placeholders
    from ..secrets.session_finder import SessionFinder

Span = raw_json.Span
Edit = tuple[Span, bytes]

_TEXTS: Final = re.compile(rb'"(text|blob|data)"[ \t\r\n]*:[ \t\r\n]*"')
"""The beginning of the text of a block, and of data in base64. Within a string, no quote stands without a backslash."""
_CONTENT: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*')
_ESCAPE: Final = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|.)", re.DOTALL)
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/\r\n]+={0,2}[\r\n]*")
_BACKSLASH: Final = ord("\\")
_SHORTEST_BASE64: Final = 16  # characters: what is shorter has no secret in it

_ENVELOPE: Final = ("id", "jsonrpc", "method")
_OF_PARAMS: Final = ("progressToken", "requestId", "progress", "total")
_HANDLES: Final = frozenset({b"uri", b"name", b"nextCursor", b"requestState", b"taskId"})
_MOST_HANDLE_BYTES: Final = 4 * 1024 * 1024  # of a session: a thousand cursors have 100 kB


class SecretMasks:
    """What masks the texts of one session."""

    def __init__(self, finder: SessionFinder, placeholders: Placeholders) -> None:
        self.finder = finder
        self.placeholders = placeholders
        self.handles: NewestEntries[bytes] = NewestEntries(_MOST_HANDLE_BYTES)
        """The server's own spelling of each handle that the agent has got masked, by what the agent has got."""
        self.on_placeholder: Callable[[str, bytes], None] | None = None
        """Called with each placeholder that is used, and its value."""

    def message(self, line: bytes) -> bytes:
        """A message of the server without its secrets; `line` itself if it has none."""
        edits = self._edits(line)
        if not edits:
            return line
        protected = _protected(line)
        edits = [edit for edit in edits if not _overlaps(edit[0], protected)]
        masked = raw_json.splice(line, edits)
        if edits:
            self._note_handles(line, edits)
        return masked if edits else line

    def json(self, raw: bytes) -> bytes:
        """A JSON value without its secrets; `raw` itself if it has none."""
        edits = self._edits(raw)
        return raw_json.splice(raw, edits) if edits else raw

    def raw_text(self, text: bytes) -> bytes:
        """A text without its secrets; `text` itself if it has none. Escapes of JSON in it hide nothing."""
        if not (edits := self._edits_of_text(text)):
            return text
        if text.lstrip()[:1] in (b"{", b"[") and _is_json(text):
            return self.json(text)  # what stands for a value knows its escapes
        return raw_json.splice(text, edits)

    def text(self, text: str) -> str:
        """As `raw_text`."""
        raw = text.encode(errors="surrogatepass")
        return text if (masked := self.raw_text(raw)) is raw else masked.decode(errors="surrogatepass")

    def known_values(self, text: str) -> str:
        """As `text`: nothing is known only from other texts."""
        return self.text(text)

    # --- what is replaced ---

    def _edits_of_text(self, text: bytes) -> list[Edit]:
        return [
            ((found.start, found.end), self._placeholder(found.rule, text[found.start : found.end]))
            for found in self.finder.find(text)
        ]

    def _placeholder(self, rule: str, value: bytes) -> bytes:
        placeholder = self.placeholders.for_value(rule, value)
        if self.on_placeholder is not None:
            self.on_placeholder(placeholder, value)
        return placeholder.encode()

    def _edits(self, raw: bytes) -> list[Edit]:
        """What is replaced in a JSON text, in order."""
        edits: list[Edit] = []
        for secret in self.finder.find_in_json(raw):
            edits += self._edits_of_secret(raw, secret)
        if matches := list(_TEXTS.finditer(raw)):
            edits += self._edits_of_texts(raw, matches, edits)
        return sorted(edits)

    def _edits_of_secret(self, raw: bytes, secret: Secret) -> Iterator[Edit]:
        """A secret in several strings is one placeholder in the first of them, and nothing in the others."""
        first = secret.parts[0]
        value = secret.value
        if not secret.is_number and len(secret.parts) == 1 and b"\\" in raw[slice(*first)]:
            value = _meant(raw, first)
        placeholder = self._placeholder(secret.rule, value)
        yield first, b'"%b"' % placeholder if secret.is_number else placeholder
        for part in secret.parts[1:]:
            yield part, b""

    def _edits_of_texts(self, raw: bytes, matches: Sequence[re.Match[bytes]], known: Sequence[Edit]) -> list[Edit]:
        """What is replaced in texts in base64, and in texts that hold a secret together."""
        edits: list[Edit] = []
        texts: list[Span] = []
        for match in matches:
            span = match.end(), _end_of_content(raw, match.end())
            if match[1] == b"text":
                texts.append(span)
            elif not _overlaps(span, [edit[0] for edit in known]) and (edit := self._edit_of_base64(raw, span)):
                edits.append(edit)
        return edits + (self._edits_of_split(raw, texts, known) if len(texts) > 1 else [])

    def _edit_of_base64(self, raw: bytes, span: Span) -> Edit | None:
        content = raw[slice(*span)]
        if b"\\" in content:
            content = content.replace(b"\\/", b"/").replace(b"\\n", b"\n").replace(b"\\r", b"\r")
        if len(content) < _SHORTEST_BASE64 or not _BASE64.fullmatch(content):
            return None
        try:
            text = base64.b64decode(content)
            text.decode()
        except (binascii.Error, UnicodeDecodeError):
            return None  # it is not a text
        masked = self.raw_text(text)
        return None if masked is text else (span, base64.b64encode(masked))

    def _edits_of_split(self, raw: bytes, spans: Sequence[Span], known: Sequence[Edit]) -> list[Edit]:
        """What is replaced of secrets that begin in one text and end in a later one."""
        contents = [raw[slice(*span)] for span in spans]
        texts = [_decoded(content) for content in contents]
        starts = [0]
        for text in texts:
            starts.append(starts[-1] + len(text))
        joined = b"".join(texts)
        edits: list[Edit] = []
        for found in self.finder.find(joined):
            first, last = bisect_right(starts, found.start) - 1, bisect_right(starts, found.end - 1) - 1
            if first == last:
                continue  # it was found where it stands
            placeholder = self._placeholder(found.rule, joined[found.start : found.end])
            for number in range(first, last + 1):
                begin = _raw_offset(contents[number], max(found.start - starts[number], 0))
                end = _raw_offset(contents[number], min(found.end - starts[number], len(texts[number])))
                span = spans[number][0] + begin, spans[number][0] + end
                if end > begin and not _overlaps(span, [edit[0] for edit in (*known, *edits)]):
                    edits.append((span, placeholder if number == first else b""))
        return edits

    def _note_handles(self, line: bytes, edits: Sequence[Edit]) -> None:
        """Note the texts of masked handles, so that the server gets them back."""
        for (start, _), _ in edits:
            opening = _opening_quote(line, start)
            if opening < 0 or _name_before(line, opening) not in _HANDLES:
                continue
            span = opening + 1, _end_of_content(line, opening + 1)
            within = [((s - span[0], e - span[0]), new) for (s, e), new in edits if span[0] <= s and e <= span[1]]
            content = line[slice(*span)]
            masked = raw_json.splice(content, within)
            self.handles.keep(_decoded(masked).decode(errors="replace"), b'"%b"' % content, len(content) + len(masked))


def _protected(line: bytes) -> list[Span]:
    """The members of a message that are not masked; none if it cannot be read for certain."""
    try:
        spans = raw_json.members(line)
        protected = [spans[name] for name in _ENVELOPE if name in spans]
        for outer, names in (("params", _OF_PARAMS), ("error", ("code",))):
            if outer in spans:
                protected += _members_at(line, spans[outer], names)
    except raw_json.AMBIGUOUS:
        return []
    return protected


def _members_at(line: bytes, span: Span, names: Sequence[str]) -> Iterator[Span]:
    raw = line[slice(*span)]
    if raw[:1] == b"{":
        inner: Mapping[str, Span] = raw_json.members(raw)
        yield from ((span[0] + inner[name][0], span[0] + inner[name][1]) for name in names if name in inner)


def _overlaps(span: Span, others: Sequence[Span]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in others)


# --- strings of JSON ---


def _end_of_content(raw: bytes, start: int) -> int:
    """Where the content of the string that begins here ends."""
    match = _CONTENT.match(raw, start)
    return match.end() if match else start


def _opening_quote(raw: bytes, at: int) -> int:
    """Where the quote is that opens the string in which this place is; -1: it is in none."""
    quote = raw.rfind(b'"', 0, at)
    while quote > 0:
        before = quote
        while before and raw[before - 1] == _BACKSLASH:
            before -= 1
        if (quote - before) % 2 == 0:
            return quote
        quote = raw.rfind(b'"', 0, before)
    return quote


def _name_before(raw: bytes, opening: int) -> bytes:
    """The name of the member whose value opens here; empty: it has none."""
    before = raw[max(opening - 200, 0) : opening].rstrip()
    if not before.endswith(b":"):
        return b""
    before = before[:-1].rstrip()
    start = before.rfind(b'"', 0, -1)
    return before[start + 1 : -1] if start >= 0 else b""


def _decoded(content: bytes) -> bytes:
    """What the content of a JSON string says."""
    if b"\\" not in content:
        return content
    try:
        return str(json.loads(b'"%b"' % content, strict=False)).encode(errors="surrogatepass")
    except ValueError:  # it is not JSON, so it is what it says
        return content


def _raw_offset(content: bytes, at: int) -> int:
    """Where the byte at this place of what a string says stands in the string's content."""
    shift = 0
    for match in _ESCAPE.finditer(content) if b"\\" in content else ():
        start = match.start() - shift
        if start >= at:
            break
        shift += len(match[0]) - len(_decoded(match[0]))
    return at + shift


def depth_of(raw: bytes, at: int) -> int:
    """In how many strings this place of a JSON text is: 1, and one more for each JSON text that such a string holds."""
    opening = _opening_quote(raw, at)
    if opening < 0:
        return 0
    content = raw[opening + 1 : _end_of_content(raw, opening + 1)]
    if b"\\" not in content and b'"' not in content:
        return 1
    text = _decoded(content)
    if text.lstrip()[:1] not in (b"{", b"[", b'"') or not _is_json(text):
        return 1
    within = len(_decoded(raw[opening + 1 : at]))
    return 1 + (depth_of(text, within) if within < len(text) else 0)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _meant(raw: bytes, span: Span) -> bytes:
    """What this part of a string says to whoever reads the string, and the JSON in it."""
    text = raw[slice(*span)]
    for _ in range(depth_of(raw, span[0])):
        text = _decoded(text)
    return text
