"""Any aliases and any arguments: a translation to hooks and back is the same, and no value is lost or doubled."""

from __future__ import annotations

import json

from hypothesis import assume, given
from hypothesis import strategies as st

from hookproxy.jsonrpc import normalize
from hookproxy.model.aliases import Alias

NAMES = st.sampled_from(["a", "b", "c", "d", "A", "cmd", "command", "Command", "é", 'q"', "x\0"])
MAPS = st.dictionaries(NAMES, NAMES, max_size=4).filter(lambda names: len(set(names.values())) == len(names))
VALUES = st.sampled_from(["1.0", "1e5", "-0", '"s"', '"\\u0000"', '{"cmd":{"a":1}}', "[1.50]", "null", "true"])


@st.composite
def spelled(draw: st.DrawFn) -> bytes:
    members = draw(st.dictionaries(NAMES, VALUES, max_size=5))
    return b"{%b}" % b",".join(
        f"{json.dumps(name, ensure_ascii=False)}:{raw}".encode() for name, raw in members.items()
    )


@given(MAPS, spelled())
def test_a_translation_to_hooks_and_back_is_the_same_and_loses_no_value(
    names: dict[str, str], arguments: bytes
) -> None:
    alias = Alias("tool", "Tool", names)
    try:
        held = alias.for_call(arguments)
    except ValueError:
        assume(False)
    renamed = held.for_hooks(arguments)
    assert held.for_server(renamed) == normalize.normalize(arguments)
    before, after = json.loads(arguments), json.loads(renamed)
    assert list(before.values()) == list(after.values())
    mapped = {*names, *names.values()}
    assert {key: before[key] for key in before.keys() - mapped} == {key: after[key] for key in after.keys() - mapped}
    own = {own: name for name, own in names.items()}
    for key, value in before.items():
        assert after[own.get(key, key) if own.get(key, key) not in held.used_by_agent else key] == value


@given(MAPS, spelled())
def test_a_rewrite_is_sent_or_an_error_and_hooks_would_read_it_the_same(names: dict[str, str], rewrite: bytes) -> None:
    alias = Alias("tool", "Tool", names)
    try:
        sent = alias.for_server(rewrite)
    except ValueError:
        assume(False)
    assert alias.for_call(sent) is alias
    assert alias.for_hooks(sent) == normalize.normalize(rewrite)
    assert len(json.loads(sent)) == len(json.loads(rewrite))
