"""Secrets are found whole, wherever and however they stand, and nothing else."""

from __future__ import annotations

import json

from hookproxy.model.secret_settings import SecretSettings
from hookproxy.secrets.finder import Finder, Found

VALUE = b'Kd83&xQ/+2.mT"uw'
TOKEN = b"ghp_" + b"aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
FINDER = Finder(SecretSettings(), {"MY_KEY": VALUE})


def test_a_text_without_a_secret_has_none() -> None:
    assert FINDER.find(b"token: none, password=changeme, see https://example.com/?a=b%20c") == []


def test_what_a_rule_knows_is_found_under_the_name_of_the_most_specific_rule() -> None:
    assert FINDER.find(b"token: " + TOKEN + b"\n") == [Found(7, 47, "github-pat")]


def test_what_is_found_in_json_lies_within_its_strings() -> None:
    raw = json.dumps({"a": VALUE.decode(), "b": [1, TOKEN.decode()]}).encode()
    secrets = FINDER.find_in_json(raw)
    assert [secret.value for secret in secrets] == [VALUE, TOKEN]
    assert [raw[start - 1 : start] + raw[end : end + 1] for secret in secrets for start, end in secret.parts] == [
        b'""',
        b'""',
    ]
