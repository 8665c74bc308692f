"""Completion in fish 3 and newer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .command_line import Argument, ValueType, Verb

_HEAD = """\
# Completes hookproxy in fish:  hookproxy completion fish | source

function __hookproxy_verb # VERB [SUBVERB...]: the line has this verb, none of these subverbs, and no server's command
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]; and not contains -- -- $words
    and begin
        test (count $words) -eq 2; or not contains -- $words[3] $argv[2..-1]
    end
end

function __hookproxy_subverb # VERB SUBVERB: these are the first two words
    set -l words (commandline -opc)
    test (count $words) -ge 3; and test $words[2] = $argv[1]; and test $words[3] = $argv[2]
end

function __hookproxy_no_verb # there is no verb yet
    test (count (commandline -opc)) -eq 1
end

function __hookproxy_in_command # the server's command line has begun
    contains -- -- (commandline -opc)
end

function __hookproxy_hooks # DIALECT=FILE, or FILE
    set -l word (commandline -ct)
    if string match -q -- '*=*' $word
        set -l pair (string split -m 1 = -- $word)
        for file in (__fish_complete_path $pair[2])
            echo $pair[1]=$file
        end
    else
        printf '%s=\\n' @DIALECTS@
        __fish_complete_path $word
    end
end

function __hookproxy_known # KIND: what only this machine knows
    hookproxy completion --values $argv[1] -- (commandline -ct) 2>/dev/null
end

complete -c hookproxy -f
complete -c hookproxy -n __hookproxy_no_verb -l help -d 'show the verbs'
complete -c hookproxy -n __hookproxy_no_verb -l version -d 'show the version'
"""

_COMMAND = """
complete -c hookproxy -n __hookproxy_in_command -F -a '(__fish_complete_command)'
"""


def script(verbs: Sequence[Verb], dialects: Sequence[str]) -> str:
    """The script for fish."""
    lines = [line for verb in verbs for line in _lines_of_verb(verb)]
    command = _COMMAND if any(verb.takes_command for verb in verbs) else ""
    return _HEAD.replace("@DIALECTS@", " ".join(dialects)) + "\n".join(lines) + "\n" + command


def _lines_of_verb(verb: Verb) -> Iterator[str]:
    yield f"complete -c hookproxy -n __hookproxy_no_verb -a {verb.name} -d {_quoted(verb.description)}"
    subverbs = [subverb.name for subverb in verb.subverbs]
    yield from _arguments(verb, f"__hookproxy_verb {' '.join([verb.name, *subverbs])}")
    if subverbs:
        condition = f"__hookproxy_verb {verb.name}; and test (count (commandline -opc)) -eq 2"
        yield f"complete -c hookproxy -n {_quoted(condition)} -a {_quoted(' '.join(subverbs))}"
    for subverb in verb.subverbs:
        yield from _arguments(subverb, f"__hookproxy_subverb {verb.name} {subverb.name}")


def _arguments(verb: Verb, condition: str) -> Iterator[str]:
    """Options and positional arguments, offered if the condition holds for the command line."""
    start = f"complete -c hookproxy -n {_quoted(condition)}"
    for option in verb.options:
        yield f"{start} {_option(option)}"
    for positional in verb.positionals:
        if argument := _completion_of(positional):
            yield f"{start} {argument}"


def _option(option: Argument) -> str:
    flags = [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags]
    value = "" if option.type is ValueType.NOTHING else f" -r {_completion_of(option)}".rstrip()
    return f"{' '.join(flags)}{value} -d {_quoted(option.description)}"


_COMPLETIONS: Final = {
    ValueType.FILE: "-F",
    ValueType.FOLDER: "-f -a '(__fish_complete_directories)'",
    ValueType.HOOKS: "-f -a '(__hookproxy_hooks)'",
    ValueType.CHOICES: "-f -a {quoted}",
    ValueType.AGENT: "-F -a {quoted}",
    ValueType.KNOWN: "-f -a '(__hookproxy_known {words})'",
}


def _completion_of(argument: Argument) -> str:
    words = " ".join(argument.choices)
    return _COMPLETIONS.get(argument.type, "").format(words=words, quoted=_quoted(words))


def _quoted(text: str) -> str:
    """The text in single quotes. Inside these, only a backslash and a single quote have a meaning for fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
