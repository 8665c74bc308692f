"""`[permissions] default`: what becomes of calls that no rule is about, and which tools are hidden then."""

from __future__ import annotations

import json
import os
from typing import Any, Final

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Effect, Group
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.aliases import Alias
from hookproxy.model.decision import RefusalCause, Refuse
from hookproxy.model.hooks import Event, EventContext, HookSpec, Order
from hookproxy.model.settings import Settings
from tests.support.proxy_rig import SESSION, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, REQUEST = Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST
ALLOWS: Final = stub(PRE, permission="allow")
ASKS: Final = stub(PRE, permission="ask", reason="why")


def group(*specs: HookSpec, order: Order = Order.SERIAL) -> Group:
    return stub_group(*specs, order=order)


def hooks(*groups: Group, default: str = "deny", managed: Settings | None = None, **rules: Any) -> Hooks:  # noqa: ANN401
    settings = Settings(default_permission=default, managed=managed, **rules)  # type: ignore[arg-type]  # as it is
    return Hooks(groups, settings, "files", dict(os.environ))


async def decided(judging: Hooks, tool: str = "write", arguments: bytes = b'{"path":"a"}') -> str:
    context = EventContext(PRE, SESSION, tool=tool, arguments=arguments)
    alias = judging.groups.alias(tool, arguments)
    context = judging.keep_managed_alias(replace(context, alias=alias))
    with anyio.fail_after(30):
        decision = (await judging.run_pre_hooks(context, None, [])).decision
    if isinstance(decision, Refuse):
        return f"deny {decision.by}"
    return "ask" if decision.approval_request else "allow"


BY_DEFAULT: Final = 'deny default = "deny"'


@pytest.mark.parametrize(
    ("default", "expected"), [("allow", "allow"), ("ask", "ask"), ("deny", BY_DEFAULT)], ids=["allow", "ask", "deny"]
)
async def test_what_no_rule_is_about_meets_the_default(default: str, expected: str) -> None:
    assert await decided(hooks(default=default)) == expected
    assert await decided(hooks(default=default, deny=("write",))) == "deny write"
    assert await decided(hooks(default=default, ask=("write",))) == "ask"
    assert await decided(hooks(default=default, allow=("write",))) == "allow"
    assert await decided(hooks(default=default, allow=("write(b)",))) == expected, "the rule is about another argument"
    assert await decided(hooks(default=default, allow=("read",))) == expected


async def test_the_refusal_says_what_refuses_and_where_it_is_written() -> None:
    judging = hooks(rule_places={"default": "/x.toml:2: permissions.default"})
    context = EventContext(PRE, SESSION, tool="write", arguments=b"{}")
    decision = (await judging.run_pre_hooks(context, None, [])).decision
    assert decision == Refuse(
        'default = "deny"', "no rule allows it", cause=RefusalCause.RULE, place="/x.toml:2: permissions.default"
    )


@pytest.mark.parametrize("default", ["ask", "deny"])
async def test_what_a_hook_decides_comes_before_the_default_and_never_before_a_rule(default: str) -> None:
    assert await decided(hooks(group(ALLOWS), default=default)) == "allow"
    assert await decided(hooks(group(ASKS), default=default)) == "ask"
    assert await decided(hooks(group(ALLOWS, ASKS), default=default)) == "ask"
    assert await decided(hooks(group(ALLOWS), default=default, ask=("write",))) == "ask"
    assert await decided(hooks(group(ALLOWS), default=default, deny=("write",))) == "deny write"


async def test_a_hook_in_the_background_or_one_that_fails_allows_nothing() -> None:
    assert await decided(hooks(group(replace(ALLOWS, background=True)))) == BY_DEFAULT
    assert await decided(hooks(group(stub(PRE, "exit 1")))) == BY_DEFAULT


async def test_a_hook_has_allowed_the_arguments_that_it_saw_and_not_those_of_a_later_rewrite() -> None:
    rewrites = stub(PRE, arguments={"path": "/etc/passwd"})
    both = stub(PRE, permission="allow", arguments={"path": "b"})
    assert await decided(hooks(group(ALLOWS), group(rewrites))) == BY_DEFAULT
    assert await decided(hooks(group(rewrites), group(ALLOWS))) == "allow"
    assert await decided(hooks(group(both))) == "allow"
    for order in (Order.SERIAL, Order.TOGETHER):
        assert await decided(hooks(group(ALLOWS, rewrites, order=order))) == BY_DEFAULT
        assert await decided(hooks(group(rewrites, ALLOWS, order=order))) == BY_DEFAULT, "it did not see the rewrite"
        assert await decided(hooks(group(both, rewrites, order=order))) == BY_DEFAULT
    assert await decided(hooks(group(ALLOWS, rewrites, order=Order.PIPELINE))) == BY_DEFAULT
    assert await decided(hooks(group(rewrites, ALLOWS, order=Order.PIPELINE))) == "allow"


