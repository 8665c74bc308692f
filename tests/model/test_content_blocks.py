"""Content blocks: which blocks are text and nothing else."""

from __future__ import annotations

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.model.content_blocks import only_text, read_blocks


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (b'{"type":"text","text":"a"}', "a"),
        (b'{"text":"a"}', "a"),
        (b'{"type":"text","text":"a","annotations":{},"_meta":{}}', "a"),
        (b'{"type":"text","text":"a","data":"b"}', None),
        (b'{"type":"image","text":"a"}', None),
        (b'{"type":"text","text":7}', None),
        (b'{"type":"text"}', None),
        (b"{}", None),
    ],
)
def test_a_text_block_has_a_text_and_nothing_that_says_more(block: bytes, text: str | None) -> None:
    assert only_text(raw_json.fields(block)) == text


def test_a_block_that_is_no_object_has_no_members_and_ambiguous_content_has_no_blocks() -> None:
    blocks = read_blocks(b'[{"a":1},7]')
    assert blocks is not None
    first, second = blocks
    assert ({name: bytes(raw) for name, raw in first.items()}, second) == ({"a": b"1"}, {})
    assert read_blocks(b'[{"a":1,"a":2}]') is None
    assert read_blocks(b'{"a":1}') is None
