"""Identity variables: each dialect keeps its own and hides all others."""

from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.identity_variables import foreign_variables


def test_a_dialects_own_variables_are_kept_and_all_others_are_not() -> None:
    own = DIALECTS["claude"].variables
    foreign = foreign_variables(own)
    assert foreign.isdisjoint(own)
    assert {"COPILOT_CLI", "HOOK_EVENT", "CURSOR_VERSION", "GEMINI_CLI"} <= foreign


def test_variables_about_one_event_are_never_inherited() -> None:
    for dialect in DIALECTS.values():
        assert {"HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT", "HOOK_TRUNCATED"} <= foreign_variables(dialect.variables)
