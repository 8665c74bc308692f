"""The code-assist dialect as data."""

from hookproxy.dialects.code_assist import DIALECT as CODE_ASSIST
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Order
from hookproxy.model.settings import ToolNames


def test_every_event_of_the_document_is_either_available_or_reported() -> None:
    documented = {  # the table of hook events
        "PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart", "Stop",
        "Notification", "SubagentStart", "PermissionDenied", "PermissionRequest", "Elicitation",
        "ElicitationResult", "FileChanged", "CwdChanged", "PreCompact", "PostCompact",
    }  # fmt: skip
    assert set(CODE_ASSIST.events) | set(CODE_ASSIST.unavailable) == documented
    assert CODE_ASSIST.events.keys().isdisjoint(CODE_ASSIST.unavailable)


def test_the_dialect_is_described() -> None:
    assert (CODE_ASSIST.name, CODE_ASSIST.order, CODE_ASSIST.default_timeout, CODE_ASSIST.tool_names) == (
        "code-assist",
        Order.SERIAL,
        30.0,
        ToolNames.BARE,
    )
    assert (CODE_ASSIST.options, CODE_ASSIST.folders, CODE_ASSIST.suffixes) == (
        ("max_retries",),
        (".claude",),
        (".json",),
    )
    assert DIALECTS["code-assist"] is CODE_ASSIST


def test_it_sets_no_variables() -> None:
    assert CODE_ASSIST.variables == ()
