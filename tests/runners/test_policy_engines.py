"""Policies in CEL and Cedar: what they allow and refuse, and that whatever goes wrong refuses."""

from __future__ import annotations

import json
import os
import sys
from typing import Final

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.own import OWN
from hookproxy.dialects.shared import policy_input
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Document, Ended, Event, EventContext, HookResult, HookSpec, Permission, Session
from hookproxy.model.principal import Principal
from hookproxy.model.settings import OnFailure, Settings
from hookproxy.runners import cedar, cel
from hookproxy.runners.policy import PolicyText
from hookproxy.runners.policy_process import reply_to
from hookproxy.runners.registry import Runners
from hookproxy.trial.run import TrialCall, TrialRunner, plan

pytestmark = pytest.mark.anyio

ANN: Final = Principal("token:ann", "ann", ("dev", "ops"))
SESSION: Final = Session("s1", "files", "/w", "/w", principal=ANN)


def hook(type_name: str, **more: object) -> HookSpec:
    spec = HookSpec("hookproxy", "h.toml: k", Event.PRE_TOOL_USE, "p", type=type_name, timeout=30)
    return replace(spec, **more)


def cel_hook(expression: str, **more: object) -> HookSpec:
    return hook("cel", expression=expression, **more)


def cedar_hook(policy: str, **more: object) -> HookSpec:
    return hook("cedar", policy=policy, **more)


def document(arguments: str = '{"path":"/srv/a"}', tool: str = "write_file") -> bytes:
    context = EventContext(
        Event.PRE_TOOL_USE, SESSION, tool=tool, tool_name=tool, arguments=arguments.encode(), agent="claude-code 2.1"
    )
    return bytes(policy_input.write_input(context).stdin)


async def run(spec: HookSpec, arguments: str = '{"path":"/srv/a"}', tool: str = "write_file") -> HookResult:
    async with Runners([spec], lambda _spec, _text: None) as runners:
        with anyio.fail_after(60):
            return await runners.by_type[spec.type](spec, Document(document(arguments, tool), {}), {})


async def verdict(spec: HookSpec, arguments: str = '{"path":"/srv/a"}', tool: str = "write_file") -> str:
    read = OWN.read_output(spec, await run(spec, arguments, tool))
    if read.failure:
        assert read.permission is None
        return f"failure: {read.failure}"
    assert read.permission is not None
    return read.permission.name


def test_the_input_document_has_every_member_whether_it_is_known_or_not() -> None:
    members = json.loads(document())
    assert members == {
        "tool": "write_file", "server": "files", "arguments": {"path": "/srv/a"}, "agent": "claude-code 2.1",
        "user": "ann", "groups": ["dev", "ops"], "session": "s1", "labels": None,
    }  # fmt: skip
    assert tuple(members) == policy_input.MEMBERS


@pytest.mark.parametrize(
    "spec",
    [
        cel_hook('!("secret" in labels)'),
        cedar_hook('permit(principal, action, resource) unless { context.labels.contains("secret") };'),
    ],
    ids=["cel", "cedar"],
)
async def test_policies_decide_by_the_labels_of_the_session_and_never_where_nothing_gives_any(spec: HookSpec) -> None:
    for labels, expected in ((("secret",), "deny"), (("untrusted",), "allow"), ((), "allow"), (None, "")):
        context = EventContext(Event.PRE_TOOL_USE, SESSION, tool="t", tool_name="t", labels=labels)
        async with Runners([spec], lambda _spec, _text: None) as runners:
            result = await runners.by_type[spec.type](spec, policy_input.write_input(context), {})
        read = OWN.read_output(spec, result)
        assert (read.permission.name.lower() if read.permission else "") == expected
        assert bool(read.failure) is (labels is None)
    nobody = EventContext(Event.PRE_TOOL_USE, replace(SESSION, principal=None), tool_name="x")
    unknown = json.loads(bytes(policy_input.write_input(nobody).stdin))
    assert (unknown["user"], unknown["groups"], unknown["agent"]) == ("", [], "")
    assert tuple(unknown) == policy_input.MEMBERS


async def test_who_calls_at_a_gateway_is_in_the_document_once() -> None:
    spec = cel_hook('user == "ann" && groups == ["dev", "ops"]')
    group = Group(OWN, "h.toml", (spec,), OWN.tool_names, match_all_names=True)
    async with TrialRunner([group], plan(None, False, Settings()), SESSION, os.environ) as trials:
        trial = await trials.call(TrialCall("write_file", b'{"user":"root"}', None))
    assert trial.decision == "allow"
    given = bytes(trial.observation.runs[0].stdin)
    assert (given.count(b'"groups"'), given.count(b'"user"')) == (1, 2)


