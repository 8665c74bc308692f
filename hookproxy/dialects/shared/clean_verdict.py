"""Whether a hook's run is a clean verdict of its system. Where failures refuse, nothing else lets a call pass (law 3).

Systems let calls pass on output that their hooks never meant so: a cut object, a log line before the JSON, a fence
around it, another encoding, a decision under another system's name. To them that is plain text, or members that they do
not know. `doubt` finds it in runs that their dialect neither took for a denial nor for a failure.

Clean is an exit status of 0 with no output, with one JSON object that decides nothing but what the dialect has read, or
with text in which nothing could be meant as the JSON of a verdict; and without signs of a crash beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Dialect, Effect
from . import output as shared_output
from .decision_words import ALLOWING_WORDS, ASKING_WORDS, DENYING_WORDS

_CUT: Final = "printed more than hookproxy keeps, so what it decided is not known"
_OTHER_ENCODING: Final = "printed output that is not plain UTF-8, so what it decided is not known"
_BROKEN: Final = "printed JSON that is not one whole object, so what it decided is not known"
_AMONG_TEXT: Final = "printed what may be JSON among other text, so what it decided is not known"
_NOT_ONE_OBJECT: Final = "printed JSON that is not one object, so what it decided is not known"

_CRASH: Final = re.compile(
    r"""^(?:
        .*Traceback\ \(most\ recent\ call\ last\)           # Python
      | [\w.]{1,80}(?:Error|Exception)(?::|$)               # its last line, Node, Java
      | Exception\ (?:in\ thread|ignored\ in)\b | (?:error:\ )?(?:Uncaught|Unhandled)\b | .*\bUnhandledPromise
      | (?:PHP\ )?(?:Fatal|Parse)\ error: | [^\n:]+:\d+:in\  | .{1,200}\ at\ \S+\ line\ \d+\.$    # PHP, Ruby, Perl
      | [ ]*\+\ CategoryInfo                                                                     # PowerShell
      | panic:\ | goroutine\ \d+\ \[ | thread\ '.*'\ .*panicked\ at   # Go, Rust
      | [^\n:]+:\ line\ \d+:\                               # bash and its kin: whatever they say about a line
      | \S+:\ \d+:\ .*(?:not\ found|[Ss]yntax|[Ii]llegal|[Bb]ad\ |unexpected|not\ set|cannot\ |error|denied)    # dash
      | zsh:\d+:\ | fish:\ | (?:ba|da|z|k)?sh:\ .*not\ found
      | (?:jq|yq|[ef]?grep|sed|[gmn]?awk):\                 # what many guards are made of
      | (?:env|python[\d.]*|node|deno|bun|ruby|perl|php)(?:\ |:\ ).*(?:[Nn]o\ such|can't\ open|cannot\ find)
      | Segmentation\ fault | Killed\b | Aborted\b
      | .*(?:write\ error|[Bb]ad\ file\ descriptor|Input/output\ error|No\ space\ left\ on\ device)
    )""",
    re.VERBOSE | re.MULTILINE,
)
"""A line with which interpreters and shells report that a program, or a step of it, has failed. A script whose last
step succeeds exits with status 0 nevertheless."""

_VERDICT_NAMES: Final = re.compile(
    r"hook_?specific_?output|permission_?decision"  # of no other meaning
    r"|[\"'“”]\s*(?:decision|permission|behaviou?r|verdict|continue|cancel|review|halt|interrupt|stop_?reason"
    r"|(?:error|agent|user|system)_?message|block(?:ed)?|den(?:y|ied)|allow(?:ed)?|approved?|reject(?:ed)?|ok)"
    r"\\?[\"'“”]\s*:",
    re.IGNORECASE,
)
"""Names of members that decide, in a text that is not JSON."""
_RESULT_NAMES: Final = re.compile(
    r"hook_?specific_?output|updated_?(?:mcp)?_?tool_?output|[\"']\s*(?:decision|suppress_?output)\\?[\"']\s*:",
    re.IGNORECASE,
)
"""Names of members by which a hook decides about a result."""
_PLAIN_DENIAL: Final = re.compile(
    r"\b(?:decision|permission|behaviou?r|verdict|action)\s*[:=]\s*[\"']?(?:den|block|reject|refus|forbid)",
    re.IGNORECASE,
)
"""A denial in YAML, TOML or a form."""
_OBJECT_START: Final = re.compile(
    r"^[ \t>*-]*[\[{]\s*(?:[\[{\"'\\\]}]|$)|\{\s*(?:\\?[\"'“]|\w+\s*:)|^[ \t]*\{", re.MULTILINE
)
"""Where a JSON object, or an array of them, may begin."""
_ENCODED: Final = re.compile(r"\beyJ[\w+/=-]{6,}|%7[Bb]|%22|&quot;|&#0*34;|\+AHs|\\u00(?:7[bB]|22)")
"""JSON in Base64, in the encoding of addresses, of HTML, in UTF-7, in escapes."""
_LONE_WORD: Final = re.compile(r"[\"'`]?(\w+)[\"'`.!]?")

_SURELY_DENYING: Final = DENYING_WORDS - {"false", "no", "stop", "cancel", "halt"}
"""Those that say nothing else, alone or as the value of a member of any name."""
_EXIT_STATUS: Final = frozenset(("exitcode", "exit", "exitstatus", "statuscode", "returncode", "status"))
"""Members that would be the hook's exit status."""
_NO_VALUES: Final = frozenset(("none", "undefined", "nan"))
"""What languages print in place of a value: a function has returned nothing."""

_DECISIONS: Final = frozenset(
    ("decision", "permission", "permissiondecision", "behavior", "behaviour", "verdict", "action", "hookdecision")
)
"""Members whose value is the decision, without signs and in lower case. Systems differ in how they spell them."""
_PASSES_IF_TRUE: Final = frozenset(
    ["continue", "shouldcontinue", "ok", "allow", "allowed", "isallowed", "approve", "approved", "permit",
     "permitted", "accept", "accepted", "pass", "passed", "proceed", "success", "succeeded", "valid", "safe"]
)  # fmt: skip
_REFUSES_IF_TRUE: Final = frozenset(
    ["block", "blocked", "isblocked", "deny", "denied", "reject", "rejected", "refuse", "refused", "forbid",
     "forbidden", "cancel", "cancelled", "halt", "stop", "abort", "interrupt", "preventcontinuation", "review",
     "ask", "unsafe", "error", "errors", "exception", "traceback", "failed", "failure"]
)  # fmt: skip
_REWRITES: Final = frozenset(("updatedinput", "modifiedargs", "overrideinput"))
_ABOUT_THE_CALL: Final = frozenset(("toolinput", "toolargs", "toolresponse", "tooloutput"))
"""Members of the document that a hook gets. One that prints its document decides nothing with what is in it."""

_TEXTS: Final = (
    Effect.REASON, Effect.REWRITES, Effect.REWRITES_META, Effect.TELLS_MODEL, Effect.TELLS_PERSON, Effect.REPLACES,
    Effect.ALLOWS_FOR_SESSION, Effect.ANSWERS_ELICITATION,
)  # fmt: skip
"""What members do that may have any content."""
_NOTHING: Final[tuple[object, ...]] = (None, False, 0, "", "false", [], {})


def doubt(dialect: Dialect, spec: HookSpec, result: HookResult, verdict: Verdict) -> str:
    """Why the run of a hook before a call is not a clean verdict, as `Verdict.failure` says it; empty: it is one.

    For a run that has exited, and of which the dialect has read `verdict`: neither a denial nor a failure.
    """
    if result.ended is not Ended.EXITED or not (result.code or result.stdout or result.stderr):
        return ""
    if spec.detaches is not None and spec.detaches(result.stdout.partition(b"\n")[0]) is not None:
        return ""  # it goes on in the background, where it decides nothing
    stderr = shared_output.decode(result.stderr)
    if result.code:
        return shared_output.exit_failure(result.code, stderr)
    if result.cut:
        return _CUT
    printed = dialect.unframed(result.stdout)
    if not _is_plain_utf8(printed):
        return _OTHER_ENCODING
    stdout = printed.decode().strip()
    if crash := _CRASH.search(stderr) or _CRASH.search(stdout):
        return "exited with status 0 after an error" + shared_output.explanation(_rest_of(crash))
    if spec.event is Event.PERMISSION_REQUEST and verdict.permission is None:
        verdict = replace(verdict, permission=Permission.ASK)  # without a decision, the person is asked
    return (_doubt_of_output(dialect, stdout, verdict) if stdout else "") or _doubt_of_stderr(stdout, stderr, verdict)


def doubt_about_result(dialect: Dialect, result: HookResult) -> str:
    """As `doubt` for a hook after a call, which prints what it likes, such as the output of a linter: only the JSON of
    a verdict that cannot be read is a reason."""
    if result.ended is not Ended.EXITED or result.code:
        return ""
    printed = dialect.unframed(result.stdout)
    if not _is_plain_utf8(printed):
        return _OTHER_ENCODING if b"\0" in printed and b"{" in printed else ""
    text = printed.decode().strip()
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        if text.startswith("{"):
            return _BROKEN
        return _AMONG_TEXT if _RESULT_NAMES.search(text) else ""
    return _NOT_ONE_OBJECT if isinstance(value, list) and _RESULT_NAMES.search(text) else ""


def _is_plain_utf8(printed: bytes) -> bool:
    """Without a byte order mark and NUL, of which every other encoding of JSON has one."""
    try:
        raw_json.check_utf8(printed)
    except raw_json.Unreadable:
        return False
    return b"\0" not in printed and not printed.startswith(b"\xef\xbb\xbf")


def _rest_of(crash: re.Match[str]) -> str:
    """The text from the sign of a crash on."""
    return crash.string[crash.start() :]


def _doubt_of_output(dialect: Dialect, text: str, verdict: Verdict) -> str:
    """The doubt about standard output, which is not empty."""
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        return (_BROKEN if text.startswith("{") else _AMONG_TEXT) if _may_hold_json(text) else ""
    if isinstance(value, dict):
        return next(undecided(value, dialect.output_fields, verdict), "")
    return _NOT_ONE_OBJECT


def _doubt_of_stderr(stdout: str, stderr: str, verdict: Verdict) -> str:
    """The doubt about a decision on standard error, which no system reads beside standard output."""
    if stdout or not stderr:
        return ""
    try:
        value = _decode(stderr)
    except (ValueError, RecursionError):
        return _AMONG_TEXT if _VERDICT_NAMES.search(stderr) else ""
    return next(undecided(value, {}, verdict), "") if isinstance(value, dict) else ""


def _may_hold_json(text: str) -> bool:
    """Whether something in a text that is not JSON could be meant as the JSON of a verdict."""
    lone = _LONE_WORD.fullmatch(text)
    if lone is not None and lone[1].lower() in DENYING_WORDS | _NO_VALUES:
        return True
    return any(pattern.search(text) for pattern in (_VERDICT_NAMES, _PLAIN_DENIAL, _OBJECT_START, _ENCODED))


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise raw_json.DuplicateKeys(next(iter(members)))
    return members


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=raw_json.reject_constant)


def _decode(text: str) -> object:
    """The value of a JSON text. Raises ValueError, also for a key that occurs twice; RecursionError."""
    value: object = _DECODER.decode(text)
    return value


def undecided(output: dict[str, object], fields: Mapping[str, Effect], verdict: Verdict) -> Iterator[str]:
    """Sentences about members that may be meant as a decision, and of which the dialect's verdict knows nothing."""
    waiting: list[tuple[str, object]] = [("", output)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting += [(path, item) for item in value]
        if not isinstance(value, dict):
            continue
        for name, member in value.items():
            place = f"{path}.{name}" if path else name
            if fields.get(place) in _TEXTS and not _is_lost_rewrite(name, path, member, verdict):
                continue
            if _is_lost(name, path, member, verdict):
                shown = shared_output.truncate(repr(place), shared_output.MAX_EXPLANATION)
                yield f"{shared_output.LOST} {shown}, which decides nothing there in this system"
            if _plain(name) not in _ABOUT_THE_CALL:
                waiting.append((place, member))


def _is_lost(name: str, path: str, member: object, verdict: Verdict) -> bool:
    """Whether a member may be meant to refuse, to ask or to rewrite, and did not."""
    plain, word = _plain(name), member.strip().lower() if isinstance(member, str) else None
    if isinstance(member, list):
        return (plain in _REFUSES_IF_TRUE | _DECISIONS and bool(member)) or any(_is_denying(item) for item in member)
    if plain == "hookspecificoutput":
        return member is not None and not isinstance(member, dict)
    asks = verdict.permission is Permission.ASK
    if word in ASKING_WORDS and plain in _DECISIONS:
        return not asks
    if plain in _PASSES_IF_TRUE:
        return not (member is None or member is True or word in ALLOWING_WORDS)
    if plain in _REFUSES_IF_TRUE:
        return member not in _NOTHING and not (asks and plain in ("review", "ask"))
    if plain in _DECISIONS and not isinstance(member, dict):
        if member is None:  # beside another decision it only says that this member has none
            return verdict.permission is None
        return not (word == "" or word in ALLOWING_WORDS)
    return word in DENYING_WORDS or _is_lost_rewrite(name, path, member, verdict)


def may_decide(name: str) -> bool:
    """Whether a member of this name may be meant as a decision in some system."""
    plain = _plain(name)
    return any(plain in names for names in (_DECISIONS, _PASSES_IF_TRUE, _REFUSES_IF_TRUE))


def denies(name: str, member: object) -> bool:
    """Whether a member says by its value that the call is refused: `"status": "blocked"`, `"exit_code": 2`."""
    is_status = _plain(name) in _EXIT_STATUS and isinstance(member, int) and bool(member)
    return is_status or (_is_denying(member) and isinstance(member, str) and member.strip().lower() in _SURELY_DENYING)


def is_plain_denial(text: str) -> bool:
    """Whether a text that is not JSON has a denial: `decision: block`, or the word alone."""
    lone = _LONE_WORD.fullmatch(text)
    return _PLAIN_DENIAL.search(text) is not None if lone is None else lone[1].lower() in _SURELY_DENYING


def _is_denying(item: object) -> bool:
    return isinstance(item, str) and item.strip().lower() in DENYING_WORDS


def _is_lost_rewrite(name: str, path: str, member: object, verdict: Verdict) -> bool:
    """Whether a member has other arguments for the call, which will not be sent."""
    plain = _plain(name)
    rewrites = plain in _REWRITES or (plain == "toolinput" and _plain(path) == "hookspecificoutput")
    may_pass = verdict.arguments is None and verdict.permission is not Permission.ASK  # the person sees what would run
    return rewrites and member is not None and may_pass


@lru_cache(256)  # the names that hooks print are few; a name is long only if it is not a member's
def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())
