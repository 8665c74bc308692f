"""Arguments that a person has changed while parts of them were masked."""

from __future__ import annotations

import json

import pytest

from hookproxy.secrets.mask import Masking
from hookproxy.secrets.unmask import unmasked

VALUE = {"password": "hunter2-hunter2", "to": ["ann", {"token": "abcdefgh12345678"}], "n": 1e400}
RAW = b'{"password":"hunter2-hunter2","to":["ann",{"token":"abcdefgh12345678"}],"n":1e400}'
SHOWN = Masking().json(RAW)


def test_what_is_left_masked_is_what_it_was() -> None:
    assert b"hunter2" not in SHOWN
    changed = SHOWN.replace(b'"ann"', b'"bob"')
    assert unmasked(changed, SHOWN, RAW) == RAW.replace(b'"ann"', b'"bob"')


def test_a_masked_text_can_be_replaced_or_removed() -> None:
    assert unmasked(b'{"password":"new","n":1}', SHOWN, RAW) == b'{"password":"new","n":1}'


@pytest.mark.parametrize(
    "changed",
    [
        b'{"to":"[masked: name]"}',
        b'{"password":"x[masked: name]"}',
        b'{"n":{"password":"[masked: name]"}}',
        b'{"[masked: name]":1}',
        b'{"to":[{"token":"[masked: name]"}]}',
    ],
)
def test_a_mark_elsewhere_is_not_taken(changed: bytes) -> None:
    with pytest.raises(ValueError, match="masked"):
        unmasked(changed, SHOWN, RAW)


def test_a_masked_name_of_a_member_is_what_it_was() -> None:
    name = "ghp_" + "aB3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7C"
    raw = json.dumps({name: "x"}, separators=(",", ":")).encode()
    shown = Masking().json(raw)
    assert name.encode() not in shown
    assert unmasked(shown.replace(b'"x"', b'"y"'), shown, raw) == raw.replace(b'"x"', b'"y"')