@pytest.mark.parametrize("changes", [{"in_doubt": True}, {"doubted": ("staff",)}])
async def test_groups_in_doubt_decide_nothing(changes: dict[str, object]) -> None:
    session = replace(SESSION, principal=replace(ANN, **changes))
    stdin = policy_input.write_input(EventContext(Event.PRE_TOOL_USE, session, tool_name="x")).stdin
    assert json.loads(bytes(stdin))["groups"] is None
    for spec, decides in [
        (cel_hook('!("contractors" in groups)'), False),
        (cel_hook("user == 'ann'"), True),
        (cedar_hook("permit(principal, action, resource);"), False),
        (hook("opa", url="http://127.0.0.1:1/v1/data/a"), False),
    ]:
        async with Runners([spec], lambda _spec, _text: None) as runners:
            result = await runners.by_type[spec.type](spec, Document(stdin, {}), {})
        assert (result.ended is Ended.EXITED) is decides
        assert decides or "groups" in result.detail


# --- CEL ---


@pytest.mark.parametrize(
    ("expression", "arguments", "expected"),
    [
        ('arguments.path.startsWith("/srv/")', '{"path":"/srv/a"}', "ALLOW"),
        ('arguments.path.startsWith("/srv/")', '{"path":"/etc"}', "DENY"),
        ('"ops" in groups && user == "ann" && server == "files"', "{}", "ALLOW"),
        ('agent.startsWith("claude-code") && session == "s1" && tool == "write_file"', "{}", "ALLOW"),
        ('arguments["a-b c"] == 1', '{"a-b c":1}', "ALLOW"),
        ('!has(arguments.force) || arguments.force == false', '{"force":true}', "DENY"),
        ("arguments.n == 5", '{"n":5.0}', "ALLOW"),
        ("arguments.n < 18446744073709551615u", '{"n":18446744073709551614}', "ALLOW"),
        ("arguments.paths.all(p, p.startsWith('/srv/'))", '{"paths":["/srv/a","/srv/b"]}', "ALLOW"),
        ("arguments.paths.all(p, p.startsWith('/srv/'))", '{"paths":["/srv/a","/etc"]}', "DENY"),
        ('tool.matches("^(read|list)_") == false', "{}", "ALLOW"),
        ("type(arguments.n) == int", '{"n":1}', "ALLOW"),
        ("type(arguments.n) == int", '{"n":"1"}', "DENY"),
    ],
)  # fmt: skip
async def test_an_expression_allows_or_refuses(expression: str, arguments: str, expected: str) -> None:
    assert await verdict(cel_hook(expression), arguments) == expected


@pytest.mark.parametrize(
    ("expression", "arguments", "failure"),
    [
        ("arguments.path == 'x'", "{}", "asks for 'path', which this call does not have"),
        ("arguments.path.startsWith('/srv')", '{"path":5}', "cannot be evaluated"),
        ("arguments.path.startsWith('/srv')", '{"path":null}', "cannot be evaluated"),
        ("arguments.n > 1", '{"n":"2"}', "cannot be evaluated"),
        ("arguments.path", '{"path":"true"}', "gives str, not true or false"),
        ("arguments.n", '{"n":1}', "gives int, not true or false"),
        ("arguments.n", '{"n":null}', "gives NoneType, not true or false"),
        ("1 / arguments.n == 1", '{"n":0}', "cannot be evaluated"),
        ("arguments.n < 5", '{"n":18446744073709551616}', "more than 64 bits"),
        ("arguments.n < 5", '{"n":-9223372036854775809}', "more than 64 bits"),
        ("arguments.n < 5", '{"n":' + "9" * 5000 + "}", "more than 64 bits"),
        ("arguments.n > 5", '{"n":1e999}', "cannot read the arguments"),
    ],
)
async def test_an_expression_that_cannot_be_evaluated_refuses(expression: str, arguments: str, failure: str) -> None:
    assert failure in await verdict(cel_hook(expression), arguments)


async def test_arguments_that_an_expression_does_not_name_are_not_read() -> None:
    assert await verdict(cel_hook('tool == "write_file"'), '{"n":1e999}') == "ALLOW"


