"""Each rule finds what its pattern asks for, if it is random enough and no exception knows it, also within JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest

from hookproxy.model.secret_settings import SecretSettings
from hookproxy.secrets.finder import Finder
from hookproxy.secrets.literals import Found
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
        for secret in FINDER.find_in_json(json.dumps({"a": [text.decode()]}).encode()):
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


def test_the_entropy_is_shannons() -> None:
    assert entropy(b"aaaa") == 0
    assert entropy(b"abcdabcd") == 2
    assert entropy(b"0123456789abcdef") == 4
