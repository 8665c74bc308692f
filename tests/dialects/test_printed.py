"""What every dialect reads of a run: its output as text, its JSON without ambiguity, its end in words."""

import msgspec
import pytest

from hookproxy.dialects import printed
from hookproxy.model import Ended, Event, HookResult, HookSpec

SPEC = HookSpec("any", "s.json: 0", Event.PRE_TOOL_USE, "guard.sh", timeout=2.5)


class Answer(msgspec.Struct, frozen=True):
    n: int = 0


DECODER = msgspec.json.Decoder(Answer)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (HookResult(Ended.TIMED_OUT), "timed out after 2.5 s"),
        (HookResult(Ended.NOT_STARTED, detail="no such file\nmore"), "could not be started: no such file"),
        (HookResult(Ended.CANCELLED), "was ended with its call"),
        (HookResult(Ended.SIGNALLED, 9), "was ended by signal SIGKILL"),
        (HookResult(Ended.SIGNALLED, 40), "was ended by signal 40"),
    ],
)
def test_an_end_is_told_in_words(result: HookResult, said: str) -> None:
    assert printed.ending(SPEC, result) == said


def test_output_is_text_without_byte_order_mark_windows_line_ends_and_broken_bytes() -> None:
    assert printed.text(b"\xef\xbb\xbf a\r\nb\xff \n") == "a\nb\ufffd"


@pytest.mark.parametrize(("output", "answer"), [(b"", None), (b"plain", None), (b'["n"]', None), (b'{"n":1', None)])
def test_plain_text_is_no_answer(output: bytes, answer: Answer | None) -> None:
    assert printed.json_object(output, DECODER) is answer


def test_an_answer_is_read_strictly() -> None:
    assert printed.json_object(b'\n {"n":5,"other":[1e400]} \n', DECODER) == Answer(5)


@pytest.mark.parametrize(
    "output",
    [b'{"n":"5"}', b'{"n":1,"n":2}', b'{"n":1,\\u006e:2}', b"{nonsense}", b'{"a":' * 9999 + b"1" + b"}" * 9999],
)
def test_what_looks_like_an_answer_and_cannot_be_read_is_nonsense(output: bytes) -> None:
    with pytest.raises(printed.Nonsense, match="printed JSON that cannot be read"):
        printed.json_object(output, DECODER)


def test_long_texts_are_cut_and_say_so_and_empty_ones_are_left_out() -> None:
    assert printed.texts("", "a" * 10_001) == ("a" * 10_000 + " … [1 more characters cut by hookproxy]",)
    assert printed.after_colon("") == ""
    assert printed.after_colon("one\ntwo") == ": one"


def test_json_over_many_lines_fits_into_one() -> None:
    assert printed.one_line(msgspec.Raw(b'{\r\n "a": 1\n}')) == b'{   "a": 1 }'
