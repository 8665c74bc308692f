"""How all dialects read a run: its output as text, its output as JSON, and how it ended."""

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


class Output(msgspec.Struct, frozen=True):
    n: int = 0


DECODER = msgspec.json.Decoder(Output)


@pytest.mark.parametrize(
    ("result", "description"),
    [
        (HookResult(Ended.TIMED_OUT), "timed out after 2.5 s"),
        (HookResult(Ended.NOT_STARTED, detail="no such file\nmore"), "could not be started: no such file"),
        (HookResult(Ended.CANCELLED), "was ended with its call"),
        (HookResult(Ended.SIGNALLED, 9), "was ended by signal SIGKILL"),
        (HookResult(Ended.SIGNALLED, 40), "was ended by signal 40"),
    ],
)
def test_the_end_of_a_run_is_described(result: HookResult, description: str) -> None:
    assert shared_output.describe_end(SPEC, result) == description


def test_output_is_text_without_byte_order_mark_windows_line_ends_and_broken_bytes() -> None:
    assert shared_output.decode(b"\xef\xbb\xbf a\r\nb\xff \n") == "a\nb\ufffd"


@pytest.mark.parametrize(("stdout", "output"), [(b"", None), (b"plain", None), (b'["n"]', None), (b'{"n":1', None)])
def test_plain_text_is_not_json_output(stdout: bytes, output: Output | None) -> None:
    assert shared_output.parse_json_object(stdout, DECODER) is output


def test_json_output_is_read_strictly() -> None:
    assert shared_output.parse_json_object(b'\n {"n":5,"other":[1e400]} \n', DECODER) == Output(5)


@pytest.mark.parametrize(
    "output",
    [
        b'{"n":"5"}',
        b'{"n":1,"n":2}',
        b'{"n":1,\\u006e:2}',
        b"{nonsense}",
        b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000,
    ],
)
def test_output_that_looks_like_json_and_cannot_be_read_is_invalid(output: bytes) -> None:
    with pytest.raises(shared_output.InvalidOutput, match="printed JSON that cannot be read"):
        shared_output.parse_json_object(output, DECODER)


def test_long_texts_are_cut_with_a_note_and_empty_ones_are_left_out() -> None:
    assert shared_output.nonempty("", "a" * 10_001) == ("a" * 10_000 + " … [1 more characters cut by hookproxy]",)
    assert shared_output.explanation("") == ""
    assert shared_output.explanation("one\ntwo") == ": one"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('Traceback (most recent call last):\n  File "x", line 1\n    y()\nNameError: no y\n\n', "NameError: no y"),
        ("warning\nTraceback (most recent call last):\n  z\nexc\n\nDuring …\n\nKeyError: 1", "KeyError: 1"),
        (
            "/x.js:1\nboom();\n^\n\nReferenceError: no boom\n    at Object.<anonymous> (/x.js:1:1)\n",
            "ReferenceError: no boom",
        ),
        ("/x.js:1\nTypeError: a\nb {\n  code: 1\n    at f (/x.js:1:1)\n", "TypeError: a"),
        (
            "  File \"/a b.py\", line 7\n    def check(x)\n                ^\nSyntaxError: expected ':'\n",
            "SyntaxError: expected ':' (/a b.py:7)",
        ),
        (
            'Traceback (most recent call last):\n  File "/a.py", line 1, in <module>\n    import b\n'
            '  File "/b.py", line 2\n    y = 2\nIndentationError: unexpected indent\n',
            "IndentationError: unexpected indent (/b.py:2)",
        ),
        ("Error: this is no stack\nbut a text", "Error: this is no stack"),
    ],
)
def test_the_explanation_of_a_crash_is_its_error_and_not_its_first_line(text: str, line: str) -> None:
    assert shared_output.explanation(text) == f": {line}"


def test_json_over_many_lines_fits_into_one() -> None:
    assert shared_output.one_line(msgspec.Raw(b'{\r\n "a": 1\n}')) == b'{   "a": 1 }'


# --- answers that cannot be read whole ---

MEMBERS: shared_output.DecidingMembers = {
    "decision": ("allow", "deny"),
    "stop": (True, False),
    "in.word": ("deny",),
    "why": shared_output.ANY_TEXT,
}


