"""A tool's result as plain text: it has everything that the model could read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.shared.input import block_texts, result_text
from hookproxy.model.hooks import Outcome

ECHO = b'{"type":"text","text":"ECHO"}'


@pytest.mark.parametrize(
    ("content", "structured", "expected"),
    [
        (b"[]", b"", ""),
        (b"[%b]" % ECHO, b"", "ECHO"),
        (b'[%b, {"type":"text","text":"a\\nb"}]' % ECHO, b"", "ECHO\na\nb"),
        (b'[{"type":"image","data":"aGk="}]', b"", '{"type":"image","data":"aGk="}'),
        (b'[{"type":"resource","resource":{"text":"x"}}]', b"", '{"type":"resource","resource":{"text":"x"}}'),
        (b'[{"type":"text","text":5}]', b"", '{"type":"text","text":5}'),
        (b"[1]", b"", "1"),
        (b'{"type":"text"}', b"", '{"type":"text"}'),
        (b"[%b]" % ECHO, b'{"key":"SECRET"}', 'ECHO\n{"key":"SECRET"}'),
        (b'[{"type":"image","text":"decoy","data":"aGk="}]', b"", '{"type":"image","text":"decoy","data":"aGk="}'),
        (b"[]", b'{"a":1}', '{"a":1}'),
    ],
)  # fmt: skip
def test_an_output_is_all_its_blocks_and_structured_content(content: bytes, structured: bytes, expected: str) -> None:
    assert result_text(Outcome(content=content, structured=structured, has_result=True)) == expected


def test_without_a_result_the_text_is_the_error_message() -> None:
    assert result_text(Outcome(error="MCP error -32603: no")) == "MCP error -32603: no"


@given(st.binary(max_size=60))
def test_whatever_a_server_sends_has_a_text(content: bytes) -> None:
    assert all(isinstance(part, str) for part in block_texts(content))