async def test_a_permission_hook_that_rewrites_answers_for_what_it_wrote() -> None:
    answers = stub(REQUEST, permission="allow", arguments={"path": "b"})
    assert await decided(hooks(group(answers), default="ask")) == "allow"
    assert await decided(hooks(group(answers), default="ask", deny=("write(b)",))) == "deny write(b)"


async def test_what_a_person_or_a_hook_has_allowed_for_the_session_comes_before_the_default() -> None:
    asking = hooks(default="ask")
    await asking.allow_tool("write", None)
    assert await decided(asking) == "allow"
    adding = hooks(group(stub(PRE, allows=["write"])))
    assert await decided(adding) == "allow"
    assert await decided(adding, "other") == BY_DEFAULT, "the rule is about one tool"


async def test_what_was_only_recognised_by_its_name_is_not_allowed_by_it() -> None:
    command = b'{"command":"ls"}'
    assert await decided(hooks(allow=("Bash",)), "run_command", command) == BY_DEFAULT
    as_bash = replace(ALLOWS, matches="Bash".__eq__)
    assert await decided(hooks(group(as_bash)), "run_command", command) == BY_DEFAULT
    named = (Alias("run_command", "Bash", {}),)
    assert await decided(hooks(allow=("Bash(ls)",), aliases=named), "run_command", command) == "allow"
    assert await decided(hooks(group(as_bash), aliases=named), "run_command", command) == "allow"


@pytest.mark.parametrize("kind", ["deny", "ask"])
async def test_a_command_that_cannot_be_read_is_not_better_off_because_of_another_rule(kind: str) -> None:
    """`unreadable = "ask"` is about calls that would pass otherwise: the default would have refused this one."""
    unreadable = b'{"command":"$X y"}'
    rules: dict[str, Any] = {kind: ("Bash(rm:*)",)}
    for allow in ((), ("run_command(ls:*)",), ("run_command($X y)",)):
        assert await decided(hooks(allow=allow, **rules), "run_command", unreadable) == BY_DEFAULT
        assert await decided(hooks(allow=allow, default="ask", **rules), "run_command", unreadable) == "ask"
    assert await decided(hooks(allow=("run_command",), **rules), "run_command", unreadable) == "ask"
    assert await decided(hooks(unreadable="allow", **rules), "run_command", unreadable) == BY_DEFAULT
    assert await decided(hooks(**rules), "run_command", b'{"command":"rm y"}') == (
        "deny Bash(rm:*)" if kind == "deny" else "ask"
    )


@pytest.mark.parametrize("line", ["ls $(rm x)", "$X", "ls; `rm x`", "ls > /etc/x", "ls '", 'eval "$X"'])
async def test_an_unreadable_command_matches_no_allow_rule_with_a_pattern(line: str) -> None:
    arguments = json.dumps({"command": line}).encode()
    for rule in ("run_command(ls:*)", "run_command(ls *)", "Bash(*ls*)", f"run_command({line})"):
        judging = hooks(allow=(rule,), aliases=(Alias("run_command", "Bash", {}),))
        assert await decided(judging, "run_command", arguments) == BY_DEFAULT, rule


async def test_the_default_is_about_a_method_only_if_a_rule_names_it() -> None:
    uri = b'{"uri":"file:///srv/a"}'
    cases: tuple[dict[str, Any], ...] = (
        {},
        {"deny": ("Read(**/.env)",)},
        {"allow": ("*",)},
        {"allow": ("Read",)},
        {"ask": ("*",)},
    )
    for rules in cases:
        judging = hooks(**rules)
        assert await decided(judging, "resources/read", uri) == "allow"
    assert not hooks().concerns_method("resources/read")
    listed = hooks(allow=("resources/read(file:///srv/*)",))
    assert listed.concerns_method("resources/read")
    assert await decided(listed, "resources/read", uri) == "allow"
    assert await decided(listed, "resources/read", b'{"uri":"file:///etc/passwd"}') == BY_DEFAULT
    assert not listed.concerns_method("prompts/get")
    for rule in ("resources/*", "*/*"):
        assert await decided(hooks(deny=(f"{rule}(secret://*)",)), "resources/read", uri) == BY_DEFAULT
    assert await decided(hooks(ask=("sampling/createMessage(x)",)), "sampling/createMessage", b"{}") == "ask"


