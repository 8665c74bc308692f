"""Approval requests: what is shown to the person about a call, how it is asked, and which response approves the call.

Law 1: the person sees the arguments that will run. Only an explicit yes approves a call.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

import msgspec

from ..jsonrpc import raw_json
from ..model.counts import counted
from ..model.decision import ApprovalRequest
from ..policy import methods

MEMBER: Final = "hookproxy.ask"
"""The key of the approval request in `inputRequests`, and of the response in `inputResponses` (2026-07-28)."""

_HEAD: Final = 300  # characters of a value: enough to recognise a command; the audit has all of it
_TAIL: Final = 80
_SEARCHED_BYTES: Final = 8192  # bytes at each end of a value that are searched for secrets; the rest is never shown
_LONGEST_ARGUMENT: Final = 80
_MOST_VALUES: Final = 20  # arguments: more do not fit on a screen
_MOST_RANKED: Final = 2000
_LONGEST_NAME: Final = 120  # of the tool, the server, and who asks
_LONGEST_REASON: Final = 2000  # characters: a hook's sentence, not its log

_SHOWN_FIRST: Final[tuple[str, ...]] = (
    *("command", "cmd", "commands", "script", "shell", "code", "sql", "query", "args", "argv", "arguments"),
    *("path", "file_path", "filePath", "file", "filename", "paths", "files", "url", "uri"),
)
"""Arguments that say most about what a call does, the most important first."""

_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_EMPTY: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # invisible, but not blanks

# The patterns are texts, because compiling them takes a millisecond, and most runs request no approval.
_SHOWN_FIRST_NAME: Final = r"(?i)command|cmd|(?<!de)script|shell|exec|code|sql|query|arg[sv]?(?![a-z])|path|file|ur[il]"
_SECRET_NAME: Final = r"""(?xi)
    ^(?!.*(?:command|cmd|script|shell|args|path|file|helper|ur[il])s?\Z)  # a command must be visible
    .*?(?:pass(?:word|wd|phrase|code) | (?<![a-z])pass(?![a-z]) | secret | token | api_?-?key | access_?-?key
        | private_?-?key | credential | authorization | cookie)
