"""What the user sees when something is theirs to mend."""

from __future__ import annotations

from hookproxy.errors import CANNOT, NOT_FOUND, ConfigError, UserError


def test_an_error_says_what_and_a_hint_says_what_to_do() -> None:
    assert str(UserError("no verb given", "see --help")) == "error: no verb given\nhint: see --help"
    assert str(UserError("no verb given")) == "error: no verb given"


def test_an_error_ends_with_the_status_that_its_raiser_chose() -> None:
    assert UserError("x").status == CANNOT == 2
    assert UserError("x", status=NOT_FOUND).status == 127


def test_an_error_in_a_file_begins_with_its_place() -> None:
    error = ConfigError("hooks.json:3", "is no JSON", "remove the comma")
    assert str(error) == "error: hooks.json:3: is no JSON\nhint: remove the comma"
    assert error.args == ("hooks.json:3: is no JSON",)
