"""What is said of a chain names each place once."""

from __future__ import annotations

from msgspec.structs import replace

from hookproxy.flow.sentences import sentence
from hookproxy.model.flow import Chain, Reading

PAGE = Reading(("untrusted",), "fetch", "web", "x.example")


def chain(*readings: Reading) -> Chain:
    return Chain(readings, tuple(range(len(readings))), ("untrusted",), "flow.sinks[0]", "send", "web", "eve@x.example")


def test_a_page_that_was_read_twice_in_a_minute_is_named_once() -> None:
    assert sentence(chain(PAGE, replace(PAGE, number=1))) == sentence(chain(PAGE))


def test_different_places_are_all_named_in_their_order() -> None:
    text = sentence(chain(PAGE, replace(PAGE, place="y.example"), replace(PAGE, place="z.example")))
    places = [text.index(place) for place in ("x.example", "y.example", "z.example")]
    assert places == sorted(places)
    assert text.count("what `fetch` read") == 3
