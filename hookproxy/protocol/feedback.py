"""Every sentence that the model may read about hooks and logins, and the lines that carry these sentences.

A sentence names the hook and one thing that the model can do. Without feedback a line stays the same object (law 2).
`response_edits` edits the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, assert_never

from ..jsonrpc import raw_json
from ..model.decision import Comments, RefusalCause, Refuse
from ..model.hooks import HookRun, Tool
from ..model.limits import Limit, Measure
from ..model.settings import Delivery
from ..policy.methods import TOOLS_CALL
from . import approval_messages, list_edits, response_edits
from .calls import Progress
from .response_edits import INTERNAL_ERROR, DeliveredResponse, error_response, json_string

REFUSED: Final = -31403
"""The error code of a refusal that cannot be a result: HTTP's 403, outside the range that JSON-RPC reserves."""

UNREADABLE: Final = -32700  # JSON-RPC's code for text that is not JSON
MALFORMED: Final = -32600  # JSON-RPC's code for JSON that is not a valid request
NO_METHOD: Final = -32601  # JSON-RPC's code for a method that the receiver does not have
BAD_PARAMS: Final = -32602  # JSON-RPC's code for parameters that make no sense to the receiver

SECRETS_WITHHELD: Final = (
    "The tool was run, but its output is withheld: it has secrets, and the tool's outputSchema allows no placeholders "
    "in their place. Calling the tool again would run it again. Tell the user that the configuration can leave the "
    "tool out ([[secrets.off]])."
)
"""What stands for structured output that cannot be masked."""

REASON_OF_PERSON: Final = "The user says: {}"
"""What a person who denied a call says to the model."""

_LONGEST_EDIT: Final = 2000
"""Characters of the arguments that a person has changed: so many the model is shown."""


def edited_by_person(arguments: bytes) -> str:
    """Tell the model with which arguments a person has allowed a call, in place of its own."""
    from ..secrets.mask import Masking  # the person may have typed a secret

    text = Masking().json(arguments).decode(errors="replace")
    rest = len(text) - _LONGEST_EDIT
    shown = text if rest <= 0 else f"{text[:_LONGEST_EDIT]} … [{rest} more characters]"
    return f"The user has changed the arguments of this call before allowing it. They are now: {shown}"


FixedError = tuple[int, str]
"""Code and message of an error that is always the same."""

NO_CLIENT: Final = (
    INTERNAL_ERROR,
    "The server is shared, and it is not certain for which of its clients this request is, or that client has left.",
)
CLIENT_IS_BUSY: Final = (
    INTERNAL_ERROR,
    "The client has too many unanswered requests, or this request's id is too long.",
)
NO_STREAM: Final = (
    INTERNAL_ERROR,
    "The client has no request in flight and does not listen for requests of the server.",
)
SERVER_IS_REFUSED: Final = (MALFORMED, "The server is refused: it is not as it is recorded.")
NOT_ANNOUNCED: Final = (NO_METHOD, "The client of this request does not support it.")
UNKNOWN_TASK: Final = (BAD_PARAMS, "Failed to retrieve task: Task not found")  # as in the SDKs
METHOD_REMOVED: Final = (NO_METHOD, "Method not found")  # as in the SDKs
NO_TASK_LIST: Final = (
    NO_METHOD,
    "The server is shared, so tasks are not listed. Use the ids that the calls have returned.",
)

TASK_REQUEST_FAILED: Final = (
    "The server answered this request about a task with an error. Its message is withheld because no hook judges it."
)
"""It replaces the message of an error that is not the task's own."""

_NOT_RUN: Final = "The tool was not run."
"""What most refusals say; of another method than `tools/call`, they say that the server did not get the request."""

_RULE_ADVICE: Final = "The same call will be refused again. If it is needed, tell the user."
_KNOWN_OF_CALL: Final = {
    Progress.NOT_SENT: "The call was not sent to the server. The tool was not run.",
    Progress.NO_RESPONSE: "The call was sent to the server, and there is no response. It may have had an effect.",
    Progress.ANSWERED: "The tool was run and the server has answered, but the output is withheld. "
    "Calling the tool again would run it again.",
}
_KNOWN_OF_REQUEST: Final = {
    Progress.NOT_SENT: "The request{} was not sent to the server.",
    Progress.NO_RESPONSE: "The request{} was sent to the server, and there is no response.",
    Progress.ANSWERED: "The server has answered the request{}, but the response is withheld.",
}

