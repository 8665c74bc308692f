"""How all dialects read a hook's run: how it ended, its output as text, and its output as unambiguous JSON."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec.structs import replace

from ...jsonrpc import normalize, raw_json
from ...model.hooks import Ended, HookResult, HookSpec, Permission, Verdict
from ...model.late_pattern import late_pattern
from ...policy import matchers
from ..dialect import Effect

MAX_TEXT: Final = 10_000
"""Characters of each text of a hook that are passed on: Claude Code's limit. The other documents set no limit."""

BLOCKS: Final = 2
"""The exit status that denies, in all systems but one."""

NO_JSON: Final = msgspec.Raw(b"")
"""A member of any type that is absent."""

PERMISSIONS: Final = {
    "allow": Permission.ALLOW,
    "approve": Permission.ALLOW,
    "ask": Permission.ASK,
    "deny": Permission.DENY,
    "block": Permission.DENY,
}
"""What words of decisions mean. The shape of a system's output says which of them it has."""

MAX_RULES: Final = 1000
"""Each permission rule that a hook prints is compiled: very many must not delay all calls."""

CUT_JSON: Final = "printed more than hookproxy keeps, so its JSON is incomplete"
INCOMPLETE_JSON: Final = "printed JSON that is incomplete or followed by other text"
JSON_IN_TEXT: Final = "printed JSON among other text, which makes it plain text"
"""What several dialects report about output. The sentence begins with the hook."""

LOST: Final = "gave the member"
"""The beginning of a failure because of a member that the system does not know."""
MAX_EXPLANATION: Final = 300
"""Characters of an explanation in the sentence about a failure: enough for a path and an error message."""

ANY_TEXT: Final[tuple[str | bool, ...]] = ()
"""In `DecidingMembers`: the member may be any text, for example a reason."""

DecidingMembers = Mapping[str, tuple[str | bool, ...]]
"""The output members that decide, each with the values that the document defines, and their reasons (ANY_TEXT). `a.b`
is member `b` of member `a`. `keep_deciding_members` reduces an output to these."""

_TRACEBACK: Final = "Traceback (most recent call last):"  # of Python
_SYNTAX_ERROR: Final = late_pattern(
    r'^ +File "([^"\n]+)", line (\d+)\n(?:[^\n]*\n){0,3}?((?:Syntax|Indentation|Tab)Error\b.*)', re.M
)
"""What Python says of a program that it cannot read: the place, the line, a mark below it, and the error."""
_NODE_ERROR: Final = late_pattern(
    r"^((?:Uncaught )?[\w$.]*(?:Error|Exception)\b[^\n]*)\n(?:[^\n]*\n){0,3}? {4}at ", re.MULTILINE
)
"""The line with the error of a crash in Node: its message may take a few lines before the stack begins."""

_WRONG_WORD: Final = late_pattern(r"Invalid enum value '(.{0,60})' - at `\$\.([\w.]+)`", re.DOTALL)
"""What msgspec says of a text that is none of a few words: the text, and its path."""

T = TypeVar("T")


class InvalidOutput(ValueError):
    """A hook's output cannot be read. The message says why in a few words, and becomes `Verdict.failure`."""


def normalise(raw: bytes) -> bytes:
    """The same JSON without needless escapes. Raises ValueError, with the place, for JSON with a duplicate key."""
    try:
        return normalize.normalize_output(raw)
    except raw_json.Unreadable:
        return normalize.normalize(raw, lenient=True)  # slower, but its error has the place


def describe_end(spec: HookSpec, result: HookResult) -> str:
    """Says how a run ended that did not exit by itself."""
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
    """Output as text, without Windows line ends, and a byte order mark and white space around it."""
    return (
        output.decode(errors="replace")
        .replace("\r\n", "\n")
        .strip()
        .removeprefix("\ufeff")
        .removesuffix("\ufeff")
        .strip()
    )


def one_line(raw: msgspec.Raw) -> bytes:
    """The same JSON on one line. Line ends can only be between tokens, where a blank does as well."""
    return bytes(raw).replace(b"\n", b" ").replace(b"\r", b" ")


def given(raw: msgspec.Raw) -> bytes:
    """A member's JSON on one line; empty if it is absent or null."""
    text = one_line(raw)
    return b"" if text == b"null" else text


