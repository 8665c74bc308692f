"""Every sentence that the model may read about hooks, and the lines that carry them.

A sentence names the hook and says what the model can act on. With nothing to say, a line is the same object
(law 2); how bytes are edited is the matter of `answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, assert_never

from ..jsonrpc import raw_json
from ..model.decision import Comments, RefusalCause, Refuse
from ..model.hooks import HookRun, Tool
from ..model.settings import Delivery
from . import approval_messages, response_edits
from .response_edits import DeliveredResponse

REFUSED: Final = -31403
"""Error code of a refusal that cannot be a result: HTTP's 403, outside the range that JSON-RPC reserves."""

UNREADABLE: Final = -32700  # JSON-RPC's code for text that is no JSON
MALFORMED: Final = -32600  # JSON-RPC's code for JSON that is no valid request

TASK_REQUEST_FAILED: Final = (
    "The server did not answer this request about a task. What it says of that is withheld: no hook hears it."
)
"""In place of the words of an error that is not the task's own."""

_MAX_CHARACTERS: Final = 1_000_000
"""Characters of text in our own answers: at six bytes each in JSON, a line stays below `answers.LIMIT`."""


def refusal(id_lexeme: bytes, refuse: Refuse, *, stateless: bool = False, task: bool = False) -> bytes:
    """The answer to a refused call: a failed result, or an error where only a task is a valid result."""
    text = _paragraphs((_refusal_sentence(refuse), *refuse.feedback))[:_MAX_CHARACTERS]
    return _failure(id_lexeme, text, stateless, task)


def deliver(
    line: bytes, comments: Comments, pre_feedback: Sequence[str], delivery: Delivery, tool: Tool | None
) -> DeliveredResponse:
    """The answer `line`, which holds a result, with the comments in it; the same object if there are none.

    Raises Unreadable or TwinKeys if output must not pass and the answer's envelope cannot be read.
    """
    if comments.withheld:
        return DeliveredResponse(
            response_edits.with_result_withheld(line, _withheld_sentence(comments.withheld, pre_feedback))
        )
    replacement = response_edits.json_string(_hidden_sentence(comments)) if comments.hidden_by else comments.replacement
    if replacement is not None:
        line = response_edits.with_replacement(line, replacement, delivery, tool)
    if comments.failed:
        line = response_edits.marked_as_failed(line)
    text = _feedback_text(comments, pre_feedback)
    return response_edits.with_feedback(line, text, delivery, tool) if text else DeliveredResponse(line)


def deliver_error(line: bytes, comments: Comments, pre_feedback: Sequence[str]) -> DeliveredResponse:
    """The answer `line`, which holds a JSON-RPC error, with the comments in it. Else as `deliver`."""
    if comments.withheld:
        return DeliveredResponse(
            response_edits.with_error_withheld(line, _withheld_sentence(comments.withheld, pre_feedback))
        )
    if comments.hidden_by:
        line = response_edits.with_error_withheld(line, _hidden_sentence(comments))
    elif comments.replacement is not None:
        said = raw_json.text(comments.replacement)
        text = comments.replacement.decode(errors="replace") if said is None else said
        line = response_edits.with_error_withheld(line, text)
    text = _feedback_text(comments, pre_feedback)
    return response_edits.with_feedback_on_error(line, text) if text else DeliveredResponse(line)


def with_instructions(line: bytes, texts: Sequence[str]) -> bytes:
    """An initialize answer with the texts at the end of its instructions; `line` itself if that cannot be."""
    text = _paragraphs(texts)

    def instructed(result: bytes) -> bytes:
        given = response_edits.member_or_empty(result, "instructions")
        said = raw_json.text(given or b'""')
        if not text or said is None:
            return result
        longer = response_edits.string_with_more(given, "\n\n" + text) if said else response_edits.json_string(text)
        return raw_json.with_member(result, "instructions", longer)

    return _with_result(line, instructed)


def without_output_schemas(line: bytes, hooked: Callable[[str], bool]) -> bytes:
    """A tools/list answer without the outputSchema of hooked tools, and no more to be cached for everyone."""

    def stripped(result: bytes) -> bytes:
        tools = response_edits.member_or_empty(result, "tools")
        edits = [
            ((start, end), raw_json.without_member(tools[start:end], "outputSchema"))
            for (start, end), name in _listed(tools)
            if name is not None and hooked(name)
        ]
        return _with_tools(result, tools, raw_json.splice(tools, edits))

    return _with_result(line, stripped)


