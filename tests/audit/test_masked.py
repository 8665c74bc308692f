"""A masked audit keeps arguments that people can read, without secrets, and not more than it says."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.audit.call_record import Record, RefusedMessage
from hookproxy.audit.kept_arguments import KEPT, kept
from hookproxy.audit.lines import Lines
from hookproxy.audit.records import CallRecord, Line, entry
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec, Permission, Session, Verdict
from hookproxy.model.settings import Arguments, Results, Settings
from hookproxy.secrets.mask import Masking

TOKEN = "ghp_" + "a1B2" * 9


def line(arguments: object, settings: Settings | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    raw = arguments if isinstance(arguments, bytes) else json.dumps(arguments, separators=(",", ":")).encode()
    record = replace(Record("session", "files", "write", b"1", raw, "agent"), **more)
    written: dict[str, Any] = json.loads(Lines(settings or Settings()).of_call(record))
    return written


def run(event: Event = Event.PRE_TOOL_USE, stdout: bytes = b"", stderr: bytes = b"") -> HookRun:
    spec = HookSpec("claude", "hooks.json: x", event, "guard", shell="guard --token hunter22 x")
    verdict = Verdict(Permission.DENY, "hunter22 is weak", feedback=("no hunter22",), messages=("hunter22",))
    return HookRun(spec, HookResult(Ended.EXITED, stdout=stdout, stderr=stderr), verdict, input=stdout)


def test_readable_arguments_are_recorded_with_the_digest_of_all() -> None:
    written = line({"path": "/x", "n": 1})
    assert written["arguments"] == {"path": "/x", "n": 1}
    assert written["arguments_sha256"] == hashlib.sha256(b'{"path":"/x","n":1}').hexdigest()
    assert not {"masked", "left_out"} & set(written)


def test_a_masked_part_is_named_and_the_rest_stays() -> None:
    written = line({"path": "/x", "text": f"use {TOKEN}"}, final=json.dumps({"text": f"use {TOKEN}!"}).encode())
    assert written["arguments"] == {"path": "/x", "text": "use [masked: github-token]"}
    assert written["rewritten"] == {"text": "use [masked: github-token]!"}
    assert written["masked"] == ["github-token"]
    assert len(written["arguments_sha256"]) == len(written["rewritten_sha256"]) == 64


def test_no_digest_lets_a_short_password_be_found_by_trying() -> None:
    written = line({"path": "/x", "password": "hunter2"}, final=b'{"password":"hunter3"}')
    assert written["masked"] == ["name"]
    assert not any(name.endswith("_sha256") for name in written)


def test_a_secret_of_the_arguments_is_in_no_other_member_of_the_line() -> None:
    out, err = b'{"a":"hunter22"}', b"hunter22\nPASSWORD=swordfish9"
    more = {
        "hook_runs": [run(stdout=out, stderr=err), run(Event.POST_TOOL_USE, out, err)],
        "reason": "hunter22",
        "by": "hunter22",
    }
    results = {"result_before": b'{"x":"hunter22"}\n', "result_after": b'{"password":"swordfish8"}\n'}
    settings = Settings(audit_results=Results.FULL)
    written = json.dumps(line({"password": "hunter22"}, settings, **more, **results, id=b'"hunter22"'))
    for secret in ("hunter22", "swordfish"):
        assert secret not in written


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "x" * 10_000_000, "path": "/x", "password": "hunter2"},
        {f"name {number}": "x" * 50 for number in range(20_000)},
        {"list": ["x" * 90] * 20_000},
        {"x" * 200_000: "y"},
        {"a": {"b": {"c": {"d": ["é" * 300_000, {"password": "hunter2"}]}}}},
        {"a": [[[[[[[[[["x" * 300_000]]]]]]]]]]},
        {"t": "x" * 4090 + f" {TOKEN}" + "x" * 200_000},
        {"t": "x" * 4000 + "\n-----BEGIN PRIVATE KEY-----\n" + "MIIE" * 50_000},
    ],
)
def test_of_long_arguments_the_record_says_how_much_is_left_out(arguments: object) -> None:
    raw = json.dumps(arguments, ensure_ascii=False, separators=(",", ":")).encode()
    written = line(raw)
    text = json.dumps(written["arguments"], ensure_ascii=False)
    assert len(text.encode()) < 1.3 * KEPT
    assert "[left out: " in text
    assert 0 < written["left_out"] <= len(raw)
    assert written["arguments_sha256"] == hashlib.sha256(raw).hexdigest()
    for secret in ("hunter2", TOKEN[:10], "MIIE"):
        assert secret not in text


def test_what_stands_behind_a_long_text_is_kept() -> None:
    raw = json.dumps({"content": "x" * 10_000_000, "path": "/x"}).encode()
    assert json.loads(kept(raw, Masking()).raw)["path"] == "/x"


def test_a_message_that_nobody_can_read_is_recorded_unless_it_may_hold_a_secret() -> None:
    def shown(message: bytes) -> bool:
        written = Lines(Settings()).of_refusal(
            Session("s", "files", "/", "/"), RefusedMessage("why", line=message + b"\n")
        )
        return "message" in json.loads(written)

    assert shown(b"[1")
    assert not shown(b'{"id":1,"id":2,"password":"x1y2"}')
    assert not shown(b'{"id":1,"id":2,"p\\u0061ssword":"x1y2"}')


def test_a_record_says_whether_it_has_all_arguments() -> None:
    def record(arguments: object) -> CallRecord:
        found = entry(Line(1, json.dumps(line(arguments)).encode()))
        assert isinstance(found, CallRecord)
        return found

    assert not record({"a": 1}).is_partial
    assert record({"password": "hunter2"}).masked == ("name",)
    assert record({"a": "x" * 100_000}).is_partial


class _Hidden:
    """As `audit.lines.Removes`, for one secret."""

    def known_values(self, text: str) -> str:
        return self.text(text)

    def text(self, text: str) -> str:
        return text.replace("hunter2", "{{secret:X:00000000}}")

    def json(self, raw: bytes) -> bytes:
        return self.text(raw.decode()).encode()


@pytest.mark.parametrize("kept", list(Arguments))
def test_there_is_no_digest_of_a_tools_name_in_which_a_secret_is_hidden(kept: Arguments) -> None:
    lines = Lines(Settings(audit_arguments=kept))
    lines.hidden = _Hidden()
    written = json.loads(lines.of_call(Record("session", "files", "x-hunter2", b"1", b"{}", "agent")))
    assert written["tool"] == "x-{{secret:X:00000000}}"
    assert "tool_sha256" not in written


_TEXTS = (
    "",
    "a/b.txt",
    "the words of a man",
    'say "x"',
    "tok",
    "en=hunter22x",
    "pass",
    "word: hunter22x",
    TOKEN,
    "é",
    "\\u0070",
    "\ud800",
)
_MEMBERS = st.sampled_from(
    [*_TEXTS, '{"pin": "4711x"}', '{"p\\u0061ss": "hunter22x"}', '["--password", "hunter22x"]', "mysql -phunter22x"]
)


@given(
    st.fixed_dictionaries(
        {name: st.lists(_MEMBERS, max_size=3).map("".join) for name in ("tool", "by", "reason", "agent")}
    )
)
def test_a_line_that_is_searched_as_a_whole_is_masked_as_by_each_of_its_texts(texts: dict[str, str]) -> None:
    record = replace(Record("session", "files", "write", b"1", b'{"a":1}', "agent", at=1.0), **texts)
    lines = Lines(Settings())
    as_a_whole = lines.of_call(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Masking, "may_find", lambda *_: True)
        assert lines.of_call(record) == as_a_whole