_MAX_CHARACTERS: Final = 1_000_000
"""Characters of text in our own responses: with six bytes each in JSON, a line stays below `MAX_LINE_BYTES`."""


def refusal(
    raw_id: bytes, refuse: Refuse, *, stateless: bool = False, task: bool = False, method: str = TOOLS_CALL
) -> bytes:
    """Return the response to a refused call: a failed result, or an error if only a task is a valid result.

    Other methods than `tools/call` have no failed result.
    """
    sentence = refusal_sentence(refuse)
    if method != TOOLS_CALL:
        sentence = sentence.replace(_NOT_RUN, f"The server did not get this {method}.")
    text = _paragraphs((sentence, *refuse.feedback))[:_MAX_CHARACTERS]
    return _failure(raw_id, text, stateless, task or method != TOOLS_CALL)


def deliver(
    line: bytes, comments: Comments, pre_feedback: Sequence[str], delivery: Delivery, tool: Tool | None
) -> DeliveredResponse:
    """Put the comments into the response `line`, which holds a result; without comments, return the same object.

    Raises Unreadable or DuplicateKeys if output must not pass and the envelope cannot be read.
    """
    if comments.withheld:
        text = withheld_sentence(comments.withheld, pre_feedback)
        return DeliveredResponse(response_edits.with_result_withheld(line, text))
    replacement = json_string(hidden_sentence(comments)) if comments.hidden_by else comments.replacement
    note = None
    if replacement is not None:
        replaced = response_edits.with_replacement(line, replacement, delivery, tool)
        line, note = replaced.line, replaced.note
    if comments.failed:
        line = response_edits.marked_as_failed(line)
    text = feedback_text(comments, pre_feedback)
    delivered = response_edits.with_feedback(line, text, delivery, tool) if text else DeliveredResponse(line)
    return DeliveredResponse(delivered.line, note or delivered.note)


def deliver_error(line: bytes, comments: Comments, pre_feedback: Sequence[str]) -> DeliveredResponse:
    """Put the comments into the response `line`, which holds a JSON-RPC error. Otherwise as `deliver`."""
    if comments.withheld:
        text = withheld_sentence(comments.withheld, pre_feedback)
        return DeliveredResponse(response_edits.with_error_withheld(line, text))
    if comments.hidden_by:
        line = response_edits.with_error_withheld(line, hidden_sentence(comments))
    elif comments.replacement is not None:
        decoded = raw_json.text(comments.replacement)
        text = comments.replacement.decode(errors="replace") if decoded is None else decoded
        line = response_edits.with_error_withheld(line, text)
    text = feedback_text(comments, pre_feedback)
    return response_edits.with_feedback_on_error(line, text) if text else DeliveredResponse(line)


def with_instructions(line: bytes, texts: Sequence[str]) -> bytes:
    """Append the texts to the instructions of an initialize response; return `line` itself if that is impossible."""
    text = _paragraphs(texts)

    def instructed(result: bytes) -> bytes:
        given = response_edits.member_or_empty(result, "instructions")
        old = raw_json.text(given or b'""')
        if not text or old is None:
            return result
        new = response_edits.string_with_more(given, "\n\n" + text) if old else json_string(text)
        return raw_json.with_member(result, "instructions", new)

    return _with_result(line, instructed)


def without_output_schemas(line: bytes, hooked: Callable[[str], bool]) -> bytes:
    """Remove the outputSchema of hooked tools from a tools/list response, which then must not be cached for others."""

    def stripped(tool: bytes) -> bytes:
        name = list_edits.name_of(tool)
        without = raw_json.without_member(tool, "outputSchema") if name is not None and hooked(name) else tool
        return tool if without == tool else without

    return _list_edited(line, stripped)


def without_tools(line: bytes, hidden: Callable[[str], bool]) -> bytes:
    """As `without_output_schemas`, without the hidden tools: a courtesy, because calls of hidden tools are refused."""

    def shown(tool: bytes) -> bytes | None:
        name = list_edits.name_of(tool)
        return None if name is not None and hidden(name) else tool

    return _list_edited(line, shown)


