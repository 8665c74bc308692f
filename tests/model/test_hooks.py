"""The little behaviour of frozen values: when two hooks are the same, and which permission wins."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hookproxy.model.hooks import Event, HookSpec, Permission
from hookproxy.model.settings import OnFailure, Settings

HOOK = HookSpec("claude", "a.json: hooks", Event.PRE_TOOL_USE, "guard", shell="guard.sh")


def test_a_hook_in_two_files_is_the_same_hook() -> None:
    other = replace(HOOK, source="b.json: hooks", label="else", matcher="x", matches=str.isupper)
    assert other.identity == HOOK.identity


@pytest.mark.parametrize(
    "other",
    [
        replace(HOOK, shell="other.sh"),
        replace(HOOK, event=Event.POST_TOOL_USE),
        replace(HOOK, shell="", argv=("guard.sh",)),
        replace(HOOK, cwd="/tmp"),
        replace(HOOK, env=(("A", "1"),)),
        replace(HOOK, only_if="Bash(ls)"),
        replace(HOOK, background=True),
        replace(HOOK, timeout=1.0),
        replace(HOOK, fails_closed=True),
        replace(HOOK, on_failure=OnFailure.DENY),
        replace(HOOK, type="http"),
    ],
)
def test_hooks_that_run_differently_are_different_hooks(other: HookSpec) -> None:
    assert other.identity != HOOK.identity


def test_the_strictest_permission_is_the_highest() -> None:
    assert max(Permission) is Permission.DENY
    assert max(Permission.ALLOW, Permission.ASK) is Permission.ASK


def test_a_hook_matches_every_tool_by_default() -> None:
    assert HOOK.matches("anything")


def test_values_do_not_change() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Settings().audit_required = True  # type: ignore[misc]  # which is the point