def without_tools(line: bytes, hidden: Callable[[str], bool]) -> bytes:
    """A tools/list answer without the hidden tools, and no more to be cached for everyone.

    An answer that cannot be read stays as it is: to hide is a courtesy, for a call of a hidden tool is refused anyway.
    """

    def shown(result: bytes) -> bytes:
        tools = response_edits.member_or_empty(result, "tools")
        edits: list[response_edits.Edit] = []
        before: raw_json.Span | None = None  # the last tool that stays, or went with all before it
        gone = True  # all tools so far
        for span, name in _listed(tools):
            if name is not None and hidden(name):
                edits.append(((before[1] if before else span[0], span[1]), b""))
            elif gone and before:
                edits.append(((before[1], span[0]), b""))  # what stood between is no more between two
                gone = False
            else:
                gone = False
            before = span
        return _with_tools(result, tools, raw_json.splice(tools, edits))

    return _with_result(line, shown)


def _listed(tools: bytes) -> Iterator[tuple[raw_json.Span, str | None]]:
    """Where each tool of a list stands, and its name; None: it has none that can be read. Raises Unreadable."""
    at = 0
    for item in map(bytes, raw_json.items(tools)):
        start = tools.index(item, at)
        at = start + len(item)
        yield (start, at), raw_json.text(response_edits.member_or_empty(item, "name"))


def _with_tools(result: bytes, tools: bytes, edited: bytes) -> bytes:
    """The tools/list result with its list edited."""
    if edited == tools:
        return result
    result = raw_json.with_member(result, "tools", edited)
    scope = response_edits.member_or_empty(result, "cacheScope")
    return raw_json.with_member(result, "cacheScope", b'"private"') if scope else result


def unaudited(id_lexeme: bytes, *, stateless: bool, task: bool, ran: bool) -> bytes:
    """The answer to a call where an audit is required and cannot be written."""
    done = "The tool was run, but its output is withheld" if ran else "Blocked, and the tool was not run"
    text = f"{done}: the configuration requires an audit of each call, and it cannot be written. Tell the user."
    return _failure(id_lexeme, text, stateless, task)


def ambiguous(id_lexeme: bytes, why: str) -> bytes:
    """The answer to a call whose own answer two readers could take differently."""
    return _failed_call(id_lexeme, f"The tool was run, but its answer is withheld, for it cannot be judged: {why}.")


def response_too_long(id_lexeme: bytes, size: int, limit: int) -> bytes:
    """The answer to a call whose own answer is too long to be judged."""
    why = f"its {size} bytes are more than {limit} (max_message_bytes)"
    return _failed_call(id_lexeme, f"The tool was run, but its answer is withheld: {why}. Ask for less at once.")


def server_lost(id_lexeme: bytes, status: str) -> bytes:
    """The answer to a call whose server is gone; `status` says how it ended, as `exit status 1`."""
    ended = f"The MCP server ended before it answered this call ({status})"
    return _failed_call(id_lexeme, f"{ended}. The call may have had its effect.")


def ended_early(id_lexeme: bytes) -> bytes:
    """The answer to a call that was not judged when everything ended."""
    return _failed_call(id_lexeme, "hookproxy ended before its hooks had judged this call. The tool was not run.")


def defect(id_lexeme: bytes, what: str, *, seen: bool) -> bytes:
    """The answer to a call that nobody's decision has ended, but `what` says; the server has `seen` it, or not."""
    effect = "It may have had its effect." if seen else "The tool was not run."
    return _failed_call(id_lexeme, f"hookproxy could not see this call through ({what}). {effect}")


def refused_message(id_lexeme: bytes, why: str, *, unreadable: bool) -> bytes:
    """The answer to a message that was not forwarded; `why` is a sentence."""
    code = UNREADABLE if unreadable else MALFORMED
    return response_edits.error_response(id_lexeme, code, f"hookproxy refused this message. {why}")


def message_too_long(size: int, limit: int) -> str:
    """Why a message of this size is refused."""
    return f"It has {size} bytes; more than {limit} (max_message_bytes) cannot be judged."


def approval_elicitation(id_lexeme: bytes, message: str) -> bytes:
    """Our question to the person, as a request to the agent."""
    params = approval_messages.elicitation_params(message)
    return b'{"jsonrpc":"2.0","id":%b,"method":"elicitation/create","params":%b}\n' % (id_lexeme, params)


def approval_cancelled(id_lexeme: bytes) -> bytes:
    """Our question to the person is taken back: the call that it is about is gone."""
    params = b'{"requestId":%b,"reason":"The call that this is about is gone."}' % id_lexeme
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}\n' % params