async def test_the_reason_is_the_configured_one_or_names_the_policy() -> None:
    spec = cel_hook("false", deny_reason="not on Fridays")
    assert OWN.read_output(spec, await run(spec)).reason == "not on Fridays"
    spec = cel_hook("false")
    assert OWN.read_output(spec, await run(spec)).reason == "the policy 'p' refuses this call"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("tool ==", "expression cannot be read: line 1, column 8"),
        ("true &&\n (tool", "expression cannot be read: line 2, column 7"),
        ("(" * 5000 + "true" + ")" * 5000, "expression cannot be read"),
        ("tols == 'x'", "uses 'tols', which is not known"),
        ("argument.path == 'x'", "uses 'argument', which is not known"),
        ("tool.lowerAscii() == 'x'", "calls 'lowerAscii', which is not a function here"),
        ("[1].sortBy(x, x) == []", "which is not"),
    ],
)  # fmt: skip
def test_an_expression_with_a_mistake_is_a_configuration_error_with_its_place(expression: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cel.compile_policy(cel_hook(expression))
    assert caught.value.message.startswith("h.toml: k")
    assert problem in caught.value.message
    assert "expecting" not in caught.value.message


@pytest.mark.parametrize(
    ("expression", "size", "at_once"),
    [
        ("tool == 'x'", 16_000, True),
        ("tool == 'x'", 17_000, False),
        ("arguments.l.all(x, x > 0)", 4_000, True),
        ("arguments.l.all(x, x > 0)", 5_000, False),
        ("arguments.l.filter(x, x > 0).all(x, x > 1)", 4_000, True),
        ("arguments.l.all(x, arguments.l.all(y, x > y))", 200, True),
        ("arguments.l.all(x, arguments.l.all(y, x > y))", 500, False),
        ("arguments.l.all(x, ')' == x && arguments.l.all(y, x > y))", 500, False),
        (r"arguments.l.all(x, r'\' == x && arguments.l.all(y, x > y))", 500, False),
        ("arguments.l.all(x, '''\\''')''' == x && arguments.l.all(y, x > y))", 500, False),
        ("arguments.l.all(x, // ) it's\n arguments.l.all(y, x > y))", 500, False),
        (f"{[*range(1000)]}.all(x, x > 0)", 100, False),
        ("tool.matches('^a')", 4_000, True),
        ("arguments.l.all(x, x.matches('^a'))", 200, True),
        ("arguments.l.all(x, x.matches('^a'))", 4_000, False),
        ("tool.matches(arguments.p)", 200, False),
        ("tool.matches('a' + arguments.p)", 200, False),
    ],
)
def test_what_may_take_long_is_not_evaluated_in_the_event_loop(expression: str, size: int, at_once: bool) -> None:
    assert cel.compile_policy(cel_hook(expression)).ends_at_once(size) is at_once


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"path":"/srv/a","content":"' + "x" * 2_000_000 + '"}', "ALLOW"),
        ('{"path":"/etc","content":"' + "x" * 2_000_000 + '"}', "DENY"),
        ('{"content":"' + "x" * 2_000_000 + '"}', "failure: asks for 'path', which this call does not have"),
    ],
)
async def test_a_long_call_is_judged_the_same_in_a_process_of_its_own(arguments: str, expected: str) -> None:
    assert (await verdict(cel_hook("arguments.path.startsWith('/srv/')"), arguments)).startswith(expected)


@pytest.mark.slow
async def test_an_evaluation_that_does_not_end_is_ended_and_refuses_while_other_work_goes_on() -> None:
    spec = cel_hook("arguments.l.all(x, arguments.l.all(y, arguments.l.all(z, x + y + z >= 0)))")
    spec = replace(spec, timeout=1.0)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.lowlevel.checkpoint()
            ticks += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        result = await run(spec, json.dumps({"l": list(range(10_000))}))
        tasks.cancel_scope.cancel()
    assert result.ended is Ended.TIMED_OUT
    assert OWN.read_output(spec, result).failure
    assert ticks > 100


# --- Cedar ---

POLICIES: Final = """
@id("all")
permit(principal, action, resource);

// not ; yet
@id("no-secrets")
forbid(principal, action == Action::"write_file", resource) when { context.arguments.path like "*secret;*" };
"""


