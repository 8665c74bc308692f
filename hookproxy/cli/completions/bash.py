"""Completion in bash 4 and newer, without the package bash-completion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from .command_line import Argument, ValueType, Verb

_HEAD = """\
# Completes hookproxy in bash:  source <(hookproxy completion bash)

# The command line is split only at blanks. bash itself also splits at "=", ":" and "@", as in copilot@current=FILE.
_hookproxy() {
    local line=${COMP_LINE:0:COMP_POINT} replaced=$2 words=() word before verb dashes=0 at
    read -ra words <<<"$line"
    if [[ $line == *[[:space:]] ]]; then words+=(""); fi
    word=${words[-1]} before=${words[-2]} verb=${words[1]}
    COMPREPLY=()
    for ((at = 2; at < ${#words[@]} - 1; at++)); do
        if [[ ${words[at]} == -- ]]; then dashes=$at && break; fi
    done
    if ((${#words[@]} == 2)); then
        _hookproxy_words @VERBS@
    elif ((dashes)); then
        _hookproxy_command $((${#words[@]} - 1 - dashes))
    elif ((${#words[@]} > 3)) && declare -F "_hookproxy_verb_${verb}_${words[2]}" >/dev/null; then
        "_hookproxy_verb_${verb}_${words[2]}"
    elif declare -F "_hookproxy_verb_$verb" >/dev/null; then
        "_hookproxy_verb_$verb"
    fi
}

# bash may be about to replace only the end of the word.
_hookproxy_offer() {
    local left=${word%"$replaced"} reply
    while IFS= read -r reply; do
        COMPREPLY+=("${reply#"$left"}")
    done
}

_hookproxy_words() {
    _hookproxy_offer < <(compgen -W "$*" -- "$word")
}

_hookproxy_files() { # PREFIX [-d]: files after the prefix, which is part of the word
    local rest=${word#"$1"}
    compopt -o filenames
    _hookproxy_offer < <(compgen "${2:--f}" -P "$1" -- "$rest")
}

_hookproxy_hooks() { # DIALECT=FILE, or FILE
    if [[ $word == *=* ]]; then
        _hookproxy_files "${word%%=*}="
    else
        _hookproxy_words @DIALECTS@
        if ((${#COMPREPLY[@]})); then compopt -o nospace; else _hookproxy_files ""; fi
    fi
}

_hookproxy_known() { # KIND: what only this machine knows
    _hookproxy_offer < <("${words[0]/#\\~/$HOME}" completion --values "$1" -- "$word" 2>/dev/null)
}

_hookproxy_command() { # NUMBER: the position of the word in the server's command line
    if (($1 == 1)); then
        _hookproxy_offer < <(compgen -c -- "$word")
    fi
    _hookproxy_files ""
}
"""

_TAIL = """
complete -F _hookproxy hookproxy
"""


def script(verbs: Sequence[Verb], dialects: Sequence[str]) -> str:
    """The script for bash."""
    names = " ".join(quote(word) for word in [*(verb.name for verb in verbs), "--help", "--version"])
    sources = " ".join(f"{name}=" for name in dialects)
    head = _HEAD.replace("@VERBS@", names).replace("@DIALECTS@", sources)
    return head + "".join(function for verb in verbs for function in _functions(verb, verb.name)) + _TAIL


def _functions(verb: Verb, name: str) -> Iterator[str]:
    yield "\n".join([f"\n_hookproxy_verb_{name}() {{", *_cases(verb), "}\n"])
    for subverb in verb.subverbs:
        yield from _functions(subverb, f"{name}_{subverb.name}")


def _cases(verb: Verb) -> Iterator[str]:
    with_value = [option for option in verb.options if option.type is not ValueType.NOTHING]
    if with_value:
        yield "    case $before in"
        for option in with_value:
            yield f"        {' | '.join(option.flags)}) {_completion_of(option)}; return ;;"
        yield "    esac"
    flags = " ".join(quote(flag) for option in verb.options for flag in option.flags)
    yield f"    if [[ $word == -* ]]; then _hookproxy_words {flags}{' --' if verb.takes_command else ''}; return; fi"
    for positional in verb.positionals:
        yield f"    {_completion_of(positional)}"
    if verb.subverbs:
        choices = " ".join(quote(subverb.name) for subverb in verb.subverbs)
        yield f"    if ((${{#words[@]}} == 3)); then _hookproxy_words {choices}; fi"
    yield "    :"  # so that no function is empty, or returns the status of its last test


_COMPLETIONS: Final = {
    ValueType.FILE: '_hookproxy_files ""',
    ValueType.FOLDER: '_hookproxy_files "" -d',
    ValueType.HOOKS: "_hookproxy_hooks",
    ValueType.CHOICES: "_hookproxy_words {words}",
    ValueType.AGENT: '_hookproxy_words {words}; _hookproxy_files ""',
    ValueType.KNOWN: "_hookproxy_known {words}",
}


def _completion_of(argument: Argument) -> str:
    return _COMPLETIONS.get(argument.type, ":").format(words=" ".join(map(quote, argument.choices)))
