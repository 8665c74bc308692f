"""What a page says when it cannot do what it should: what, where, and a hint."""

from __future__ import annotations

from ...model.errors import UserError
from ..html import Html, el


def problem(error: UserError) -> Html:
    """An error of the user's, as the command line prints it."""
    return el(
        "div", el("p", el("b", error.message)), el("p", error.hint, class_="quiet"), class_="problem", role="alert"
    )