# --- layers ---


async def test_a_managed_default_is_opened_by_managed_rules_and_hooks_only() -> None:
    managed = Settings(default_permission="deny", allow=("read",))
    own = hooks(group(ALLOWS), default="allow", managed=managed, allow=("write", "read"))
    assert (await decided(own), await decided(own, "read")) == (BY_DEFAULT, "allow")
    asking = hooks(group(ASKS), default="allow", managed=managed, ask=("write",))
    assert await decided(asking) == BY_DEFAULT, "nobody is asked about what is refused"
    await asking.allow_tool("write", None)
    assert await decided(asking) == BY_DEFAULT
    of_admin = hooks(replace(group(ALLOWS), managed=True), default="allow", managed=managed)
    assert await decided(of_admin) == "allow"


async def test_a_users_default_is_not_opened_by_managed_rules() -> None:
    managed = Settings(allow=("write",))
    assert await decided(hooks(managed=managed)) == BY_DEFAULT
    assert await decided(hooks(managed=managed, allow=("write",))) == "allow"
    assert await decided(hooks(replace(group(ALLOWS), managed=True), managed=managed)) == BY_DEFAULT


async def test_only_a_person_answers_for_a_managed_default_that_asks() -> None:
    managed = Settings(default_permission="ask")
    answers = stub(REQUEST, permission="allow")
    judging = hooks(group(ALLOWS, answers), default="allow", managed=managed, allow=("write",))
    assert await decided(judging) == "ask"


# --- hidden tools ---


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [
        ({}, True),
        ({"default": "ask"}, False),
        ({"default": "allow"}, False),
        ({"hide_denied": False}, False),
        ({"allow": ("write",)}, False),
        ({"allow": ("write(/srv/*)",)}, False),
        ({"allow": ("WRITE",)}, True),
        ({"allow": ("read",)}, True),
        ({"allow": ("Write",)}, True),
        ({"allow": ("Write",), "aliases": (Alias("write", "Write", {}),)}, False),
        ({"ask": ("write",)}, False),
        ({"ask": ("WRITE",)}, False),
        ({"ask": ("Write(/etc/*)",)}, False),
        ({"deny": ("write(x)",)}, True),
        ({"deny": ("write",), "allow": ("write",)}, True),
        ({"managed": Settings(default_permission="deny"), "default": "allow"}, True),
        ({"managed": Settings(default_permission="deny", allow=("write",)), "default": "allow"}, False),
        ({"managed": Settings(default_permission="deny", allow=("write",))}, True),
        ({"managed": Settings(default_permission="deny"), "default": "allow", "allow": ("write",)}, True),
    ],
)
def test_a_tool_is_hidden_if_no_call_of_it_could_pass(rules: dict[str, Any], hidden: bool) -> None:
    judging = hooks(**rules)
    judging.groups.aliases("write")
    assert judging.hides("write") is hidden


@pytest.mark.parametrize(
    ("spec", "hidden"),
    [
        (ALLOWS, False),
        (replace(ALLOWS, only_if="write(x)"), False),
        (replace(ALLOWS, background=True), True),
        (replace(ALLOWS, matches="other".__eq__), True),
        (replace(ALLOWS, matches="Write".__eq__), True),
        (stub(Event.POST_TOOL_USE, permission="allow"), True),
    ],
)
def test_a_hook_that_could_allow_a_call_keeps_its_tool_listed(spec: HookSpec, hidden: bool) -> None:
    assert hooks(group(spec)).hides("write") is hidden


def test_a_hook_that_can_only_deny_keeps_no_tool_listed() -> None:
    one = group(ALLOWS)
    denies_only = replace(one, dialect=replace(one.dialect, output_fields={"reason": Effect.REASON}))
    assert hooks(denies_only).hides("write"), "this system's hooks have no output that allows"


def test_with_a_default_every_tool_is_judged_and_no_method() -> None:
    judging = hooks()
    assert judging.has_rules
    assert judging.concerns("any tool")
    assert not judging.concerns_method("prompts/get")
