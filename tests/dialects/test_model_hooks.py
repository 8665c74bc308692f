"""Entries that ask a model, in the files of each system whose document has them."""

from __future__ import annotations

import json
from typing import Final

import pytest

from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission
from hookproxy.model.model_endpoint import ModelEndpoint

ENDPOINT: Final = ModelEndpoint("openai", "https://model.example/v1", "small", aliases=(("haiku", "tiny"),))
GROUPED: Final = ("claude", "codebuddy", "qwen")
KINDS: Final = [*((name, kind) for name in ("claude", "codebuddy") for kind in ("prompt", "agent")), ("qwen", "prompt")]


def read(name: str, event: str, entry: dict[str, object], model: ModelEndpoint | None = ENDPOINT) -> HookList:
    groups = [{"hooks": [entry]}] if name in GROUPED else [entry]
    text = json.dumps({"version": 1, "hooks": {event: groups}} if name == "cursor" else {"hooks": {event: groups}})
    return DIALECTS[name].read_hook_file(HookFile("/f.json", text, "/project", model=model))


@pytest.mark.parametrize(("name", "kind"), [*KINDS, ("cursor", "prompt")])
def test_an_entry_that_asks_a_model_becomes_a_hook_where_there_is_one(name: str, kind: str) -> None:
    event = "preToolUse" if name == "cursor" else "PreToolUse"
    (spec,) = read(name, event, {"type": kind, "prompt": "Safe?  $ARGUMENTS"}).hooks
    assert (spec.type, spec.label, spec.event) == (kind, f"{kind}: Safe? $ARGUMENTS", Event.PRE_TOOL_USE)
    assert spec.model is not None
    assert (spec.model.prompt, spec.model.model, spec.model.endpoint) == ("Safe?  $ARGUMENTS", "small", ENDPOINT)
    assert spec.model.takes_context is (name == "qwen")
    assert spec.timeout == (60 if kind == "agent" or name == "cursor" else 30)
    assert spec.target == f"{kind}: Safe? $ARGUMENTS"
    assert hash(spec.identity), "entries with the same identity run once"


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_without_a_model_it_is_reported(name: str, kind: str) -> None:
    found = read(name, "PreToolUse", {"type": kind, "prompt": "Safe?"}, model=None)
    assert found.hooks == ()
    (note,) = found.notes
    assert f"type {kind!r} is not supported: hookproxy has no model to ask; [model] in hookproxy.toml names one" in note


@pytest.mark.parametrize(("written", "model"), [("haiku", "tiny"), ("other", "other"), ("", "small")])
def test_a_hook_may_name_its_model(written: str, model: str) -> None:
    (spec,) = read("claude", "PreToolUse", {"type": "prompt", "prompt": "?", "model": written, "timeout": 7}).hooks
    assert spec.model is not None
    assert (spec.model.model, spec.timeout) == (model, 7)


@pytest.mark.parametrize("event", ["PermissionRequest", "Notification", "SessionEnd", "Elicitation"])
def test_where_the_answer_of_a_model_has_no_effect_it_is_not_asked(event: str) -> None:
    found = read("claude", event, {"type": "prompt", "prompt": "?"})
    assert found.hooks == ()
    assert any("the answer of a model has no effect at" in note for note in found.notes)


@pytest.mark.parametrize("entry", [{}, {"prompt": ""}, {"prompt": " "}, {"prompt": 7}])
def test_an_entry_without_a_prompt_is_left_out(entry: dict[str, object]) -> None:
    found = read("claude", "PreToolUse", {"type": "prompt", **entry})
    assert found.hooks == ()
    assert "prompt" in " ".join(found.notes)


def spec_of(name: str, event: str) -> HookSpec:
    (spec,) = [spec for spec in read(name, event, {"type": "prompt", "prompt": "?"}).hooks if spec.event_name == event][
        :1
    ]
    return spec


@pytest.mark.parametrize("name", [*GROUPED, "cursor"])
def test_a_model_that_objects_denies_the_call_and_one_that_does_not_allows_nothing(name: str) -> None:
    spec = spec_of(name, "preToolUse" if name == "cursor" else "PreToolUse")
    denied = DIALECTS[name].read_output(spec, HookResult(Ended.EXITED, 2, stderr=b"It removes everything."))
    assert (denied.permission, denied.reason) == (Permission.DENY, "It removes everything.")
    passed = DIALECTS[name].read_output(spec, HookResult(Ended.EXITED))
    assert (passed.permission, passed.failure) == (None, "")


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
def test_after_a_call_the_reason_goes_to_the_agents_model(event: str) -> None:
    verdict = DIALECTS["claude"].read_output(spec_of("claude", event), HookResult(Ended.EXITED, 2, stderr=b"Undo it."))
    assert "Undo it." in (verdict.reason, *verdict.feedback)
