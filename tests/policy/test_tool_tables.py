"""Which `[tools.X]` are about no tool that the server lists."""

from __future__ import annotations

from hookproxy.model.aliases import Alias
from hookproxy.model.settings import Settings
from hookproxy.model.shown_tools import ShownTool
from hookproxy.policy.tool_tables import unknown_tools


def test_what_hooks_call_a_tool_counts_in_any_case_and_what_the_agent_sees_does_not() -> None:
    settings = Settings(
        aliases=(Alias("Run ", "Bash"), Alias("other", "Bash")),
        shown_tools=(ShownTool("Run"), ShownTool("run"), ShownTool("other")),
    )
    assert unknown_tools(settings, ["run"]) == ("other", "Run")
    assert unknown_tools(settings, ["run", "other", "Run"]) == ()
