"""Masks the secrets of one session in messages, JSON values and texts: a placeholder stands in the place of each.

How it works. The finder searches a message as a whole, so that a member's name says what its value is, and says where
in which string a secret stands. Two places are read besides: texts in base64, and texts of content blocks that a reader
may put together. Only the bytes of secrets are replaced, by splices; a message without one is the same object (law 2).
Searching (`search`) changes nothing, so that another thread may do it; placeholders are chosen afterwards.

What must hold: members by which both sides find each other again (`id`, `method`, tokens of progress) stay as they are.
A string stays a string. Where a whole text is a handle, such as a URI or a cursor, the server gets its own text back
(`handles`): it has given it, and means it. All of it takes time linear in the length, however many secrets there are.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import string
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.newest_entries import NewestEntries
from ..secrets.literals import find_in_json

if TYPE_CHECKING:
    from ..secrets.literals import Finds, Secret
    from ..secrets.placeholders import Placeholders

Span = raw_json.Span
Edit = tuple[Span, bytes]

_TEXTS: Final = re.compile(rb'"(text|blob|data)"[ \t\r\n]*:[ \t\r\n]*"')
"""The beginning of the text of a block, and of data in base64. Within a string, no quote stands without a backslash."""
_STRING: Final = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_CONTENT: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_DECODER: Final = json.JSONDecoder(strict=False)
_ESCAPE: Final = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|.)", re.DOTALL)
_BASE64: Final = (string.ascii_letters + string.digits + "+/\r\n").encode()
_HEAD: Final = 4096  # characters of base64 that are read first
_BACKSLASH: Final = ord("\\")
_SHORTEST_BASE64: Final = 16  # characters: what is shorter has no secret in it
_LONGEST_WORD: Final = 16  # bytes of a text of the protocol between two parts of a secret; lines of keys have 64
_LONGEST_NAME: Final = 32  # bytes of a name of letters, such as `structuredContent`
_WITH_WORDS: Final = frozenset({b"type", b"role", b"mimeType", b"uri", b"name"})
_ROLES: Final = frozenset({b"user", b"assistant"})  # also in lists of an audience
_MOST_ALIKE: Final = 8  # secrets that begin in equal texts
_MOST_REPEATED: Final = 64  # texts of a secret that is looked for once more: a key has as many lines
_BLANKS: Final = 16  # bytes in which a colon is looked for
_STAND_IN: Final = b"{{secret:a:00000000}}"  # what is no JSON but in a string, as each placeholder
_DEEPEST: Final = 8  # strings of JSON around each other: deeper ones have 256 backslashes for one quote

_NUMBER: Final = re.compile(rb"-?[0-9][0-9.eE+-]*")
_ID: Final = re.compile(rb'".*"|' + _NUMBER.pattern, re.DOTALL)
_PROTECTED: Final[Mapping[str, Mapping[str, re.Pattern[bytes]]]] = {
    "": {
        "id": _ID,
        "jsonrpc": re.compile(rb'"2\.0"'),
        "method": re.compile(rb'"[a-zA-Z$_]{1,32}(?:\\?/[a-zA-Z_]{1,32})*"'),
    },
    "params": {"progressToken": _ID, "requestId": _ID, "progress": _NUMBER, "total": _NUMBER},
    "error": {"code": _NUMBER},
}
"""The members that are not masked, by the member that they are in, and what they must be: anything else is content."""
_HANDLES: Final = frozenset({b"uri", b"name", b"nextCursor", b"requestState", b"taskId"})
_MOST_HANDLE_BYTES: Final = 4 * 1024 * 1024  # of a session: a thousand cursors have 100 kB


class Hidden(Struct, frozen=True):
    """A part of a JSON text that is replaced."""

    span: Span
    rule: str = ""
    """What has found the secret; empty: nothing takes its place, because it goes on from another part."""
    value: bytes = b""
    quoted: bool = False
    """A number: what takes its place needs quotes."""
    data: bytes = b""
    """The part is base64 of this text, in which `within` is replaced; empty: it is not."""
    within: tuple[Hidden, ...] = ()

    def __repr__(self) -> str:
        return f"Hidden({self.span}, {self.rule!r})"


class SecretMasks:
    """What masks the texts of one session."""

    def __init__(self, finder: Finds, placeholders: Placeholders) -> None:
        self.finder = finder
        self.placeholders = placeholders
        self.handles: NewestEntries[bytes] = NewestEntries(_MOST_HANDLE_BYTES)
        """The server's own spelling of each handle that the agent has got masked, by what the agent has got."""
        self.on_placeholder: Callable[[str, bytes], None] | None = None
        """Called with each placeholder that is used, and its value."""

    def message(self, line: bytes, hidden: Sequence[Hidden] | None = None) -> bytes:
        """A message of the server without its secrets; `line` itself if it has none.

        `hidden` is what `search` has found in it; None: it is searched now.
        """
        hidden = self.search(line) if hidden is None else hidden
        if not hidden:
            return line
        protected = _Spans(_protected(line))
        edits = [self._edit(part) for part in hidden if not protected.overlap(part.span)]
        if not edits:
            return line
        self._note_handles(line, edits)
        return raw_json.splice(line, edits)

    def json(self, raw: bytes) -> bytes:
        """A JSON value without its secrets; `raw` itself if it has none."""
        hidden = self.search(raw)
        return raw_json.splice(raw, [self._edit(part) for part in hidden]) if hidden else raw

    def raw_text(self, text: bytes) -> bytes:
        """A text without its secrets; `text` itself if it has none. Escapes of JSON in it hide nothing."""
        if not (hidden := self._search_text(text)):
            return text
        if text.lstrip()[:1] in (b"{", b"[") and _is_json(text):
            return self.json(text)  # what stands for a value knows its escapes
        return raw_json.splice(text, [self._edit(part) for part in hidden])

    def text(self, text: str) -> str:
        """As `raw_text`."""
        raw = text.encode(errors="surrogatepass")
        return text if (masked := self.raw_text(raw)) is raw else masked.decode(errors="surrogatepass")

    def known_values(self, text: str) -> str:
        """As `text`: nothing is known only from other texts."""
        return self.text(text)

    def _edit(self, hidden: Hidden) -> Edit:
        if hidden.data:
            edits = [self._edit(part) for part in hidden.within]
            return hidden.span, base64.b64encode(raw_json.splice(hidden.data, edits))
        if not hidden.rule:
            return hidden.span, b""
        placeholder = self.placeholders.for_value(hidden.rule, hidden.value)
        if self.on_placeholder is not None:
            self.on_placeholder(placeholder, hidden.value)
        return hidden.span, (f'"{placeholder}"' if hidden.quoted else placeholder).encode()

    # --- what is replaced ---

    def search(self, raw: bytes) -> list[Hidden]:
        """What is to be replaced in a JSON text, in order. It changes nothing, and may run in another thread."""
        secrets = find_in_json(self.finder, raw)
        in_several = _Spans([(secret.parts[0][0], secret.parts[-1][1]) for secret in secrets if len(secret.parts) > 1])
        hidden = [
            part
            for secret in secrets
            if not (secret.is_number and in_several.overlap(secret.parts[0]))
            for part in _parts_of(raw, secret)
        ]
        if any(b"\\" in raw[slice(*secret.parts[0])] for secret in secrets):
            hidden = _as_meant(raw, hidden)
        hidden.sort(key=_span_of)
        if matches := list(_TEXTS.finditer(raw)):
            more = self._search_texts(raw, matches, _Spans([part.span for part in hidden]))
            hidden = sorted([*hidden, *more], key=_span_of) if more else hidden
        return hidden

    def _search_text(self, text: bytes) -> list[Hidden]:
        return [
            Hidden((found.start, found.end), found.rule, text[found.start : found.end])
            for found in self.finder.find(text)
        ]

    def _search_texts(self, raw: bytes, matches: Sequence[re.Match[bytes]], known: _Spans) -> list[Hidden]:
        """What is replaced in texts in base64, and in texts that hold a secret together."""
        if [match[1] for match in matches] == [b"text"]:
            return []  # it was searched with the message
        hidden: list[Hidden] = []
        texts: list[Span] = []
        contents = _Contents(raw)
        for match in matches:
            span = match.end(), contents.end(match.end())
            if match[1] == b"text":
                texts.append(span)
            elif not known.overlap(span) and (part := self._search_base64(raw, span)) is not None:
                hidden.append(part)
        return hidden + (self._search_split(raw, texts, known) if len(texts) > 1 else [])

    def _search_base64(self, raw: bytes, span: Span) -> Hidden | None:
        content = raw[slice(*span)]
        if b"\\" in content:
            content = content.replace(b"\\/", b"/").replace(b"\\n", b"\n").replace(b"\\r", b"\r")
        if len(content) < _SHORTEST_BASE64 or _begins_with_bytes(content) or not _is_base64(content):
            return None
        try:
            text = base64.b64decode(content)
        except binascii.Error:
            return None
        if b"\0" in text:
            return None
        within = self._search_text(text)
        return Hidden(span, data=text, within=tuple(within)) if within else None

    def _search_split(self, raw: bytes, spans: Sequence[Span], known: _Spans) -> list[Hidden]:
        """What is replaced of secrets that begin in one text and end in a later one."""
        contents = [raw[slice(*span)] for span in spans]
        texts = [_decoded(content) for content in contents]
        starts = [0]
        for text in texts:
            starts.append(starts[-1] + len(text))
        joined = b"".join(texts)
        hidden: list[Hidden] = []
        split: list[tuple[int, int, list[Hidden]]] = []
        for found in self.finder.find(joined):
            first, last = bisect_right(starts, found.start) - 1, bisect_right(starts, found.end - 1) - 1
            if first == last:
                continue  # it was found where it stands
            rule, parts = found.rule, list[Hidden]()
            for number in range(first, last + 1):
                begin = _raw_offset(contents[number], max(found.start - starts[number], 0))
                end = _raw_offset(contents[number], min(found.end - starts[number], len(texts[number])))
                span = spans[number][0] + begin, spans[number][0] + end
                if end > begin and not known.overlap(span):
                    parts.append(Hidden(span, rule, joined[found.start : found.end] if rule else b""))
                    rule = ""
            hidden += parts
            split.append((first, last, parts))
        return [*hidden, *_repeated(raw, spans, split, known)] if split else hidden

    def _note_handles(self, line: bytes, edits: Sequence[Edit]) -> None:
        """Note the texts of masked handles, so that the server gets them back."""
        for span, within in _by_string(line, edits):
            if _name_before(line, span[0] - 1) in _HANDLES:
                content = line[slice(*span)]
                masked = raw_json.splice(content, [((s - span[0], e - span[0]), new) for (s, e), new in within])
                shown = _decoded(masked).decode(errors="replace")
                self.handles.keep(shown, b'"%b"' % content, len(content) + len(masked))