@pytest.mark.parametrize(
    ("policy", "arguments", "expected"),
    [
        (POLICIES, '{"path":"/srv/a"}', "ALLOW permitted by all"),
        (POLICIES, '{"path":"/srv/secret;"}', "DENY the policy 'p' refuses this call (forbidden by no-secrets)"),
        ('permit(principal == User::"ann", action, resource);', "{}", "ALLOW permitted by policy0"),
        ('permit(principal == User::"bob", action, resource);', "{}",
         "DENY the policy 'p' refuses this call (no policy permits it)"),
        ('permit(principal in Group::"ops", action == Action::"write_file", resource == Server::"files");', "{}",
         "ALLOW permitted by policy0"),
        ('permit(principal, action, resource) when { context.tool like "write_*" && context.session == "s1" };', "{}",
         "ALLOW permitted by policy0"),
        ("permit(principal, action, resource) when { context.arguments.n == 5 };", '{"n":5,"f":1.25,"z":null}',
         "ALLOW permitted by policy0"),
        ('permit(principal, action, resource) when { context.arguments.f.lessThan(decimal("1.3")) };', '{"f":1.25}',
         "ALLOW permitted by policy0"),
    ],
)  # fmt: skip
async def test_policies_permit_or_forbid_and_are_named(policy: str, arguments: str, expected: str) -> None:
    spec = cedar_hook(policy)
    read = OWN.read_output(spec, await run(spec, arguments))
    assert not read.failure
    assert read.permission in (Permission.ALLOW, Permission.DENY)
    assert f"{read.permission.name} {read.reason}" == expected


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        ("{}", "while evaluating policy `no-secrets`"),
        ('{"path":5}', "while evaluating policy `no-secrets`"),
        ('{"path":"a","u":{"__entity":{"type":"User","id":"root"}}}', "has a member '__entity'"),
        ('{"path":"a","u":[{"__extn":{"fn":"ip","arg":"::1"}}]}', "has a member '__extn'"),
        ('{"path":"a","__expr":"1"}', "has a member '__expr'"),
        ('{"path":"a","n":9223372036854775808}', "more than 64 bits"),
        ('{"path":"a","n":' + "9" * 400 + "}", "more than 64 bits"),
        ('{"path":"a","f":0.00001}', "is not a decimal of Cedar"),
        ('{"path":"a","f":1e300}', "is not a decimal of Cedar"),
        ('{"path":"a","f":1e999}', "cannot judge the arguments"),
        ('{"path":"a","l":[null]}', "a list contains null"),
        ('{"path":"a","d":' + '{"a":' * 200 + "1" + "}" * 200 + "}", "cannot be evaluated"),
    ],
)
async def test_a_call_that_cedar_cannot_judge_is_refused(arguments: str, failure: str) -> None:
    assert failure in await verdict(cedar_hook(POLICIES), arguments)


SCHEMA: Final = """
entity Group;
entity User in [Group];
entity Server;
action write_file appliesTo {
  principal: User,
  resource: Server,
  context: {
    tool: String, server: String, agent: String, user: String, groups: Set<String>, session: String,
    arguments: { path: String, mode?: Long },
  }
};
"""


async def test_a_schema_holds_for_policies_and_for_calls() -> None:
    permit = 'permit(principal, action == Action::"write_file", resource) when {{ context.arguments.{} == "x" }};'
    spec = cedar_hook(permit.format("path"), policy_schema=SCHEMA)
    assert await verdict(spec, '{"path":"x"}') == "ALLOW"
    assert await verdict(spec, '{"path":"y"}') == "DENY"
    assert "should not exist" in await verdict(spec, '{"path":"x","other":1}')
    assert "failure" in await verdict(spec, '{"path":"x"}', tool="delete_file")
    with pytest.raises(ConfigError, match="policy, line 2: does not fit the schema"):
        cedar.compile_policy(cedar_hook("\n" + permit.format("file"), policy_schema=SCHEMA))
    with pytest.raises(ConfigError, match="the schema cannot be read as Cedar"):
        cedar.compile_policy(cedar_hook(POLICIES, policy_schema="entity"))


