"""Each sentence for the model, word by word: it is all that the model has to act on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from hookproxy.model.decision import Comments, RefusalCause, Refuse
from hookproxy.model.hooks import Tool
from hookproxy.model.settings import Delivery
from hookproxy.protocol import approval_messages, feedback
from hookproxy.protocol.calls import Progress

GIVEN = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"theirs","data":{"a": 1.0}}}'


def error(line: bytes) -> tuple[object, int, str]:
    """The id, the code and the message of an error."""
    message = json.loads(line)
    assert line.endswith(b"}\n")
    assert message.keys() == {"jsonrpc", "id", "error"}
    return message["id"], message["error"]["code"], message["error"]["message"]


# The functions are called within the tests, and not while pytest collects them.
ERRORS: list[tuple[Callable[[], bytes], str]] = [
    (
        lambda: feedback.ambiguous(b"7", "it is not UTF-8"),
        "The tool was run, but its response is withheld because hooks cannot judge it: it is not UTF-8.",
    ),
    (
        lambda: feedback.unclear_response(b"7"),
        "The server's response to this request is withheld: readers may take it for the response to a call that hooks "
        "judge. Send the request again.",
    ),
    (
        lambda: feedback.response_too_long(b"7", 99, 9),
        "The tool was run, but its response is withheld: its 99 bytes are more than 9 (max_message_bytes). "
        "Request less data at once.",
    ),
    (
        lambda: feedback.response_out_of_memory(b"7", 99),
        "The tool was run, but its response is withheld: it has 99 bytes, and there is not enough memory to judge it. "
        "Request less data at once.",
    ),
    (
        lambda: feedback.unread_response(b"7", 99, is_call=False),
        "The response has 99 bytes, and too much is waiting already until this user's agents read it. "
        "The server has answered the request, but the response is withheld.",
    ),
    (
        lambda: feedback.unread_response(b"7", 99, is_call=True),
        "The response has 99 bytes, and too much is waiting already until this user's agents read it. The tool was run "
        "and the server has answered, but the output is withheld. Calling the tool again would run it again.",
    ),
    (
        lambda: feedback.remote_failure(b"7", "It is away", Progress.NOT_SENT, is_call=True),
        "It is away. The call was not sent to the server. The tool was not run.",
    ),
    (
        lambda: feedback.remote_failure(b"7", "It is away", Progress.NO_RESPONSE, is_call=False, hint="Wait."),
        "It is away. The request was sent to the server, and there is no response. Wait.",
    ),
    (
        lambda: feedback.remote_failure(b"7", "It says 404", Progress.NOT_SENT, is_call=True, refusal=b""),
        "It says 404. The tool was not run.",
    ),
    (
        lambda: feedback.remote_failure(b"7", "It says 500", Progress.NO_RESPONSE, is_call=True, refusal=b"{}"),
        "It says 500. The call may have had an effect.",
    ),
    (
        lambda: feedback.remote_failure(b"7", "It says 404", Progress.NOT_SENT, is_call=False, refusal=b"[]"),
        "It says 404.",
    ),
]


@pytest.mark.parametrize(("made", "text"), ERRORS, ids=lambda value: value[:60] if isinstance(value, str) else "")
def test_an_error_of_ours_says_what_happened_and_what_helps(made: Callable[[], bytes], text: str) -> None:
    assert error(made()) == (7, -32603, text)


@pytest.mark.parametrize(("unreadable", "code"), [(True, -32700), (False, -32600)])
def test_a_refused_message_has_the_code_of_its_reason(unreadable: bool, code: int) -> None:
    line = feedback.refused_message(b"null", "It is empty.", unreadable=unreadable)
    assert error(line) == (None, code, "hookproxy refused this message. It is empty.")


def test_the_error_of_a_remote_server_keeps_its_code_and_data() -> None:
    line = feedback.remote_failure(b'"x"', "It says 400", Progress.NOT_SENT, is_call=False, refusal=GIVEN)
    assert line == (b'{"jsonrpc":"2.0","id":"x","error":{"code":-32002,"message":"It says 400.","data":{"a": 1.0}}}\n')


@pytest.mark.parametrize(
    ("requested", "shown"), [(b'"2025-06-18"', b'"2025-06-18"'), (b"", b"null")], ids=["a version", "none"]
)
def test_a_client_of_a_shared_server_learns_which_versions_it_can_speak(requested: bytes, shown: bytes) -> None:
    line = feedback.other_version(b"7", requested, ["2025-03-26", "2025-11-25"])
    assert line == (
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unsupported protocol version. The server is shared '
        b'and speaks 2025-03-26 or 2025-11-25 with its first client.","data":{"supported":["2025-03-26","2025-11-25"],'
        b'"requested":%b}}}\n' % shown
    )


def test_what_is_said_of_tokens_names_the_commands() -> None:
    assert feedback.token_needed("gate.example") == (
        "gate.example needs a token, and hookproxy connect has none. Tell the user to name its file with --token-file, "
        "or to set HOOKPROXY_TOKEN. The gateway's administrator makes one with `hookproxy token new USER --file FILE`."
    )
    assert feedback.token_refused("gate.example", "~/token", "it is revoked") == (
        "gate.example does not accept the token in ~/token: it is revoked. Tell the user to ask the gateway's "
        "administrator for another one (`hookproxy token new USER --file FILE`)."
    )


@pytest.mark.parametrize(
    ("task_request", "text"),
    [
        (True, "The server has ended. The request about a task was not sent to the server."),
        (False, "The server has ended. The call was not sent to the server. The tool was not run."),
    ],
)
def test_what_ends_early_is_a_request_about_a_task_or_a_call(task_request: bool, text: str) -> None:
    assert feedback.ended_early(Progress.NOT_SENT, "The server has ended", task_request=task_request) == text
    assert feedback.ended_early(Progress.NO_RESPONSE, "It ended") == (
        "It ended. The call was sent to the server, and there is no response. It may have had an effect."
    )


@pytest.mark.parametrize(
    ("ran", "text"),
    [
        (True, "The tool was run, but its output is withheld"),
        (False, "Blocked: the tool was not run"),
    ],
)
@pytest.mark.parametrize("task", [True, False])
def test_a_call_that_cannot_be_recorded_gets_this_sentence(ran: bool, text: str, task: bool) -> None:
    line = feedback.unaudited(b"7", stateless=False, task=task, ran=ran)
    text += ", because the configuration requires an audit log and it cannot be written. Tell the user."
    if task:
        assert error(line) == (7, -31403, text)
    else:
        assert json.loads(line)["result"] == {"content": [{"type": "text", "text": text}], "isError": True}


def test_a_refusal_is_of_a_session_and_no_task_unless_it_is_said() -> None:
    result = json.loads(feedback.refusal(b"7", Refuse("guard.sh", "no")))["result"]
    assert result.keys() == {"content", "isError"}


@pytest.mark.parametrize(
    ("refuse", "text"),
    [
        (
            Refuse("guard.sh", "got only a part of the arguments", cause=RefusalCause.UNJUDGED),
            "Blocked: the PreToolUse hook guard.sh got only a part of the arguments. The tool was not run. "
            "Send less data at once.",
        ),
        (
            Refuse("cmd", "is not a text", cause=RefusalCause.ARGUMENTS),
            "Blocked: the argument 'cmd' is not a text, so hooks cannot judge the call. The tool was not run. "
            "Send the arguments as the tool's inputSchema says.",
        ),
        (
            Refuse("hookproxy.lock", "the tool is new", cause=RefusalCause.CHANGED, remedy="hookproxy lock --diff"),
            "Blocked: the tool is new, so it is withheld until the user has looked at it. Do not try it again. Tell "
            "the user: `hookproxy lock --diff` shows what has changed, and how to accept it. "
            "The tool was not run.",
        ),
        (
            Refuse("limits[0]", "", cause=RefusalCause.STORE_AWAY),
            "Blocked: limits[0] is kept in a store that several gateways share, which cannot be reached now. The tool "
            "was not run. Try again in a minute, or tell the user.",
        ),
        *(
            (
                Refuse("guard.sh", f"Sure{end}", cause=RefusalCause.ASK_DENIED),
                f"Blocked: guard.sh requires the user's approval: Sure{end} "
                'The configuration says on_ask = "deny", so the call is denied.',
            )
            for end in ".!?"
        ),
    ],
)
def test_why_a_call_is_refused(refuse: Refuse, text: str) -> None:
    assert feedback.refusal_sentence(refuse) == text


@pytest.mark.parametrize("offers_similar", [True, False])
def test_a_question_offers_to_allow_similar_calls_only_where_that_is_possible(offers_similar: bool) -> None:
    params = json.loads(approval_messages.elicitation_params("Sure?", offers_similar))
    other = json.loads(approval_messages.elicitation_params("Sure?", not offers_similar))
    assert params != other
    asked = json.loads(feedback.approval_elicitation(b"7", "Sure?", offers_similar))
    assert asked == {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": params}
    continued = json.loads(feedback.input_required(b"7", "Sure?", "state", offers_similar))
    (request,) = continued["result"]["inputRequests"].values()
    assert request == {"method": "elicitation/create", "params": params}
    cancelled = json.loads(feedback.approval_cancelled(b"7"))
    assert cancelled["params"] == {"requestId": 7, "reason": "The call that this request is about has ended."}


# --- where comments go ---


def closed(**result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [], **result}}).encode() + b"\n"


OPEN = Tool("t", output_schema=b'{"type":"object"}')
CLOSED = Tool("t", output_schema=b'{"type":"object","properties":{"a":{}},"additionalProperties":false}')


def delivered(comments: Comments, feedback_of: list[str], delivery: Delivery, tool: Tool | None) -> dict[str, Any]:
    line = closed(structuredContent={"a": 1})
    result = json.loads(feedback.deliver(line, comments, feedback_of, delivery, tool).line)["result"]
    assert isinstance(result, dict)
    return result


def test_feedback_goes_where_the_delivery_and_the_tools_schema_say() -> None:
    def structured(delivery: Delivery, tool: Tool | None) -> object:
        return delivered(Comments(), ["Noted."], delivery, tool).get("structuredContent")

    assert structured(Delivery.AUTO, OPEN) == {"a": 1, "hook_feedback": "Noted."}
    assert structured(Delivery.AUTO, CLOSED) == {"a": 1}
    assert structured(Delivery.TEXT, OPEN) == {"a": 1}
    assert structured(Delivery.STRIP_OUTPUT_SCHEMA, OPEN) is None


def test_a_replacement_goes_where_the_delivery_and_the_tools_schema_say() -> None:
    replaced = Comments(replacement=b'"new"')
    plain = {"content": [{"type": "text", "text": "new"}]}
    assert delivered(replaced, [], Delivery.AUTO, OPEN) == {**plain, "isError": True}, "it needs structuredContent"
    assert delivered(replaced, [], Delivery.AUTO, None) == {**plain, "isError": True}
    assert delivered(replaced, [], Delivery.AUTO, Tool("t")) == plain
    assert delivered(replaced, [], Delivery.STRIP_OUTPUT_SCHEMA, OPEN) == plain


# --- lists of tools ---


def listed(names: Iterable[str]) -> bytes:
    tools = ",".join(f' {{"name":"{name}"}}' for name in names)
    return f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tools} ]}}}}\n'.encode()


def test_tools_that_are_spelled_alike_keep_their_places() -> None:
    line = listed(["a", "a", "b", "a", "c"])
    assert feedback.without_tools(line, lambda name: name == "b") == listed(["a", "a", "a", "c"])
    assert feedback.without_tools(line, lambda name: name == "a") == listed(["b", "c"])
