"""Masks what looks like a secret in JSON values and in texts: `[masked: ID]` stands in its place; ID names the rule.

How it works. A `Masking` is for the texts of one record: what it has masked in one of them is removed from the others
as well. A JSON value is decoded, so that no escape hides anything; what its names say is secret is masked as a whole,
each other text is searched by the rules of `detectors`, and a text that is JSON itself is read as JSON. A value in
which nothing is masked stays as it is spelled. All of it takes time linear in the length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from ..jsonrpc import normalize, raw_json
from .detectors import PROGRAM, PROGRAM_NAME, Rule, detectors, is_secret_name

NAME_RULE: Final = "name"
"""The id of what is masked because of the name of its member."""

UNREADABLE: Final = "[masked: unreadable]"
"""What stands for JSON that cannot be read."""

_GUESSABLE: Final = 16  # characters: a password of fewer can be found if its digest is known; tokens have more
_SHORTEST: Final = 6  # characters of a secret that is removed wherever it occurs: shorter ones are parts of words
_MOST_VALUES: Final = 100  # secrets that are looked for in other texts: each costs a search
_DEEPEST: Final = 4  # JSON in a text of JSON in a text …
_LONG: Final = 20  # characters: shorter names of members are searched for no token, and shorter words are no Base64
_SHORTEST_SEARCHED: Final = 4  # characters: nothing shorter has a name and a value
_PATH_MEMBERS: Final = frozenset({"path", "file_path", "filepath", "filename", "file"})
_NAME_MEMBERS: Final = _PATH_MEMBERS | frozenset(
    {"name", "key", "header", "field", "variable", "param", "k", "env", "parameterkey"}
    | {"selector", "locator", "element", "label", "placeholder"}
)
_FIELD: Final = re.compile(r"[ _-](?:field|input|(?:text ?)?box)$", re.IGNORECASE)  # "Password field" is a password's
_VALUE_MEMBERS: Final = frozenset(
    {"value", "val", "v", "content", "text", "file_text", "default", "stringvalue", "parametervalue"}
)
_OF_SECRETS: Final = frozenset({"data", "stringData"})  # members of a Secret of Kubernetes: each value is one
_SCHEMA: Final = frozenset(
    {"$ref", "type", "title", "description", "format", "pattern", "minLength", "maxLength"}
    | {"writeOnly", "readOnly", "nullable", "deprecated"}
)
"""What a JSON Schema says of a text. Its `default`, `const` and `examples` may be secrets."""
_LONGEST_OPTION: Final = 60  # characters before the word of an option's name that says what it is
_USER_OPTIONS: Final = frozenset({"-u", "-U", "--user", "--proxy-user"})  # curl's
_ACTIVE: Final = re.compile(r"[\s;|&<>`$(){}\"'\\]")
"""What can make a shell or another interpreter do something, or hide that it does."""

_REFERENCE: Final = re.compile(r"\$\{\w+\}")

_WORD: Final = re.compile(r"[\w+=!@#%^*~-]+")
_BASE64: Final = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])[A-Za-z0-9+/]+={0,2}")
_PLACEHOLDERS: Final = "{{secret:"  # what those of `[secrets]` begin with: they hide already what they stand for
_HOLDERS: Final = (dict, list)
_PROGRAM_END: Final = re.compile(rb"[;|&]|(?<!\\)\n|\Z")  # a backslash goes on in the next line


def mark(rule: str) -> str:
    """What stands in the place of a secret that this rule has found."""
    return f"[masked: {rule}]"


class _Search(NamedTuple):
    """What is looked for in a JSON value: the whole of it was searched already."""

    keywords: bool
    """One of the texts may have one."""
    programs: bool
    elsewhere: Sequence[int] = ()
    """The numbers of the rules that need no keyword in the text itself."""
    names: Collection[str] = ()
    """The names of members that say that the value is a secret."""
    names_of_several: Collection[str] = ()
    """Those that say it of all values in a list or an object."""


_ALL: Final = _Search(keywords=True, programs=True)
"""For a text that was not searched."""


class Masking:
    """Masks the secrets in the texts of one record, and knows what it has masked.

    It is long because texts hold texts: JSON in a string, a command line in JSON, an address in a command line. Each of
    its functions may meet each of the others, and all collect what was masked.
    """

    def __init__(self, *, careful: bool = False) -> None:
        """With `careful`, a value stays visible if an interpreter could do something with it: a person decides."""
        self.rules: set[str] = set()
        """The ids of the rules that have masked something."""
        self.guessable = False
        """Something was masked that whoever knows a digest of the text could find by trying."""
        self._values: set[str] = set()
        self._careful = careful
        self._search = _ALL
        self._has_number = False
        self._detectors = detectors()

    # --- JSON ---

    def json(self, raw: bytes) -> bytes:
        """The JSON value without its secrets; `raw` itself if it has none. A value that cannot be read is masked.

        It is normalised: in a text with needless escapes, words are not found.
        """
        return self._document(raw, 0)

    def _document(self, raw: bytes, depth: int) -> bytes:
        try:
            value = _decoded(raw)
            search = self._search_of(raw, value)
            if search is None:
                return raw
            outer, self._search = self._search, search
            try:
                masked = self._value(value, depth)
                if masked is value and not self._values:
                    return raw
                if self._has_number and not _is_as_spelled(
                    value, raw
                ):  # once more, with the numbers as they are spelled
                    masked = self._value(normalize.decode(raw), depth)
            finally:
                self._search = outer
            return self.with_known(raw_json.encode(masked))
        except (ValueError, RecursionError, UnicodeError):
            self.rules.add("unreadable")
            return raw_json.encode(UNREADABLE)

    def may_find(self, raw: bytes) -> bool:
        """False if there is nothing to mask in the texts of a JSON value, whatever the names of its members are.

        This takes as long as for one text; each of the texts would be searched otherwise.
        """
        has_json = b'\\"' in raw  # in one of the texts: there, names count
        return bool(self._values) or has_json or self._search_of(raw, None) is not None

    def with_known(self, raw: bytes) -> bytes:
        """A JSON value, masked before, without the secrets that were found in other texts since then."""
        if not any(raw_json.encode(secret)[1:-1] in raw for secret in self._values):
            return raw
        return raw_json.encode(self._without_values(normalize.decode(raw)))

    def _search_of(self, raw: bytes, value: object) -> _Search | None:
        """What may be found in a JSON value; None: nothing."""
        found = self._detectors
        places = found.places(raw.lower())
        programs = bool(places.pop(PROGRAM, ())) and found.program_options.search(raw) is not None
        nested = b"\\" in raw and b"\\\\u" in raw  # one character is found at once, three take a microsecond
        names, of_several = _secret_names(value)
        if not (places or programs or nested or names or of_several):
            return None
        elsewhere = [number for number in places if found.rules[number].elsewhere]
        return _Search(bool(places), programs, elsewhere, names, of_several)

    def _value(self, value: object, depth: int, program: str = "") -> object:
        """The value without secrets; the same object if it has none."""
        if isinstance(value, str):
            return self._string(value, depth)
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, list):
            return self._list(value, depth, program)
        self._has_number = self._has_number or type(value) in (int, float)
        return value

    def _object(self, value: dict[str, object], depth: int) -> object:
        result: dict[str, object] = {}
        changed, search = False, self._search
        secret_value, secret_word = _named_by_others(value)
        kubernetes = value.get("kind") == "Secret"
        program = self._program_in(value.values()) if search.programs else ""
        for key, item in value.items():
            if kubernetes and key in _OF_SECRETS and isinstance(item, dict):
                masked: object = {name: self._secret(secret) for name, secret in item.items()}
            elif (key.casefold() in _VALUE_MEMBERS and (secret_value or (secret_word and _is_word(item)))) or (
                key in (search.names_of_several if isinstance(item, _HOLDERS) else search.names)
                and not _is_schema(item)
            ):
                masked = self._secret(item)
            else:
                masked = self._value(item, depth, program)
            name = _unused(self._plain(key), result) if len(key) >= _LONG else key
            changed = changed or masked is not item or name is not key
            result[name] = masked
        return result if changed else value

    def _list(self, value: list[object], depth: int, program: str) -> object:
        """Also options and their values that are items of their own, and pairs of a name and a value."""
        result: list[object] = []
        changed, before = False, ""
        program = (self._program_in(value) if self._search.programs else "") or program
        for item in value:
            if isinstance(item, str):
                masked: object = self._item(item, before, depth, program, pair=len(value) == 2 and bool(result))
            else:
                masked = self._value(item, depth)
            changed = changed or masked is not item
            result.append(masked)
            before = item if isinstance(item, str) else ""
        return result if changed else value

    def _item(self, item: str, before: str, depth: int, program: str, *, pair: bool) -> object:
        """An item that follows another one: `--token`, `Authorization`, or `-u`."""
        is_name = before.startswith("-") and "=" not in before and not item.startswith("-")
        if (is_name or pair or before.endswith(":")) and before and is_secret_name(before.strip("-: ")):
            return self._secret(item)
        if before in _USER_OPTIONS and ":" in item and "//" not in item:
            user, _, secret = item.partition(":")
            return f"{user}:{self._secret(secret)}"
        if program and (begin := self._password_in(item, before, program)) >= 0:
            raw = item.encode(errors="surrogatepass")
            return raw[:begin].decode(errors="replace") + str(self._secret(raw[begin:].decode(errors="replace")))
        return self._string(item, depth)

    def _password_in(self, item: str, before: str, program: str) -> int:
        """Where the password of a program begins in one of its words, in bytes; less than 0: there is none."""
        line = f"{program} {before} {item}".encode(errors="surrogatepass")
        begins = [_span(match)[0] for match in self._detectors.programs[program.encode()].options.finditer(line)]
        return begins[-1] - (len(line) - len(item.encode(errors="surrogatepass"))) if begins else -1

    def _program_in(self, values: Collection[object]) -> str:
        """The program among some words whose options have passwords; empty: there is none."""
        for word in values:
            if isinstance(word, str) and len(word) < 200:
                name = word.rpartition("/")[2].removesuffix(".exe")
                known = self._detectors.programs.get(name.encode(errors="replace"))
                if known is not None and (not known.only_with or known.only_with.decode() in values):
                    return name
        return ""

    def _secret(self, value: object) -> object:
        """What stands for a value that its name calls a secret; nothing, yes and no, and references are none."""
        if value is None or isinstance(value, bool) or value in ("", [], {}):
            return value
        if isinstance(value, str):
            if value.startswith(("[masked: ", "[redacted]")) or _REFERENCE.fullmatch(value):
                return value
            if parts := _around_placeholders(value):
                return "".join(piece if is_one else str(self._secret(piece)) for piece, is_one in parts)
            if self._careful and _ACTIVE.search(value):
                return self._string(value, 0)
            self._note(NAME_RULE, value, guessable=True)
        elif self._careful and not isinstance(value, int | float | msgspec.Raw):
            return self._value(value, 0)
        else:
            self._collect(value)
        return mark(NAME_RULE)

    def _collect(self, value: object) -> None:
        if isinstance(value, str):
            self._note(NAME_RULE, value, guessable=True)
        elif isinstance(value, dict):
            for item in value.values():
                self._collect(item)
        elif isinstance(value, list):
            for item in value:
                self._collect(item)
        elif value is not None and not isinstance(value, bool):
            self._note(
                NAME_RULE, bytes(value).decode() if isinstance(value, msgspec.Raw) else str(value), guessable=True
            )

    def _note(self, rule: str, secret: str, *, guessable: bool) -> None:
        self.rules.add(rule)
        if guessable and len(secret) < _GUESSABLE:
            self.guessable = True
        if len(secret) >= _SHORTEST and len(self._values) < _MOST_VALUES and (not guessable or _is_plain(secret)):
            self._values.add(secret)

    def _without_values(self, value: object) -> object:
        """The value without the secrets that were found elsewhere in it."""
        if not self._values:
            return value
        if isinstance(value, str):
            return self.known_values(value)
        if isinstance(value, list):
            return [self._without_values(item) for item in value]
        if isinstance(value, dict):
            result: dict[str, object] = {}
            for key, item in value.items():
                name = self.known_values(key) if len(key) >= _LONG else key
                result[_unused(name, result)] = self._without_values(item)
            return result
        return value

    def _string(self, text: str, depth: int) -> str:
        if len(text) < _SHORTEST_SEARCHED:
            return text
        if depth < _DEEPEST and text[0] in '{[" \n\t' and text.lstrip()[:1] in ("{", "[", '"'):
            stripped = text.strip()
            if stripped[-1] in ("}", "]", '"'):
                try:
                    normal = normalize.normalize(stripped.encode())
                except (ValueError, RecursionError):
                    return self._plain(text)
                masked = self._document(normal, depth + 1)
                return self.known_values(text) if masked == normal else masked.decode()
        return self._plain(text)

    # --- texts ---

    def known_values(self, text: str) -> str:
        """The text without the secrets that were found in other texts of the record, and otherwise unchanged."""
        for secret in sorted(self._values, key=len, reverse=True) if self._values else ():
            if secret in text:
                text = text.replace(secret, mark(NAME_RULE))
        return text

    def text(self, text: str) -> str:
        """The text without its secrets, also if it is JSON; the same object if it has none."""
        return self._string(text, 0)

    def _plain(self, text: str) -> str:
        search, raw = self._search, text.encode(errors="surrogatepass")
        low = raw.lower()
        places = self._detectors.places(low) if search.keywords or search.programs else {}
        if not (places or search.elsewhere):
            return self.known_values(text) if self._values else text
        if parts := _around_placeholders(text):
            return "".join(piece if is_one else self._plain(piece) for piece, is_one in parts)
        masked = self._by_rules(raw, low, places)
        if masked is not raw:
            text = masked.decode(errors="surrogatepass")
        return self.known_values(text) if self._values else text

    def _by_rules(self, raw: bytes, low: bytes, places: dict[int, list[int]]) -> bytes:
        found, programs = self._detectors, places.pop(PROGRAM, ())
        for number in sorted({*places, *self._search.elsewhere}):
            rule = found.rules[number]
            if number not in places and not rule.elsewhere:
                continue  # its keywords were in what is masked
            if (changed := self._by_rule(rule, places.get(number, ()), raw, low)) is not raw:
                raw, low = changed, changed.lower()
                places = found.places(low)
                programs = places.pop(PROGRAM, ())
        if programs and self._search.programs and found.program_options.search(raw):
            raw = self._without_program_passwords(raw, programs)
        return raw

    def _by_rule(self, rule: Rule, places: Sequence[int], raw: bytes, low: bytes) -> bytes:
        if rule.needs and rule.needs not in raw:
            return raw
        if rule.anchored:
            return self._anchored(rule, places, raw)
        if rule.begins:
            return self._anchored(rule, _places(rule.begins, low), raw)
        return rule.regex.sub(self._replacing(rule.id, guessable=rule.guessable), raw)

    def _anchored(self, rule: Rule, places: Sequence[int], raw: bytes) -> bytes:
        """Try the pattern at these places, from the front; what was masked is not looked at again."""
        parts: list[bytes] = []
        done = 0
        for at in sorted(places):
            if at < done:
                continue
            match = rule.regex.match(raw, at)
            if match is None and rule.option is not None and _in_option(raw, at):
                match = rule.option.match(raw, at)
            if match is not None:
                begin, end = _span(match)
                masked = self._replaced(rule.id, raw[begin:end], guessable=rule.guessable)
                parts += [raw[done:begin], masked]
                done = end
        return b"".join([*parts, raw[done:]]) if parts else raw

    def _without_program_passwords(self, raw: bytes, places: Sequence[int]) -> bytes:
        found = self._detectors
        parts: list[bytes] = []
        done = searched = 0
        for at in sorted(places):
            match = PROGRAM_NAME.match(raw, at) if at >= searched else None
            program = found.programs.get(match[1]) if match else None
            if match is None or program is None:
                continue
            end_match = _PROGRAM_END.search(raw, match.end())
            searched = end_match.start() if end_match else len(raw)
            if program.only_with and program.only_with not in raw[match.end() : searched]:
                continue
            for option in program.options.finditer(raw, match.end(), searched):
                begin, end = _span(option)
                parts += [raw[done:begin], self._replaced("password", raw[begin:end], guessable=True)]
                done = end
        return b"".join([*parts, raw[done:]]) if parts else raw

    def _replacing(self, rule: str, *, guessable: bool) -> Callable[[re.Match[bytes]], bytes]:
        def replacement(match: re.Match[bytes]) -> bytes:
            begin, end = _span(match)
            start, whole = match.start(), match[0]
            masked = self._replaced(rule, whole[begin - start : end - start], guessable=guessable)
            return whole[: begin - start] + masked + whole[end - start :]

        return replacement

    def _replaced(self, rule: str, secret: bytes, *, guessable: bool) -> bytes:
        text = secret.decode(errors="replace")
        if text.startswith("[masked: ") or (self._careful and _ACTIVE.search(text)):
            return secret
        self._note(rule, text, guessable=guessable)
        return mark(rule).encode()


def _places(words: Sequence[bytes], low: bytes) -> list[int]:
    """Where the words stand in a text in small letters."""
    places = []
    for word in words:
        at = low.find(word)
        while at >= 0:
            places.append(at)
            at = low.find(word, at + len(word))
    return places


def _span(match: re.Match[bytes]) -> tuple[int, int]:
    """Where the secret is: the last group that takes part, or the whole match."""
    return match.span(match.lastindex or 0)


def _decoded(raw: bytes) -> object:
    """The value; with numbers as they are spelled only if there is one that nothing else can express."""
    try:
        value: object = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        value = normalize.decode(raw)
    return value


def _unused(name: str, members: Collection[str]) -> str:
    """A name for one more member: if both names were secrets, both members stay."""
    while name in members:
        name += "'"
    return name


def _is_as_spelled(value: object, raw: bytes) -> bool:
    """True if encoding the value again gives the same text, so that all its numbers are spelled as they are encoded."""
    try:
        return raw_json.encode(value) == raw
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _is_plain(secret: str) -> bool:
    """True for one word that names no file, host or command: whoever calls could hide these by calling them secret."""
    return bool(_WORD.fullmatch(secret) or (len(secret) >= _LONG and _BASE64.fullmatch(secret)))


def _secret_names(value: object) -> tuple[Collection[str], Collection[str]]:
    """The names of members anywhere in the value that say that it is a secret: of one, and of several."""
    names: set[str] = set()
    of_several: set[str] = set()
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            names.update(value)
            for name, item in value.items():
                if type(item) in _HOLDERS:
                    of_several.add(name)
                    todo.append(item)
        elif isinstance(value, list):
            todo += [item for item in value if type(item) in _HOLDERS]
    several = {name for name in of_several if is_secret_name(name, several=True)} if of_several else of_several
    return {name for name in names if is_secret_name(name)}, several


def _is_word(value: object) -> bool:
    return isinstance(value, str) and _is_plain(value.strip())


def _named_by_others(value: dict[str, object]) -> tuple[bool, bool]:
    """Whether a member says that the value beside it is a secret; and whether it is the path of a file with one.

    Such a file has one word: a script that is called so is no secret.
    """
    secret_value = secret_word = False
    for key, item in value.items():
        if (low := key.lower()) in _NAME_MEMBERS and isinstance(item, str):
            if low in _PATH_MEMBERS:
                secret_word = secret_word or is_secret_name(item.removesuffix(".txt"))
            else:
                secret_value = secret_value or is_secret_name(_FIELD.sub("", item.strip(" :=-")))
    return secret_value, secret_word


def _is_schema(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str) and value.keys() <= _SCHEMA


def _in_option(raw: bytes, at: int) -> bool:
    """True if the word there begins with `-`."""
    if b"-" not in raw[max(at - _LONGEST_OPTION, 0) : at]:
        return False
    begin = max(raw.rfind(blank, max(at - _LONGEST_OPTION, 0), at) for blank in (b" ", b"\n", b"\t", b'"', b"'"))
    return raw[begin + 1 : begin + 2] == b"-"


def _around_placeholders(text: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is a placeholder; none: it has no placeholder."""
    if _PLACEHOLDERS not in text:
        return []
    from .placeholders import PLACEHOLDER  # few texts have one

    parts: list[tuple[str, bool]] = []
    at = 0
    for match in PLACEHOLDER.finditer(text):
        parts += [(text[at : match.start()], False), (match[0], True)]
        at = match.end()
    return [part for part in (*parts, (text[at:], False)) if part[0]] if parts else []
