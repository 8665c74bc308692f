"""The variables by which hooks know a system: each dialect keeps its own and loses all others."""

from hookproxy.dialects.shared.identity_variables import IDENTITIES, foreign_to


def test_own_variables_are_kept_and_those_of_others_are_not() -> None:
    foreign = foreign_to(IDENTITIES["claude"])
    assert foreign.isdisjoint(IDENTITIES["claude"])
    assert {"COPILOT_CLI", "HOOK_EVENT", "CURSOR_VERSION", "GEMINI_CLI"} <= foreign


def test_what_tells_of_one_occasion_is_inherited_by_nobody() -> None:
    for own in IDENTITIES.values():
        assert {"HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT", "HOOK_TRUNCATED"} <= foreign_to(own)
