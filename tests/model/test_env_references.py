"""References to environment variables in the options of `run`."""

from __future__ import annotations

import pytest

from hookproxy.model.env_references import expand
from hookproxy.model.errors import UserError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Bearer ${TOKEN}", "Bearer t"),
        ("Bearer %{TOKEN}", "Bearer t"),
        ("${TOKEN}${TOKEN}%{NESTED}", "tt${TOKEN}"),
        ("$TOKEN ${env:TOKEN} ${} %7B{TOKEN} 100%", "$TOKEN ${env:TOKEN} ${} %7B{TOKEN} 100%"),
    ],
)
def test_both_forms_are_replaced_once_and_nothing_else_is(text: str, value: str) -> None:
    assert expand("--header", text, {"TOKEN": "t", "NESTED": "${TOKEN}"}) == value


def test_a_variable_that_is_not_set_is_an_error_without_values() -> None:
    with pytest.raises(UserError, match="--url: the environment variable NO is not set") as caught:
        expand("--url", "https://${YES}/%{NO}", {"YES": "secret"})
    assert "secret" not in str(caught.value)
