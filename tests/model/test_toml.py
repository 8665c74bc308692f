"""TOML that somebody delivers costs no more time than its length says, and no key that people write is refused."""

from __future__ import annotations

import re
from time import process_time

import pytest

from hookproxy.model.toml import MOST_CHARACTERS, MOST_PARTS, NotToml, parse_toml

LONG = 100_000
"""Parts: `tomllib` alone would need more than a minute for each of these keys."""


@pytest.mark.parametrize(
    "text",
    [
        f"a{'.a' * LONG} = 1",
        f"[a{'.a' * LONG}]",
        f"[[a{' . a' * LONG}]]",
        '"a b"' + '."c d"' * LONG + " = 1",
        r'"\""' + r'."\""' * LONG + " = 1",
        "'a\"'" + ".'\"'" * LONG + " = 1",
        f"x = {{ a{'.a' * LONG} = 1 }}",
        f"x = {{ y = 1, a{'.a' * LONG} = 1 }}",
    ],
)
def test_a_key_with_many_parts_is_refused_at_once(text: str) -> None:
    started = process_time()
    with pytest.raises(NotToml, match=f"a key has more than {MOST_PARTS} parts \\(at line 2, column 1\\)"):
        parse_toml(f"y = 1\n{text}\n")
    assert process_time() - started < 1


@pytest.mark.parametrize(
    "piece", ["a", '"', "'", "\\", '\\"', '"\\"', " ", ".", "a ", '"a" ', "a.", "[", "{a=", "#", "\t"]
)
def test_the_search_for_such_keys_is_as_fast_for_any_text(piece: str) -> None:
    started = process_time()
    with pytest.raises(NotToml):
        parse_toml(f"{piece * 200_000}\n=")
    assert process_time() - started < 2


@pytest.mark.parametrize(
    "text",
    [
        ".".join(f"k{number}" for number in range(MOST_PARTS)) + " = 1",
        f"[{'.'.join(f'k{number}' for number in range(MOST_PARTS))}]",
        'host = "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa"',
        f'dots = "{"." * 1000}{"a. " * 30}"',
        "numbers = [" + "1.5, " * 1000 + "]",
        f"long = '{'a' * 100_000}'",
    ],
)
def test_what_people_write_is_read(text: str) -> None:
    assert parse_toml(text)


def test_a_text_that_is_too_long_is_refused() -> None:
    assert parse_toml("a = 1".ljust(MOST_CHARACTERS)) == {"a": 1}
    with pytest.raises(NotToml, match=f"more than {MOST_CHARACTERS} characters"):
        parse_toml("a = 1".ljust(MOST_CHARACTERS + 1))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"a = {'[' * 5000}", "nested too deeply"),
        (f"a = {'9' * 5000}", "a number has too many digits"),
        ("a =", re.escape("Invalid value (at end of document)")),
    ],
)
def test_whatever_cannot_be_read_is_one_kind_of_error(text: str, why: str) -> None:
    with pytest.raises(NotToml, match=why):
        parse_toml(text)
