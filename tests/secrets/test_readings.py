"""What a text reads, and where each character of it stands."""

from __future__ import annotations

import json
import re
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.secrets import readings as module
from hookproxy.secrets.readings import Reading, readings

TEXTS = st.text(st.sampled_from('\\\\\\"/bfnrtuU0061é\n x'), max_size=60).map(str.encode)
ESCAPE = re.compile(rb"\\(?:[\"\\/bfnrt]|u[0-9A-Fa-f]{4})")
PLAIN = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def one(match: re.Match[bytes]) -> bytes:
    kind = match[0][1:2]
    if kind == b"u":
        code = int(match[0][2:], 16)
        return bytes((code,)) if code < 0x80 else b"\xfe"
    return PLAIN.get(kind, kind)


BLOCKS = st.sampled_from([1, 9, 8192])


@given(st.one_of(TEXTS, TEXTS.map(lambda text: text + b"\xff\\n")), BLOCKS)
def test_escapes_are_undone_from_the_left(text: bytes, block: int) -> None:
    with patch.object(module, "_BLOCK", block):
        deeper = Reading(text).deeper()
    assert (deeper.text if deeper else text) == ESCAPE.sub(one, text)


@given(TEXTS, BLOCKS)
def test_each_byte_that_is_read_stands_somewhere_and_all_places_together_are_the_text(text: bytes, block: int) -> None:
    with patch.object(module, "_BLOCK", block):
        read = list(readings(text))
    for reading in read:
        written = reading.written(range(len(reading.text) + 1))
        places = [(written[at], written[at + 1]) for at in range(len(reading.text))]
        assert b"".join(text[start:end] for start, end in places) == text
        for (start, end), byte in zip(places, reading.text, strict=True):
            spelled = text[start:end]
            for _ in range(4):
                spelled = ESCAPE.sub(one, spelled)
            assert len(spelled) == 1
            assert spelled == bytes((byte,)) or byte == 0x5C


def test_what_is_escaped_three_times_is_read() -> None:
    text = 'a "b"'
    for _ in range(3):
        text = json.dumps(text)
    assert [b'a "b"' in reading.text for reading in readings(text.encode())] == [False, False, True]