"""
_COUNTED_TOKENS: Final = r"(?i)tokens|token_?-?(?:count|limit|budget)"
"""In the name of a number: how many, and not which."""
_NUMBER_BEGINS: Final = frozenset(sign.encode() for sign in "-0123456789")
_SECRET: Final = r"""(?x)
      (?P<header> (?i:authorization)[\\"']{0,4}\ {0,4}:\ {0,4}[\\"']{0,4}(?i:bearer|basic)\ {1,4})
          (?!/)[-._~+/=A-Za-z0-9]{16,}+
    | (?P<option> (?<=[^\\]\ )--(?:password|token|secret|api-key)[=\ ])
          (?!/)[-._~+/=A-Za-z0-9]{8,}+
    | (?P<pem> -----BEGIN\ (?:[A-Z]{1,10}\ ){0,2}PRIVATE\ KEY-----(?:\\{1,2}r)?\\{1,2}n)
          (?=M[A-Z]|b3BlbnNzaC)                                     # DER, or the format of OpenSSH
          (?P<lines> (?>(?:[A-Za-z0-9+/]{40,76}+={0,2}+(?:\\{1,2}r)?\\{1,2}n)+))
          (?:[A-Za-z0-9+/]{1,75}+={1,2}+(?:\\{1,2}r)?\\{1,2}n)?     # a shorter last line has padding
          (?=[A-Za-z0-9+/=]{0,76}+(?:(?:(?:\\{1,2}r)?\\{1,2}n)?-----END|\Z))
    | (?<=://)[-._~%A-Za-z0-9]{1,200}+:[-._~%A-Za-z0-9]{1,200}+(?=@)  # name and password in a URL
    | (?:(?<=://)|(?<![-_/A-Za-z0-9;|&(`{]))(?<![;|&(`{]\ )(?<!\ \ )(?:  # begins a word, not a path or a command
          (?P<aws> (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9]))
        | [spr]k[-_][-_A-Za-z0-9]{16,}+                               # OpenAI, Anthropic, Stripe
        | (?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|npm_|pypi-)[-_A-Za-z0-9]{16,}+
        | eyJ[-_A-Za-z0-9]{8,}+\.[-_A-Za-z0-9]{8,}+\.[-_A-Za-z0-9]*+  # a JSON web token
      )
"""
"""It matches secrets in JSON text. No match contains a character with a meaning to a shell: it must not hide a command.

It takes linear time: repeats are possessive, and what begins a repeat cannot occur inside it.
"""


class Approval(Enum):
    """A person's decision. The values are what the form shows."""

    ONCE = "allow once"
    SIMILAR = "allow calls like this for this session"
    SESSION = "allow this tool for this session"
    NO = "deny"
    NOT_ANSWERED = "not answered"  # the dialog was closed, the time ran out, or the answer cannot be read
    NOT_ASKED = "not asked"  # the person could not be asked


_CHOICES: Final = (Approval.ONCE, Approval.SIMILAR, Approval.SESSION, Approval.NO)
"""What the form offers; SIMILAR only if it can be said which calls these are."""


def message(server: str, tool: str, arguments: bytes, request: ApprovalRequest, similar: str = "") -> str:
    """Return the text for the person; `similar` are calls like this one, as a permission rule (empty: not offered)."""
    reason = _shortened(request.reason.strip(), _LONGEST_REASON)
    by, tool, server = (_shortened(name, _LONGEST_NAME) for name in (request.by, tool, server))
    shown, missing = _shown(arguments)
    warning = f"\nNot all of it is shown here: {missing}." if missing else ""
    asks = f"{by} asks you to confirm{f': {reason}' if reason else '.'}"
    beyond = " beyond this limit" if request.limits else ""
    with_read = " with what was read until now" if request.chains else ""
    choices = [f"{Approval.SESSION.value}: every call of {tool}{beyond}{with_read}, whatever its arguments"]
    if similar:
        choices.insert(0, f"{Approval.SIMILAR.value}: {_shortened(similar, _LONGEST_REASON)}")
    return "\n\n".join(
        (
            f"{_question(server, tool)}{warning}",
            shown,
            asks,
            "\n".join(f"- {choice}" for choice in choices),
        )
    )


def _question(server: str, tool: str) -> str:
    match methods.JUDGED.get(tool):
        case methods.Direction.FROM_SERVER:
            return f"The server {server} sends {tool}. Allow it?"
        case methods.Direction.FROM_AGENT:
            return f"Allow {tool} at the server {server}?"
        case None:
            return f"Allow the tool {tool} of {server} to run?"


def prompter_document(server: str, tool: str, arguments: bytes, request: ApprovalRequest) -> dict[str, object]:
    """Return the JSON document for an operator's own prompter."""
    return {
        "server": server.encode(errors="replace").decode(),
        "tool": tool,
        "arguments": msgspec.Raw(arguments),
        "reason": request.reason,
        "asked_by": request.by,
    }


def elicitation_params(message: str, offers_similar: bool) -> bytes:
    """Return the params of `elicitation/create`, valid in each protocol version that has it."""
    choices = [choice.value for choice in _CHOICES if offers_similar or choice is not Approval.SIMILAR]
    decision = {"type": "string", "title": "Decision", "enum": choices}
    schema = {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}
    return raw_json.one_line(
        raw_json.encode({"message": message.encode(errors="replace").decode(), "requestedSchema": schema})
    )


def read_approval(result: bytes | msgspec.Raw | None) -> Approval:
    """Read the result of an approval request: only a form with an explicit yes approves; no answer is not a no."""
    try:
        members = raw_json.fields(result or b"{}")
        action = raw_json.text(bytes(members.get("action", b"")))
        if action != "accept":
            return Approval.NO if action == "decline" else Approval.NOT_ANSWERED
        decision = raw_json.text(bytes(raw_json.fields(members.get("content", b"{}")).get("decision", b"")))
        return next((choice for choice in _CHOICES if choice.value == decision), Approval.NOT_ANSWERED)
    except ValueError:  # it cannot be read
        return Approval.NOT_ANSWERED


def _shown(arguments: bytes) -> tuple[str, str]:
    """Return the arguments as text for the person, and what is missing in it, in words."""
    try:
        members = raw_json.fields(arguments)
    except ValueError:
        shown, whole = _value(arguments)
        return shown, "" if whole else "the arguments are shortened"
    lines, shortened = [], 0
    for name in _names_to_show(members):
        value, whole = ("[hidden]", True) if _is_secret(name, members[name]) else _value(members[name])
        lines.append(f"{_argument(name)}: {value}")
        shortened += not whole or len(name) > _LONGEST_ARGUMENT
    missing = [f"{shortened} of {counted(len(members), 'argument')} shortened"] if shortened else []
    if left_out := len(members) - len(lines):
        lines.append(f"… and {counted(left_out, 'more argument')}")
        missing.insert(0, f"{left_out} of {counted(len(members), 'argument')} left out")
    return "\n".join(lines) or "It has no arguments.", ", ".join(missing)


def _names_to_show(members: dict[str, msgspec.Raw]) -> list[str]:
    """Return what is shown: first what is run, read or written, then the longest, so that nothing hides these."""

    def length(name: str) -> int:
        return len(members[name])

    def rank(name: str) -> tuple[int, int]:
        return (0 if re.search(_SHOWN_FIRST_NAME, name[:_LONGEST_ARGUMENT]) else 1), -length(name)

    names = [name for name in _SHOWN_FIRST if name in members]
    others: list[str] = list(members)
    if len(others) > _MOST_RANKED:
        import heapq

        others = heapq.nlargest(_MOST_RANKED, others, key=length)
    names += sorted((name for name in others if name not in _SHOWN_FIRST), key=rank)
    return names[:_MOST_VALUES]


def _is_secret(name: str, value: msgspec.Raw) -> bool:
    """True if the name says that the value is a secret; a number of tokens, such as `maxTokens`, is none."""
    name = name[: 2 * _LONGEST_ARGUMENT]
    if bytes(memoryview(value)[:1]) in _NUMBER_BEGINS:
        name = re.sub(_COUNTED_TOKENS, "", name)
    return re.search(_SECRET_NAME, name) is not None


def _argument(name: str) -> str:
    """Return the name of an argument as text; as JSON if it could pass for more than a name."""
    cut = name[:_LONGEST_ARGUMENT]
    text = cut if cut and _PLAIN.issuperset(cut) else _visible(raw_json.encode(cut).decode())
    rest = len(name) - len(cut)
    return f"{text} … [{rest} more characters]" if rest else text


def _value(raw: bytes | msgspec.Raw) -> tuple[str, bool]:
    """Return a value as JSON, so that it cannot pass for a line of ours; and True if it is complete."""
    view = memoryview(raw)
    between = len(view) - 2 * _SEARCHED_BYTES
    if between <= 0:
        text = _without_secrets(bytes(view))
        rest = len(text) - _HEAD - _TAIL
        return (f"{text[:_HEAD]} … [{rest} more characters] … {text[-_TAIL:]}", False) if rest > 0 else (text, True)
    head, tail = _without_secrets(bytes(view[:_SEARCHED_BYTES])), _without_secrets(bytes(view[-_SEARCHED_BYTES:]))
    rest = between + max(0, len(head) - _HEAD) + max(0, len(tail) - _TAIL)
    return f"{head[:_HEAD]} … [{rest} more characters] … {tail[-_TAIL:]}", False


def _without_secrets(raw: bytes) -> str:
    return _visible(re.sub(_SECRET, _hidden, raw.decode(errors="replace")))


def _hidden(match: re.Match[str]) -> str:
    """Return the replacement of a match. A match that may be a word, such as a command's name, stays."""
    kept = match["header"] or match["option"] or match["pem"] or ""
    secret = match[0][len(kept) :]
    parts = re.split(r"\\+[nr]", match["lines"].rstrip("\\nr")) if match["lines"] else [secret]
    random = match["aws"] or ":" in secret or all(_is_random(part) for part in parts if part)
    return f"{kept}[hidden, {len(secret)} characters]" if random else match[0]


def _is_random(text: str) -> bool:
    """True for a text that nobody types as a word: it has a digit, or letters of both cases."""
    return any(map(str.isdigit, text)) or (text.lower() != text != text.upper())


def _visible(text: str) -> str:
    """Escape the characters that change what people see: controls, unusual blanks, line ends, and text direction."""
    text = text.replace("\n", " ")
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character.isprintable() and character not in _EMPTY else _escaped(ord(character))
        for character in text
    )


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _shortened(text: str, longest: int) -> str:
    rest = len(text) - longest
    return _visible(text) if rest <= 0 else f"{_visible(text[:longest])} … [{rest} more characters]"
