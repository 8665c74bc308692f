"""The Lime dialect as data."""

import json

from hookproxy.dialects.lime import DIALECT as LIME
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Order
from hookproxy.model.settings import ToolNames
from tests.dialects.tables import sample

SAMPLE = sample("lime.json")


def test_the_dialect_is_described() -> None:
    assert DIALECTS["lime"] is LIME
    assert (LIME.order, LIME.default_timeout, LIME.tool_names, LIME.options) == (
        Order.SERIAL,
        60.0,
        ToolNames.BARE,
        ("await_post",),
    )
    assert all(name == event for name, event in LIME.events.items())


def test_every_event_of_the_page_is_either_available_or_reported() -> None:
    assert set(LIME.events) | set(LIME.unavailable) == set(json.loads(SAMPLE)["hooks"])
    assert not set(LIME.events) & set(LIME.unavailable)
