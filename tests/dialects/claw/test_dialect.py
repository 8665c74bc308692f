"""The claw-code dialects as data."""

from hookproxy.dialects.claw import CURRENT as CLAW_CURRENT
from hookproxy.dialects.claw import DIALECT as CLAW
from hookproxy.model.hooks import Event, Order
from hookproxy.model.settings import ToolNames


def test_the_dialect_is_described() -> None:
    assert (CLAW.name, CLAW.order, CLAW.default_timeout, CLAW.tool_names) == (
        "claw",
        Order.UNTIL_DENIED,
        60.0,
        ToolNames.BARE,
    )
    assert CLAW.events == {"PreToolUse": Event.PRE_TOOL_USE, "PostToolUse": Event.POST_TOOL_USE}
    assert CLAW_CURRENT.events == {**CLAW.events, "PostToolUseFailure": Event.POST_TOOL_USE_FAILURE}
    assert CLAW.described_by != CLAW_CURRENT.described_by
    assert CLAW.folders == (".claw", ".claude")
