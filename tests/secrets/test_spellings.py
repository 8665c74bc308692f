"""A named value is found however it is written, every character that has a bit of it, and nothing else."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Callable, Mapping
from random import Random
from typing import Final
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hookproxy.model.secret_settings import SecretSettings
from hookproxy.secrets import spellings
from hookproxy.secrets.engine import compiled
from hookproxy.secrets.finder import Finder
from hookproxy.secrets.literals import Found
from hookproxy.secrets.rules import known_rules


def _escaped(value: str) -> str:
    return json.dumps(value)[1:-1]


def _base64(before: str) -> Callable[[str], str]:
    return lambda value: base64.b64encode(f"{before}{value}".encode()).decode()


SPELLINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "as it is": lambda value: value,
    "in a URL": lambda value: f"https://me:{value}@example.com/",
    "in a header": lambda value: f"Authorization: Bearer {value}\r\n",
    "in a file of variables": lambda value: f'export KEY="{value}"\n',
    "escaped as JSON": _escaped,
    "with the line ends of Windows": lambda value: value.replace("\n", "\r\n"),
    "with the line ends of Windows, as JSON": lambda value: _escaped(value.replace("\n", "\r\n")),
    "escaped as JSON twice": lambda value: _escaped(_escaped(value)),
    "escaped as JSON three times": lambda value: _escaped(_escaped(_escaped(value))),
    "in escapes of JSON only": lambda value: "".join(f"\\u{ord(char):04X}" for char in value if ord(char) < 0x10000),
    "in the escapes of a program": lambda value: "".join(f"\\x{byte:02x}" for byte in value.encode()),
    "percent-encoded": lambda value: quote(value, safe=""),
    "percent-encoded in small letters": lambda value: quote(value, safe="").replace("%2F", "%2f"),
    "percent-encoded twice": lambda value: quote(quote(value, safe=""), safe=""),
    "percent-encoded as a whole": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "in a form": lambda value: quote(value, safe="").replace("%20", "+"),
    "escaped as HTML": html.escape,
    "escaped as HTML twice": lambda value: html.escape(html.escape(value)),
    "escaped as HTML in a URL": lambda value: quote(html.escape(value), safe=""),
    "escaped as JSON in a URL": lambda value: quote(_escaped(value), safe=""),
    "escaped as HTML and as JSON": lambda value: _escaped(html.escape(value)),
    "escaped as HTML for JSON, as Go does": lambda value: html.escape(value).replace("&", "\\u0026"),
    "in the escapes of JavaScript": lambda value: "".join(f"\\u{{{ord(char):x}}}" for char in value),
    "in the escapes of Python": lambda value: "".join(f"\\U{ord(char):08x}" for char in value),
    "as numbers of HTML": lambda value: "".join(f"&#{ord(char)};" for char in value),
    "as hexadecimal numbers of HTML": lambda value: "".join(f"&#x{ord(char):x};" for char in value),
    "hexadecimal": lambda value: value.encode().hex(),
    "hexadecimal in large letters": lambda value: value.encode().hex().upper(),
    "base64": _base64(""),
    "base64 behind one byte": _base64("a"),
    "base64 behind two bytes": _base64("ab"),
    "base64 behind a name": _base64("user:"),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(f"x{value}".encode()).decode().rstrip("="),
    "base64 in a URL": lambda value: quote(base64.b64encode(value.encode()).decode(), safe=""),
    "base64 in lines": lambda value: base64.encodebytes(f"{'-' * 50}{value}".encode()).decode(),
    "base64 in lines, as JSON": lambda value: _escaped(base64.encodebytes(f"{'-' * 50}{value}".encode()).decode()),
    "in octal escapes of a program": lambda value: "".join(f"\\{byte:03o}" for byte in value.encode()),
    "in the escapes of Latin-1": lambda value: value.encode("unicode_escape").decode(),
    "in a form, in a URL": lambda value: quote(quote(value, safe="").replace("%20", "+"), safe=""),
    "escaped as HTML for a shell": lambda value: re.sub(r"([&#;<>'\"\\? ])", r"\\\1", html.escape(value)),
    "escaped as HTML for JSON, in a URL": lambda value: quote(html.escape(value).replace("&", "\\u0026"), safe=""),
    "in quotes of a shell": shlex.quote,
    "in quotes of a shell, in the older way": lambda value: "'" + value.replace("'", "'\\''") + "'",
    "in quotes of a shell, as JSON": lambda value: _escaped(shlex.quote(value)),
    "in quotes of SQL": lambda value: "'" + value.replace("'", "''") + "'",
    "in a cell of a table": lambda value: '"' + value.replace('"', '""') + '"',
    "hexadecimal with colons": lambda value: value.encode().hex(":"),
    "hexadecimal with blanks": lambda value: value.encode().hex(" ", 2),
    "as hexadecimal numbers of a program": lambda value: ", ".join(f"0x{byte:02X}" for byte in value.encode()),
    "base64 in a URL in a URL": lambda value: quote(quote(base64.b64encode(value.encode()).decode(), safe="")),
    "base64 in lines that are indented": lambda value: (
        base64.encodebytes(f"{'-' * 50}{value}".encode()).decode().replace("\n", "\n    ")
    ),
    "base64 with escaped slashes": lambda value: base64.b64encode(value.encode()).decode().replace("/", "\\/"),
}
VALUES: Final = (
    'Kd83&xQ/+2.mT"uw',
    "ab<c>\\d'e f%20+g",
    "pässwörd-日本-🔑",
    "line one\nline two\tx",
    "it's\"so\"'quoted'é'",
    "~~~~????>>>>1234",  # base64 with all its signs
)
NO_RULES: Final = SecretSettings(skip=tuple(rule.id for rule in known_rules()))
SUFFIXES: Final = ("", "z", "zz", " and more")


def found_in(text: bytes, value: bytes) -> bytes:
    """The text without what was found."""
    finder = Finder(NO_RULES, {"MY_KEY": value})
    ((start, end, _),) = finder.find(text)
    return text[:start] + b"<>" + text[end:]


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.slow
def test_a_value_is_found_in_every_spelling(name: str, value: str) -> None:
    assume_fits = name != "in escapes of JSON only" or value.isascii()
    for suffix in SUFFIXES if assume_fits else ():
        text = f"before {SPELLINGS[name](value + suffix if name.startswith('base64') else value)} after".encode()
        rest = found_in(text, value.encode())
        assert value.encode() not in rest


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_what_stays_of_base64_has_no_bit_of_the_value(before: int, after: int) -> None:
    rests = set()
    for value in (b"\0" * 9, b"\xff" * 9, b"Kd83&xQ/+"):
        text = b"(" + base64.b64encode(b"A" * before + value + b"A" * after) + b")"
        rests.add(found_in(text, value))
    assert len(rests) == 1


@given(st.binary(min_size=8, max_size=40), st.binary(max_size=5), st.binary(max_size=5))
def test_any_bytes_are_found_in_base64_and_hexadecimal(value: bytes, before: bytes, after: bytes) -> None:
    assume(len(set(value)) > 3)
    pattern = compiled(spellings.pattern(value))
    whole = before + value + after
    for text in (whole, whole.hex().encode(), base64.b64encode(whole), base64.urlsafe_b64encode(whole)):
        assert pattern.search(text) is not None


def test_other_values_are_not_found() -> None:
    finder = Finder(NO_RULES, {"MY_KEY": b"Kd83xQ2mTuw9"})
    for other in ("Kd83xQ2mTuw8", "Kd83xQ2mTuv9", "kd83xq2mtuw9", "9Kd83xQ2mTuw"):
        for spelled in SPELLINGS.values():
            assert finder.find(spelled(other).encode()) == []


@pytest.mark.slow
def test_a_long_value_is_one_also_if_it_is_found_part_by_part() -> None:
    value = bytes(Random(1).choices(range(33, 127), k=1500))
    finder = Finder(SecretSettings(), {"MY_KEY": value})
    for text in (
        value,
        value.hex().encode(),
        base64.b64encode(value).rstrip(b"="),
        json.dumps(value.decode())[1:-1].encode(),
    ):
        assert finder.find(b"a " + text + b" z") == [Found(2, 2 + len(text), "MY_KEY")]
    assert [found.rule for found in finder.find(b"x " + value[:600] + b" y")] == ["MY_KEY"]


@pytest.mark.slow
def test_of_a_value_of_several_lines_each_line_that_looks_like_a_key_is_one_alone() -> None:
    choose = Random(1)
    key = ["".join(choose.choices("abcdefghijkmnopqrstuvwxyzABCDEFGH0123456789+/", k=64)) for _ in range(20)]
    lines = ["-----BEGIN PRIVATE KEY-----", *key, "abcd0123==", "-" * 40, "-----END PRIVATE KEY-----"]
    finder = Finder(NO_RULES, {"MY_KEY": "\n".join(lines).encode()})
    for part in (key[5:9], [key[0]], [key[-1]]):
        text = "\n".join(part).encode()
        assert [text[start:end].decode() for start, end, _ in finder.find(text)] == part
    spaced = "".join(f"{number}: {line}\n" for number, line in enumerate(lines)).encode()
    assert [spaced[start:end].decode() for start, end, _ in finder.find(spaced)] == key
    whole = "\n".join(lines).encode()
    assert finder.find(b"x " + whole) == [Found(2, 2 + len(whole), "MY_KEY")]
    assert finder.find(b"abcd0123== " + b"-" * 40 + b" -----BEGIN PRIVATE KEY-----") == []
