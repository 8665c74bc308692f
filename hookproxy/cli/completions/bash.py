"""Completion in bash 4 and newer, without the package bash-completion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from .command_line import Takes, Value, Verb

_HEAD = """\
# Completes hookproxy in bash:  source <(hookproxy completion bash)

# The command line is split at blanks only: bash itself splits at "=", ":" and "@", too, as in copilot@current=FILE.
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
        _hookproxy_after $((${#words[@]} - 1 - dashes))
    elif ((${#words[@]} > 3)) && declare -F "_hookproxy_verb_${verb}_${words[2]}" >/dev/null; then
        "_hookproxy_verb_${verb}_${words[2]}"
    elif declare -F "_hookproxy_verb_$verb" >/dev/null; then
        "_hookproxy_verb_$verb"
    fi
}

# What bash is going to replace may be only the end of the word.
_hookproxy_offer() {
    local left=${word%"$replaced"} reply
    while IFS= read -r reply; do
        COMPREPLY+=("${reply#"$left"}")
    done
}

_hookproxy_words() {
    _hookproxy_offer < <(compgen -W "$*" -- "$word")
}

_hookproxy_files() { # PREFIX [-d]: files behind the prefix, which is part of the word
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

_hookproxy_after() { # NUMBER: the word of the server's command line
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
    """The script as bash reads it."""
    names = " ".join(quote(word) for word in [*(verb.name for verb in verbs), "--help", "--version"])
    sources = " ".join(f"{name}=" for name in dialects)
    head = _HEAD.replace("@VERBS@", names).replace("@DIALECTS@", sources)
    return head + "".join(function for verb in verbs for function in _functions(verb, verb.name)) + _TAIL


def _functions(verb: Verb, name: str) -> Iterator[str]:
    yield "\n".join([f"\n_hookproxy_verb_{name}() {{", *_cases(verb), "}\n"])
    for part in verb.parts:
        yield from _functions(part, f"{name}_{part.name}")


def _cases(verb: Verb) -> Iterator[str]:
    valued = [option for option in verb.options if not option.alone]
    if valued:
        yield "    case $before in"
        for option in valued:
            yield f"        {' | '.join(option.flags)}) {_offered(option.value)}; return ;;"
        yield "    esac"
    flags = " ".join(quote(flag) for option in verb.options for flag in option.flags)
    yield f"    if [[ $word == -* ]]; then _hookproxy_words {flags}{' --' if verb.command else ''}; return; fi"
    for place in verb.places:
        yield f"    {_offered(place)}"
    if verb.parts:
        words = " ".join(quote(part.name) for part in verb.parts)
        yield f"    if ((${{#words[@]}} == 3)); then _hookproxy_words {words}; fi"
    yield "    :"  # no function is empty, nor ends as its last test did


def _offered(value: Value) -> str:
    match value.takes:
        case Takes.FILE:
            return '_hookproxy_files ""'
        case Takes.FOLDER:
            return '_hookproxy_files "" -d'
        case Takes.HOOKS:
            return "_hookproxy_hooks"
        case Takes.WORDS:
            return f"_hookproxy_words {' '.join(quote(word) for word in value.words)}"
        case _:
            return ":"
