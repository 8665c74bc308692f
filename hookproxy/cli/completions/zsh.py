"""Completion in zsh, by its own `_arguments`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from .command_line import Option, Takes, Value, Verb

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

_hookproxy() {
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
    """The script as zsh reads it."""
    names = "\n".join(f"        {quote(f'{verb.name}:{verb.about}')}" for verb in verbs)
    head = _HEAD.replace("@VERBS@", names).replace("@DIALECTS@", " ".join(dialects))
    return head + "".join(_case(verb) for verb in verbs) + _TAIL


def _case(verb: Verb) -> str:
    lines = [f"{verb.name})", *(f"    {line}" for line in _body(verb)), "    ;;"]
    return "".join(f"{' ' * 16}{line}\n" for line in lines)


def _body(verb: Verb) -> Iterator[str]:
    """What completes the words after a verb."""
    own = f"_arguments -S {' '.join(_specs(verb))}"
    if not verb.parts:
        yield own
        return
    yield "case $((CURRENT > 2)):$words[2] in"
    for part in verb.parts:
        yield f"    1:{part.name})"
        yield "        shift words"
        yield "        ((CURRENT--))"
        yield f"        _arguments -S {' '.join(_specs(part))}"
        yield "        ;;"
    yield "    *)"
    yield f"        if ((CURRENT == 2)); then compadd -- {' '.join(part.name for part in verb.parts)}; fi"
    yield f"        {own}"
    yield "        ;;"
    yield "esac"


def _specs(verb: Verb) -> Iterator[str]:
    for option in verb.options:
        yield from _option(option)
    for place in verb.places:
        yield quote(f"{'*' if place.several else ''}:{_plain(place.label)}:{_action(place)}")
    if verb.command:
        yield quote("*::command:_normal")


def _option(option: Option) -> Iterator[str]:
    others = "" if option.value.several or len(option.flags) == 1 else f"({' '.join(option.flags)})"
    value = "" if option.alone else f":{_plain(option.value.label)}:{_action(option.value)}"
    for flag in option.flags:
        yield quote(f"{'*' if option.value.several else others}{flag}[{_plain(option.about)}]{value}")


def _plain(text: str) -> str:
    """Text without what `_arguments` reads as its own."""
    return "".join(f"\\{each}" if each in "[]:\\" else each for each in text)


def _action(value: Value) -> str:
    match value.takes:
        case Takes.FILE:
            return "_files"
        case Takes.FOLDER:
            return "_files -/"
        case Takes.HOOKS:
            return "_hookproxy_hooks"
        case Takes.WORDS:
            return f"({' '.join(value.words)})"
        case _:
            return " "