def nonempty(*texts: str) -> tuple[str, ...]:
    """The texts that are not empty, each cut to MAX_TEXT."""
    return tuple(truncate(text) for text in texts if text)


def truncate(text: str, longest: int = MAX_TEXT) -> str:
    """The text, cut to `longest` characters and a note on how many are missing."""
    rest = len(text) - longest
    return text if rest <= 0 else f"{text[:longest]} … [{rest} more characters cut by hookproxy]"


def explanation(text: str) -> str:
    """A colon and the telling line of the text, to append to a sentence. Empty if that line is empty.

    That is the first line; of a crash, the line with the error: Python prints it last, Node above its stack. Where
    Python cannot read a program, the place is added.
    """
    if syntax_error := _SYNTAX_ERROR.search(text):
        line = f"{syntax_error[3]} ({syntax_error[1]}:{syntax_error[2]})"
    elif _TRACEBACK in text:
        line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    else:
        crash = _NODE_ERROR.search(text)
        line = crash[1] if crash else text.partition("\n")[0]
    line = line.strip()
    return f": {truncate(line, MAX_EXPLANATION)}" if line else ""


def unreadable_json(problem: Exception, decoder: msgspec.json.Decoder[T]) -> str:
    """Says why printed JSON cannot be read; of a wrong word also which ones there are."""
    output: object = decoder.type
    return "printed JSON that cannot be read" + explanation(str(problem)) + _right_words(str(problem), output)


@lru_cache(64)  # a hook prints the same wrong word again and again
def _right_words(problem: str, output: object) -> str:
    """The words that a member of the output may have, and the one that is meant, if the problem is such a member."""
    wrong = _WRONG_WORD.fullmatch(problem)
    words = _words_at(output, wrong[2].split(".")) if wrong else ()
    if wrong is None or not words:
        return ""
    from ...model.similar_names import suggestion  # few hooks print a wrong word
    from .decision_words import same_word

    word = same_word(wrong[1], words)
    near = f"did you mean {word!r}?" if word else suggestion(wrong[1], words)
    return f" (it may be {', '.join(words)}{': ' if near else ''}{near})"


