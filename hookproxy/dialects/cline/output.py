"""Reads what a Cline hook prints into a verdict.

Cline's CLI ignores the exit status; its extension ignores what a hook prints if the status is not 0, although its page
says otherwise. Here a hook that cancels has cancelled, whatever its exit status: no guard is passed over.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec
from msgspec.structs import replace

from ...model.hooks import NO_VERDICT, Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect, for_names
from ..shared import output as shared_output

_CONTROL: Final = "HOOK_CONTROL\t"
"""A line that begins so holds the JSON, whatever else is printed."""

_MOST_ATTEMPTS: Final = 1_000
"""How many braces are tried as the beginning of the JSON among other text: a few milliseconds."""


class _Control(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints. Types are strict, null counts as absent, other members are ignored."""

    cancel: bool | None = None
    review: bool | None = None
    context: str | None = None
    contextModification: str | None = None
    errorMessage: str | None = None
    overrideInput: msgspec.Raw = shared_output.NO_JSON
    shouldContinue: msgspec.Raw = shared_output.NO_JSON


FIELDS: Final = for_names({
    Effect.DENIES_AND_STOPS: "cancel",
    Effect.DECIDES: "review",
    Effect.REASON: "errorMessage",
    Effect.TELLS_MODEL: "context contextModification",
    Effect.REWRITES: "overrideInput",
})  # fmt: skip

_DECODER: Final = msgspec.json.Decoder(_Control)
_DECIDING: Final = shared_output.deciding_members(
    FIELDS, {"review": (True, False), "contextModification": shared_output.ANY_TEXT}
)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run. Never raises."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    printed = _json_of(shared_output.decode(result.stdout))
    if not printed and not result.code:
        return NO_VERDICT
    try:
        control = shared_output.parse_json_object(printed.encode(), _DECODER)
        if control is None and printed:
            what = shared_output.CUT_JSON if result.cut else "printed something other than a JSON object"
            raise shared_output.InvalidOutput(what)
        if control is not None and bytes(control.shouldContinue):
            raise shared_output.InvalidOutput("printed shouldContinue, which Cline refuses: write cancel")
    except shared_output.InvalidOutput as error:
        kept = shared_output.keep_deciding_members(replace(result, stdout=printed.encode()), _DECIDING)
        verdict = _verdict(spec.event, _DECODER.decode(kept.stdout))
        if verdict.permission is Permission.ASK:
            return replace(verdict, messages=(str(error),))
        verdict = verdict if verdict.stop else replace(verdict, feedback=())
        return shared_output.invalid_output_verdict(verdict, str(error))
    verdict = _verdict(spec.event, control or _Control())
    if not result.code or verdict.permission in (Permission.DENY, Permission.ASK) or verdict.stop:
        return verdict
    return Verdict(failure=shared_output.exit_failure(result.code, shared_output.decode(result.stderr)))


def _verdict(event: Event, control: _Control) -> Verdict:
    before = event is Event.PRE_TOOL_USE
    context = control.context or control.contextModification or ""
    if control.cancel:
        reason = shared_output.truncate(control.errorMessage or context)
        if before:
            return Verdict(permission=Permission.DENY, reason=reason, stop=True)
        return Verdict(feedback=shared_output.nonempty(reason), stop=True)
    rewrite = shared_output.given(control.overrideInput)
    if rewrite and not (before and rewrite.startswith(b"{")):
        why = "that is not an object" if before else f"on {event}, where it cannot change the arguments"
        return Verdict(failure=f"gave an overrideInput {why}")
    texts = shared_output.nonempty(context or control.errorMessage or "")
    return Verdict(
        permission=Permission.ASK if before and control.review else None,
        reason=shared_output.truncate(control.errorMessage or "") if before and control.review else "",
        arguments=rewrite or None,
        feedback=() if event is Event.SESSION_END else texts,
    )


def unframed(stdout: bytes) -> bytes:
    """The JSON of the one line that begins with HOOK_CONTROL, beside other lines without braces; else all of it."""
    control, *others = sorted(stdout.splitlines(), key=lambda line: not line.startswith(_CONTROL.encode())) or [b""]
    if not control.startswith(_CONTROL.encode()) or any(b"{" in line or _CONTROL.encode() in line for line in others):
        return stdout
    return control.removeprefix(_CONTROL.encode())


def _json_of(text: str) -> str:
    """The part of what was printed that is the JSON, as both engines find it; all of it if there is no such part.

    A line that begins with HOOK_CONTROL wins; else it is all of the text; else the last object among other text.
    """
    controls = [line[len(_CONTROL) :] for line in text.split("\n") if line.startswith(_CONTROL)]
    if controls:
        return controls[-1].strip()
    if not text or (text.startswith("{") and text.endswith("}") and _is_object(text)):
        return text
    line = text.rpartition("\n")[2].strip()
    return line if line.startswith("{") and _is_object(line) else _last_object(text) or text


def _last_object(text: str) -> str:
    """The last JSON object in a text; empty if there is none, or too many braces to find it."""
    last, at = "", text.find("{")
    for _ in range(_MOST_ATTEMPTS):
        if at < 0:
            return last
        try:
            _, end = _LENIENT.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            last = text[at:end]
        at = text.find("{", end)
    return ""


def _is_object(text: str) -> bool:
    try:
        return isinstance(_LENIENT.decode(text), dict)
    except (ValueError, RecursionError):
        return False


_LENIENT: Final = json.JSONDecoder(strict=False)
