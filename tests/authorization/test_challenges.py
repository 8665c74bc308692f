"""What is read from a `WWW-Authenticate` header, whoever wrote it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.authorization.challenges import parameters, scopes, union


@pytest.mark.parametrize(
    ("challenge", "found"),
    [
        ("", {}),
        ("Basic realm=x", {}),
        ("Bearer", {}),
        ('bearer Error="insufficient_scope", scope="a b"', {"error": "insufficient_scope", "scope": "a b"}),
        ('Basic realm="scope=x", Bearer scope=a', {"scope": "a"}),
        ('Bearer scope="a", DPoP scope="b", error=c', {"scope": "a"}),
        ('Bearer scope="a", scope="b"', {"scope": "a"}),
        (r'Bearer realm="say \"hi\", scope=x", scope="b"', {"realm": 'say "hi", scope=x', "scope": "b"}),
        ('Bearer scope="never closed', {}),
        ("Negotiate abc==, Bearer scope = a", {"scope": "a"}),
    ],
)
def test_only_parameters_of_bearer_count(challenge: str, found: dict[str, str]) -> None:
    assert parameters(challenge) == found


@given(st.text(alphabet='Bearer scop=",\\ \t\n;$`\u00e9'))
def test_any_text_can_be_read(text: str) -> None:
    assert all(name == name.lower() for name in parameters(f"Bearer {text}"))


def test_only_scopes_that_the_standard_allows_are_shown() -> None:
    assert scopes('read "x" wr\\ite files:* \x1b[31m') == ("read", "files:*")
    assert scopes("a " * 1000) == ()
    assert union("read write", "write\tadmin", "") == "read write admin"
