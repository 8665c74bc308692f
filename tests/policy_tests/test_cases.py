"""Files with cases: what they mean, and what is wrong with them, with the place and a repair."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookproxy.model.errors import UserError
from hookproxy.policy_tests.cases import EMPTY_RESULT, Case, TextExpected, in_folder, read_cases
from hookproxy.protocol.approval_messages import Approval

FORCE = 'call = { tool = "push", arguments = { force = true } }\n'
DENY = 'expect = { decision = "deny" }\n'


def timed(hour: str) -> str:
    return f"[[case.steps]]\n{FORCE}time = 2026-11-23T{hour}:00:00Z\n{DENY}"


def write(folder: Path, text: str, name: str = "tests.toml") -> str:
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


def cases_of(folder: Path, text: str, name: str = "tests.toml") -> tuple[Case, ...]:
    return read_cases(write(folder, text, name)).cases


def test_a_case_is_a_call_and_what_is_expected(tmp_path: Path) -> None:
    [case] = cases_of(tmp_path, '[[case]]\nname = "by force"\nserver = "git"\nagent = "zed 1"\n' + FORCE + DENY)
    assert (case.name, case.line, case.server, case.agent) == ("by force", 1, "git", "zed 1")
    [step] = case.steps
    assert (step.call.tool, json.loads(step.call.arguments)) == ("push", {"force": True})
    assert (step.expected.decision, step.expected.failure, step.call.answer, step.times) == ("deny", False, None, 1)


def test_yaml_means_the_same(tmp_path: Path) -> None:
    text = """
case:
  - name: by force
    call: {tool: push, arguments: {force: true}}
    time: 2026-11-23T12:00:00+01:00
    answer: allow
    expect: {decision: deny}