def kept(output: bytes) -> dict[str, object]:
    result = HookResult(Ended.EXITED, 2, output, b"noise", cut=True)
    reduced = shared_output.keep_deciding_members(result, MEMBERS)
    assert replace(reduced, stdout=output) == result
    members: dict[str, object] = json.loads(reduced.stdout)
    return members


@pytest.mark.parametrize(
    ("output", "members"),
    [
        (b'{"decision":"deny","why":"W","other":5,"in":{"word":"deny","more":[]}}',
         {"decision": "deny", "why": "W", "in": {"word": "deny"}}),
        (b'{"decision":"Deny","stop":1,"in":{"word":["deny"]},"why":["W"]}', {}),
        (b'{"decision":["deny"],"stop":"true","in":["word"],"why":null}', {}),
        (b'{"decision":{"decision":"deny"},"in.word":"deny"}', {}),
        (b'{"stop":true,"n":NaN,"m":' + b"9" * 5000 + b"}", {"stop": True}),
        (b'{"decision":"deny","why":"one\ntwo"}', {"decision": "deny", "why": "one\ntwo"}),
        (b'{"decision":"deny","x":1,"x":2}', {"decision": "deny"}),
        (b'{"decision":"deny","decision":"allow","stop":true}', {"decision": "allow", "stop": True}),
        (b'{"decision":"allow","decision":"deny"}', {"decision": "deny"}),
        (b'{"in":{"word":"deny"},"in":{}}', {}),
        (b'{"in":{"word":"deny","word":"allow"}}', {}),
        (b'{"in":{"word":"allow","word":"deny"}}', {"in": {"word": "deny"}}),
        (b'\xef\xbb\xbf{"decision":"deny"}\r\n', {"decision": "deny"}),
        (b'{"decision":"deny"', {}),
        (b'{"decision":"deny"} {}', {}),
        (b'["deny"]', {}),
        (b"", {}),
        (b'{"decision":"deny","a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}", {}),
    ],
    ids=lambda one: str(one)[:40],
)  # fmt: skip
def test_only_deciding_members_with_known_values_are_kept(output: bytes, members: object) -> None:
    assert kept(output) == members


VALUES = st.recursive(
    st.sampled_from(["allow", "deny", 1.0, 0, True, False, None, "\ud83d"]) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["decision", "in", "word"]), inner),
)


@given(st.dictionaries(st.sampled_from(["decision", "stop", "in", "why", "x"]), VALUES))
def test_the_kept_members_of_any_output_can_be_read(output: dict[str, Any]) -> None:
    members = kept(json.dumps(output).encode())
    assert members.keys() <= {"decision", "stop", "in", "why"}
    assert members.get("decision", "deny") in ("allow", "deny")
    assert members.get("stop", True) in (True, False)
    assert members.get("in", {"word": "deny"}) == {"word": "deny"}
    assert isinstance(members.get("why", ""), str)
    assert shared_output.parse_json_object(json.dumps(members).encode(), DECODER) == Output()


def test_a_denial_in_invalid_output_counts_and_an_approval_does_not() -> None:
    for verdict in (
        Verdict(Permission.DENY, "R", messages=("M",)),
        Verdict(stop=True),
        Verdict(feedback=("R",)),
        Verdict(failure="T"),
    ):
        assert shared_output.invalid_output_verdict(verdict, "N") == replace(verdict, messages=(*verdict.messages, "N"))
    for verdict in (Verdict(), Verdict(Permission.ALLOW, "R"), Verdict(Permission.ASK), Verdict(messages=("M",))):
        assert shared_output.invalid_output_verdict(verdict, "N") == Verdict(failure="N")


def test_the_verdict_of_a_background_hook_only_has_messages_and_failures() -> None:
    verdict = Verdict(Permission.DENY, "R", feedback=("F",), messages=("M",), stop=True, fails_closed=True, failure="T")
    assert shared_output.background_verdict(SPEC, verdict) == verdict
    assert shared_output.background_verdict(replace(SPEC, background=True), verdict) == Verdict(
        messages=("M",), failure="T"
    )