class _Spans:
    """Places that do not overlap each other, to be asked about others."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = sorted(spans)
        self._ends = [end for _, end in self._spans]

    def overlap(self, span: Span) -> bool:
        """One of them has a byte of this one."""
        number = bisect_right(self._ends, span[0])
        return number < len(self._spans) and self._spans[number][0] < span[1]


def _begins_with_bytes(content: bytes) -> bool:
    """What is in base64 is not a text: one of any encoding but UTF-16 has no 0, and pictures and programs have many."""
    try:
        return b"\0" in binascii.a2b_base64(content[:_HEAD] + b"==")
    except binascii.Error:
        return False  # it is cut where nothing can be read


def _is_base64(content: bytes) -> bool:
    ended = content.rstrip(b"\r\n")
    signs = ended.rstrip(b"=")
    return bool(signs) and len(ended) - len(signs) <= 2 and not signs.translate(None, _BASE64)


def _span_of(hidden: Hidden) -> Span:
    return hidden.span


def _parts_of(raw: bytes, secret: Secret) -> Iterator[Hidden]:
    """A secret in several strings is one placeholder in the first of them, and nothing in the others.

    Names and words of the protocol between them, such as `"type":"text"`, are not parts of it, and neither are numbers.
    """
    first, *others = secret.parts
    if not others:
        yield Hidden(first, secret.rule, secret.value, secret.is_number)
        return
    others = [part for part in others if not _is_word(raw, part)]
    value = b"".join(_decoded(raw[slice(*part)]) for part in (first, *others))
    yield Hidden(first, secret.rule, value)
    yield from map(Hidden, others)


def _is_word(raw: bytes, part: Span) -> bool:
    """This part is a whole string, and a name, or a word of the protocol. Another short text may end a key."""
    start, end = part
    if raw[start - 1 : start] != b'"' or raw[end : end + 1] != b'"':
        return False
    if raw[end + 1 : end + 1 + _BLANKS].lstrip().startswith(b":"):
        return end - start < _LONGEST_WORD or (raw[start:end].isalpha() and end - start < _LONGEST_NAME)
    return raw[start:end] in _ROLES or (end - start < _LONGEST_WORD and _name_before(raw, start - 1) in _WITH_WORDS)


def _as_meant(raw: bytes, hidden: Sequence[Hidden]) -> list[Hidden]:
    """The same; a value in JSON within a string is what whoever reads that JSON gets.

    What counts is how the masked text reads: whoever restores it has no other. Where that is JSON only because of what
    is masked, as of `["a\\q"]`, the quote before a secret is masked with it, and the text is not JSON either.
    """
    by_span = {part.span: part for part in hidden}
    for span, edits in _by_string(raw, [(span, _STAND_IN if by_span[span].rule else b"") for span in sorted(by_span)]):
        parts = [by_span[place] for place, _ in edits]
        if any(b"\\" in raw[slice(*place)] for place, _ in edits):
            by_span |= zip((place for place, _ in edits), _meant_parts(raw, span, parts, edits), strict=True)
    return list(by_span.values())


def _meant_parts(raw: bytes, string: Span, parts: Sequence[Hidden], edits: Sequence[Edit]) -> Sequence[Hidden]:
    """As `_as_meant`, for the parts of one string, which are in order."""
    start, end = string
    masked = raw_json.splice(raw[start:end], [((first - start, last - start), new) for (first, last), new in edits])
    places: list[int] = []
    longer = -start
    for (first, last), new in edits:
        places.append(first + longer)
        longer += len(new) - (last - first)
    meant: list[Hidden] = []
    for part, depth, place in zip(parts, _depths_within(masked, places, _DEEPEST), places, strict=True):
        content = raw[slice(*part.span)]
        if depth > 1 and part.rule and b"\\" in content and part.value == _decoded(content):
            value = _meant(content, depth)
            if value is None:
                return _with_quote(raw, parts, places, masked, place)
            part = Hidden(part.span, part.rule, value, part.quoted)
        meant.append(part)
    return meant


def _with_quote(
    raw: bytes, parts: Sequence[Hidden], places: Sequence[int], masked: bytes, place: int
) -> Sequence[Hidden]:
    """The parts of one string, the first of those in the same string of JSON within as `place` with its quote."""
    text, at = _decoded(masked), len(_decoded(masked[:place]))
    opening = next(match.start() for match in _STRING.finditer(text) if match.end() > at)
    quote = _raw_offset(masked, opening)
    number = next(number for number, other in enumerate(places) if other > quote)
    start, end = parts[number].span[0] - (places[number] - quote), parts[number].span[1]
    rule = parts[number].rule
    widened = Hidden((start, end), rule, _decoded(raw[start:end]) if rule else b"")
    return [*parts[:number], widened, *parts[number + 1 :]]


def _meant(content: bytes, depth: int) -> bytes | None:
    """What the content of a string says in that many strings around each other; None: they are not JSON."""
    content = _decoded(content)
    for _ in range(depth - 1):
        try:
            content = str(json.loads(b'"%b"' % content)).encode(errors="surrogatepass")
        except ValueError:
            return None
    return content


def _protected(line: bytes) -> list[Span]:
    """The members of a message that are not masked; none if it cannot be read for certain."""
    try:
        spans = raw_json.members(line)
        protected = list(_members_at(line, spans, _PROTECTED[""]))
        for outer in ("params", "error"):
            if outer in spans and line[spans[outer][0] : spans[outer][0] + 1] == b"{":
                start, end = spans[outer]
                inner = raw_json.members(line[start:end])
                moved = {name: (start + first, start + last) for name, (first, last) in inner.items()}
                protected += _members_at(line, moved, _PROTECTED[outer])
    except raw_json.AMBIGUOUS:
        return []
    return protected


def _members_at(line: bytes, spans: Mapping[str, Span], known: Mapping[str, re.Pattern[bytes]]) -> Iterator[Span]:
    """The spans of the members that are what they must be."""
    for name, pattern in known.items():
        if name in spans and pattern.fullmatch(line, *spans[name]):
            yield spans[name]


def _repeated(
    raw: bytes, spans: Sequence[Span], split: Sequence[tuple[int, int, list[Hidden]]], known: _Spans
) -> Iterator[Hidden]:
    """The same parts of texts where these stand once more one after another, as in a list in structured output.

    `split` says of each secret in which of the texts at `spans` it begins and ends, and what of them is hidden.
    """
    from ..secrets.literals import strings  # for sessions with secrets only

    by_beginning: dict[bytes, list[tuple[int, int, list[Hidden]]]] = {}
    for one in split:
        if one[1] - one[0] >= _MOST_REPEATED:
            continue
        alike = by_beginning.setdefault(raw[slice(*spans[one[0]])], [])
        if len(alike) < _MOST_ALIKE:
            alike.append(one)
    texts = frozenset(spans)
    others = [span for span in strings(raw) if span not in texts]
    taken = 0
    for at, span in enumerate(others):
        for first, last, parts in by_beginning.get(raw[slice(*span)], ()):
            places = others[at : at + 1 + last - first]
            own = spans[first : last + 1]
            pairs = zip(places, own, strict=False)  # fewer places: the last strings of the message
            same = len(places) == len(own) and all(raw[slice(*place)] == raw[slice(*text)] for place, text in pairs)
            for part in [_moved(part, own, places) for part in parts] if same else ():
                if part.span[0] >= taken and not known.overlap(part.span):
                    taken = part.span[1]
                    yield part


def _moved(part: Hidden, texts: Sequence[Span], places: Sequence[Span]) -> Hidden:
    """A hidden part of one of these texts, in the same text at another place."""
    number = next(number for number, (_, end) in enumerate(texts) if part.span[0] < end)
    by = places[number][0] - texts[number][0]
    return Hidden((part.span[0] + by, part.span[1] + by), part.rule, part.value)


# --- strings of JSON ---


def _by_string(raw: bytes, edits: Sequence[Edit]) -> Iterator[tuple[Span, list[Edit]]]:
    """The contents of the strings in which something is replaced, each with that; `edits` are in order."""
    span, within = (0, 0), list[Edit]()
    contents = _Contents(raw)
    for edit in edits:
        (start, _), _ = edit
        if start < span[1]:
            within.append(edit)
            continue
        if within:
            yield span, within
        opening, within = _opening_quote(raw, start, span[1]), []
        if opening >= 0 and (end := contents.end(opening + 1)) > start:  # else it is a number
            span, within = (opening + 1, end), [edit]
    if within:
        yield span, within


class _Contents:
    """Where the contents of strings end in a text. The decoder of JSON says so in a fifth of the pattern's time."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._chars = raw.decode("latin-1")  # a character for each byte
        self._is_json = True

    def end(self, start: int) -> int:
        """Where the content of the string that begins here ends."""
        if self._is_json:
            try:
                return _DECODER.raw_decode(self._chars, start - 1)[1] - 1
            except ValueError:
                self._is_json = False  # the pattern from now on: to make each error takes a time as long as the text
        match = _CONTENT.match(self._raw, start)
        return match.end() if match else start