def _list_edited(line: bytes, edit: list_edits.EditItem) -> bytes:
    """Edit the tools of a list; return `line` itself if nothing changes or the line is ambiguous."""
    try:
        return list_edits.edited(line, "tools", edit)
    except raw_json.AMBIGUOUS:
        return line


def changed(why: str, diff: str) -> str:
    """Say why something that a server has is withheld. Neither text has words that the server chose after the record.

    `why` has no full stop; `diff` is the command by which the user sees it.
    """
    return (
        f"Blocked: {why}, so it is withheld until the user has looked at it. Do not try it again. Tell the user: "
        f"`{diff}` shows what has changed, and how to accept it."
    )


def unreadable_list(raw_id: bytes) -> bytes:
    """Return the response to a request for what the server is or has, if it cannot be read in one way only.

    It has no word of the server's, not even the key that comes twice: which one is reported.
    """
    text = "What the server says of itself is withheld, because it cannot be read, or not in one way only."
    return error_response(raw_id, INTERNAL_ERROR, text)


NOT_RECORDED: Final = (
    "Blocked: the tool was not run, because the configuration requires an audit log and it cannot be written. "
    "Tell the user."
)
"""Of a call of an agent's own tool whose record is required and cannot be written."""


def unaudited(raw_id: bytes, *, stateless: bool, task: bool, ran: bool) -> bytes:
    """Return the response to a call whose audit line is required and cannot be written."""
    done = "The tool was run, but its output is withheld" if ran else "Blocked: the tool was not run"
    text = f"{done}, because the configuration requires an audit log and it cannot be written. Tell the user."
    return _failure(raw_id, text, stateless, task)


def ambiguous(raw_id: bytes, why: str) -> bytes:
    """Return the response to a call if two readers could take the server's response differently."""
    return failed_call(raw_id, f"The tool was run, but its response is withheld because hooks cannot judge it: {why}.")


def unlabelled(raw_id: bytes, why: str) -> bytes:
    """Return the response to a call if nobody would know afterwards that the agent has read its output."""
    text = (
        f"The tool was run, but its output is withheld: its labels are kept in a store that cannot be reached ({why})."
    )
    return failed_call(raw_id, f"{text} Try again in a minute, or tell the user.")


def unclear_response(raw_id: bytes) -> bytes:
    """Return the response to a request if readers could take the server's response for the one to a judged call."""
    why = "readers may take it for the response to a call that hooks judge. Send the request again"
    return failed_call(raw_id, f"The server's response to this request is withheld: {why}.")


def response_too_long(raw_id: bytes, size: int, limit: int) -> bytes:
    """Return the response to a call if the server's response is too long to be judged."""
    return _too_much(raw_id, f"its {size} bytes are more than {limit} (max_message_bytes)")


def response_out_of_memory(raw_id: bytes, size: int) -> bytes:
    """Return the response to a call if there is not enough memory for the server's response."""
    return _too_much(raw_id, f"it has {size} bytes, and there is not enough memory to judge it")


def _too_much(raw_id: bytes, why: str) -> bytes:
    return failed_call(raw_id, f"The tool was run, but its response is withheld: {why}. Request less data at once.")


def out_of_memory(size: int) -> str:
    """Return why a message of this size is refused if memory is short."""
    return f"It has {size} bytes, and there is not enough memory to judge it."


def message_too_long(size: int, limit: int, key: str = "max_message_bytes") -> str:
    """Return why a message of this size is refused; `key` sets the limit."""
    return f"It has {size} bytes, which is more than hooks can judge: {limit} ({key})."


def ended_early(progress: Progress, why: str, *, task_request: bool = False) -> str:
    """Return what the model, people and the audit read of a call that ends early; `why` has no full stop."""
    known = _KNOWN_OF_REQUEST[progress].format(" about a task") if task_request else _KNOWN_OF_CALL[progress]
    return f"{why}. {known}"


def too_many_calls(most: int) -> str:
    """Return why a call is not handled while the user has so many in flight, without a full stop."""
    return f"{most} calls of this user are in flight, which is the limit: try again when one of them has ended"