"""
    [case] = cases_of(tmp_path, text, "tests.yaml")
    [step] = case.steps
    assert (case.line, step.call.answer, step.at) == (
        3,
        Approval.ONCE,
        datetime(2026, 11, 23, 11, tzinfo=UTC).timestamp(),
    )


def test_a_request_of_a_method_has_params(tmp_path: Path) -> None:
    request = 'request = { method = "resources/read", params = { uri = "file:///a" } }\n'
    [case] = cases_of(tmp_path, f"[[case]]\n{request}{DENY}")
    assert (case.steps[0].call.tool, json.loads(case.steps[0].call.arguments)) == (
        "resources/read",
        {"uri": "file:///a"},
    )


def test_a_request_that_is_a_call_is_one(tmp_path: Path) -> None:
    params = '{ name = "push", arguments = { force = true } }'
    [case] = cases_of(tmp_path, f'[[case]]\nrequest = {{ method = "tools/call", params = {params} }}\n{DENY}')
    assert (case.steps[0].call.tool, json.loads(case.steps[0].call.arguments)) == ("push", {"force": True})


def test_steps_have_a_result_where_one_of_them_has(tmp_path: Path) -> None:
    text = f'[[case]]\n[[case.steps]]\n{FORCE}{DENY}[[case.steps]]\n{FORCE}result = "x"\ntimes = 3\n{DENY}'
    [case] = cases_of(tmp_path, text)
    first, second = case.steps
    assert (first.call.result, first.times, second.times) == (EMPTY_RESULT, 1, 3)
    assert json.loads(second.call.result or b"") == {"content": [{"type": "text", "text": "x"}]}


def test_the_folder_of_a_case_stands_in_its_texts(tmp_path: Path) -> None:
    text = '[[case]]\ncall = { tool = "read", arguments = { path = "${FOLDER}/a" } }\n'
    text += 'expect = { reads = { contains = ["${FOLDER}"] }, arguments = { path = "${FOLDER}/a" } }\n'
    [case] = cases_of(tmp_path, text)
    step = in_folder(case.steps[0], '/tmp/a "b"')
    assert json.loads(step.call.arguments) == {"path": '/tmp/a "b"/a'} == json.loads(step.expected.arguments or b"")
    assert step.expected.reads == TextExpected(None, ('/tmp/a "b"',), ())


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("[[case]\n", ":1", "not TOML", "[[case]]"),
        (f"[[case]]\n{FORCE}{DENY}anwser = 1\n", ":4", "case[0].anwser: unknown key", "did you mean 'answer'?"),
        (f'[[case]]\n{FORCE}expect = {{ decison = "deny" }}\n', ":3", "expect.decison", "did you mean 'decision'?"),
        (f'[[case]]\n{FORCE}expect = {{ decision = "denied" }}\n', ":3", "expect.decision", "did you mean 'deny'?"),
        (f"[[cases]]\n{FORCE}{DENY}", ":1", "unknown key cases", "did you mean 'case'?"),
        (f"[[case]]\n{FORCE}", ":1", "expects nothing", "expect = {"),
        ("[[case]]\ntool = 'x'\n", ":2", "case[0].tool: unknown key", "write call = { tool = … }"),
        (f"[[case]]\n{FORCE}decision = 'deny'\n", ":3", "case[0].decision", "write expect = { decision = … }"),
        (f"[[case]]\n[case.steps]\n{FORCE}", ":2", "must be an array of tables", "write [[case.steps]]"),
        ("[[case]]\nrequest = { method = 'x', arguments = { } }\n", ":2", "unknown key", "did you mean 'params'?"),
        (f"config = 'gone.toml'\n[[case]]\n{FORCE}{DENY}", ":1", "config: there is no file", "that exists"),
        (f"[[case]]\n{FORCE}expect = {{ }}\n", ":1", "expects nothing", "expect = {"),
        (f"[[case]]\n{DENY}", ":1", "has no call", "call = {"),
        (f"[[case]]\n{FORCE}{DENY}time = 2026-11-23T12:00:00\n", ":4", "has no time zone", "+01:00"),
        (f"[[case]]\n{FORCE}{DENY}time = 12:00:00\n", ":4", "time", "write"),
        (f"[[case]]\n{FORCE}{DENY}times = 0\n", ":4", "times", "1"),
        (f'[[case]]\n{FORCE}{DENY}groups = ["a"]\n', ":4", "are the groups of a user", "user ="),
        (f'[[case]]\n{FORCE}{DENY}files = {{ "../x" = "" }}\n', ":4", "is not a path below", "dir/file"),
        (f"[[case]]\n{FORCE}{DENY}result = 7\n", ":4", "neither a text nor a table", "result ="),
        (f"[[case]]\n{FORCE}expect = {{ reads = 7 }}\n", ":3", "expect.reads is neither", "contains"),
        (f'[[case]]\n{FORCE}expect = {{ reads = {{ lack = "x" }} }}\n', ":3", "unknown key", "did you mean 'lacks'?"),
        (f'[[case]]\n{FORCE}expect = {{ reads = {{ lacks = "" }} }}\n', ":3", "neither a text", "lacks ="),
        (f'[[case]]\nrequest = {{ method = "resource/read" }}\n{DENY}', ":2", "not a method", "'resources/read'"),
        (f"[[case]]\n{FORCE}[[case.steps]]\n{FORCE}{DENY}", ":2", "stands beside steps", "[[case.steps]]"),
        (f"[[case]]\n{timed('12')}{timed('11')}", ":8", "is before that of the step above", "put the steps in order"),
        (f"[[case]]\n{timed('12')}[[case.steps]]\n{FORCE}{DENY}", ":6", "do not both have a time", "for each"),
        (f'[[case]]\n{FORCE}request = {{ method = "resources/read" }}\n{DENY}', ":1", "a call and a request", "write"),
    ],
)
def test_what_is_wrong_has_a_place_and_a_repair(tmp_path: Path, text: str, place: str, message: str, hint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        read_cases(path)
    assert caught.value.message.startswith(f"{path}{place}: ")
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("case:\n  - {call: [}\n", ":2", "not YAML"),
        ("case:\n  - name: a\n    call: {tool: x}\n    expct: {decision: deny}\n", ":4", "case[0].expct: unknown key"),
        ("case:\n  - name: a\n    call: {tool: x}\n    expect:\n      reason: 7\n", ":5", "expect.reason"),
        ("case:\n  - call: {tool: x}\n    call: {tool: y}\n", ":3", "appears twice"),
    ],
)
def test_what_is_wrong_in_yaml_has_its_line(tmp_path: Path, text: str, place: str, message: str) -> None:
    path = write(tmp_path, text, "tests.yml")
    with pytest.raises(UserError) as caught:
        read_cases(path)
    assert caught.value.message.startswith(f"{path}{place}: ")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("- name: x\n", "write `case:`, and the cases below it"),
        ("case:\n\t- name: x\n", "write blanks in the place of the tab"),
        ("case:\n - name: x\n  call: {tool: x}\n", "begin line 3 in the column of the other lines"),
        ("case:\n - call: {tool: x\n   name: y\n", "close the bracket or the quote"),
    ],
)
def test_what_is_not_yaml_has_a_repair(tmp_path: Path, text: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        read_cases(write(tmp_path, text, "tests.yaml"))
    assert hint in caught.value.hint


def test_a_policy_is_not_a_file_with_cases(tmp_path: Path) -> None:
    path = write(tmp_path, "", "hookproxy.toml")
    with pytest.raises(UserError) as caught:
        read_cases(path)
    assert caught.value.hint == f"hookproxy test --config {path}"


def record(**members: object) -> str:
    call: dict[str, object] = {"v": 1, "session": "s", "server": "git", "tool": "push", "id": 7, "arguments": {"a": 1}}
    return json.dumps(call | {"decision": "allow", "result": "ok"} | members) + "\n"


def test_recorded_calls_are_cases_with_their_decisions(tmp_path: Path) -> None:
    text = record() + record(decision="deny") + record(decision="asked-deny") + record(rewritten={"a": 2})
    cases = cases_of(tmp_path, text, "audit.jsonl")
    assert [case.steps[0].expected.decision for case in cases] == ["allow", "deny", "ask", "allow"]
    assert [case.steps[0].expected.arguments for case in cases] == [b'{"a": 1}', None, None, b'{"a": 2}']
    assert (cases[2].steps[0].call.answer, cases[3].line, cases[0].server) == (Approval.NO, 4, "git")


def test_recorded_calls_that_cannot_be_decided_again_are_counted(tmp_path: Path) -> None:
    text = record(arguments_sha256="0") + record(decision="deny", by="limits[0]") + record(decision="")
    text = text.replace('"arguments": {"a": 1}, ', "", 1)
    file = read_cases(write(tmp_path, text, "audit.jsonl"))
    assert (file.cases, file.skipped.digests, file.skipped.limited, file.skipped.undecided) == ((), 1, 1, 1)


def test_recorded_calls_with_masked_parts_are_cases_and_counted(tmp_path: Path) -> None:
    file = read_cases(write(tmp_path, record(masked=["github"]) + record(), "audit.jsonl"))
    assert (len(file.cases), file.skipped.in_part) == (2, 1)


def test_a_line_that_is_no_record_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, record() + "oops\n", "audit.jsonl")
    with pytest.raises(UserError, match=r"audit.jsonl:2: not JSON"):
        read_cases(path)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("expect: {decision: deny, reason: }", "expect.reason"),
        ("expect: {decision: deny, arguments: ~}", "expect.arguments"),
        ("expect: {decision: deny}\n    result: null", "result"),
        ("expect: {decision: deny}\n    user:", "user"),
    ],
)
def test_a_key_without_a_value_is_an_error(tmp_path: Path, line: str, key: str) -> None:
    text = "case:\n  - call: {tool: push, arguments: {a: null, b: [~]}}\n    "
    with pytest.raises(UserError, match=rf"case\[0\]\.{key} has no value") as raised:
        cases_of(tmp_path, text + line, "tests.yaml")
    assert "remove the key" in str(raised.value.hint)
    assert len(cases_of(tmp_path, text + "expect: {decision: deny}", "tests.yaml")) == 1


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
def test_what_no_json_can_say_is_an_error(tmp_path: Path, number: str) -> None:
    with pytest.raises(UserError, match=r"case\[0\]\.call\.arguments\.a is .*, which JSON cannot say"):
        cases_of(tmp_path, f'[[case]]\ncall = {{ tool = "push", arguments = {{ a = {number} }} }}\n' + DENY)


def test_a_yaml_file_that_is_no_mapping_is_told_how_one_begins(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        cases_of(tmp_path, "- call: {tool: push}", "tests.yaml")
    assert "`case:`" in str(raised.value.hint)