def _opening_quote(raw: bytes, at: int, least: int) -> int:
    """Where the last quote before this place is that no backslash escapes, but not before `least`; -1: nowhere."""
    quote = raw.rfind(b'"', least, at)
    while quote >= least:
        before = quote
        while before > least and raw[before - 1] == _BACKSLASH:
            before -= 1
        if (quote - before) % 2 == 0:
            return quote
        quote = raw.rfind(b'"', least, before)
    return -1


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


def depths_of(raw: bytes, places: Sequence[int], deepest: int = _DEEPEST) -> list[int]:
    """In how many strings each of these places of a JSON text is: 0, 1, or more if a string holds JSON with strings.

    The places are in order.
    """
    depths: list[int] = []
    for match in _STRING.finditer(raw) if places else ():
        start, end = match.span(1)
        inside: list[int] = []
        while len(depths) + len(inside) < len(places) and (at := places[len(depths) + len(inside)]) < end:
            if at < start:
                depths.append(0)  # nothing is inside yet: the places are in order
            else:
                inside.append(at - start)
        if inside:
            depths += _depths_within(match[1], inside, deepest)
        if len(depths) == len(places):
            break
    return depths + [0] * (len(places) - len(depths))


def _depths_within(content: bytes, places: Sequence[int], deepest: int) -> list[int]:
    """As `depths_of`, for places in the content of a string."""
    text = _decoded(content)
    if deepest <= 1 or text.lstrip()[:1] not in (b"{", b"[", b'"') or not _is_json(text):
        return [1] * len(places)
    decoded: list[int] = []
    before = at = 0
    for place in places:  # each part is decoded once
        at += len(_decoded(content[before:place]))
        decoded.append(at)
        before = place
    return [1 + depth for depth in depths_of(text, decoded, deepest - 1)]


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
