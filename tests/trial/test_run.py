"""One call on real hooks without a server: the decision of a session, without its other effects."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Event
from hookproxy.model.limits import Limit, Per
from hookproxy.model.secret_settings import SecretSettings, SecretsRestore, Source
from hookproxy.model.settings import OnAsk, OnFailure, Settings
from hookproxy.trial.run import SIDE_EVENTS, TrialCall, TrialResult, TrialRunner, plan
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, group, hook, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, POST, FAILURE, REQUEST = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)
RESULT: Final = b'{"content":[{"type":"text","text":"done"}]}'
ERROR: Final = b'{"content":[{"type":"text","text":"no"}],"isError":true}'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


async def tried(
    *groups: Group,
    alone: Event | None = None,
    settings: Settings | None = None,
    result: bytes | None = None,
    arguments: bytes = b'{"a":1.0}',
) -> TrialResult:
    planned = plan(alone, result is not None, settings or Settings())
    async with TrialRunner(groups, planned, SESSION, os.environ) as trials:
        return await trials.call(TrialCall("write", arguments, result))


def text_of(trial: TrialResult) -> str:
    content: list[dict[str, Any]] = json.loads(trial.response)["content"]
    return "\n".join(block["text"] for block in content)


def events(trial: TrialResult) -> list[str]:
    return [run.spec.event.value for run in trial.observation.runs]


# --- before the call ---


async def test_a_call_that_its_hooks_allow_is_allowed_and_its_post_hooks_do_not_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    trial = await tried(group(hook("exit 0"), hook(f"touch {shlex.quote(str(ran))}", POST)))
    assert (trial.decision, trial.allowed, trial.failed, trial.response) == ("allow", True, False, b"")
    assert events(trial) == ["PreToolUse"]
    assert not ran.exists()
    assert trial.observation.after == []


async def test_a_denial_gives_the_text_that_the_model_would_read() -> None:
    trial = await tried(group(hook("echo not here >&2; exit 2")), result=RESULT)
    assert (trial.decision, trial.allowed, trial.failed) == ("deny", False, False)
    assert trial.decided_by == ("the PreToolUse hook guard", "not here")
    assert text_of(trial) == "Blocked by the PreToolUse hook guard: not here"


async def test_the_exact_input_of_a_hook_is_recorded(tmp_path: Path) -> None:
    stdin, env = tmp_path / "stdin", tmp_path / "env"
    spec = hook(f"cat > {shlex.quote(str(stdin))}; env -0 > {shlex.quote(str(env))}")
    trial = await tried(group(replace(spec, env=(("OWN", "x\ny"),), cwd=str(tmp_path))))
    (run,) = trial.observation.runs
    assert run.stdin == stdin.read_bytes()
    got = dict(pair.split("=", 1) for pair in env.read_text().rstrip("\0").split("\0"))
    assert {name: got[name] for name in run.variables} == dict(run.variables)
    assert run.variables["OWN"] == "x\ny"
    assert run.variables["PWD"] == str(tmp_path)
    of_the_shell = {"_", "SHLVL", "OLDPWD"}
    assert got.keys() - run.variables.keys() - of_the_shell <= os.environ.keys()


async def test_removed_variables_of_other_systems_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COPILOT_CLI", "1")
    monkeypatch.setenv("HOOK_TOOL_NAME", "of another event")
    trial = await tried(group(hook("exit 0")))
    assert trial.observation.runs[0].removed_variables == ("COPILOT_CLI", "HOOK_TOOL_NAME")


async def test_the_next_group_sees_a_rewrite_and_it_is_what_would_run() -> None:
    first = stub_group(stub(PRE, arguments={"a": 2}))
    second = stub_group(stub(PRE, "cat > /dev/null; echo '{}'"))
    trial = await tried(first, second)
    assert trial.rewritten == b'{"a": 2}'
    assert json.loads(trial.observation.runs[1].stdin)["arguments"] == {"a": 2}


async def test_a_failed_hook_makes_a_blocked_call_failed_and_is_otherwise_only_reported() -> None:
    for rule, expected in ((OnFailure.DENY, ("deny", False, True)), (OnFailure.ALLOW, ("allow", True, False))):
        trial = await tried(group(hook("exit 7")), settings=Settings(on_failure=rule))
        assert (trial.decision, trial.allowed, trial.failed) == expected
        statement = trial.observation.runs[0].hook_run
        assert statement
        assert statement.verdict.failure == "exited with status 7"


async def test_a_person_is_not_asked_and_the_call_is_not_allowed() -> None:
    trial = await tried(stub_group(stub(PRE, permission="ask", reason="sure?", arguments={"b": 1})), result=RESULT)
    assert (trial.decision, trial.allowed, trial.failed) == ("asked", False, False)
    assert trial.decided_by == ("the PreToolUse hook stub", "sure?")
    assert "Allow the tool write of files to run?" in trial.approval_message
    assert "sure?" in trial.approval_message
    assert trial.proposed == b'{"b": 1}'
    assert trial.observation.after == []


@pytest.mark.parametrize(("on_ask", "decision"), [(OnAsk.DENY, "asked-deny"), (OnAsk.ALLOW, "asked-allow")])
async def test_an_answer_by_the_configuration_decides(on_ask: OnAsk, decision: str) -> None:
    trial = await tried(stub_group(stub(PRE, permission="ask")), settings=Settings(on_ask=on_ask))
    assert (trial.decision, trial.approval_message) == (decision, "")
    assert trial.allowed is (on_ask is OnAsk.ALLOW)
    assert trial.decided_by[0].endswith(f"on_ask {'denies' if on_ask is OnAsk.DENY else 'allows'}")


async def test_permission_rules_decide_as_in_a_session() -> None:
    for rules, decision in (
        (Settings(deny=("wri*",)), "deny"),
        (Settings(ask=("write(1.0)",)), "asked"),
        (Settings(allow=("write",), ask=("other",)), "allow"),
        (Settings(deny=("mcp__files__write",)), "deny"),
    ):
        assert (await tried(settings=rules)).decision == decision, rules
    assert (await tried(settings=Settings(deny=("wri*",)))).decided_by == (
        "the permission rule wri*",
        "it is about every call of this tool",
    )


async def test_a_permission_request_hook_answers_instead_of_the_person() -> None:
    asks = stub(PRE, permission="ask")
    yes = await tried(stub_group(asks, stub(REQUEST, permission="allow")))
    assert (yes.decision, yes.allowed, events(yes)) == ("asked-allow", True, ["PreToolUse", "PermissionRequest"])
    no = await tried(stub_group(asks, stub(REQUEST, permission="deny", reason="never")))
    assert (no.decision, no.allowed) == ("asked-deny", False)
    assert no.decided_by == ("the PermissionRequest hook stub", "never")


async def test_hooks_that_only_observe_a_refusal_or_a_question_are_awaited() -> None:
    denied = await tried(stub_group(stub(PRE, permission="deny"), stub(Event.PERMISSION_DENIED, feedback=["x"])))
    assert events(denied) == ["PreToolUse", "PermissionDenied"]
    assert all(run.hook_run for run in denied.observation.runs)
    asked = await tried(stub_group(stub(PRE, permission="ask"), stub(Event.NOTIFICATION)))
    assert events(asked) == ["PreToolUse", "Notification"]


async def test_a_background_hook_is_awaited_and_decides_nothing() -> None:
    trial = await tried(stub_group(replace(stub(PRE, permission="deny"), background=True)))
    assert trial.decision == "allow"
    assert [bool(run.hook_run) for run in trial.observation.runs] == [True]


async def test_an_ambiguous_call_is_refused_before_any_hook() -> None:
    for arguments in (b'{"a":1,"a":2}', b'{"a":{"b":1,"b":2}}', b'{"Path":1,"path":2}', b'{"a":"\\ud800"}'):
        trial = await tried(group(hook("exit 0")), arguments=arguments)
        assert (trial.decision, trial.allowed, trial.failed) == ("deny", False, False)
        assert trial.unreadable
        assert trial.observation.runs == []


async def test_a_call_that_is_too_long_is_refused_as_in_a_session() -> None:
    trial = await tried(group(hook("exit 0")), settings=Settings(max_message_bytes=100))
    assert (trial.decision, trial.observation.runs) == ("deny", [])
    assert "100" in trial.unreadable


async def test_aliases_are_mapped_back_in_the_arguments_that_would_run() -> None:
    settings = Settings(aliases=(Alias("write", "Write", {"file_path": "path"}),))
    rewriting = stub_group(stub(PRE, arguments={"file_path": "b"}, permission="ask"))
    trial = await tried(rewriting, settings=settings, arguments=b'{"path":"a"}')
    document = json.loads(trial.observation.runs[0].stdin)
    assert (document["tool"], document["arguments"]) == ("Write", {"file_path": "a"})
    assert (trial.decision, json.loads(trial.proposed)) == ("asked", {"path": "b"})
    only = await tried(group(hook("exit 2", matcher="Write")), settings=settings)
    assert only.decision == "deny"


async def test_a_refusal_by_a_rate_limit_names_the_limit() -> None:
    settings = Settings(limits=(Limit("write", 1, Per.SESSION, "limits[0]"),))
    async with TrialRunner((), plan(None, False, settings), SESSION, os.environ) as trials:
        decisions = [await trials.call(TrialCall("write")) for _ in range(2)]
    assert [one.decision for one in decisions] == ["allow", "deny"]
    assert decisions[1].decided_by[0] == "limits[0] of hookproxy.toml"


async def test_a_call_without_hooks_passes_unread() -> None:
    trial = await tried(group(hook("exit 2", matcher="other")), result=RESULT)
    assert (trial.decision, trial.is_judged, trial.response) == ("allow", False, RESULT)


async def test_nothing_is_audited(tmp_path: Path) -> None:
    settings = Settings(audit_file=str(tmp_path / "no" / "audit.jsonl"), audit_required=True, audit_all_calls=True)
    trial = await tried(settings=settings)
    assert (trial.decision, trial.is_judged) == ("allow", True)
    assert not (tmp_path / "no").exists()


# --- after it ---


async def test_a_given_result_runs_the_hooks_after_the_call() -> None:
    hooks = (stub(PRE), stub(POST, feedback=["well done"]), stub(FAILURE, feedback=["pity"]))
    done = await tried(stub_group(*hooks), result=RESULT)
    assert events(done) == ["PreToolUse", "PostToolUse"]
    assert json.loads(done.response)["content"][0] == {"type": "text", "text": "done"}
    assert "well done" in text_of(done)
    assert json.loads(done.observation.runs[1].stdin)["text"] == "done"
    failed = await tried(stub_group(*hooks), result=ERROR)
    assert events(failed) == ["PreToolUse", "PostToolUseFailure"]
    assert "pity" in text_of(failed)
    assert failed.allowed


async def test_a_result_without_comments_stays_unchanged() -> None:
    odd = b'{ "content" : [ ] , "_meta":{"x":1.50} }'
    assert (await tried(stub_group(stub(POST)), result=odd)).response == odd


async def test_a_result_that_a_hook_withholds_is_not_allowed() -> None:
    for verdict in ({"hides": True}, {"permission": "deny"}):
        trial = await tried(stub_group(stub(POST, **verdict)), result=RESULT)
        assert (trial.decision, trial.allowed, trial.failed) == ("allow", False, False), verdict
    failing = await tried(stub_group(stub(POST, "exit 1")), result=RESULT, settings=Settings(on_failure=OnFailure.DENY))
    assert (failing.decision, failing.allowed, failing.failed) == ("allow", False, True)
    assert "withheld" in text_of(failing)


async def test_a_call_that_hooks_repeat_has_the_same_result_each_time() -> None:
    trial = await tried(stub_group(replace(stub(POST, retry=True), max_retries=2)), result=RESULT)
    assert events(trial) == ["PostToolUse"] * 3
    assert trial.record
    assert trial.record.repeats == 2
    assert trial.response == RESULT


async def test_a_result_that_needs_input_or_creates_a_task_ends_the_trial_without_post_hooks() -> None:
    for result in (b'{"resultType":"input_required","inputRequests":{}}', b'{"resultType":"task","taskId":"1"}'):
        trial = await tried(stub_group(stub(POST)), result=result)
        assert (trial.decision, events(trial)) == ("allow", [])


# --- one event alone ---


async def test_one_event_is_tried_without_the_events_before_it() -> None:
    denying = group(hook("exit 2"), hook("echo late >&2; exit 2", POST), hook("echo request >&2; exit 2", REQUEST))
    settings = Settings(deny=("*",))
    alone = await tried(denying, alone=POST, settings=settings, result=RESULT)
    assert (alone.decision, events(alone)) == ("allow", ["PostToolUse"])
    request = await tried(stub_group(stub(PRE, permission="deny"), stub(REQUEST, permission="allow")), alone=REQUEST)
    assert (request.decision, events(request)) == ("asked-allow", ["PermissionRequest"])
    silent = await tried(stub_group(stub(REQUEST)), alone=REQUEST)
    assert (silent.decision, silent.allowed) == ("asked", False)
    before = await tried(stub_group(stub(PRE, permission="ask"), stub(REQUEST, permission="allow")), alone=PRE)
    assert (before.decision, events(before)) == ("asked", ["PreToolUse"])


@pytest.mark.parametrize("event", SIDE_EVENTS)
async def test_a_side_event_is_tried(event: Event) -> None:
    hooks = stub_group(stub(event, feedback=["noted"]), stub(PRE, permission="deny"))
    async with TrialRunner((hooks,), plan(event, False, Settings()), SESSION, os.environ) as trials:
        trial = await trials.run_event(event, TrialCall("write"))
    assert (trial.decision, trial.allowed, events(trial)) == ("", True, [event.value])
    document = json.loads(trial.observation.runs[0].stdin)
    assert (document["event"], document["by"]) == (event.value, SIDE_EVENTS[event][0])


async def test_an_approval_for_a_session_applies_to_all_trials_of_the_session(tmp_path: Path) -> None:
    once = f"if mkdir {shlex.quote(str(tmp_path / 'asked'))} 2>/dev/null; then "
    once += """printf '{"permission": "allow", "allows": ["write"]}'; fi"""
    hooks = (stub_group(stub(PRE, permission="ask"), stub(REQUEST, once)),)
    planned = plan(None, False, Settings())
    async with TrialRunner(hooks, planned, SESSION, os.environ) as trials:
        decisions = [(await trials.call(TrialCall("write"))).decision for _ in range(2)]
    async with TrialRunner(hooks, planned, SESSION, os.environ) as trials:
        decisions.append((await trials.call(TrialCall("write"))).decision)
    assert decisions == ["asked-allow", "asked-allow", "asked"]


async def test_a_name_or_a_result_cannot_inject_json() -> None:
    odd = 'write","arguments":{},"x":"'
    async with TrialRunner((group(hook("exit 2")),), plan(None, False, Settings()), SESSION, os.environ) as trials:
        trial = await trials.call(TrialCall(odd, b'{\n"a"\n:\r\n1}'))
        assert trial.record
        assert (trial.record.tool, trial.decision) == (odd, "deny")
        assert (await trials.call(TrialCall("a\0b"))).unreadable


# --- secrets ---


async def test_secrets_are_hidden_from_hooks_and_agent_as_in_a_session(tmp_path: Path) -> None:
    token = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    unread = {"GONE": Source("env", "NO_SUCH_VARIABLE"), "ASKED": Source("command", "false")}
    settings = Settings(secrets=SecretSettings(values=unread, restore=(SecretsRestore("push"),)))
    result = RESULT.replace(b"done", token.encode())
    arguments = b'{"a":"{{secret:github-pat:00000000}}"}'
    trial = await tried(
        stub_group(stub(POST, f"cat >> {tmp_path}/seen; echo {{}}")),
        settings=settings,
        result=result,
        arguments=arguments,
    )
    assert token not in (tmp_path / "seen").read_text()
    assert text_of(trial).startswith("{{secret:github-pat:")
    assert trial.observation.remarks == [
        "the server would get placeholders: no [[secrets.restore]] is about this tool",
        "the result has secrets: hooks and the agent get it with placeholders",
    ]
