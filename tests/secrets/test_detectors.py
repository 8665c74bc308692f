"""The file of detectors is whole, and names are read as people write them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.secrets import detectors
from hookproxy.secrets.detectors import PROGRAM, compiled, is_secret_name

FILE = Path(detectors.__file__).with_name("detectors.toml")
TABLES = tomllib.loads(FILE.read_text("utf-8"))


def test_each_rule_has_a_name_of_its_own_and_a_pattern_that_matches_nothing_empty() -> None:
    rules = TABLES["rules"]
    names = [rule["id"] for rule in rules]
    assert len(set(names)) == len(names)
    for rule in rules:
        assert re.fullmatch("[a-z]+(-[a-z]+)*", rule["id"])
        assert rule.get("named") or not re.compile(rule["regex"]).search("")


def test_keywords_are_in_small_letters_and_begin_no_pattern_that_they_cannot() -> None:
    for rule in TABLES["rules"]:
        assert rule["keywords"]
        assert all(word == word.lower() for word in rule["keywords"])


def test_options_of_programs_begin_with_a_dash_because_a_text_is_searched_for_dashes_first() -> None:
    for row in TABLES["programs"]:
        assert all(word.startswith("-") for word in f"{row.get('joined', '')} {row.get('separate', '')}".split())


KEYWORDS = {rule["id"]: [word.encode() for word in rule["keywords"]] for rule in TABLES["rules"]}
PROGRAMS = sorted({name.encode() for row in TABLES["programs"] for name in row["programs"].split()})
WORDS = [*sorted({word for words in KEYWORDS.values() for word in words}), *PROGRAMS]
PIECES = [*WORDS, *(word[:-1] for word in WORDS), *(word[1:] for word in WORDS), b"p", b"s", b"\\", b"\n", b"x" * 40]


def places(words: list[bytes], text: bytes) -> list[int]:
    return sorted(begin for word in words for begin in range(len(text)) if text.startswith(word, begin))


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(1, 20))
def test_all_places_of_keywords_are_found_and_those_of_programs(pieces: list[bytes], times: int) -> None:
    text, made = b"".join(pieces) * times, detectors.detectors()
    found = {number: sorted(begins) for number, begins in made.places(text).items()}
    programs = found.pop(PROGRAM, [])
    expected = {rule.id: begins for rule in made.rules if (begins := places(KEYWORDS[rule.id], text))}
    assert {made.rules[number].id: begins for number, begins in found.items()} == expected
    assert programs == places(PROGRAMS, text)


TOKENS = [
    rule
    for rule in TABLES["rules"]
    if rule.get("anchored") and not rule.get("guessable") and "(?<" not in rule["regex"]
]


@pytest.mark.parametrize("rule", TOKENS, ids=lambda rule: rule["id"])
@given(st.data())
def test_whatever_a_token_looks_like_it_begins_with_a_keyword(rule: Mapping[str, str], data: st.DataObject) -> None:
    """Else its pattern is never tried where it would match."""
    token = data.draw(st.from_regex(re.compile(rule["regex"], re.ASCII), fullmatch=True))
    assert token.lower().startswith(tuple(rule["keywords"]))


def test_a_member_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError, match="entropie"):
        compiled({**TABLES, "rules": [*TABLES["rules"], {"id": "x", "regex": "x", "entropie": 3}]})


SECRET = """
    password Password DB_PASSWORD dbPassword2 api-key X-API-Key githubToken Authorization Set-Cookie client_secret
    aws_secret_access_key pass user_pass PIN passwordHash Contraseña sshKey basic_auth JWT passw
    пароль 密码 パスワード mnemonic seed_phrase recoveryCodes
"""
OTHER = """
    path key max_tokens tokens next_page_token pageToken password_file passwordPolicy compass bypass author keyboard
    tokenizer secretary cookie_policy pinned monkey
"""


@pytest.mark.parametrize("name", [*SECRET.split(), "x" * 10_000 + "_password"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["", *OTHER.split()])
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)
