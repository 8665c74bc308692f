"""What every dialect reads of a run: its output as text, its JSON without ambiguity, its end in words."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.dialects.shared import output as shared_output
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict

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
    assert shared_output.describe_end(SPEC, result) == said


def test_output_is_text_without_byte_order_mark_windows_line_ends_and_broken_bytes() -> None:
    assert shared_output.decode(b"\xef\xbb\xbf a\r\nb\xff \n") == "a\nb\ufffd"


@pytest.mark.parametrize(("output", "answer"), [(b"", None), (b"plain", None), (b'["n"]', None), (b'{"n":1', None)])
def test_plain_text_is_no_answer(output: bytes, answer: Answer | None) -> None:
    assert shared_output.parse_json_object(output, DECODER) is answer


def test_an_answer_is_read_strictly() -> None:
    assert shared_output.parse_json_object(b'\n {"n":5,"other":[1e400]} \n', DECODER) == Answer(5)


@pytest.mark.parametrize(
    "output",
    [b'{"n":"5"}', b'{"n":1,"n":2}', b'{"n":1,\\u006e:2}', b"{nonsense}", b'{"a":' * 9999 + b"1" + b"}" * 9999],
)
def test_what_looks_like_an_answer_and_cannot_be_read_is_nonsense(output: bytes) -> None:
    with pytest.raises(shared_output.InvalidOutput, match="printed JSON that cannot be read"):
        shared_output.parse_json_object(output, DECODER)


def test_long_texts_are_cut_and_say_so_and_empty_ones_are_left_out() -> None:
    assert shared_output.nonempty("", "a" * 10_001) == ("a" * 10_000 + " … [1 more characters cut by hookproxy]",)
    assert shared_output.explanation("") == ""
    assert shared_output.explanation("one\ntwo") == ": one"


def test_json_over_many_lines_fits_into_one() -> None:
    assert shared_output.one_line(msgspec.Raw(b'{\r\n "a": 1\n}')) == b'{   "a": 1 }'


# --- answers that cannot be read whole ---

PARTS: shared_output.DecidingMembers = {
    "decision": ("allow", "deny"),
    "stop": (True, False),
    "in.word": ("deny",),
    "why": shared_output.ANY_TEXT,
}


def kept(output: bytes) -> dict[str, object]:
    result = HookResult(Ended.EXITED, 2, output, b"noise", cut=True)
    salvaged = shared_output.keep_deciding_members(result, PARTS)
    assert replace(salvaged, stdout=output) == result
    parts: dict[str, object] = json.loads(salvaged.stdout)
    return parts


@pytest.mark.parametrize(
    ("output", "parts"),
    [
        (b'{"decision":"deny","why":"W","other":5,"in":{"word":"deny","more":[]}}',
         {"decision": "deny", "why": "W", "in": {"word": "deny"}}),
        (b'{"decision":"Deny","stop":1,"in":{"word":["deny"]},"why":["W"]}', {}),
        (b'{"decision":["deny"],"stop":"true","in":["word"],"why":null}', {}),
        (b'{"decision":{"decision":"deny"},"in.word":"deny"}', {}),
        (b'{"stop":true,"n":NaN,"m":' + b"9" * 5000 + b"}", {"stop": True}),
        (b'{"decision":"deny","why":"one\ntwo"}', {"decision": "deny", "why": "one\ntwo"}),
        (b'{"decision":"deny","x":1,"x":2}', {"decision": "deny"}),
        (b'{"decision":"deny","decision":"allow","stop":true}', {"stop": True}),
        (b'{"in":{"word":"deny"},"in":{}}', {}),
        (b'{"in":{"word":"deny","word":"allow"}}', {}),
        (b'\xef\xbb\xbf{"decision":"deny"}\r\n', {"decision": "deny"}),
        (b'{"decision":"deny"', {}),
        (b'{"decision":"deny"} {}', {}),
        (b'["deny"]', {}),
        (b"", {}),
        (b'{"decision":"deny","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", {}),
    ],
    ids=lambda one: str(one)[:40],
)  # fmt: skip
def test_of_an_answer_the_members_that_decide_are_kept_if_they_are_known(output: bytes, parts: object) -> None:
    assert kept(output) == parts


VALUES = st.recursive(
    st.sampled_from(["allow", "deny", 1.0, 0, True, False, None, "\ud83d"]) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["decision", "in", "word"]), inner),
)


@given(st.dictionaries(st.sampled_from(["decision", "stop", "in", "why", "x"]), VALUES))
def test_whatever_was_printed_what_is_kept_can_be_read(answer: dict[str, Any]) -> None:
    parts = kept(json.dumps(answer).encode())
    assert parts.keys() <= {"decision", "stop", "in", "why"}
    assert parts.get("decision", "deny") in ("allow", "deny")
    assert parts.get("stop", True) in (True, False)
    assert parts.get("in", {"word": "deny"}) == {"word": "deny"}
    assert isinstance(parts.get("why", ""), str)
    assert shared_output.parse_json_object(json.dumps(parts).encode(), DECODER) == Answer()


def test_a_denial_stands_and_consent_does_not() -> None:
    for verdict in (
        Verdict(Permission.DENY, "R", messages=("M",)),
        Verdict(stop=True),
        Verdict(feedback=("R",)),
        Verdict(failure="T"),
    ):
        assert shared_output.invalid_output_verdict(verdict, "N") == replace(verdict, messages=(*verdict.messages, "N"))
    for verdict in (Verdict(), Verdict(Permission.ALLOW, "R"), Verdict(Permission.ASK), Verdict(messages=("M",))):
        assert shared_output.invalid_output_verdict(verdict, "N") == Verdict(failure="N")


def test_of_a_background_hook_only_people_hear() -> None:
    said = Verdict(Permission.DENY, "R", feedback=("F",), messages=("M",), stop=True, fails_closed=True, failure="T")
    assert shared_output.background_verdict(SPEC, said) == said
    assert shared_output.background_verdict(replace(SPEC, background=True), said) == Verdict(
        messages=("M",), failure="T"
    )