def input_required(id_lexeme: bytes, message: str, seal: str) -> bytes:
    """The answer to a call that goes on when the person has answered (2026-07-28)."""
    request = b'{"method":"elicitation/create","params":%b}' % approval_messages.elicitation_params(message)
    requests = b"{%b:%b}" % (response_edits.json_string(approval_messages.MEMBER), request)
    result = b'{"resultType":"input_required","inputRequests":%b,"requestState":%b}' % (
        requests,
        response_edits.json_string(seal),
    )
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id_lexeme, result)


def log_entry(text: str) -> bytes:
    """A log message for the person; the server must have declared logging."""
    params = b'{"level":"info","logger":"hookproxy","data":%b}' % response_edits.json_string(text[:_MAX_CHARACTERS])
    return b'{"jsonrpc":"2.0","method":"notifications/message","params":%b}\n' % params


def _with_result(line: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    """The line with its result edited; `line` itself if nothing changes, or it is unclear what would."""
    try:
        span = raw_json.members(line).get("result", (0, 0))
        result = line[slice(*span)]
        edited = edit(result)
    except response_edits.AMBIGUOUS:
        return line
    return line if edited == result else raw_json.splice(line, [(span, edited)])


def _failure(id_lexeme: bytes, text: str, stateless: bool, task: bool) -> bytes:
    if task:
        return response_edits.error_response(id_lexeme, REFUSED, text)
    return response_edits.failed_result(id_lexeme, text, stateless)


def _failed_call(id_lexeme: bytes, text: str) -> bytes:
    return response_edits.error_response(id_lexeme, response_edits.INTERNAL_ERROR, text)


def _refusal_sentence(refuse: Refuse) -> str:  # noqa: C901  # one case for each ground
    hook, reason = f"the {refuse.event} hook {refuse.by}", refuse.reason
    match refuse.cause:
        case RefusalCause.DENIED:
            said = f": {reason}" if reason else ", which gave no reason. The tool was not run."
            wish = "\nThe hook wants you to stop here: make no further calls, and report to the user."
            return f"Blocked by {hook}{said}{wish if refuse.stop else ''}"
        case RefusalCause.FAILURE:
            rule = 'blocking because the configuration says on_failure = "deny"'
            return f"Blocked: {hook} failed: {reason}; {rule}. The tool was not run."
        case RefusalCause.FAILED_CLOSED:
            rule = "blocking because this hook is set to block when it fails"
            return f"Blocked: {hook} failed: {reason}; {rule}. The tool was not run."
        case RefusalCause.ASK_DENIED:
            rule = 'The configuration says on_ask = "deny", so the call is denied.'
        case RefusalCause.ASK_UNAVAILABLE:
            rule = "This agent cannot ask the user, so the call is denied."
        case RefusalCause.DECLINED:
            rule = "The user was asked and did not allow it. Do not try it again, unless the user says so."
        case RefusalCause.RULE:
            rule = f"the permission rule {refuse.by} of {refuse.where}"
            return f"Blocked by {rule}{_because(reason)} The tool was not run."
        case RefusalCause.LIMIT:
            time = f"{refuse.retry_after} second{'s' * (refuse.retry_after != 1)}"
            wait = f"Try again in {time}." if refuse.retry_after else "Do not try again in this session."
            return f"Blocked by {refuse.by} of {refuse.where}: {reason}. The tool was not run. {wait}"
        case _:
            assert_never(refuse.cause)
    return f"Blocked: {refuse.by} requires confirmation by the user{_because(reason)} {rule}"


def _because(reason: str) -> str:
    return f": {reason}{'' if reason.endswith(('.', '!', '?')) else '.'}" if reason else "."


def _withheld_sentence(failed: Iterable[HookRun], pre_feedback: Sequence[str]) -> str:
    """What stands in the output's place. What post hooks said is left out: it may quote the output."""
    sentences = (
        f"The tool was run, but its output is withheld, because {_hook_failure(one)}. "
        "Calling the tool again would run it again."
        for one in failed
    )
    return _paragraphs((*sentences, *pre_feedback))[:_MAX_CHARACTERS]


def _hidden_sentence(comments: Comments) -> str:
    return f"The tool was run. Its output is hidden by the hook {comments.hidden_by}: calling again will not show it."


def _feedback_text(comments: Comments, pre_feedback: Sequence[str]) -> str:
    noted = (
        f"Note: {_hook_failure(one)}. It is set to block when it fails, but the tool had run already: "
        "the output stands as it is, not judged by this hook."
        for one in comments.noted
    )
    return _paragraphs((*pre_feedback, *comments.feedback, *noted))


def _hook_failure(one: HookRun) -> str:
    return f"the {one.spec.event} hook {one.spec.label} failed: {one.verdict.failure}"


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