def remote_failure(
    raw_id: bytes, why: str, progress: Progress, *, is_call: bool, refusal: bytes | None = None, hint: str = ""
) -> bytes:
    """Return the response to a request to a remote server that has failed; `why` has no full stop.

    `refusal` is given if the server has refused the request, and is the JSON-RPC error, whose code and data stay, or
    empty. With the progress NOT_SENT, the server has not acted on the request.
    """
    if refusal is None:
        known = _KNOWN_OF_CALL[progress] if is_call else _KNOWN_OF_REQUEST[progress].format("")
    elif is_call:
        known = "The tool was not run." if progress is Progress.NOT_SENT else "The call may have had an effect."
    else:
        known = ""
    text = " ".join(filter(None, (f"{why}.", known, hint)))
    try:
        given = bytes(raw_json.fields(refusal or b"{}")["error"])
        failure = raw_json.with_member(given, "message", json_string(text))
    except (KeyError, *raw_json.AMBIGUOUS):
        return failed_call(raw_id, text)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (raw_id, failure)


def failed_call(raw_id: bytes, text: str) -> bytes:
    """Return the response to a call that has no result."""
    return error_response(raw_id, INTERNAL_ERROR, text)


def error(raw_id: bytes, fixed: FixedError) -> bytes:
    """Return the line of one of the errors above."""
    return error_response(raw_id, *fixed)


def refused_message(raw_id: bytes, why: str, *, unreadable: bool, code: int = 0) -> bytes:
    """Return the response to a message that is not forwarded; `why` is a sentence, and all of it with a `code`."""
    if code:
        return error_response(raw_id, code, why)
    code = UNREADABLE if unreadable else MALFORMED
    return error_response(raw_id, code, f"hookproxy refused this message. {why}")


def unread_response(raw_id: bytes, size: int, *, is_call: bool) -> bytes:
    """Return the response to a request whose own response cannot wait until the agent reads what came before."""
    why = f"The response has {size} bytes, and too much is waiting already until this user's agents read it"
    return remote_failure(raw_id, why, Progress.ANSWERED, is_call=is_call)


def other_version(raw_id: bytes, requested: bytes, supported: Sequence[str]) -> bytes:
    """Return the response to `initialize` if a shared server already speaks another version of the protocol."""
    text = json_string(
        f"Unsupported protocol version. The server is shared and speaks {' or '.join(supported)} with its first client."
    )
    data = b'{"supported":%b,"requested":%b}' % (raw_json.encode(list(supported)), requested or b"null")
    return b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b,"data":%b}}\n' % (raw_id, BAD_PARAMS, text, data)


def login_needed(server: str, command: str) -> str:
    """Return what to do if a remote server demands a login; `command` is the user's."""
    return (
        f"{server} needs a login. Tell the user to run `{command}`. After that the same call works, without a restart."
    )


def login_ended(server: str, why: str, command: str) -> str:
    """Return what to do if a login at a remote server is no longer valid; `why` has no full stop."""
    return f"The login at {server} is no longer valid: {why}. Tell the user to run `{command}`. Then try again."


def more_scopes_needed(server: str, command: str) -> str:
    """Return what to do if a login at a remote server does not allow this request."""
    return f"The login at {server} does not permit this request. Tell the user to run `{command}`. Then try again."


def request_not_permitted(server: str) -> str:
    """Return that a remote server refuses a request which the login should permit: another login does not help."""
    return f"{server} refuses this request, although the login has the scopes that it asks for. Tell the user."


def token_needed(gateway: str) -> str:
    """Return what to do if a gateway demands one of its own tokens, and there is none."""
    return (
        f"{gateway} needs a token, and hookproxy connect has none. Tell the user to name its file with --token-file, "
        "or to set HOOKPROXY_TOKEN. The gateway's administrator makes one with `hookproxy token new USER --file FILE`."
    )


def token_refused(gateway: str, place: str, why: str) -> str:
    """Return what to do if a gateway refuses the user's token, which is at this place; `why` has no full stop."""
    return (
        f"{gateway} does not accept the token in {place}: {why}. Tell the user to ask the gateway's administrator for "
        "another one (`hookproxy token new USER --file FILE`)."
    )


def token_not_renewed(server: str, why: str) -> str:
    """Return that a token is out of date and could not be replaced now; `why` has no full stop."""
    return f"The token for {server} could not be renewed: {why}. A login is not needed. Try again later."


