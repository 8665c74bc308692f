"""What a policy decides about tools, without a call: the same as the code that judges calls, for any of them."""

from __future__ import annotations

import os
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.hooks.explain import ANY_OTHER, Answer, Explanation, explain, hooks_of_call
from hookproxy.model.hooks import Event, Session, Tool
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import DEFAULTS, OnAsk, Settings
from hookproxy.trial.run import TrialCall, TrialRunner, plan
from tests.support.examples import examples
from tests.support.proxy_rig import DIRECT_LOOP, group, hook

pytestmark = pytest.mark.anyio

SERVER: Final = "git"
TOOLS: Final = ("git_push", "git_status", "write_file", "run_command", "query")
RULES: Final = (
    "git_*",
    "git_push",
    "*",
    "write_*",
    "Bash",
    "Bash(rm:*)",
    "run_command(rm:*)",
    "mcp__git__query",
    "Write",
)
ARGUMENTS: Final = (
    b"{}",
    b'{"command":"rm -rf x"}',
    b'{"command":"ls"}',
    b'{"path":"a"}',
    b'{"path":"a","content":"b"}',
)
SESSION: Final = Session("s", SERVER, "/", "/")


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def explained(tool: str, policy: Settings, *groups: object) -> Explanation:
    return explain(groups, policy, SERVER, [Tool(tool)])[0]  # type: ignore[arg-type]


async def decided(tool: str, arguments: bytes, policy: Settings) -> str:
    async with TrialRunner((), plan(None, False, policy), SESSION, os.environ) as trials:
        return (await trials.call(TrialCall(tool, arguments))).decision


_RULES: Final = st.lists(st.sampled_from(RULES), max_size=3, unique=True).map(tuple)
_DEFAULT: Final = st.sampled_from(DEFAULTS)
_MANAGED: Final = st.builds(Settings, deny=_RULES, ask=_RULES, allow=_RULES, default_permission=_DEFAULT)
_POLICIES: Final = st.builds(
    Settings, deny=_RULES, ask=_RULES, allow=_RULES, default_permission=_DEFAULT, managed=st.none() | _MANAGED
)
_DECISIONS: Final = {"deny": Answer.DENY, "asked": Answer.ASK, "allow": Answer.ALLOW}


@examples(20)
@given(policy=_POLICIES, tool=st.sampled_from(TOOLS), arguments=st.sampled_from(ARGUMENTS))
@pytest.mark.slow
async def test_what_is_said_of_all_calls_is_what_becomes_of_each(policy: Settings, tool: str, arguments: bytes) -> None:
    explanation = explained(tool, policy)
    decision = _DECISIONS[await decided(tool, arguments, policy)]
    if not explanation.otherwise:
        assert decision is explanation.decision
    else:
        possible = {explanation.decision, *(rule.decision for rule in explanation.otherwise)}
        assert decision in possible
    order = list(Answer)
    if explanation.by is None or not explanation.by.is_default:
        assert order.index(decision) >= order.index(explanation.decision)  # never laxer than what is said
    if explanation.is_hidden:
        assert decision is Answer.DENY


def test_the_strictest_rule_about_every_call_decides_and_is_named_with_its_place() -> None:
    places = {"deny git_push": "/g.toml:3: permissions.deny[0]", "ask git_*": "/g.toml:4: permissions.ask[0]"}
    policy = Settings(deny=("git_push",), ask=("git_*",), rule_places=places)
    pushed, status = explained("git_push", policy), explained("git_status", policy)
    assert pushed.by is not None
    assert (pushed.decision, pushed.by.place, pushed.is_hidden) == (Answer.DENY, places["deny git_push"], True)
    assert status.by is not None
    assert (status.decision, status.by.place, status.is_hidden) == (Answer.ASK, places["ask git_*"], False)


def test_the_default_decides_what_no_rule_is_about() -> None:
    places = {"default": "/g.toml:2: permissions.default"}
    policy = Settings(default_permission="deny", allow=("git_*", "query(a)"), rule_places=places)
    pushed, query, other = (explained(tool, policy) for tool in ("git_push", "query", "write_file"))
    assert pushed.decision is Answer.ALLOW
    assert query.by is not None
    assert (query.decision, query.by.text, query.by.place) == (Answer.DENY, 'default = "deny"', places["default"])
    assert ([rule.text for rule in query.otherwise], query.is_hidden) == (["query(a)"], False)
    assert (other.decision, other.otherwise, other.is_hidden) == (Answer.DENY, (), True)


def test_a_rule_about_arguments_decides_some_calls() -> None:
    explanation = explained("run_command", Settings(deny=("Bash(rm:*)",)))
    assert explanation.decision is Answer.ALLOW
    assert [rule.text for rule in explanation.otherwise] == ["Bash(rm:*)"]
    assert "Bash" in explanation.known_as


def test_a_rule_about_files_decides_some_calls_of_a_tool_that_runs_commands() -> None:
    policy = Settings(deny=("Read(**/.env)",), ask=("Write",))
    assert [rule.text for rule in explained("run_command", policy).otherwise] == ["Read(**/.env)"]
    other = Tool("get_weather", b'{"type":"object","properties":{"city":{"type":"string"}}}')
    assert explain((), policy, SERVER, [other])[0].otherwise == ()


def test_a_rule_about_arguments_changes_nothing_of_what_is_refused_anyway() -> None:
    assert explained("run_command", Settings(deny=("Bash(rm:*)", "run_*"))).otherwise == ()


@pytest.mark.parametrize(
    ("on_ask", "answer"), [(OnAsk.DENY, Answer.DENY), (OnAsk.ALLOW, Answer.ALLOW), (OnAsk.ELICIT, Answer.ASK)]
)
def test_what_on_ask_answers_is_what_becomes_of_a_call(on_ask: OnAsk, answer: Answer) -> None:
    assert explained("query", Settings(ask=("query",), on_ask=on_ask)).decision is answer


def test_a_managed_ask_is_answered_by_no_setting_of_the_user() -> None:
    policy = Settings(on_ask=OnAsk.ALLOW, managed=Settings(ask=("query",)))
    assert explained("query", policy).decision is Answer.ASK


def test_hooks_and_limits_are_those_that_a_call_would_meet() -> None:
    limit = Limit("git_*", 3, Per.HOUR, "limits[0]", "/g.toml:9: limits[0]")
    guard, other = hook("exit 0", matcher="git_.*"), hook("exit 0", matcher="write_file")
    after = hook("exit 0", event=Event.POST_TOOL_USE)
    explanation = explained("git_push", Settings(limits=(limit,)), group(guard, other, after))
    assert [one.spec for one in explanation.hooks] == [guard, after]
    assert [one.spec for one in explanation.deciding_hooks] == [guard]
    assert explanation.limits == (limit,)
    assert hooks_of_call([group(guard, other)], Settings(), SESSION, Tool("git_push"), b"{}") == {id(guard)}


def test_any_other_tool_is_one_that_only_rules_about_all_name() -> None:
    assert explained(ANY_OTHER, Settings(deny=("git_*", "write_?ile"))).decision is Answer.ALLOW
    assert explained(ANY_OTHER, Settings(deny=("*",))).decision is Answer.DENY
