"""Values that a tool has got: however many and however long they are, finding goes on."""

from __future__ import annotations

import pytest

from hookproxy.model.secret_settings import SecretSettings
from hookproxy.secrets.finder import Finder
from hookproxy.secrets.session_finder import SessionFinder

FINDER = Finder(SecretSettings(), {})


def known(values: list[bytes]) -> SessionFinder:
    finder = SessionFinder(FINDER)
    for value in values:
        finder.know("generic-api-key", value)
    return finder


def test_the_newest_are_found_in_every_spelling_and_older_ones_as_they_are() -> None:
    values = [b'x9Qw%04d"Lk0zVb' % number for number in range(600)]
    finder = known(values)
    assert len(finder.find(b" ".join(values[-500:]))) == 500
    assert len(finder.find(b" ".join(value.replace(b'"', b'\\"') for value in values[-500:]))) == 500
    assert len(finder.find(b" ".join(value.hex().encode() for value in values))) == 32


@pytest.mark.slow
def test_of_values_that_take_too_much_memory_the_newest_are_found() -> None:
    values = [b'"\\\n\xe9' * 63 + b"%04d" % number for number in range(240)]
    finder = known(values)
    assert [one.rule for one in finder.find(b"a %b b" % values[-40])] == ["generic-api-key"]