@pytest.mark.parametrize(
    ("policy", "place", "problem"),
    [
        ("permit(principal, action, resource);\n\npermit(principal,", ":3", "cannot be read as Cedar"),
        ("permit(principal, action, resource) when { foo };", ":1", "cannot be read as Cedar: invalid variable: foo"),
        ("// nothing", ":1", "contains no policy"),
    ],
)
def test_policies_with_a_mistake_are_a_configuration_error_with_its_place(
    policy: str, place: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        cedar.compile_policy(cedar_hook(policy, policy_file="/etc/p.cedar"))
    assert caught.value.message.startswith(f"/etc/p.cedar{place}: ")
    assert problem in caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize(("path", "expected"), [("/srv/a", "ALLOW"), ("/secret;", "DENY")])
async def test_cedar_judges_a_long_call_in_a_process_of_its_own(path: str, expected: str) -> None:
    arguments = json.dumps({"path": path, "content": "x" * 500_000})
    assert await verdict(cedar_hook(POLICIES), arguments) == expected


async def test_deep_arguments_are_judged_or_refused() -> None:
    arguments = '{"path":"/srv/a","d":' + '{"a":' * 240 + "[1]" + "}" * 240 + "}"
    assert await verdict(cel_hook("arguments.path.startsWith('/srv/') && has(arguments.d.a.a)"), arguments) == "ALLOW"
    assert "failure" in await verdict(cedar_hook("permit(principal, action, resource);"), arguments)


@pytest.mark.slow
@pytest.mark.parametrize("content", ["x" * 10_000_000, ["x"] * 1_000_000], ids=["a text", "a list"])
async def test_ten_megabytes_of_arguments_are_judged_while_other_work_goes_on(content: object) -> None:
    arguments = json.dumps({"path": "/srv/a", "content": content})
    for spec in (cel_hook("arguments.path.startsWith('/srv/')"), cedar_hook(POLICIES)):
        assert await verdict(spec, arguments) == "ALLOW"


def test_a_missing_package_is_named_with_the_command_that_adds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cedarpy", None)
    monkeypatch.setattr(cel, "_compiled_module", lambda: None)
    for spec, package in [(cel_hook("true"), "common-expression-language"), (cedar_hook(POLICIES), "cedarpy")]:
        with pytest.raises(ConfigError, match=f"needs the package {package}, which is not installed") as caught:
            Runners([spec], lambda _spec, _text: None)
        assert f"[{spec.type}]" in caught.value.hint


# --- beside rules and other hooks ---


async def decided(tool: str, *policies: HookSpec, settings: Settings) -> str:
    group = Group(OWN, "h.toml", policies, OWN.tool_names, match_all_names=True)
    planned = plan(None, False, settings)
    async with TrialRunner([group], planned, replace(SESSION, principal=None), os.environ) as trials:
        return (await trials.call(TrialCall(tool, b"{}", None))).decision


@pytest.mark.parametrize(
    ("tool", "expression", "decision"),
    [
        ("a", "true", "allow"),
        ("denied", "true", "deny"),
        ("asked", "true", "asked"),
        ("allowed", "true", "allow"),
        ("allowed", "false", "deny"),
        ("allowed", "arguments.x", "deny"),
        ("a", "tool != 'a'", "deny"),
    ],
)
@pytest.mark.parametrize("on_failure", [OnFailure.DIALECT, OnFailure.ALLOW])
async def test_a_policy_allows_what_no_rule_is_about_and_opens_no_rule(
    tool: str, expression: str, decision: str, on_failure: OnFailure
) -> None:
    settings = Settings(
        default_permission="deny", deny=("denied",), ask=("asked",), allow=("allowed",), on_failure=on_failure
    )
    spec = replace(cel_hook(expression), on_failure=OnFailure.DENY)
    assert await decided(tool, spec, settings=settings) == decision
    refusing = replace(cel_hook("tool == 'b'", label="other"), on_failure=OnFailure.DENY)
    assert await decided(tool, spec, refusing, settings=settings) == "deny"


# --- the process ---


def request(spec: HookSpec, arguments: bytes) -> bytes:
    policy = {name: getattr(spec, name) for name in PolicyText.__struct_fields__}
    return msgspec.json.encode({"policy": policy, "input": msgspec.Raw(arguments)})


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        (b"nonsense", "cannot read its input"),
        (request(replace(cel_hook("true"), type="os"), b"{}"), "has a type that is not evaluated here: 'os'"),
        (request(cel_hook("("), b"{}"), "cannot be read"),
        (request(cel_hook("arguments.a"), b"[]"), "cannot read the arguments"),
    ],
)
def test_the_process_replies_to_whatever_it_gets(line: bytes, failure: str) -> None:
    reply = reply_to(line)
    assert not reply.output
    assert failure in reply.failure
