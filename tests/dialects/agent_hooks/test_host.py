"""What AGENT-HOOKS-0.1 demands of the host of hooks: identities, a resolver of approvals, a record of each event."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from agent_hooks.canonical import context_identity
from msgspec.structs import replace

from hookproxy.config.composition import composed
from hookproxy.dialects.agent_hooks_host import identity
from hookproxy.dialects.agent_hooks_verdicts import RESOLVER
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Ended, Event, EventContext, HookResult, HookRun, Outcome, Permission, Session, Verdict

WHERE: Final = "hookproxy.toml: hooks.composition"
JCS: Final[dict[str, object]] = {"identity_provider": "jcs-sha256"}
WITH_RESOLVER: Final[dict[str, object]] = {**JCS, "resolver": {"argv": ["./approve"]}}
CALL: Final = EventContext(
    Event.PRE_TOOL_USE,
    Session("s-1", "bank", "/", "/"),
    tool="pay",
    tool_name="pay",
    arguments=b'{"to":"ann","amount":1.50,"pin":"1234"}',
    at=1.5,
    denial=b'{"decision":"deny","approval":{}}',
)
RESULT: Final = replace(
    CALL, event=Event.POST_TOOL_USE, outcome=Outcome(b'[{"type":"text","text":"paid"}]', has_result=True)
)


def request(table: dict[str, object], context: EventContext) -> dict[str, Any]:
    """What the resolver gets."""
    dialect = composed({**WITH_RESOLVER, **table}, WHERE)
    spec = next(spec for spec in dialect.resolvers if spec.event is context.event)
    document: dict[str, Any] = json.loads(dialect.write_input(spec, context).stdin)
    return document


@pytest.mark.parametrize("context", [CALL, RESULT])
def test_an_identity_is_the_one_of_the_standards_own_kit(context: EventContext) -> None:
    document = request({}, context)
    assert document["context_identity"] == context_identity(document["context"])
    assert document["interception_point"] == document["context"]["interception_point"]


def test_what_is_optional_does_not_change_an_identity_and_all_else_does() -> None:
    context = request({}, RESULT)["context"]
    own = identity(json.dumps(context).encode())
    more = {**context, "actor": {"id": "x"}, "extensions": {}, "agent": {**context["agent"], "name": "n"}}
    assert identity(json.dumps(more).encode()) == own
    for name in ("timestamp", "sequence", "agent", "session", "tool_call", "tool_result", "target"):
        assert identity(json.dumps({**context, name: {"id": "other"}}).encode()) != own, name


@pytest.mark.parametrize("number", ["9007199254740993", "1e400", "123456789012345678901234567890"])
def test_what_not_every_reader_has_exactly_has_no_identity(number: str) -> None:
    with pytest.raises(ValueError, match=r"beyond 2\^53|no canonical form"):
        identity(b'{"spec":"agent-hooks/0.1","target":{"n":%s}}' % number.encode())


def test_the_resolver_does_not_get_what_is_redacted_and_approves_what_it_got() -> None:
    whole, document = request({}, CALL), request({"redact": ["$target.pin", "$target.absent"]}, CALL)
    shown = document["context"]
    assert "1234" not in json.dumps(document)
    assert shown["target"] == shown["tool_call"]["args"] == {"to": "ann", "amount": 1.5, "pin": "[redacted]"}
    assert shown["extensions"]["hookproxy"]["redacted"] == ["$target.pin"]
    assert document["context_identity"] == context_identity(shown) != whole["context_identity"]


def resolved(resolution: object, *, event: Event = Event.PRE_TOOL_USE, asked: str | None = "sha256:a") -> Verdict:
    """The verdict that counts after this resolution, or this text that the resolver has printed."""
    dialect = composed(WITH_RESOLVER, WHERE)
    assert dialect.host is not None
    spec = next(spec for spec in dialect.resolvers if spec.event is event)
    printed = resolution if isinstance(resolution, str) else json.dumps(resolution)
    result = HookResult(Ended.EXITED, stdout=printed.encode())
    return dialect.host.checked(HookRun(spec, result, dialect.read_output(spec, result)), asked).verdict


def resolution(outcome: str, verdict: object = None, identity: str | None = "sha256:a") -> dict[str, object]:
    made: dict[str, object] = {"outcome": outcome, "context_identity": identity}
    return made if verdict is None else {**made, "verdict": verdict}


ALLOW: Final = {"decision": "allow"}
DENY: Final = {"decision": "deny", "reason": "corp:no"}


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (resolution("reject", DENY), "corp:no"),
        (resolution("unresolved"), "host_error:approval_unresolved"),
        (resolution("approve", ALLOW, "sha256:b"), "host_error:approval_identity_mismatch"),
        (resolution("approve", ALLOW, None), "host_error:approval_identity_mismatch"),
        (resolution("approve", DENY, "sha256:b"), "host_error:approval_identity_mismatch"),  # the order of section 9
        (resolution("maybe", ALLOW), "host_error:approval_resolver_failed"),
        (resolution("approve"), "host_error:approval_resolver_failed"),
        (resolution("unresolved", ALLOW), "host_error:approval_resolver_failed"),
        ({"outcome": "approve", "verdict": ALLOW}, "host_error:approval_resolver_failed"),
        (resolution("approve", DENY), "host_error:verdict_invalid"),
        (resolution("reject", ALLOW), "host_error:verdict_invalid"),
        (resolution("approve", {"decision": "sure"}), "host_error:verdict_invalid"),
        ("yes", "host_error:approval_resolver_failed"),
        ("", "host_error:approval_resolver_failed"),
    ],
)
@pytest.mark.parametrize("event", [Event.PRE_TOOL_USE, Event.POST_TOOL_USE])
def test_only_a_whole_approval_of_what_was_asked_lifts_a_denial(printed: object, reason: str, event: Event) -> None:
    verdict = resolved(printed, event=event)
    assert verdict.answer == "rejection"
    assert bool(verdict.failure) or verdict.permission is Permission.DENY
    assert reason in (verdict.failure or verdict.reason)


def test_an_approval_allows_or_rewrites() -> None:
    assert resolved(resolution("approve", ALLOW)) == Verdict(answer="approval")
    transform = {"decision": "transform", "transform": {"path": "$target.to", "value": "bob"}}
    assert resolved(resolution("approve", transform)).arguments is not None


def test_a_resolver_that_fails_never_lets_a_call_pass_whatever_is_configured() -> None:
    assert {(str(spec.on_failure), RESOLVER in spec.traits) for spec in composed(WITH_RESOLVER, "").resolvers} == {
        ("deny", True)
    }


@pytest.mark.parametrize(
    "table", [{"redact": ["$target.x"]}, {**WITH_RESOLVER, "redact": ["target.x"]}, {"resolver": {"timeout": 5}}]
)
def test_a_table_that_cannot_be_meant_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"hooks\.composition"):
        composed(table, WHERE)


# --- in a run ---

SERVER: Final = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        text = json.dumps(message.get("params", {}).get("arguments"))
        result = {"content": [{"type": "text", "text": text}]}
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
PRINTS: Final = "import json, sys\nasked = json.load(sys.stdin)\nprint(json.dumps({printed}))\n"
APPROVES: Final = '{"outcome": "approve", "context_identity": asked["context_identity"], "verdict": %s}'
ABOUT: Final = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}


WATCHES: Final = 'mode = "evaluate_only"\n'
"""A line before what a hook prints: it is only evaluated."""


def played(
    folder: Path, keys: str, hooks: dict[str, list[str]], resolver: str = "", **arguments: object
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The response to a call, and its line in the audit. `hooks` are those of an event, as what they print."""
    written = f'[audit]\nfile = "audit.jsonl"\n[hooks.composition]\n{keys}\n'
    if resolver:
        (folder / "approve.py").write_text(PRINTS.format(printed=resolver))
        written += f'resolver = {{ argv = ["{sys.executable}", "approve.py"] }}\n'
    for event, printed in hooks.items():
        for number, text in enumerate(printed):
            mode, _, text = text.rpartition("\n")
            (folder / f"{event}{number}.py").write_text(PRINTS.format(printed=text))
            hook = f'type = "agent-hooks"\nargv = ["{sys.executable}", "{event}{number}.py"]\n{mode}\n'
            written += f"[[hooks.{event}]]\n{hook}"
    (folder / "hookproxy.toml").write_text(written)
    (folder / "server.py").write_text(SERVER)
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": ABOUT},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "pay", "arguments": arguments}},
    ]
    line = [sys.executable, "-m", "hookproxy", "run", "--config", "hookproxy.toml", "--", sys.executable, "server.py"]
    process = subprocess.Popen(
        line, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    response: dict[str, Any] = {}
    with process.stdin as stdin:
        for message in messages:
            stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        stdin.flush()
        while response.get("id") != 2:
            response = json.loads(process.stdout.readline())
    process.stdout.read()
    process.wait(60)
    process.stdout.close()
    lines = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    return response, next(line for line in lines if "tool" in line)


@pytest.mark.slow
def test_a_resolver_lifts_a_denial_and_the_audit_says_who_and_about_what(tmp_path: Path) -> None:
    asks = '{"decision": "deny", "reason": "corp:large", "approval": {}}'
    lowers = '{"decision": "transform", "transform": {"path": "$target.amount", "value": 5}}'
    keys = 'identity_provider = "jcs-sha256"'
    response, line = played(tmp_path, keys, {"PreToolUse": [asks]}, APPROVES % lowers, amount=50)
    assert json.loads(response["result"]["content"][0]["text"]) == {"amount": 5}
    assert (line["decision"], line["answered"]) == ("asked-allow", f"allow by {line['answered_by']}")
    assert "approve.py" in line["answered_by"]
    assert "PreToolUse hook" in line["asked_by"]
    [record] = line["interceptions"]
    assert record["resolved_by"] == "approval"
    assert record["verdict"] == {"decision": "transform", "transform": {"path": "$target.amount"}}
    assert record["input_identity"] != record["enforced_identity"]
    assert record["decided_by"] == 0


@pytest.mark.slow
def test_a_resolver_is_asked_about_results_too(tmp_path: Path) -> None:
    asks = '{"decision": "deny", "reason": "corp:private", "approval": {}}'
    allow = APPROVES % '{"decision": "allow"}'
    response, line = played(tmp_path, "", {"PostToolUse": [asks]}, allow, x=1)
    assert response["result"] == {"content": [{"type": "text", "text": '{"x": 1}'}]}
    assert line["interceptions"][0]["resolved_by"] == "approval"
    (tmp_path / "audit.jsonl").unlink()
    response, line = played(tmp_path, "", {"PostToolUse": [asks]}, '{"outcome": "unresolved"}', x=1)
    assert '{"x": 1}' not in json.dumps(response)
    assert line["interceptions"][0]["verdict"] == {
        "decision": "deny",
        "reason": "host_error:approval_resolver_failed",
    }


@pytest.mark.slow
def test_a_call_without_an_identity_reaches_neither_hook_nor_server(tmp_path: Path) -> None:
    allow = '{"decision": "allow", "warnings": [{"reason": "it has run"}]}'
    response, line = played(tmp_path, 'identity_provider = "jcs-sha256"', {"PreToolUse": [allow]}, n=2**53 + 1)
    assert "host_error:context_invalid" in json.dumps(response)
    [record] = line["interceptions"]
    assert record["verdict"] == {"decision": "deny", "reason": "host_error:context_invalid"}
    assert (record["input_identity"], record["identity_provider"]) == (None, "jcs-sha256")
    assert record["verdicts"] == []
    assert "it has run" not in json.dumps(line)


@pytest.mark.slow
def test_nobody_is_consulted_about_a_call_that_is_only_tried(tmp_path: Path) -> None:
    asks = '{"decision": "deny", "reason": "corp:large", "approval": {}}'
    played(tmp_path, "", {"PreToolUse": [asks]}, '[open("asked", "w").close(), {}][1]')
    (tmp_path / "asked").unlink()
    line = [sys.executable, "-m", "hookproxy", "try", "pay", "{}", "--config", "hookproxy.toml"]
    ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "a person would be asked" in ended.stdout
    assert not (tmp_path / "asked").exists()


@pytest.mark.slow
def test_a_hook_that_is_only_evaluated_does_not_let_a_call_without_an_identity_pass(tmp_path: Path) -> None:
    keys = 'identity_provider = "jcs-sha256"'
    hooks = {"PreToolUse": [WATCHES + '{"decision": "allow"}', '{"decision": "deny"}']}
    response, _ = played(tmp_path, keys, hooks, n=2**53 + 1)
    assert "host_error:context_invalid" in json.dumps(response)


@pytest.mark.slow
def test_nobody_approves_what_a_hook_has_left_without_an_identity(tmp_path: Path) -> None:
    grows = '{"decision": "transform", "transform": {"path": "$target.n", "value": 2**60}}'
    asks = '{"decision": "deny", "reason": "corp:large", "approval": {}}'
    allow = APPROVES % '{"decision": "allow"}'
    response, line = played(tmp_path, 'identity_provider = "jcs-sha256"', {"PreToolUse": [grows, asks]}, allow, n=1)
    assert "host_error:context_invalid" in json.dumps(response["result"])
    [record] = line["interceptions"]
    assert record["verdict"] == {"decision": "deny", "reason": "host_error:context_invalid"}


LONG: Final = "1" * 5000
"""More digits than Python reads as a number."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "printed",
    [
        f'{{"decision": "deny", "approval": {{"n": {LONG}}}}}',
        f'{{"decision": "transform", "transform": {{"path": "$target", "value": {LONG}}}}}',
        '\v{"decision": "deny"}',
    ],
)
def test_a_hook_that_is_only_evaluated_changes_nothing_whatever_it_prints(tmp_path: Path, printed: str) -> None:
    hooks = {"PostToolUse": [f"{WATCHES}[print({printed!r}), sys.exit()]"]}
    response, line = played(tmp_path, "", hooks, x=1)
    assert response["result"] == {"content": [{"type": "text", "text": '{"x": 1}'}]}
    [record] = line["interceptions"]
    assert record["mode"] == "evaluate_only"
    assert f'"{record["verdict"]["decision"]}"' in printed


@pytest.mark.slow
def test_a_result_with_a_number_of_any_length_is_recorded(tmp_path: Path) -> None:
    """The server of these tests gives back what it gets, so a rewrite has the text be that number for the next hook."""
    number = f'[print(\'{{"decision":"transform","transform":{{"path":"$target","value":{LONG}}}}}\'), sys.exit()]'
    response, line = played(tmp_path, "", {"PostToolUse": [number, '{"decision": "allow"}']}, x=1)
    assert response["result"]["content"][0]["text"] == LONG
    assert [one["decision"] for one in line["interceptions"][0]["verdicts"]] == ["transform", "allow"]


def test_the_echo_is_checked_in_the_text_that_counts() -> None:
    printed = "\v" + json.dumps(resolution("approve", ALLOW, "sha256:b"))
    assert "host_error:approval_identity_mismatch" in resolved(printed).reason


def test_the_resolver_of_a_result_does_not_get_redacted_arguments_either() -> None:
    document = request({"redact": ["$target.pin"]}, RESULT)
    assert "1234" not in json.dumps(document)
    assert document["context"]["tool_call"]["args"] == {"to": "ann", "amount": 1.5, "pin": "[redacted]"}
    assert document["context"]["extensions"]["hookproxy"]["redacted"] == ["$target.pin"]
    assert document["context_identity"] == context_identity(document["context"])


@pytest.mark.slow
def test_no_hook_nests_arguments_deeper_than_an_agent_may(tmp_path: Path) -> None:
    nests = '{"decision": "transform", "transform": {"path": "$target.x", "value": json.loads("[" * 99 + "]" * 99)}}'
    response, line = played(tmp_path, "", {"PreToolUse": [nests]}, x=1)
    assert "nested deeper than 64 levels (max_depth)" in json.dumps(response)
    assert line["decision"] == "deny"


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["sequential/run_all", "sequential/first_deny", "parallel/unanimous"])
def test_the_mode_of_the_composition_holds_for_each_hook_without_a_mode(tmp_path: Path, profile: str) -> None:
    keys = f'{WATCHES}profile = "{profile}"'
    response, line = played(tmp_path, keys, {"PreToolUse": ['{"decision": "deny"}']}, x=1)
    assert response["result"] == {"content": [{"type": "text", "text": '{"x": 1}'}]}
    assert line["interceptions"][0]["mode"] == "evaluate_only"
    (tmp_path / "audit.jsonl").unlink()
    response, line = played(tmp_path, keys, {"PreToolUse": ['mode = "enforce"\n{"decision": "deny"}']}, x=1)
    assert response["result"]["isError"]


@pytest.mark.slow
def test_nobody_is_told_that_the_answer_of_a_resolver_is_not_read(tmp_path: Path) -> None:
    asks = '{"decision": "deny", "approval": {}}'
    _, line = played(tmp_path, "", {"PreToolUse": [asks]}, APPROVES % '{"decision": "allow"}', x=1)
    assert "does not read" not in json.dumps(line)
