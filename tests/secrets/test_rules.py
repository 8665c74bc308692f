"""Each rule finds what its pattern asks for, if it is random enough and no exception knows it, also within JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest

from hookproxy.model.secret_settings import SecretSettings
from hookproxy.secrets.finder import Finder
from hookproxy.secrets.literals import Found, find_in_json
from hookproxy.secrets.rules import Rule, entropy, known_rules
from tests.support.regex_examples import example

RULES = [pytest.param(rule, id=f"{rule.id}-{number}") for number, rule in enumerate(known_rules())]
FINDER = Finder(SecretSettings(), {})


def examples(rule: Rule) -> Iterator[bytes]:
    """Texts in which the rule finds something: what is too regular, or known as an example, is left out."""
    random = Random(rule.id)
    keyword = rule.table.keywords[0]
    for _ in range(300):
        made = example(rule.table.regex, random)
        for text in (f"see: {made}", f"{keyword}\nsee: {made}\n"):
            if list(rule.find(text.encode())) and any(word in text.lower() for word in rule.table.keywords):
                yield text.encode()


@pytest.mark.parametrize("rule", RULES)
def test_what_a_rule_finds_is_found_in_a_text_and_in_its_json(rule: Rule) -> None:
    tried = 0
    for text in examples(rule):
        for spelled in (text, json.dumps(text.decode()).encode(), json.dumps(json.dumps(text.decode())).encode()):
            start, end = FINDER.find(spelled)[0][:2]
            assert end > start
        for secret in find_in_json(FINDER, json.dumps({"a": [text.decode()]}).encode()):
            assert secret.value in text
        tried += 1
        if tried == 3:
            break
    assert tried, "no example was made"


@pytest.mark.parametrize("after", [".", ", and", ")", "&v=3", "&amp;", "</b>", ":\n", "!", "'", "|", "\\n", '\\"', ""])
def test_a_token_is_found_in_sentences_addresses_and_html(after: str) -> None:
    token = "AIza" + "Sy3kQ9xLw7Rt2Vn8Bm5Zc1Hf6Jd4Gp0TqXe"
    assert FINDER.find(f"the key {token}{after}".encode()) == [Found(8, 8 + len(token), "gcp-api-key")]


def test_a_name_that_goes_on_is_not_a_token() -> None:
    assert FINDER.find(b"box.ico-" + b"7a388b69018576d24b59331fd60aab0c" + b".png") == []


RANDOM = "k3J9x8Lq2Wm4Zt7Rv1Ny6"


def test_what_is_random_behind_a_word_for_secrets_is_found() -> None:
    text = f'"api_key": "{RANDOM}"'.encode()
    assert FINDER.find(text) == [Found(12, 12 + len(RANDOM), "generic-api-key")]


@pytest.mark.parametrize(
    "text",
    [
        f'primary_key = "{RANDOM}"',
        f'my.very.long.name.before.it.primary_key = "{RANDOM}"',
        f"--mount=type=secret,id=x,token={RANDOM}",
        f'api_key = "{RANDOM[:8]}example{RANDOM[8:]}"',
        f'api_key = "{RANDOM[:8]}abcdefghijklmnopqrstuvwxyz{RANDOM[8:]}"',
        'api_key = "a1a1a1a1a1a1a1a1a1"',
        'api_key = "some.name_of_a.thing"',
        f"AKIA{'IOSFODNN7'}EXAMPLE",
        "AKIA" + "A" * 16,
        f"author={RANDOM}",
    ],
)
def test_what_an_exception_knows_or_is_too_regular_is_not_found(text: str) -> None:
    assert FINDER.find(text.encode()) == []


def test_an_exception_for_a_line_is_not_looked_for_in_another_line() -> None:
    text = f"--mount=type=secret, x\ntoken={RANDOM}\n--mount=type=secret, x".encode()
    assert [found.rule for found in FINDER.find(text)] == ["generic-api-key"]


def test_a_comment_that_allows_a_secret_means_nothing() -> None:
    assert FINDER.find(f'api_key = "{RANDOM}"  # gitleaks:allow'.encode()) != []


def test_the_group_of_a_rule_is_what_is_found() -> None:
    secret = "squ_" + "9f8e7d6c5b4a39281706" * 2
    text = f"sonar_token={secret}".encode()
    assert FINDER.find(text) == [Found(12, 12 + len(secret), "sonar-api-token")]


def test_the_entropy_is_shannons() -> None:
    assert entropy(b"aaaa") == 0
    assert entropy(b"abcdabcd") == 2
    assert entropy(b"0123456789abcdef") == 4