def credentials_unusable(server: str, why: str) -> str:
    """Return that a stored login cannot be used; `why` has no full stop and says how to correct it."""
    return f"The login at {server} cannot be used: {why}. Tell the user."


def approval_elicitation(raw_id: bytes, message: str, offers_similar: bool) -> bytes:
    """Return the request to the agent that asks the person for approval."""
    params = approval_messages.elicitation_params(message, offers_similar)
    return b'{"jsonrpc":"2.0","id":%b,"method":"elicitation/create","params":%b}\n' % (raw_id, params)


def approval_cancelled(raw_id: bytes) -> bytes:
    """Cancel an approval request, because its call has ended."""
    params = b'{"requestId":%b,"reason":"The call that this request is about has ended."}' % raw_id
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}\n' % params


def input_required(raw_id: bytes, message: str, request_state: str, offers_similar: bool) -> bytes:
    """Return the response to a call that continues when the person has answered (2026-07-28)."""
    params = approval_messages.elicitation_params(message, offers_similar)
    request = b'{"method":"elicitation/create","params":%b}' % params
    requests, state = b"{%b:%b}" % (json_string(approval_messages.MEMBER), request), json_string(request_state)
    result = b'{"resultType":"input_required","inputRequests":%b,"requestState":%b}' % (requests, state)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (raw_id, result)


def log_entry(text: str) -> bytes:
    """Return a log message for the person. The server must have declared logging."""
    params = b'{"level":"info","logger":"hookproxy","data":%b}' % json_string(text[:_MAX_CHARACTERS])
    return b'{"jsonrpc":"2.0","method":"notifications/message","params":%b}\n' % params


