"""What a hook printed and its system does not read is reported, and nothing that the system documents is."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Dialect, Effect
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.unread_members import unread
from hookproxy.model.hooks import Ended, Event, HookResult, Verdict
from tests.support.proxy_rig import hook

CASES: Final = Path(__file__).parent / "cases"
NOT_READ: Final = {
    ("cascade", "standard output is not parsed"),
    ("claw", "JSON on exit 0 is feedback, and a message reports that it decides nothing"),
    ("claude", "unknown members have no effect"),
    ("code-assist", "unknown members are ignored"),
    ("copilot", "a command cannot replace the result, and people get a message"),
    ("copilot", "members of other events and unknown ones have no effect"),
    ("docker-agent", "additional_context is not on the page and has no effect"),
    ("docker-agent", "unknown members have no effect"),
    ("docker-agent@current", "a strict hook's block counts beside what strict_output does not allow"),
    ("docker-agent@current", "a strict hook's unknown inner member is a failure"),  # without `strict_output` here
    ("docker-agent@current", "a strict hook's unknown member is a failure"),
    ("iflow", "JSON is not read"),
    ("kimi", "allow, ask and rewrites have no effect"),
    ("kiro", "a JSON decision is not read"),
    ("lime", "members that the page does not name have no effect"),
    ("openhands", "arguments cannot be changed"),
}
"""The rows about members that the system's text does not know."""


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(CASES.glob("*.toml")):
        for row in tomllib.loads(path.read_text()).get("output", []):
            if str(row.get("stdout", "")).lstrip().startswith("{"):
                yield row.get("dialect") or path.stem.replace("_", "-"), row


def reported(
    dialect: Dialect, printed: object, code: int = 0, event: Event = Event.PRE_TOOL_USE, name: str = ""
) -> tuple[str, ...]:
    names = [name for name, known in dialect.events.items() if known is event]
    spec = replace(hook("x", event), dialect=dialect.name, event_name=name or (names or [""])[0])
    text = printed if isinstance(printed, str) else json.dumps(printed)
    result = HookResult(Ended.EXITED, code, text.encode())
    return unread(dialect, result, dialect.read_output(spec, result))


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_what_a_system_documents_nothing_is_reported(dialect: str) -> None:
    found = {
        (name, row["behaviour"])
        for name, row in rows()
        if name == dialect
        and reported(DIALECTS[name], row["stdout"], row.get("code", 0), Event(row["event"]), row.get("event_name", ""))
    }
    assert found == {(name, behaviour) for name, behaviour in NOT_READ if name == dialect}


@pytest.mark.parametrize("name", [name for name, dialect in DIALECTS.items() if dialect.has_effect(Effect.DECIDES)])
def test_a_misspelt_decision_is_reported_with_the_right_name(name: str) -> None:
    dialect = DIALECTS[name]
    for path in (path for path, effect in dialect.output_fields.items() if effect is Effect.DECIDES):
        *holders, member = path.split(".")
        if len(member) < 6:
            continue
        output: dict[str, Any] = {member[:-3] + member[-2:]: "deny"}
        for holder in reversed(holders):
            output = {holder: output}
        spec = replace(hook("x"), dialect=name, event_name=next(iter(dialect.events)))
        result = HookResult(Ended.EXITED, 0, json.dumps(output).encode())
        verdict = dialect.read_output(spec, result)
        found = unread(dialect, result, verdict)
        assert verdict.failure or any(f"did you mean {member!r}?" in text for text in found), (path, verdict, found)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_denial_that_the_system_does_not_know_is_never_silent(name: str) -> None:
    dialect = DIALECTS[name]
    spec = replace(hook("x"), dialect=name, event_name=next(iter(dialect.events)))
    result = HookResult(Ended.EXITED, 0, b'{"blocked": true}')
    verdict = dialect.read_output(spec, result)
    assert unread(dialect, result, verdict) or verdict.failure or verdict.messages


def test_the_report_says_where_a_member_belongs() -> None:
    claude = DIALECTS["claude"]
    start = "printed what claude does not read: "
    assert reported(claude, {"permissionDecision": "deny"}) == (
        f"{start}'permissionDecision' (it belongs in hookSpecificOutput)",
    )
    assert reported(claude, {"hookSpecificOutput": {"permissionDecison": "deny", "hookEventName": "PreToolUse"}}) == (
        f"{start}'hookSpecificOutput.permissionDecison' (did you mean 'permissionDecision'?)",
    )
    (text,) = reported(claude, {"blocked": True})
    assert text.startswith(f"{start}'blocked' (it decides by hookSpecificOutput.permissionDecision or decision")
    (text,) = reported(claude, {f"x{number}": number for number in range(9)})
    assert text == f"{start}'x0', 'x1', 'x2', 'x3', and 5 more"


def test_what_another_system_knows_is_not_named_beside_a_verdict_of_this_one() -> None:
    both = {"permission": "deny", "hookSpecificOutput": {"permissionDecision": "deny"}, "cancel": True}
    assert reported(DIALECTS["claude"], both) == ()
    assert reported(DIALECTS["claude"], {"permission": "deny", "cancel": True}) != ()


