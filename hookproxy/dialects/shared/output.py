"""What a run of a hook printed and how it ended, read as all dialects read it: texts, JSON without ambiguity."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from ...jsonrpc import normalize, raw_json
from ...model.hooks import Ended, HookResult, HookSpec, Permission, Verdict

MAX_TEXT: Final = 10_000
"""Characters of each text of a hook that go on: what Claude Code grants them; the other documents set no limit."""

MAX_EXPLANATION: Final = 300
"""Characters of an explanation in a sentence about trouble: enough for a path and an error message."""


ANY_TEXT: Final[tuple[str | bool, ...]] = ()
"""In `DecidingMembers`: any text, as reasons are."""

DecidingMembers = Mapping[str, tuple[str | bool, ...]]
"""The members that decide, with the values that a document knows for them, and their reasons, with ANY_TEXT; `a.b` is a
member of a member. An answer of these alone can be read."""

T = TypeVar("T")


class InvalidOutput(ValueError):
    """A hook's output that is no answer; the message says why in a few words, to stand as `Verdict.trouble`."""


def normalise(raw: bytes) -> bytes:
    """The same JSON, legible and with no key twice. Raises ValueError that says where it cannot be read."""
    try:
        return normalize.normalize_output(raw)
    except raw_json.Unreadable:
        return normalize.normalize(raw, lenient=True)  # slower, but its error has the place


def describe_end(spec: HookSpec, result: HookResult) -> str:
    """How a run ended that did not end by itself."""
    if result.ended is Ended.TIMED_OUT:
        return f"timed out after {spec.timeout:g} s"
    if result.ended is Ended.NOT_STARTED:
        return "could not be started" + explanation(result.detail)
    if result.ended is Ended.CANCELLED:
        return "was ended with its call"
    if result.ended is Ended.FAILED:
        return truncate(result.detail.partition("\n")[0], MAX_EXPLANATION) or "failed"
    try:
        name = signal.Signals(result.code).name
    except ValueError:  # a real-time signal has no name
        name = str(result.code)
    return f"was ended by signal {name}"


def decode(output: bytes) -> str:
    """Output as text: a byte order mark and line ends of Windows are no part of it."""
    return output.decode(errors="replace").removeprefix("\ufeff").replace("\r\n", "\n").strip()


def one_line(raw: msgspec.Raw) -> bytes:
    """JSON that fits into a line; between tokens, where alone these bytes can stand, a blank does as well."""
    return bytes(raw).replace(b"\n", b" ").replace(b"\r", b" ")


def nonempty(*said: str) -> tuple[str, ...]:
    """Those that say anything, none of them longer than MAX_TEXT."""
    return tuple(truncate(one) for one in said if one)


def truncate(said: str, longest: int = MAX_TEXT) -> str:
    """The text, and how much of it is missing where it is too long."""
    rest = len(said) - longest
    return said if rest <= 0 else f"{said[:longest]} … [{rest} more characters cut by hookproxy]"


def explanation(said: str) -> str:
    """The first line of what explains the sentence before it, if anything does."""
    first_line = said.partition("\n")[0].rstrip()
    return f": {truncate(first_line, MAX_EXPLANATION)}" if first_line else ""


def parse_json_object(output: bytes, decoder: msgspec.json.Decoder[T]) -> T | None:
    """The answer in an output that is one JSON object; None: the output is empty or plain text.

    Raises InvalidOutput, with what is wrong in a few words, for what begins and ends as an object and cannot be read,
    or does not have the decoder's shape: a member of another type is never guessed at.
    """
    said = decode(output)
    if not (said.startswith("{") and said.endswith("}")):
        return None
    try:
        return decoder.decode(normalise(said.encode()))
    except (ValueError, msgspec.MsgspecError, RecursionError) as problem:
        raise InvalidOutput("printed JSON that cannot be read" + explanation(str(problem))) from None


def keep_deciding_members(result: HookResult, parts: DecidingMembers) -> HookResult:
    """The same run, as if its answer held these parts alone, and of them those whose values the document knows.

    For answers that cannot be read whole: with `invalid_output_verdict` it tells whether such a one denies.
    """
    found: dict[str, object] = {}
    try:
        answer = _LENIENT.decode(decode(result.stdout))
    except (ValueError, RecursionError):
        answer = None
    for path, values in parts.items():
        outer, _, name = path.rpartition(".")
        holder = _member(answer, outer) if outer else answer
        value = _member(holder, name)
        if isinstance(value, str) if values is ANY_TEXT else isinstance(value, str | bool) and value in values:
            target = found.setdefault(outer, {}) if outer else found
            if isinstance(target, dict):
                target[name] = value
    return replace(result, stdout=json.dumps(found).encode())


def background_verdict(spec: HookSpec, verdict: Verdict) -> Verdict:
    """Of a background hook only what people may read: it comes too late to decide."""
    return Verdict(messages=verdict.messages, failure=verdict.failure) if spec.background else verdict


def invalid_output_verdict(verdict: Verdict, nonsense: str) -> Verdict:
    """What holds of an answer that cannot be read whole, by the verdict on what was `keep_deciding_members`.

    A denial stands, and people are told what is wrong with it. Consent never does: it is trouble as anything else.
    """
    denies = verdict.permission is Permission.DENY or verdict.stop or verdict.feedback  # after a call: why it was wrong
    if denies or verdict.failure:  # trouble: with exit code 2, where there is nothing to block
        return replace(verdict, messages=(*verdict.messages, nonsense))
    return Verdict(failure=nonsense)


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _singles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The members of an object without twins: of these nobody can tell which one counts."""
    times = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if times[key] == 1}


_LENIENT: Final = json.JSONDecoder(object_pairs_hook=_singles, parse_int=float, strict=False)
"""Takes what careless hooks print: NaN, numbers of any length, line ends inside texts."""
