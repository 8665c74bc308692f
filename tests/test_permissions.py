"""What a session permits beside the configuration's rules; `test_hooks` has what becomes of calls."""

from __future__ import annotations

from typing import Any

import pytest

from hookproxy.decision import Ground, Proceed, Question, Refuse
from hookproxy.groups import Groups
from hookproxy.model import Event, Occasion, Permission, Verdict
from hookproxy.permissions import Permissions
from hookproxy.settings import Settings
from tests.rig import SESSION


def permissions(**rules: Any) -> Permissions:  # noqa: ANN401  # tuples of texts, or a flag
    return Permissions(Groups((), "my files"), Settings(**rules))


def call(arguments: bytes = b'{"path":"a"}', tool: str = "write") -> Occasion:
    return Occasion(Event.PRE_TOOL_USE, SESSION, tool=tool, arguments=arguments)


@pytest.mark.parametrize("name", ["write", "mcp__my_files__write", "mcp__my_files", "wr*"])
def test_a_rule_names_a_tool_by_any_of_its_names(name: str) -> None:
    assert permissions(deny=(name,)).ruled(Proceed(), call()) == Refuse(name, "", ground=Ground.RULE)
    assert permissions(deny=(name,)).concern("write")
    assert permissions(deny=(name,)).hide("write")
    assert not permissions(deny=(name,), hide_denied=False).hide("write")


def test_a_hooks_question_keeps_its_reason_where_a_rule_asks_too() -> None:
    own = Proceed(question=Question("the hook", "why"))
    assert permissions(ask=("write",)).ruled(own, call()) == own
    assert permissions(allow=("write",)).ruled(own, call()) == Proceed(asked=True)
    assert permissions().ruled(own, call()) is own


def test_rules_of_hooks_count_for_the_session_and_are_bounded() -> None:
    one = permissions()
    assert not one.allow(call())
    assert one.add(Verdict(allows=("mcp__my_files__write(a)",))).trouble == ""
    assert one.allow(call())
    assert not one.allow(call(b'{"path":"b"}'))
    many = Verdict(allows=tuple(f"tool{number}" for number in range(1100)))
    assert one.add(many).trouble == "gave more than 1024 permission rules"
    assert not one.allow(call(tool="tool1"))
    assert "gave a permission rule that is none" in one.add(Verdict(allows=("a b",))).trouble


def test_a_tool_that_a_person_allows_is_allowed_whatever_its_arguments() -> None:
    one = permissions()
    one.allow_tool("write")
    assert one.allow(call(b'{"path":"/etc/passwd"}'))
    assert not one.allow(call(tool="delete"))


@pytest.mark.parametrize(
    "verdict", [Verdict(trouble="failed", allows=("write",)), Verdict(Permission.DENY, allows=("write",))]
)
def test_a_hook_that_failed_or_denies_allows_nothing_else(verdict: Verdict) -> None:
    one = permissions()
    assert one.add(verdict) is verdict
    assert not one.allow(call())


def test_a_tool_cannot_pose_as_one_of_another_server() -> None:
    one = Permissions(Groups((), "evil"), Settings(allow=("mcp__github",)))
    one.add(Verdict(allows=("mcp__github",)))
    posing = call(tool="mcp__github__wipe")
    assert not one.allow(posing)
    own = Proceed(question=Question("the hook", "why"))
    assert one.ruled(own, posing) == own
