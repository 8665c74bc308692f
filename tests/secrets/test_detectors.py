"""The file of detectors is whole, and names are read as people write them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.secrets import detectors
from hookproxy.secrets.detectors import compiled, is_secret_name

FILE = Path(detectors.__file__).with_name("detectors.toml")
TABLES = tomllib.loads(FILE.read_text("utf-8"))


def test_each_rule_has_a_name_of_its_own_and_a_pattern_that_matches_nothing_empty() -> None:
    rules = [*TABLES["tokens"], *TABLES["rules"]]
    names = [rule["id"] for rule in rules]
    assert len(set(names)) == len(names)
    for rule in rules:
        assert re.fullmatch("[a-z]+(-[a-z]+)*", rule["id"])
        assert rule.get("named") or not re.compile(rule["regex"]).search("")


def test_each_way_in_which_most_tokens_are_written_begins_with_a_sign_of_its_own() -> None:
    """Else each place of a long piece takes ten times as long."""
    plain = [rule["regex"] for rule in TABLES["tokens"] if not rule.get("anchored")]
    flat = re.sub(r"\[[^\]]*\]", "", "|".join(plain))
    while "(" in flat:
        flat = re.sub(r"\((?:\?:)?[^()]*\)", "()" if "(" not in flat else "", flat)
    assert all(re.match(r"[A-Za-z]|\\\.", way) for way in flat.split("|"))


def test_keywords_are_in_small_letters_and_begin_no_pattern_that_they_cannot() -> None:
    for rule in TABLES["rules"]:
        assert rule["keywords"]
        assert all(word == word.lower() for word in rule["keywords"])


def test_options_of_programs_begin_with_a_dash_because_a_text_is_searched_for_dashes_first() -> None:
    for row in TABLES["programs"]:
        assert all(word.startswith("-") for word in f"{row.get('joined', '')} {row.get('separate', '')}".split())


WORDS = sorted({word.encode() for rule in TABLES["rules"] for word in rule["keywords"]})
PIECES = [
    *WORDS,
    *(word[:-1] for word in WORDS),
    *(word[1:] for word in WORDS),
    b"p",
    b"s",
    b"\\",
    b"\n",
    b"@5*<$-",
    b"x" * 40,
]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(1, 20))
def test_the_rules_of_a_text_are_those_of_which_it_has_a_keyword(pieces: list[bytes], times: int) -> None:
    text, made = b"".join(pieces) * times, detectors.detectors()
    expected = {
        rule.id: {word for word in rule.keywords if word in text}
        for rule in made.rules
        if rule.needs in text and any(word in text for word in rule.keywords)
    }
    assert {rule.id: set(words) for rule, words in made.active(text, text)} == expected


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