def _with_result(line: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    """Edit the line's result; return `line` itself if nothing changes or the line is ambiguous."""
    try:
        span = raw_json.members(line).get("result", (0, 0))
        result = line[slice(*span)]
        edited = edit(result)
    except raw_json.AMBIGUOUS:
        return line
    return line if edited == result else raw_json.splice(line, [(span, edited)])


def _failure(raw_id: bytes, text: str, stateless: bool, task: bool) -> bytes:
    if task:
        return error_response(raw_id, REFUSED, text)
    return response_edits.failed_result(raw_id, text, stateless)


def refusal_sentence(refuse: Refuse) -> str:  # noqa: C901  # one case for each cause
    """Say for the model why a call was refused, and what it may do."""
    hook, reason = f"the {refuse.event} hook {refuse.by}", refuse.reason
    match refuse.cause:
        case RefusalCause.DENIED:
            because = f": {reason}" if reason else ", which gave no reason. The tool was not run."
            stop_request = "\nThe hook wants you to stop here. Make no further calls and report to the user."
            return f"Blocked by {hook}{because}{stop_request if refuse.stop else ''}"
        case RefusalCause.FAILURE:
            rule = 'blocking because failing hooks refuse calls here (on_failure = "deny" or --fail-closed)'
            return f"Blocked: {hook} failed: {reason}; {rule}. The tool was not run."
        case RefusalCause.FAILED_CLOSED:
            rule = "blocking because this hook is set to block when it fails"
            return f"Blocked: {hook} failed: {reason}; {rule}. The tool was not run."
        case RefusalCause.UNJUDGED:
            return f"Blocked: {hook} {reason}. The tool was not run. Send less data at once."
        case cause if refuse.approvers and cause in _BY_APPROVERS:
            needs = f"{refuse.by} requires approval by another person ({refuse.approvers})"
            return f"Blocked: {needs}{_because(reason)} {_BY_APPROVERS[cause]}"
        case RefusalCause.ASK_DENIED:
            rule = 'The configuration says on_ask = "deny", so the call is denied.'
        case RefusalCause.ASK_UNAVAILABLE:
            told = "This agent cannot ask the user, so the call is denied. Tell the user what you want to do, and why."
            rule = f"{told} {refuse.remedy}".rstrip()
        case RefusalCause.DECLINED:
            rule = "The user was asked and did not allow it. Do not try it again unless the user says so."
        case RefusalCause.NOT_ANSWERED:
            rule = (
                "The user was asked, but no answer came: the dialog was closed, or the time ran out. So the call is "
                "denied. Ask the user whether they want it before you try again."
            )
        case RefusalCause.RULE:
            rule = f"the permission rule {refuse.by} of {refuse.where}"
            return f"Blocked by {rule}{_because(reason)} The tool was not run. {_RULE_ADVICE}"
        case RefusalCause.FLOW:
            return f"Blocked by {refuse.by} of {refuse.where}: {reason}. The tool was not run. {_RULE_ADVICE}"
        case RefusalCause.LIMIT:
            time = f"{refuse.retry_after} second{'s' * (refuse.retry_after != 1)}"
            wait = f"Try again in {time}." if refuse.retry_after else "Do not try again in this session."
            if refuse.repeated:
                wait = f"{_REPEATED} The same call is possible again in {time}." if refuse.retry_after else _REPEATED
            return f"Blocked by {refuse.by} of {refuse.where}: {reason}. The tool was not run. {wait}"
        case RefusalCause.ARGUMENTS:
            return (
                f"Blocked: the argument {refuse.by!r} {reason}, so hooks cannot judge the call. The tool was not run. "
                "Send the arguments as the tool's inputSchema says."
            )
        case RefusalCause.CHANGED:
            return f"{changed(reason, refuse.remedy)} The tool was not run."
        case RefusalCause.STORE_AWAY:
            away = "is kept in a store that several gateways share, which cannot be reached now"
            return f"Blocked: {refuse.by} {away}. The tool was not run. Try again in a minute, or tell the user."
        case _:
            assert_never(refuse.cause)
    return f"Blocked: {refuse.by} requires the user's approval{_because(reason)} {rule}"


_REPEATED: Final = (
    "You have made this very call before, and its result will hardly change: change your approach, or tell the user "
    "what keeps you from going on."
)


def beyond_limit(limit: Limit, where: str) -> str:
    """Return what the model reads of a call that exceeds a limit and ran anyway; `where` has the limit."""
    advice = _REPEATED if limit.measure is Measure.SAME else "Use fewer such calls, or tell the user why you need them."
    return f"Note of {limit.by} of {where}: this was more than {limit}. {advice}"


_BY_APPROVERS: Final = {
    RefusalCause.ASK_DENIED: 'The configuration says on_ask = "deny", so the call is denied.',
    RefusalCause.ASK_UNAVAILABLE: (
        "None of them can be asked now, because none has a console of the gateway open, so the call is denied. Tell "
        "the user what you want to do, and why, and that one of them must allow it."
    ),
    RefusalCause.DECLINED: (
        "One of them was asked and did not allow it. Do not try it again unless the user says that they allow it now."
    ),
    RefusalCause.NOT_ANSWERED: (
        "They were asked, but no answer came in time, so the call is denied. Tell the user, before you try it again."
    ),
}
"""Why a call is denied that needs approval by others than the user."""


def _because(reason: str) -> str:
    return f": {reason}{'' if reason.endswith(('.', '!', '?')) else '.'}" if reason else "."


def withheld_sentence(failed: Iterable[HookRun], pre_feedback: Sequence[str]) -> str:
    """Return the text in place of the output. It leaves out the post hooks' feedback, which may quote the output."""
    sentences = (
        f"The tool was run, but its output is withheld, because {_hook_failure(run)}. "
        "Calling the tool again would run it again."
        for run in failed
    )
    return _paragraphs((*sentences, *pre_feedback))[:_MAX_CHARACTERS]


def hidden_sentence(comments: Comments) -> str:
    """Return the text in place of an output that a hook hides."""
    return f"The tool was run, but the hook {comments.hidden_by} hides its output. Another call will not show it."


def feedback_text(comments: Comments, pre_feedback: Sequence[str]) -> str:
    """Return all feedback of hooks on one call as one text."""
    noted = (
        f"Note: {_hook_failure(run)}. This hook is set to block when it fails, but the tool had already run. "
        "The output is unchanged, and this hook has not judged it."
        for run in comments.noted
    )
    return _paragraphs((*pre_feedback, *comments.feedback, *noted))


def _hook_failure(run: HookRun) -> str:
    return f"the {run.spec.event} hook {run.spec.label} failed: {run.verdict.failure}"


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
