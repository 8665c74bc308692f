"""Completion in fish 3 and newer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .command_line import Option, Takes, Value, Verb

_HEAD = """\
# Completes hookproxy in fish:  hookproxy completion fish | source

function __hookproxy_verb # VERB [OTHER...]: it is the one, none of the others follows, and no server's command line
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]; and not contains -- -- $words
    and begin
        test (count $words) -eq 2; or not contains -- $words[3] $argv[2..-1]
    end
end

function __hookproxy_part # VERB WORD: they are the first two
    set -l words (commandline -opc)
    test (count $words) -ge 3; and test $words[2] = $argv[1]; and test $words[3] = $argv[2]
end

function __hookproxy_none
    test (count (commandline -opc)) -eq 1
end

function __hookproxy_after # the server's command line has begun
    contains -- -- (commandline -opc)
end

function __hookproxy_hooks # DIALECT=FILE, or FILE
    set -l word (commandline -ct)
    if string match -q -- '*=*' $word
        set -l parts (string split -m 1 = -- $word)
        for file in (__fish_complete_path $parts[2])
            echo $parts[1]=$file
        end
    else
        printf '%s=\\n' @DIALECTS@
        __fish_complete_path $word
    end
end

complete -c hookproxy -f
complete -c hookproxy -n __hookproxy_none -l help -d 'show the verbs'
complete -c hookproxy -n __hookproxy_none -l version -d 'show the version'
"""

_AFTER = """
complete -c hookproxy -n __hookproxy_after -F -a '(__fish_complete_command)'
"""


def script(verbs: Sequence[Verb], dialects: Sequence[str]) -> str:
    """The script as fish reads it."""
    lines = [line for verb in verbs for line in _verb(verb)]
    after = _AFTER if any(verb.command for verb in verbs) else ""
    return _HEAD.replace("@DIALECTS@", " ".join(dialects)) + "\n".join(lines) + "\n" + after


def _verb(verb: Verb) -> Iterator[str]:
    yield f"complete -c hookproxy -n __hookproxy_none -a {verb.name} -d {_quoted(verb.about)}"
    parts = [part.name for part in verb.parts]
    yield from _taken(verb, f"__hookproxy_verb {' '.join([verb.name, *parts])}")
    if parts:
        only = f"__hookproxy_verb {verb.name}; and test (count (commandline -opc)) -eq 2"
        yield f"complete -c hookproxy -n {_quoted(only)} -a {_quoted(' '.join(parts))}"
    for part in verb.parts:
        yield from _taken(part, f"__hookproxy_part {verb.name} {part.name}")


def _taken(verb: Verb, where: str) -> Iterator[str]:
    """Options and places, where the command line has begun so."""
    start = f"complete -c hookproxy -n {_quoted(where)}"
    for option in verb.options:
        yield f"{start} {_option(option)}"
    for place in verb.places:
        if given := _given(place):
            yield f"{start} {given}"


def _option(option: Option) -> str:
    flags = [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags]
    value = "" if option.alone else f" -r {_given(option.value)}".rstrip()
    return f"{' '.join(flags)}{value} -d {_quoted(option.about)}"


def _given(value: Value) -> str:
    match value.takes:
        case Takes.FILE:
            return "-F"
        case Takes.FOLDER:
            return "-f -a '(__fish_complete_directories)'"
        case Takes.HOOKS:
            return "-f -a '(__hookproxy_hooks)'"
        case Takes.WORDS:
            return f"-f -a {_quoted(' '.join(value.words))}"
        case _:
            return ""


def _quoted(text: str) -> str:
    """In single quotes, in which only these two characters mean anything to fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