@pytest.mark.parametrize("printed", ["", "text", "[1]", '"x"', '{"a":', "{" * 9000, '{"a": 1} {"b": 2}', "{}"])
def test_what_is_no_object_of_json_has_no_members(printed: str) -> None:
    assert reported(DIALECTS["claude"], printed) == ()


@pytest.mark.parametrize("printed", ['checked\n{"decision": "block"}', '```json\n{\n"decision": "block"\n}\n```'])
def test_a_decision_behind_other_text_is_reported(printed: str) -> None:
    (text,) = reported(DIALECTS["claude"], printed)
    assert text == "printed text around its JSON, which is then not read: print the text to standard error"


@pytest.mark.parametrize(
    "printed", ['{"a": 1}\ntext', 'text {"decision": "block"}', 'text\n{"other": 1}\n', "text\n{x"]
)
def test_other_json_behind_text_is_nothing(printed: str) -> None:
    assert reported(DIALECTS["claude"], printed) == ()


def test_a_hook_that_prints_what_it_got_has_misspelt_nothing() -> None:
    got = {
        "session_id": "s",
        "cwd": "/",
        "hook_event_name": "PreToolUse",
        "tool_name": "x",
        "tool_input": {"decision": 1},
    }
    assert reported(DIALECTS["claude"], got) == ()
    assert "'blocked'" in reported(DIALECTS["claude"], {**got, "blocked": True})[0]


def test_names_are_shown_as_text_and_cut() -> None:
    (text,) = reported(DIALECTS["claude"], {"\x1b[31m" + "x" * 500: 1})
    assert "\x1b" not in text
    assert len(text) < 200


def test_a_failure_because_of_such_a_member_is_followed_by_what_may_be_meant() -> None:
    own = DIALECTS["claude"]
    result = HookResult(Ended.EXITED, 0, b'{"hookSpecificOutput": {"permissionDecison": "deny"}}')
    failed = Verdict(failure="gave the member 'hookSpecificOutput.permissionDecison', which decides nothing there")
    assert "did you mean 'permissionDecision'?" in unread(own, result, failed)[0]
    assert unread(own, result, Verdict(failure="exited with status 1")) == ()


_DENIES = "it decides by hookSpecificOutput.permissionDecision or decision or hookSpecificOutput.decision.behavior"


@pytest.mark.parametrize(
    ("printed", "member"), [({"status": "blocked"}, "status"), ({"exit_code": 2}, "exit_code"), ({"x": "deny"}, "x")]
)
def test_a_member_that_denies_by_its_value_has_the_repair(printed: dict[str, object], member: str) -> None:
    [sentence] = reported(DIALECTS["claude"], printed)
    assert sentence.endswith(f"not read: {member!r} ({_DENIES}, or by the exit status of the hook itself)")


@pytest.mark.parametrize("printed", [{"status": "ok"}, {"exit_code": 0}, {"status": "no"}, {"exit_code": False}])
def test_a_member_that_denies_nothing_is_only_named(printed: dict[str, object]) -> None:
    [sentence] = reported(DIALECTS["claude"], printed)
    assert "it decides by" not in sentence


@pytest.mark.parametrize(
    "text", ["decision: block", "permission = deny", "deny", "Blocked.", "x\nverdict: rejected\ny"]
)
@pytest.mark.parametrize("name", ["claude", "gemini", "kiro", "lime"])
def test_a_denial_in_plain_text_is_reported(name: str, text: str) -> None:
    [sentence] = reported(DIALECTS[name], text)
    assert sentence.startswith(f"printed a denial as plain text, which {name} does not read: ")
    assert sentence.endswith("exit status decides" if name == "kiro" else "in JSON, or by the exit status")


@pytest.mark.parametrize(
    "text", ["all fine", "no", "stop", "blocked 3 of 7 tests", "decision: allow", "a deny rule", ""]
)
def test_other_plain_text_is_not(text: str) -> None:
    assert reported(DIALECTS["claude"], text) == ()
    assert reported(DIALECTS["claude"], "deny", code=2) == (), "it has denied"


@pytest.mark.parametrize(
    ("name", "printed", "words"),
    [
        ("claude", {"decision": "deny"}, "(it may be approve, block: did you mean 'block'?)"),
        ("claude", {"decision": "allow"}, "(it may be approve, block: did you mean 'approve'?)"),
        (
            "claude",
            {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "block"}},
            "(it may be allow, deny, ask, defer: did you mean 'deny'?)",
        ),
        ("copilot", {"permissionDecision": "dney"}, "(it may be allow, deny, ask: did you mean 'deny'?)"),
        ("cursor", {"permission": "confirm"}, "(it may be allow, deny, ask: did you mean 'ask'?)"),
        ("lime", {"decision": "nonsense"}, "(it may be block)"),
    ],
)
def test_a_wrong_word_comes_with_the_right_ones(name: str, printed: dict[str, object], words: str) -> None:
    dialect = DIALECTS[name]
    spec = replace(hook("x", Event.PRE_TOOL_USE), dialect=name, event_name=next(iter(dialect.events)))
    verdict = dialect.read_output(spec, HookResult(Ended.EXITED, 0, json.dumps(printed).encode()))
    assert verdict.failure.endswith(words)
