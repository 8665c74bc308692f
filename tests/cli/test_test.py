"""`hookproxy test` as people and programs get it: which files it runs, what it prints, and its exit statuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hookproxy.cli.test import main
from hookproxy.model.errors import EXIT_NO_POLICY, UserError

pytestmark = pytest.mark.usefixtures("forgets_hooks")

POLICY = '[permissions]\ndeny = ["drop"]\nask = ["send"]\n'


def case(tool: str, decision: str, name: str = "") -> str:
    named = f'name = "{name}"\n' if name else ""
    return f'[[case]]\n{named}call = {{ tool = "{tool}" }}\nexpect = {{ decision = "{decision}" }}\n\n'


GOOD = case("drop", "deny", "nothing is dropped") + case("send", "ask")
OF_USER = GOOD.replace("[[case]]", '[[case]]\nuser = "ann"')


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a policy, in which the program runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hookproxy.toml").write_text(POLICY)
    return tmp_path


def test_cases_that_pass_are_one_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "tests.toml").write_text(GOOD)
    assert main(["--config", "hookproxy.toml"]) == 0
    out = capfd.readouterr().out
    assert out.startswith("2 cases passed, 2 of 2 rules, limits and hooks decided one, ")
    assert out.count("\n") == 1


def test_what_failed_comes_first_with_its_place_and_who_decided(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "tests.toml").write_text(GOOD + case("drop", "allow", "dropping"))
    assert main(["tests.toml"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "FAIL tests.toml:10  dropping"
    assert lines[1] == "  decision expected allow"
    assert lines[2].startswith("           was deny, by the permission rule drop: it is about")
    assert lines[-1].startswith("1 of 3 cases failed")


def test_a_misspelt_tool_in_a_case_that_failed_has_its_nearest_name(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "tests.toml").write_text(case("drpo", "deny", "dropping") + case("other", "deny"))
    assert main(["tests.toml"]) == 1
    out = capfd.readouterr().out
    assert "no rule and no hook names drpo: did you mean 'drop'?" in out
    assert "names other" not in out


def test_a_rule_that_no_case_needs_is_shown_and_fails_only_with_mutate(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "tests.toml").write_text(case("drop", "deny"))
    assert main(["tests.toml"]) == 0
    assert "ask send  hookproxy.toml:3  decided no case" in capfd.readouterr().out
    assert main(["tests.toml", "--mutate"]) == 1
    assert "3 of 6 changes of them noticed" in capfd.readouterr().out


def test_the_default_is_all_files_beside_the_policy(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "tests.toml").write_text(case("drop", "deny"))
    (folder / "tests").mkdir()
    (folder / "tests" / "more.yaml").write_text("case: [{call: {tool: send}, expect: {decision: ask}}]\n")
    (folder / "tests" / "readme.md").write_text("no cases\n")
    assert main(["--config", "hookproxy.toml"]) == 0
    assert capfd.readouterr().out.startswith("2 cases passed")


def test_a_file_in_a_folder_of_tests_is_about_the_policy_above(folder: Path) -> None:
    (folder / "tests").mkdir()
    (folder / "tests" / "a.toml").write_text(GOOD)
    assert main(["tests/a.toml"]) == 0
    assert main(["tests"]) == 0
    assert main(["."]) == 0


def test_a_file_may_name_its_policy(folder: Path) -> None:
    (folder / "policies").mkdir()
    (folder / "policies" / "strict.toml").write_text('[permissions]\ndeny = ["*"]\n')
    (folder / "tests.toml").write_text('config = "policies/strict.toml"\n' + case("read", "deny"))
    assert main(["tests.toml"]) == 0
    assert main(["tests.toml", "--config", "hookproxy.toml"]) == 1  # which is what somebody wants to know of another


def test_several_policies_have_a_line_each(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "hookproxy.toml").write_text(POLICY)
        (folder / name / "tests.toml").write_text(GOOD)
    assert main(["a", "b"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["a/hookproxy.toml", "b/hookproxy.toml", "together"]


def test_the_json_document_has_all(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "tests.toml").write_text(case("drop", "allow") + case("send", "ask"))
    assert main(["tests.toml", "--json"]) == 1
    document = json.loads(capfd.readouterr().out)
    [policy] = document["policies"]
    assert (document["v"], document["status"], policy["policy"]) == (1, 1, str(folder / "hookproxy.toml"))
    assert [one["passed"] for one in policy["cases"]] == [False, True]
    assert policy["cases"][0]["steps"][0]["differences"][0]["what"] == "decision"
    assert policy["cases"][1]["decided_by"] == ["ask send"]
    assert (policy["undecided"], policy["mutants"]) == ([], None)


def test_junit_is_xml_whatever_a_policy_says(folder: Path) -> None:
    (folder / "hookproxy.toml").write_text("[[hooks.PreToolUse]]\ncommand = \"printf '<\\\\001&>' >&2; exit 2\"\n")
    (folder / "tests.toml").write_text(case("drop", "allow", 'a <b> "c"'.replace('"', "'")) + case("drop", "deny"))
    assert main(["tests.toml", "--junit", "out.xml"]) == 1
    [suite] = ET.parse(folder / "out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    first, second = suite
    assert (first.get("name"), second.get("name")) == ("a <b> 'c'", "drop")
    assert "<\ufffd&>" in (first[0].text or "")
    assert len(second) == 0


TOKEN = f"ghp_{'k3X9' * 9}"
OTHER_TOKEN = f"ghp_{'Zq71' * 9}"


@pytest.mark.parametrize("options", [[], ["--json"], ["--junit", "out.xml"]])
def test_secrets_in_reasons_and_arguments_are_masked(
    folder: Path, options: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = {"token": OTHER_TOKEN, "to": "x"}
    rewritten = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": arguments}})
    (folder / "rewrite.sh").write_text(f"echo '{rewritten}'\n")
    (folder / "hookproxy.toml").write_text(
        f'[[hooks.PreToolUse]]\nmatcher = "drop"\ncommand = "echo no {TOKEN} >&2; exit 2"\n'
        '[[hooks.PreToolUse]]\nmatcher = "send"\ncommand = "sh rewrite.sh"\n'
    )
    (folder / "tests.toml").write_text(
        '[[case]]\nname = "reason"\ncall = { tool = "drop" }\nexpect = { decision = "allow" }\n'
        f'[[case]]\nname = "arguments"\ncall = {{ tool = "send", arguments = {{ token = "{TOKEN}", to = "x" }} }}\n'
        f'expect = {{ arguments = {{ token = "{TOKEN}", to = "x" }} }}\n'
        '[[case]]\nname = "both"\ncall = { tool = "send" }\nexpect = { arguments = { to = "why" } }\n'
    )
    assert main(["tests.toml", *options]) == 1
    shown = capfd.readouterr().out
    if "--junit" in options:
        shown += (folder / "out.xml").read_text()
    assert TOKEN not in shown
    assert OTHER_TOKEN not in shown
    assert "no [masked" in shown
    assert "the same, but for what is masked here" in " ".join(shown.split())
    assert "why" in shown, "what is no secret is shown"


def test_junit_has_each_case_once_if_several_have_one_name(folder: Path) -> None:
    (folder / "tests.toml").write_text(GOOD + GOOD + GOOD)
    assert main(["tests.toml", "--junit", "out.xml"]) == 0
    names = [case.get("name", "") for case in ET.parse(folder / "out.xml").iter("testcase")]
    assert names[::2] == [names[0], f"{names[0]} (2)", f"{names[0]} (3)"]
    assert len(set(names)) == 6


def test_junit_has_the_mutants_that_nobody_notices(folder: Path) -> None:
    (folder / "tests.toml").write_text(case("drop", "deny"))
    assert main(["tests.toml", "--mutate", "--junit", "out.xml"]) == 1
    _, mutants = ET.parse(folder / "out.xml").getroot()
    assert (mutants.get("tests"), mutants.get("failures")) == ("6", "3")


def test_a_hook_file_of_another_system_is_a_policy(folder: Path) -> None:
    settings = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "tests.toml").write_text(case("read", "deny"))
    assert main(["tests.toml", "--hooks", "claude=settings.json"]) == 0


@pytest.mark.slow
def test_many_failures_take_twenty_lines(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "tests.toml").write_text("".join(case("drop", "allow", f"case {number}") for number in range(50)))
    assert main(["tests.toml"]) == 1
    out = capfd.readouterr().out
    assert out.count("\n") <= 20
    assert "and 40 more: --verbose" in out
    assert main(["tests.toml", "--verbose"]) == 1
    assert capfd.readouterr().out.count("FAIL") == 50


def test_recorded_calls_are_cases_and_what_they_lack_is_said(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call = {"v": 1, "session": "s", "server": "mail", "tool": "send", "id": 1, "decision": "allow", "result": "ok"}
    lines = [call | {"arguments": {"a": 1}}, call | {"arguments": {}, "masked": ["x"], "tool": "read"}, call]
    (folder / "calls.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["calls.jsonl"]) == 1
    out = capfd.readouterr().out
    assert "FAIL calls.jsonl:1  send of mail" in out
    assert "1 recorded call recorded only with a digest" in out
    assert "1 recorded call with masked or shortened arguments" in out


def test_the_environment_is_as_before(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKPROXY_X", "1")
    (folder / "tests.toml").write_text(GOOD)
    before = dict(os.environ)
    assert main(["tests.toml"]) == 0
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("files", "arguments", "status", "message", "hint"),
    [
        ({}, [], 2, "./hookproxy.toml is not read unless it is named", "hookproxy test --config hookproxy.toml"),
        ({}, ["--config", "hookproxy.toml"], 2, "there is no tests.toml", "write tests.toml"),
        ({}, ["absent.toml"], 2, "absent.toml: there is no such file", "name a file with cases"),
        ({"tests.toml": GOOD}, ["test.toml"], 2, "test.toml: there is no such file", "did you mean 'tests.toml'?"),
        ({"a.txt": "x"}, ["a.txt"], 2, "is not a file with cases", ".toml"),
        ({"tests.toml": ""}, ["tests.toml"], 2, "tests.toml: has no cases", "case = [{ name = "),
        ({"tests.toml": GOOD, "hookproxy.toml": ""}, ["tests.toml"], 4, "no policy is loaded", "--config FILE"),
        ({"x/y/z.toml": GOOD}, ["x/y/z.toml"], 4, "no hookproxy.toml or gateway.toml is beside it", "config ="),
        ({"tests.toml": GOOD}, ["tests.toml", "--junit", "no/x.xml"], 2, "cannot be written", "mkdir -p"),
        ({"tests.toml": GOOD, "gateway.toml": ""}, ["tests.toml"], 2, "hookproxy.toml and gateway.toml", "--config"),
        ({"tests.toml": OF_USER}, ["tests.toml"], 2, "user is for a gateway.toml", "remove user"),
        ({"hookproxy.toml": "[permission]\n", "tests.toml": GOOD}, ["tests.toml"], 2, "permission: unknown", "did you"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_says_why(
    folder: Path, files: dict[str, str], arguments: list[str], status: int, message: str, hint: str
) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with pytest.raises(UserError) as caught:
        main(arguments)
    assert (caught.value.status, message in caught.value.message) == (status, True), caught.value.message
    assert hint in caught.value.hint


def test_without_any_policy_the_status_is_that_of_no_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        main([])
    assert caught.value.status == EXIT_NO_POLICY


def test_a_policy_that_is_not_there_is_told_before_all_that_follows(folder: Path) -> None:
    with pytest.raises(UserError, match=r"hookproxi\.toml: there is no such file") as raised:
        main(["--config", "hookproxi.toml"])
    assert raised.value.hint == "did you mean 'hookproxy.toml'?"
