"""Completion in zsh, by its own `_arguments`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from ...wrapping.known_agents import AGENTS_BY_NAME
from .command_line import Argument, ValueType, Verb

_HEAD = """\
#compdef hookproxy
# Completes hookproxy in zsh:  source <(hookproxy completion zsh), after compinit

_hookproxy_hooks() { # DIALECT=FILE, or FILE
    if compset -P 1 '*='; then
        _files
    else
        local -a dialects=(@DIALECTS@)
        compadd -S = -a dialects
        _files
    fi
}

_hookproxy_agent() { # an agent's name, or a file
    _alternative 'agents:agent:(@AGENTS@)' 'files:file:_files'
}

_hookproxy_hooks_or_command() { # files before two dashes, the server's command line after them
    local dashes=${words[(i)--]}
    if ((dashes < CURRENT)); then
        shift dashes words
        ((CURRENT -= dashes))
        _normal
    else
        _hookproxy_hooks
    fi
}

_hookproxy_known() { # [OPTION...] KIND: what only this machine knows; the options are for compadd
    local -a known=(${(f)"$($program completion --values $argv[-1] -- $PREFIX 2>/dev/null)"})
    compadd $argv[1,-2] -a known
}

_hookproxy() {
    local program=${words[1]/#\\~/$HOME}
    local curcontext=$curcontext state line
    local -a verbs=(
@VERBS@
    )
    _arguments -C '1: :->verb' '*:: :->rest' '(- *)--help[show the verbs]' '(- *)--version[show the version]'
    case $state in
        verb) _describe verb verbs ;;
        rest)
            curcontext=${curcontext%:*}-$words[1]:
            case $words[1] in
"""

_TAIL = """\
            esac
            ;;
    esac
}

compdef _hookproxy hookproxy
"""


def script(verbs: Sequence[Verb], dialects: Sequence[str]) -> str:
    """The script for zsh."""
    names = "\n".join(f"        {quote(f'{verb.name}:{verb.description}')}" for verb in verbs)
    head = (
        _HEAD.replace("@VERBS@", names)
        .replace("@DIALECTS@", " ".join(dialects))
        .replace("@AGENTS@", " ".join(AGENTS_BY_NAME))
    )
    return head + "".join(_case(verb) for verb in verbs) + _TAIL


def _case(verb: Verb) -> str:
    lines = [f"{verb.name})", *(f"    {line}" for line in _case_body(verb)), "    ;;"]
    return "".join(f"{' ' * 16}{line}\n" for line in lines)


def _case_body(verb: Verb) -> Iterator[str]:
    """The code that completes the words after a verb."""
    arguments = f"_arguments -S {' '.join(_specs(verb))}"
    if not verb.subverbs:
        yield arguments
        return
    yield "case $((CURRENT > 2)):$words[2] in"
    for subverb in verb.subverbs:
        yield f"    1:{subverb.name})"
        yield "        shift words"
        yield "        ((CURRENT--))"
        yield f"        _arguments -S {' '.join(_specs(subverb))}"
        yield "        ;;"
    yield "    *)"
    yield f"        if ((CURRENT == 2)); then compadd -- {' '.join(subverb.name for subverb in verb.subverbs)}; fi"
    yield f"        {arguments}"
    yield "        ;;"
    yield "esac"


def _specs(verb: Verb) -> Iterator[str]:
    for option in verb.options:
        yield from _option(option)
    if verb.takes_command and any(positional.repeats for positional in verb.positionals):
        yield quote("*:file:_hookproxy_hooks_or_command")  # _arguments takes only one rule for all further words
        return
    for positional in verb.positionals:
        yield quote(f"{'*' if positional.repeats else ''}:{_escaped(positional.label)}:{_completion_of(positional)}")
    if verb.takes_command:
        yield quote("*::command:_normal")


def _option(option: Argument) -> Iterator[str]:
    others = "" if option.repeats or len(option.flags) == 1 else f"({' '.join(option.flags)})"
    value = "" if option.type is ValueType.NOTHING else f":{_escaped(option.label)}:{_completion_of(option)}"
    for flag in option.flags:
        yield quote(f"{'*' if option.repeats else others}{flag}[{_escaped(option.description)}]{value}")


def _escaped(text: str) -> str:
    """The text with the special characters of `_arguments` escaped."""
    return "".join(f"\\{sign}" if sign in "[]:\\" else sign for sign in text)


_COMPLETIONS: Final = {
    ValueType.FILE: "_files",
    ValueType.FOLDER: "_files -/",
    ValueType.HOOKS: "_hookproxy_hooks",
    ValueType.CHOICES: "({words})",
    ValueType.AGENT: "_hookproxy_agent",
    ValueType.KNOWN: "_hookproxy_known {words}",
}


def _completion_of(argument: Argument) -> str:
    return _COMPLETIONS.get(argument.type, " ").format(words=" ".join(argument.choices))
