"""The variables by which hooks know a system: each dialect keeps its own and loses all others."""

from hookproxy.dialects.shared.identity_variables import IDENTITY_VARIABLES, foreign_variables


def test_own_variables_are_kept_and_those_of_others_are_not() -> None:
    foreign = foreign_variables(IDENTITY_VARIABLES["claude"])
    assert foreign.isdisjoint(IDENTITY_VARIABLES["claude"])
    assert {"COPILOT_CLI", "HOOK_EVENT", "CURSOR_VERSION", "GEMINI_CLI"} <= foreign


def test_what_tells_of_one_occasion_is_inherited_by_nobody() -> None:
    for own in IDENTITY_VARIABLES.values():
        assert {"HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT", "HOOK_TRUNCATED"} <= foreign_variables(own)
