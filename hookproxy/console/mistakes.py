"""Mistakes of whoever sends a request to the console: the response says what is wrong, with a status of 4xx."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from ..model.errors import UserError


class Mistake(UserError):
    """A request that is not as it must be, or that names what is not there."""

    def __init__(self, message: str, hint: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message, hint)
        self.http_status = status


@contextmanager
def as_mistakes() -> Iterator[None]:
    """What the block reads comes from the request: its errors are mistakes of the request's author."""
    try:
        yield
    except UserError as error:
        raise Mistake(error.message, error.hint) from None


def http_status(error: UserError | None) -> HTTPStatus:
    """The status of a response that shows the error. Others than mistakes concern this machine, not the request."""
    if error is None:
        return HTTPStatus.OK
    return error.http_status if isinstance(error, Mistake) else HTTPStatus.INTERNAL_SERVER_ERROR
