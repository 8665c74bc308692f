"""The server's elicitations: read them, decide the response that hooks give for the person, and write the lines.

A changed line differs only in the response (law 2). A hook's failure is never a response (law 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import normalize, raw_json
from ..model.hooks import Elicitation, HookRun, Verdict
from ..model.settings import OnFailure, Settings
from ..policy import decide as policy

if TYPE_CHECKING:
    from .responses import Members

_STRICTNESS: Final = {"accept": 1, "cancel": 2, "decline": 3}
_MAX_SHOWN: Final = 200  # characters of the server's message in a sentence about it
_FORM_VALUES: Final = msgspec.json.Decoder(dict[str, str | int | float | bool | list[str] | None])
"""The values that a form can have, according to the protocol."""


class ElicitationStage(Enum):
    """How far an elicitation has come."""

    ASKED = auto()  # the agent has it
    HELD = auto()  # its hooks are running; the agent does not know it
    ANSWERED = auto()  # hooks are judging the agent's response
    WITHDRAWN = auto()  # the agent has it, and the server has cancelled it
    REFUSED = auto()  # too many elicitations are pending


class PendingElicitation(Struct, eq=False):
    """One elicitation of the handshake era, or another request of the server that is judged."""

    key: bytes
    id: bytes
    """As the server spelled it."""
    elicitation: Elicitation
    task: bool = False
    """The server asked for a task handle instead of a response."""
    method: str = "elicitation/create"
    judged: bool = False
    """Rules or hooks of calls are about its method."""
    stage: ElicitationStage = ElicitationStage.ASKED

    @property
    def is_elicitation(self) -> bool:
        """It is one, and no other request."""
        return self.method == "elicitation/create"


class ElicitationResponse(Struct, frozen=True):
    """The response that hooks give for the person."""

    action: str
    content: bytes | None = None
    """With `accept`: the form's values; None: there are none, or they stay as the person gave them."""
    by: str = "hookproxy"
    """Which hook gave it, for people."""


def read(params: Members) -> Elicitation:
    """Read an `elicitation/create`. Raises Unreadable, DuplicateKeys: the agent may read it differently than hooks."""
    schema = bytes(params.get("requestedSchema", b""))
    return Elicitation(
        message=_text(params, "message"),
        mode=_text(params, "mode") or "form",
        schema=normalize.normalize(schema, lenient=True) if schema[:1] == b"{" else b"",
        url=_text(params, "url"),
        elicitation_id=_text(params, "elicitationId"),
    )


def with_agent_response(elicitation: Elicitation, response: Members) -> Elicitation:
    """Return the elicitation with the agent's response. Raises Unreadable, DuplicateKeys if that is ambiguous."""
    if "result" not in response:
        return replace(elicitation, action="error")
    result = raw_json.fields(response["result"])
    content = bytes(result.get("content", b""))
    return replace(
        elicitation,
        action=_text(result, "action"),
        content=normalize.normalize(content, lenient=True) if content[:1] == b"{" else None,
    )


def _text(members: Members, name: str) -> str:
    return raw_json.text(bytes(members.get(name, b""))) or ""


def checked_verdict(verdict: Verdict, elicitation: Elicitation, task: bool) -> Verdict:
    """Return the verdict with the content that would be sent. Content that cannot be sent is a failure of the hook."""
    if verdict.action != "accept":
        return replace(verdict, content=None)
    if task:
        return replace(verdict, failure=verdict.failure or "accepted an elicitation that must be answered with a task")
    if elicitation.mode != "form":
        return replace(verdict, content=None)  # the person visits a page: there are no values
    if verdict.content is None:
        return verdict if elicitation.action == "accept" else replace(verdict, content=b"{}")
    try:
        normalize.normalize(verdict.content)
        _FORM_VALUES.decode(verdict.content)
    except (ValueError, msgspec.MsgspecError, RecursionError) as problem:
        failure = verdict.failure or f"gave content that a form cannot have: {problem}"
        return replace(verdict, content=None, failure=failure)
    return verdict


def decide(
    hook_runs: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None
) -> ElicitationResponse | None:
    """Return one group's response, or None. In `hook_runs`, the last response of the same kind wins.

    `decline` beats `cancel` beats `accept`. A failed hook can decline or cancel, but never accept.
    """
    given = [_response_of(run) for run in hook_runs if not run.spec.background]
    if refuse := policy.failure_refusal(hook_runs, settings, group_on_failure):
        given.append(ElicitationResponse("decline", by=refuse.by))
    responses = [response for response in given if response is not None]
    return max(reversed(responses), key=lambda response: _STRICTNESS[response.action], default=None)


def _response_of(run: HookRun) -> ElicitationResponse | None:
    verdict, by = run.verdict, f"{run.spec.label} ({run.spec.source})"
    if verdict.stop:
        return ElicitationResponse("decline", by=by)
    if verdict.action not in _STRICTNESS or (verdict.action == "accept" and verdict.failure):
        return None
    return ElicitationResponse(verdict.action, verdict.content, by)


def stricter(first: ElicitationResponse | None, second: ElicitationResponse | None) -> ElicitationResponse | None:
    """Return the stricter response of two groups that ran in this order; of equally strict ones, the later."""
    if first is None or second is None:
        return first or second
    return first if _STRICTNESS[first.action] > _STRICTNESS[second.action] else second


def with_response(elicitation: Elicitation, response: ElicitationResponse) -> Elicitation:
    """Return the elicitation with this response, as the next hooks get it."""
    content = response.content
    if response.action == "accept":
        content = elicitation.content if content is None else normalize.normalize(content)
    return replace(elicitation, action=response.action, content=content)


def response_line(raw_id: bytes, response: ElicitationResponse) -> bytes:
    """Return the line with the response to the server's request."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (raw_json.one_line(raw_id), result_of(response))


def changed_response(line: bytes, response: ElicitationResponse) -> bytes:
    """Put this action and content into the agent's response; everything else stays as it was."""
    spans = raw_json.members(line)
    if "result" not in spans:
        return line
    start, end = spans["result"]
    result = line[start:end]
    if raw_json.text(bytes(raw_json.fields(result).get("action", b""))) != response.action:
        result = raw_json.with_member(result, "action", raw_json.encode(response.action))
    if response.action != "accept":
        result = raw_json.without_member(result, "content")
    elif response.content is not None:
        result = raw_json.with_member(result, "content", _on_one_line(response.content))
    return line if result == line[start:end] else raw_json.splice(line, [((start, end), result)])


def result_of(response: ElicitationResponse) -> bytes:
    """The result that gives this response."""
    content = b"" if response.content is None else b',"content":%b' % _on_one_line(response.content)
    return b'{"action":%b%b}' % (raw_json.encode(response.action), content)


def _on_one_line(content: bytes) -> bytes:
    """Replace line ends by blanks: in JSON they only stand between tokens."""
    return raw_json.one_line(content.replace(b"\n", b" "))


def report(elicitation: Elicitation, response: ElicitationResponse) -> str:
    """Return the sentence for people about a hook's response, or about a changed one. It never contains the values."""
    message = elicitation.message[:_MAX_SHOWN]
    if elicitation.action:
        changed = f"{elicitation.action}, {response.action}"
        return f"{response.by} changed the response to the server's request {message!r}: {changed}"
    return f"{response.by} answered the server's request {message!r} for the person: {response.action}"
