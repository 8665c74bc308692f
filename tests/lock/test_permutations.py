"""What is the same is no change: order of keys, spacing, pages and the order of tools, however often it is shuffled."""

from __future__ import annotations

import json
import random
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from hookproxy.lock import lock_file
from hookproxy.lock.compare import Names, Pinned, compare
from hookproxy.lock.description import Description, Entry, Identity, Kind, entry

TEXTS: Final = st.text(max_size=20)
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
TOOLS: Final = st.dictionaries(
    TEXTS, st.fixed_dictionaries({"description": TEXTS, "inputSchema": VALUES, "_meta": VALUES}), min_size=1, max_size=5
)


def shuffled(value: object, order: random.Random) -> object:
    """The same value with its keys in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        order.shuffle(items)
        return {key: shuffled(item, order) for key, item in items}
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


def spelled(value: object, order: random.Random) -> bytes:
    """One of the spellings of a value."""
    blanks = order.choice((None, 1, "\t"))
    text = json.dumps(shuffled(value, order), indent=blanks, ensure_ascii=order.random() < 0.5)
    return text.encode("utf-8")


def described(tools: list[dict[str, object]]) -> Description:
    entries = [entry(Kind.TOOL, json.dumps(tool).encode()) for tool in tools]
    return Description(Identity(name="s"), {(item.kind, item.name): item for item in entries})


@settings(max_examples=100, deadline=None)
@given(TOOLS, st.randoms(use_true_random=False))
def test_a_shuffled_server_has_not_changed(named: dict[str, dict[str, object]], order: random.Random) -> None:
    tools: list[dict[str, object]] = [{"name": name, **tool} for name, tool in named.items()]
    pinned = Pinned(described(tools))
    order.shuffle(tools)
    names = Names()
    while tools:
        page, tools = tools[: (size := order.randint(1, 3))], tools[size:]
        compared = pinned.compare_page(Kind.TOOL, [spelled(tool, order) for tool in page], names)
        assert [one.changes for one in compared] == [()] * len(page)


@settings(max_examples=100, deadline=None)
@given(TOOLS)
def test_what_is_written_is_read_back_as_the_same(named: dict[str, dict[str, object]]) -> None:
    before = described([{"name": name, **tool} for name, tool in named.items()])
    text = lock_file.text_of({"s": before})
    again = lock_file.parse(text.encode())
    assert compare(before, again["s"]) == ()
    assert lock_file.text_of(again) == text
    assert all(line.isprintable() for line in text.splitlines())


def test_entry_is_read_by_its_members() -> None:
    read = entry(Kind.TEMPLATE, b'{"uriTemplate": "file:///{path}", "name": "files"}')
    assert read == Entry(Kind.TEMPLATE, "file:///{path}", b'{"name":"files","uriTemplate":"file:///{path}"}')
