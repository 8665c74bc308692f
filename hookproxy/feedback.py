"""Every sentence that the model may read about hooks, and the answers that carry them.

A sentence names the hook and says what the model can act on. The bytes are the matter of `answers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from . import answers, wire
from .answers import Delivered
from .model import Comments, Delivery, Ground, Refuse, Tool, Trouble

REFUSED: Final = -31403
"""Error code of a refusal that cannot be a result: HTTP's 403, outside the range that JSON-RPC reserves."""

UNREADABLE: Final = -32700  # JSON-RPC's code for text that is no JSON
MALFORMED: Final = -32600  # JSON-RPC's code for JSON that is no valid request

_LONGEST: Final = 1_000_000
"""Characters of text in our own answers: at six bytes each in JSON, a line stays below `answers.LIMIT`."""


def refusal(
    id_lexeme: bytes, refuse: Refuse, event: str, *, stateless: bool = False, task: bool = False
) -> bytes:
    """The answer to a refused call: a failed result, or an error where only a task is a valid result."""
    text = _paragraphs((_refused(refuse, event), *refuse.feedback))[:_LONGEST]
    if task:
        return answers.error(id_lexeme, REFUSED, text)
    return answers.failure(id_lexeme, text, stateless)


def deliver(
    line: bytes, comments: Comments, pre_feedback: Sequence[str], delivery: Delivery, tool: Tool | None
) -> Delivered:
    """The answer `line`, which holds a result, with the comments in it; the same object if there are none.

    Raises Unreadable or TwinKeys if output must not pass and the answer's envelope cannot be read.
    """
    if comments.withheld:
        return Delivered(answers.withheld(line, _withheld(comments.withheld, pre_feedback)))
    if comments.replacement is not None:
        line = answers.replaced(line, comments.replacement, delivery, tool)
    text = _feedback(comments, pre_feedback)
    return answers.commented(line, text, delivery, tool) if text else Delivered(line)


def deliver_error(line: bytes, comments: Comments, pre_feedback: Sequence[str]) -> Delivered:
    """The answer `line`, which holds a JSON-RPC error, with the comments in it. Else as `deliver`."""
    if comments.withheld:
        return Delivered(answers.only_message(line, _withheld(comments.withheld, pre_feedback)))
    if comments.replacement is not None:
        said = wire.text(comments.replacement)
        text = comments.replacement.decode(errors="replace") if said is None else said
        line = answers.only_message(line, text)
    text = _feedback(comments, pre_feedback)
    return answers.commented_error(line, text) if text else Delivered(line)


def server_lost(id_lexeme: bytes, status: str) -> bytes:
    """The answer to a call whose server is gone; `status` says how it ended, as `exit status 1`."""
    text = f"The MCP server ended before it answered this call ({status}). The call may have had its effect."
    return answers.error(id_lexeme, answers.INTERNAL, text)


def unreadable(why: str) -> bytes:
    """The answer to a line that is no JSON: it has no id to answer to."""
    return answers.error(b"null", UNREADABLE, f"hookproxy refused this message. {why}")


def malformed(id_lexeme: bytes | None, why: str) -> bytes:
    """The answer to a message that two readers could take differently."""
    return answers.error(id_lexeme or b"null", MALFORMED, f"hookproxy refused this message. {why}")


def too_long(limit: int) -> bytes:
    """The answer to a line from the agent that is too long to be judged; its id is not known."""
    why = f"It is longer than {limit} bytes (max_message_bytes), so no hook could judge it."
    return answers.error(b"null", MALFORMED, f"hookproxy refused this message. {why}")


def answer_too_long(id_lexeme: bytes, limit: int) -> bytes:
    """The answer to a call whose result is too long to be judged."""
    text = (
        f"The tool was run, but its answer is longer than {limit} bytes (max_message_bytes): no hook could "
        "judge it, so it is withheld. Ask for less at once."
    )
    return answers.error(id_lexeme, answers.INTERNAL, text)


def log_entry(text: str) -> bytes:
    """A log message for the person; the server must have declared logging."""
    return (
        b'{"jsonrpc":"2.0","method":"notifications/message","params":'
        b'{"level":"info","logger":"hookproxy","data":%b}}\n' % answers.string(text[:_LONGEST])
    )


def _refused(refuse: Refuse, event: str) -> str:
    hook, reason = f"the {event} hook {refuse.by}", refuse.reason
    match refuse.ground:
        case Ground.DENIED:
            said = f": {reason}" if reason else ", which gave no reason. The tool was not run."
            wish = "\nThe hook wants you to stop here: make no further calls, and report to the user."
            return f"Blocked by {hook}{said}{wish if refuse.stop else ''}"
        case Ground.TROUBLE:
            rule = 'blocking because the configuration says on_trouble = "deny"'
            return f"Blocked: {hook} failed: {reason}; {rule}. The tool was not run."
        case Ground.FAILED_CLOSED:
            rule = "blocking because this hook is set to block when it fails"
            return f"Blocked: {hook} failed: {reason}; {rule}. The tool was not run."
        case Ground.ASK_DENIED:
            rule = 'The configuration says on_ask = "deny", so the call is denied.'
        case Ground.ASK_UNAVAILABLE:
            rule = "This version of hookproxy cannot ask the user yet (elicitation), so the call is denied."
        case _:
            assert_never(refuse.ground)
    return f"Blocked: {hook} requires confirmation by the user{_because(reason)} {rule}"


def _because(reason: str) -> str:
    return f": {reason}{'' if reason.endswith(('.', '!', '?')) else '.'}" if reason else "."


def _withheld(troubles: Iterable[Trouble], pre_feedback: Sequence[str]) -> str:
    """What stands in the output's place. What post hooks said is left out: it may quote the output."""
    sentences = (
        f"The tool was run, but its output is withheld: the {one.event} hook {one.by} had to judge it and "
        f"failed: {one.what}. Calling the tool again would run it again."
        for one in troubles
    )
    return _paragraphs((*sentences, *pre_feedback))[:_LONGEST]


def _feedback(comments: Comments, pre_feedback: Sequence[str]) -> str:
    noted = (
        f"The {one.event} hook {one.by} failed: {one.what}; it is set to block when it fails, but the tool "
        "had run already: its output stands as it is, not judged by this hook."
        for one in comments.noted
    )
    return _paragraphs((*pre_feedback, *comments.feedback, *noted))


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
