"""Our question to a person about one call: what is shown, how it is asked, and what counts as a yes.

Law 1: shown are the arguments that will run. Nothing but an explicit yes is consent.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

import msgspec

from . import wire
from .decision import Question

MEMBER: Final = "hookproxy.ask"
"""The key of our question among `inputRequests`, and of the answer among `inputResponses` (2026-07-28)."""

_LONGEST_VALUE: Final = 400  # characters: enough to know a command by; who wants all of it has the audit
_MOST_VALUES: Final = 20  # arguments: more do not fit on a screen
_LONGEST_REASON: Final = 2000  # characters: a hook's sentence, not its log

# Patterns as texts: to compile them takes a millisecond, and most runs ask nobody.
_SECRET_NAME: Final = (
    r"(?i)pass(?:word|wd|phrase)?|secret|token|api_?-?key|access_?-?key|private_?-?key|credential|authorization|cookie"
)
_SECRET: Final = r"""(?xs)
      \b(?:sk|pk|rk)[-_](?:live|test|ant|proj)?[-_A-Za-z0-9]{16,}   # OpenAI, Anthropic, Stripe
    | \b(?:gh[pousr]|github_pat|glpat|xox[abprs]|npm|pypi)[-_][-_A-Za-z0-9]{10,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                                 # AWS
    | \beyJ[-_A-Za-z0-9]{8,}\.[-_A-Za-z0-9]+\.[-_A-Za-z0-9]*        # a JSON web token
    | (?<=Bearer\ )[-._~+/=A-Za-z0-9]+ | (?<=Basic\ )[-._~+/=A-Za-z0-9]+
    | (?<=://)[-._~%A-Za-z0-9]+:[-._~%A-Za-z0-9]+(?=@)              # who and password in an URL
    | (?<=PRIVATE\ KEY-----)(?:[A-Za-z0-9+/=\s]|\\n)+
    | (?<=--password[= ])[-._~+/=A-Za-z0-9]+ | (?<=--token[= ])[-._~+/=A-Za-z0-9]+
"""
"""Nothing here spans what means anything to a shell: a secret's place must not hide a command."""

_HIDDEN: Final = "[hidden]"


class Consent(Enum):
    """What a person says. The values are what the form shows."""

    ONCE = "allow once"
    SESSION = "allow for this session"
    NO = "deny"


def text(server: str, tool: str, arguments: bytes, question: Question) -> str:
    """What the person reads. `arguments` are the normalised ones that will run."""
    reason = _shortened(_visible(question.reason.strip()), _LONGEST_REASON)
    asks = f"{_visible(question.by)} asks you to confirm{f': {reason}' if reason else '.'}"
    return f"Allow the tool {_visible(tool)} of {_visible(server)} to run?\n\n{_shown(arguments)}\n\n{asks}"


def document(server: str, tool: str, arguments: bytes, question: Question) -> dict[str, object]:
    """What an operator's own prompter reads, as JSON."""
    return {
        "server": server.encode(errors="replace").decode(),
        "tool": tool,
        "arguments": msgspec.Raw(arguments),
        "reason": question.reason,
        "asked_by": question.by,
    }


def parameters(message: str) -> bytes:
    """The params of `elicitation/create`; valid in each version that has it."""
    choices = [consent.value for consent in Consent]
    decision = {"type": "string", "title": "Decision", "enum": choices}
    schema = {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}
    return wire.one_line(wire.encode({"message": message.encode(errors="replace").decode(), "requestedSchema": schema}))


def consent(result: bytes | msgspec.Raw | None) -> Consent:
    """What an elicitation's result says: all but an accepted form with an explicit yes is no."""
    try:
        members = wire.fields(result or b"{}")
        if wire.text(bytes(members.get("action", b""))) != "accept":
            return Consent.NO
        decision = wire.text(bytes(wire.fields(members.get("content", b"{}")).get("decision", b"")))
        return Consent(decision)
    except ValueError:  # what cannot be read, and a word that is none of ours
        return Consent.NO


def _shown(arguments: bytes) -> str:
    try:
        members = wire.fields(arguments)
    except ValueError:
        return _value("", arguments)
    lines = [f"{_visible(name)}: {_value(name, bytes(raw))}" for name, raw in list(members.items())[:_MOST_VALUES]]
    if len(members) > _MOST_VALUES:
        lines.append(f"… and {len(members) - _MOST_VALUES} more arguments")
    return "\n".join(lines) or "It has no arguments."


def _value(name: str, raw: bytes) -> str:
    """A value as JSON, so that its text cannot pass for a line of ours."""
    if re.search(_SECRET_NAME, name):
        return _HIDDEN
    return _shortened(_visible(re.sub(_SECRET, _HIDDEN, raw.decode(errors="replace"))), _LONGEST_VALUE)


def _visible(said: str) -> str:
    """Without characters that change what people see: controls, and those that turn the direction of text."""
    import unicodedata

    return "".join(
        sign if unicodedata.category(sign)[0] != "C" else f"\\u{ord(sign):04x}" for sign in said.replace("\n", " ")
    )


def _shortened(said: str, longest: int) -> str:
    rest = len(said) - longest
    return said if rest <= 0 else f"{said[:longest]} … [{rest} more characters]"
