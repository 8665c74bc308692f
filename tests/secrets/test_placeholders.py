"""A placeholder stands for one value of one session, and says nothing of it."""

from __future__ import annotations

import pytest

from hookproxy.secrets.placeholders import PLACEHOLDER, Placeholders, Restored


def test_a_value_has_one_placeholder_in_a_session_and_another_one_under_another_key() -> None:
    session, other = Placeholders(b"a" * 16), Placeholders(b"b" * 16)
    placeholder = session.for_value("github-pat", b"secret")
    assert session.for_value("github-pat", b"secret") == placeholder
    assert other.for_value("github-pat", b"secret") != placeholder
    assert PLACEHOLDER.fullmatch(placeholder)


def test_a_placeholder_that_the_session_has_not_made_stands_for_nothing() -> None:
    session = Placeholders(b"a" * 16)
    placeholder = session.for_value("github-pat", b"secret")
    assert session.value_of(placeholder) == Restored("github-pat", b"secret")
    assert session.value_of(placeholder.replace("github-pat", "other")) is None
    assert session.value_of("{{secret:github-pat:3f9a3f9a}}") is None


def test_two_values_never_share_a_placeholder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookproxy.secrets.placeholders._SHOWN", 1)
    session = Placeholders(b"a" * 16)
    made = {session.for_value("rule", str(number).encode()): number for number in range(200)}
    assert len(made) == 200
    for placeholder, number in made.items():
        assert session.value_of(placeholder) == Restored("rule", str(number).encode())


def test_the_value_that_was_unused_for_longest_is_forgotten_first_and_its_placeholder_stands_for_nothing() -> None:
    session = Placeholders(b"a" * 16, max_values=2)
    first, second = session.for_value("rule", b"1"), session.for_value("rule", b"2")
    assert session.value_of(first) is not None
    session.for_value("rule", b"3")
    assert session.value_of(second) is None
    assert session.value_of(first) is not None


def test_a_value_is_in_no_repr() -> None:
    session = Placeholders(b"a" * 16)
    restored = session.value_of(session.for_value("rule", b"hush-hush"))
    assert "hush" not in repr(session) + repr(restored)


def test_a_placeholder_of_another_run_is_taken_over_unless_it_would_stand_for_two_values() -> None:
    one, other = Placeholders(b"a" * 16), Placeholders(b"b" * 16)
    placeholder = one.for_value("rule", b"value")
    other.adopt(placeholder, b"value")
    assert other.value_of(placeholder) == Restored("rule", b"value")
    assert other.for_value("rule", b"value") == placeholder
    other.adopt(placeholder, b"another")
    assert other.value_of(placeholder) == Restored("rule", b"value")
    own = other.for_value("rule", b"own")
    other.adopt("{{secret:rule:12345678}}", b"own")
    assert (other.for_value("rule", b"own"), other.value_of("{{secret:rule:12345678}}")) == (own, None)
    other.adopt("no placeholder", b"x")
    assert len(other) == 2
