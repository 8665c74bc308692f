"""The administrator's settings take precedence, and each attempt to weaken one is noted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from hookproxy.config.load import KEYS_OF_SETTINGS
from hookproxy.config.managed_merge import merge
from hookproxy.model.errors import ConfigError
from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.hooks import Event
from hookproxy.model.settings import AgentRule, Arguments, ConsoleUse, Delivery, OnAsk, OnFailure, Settings
from hookproxy.trust.sources import Layer
from tests.support.proxy_rig import group, hook

D, A = OnFailure.DENY, OnFailure.ALLOW


def layer(source: str, **settings: object) -> Layer:
    set_by = {name: f"{source}: {KEYS_OF_SETTINGS[name]}" for name in settings}
    return Layer(source, Settings(**settings), set_by)  # type: ignore[arg-type]  # settings by name


def merge_settings(wanted: Mapping[str, object], managed: Mapping[str, object]) -> tuple[Settings, tuple[str, ...]]:
    settings, _, notes, _ = merge(layer("user", **wanted), [layer("etc", **managed)])
    return settings, notes


def test_every_setting_has_a_key_that_can_be_managed() -> None:
    assert set(KEYS_OF_SETTINGS) == set(Settings.__struct_fields__) - {
        "managed",
        "audit_default",
        "audit_secrets",
        "rule_places",
        "called",
        "fail_closed",
        "approvers",
        "bundle",
        "pack_rules",
        "watched_rules",  # permissions.mode: no setting of its own
    }


@pytest.mark.parametrize(
    ("name", "managed", "wanted"),
    [
        ("on_failure", OnFailure.DENY, OnFailure.ALLOW),
        ("on_failure", OnFailure.DENY, OnFailure.DIALECT),
        ("on_failure", OnFailure.DIALECT, OnFailure.ALLOW),
        ("on_ask", OnAsk.ELICIT, OnAsk.ALLOW),
        ("on_ask", OnAsk.DENY, OnAsk.ALLOW),
        ("on_ask", OnAsk.DENY, OnAsk.ELICIT),
        ("on_ask", OnAsk.ELICIT, OnAsk.CONSOLE),
        ("on_ask", OnAsk.CONSOLE, OnAsk.ELICIT),
        ("on_ask", OnAsk.DENY, OnAsk.CONSOLE),
        ("console", False, True),
        ("on_ask_fallback", OnFailure.DENY, OnFailure.ALLOW),
        ("on_cut_input", OnFailure.DENY, OnFailure.ALLOW),
        ("feedback", Delivery.AUTO, Delivery.TEXT),
        ("feedback", Delivery.STRIP_OUTPUT_SCHEMA, Delivery.AUTO),
        ("max_message_bytes", 4096, 8192),
        ("max_depth", 64, 250),
        ("ask_seconds", 60.0, 600.0),
        ("audit_file", "/var/log/a.jsonl", "/dev/null"),
        ("audit_required", True, False),
        ("audit_arguments", Arguments.FULL, Arguments.DIGEST),
        ("audit_arguments", Arguments.DIGEST, Arguments.FULL),
        ("audit_all_calls", True, False),
        ("hide_denied", True, False),
        ("strict", True, False),
    ],
)
def test_a_managed_setting_cannot_be_weakened_and_the_attempt_is_noted(
    name: str, managed: object, wanted: object
) -> None:
    settings, notes = merge_settings({name: wanted}, {name: managed})
    assert getattr(settings, name) == managed
    key = KEYS_OF_SETTINGS[name]
    assert notes == (f"user: {key} is not used: etc: {key} takes precedence, because it is managed",)


@pytest.mark.parametrize(("managed", "wanted"), [("deny", "allow"), ("ask", "deny"), ("allow", "ask")])
def test_both_layers_have_their_own_default_of_permissions(managed: str, wanted: str) -> None:
    settings, notes = merge_settings({"default_permission": wanted}, {"default_permission": managed})
    assert settings.managed is not None
    assert (settings.default_permission, settings.managed.default_permission) == (wanted, managed)
    assert notes == ()
    alone, _ = merge_settings({}, {"default_permission": managed})
    assert alone.default_permission == "allow", "managed rules alone would have to open it twice"


def test_no_file_of_the_administrator_opens_the_default_of_another() -> None:
    first, second = layer("etc/a", default_permission="deny"), layer("etc/b", default_permission="ask")
    first = replace(first, settings=replace(first.settings, rule_places={"default": "etc/a:2"}))
    second = replace(second, settings=replace(second.settings, rule_places={"default": "etc/b:2"}))
    for managed in ([first, second], [second, first]):
        settings, _, _, _ = merge(layer("user"), managed)
        assert settings.managed is not None
        assert settings.managed.default_permission == "deny"
        assert settings.managed.rule_places == {"default": "etc/a:2"}


@pytest.mark.parametrize(
    ("name", "managed", "wanted"),
    [
        ("on_failure", OnFailure.ALLOW, OnFailure.DENY),
        ("on_failure", OnFailure.DIALECT, OnFailure.DENY),
        ("on_ask", OnAsk.ALLOW, OnAsk.ELICIT),
        ("on_ask", OnAsk.ELICIT, OnAsk.DENY),
        ("on_ask", OnAsk.ALLOW, OnAsk.CONSOLE),
        ("on_ask", OnAsk.CONSOLE, OnAsk.DENY),
        ("on_ask_fallback", OnFailure.ALLOW, OnFailure.DENY),
        ("on_cut_input", OnFailure.ALLOW, OnFailure.DENY),
        ("audit_required", False, True),
        ("hide_denied", False, True),
        ("strict", False, True),
        ("feedback", Delivery.TEXT, Delivery.TEXT),
    ],
)
def test_a_stricter_value_of_the_user_counts(name: str, managed: object, wanted: object) -> None:
    settings, notes = merge_settings({name: wanted}, {name: managed})
    assert (getattr(settings, name), notes) == (wanted, ())


def test_a_managed_setting_that_the_user_does_not_set_applies_without_a_note() -> None:
    settings, notes = merge_settings({}, {"on_ask": OnAsk.ALLOW, "feedback": Delivery.TEXT})
    assert (settings.on_ask, settings.feedback, notes) == (OnAsk.ALLOW, Delivery.TEXT, ())


def test_the_user_decides_settings_that_are_not_managed() -> None:
    settings, notes = merge_settings({"feedback": Delivery.TEXT, "audit_file": "/a"}, {"on_ask": OnAsk.DENY})
    assert (settings.feedback, settings.audit_file, notes) == (Delivery.TEXT, "/a", ())


def test_a_managed_fallback_replaces_the_users_prompter() -> None:
    prompter = {"on_ask_fallback": D, "prompter": ("yes",)}
    settings, notes = merge_settings(prompter, {"on_ask_fallback": D, "prompter": ()})
    assert settings.prompter == ()
    assert len(notes) == 1
    settings, notes = merge_settings(prompter, {"on_ask_fallback": D, "prompter": ("theirs",)})
    assert settings.prompter == ("theirs",)
    settings, notes = merge_settings(
        {"on_ask_fallback": D, "prompter": (), "console": ConsoleUse.NEVER},
        {"on_ask_fallback": D, "prompter": ("theirs",), "console": ConsoleUse.NEVER},
    )
    assert (settings.prompter, notes) == ((), ())


def test_rules_add_up_and_an_allow_rule_that_a_managed_rule_contradicts_is_noted() -> None:
    settings, notes = merge_settings({"allow": ("a", "b", "c"), "deny": ("d",)}, {"deny": ("a",), "ask": ("b",)})
    assert (settings.allow, settings.deny) == (("a", "b", "c"), ("d",))
    assert settings.managed
    assert (settings.managed.deny, settings.managed.ask, settings.managed.allow) == (("a",), ("b",), ())
    assert notes == (
        "user: permissions.allow: 'a' allows nothing: etc: permissions.deny has the same rule",
        "user: permissions.allow: 'b' allows nothing: etc: permissions.ask has the same rule",
    )


@pytest.mark.parametrize(
    "wanted",
    [
        {"on_ask": OnAsk.ALLOW},
        {"on_ask": OnAsk.CONSOLE},
        {"on_ask_fallback": A},
        {"prompter": ("yes",)},
        {"console": ConsoleUse.ALWAYS},
        {"console": ConsoleUse.IF_OPEN},
        {},
    ],
)
def test_managed_rules_ask_the_person_even_if_the_user_answers_by_configuration(
    wanted: dict[str, object],
) -> None:
    settings, notes = merge_settings(wanted, {"ask": ("x",)})
    assert settings.managed
    assert (settings.managed.on_ask, settings.managed.on_ask_fallback) == (OnAsk.ELICIT, D)
    assert (settings.managed.prompter, settings.managed.console, notes) == ((), ConsoleUse.NEVER, ())


@pytest.mark.parametrize("use", [ConsoleUse.IF_OPEN, ConsoleUse.ALWAYS])
def test_managed_rules_ask_on_a_console_only_where_the_administrator_says_so(use: ConsoleUse) -> None:
    settings, _ = merge_settings({}, {"ask": ("x",), "console": use})
    assert settings.managed
    assert settings.managed.console is use


def test_a_user_can_have_the_questions_of_managed_rules_denied() -> None:
    settings, _ = merge_settings({"on_ask": OnAsk.DENY}, {"ask": ("x",)})
    assert settings.managed
    assert settings.managed.on_ask is OnAsk.DENY


# --- groups ---

MINE, THEIRS = replace(group(hook("mine")), source="mine"), replace(group(hook("theirs")), source="theirs")


def test_managed_groups_run_last_and_fail_closed_unless_their_file_sets_on_failure() -> None:
    one = replace(layer("etc/1"), groups=(THEIRS,))
    two = replace(layer("etc/2", on_failure=OnFailure.DIALECT), groups=(THEIRS, replace(THEIRS, on_failure=A)))
    _, groups, _, _ = merge(replace(layer("user"), groups=(MINE,)), [one, two])
    assert [each.source for each in groups] == ["mine", "theirs", "theirs", "theirs"]
    assert [each.managed for each in groups] == [False, True, True, True]
    assert [each.on_failure for each in groups] == [None, D, OnFailure.DIALECT, A]


def test_managed_only_removes_the_users_hooks_with_a_note() -> None:
    only = replace(layer("etc", feedback=Delivery.TEXT), groups=(THEIRS,), managed_only=True)
    settings, groups, notes, managed = merge(replace(layer("user", deny=("x",)), groups=(MINE,)), [only])
    assert [each.source for each in groups] == ["theirs"]
    assert notes == ("mine: its hooks do not run: etc sets managed_only",)
    assert managed.managed_only
    assert settings.deny == ("x",)


def test_a_python_function_of_the_user_is_refused_when_something_is_managed() -> None:
    function = replace(hook("x"), type="python", call="guards:check")
    mine = replace(layer("user"), groups=(replace(MINE, hooks=(function,)),))
    with pytest.raises(ConfigError, match="is a Python function: it would run in hookproxy's own process"):
        merge(mine, [layer("etc", deny=("x",))])
    _, groups, _, _ = merge(mine, [replace(layer("etc"), managed_only=True)])  # it is not even imported
    assert groups == ()


@pytest.mark.parametrize("wanted", [OnFailure.ALLOW, OnFailure.DIALECT])
def test_no_group_and_no_hook_weakens_a_managed_on_failure(wanted: OnFailure) -> None:
    lax = replace(hook("lax", Event.POST_TOOL_USE), on_failure=wanted)
    mine = replace(MINE, on_failure=wanted, hooks=(lax, hook("plain")))
    _, groups, notes, _ = merge(replace(layer("user"), groups=(mine,)), [layer("etc", on_failure=D)])
    assert groups[0].on_failure is D
    assert [spec.on_failure for spec in groups[0].hooks] == [D, None]
    assert notes == (
        f"{lax.source}: on_failure is not used: etc: on_failure takes precedence, because it is managed",
        "mine: its on_failure is not used: etc: on_failure takes precedence, because it is managed",
    )


def test_a_hook_with_a_stricter_on_failure_stays_unchanged() -> None:
    strict = replace(MINE, on_failure=D, hooks=(replace(hook("x"), on_failure=D),))
    _, groups, notes, _ = merge(replace(layer("user"), groups=(strict,)), [layer("etc", on_failure=OnFailure.DIALECT)])
    assert (groups, notes) == ((strict,), ())


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"audit_redact": (".*",)}, {"audit_redact": ("sk-.*",)}),
        ({"audit_redact_keys": ("command",)}, {"audit_redact_keys": ()}),
        ({"audit_arguments": Arguments.DIGEST}, {"audit_arguments": Arguments.MASKED}),
        ({"audit_max_file_bytes": 1}, {"audit_max_file_bytes": 0}),
    ],
)
def test_the_administrator_who_sets_the_audit_file_sets_all_audit_settings(
    wanted: dict[str, object], expected: dict[str, object]
) -> None:
    settings, notes = merge_settings(wanted, {"audit_file": "/var/log/a.jsonl", "audit_redact": ("sk-.*",)})
    assert {name: getattr(settings, name) for name in expected} == expected
    (name,) = wanted
    assert [note.partition(" is not used")[0] for note in notes] == [f"user: {KEYS_OF_SETTINGS[name]}"]


def test_redactions_add_up_in_the_users_own_audit_file() -> None:
    settings, notes = merge_settings({"audit_file": "a.jsonl", "audit_redact": ("a",)}, {"audit_redact": ("b",)})
    assert (settings.audit_redact, notes) == (("a", "b"), ())


def test_a_managed_collector_gets_its_spans_whatever_endpoint_the_user_sets() -> None:
    settings, notes = merge_settings({"otel_endpoint": "http://127.0.0.1:1"}, {"otel": True})
    assert (settings.otel, settings.otel_endpoint, len(notes)) == (True, "", 1)


def test_rules_of_agents_settings_files_stay_in_their_layer() -> None:
    own, theirs = AgentRule("allow", "a", "/home/u/s.json:1"), AgentRule("deny", "a", "/etc/s.json:1")
    settings, _ = merge_settings({"agent_rules": (own,)}, {"agent_rules": (theirs,)})
    assert settings.managed
    assert (settings.agent_rules, settings.managed.agent_rules) == ((own,), (theirs,))


def test_sources_and_sinks_of_both_count_each_in_its_own_layer() -> None:
    def of(key: str) -> Mapping[str, object]:
        match = FlowMatch(tools=("*",))
        return {"flow_sources": (Source(match, ("x",), key),), "flow_sinks": (Sink(match, ("x",), key),)}

    settings, notes = merge_settings(of("user"), of("etc"))
    assert notes == ()
    assert settings.managed is not None
    for own, key in ((settings, "user"), (settings.managed, "etc")):
        assert [source.key for source in own.flow_sources] == [sink.key for sink in own.flow_sinks] == [key]


def test_sources_and_sinks_of_several_files_of_the_administrator_add_up() -> None:
    match = FlowMatch(tools=("*",))
    files = [layer(name, flow_sinks=(Sink(match, ("x",), name),)) for name in ("a", "b")]
    settings, _, _, _ = merge(layer("user"), files)
    assert settings.managed is not None
    assert [sink.key for sink in settings.managed.flow_sinks] == ["a", "b"]
