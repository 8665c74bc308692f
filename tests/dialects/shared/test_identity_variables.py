"""Identity variables: each dialect keeps its own and hides all others."""

from hookproxy.dialects.shared.identity_variables import IDENTITY_VARIABLES, foreign_variables


def test_a_dialects_own_variables_are_kept_and_all_others_are_not() -> None:
    foreign = foreign_variables(IDENTITY_VARIABLES["claude"])
    assert foreign.isdisjoint(IDENTITY_VARIABLES["claude"])
    assert {"COPILOT_CLI", "HOOK_EVENT", "CURSOR_VERSION", "GEMINI_CLI"} <= foreign


def test_variables_about_one_event_are_never_inherited() -> None:
    for own in IDENTITY_VARIABLES.values():
        assert {"HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT", "HOOK_TRUNCATED"} <= foreign_variables(own)