def _words_at(annotation: object, path: Sequence[str]) -> tuple[str, ...]:
    """The words of the member at this path of a type; empty if it has no words, or no member there."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        members = {field.encode_name: field.type for field in msgspec.structs.fields(annotation)}
        return _words_at(members[path[0]], path[1:]) if path and path[0] in members else ()
    inner = get_args(annotation)
    if get_origin(annotation) is Literal:
        return () if path else tuple(word for word in inner if isinstance(word, str))
    return next((words for part in inner if (words := _words_at(part, path))), ())


def exit_failure(code: int, text: str) -> str:
    """Says that a hook failed, with the telling line of the text that it printed."""
    return f"exited with status {code}{explanation(text)}"


def parse_json_object(output: bytes, decoder: msgspec.json.Decoder[T]) -> T | None:
    """An output that is one JSON object, decoded. None if the output is empty or plain text.

    Raises InvalidOutput, which says what is wrong, for an output that begins and ends as an object but cannot be read,
    or does not have the decoder's shape: the type of a member is never guessed.
    """
    text = decode(output)
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        return decoder.decode(normalise(text.encode()))
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise InvalidOutput(unreadable_json(error, decoder)) from None


def parse_output(result: HookResult, decoder: msgspec.json.Decoder[T]) -> T | None:
    """As `parse_json_object`; InvalidOutput also for an object without its end: the lost part may have denied."""
    output = parse_json_object(result.stdout, decoder)
    if output is None and decode(result.stdout).startswith("{"):
        raise InvalidOutput(CUT_JSON if result.cut else INCOMPLETE_JSON)
    return output


def read_json(
    result: HookResult, decoder: msgspec.json.Decoder[T], members: DecidingMembers, verdict_of: Callable[[T], Verdict]
) -> Verdict | None:
    """The verdict on output that is a JSON object; None: it is plain text, or empty. `members` are those that decide.

    Of output that cannot be read only a denial counts, and output that is cut off is a failure: the lost part may have
    denied.
    """
    try:
        output = parse_json_object(result.stdout, decoder)
    except InvalidOutput as error:
        deciding = decoder.decode(keep_deciding_members(result, members).stdout)
        return invalid_output_verdict(verdict_of(deciding), str(error))
    if output is None and decode(result.stdout).startswith("{"):
        return Verdict(failure=CUT_JSON if result.cut else INCOMPLETE_JSON)
    return None if output is None else verdict_of(output)


def deciding_members(
    fields: Mapping[str, Effect], decisions: Mapping[str, tuple[str | bool, ...]]
) -> Mapping[str, tuple[str | bool, ...]]:
    """The deciding members of an output, from what its members do and from the words of those that decide."""
    kinds = {Effect.REASON: ANY_TEXT, Effect.DENIES_AND_STOPS: (True, False)}
    return {**{name: kinds[effect] for name, effect in fields.items() if effect in kinds}, **decisions}


def keep_deciding_members(result: HookResult, members: DecidingMembers, *, any_case: bool = False) -> HookResult:
    """The same run, as if its output had only these members, and only those whose values the document defines.

    For output that cannot be read as a whole: `invalid_output_verdict` then finds whether it denies. Of several members
    of the same name the last one counts, as systems read them. `any_case`: names and words of decisions count in
    upper and in lower case, as systems in Go read names.
    """
    kept: dict[str, object] = {}
    try:
        output = (_ANY_CASE if any_case else _LENIENT).decode(decode(result.stdout))
    except (ValueError, RecursionError):
        output = None
    for path, values in members.items():
        outer, _, name = path.rpartition(".")
        spelled = [part.lower() for part in (outer, name)] if any_case else [outer, name]
        holder = _member(output, spelled[0]) if outer else output
        value = _member(holder, spelled[1])
        if any_case and isinstance(value, str) and values is not ANY_TEXT:
            value = value.lower()
        if isinstance(value, str) if values is ANY_TEXT else isinstance(value, str | bool) and value in values:
            target = kept.setdefault(outer, {}) if outer else kept
            if isinstance(target, dict):
                target[name] = value
    return replace(result, stdout=json.dumps(kept).encode())


def rules_error(rules: Sequence[str]) -> str:
    """What is wrong with permission rules that a hook printed. Empty if nothing is."""
    if len(rules) > MAX_RULES:
        return f"gave {len(rules)} permission rules, more than {MAX_RULES}"
    return next(filter(None, map(rule_error, rules)), "")


def rule_error(rule: str) -> str:
    """What is wrong with one of them. Empty if nothing is."""
    try:
        matchers.allow_rule(rule)
    except (re.error, ValueError, OverflowError, RecursionError):
        return f"gave an invalid permission rule: {truncate(repr(rule), MAX_EXPLANATION)}"
    return ""


def last_members(text: str) -> bytes:
    """JSON with the last of several members of the same name, as JSON.parse and most readers take it.

    Raises ValueError, RecursionError for what is not JSON to them either.
    """
    return raw_json.encode(_PARSER.decode(text))


def background_verdict(spec: HookSpec, verdict: Verdict) -> Verdict:
    """A background hook's verdict keeps only what people may read: it comes too late to decide."""
    return Verdict(messages=verdict.messages, failure=verdict.failure) if spec.background else verdict


def invalid_output_verdict(verdict: Verdict, error: str) -> Verdict:
    """The verdict on output that cannot be read as a whole. `verdict` is about its deciding members alone.

    A denial counts, and people get a message about the error. An approval never counts: it is a failure.
    """
    denies = verdict.permission is Permission.DENY or verdict.stop or verdict.feedback  # feedback: after a call
    if denies or verdict.failure:  # a failure: for example exit code 2 where there is nothing to block
        return replace(verdict, messages=(*verdict.messages, error))
    return Verdict(failure=error)


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


_LENIENT: Final = json.JSONDecoder(parse_int=float, strict=False)
"""Accepts what careless hooks print: NaN, numbers of any length, line ends inside strings."""
_ANY_CASE: Final = json.JSONDecoder(
    object_pairs_hook=lambda pairs: {key.lower(): value for key, value in pairs}, parse_int=float, strict=False
)
_PARSER: Final = json.JSONDecoder(parse_int=float, parse_constant=raw_json.reject_constant)
