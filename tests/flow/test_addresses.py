"""What names a place or an account, and what is only a word."""

from __future__ import annotations

import pytest

from hookproxy.flow.addresses import is_address


@pytest.mark.parametrize(
    "word",
    [
        "www.example.com",
        "example.org/a?b=c#d",
        "example.org:8443/x",
        "https://localhost/a",
        "ftp://10.0.0.1",
        "ann.black-2134@example.com",
        "ann@localhost",
        "de89370400440532013000",
        "463820193",
        "a1b2c3d4",
        "+41/44.123-45-67",
        "report.docx",
    ],
)
def test_an_address_is(word: str) -> None:
    assert is_address(word)


@pytest.mark.parametrize(
    "word",
    [
        "documentation",
        "meeting",
        "external_0",
        "2024-05-15",
        "well-known",
        "etc.",
        "12:30:45",
        "1234567",
        "",
        "a b.example.com",
    ],
)
def test_a_word_is_none(word: str) -> None:
    assert not is_address(word)
