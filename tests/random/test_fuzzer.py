"""The fuzzer with a fixed seed, and proof that it finds what it is for."""

from __future__ import annotations

import random

import pytest

from hookproxy.protocol import argument_names
from hookproxy.protocol.inflight import InFlight
from hookproxy.protocol.router import Router
from hookproxy.transports.lines import StreamedLine
from tests.random import fuzzer
from tests.support import readers

FOUND_WITHIN = 4000
"""Sessions in which the fuzzer finds what a weaker proxy lets pass: about 150,000 lines, 20 seconds on one processor.
`scripts/fuzz --seconds N` tries others, each night."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", [0, FOUND_WITHIN // 2])  # two parts, which run in parallel
def test_no_reader_finds_what_hooks_have_not_let_pass(first: int) -> None:
    assert fuzzer.run(1, range(first, first + FOUND_WITHIN // 2)) > FOUND_WITHIN // 2 * 20


@pytest.mark.parametrize(
    ("where", "name", "weaker"),
    [
        (Router, "withholds_responses", property(lambda _router: False)),
        (argument_names, "check", lambda *_arguments: None),
        (InFlight, "bar", InFlight.cancel),
        (StreamedLine, "clear_id", lambda _line: b""),
    ],
    ids=["no close reading", "any names", "ids are forgotten", "ends of long lines"],
)
@pytest.mark.slow
def test_the_fuzzer_finds_what_a_weaker_proxy_lets_pass(
    where: object, name: str, weaker: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, weaker, raising=False)
    with pytest.raises(fuzzer.Finding, match=r"reads|at the agent"):
        fuzzer.run(1, range(FOUND_WITHIN))


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":7}\n',
        b'{"id":8,"id":7}\n',
        b'{"id":7,"id":8}\n',
        b'{"ID":7}\n',
        b'{"i\\u0064\\u0000x":7}\n',
        b'{"i\xffd":7}\n',
        b'x\r{"id":7}\rx\n',
        b'"\xc2\x85{"id":7}\xc2\x85"\n',
        b'"\xe2\x80\xa8{"id":7}\n',
        b'"\0{"id":7}\0"\n',
        b'{"id"/*"*/:7,}\n',
        b'[{"id":7}]\n',
        b'{"x":1} {"id":7}\n',
        b'\xef\xbb\xbf{"id":7.0}\n',
    ],
)
def test_some_reader_sees_the_id(line: bytes) -> None:
    found = [one for _, pairs in readers.objects_seen(line) for one in readers.members(pairs, "id")]
    assert "7" in map(readers.plain_id, found)


def test_no_reader_sees_what_is_data() -> None:
    line = b'{"id":8,"result":{"id":7,"text":"{\\"id\\":7}"}}\n'
    assert {
        readers.plain_id(one) for _, pairs in readers.objects_seen(line) for one in readers.members(pairs, "id")
    } == {"8"}


def test_damage_leaves_lines_and_depends_on_the_dice_alone() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    for seed in range(300):
        first, second = (fuzzer.damaged(line, random.Random(seed)) for _ in range(2))  # it has to repeat
        assert first == second
        assert first
