"""Recognises the arguments that are a command line, and tools that run commands although their names do not say so.

Law 1: a tool that may run commands is judged as Bash by everything that can refuse a call. So an argument that is named
like a command is enough, whatever the tool is called. Left out are tools for a database or in another language than the
shell's, as far as their names and arguments say so: `looks_like_command` finds them, so that they are reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from ..model.aliases import Alias
from ..model.command_line import Parts, is_command, is_program, shell_arguments, word_arguments


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_DATABASE: Final = _set(
    "sql db database mysql mariadb postgres postgresql pg psql sqlite mssql oracle mongo mongodb redis duckdb table "
    "collection query graph graphql cypher neo4j clickhouse snowflake bigquery cassandra cql elasticsearch opensearch "
    "influx influxdb prometheus promql kql dynamodb surrealdb etcd consul zookeeper kv memcached"
)
"""Words of tools whose commands are a database's."""

DATABASE_ARGUMENTS: Final = _set("sql query database table collection")
"""Arguments that say, where a call must have them, that a command is one for a database."""

_SHELLS: Final = _set(
    "shell bash sh zsh terminal powershell pwsh tty pty iterm xterm wezterm tmux subprocess popen ssh command"
)
"""Words of tools whose text arguments are commands, whatever these are called."""
_TYPED: Final = _set(
    "script code input line text exec execute run statement content keys data instruction body stdin payload chars "
    "inputtext"
)
"""What such tools call their commands."""
_FED: Final = _set("input inputtext stdin chars")
"""What tools call what a program gets that they have started, which may be a shell."""
_TYPES: Final = _set("write send type input feed interact")
"""Words of tools that type into a program that runs already, with one for that: it may be a shell."""
_STARTS: Final = _SHELLS | _set("system cli console")
"""Words of tools that have one text argument, which is a command then, whatever it is called."""
_STARTS_ALONE: Final = _set("run execute invoke spawn raw sys os system local remote host safe it sudo root script")
"""Names of nothing but these words say the same."""
_FED_ALONE: Final = _STARTS_ALONE | _set("unified interactive session process program")
"""Names of nothing but these words, one of them to execute: what such a tool is fed with may be for a shell."""
_OTHER_ACTS: Final = _set(
    "get list kill stop check search find explain validate describe delete remove update set add move copy rename "
    "watch cancel abort allow block history suggest generate preview parse analyze lint test register define schedule "
    "read view show open close connect disconnect attach detach create new resize clear capture status info log logs "
    "output wait focus select switch help docs documentation"
)
"""Words of tools that do something else with a shell or a system than to run a command there."""
_RUNS: Final = _set("run exec execv execve execute spawn launch invoke start batch")
"""Words of tools that run what some arguments name."""
_RUN: Final = _set("script scriptcontent exec executable program binary cli shell")
"""What such tools call it."""
_STARTED: Final = _set("path filename app application appname process processname")
"""What such tools call a program, if words for it stand beside it."""
_SOURCE_OF_ANY: Final = _set("source sourcecode snippet")
"""What tools call code that may be in any language."""
_OTHER_LANGUAGES: Final = _set(
    "browser page tab playwright puppeteer selenium webdriver sql query js javascript python node"
)
"""Words of tools whose scripts are in another language than a shell's."""

_EVALUATES: Final = _RUNS | _SHELLS | _set("eval evaluate query repl python javascript js node ruby lua sql perl php")
_SOURCE: Final = _set(
    "sql query statement statements code expression script source javascript js python snippet cypher"
)
"""What tools call a text in another language, if they have one of the words above."""

_CONTEXT: Final = _set(
    "cwd dir directory folder path workdir workingdir workingdirectory projectpath repo repopath repository env "
    "environment stdin input timeout session sessionid host hostname server user username container pod namespace "
    "context description"
)
"""Arguments that say where and how a command runs."""

TEXTS: Final = ("string", "array", "")
"""The types of arguments that may be a command."""
_NAMES_OF_THINGS: Final = ("id", "ids", "name", "names", "path", "paths", "url", "filter", "type", "language", "lang")
"""How names of arguments end that say which thing is meant."""
_LIST: Final = ("array", "")
_FILLERS: Final = _RUNS | _set("cli tool mcp server command commands cmd the a raw any")
_PROGRAMS: Final = _set(
    "git gh glab hg svn docker podman kubectl helm npm npx pnpm yarn bun deno node python python3 pip pip3 uv uvx "
    "poetry cargo rustc go make cmake mvn gradle terraform tofu ansible pulumi aws gcloud az gsutil ssh scp rsync "
    "curl wget rm mv cp ls cat find grep sed awk tar zip unzip chmod chown systemctl service journalctl apt brew "
    "dnf yum pacman snap jq ffmpeg adb xcodebuild vercel netlify heroku fly wrangler firebase supabase sudo su "
    "env xargs crontab kill pkill"
)
"""Programs after which tools are named that take only their words."""


def command_aliases(
    tool: str,
    commands: Sequence[str],
    types: Mapping[str, str],
    optional: Mapping[str, str],
    *,
    guessed: bool = False,
    listed: bool = True,
) -> Iterator[Alias]:
    """Yield the aliases of a tool that takes its command in these arguments, each for calls with another one of them.

    `types` are all its arguments, if it is `listed`; else those of a call. `optional` are the server's names of further
    arguments by Claude Code's names.
    """
    words = word_arguments(own for own, kind in types.items() if kind in TEXTS)
    shell = shell_arguments(own for own in types if own not in commands)
    parts = Parts(tuple(commands), words if listed else None, _program_of(tool) if guessed else "", shell)
    renamed = {known: name for known, name in optional.items() if name and known != name and known not in types}
    inside = len(commands) == 1 and types[commands[0]] in ("array", "object") and not is_command(commands[0])
    if len(commands) == 1 and not inside and commands[0] != "command" and _is_clear(commands[0], types):
        renamed["command"] = commands[0]
    for own in commands or words[:1]:
        yield Alias(
            tool, "Bash", renamed, automatic=True, needed=frozenset({own}), line="command", parts=parts, guessed=guessed
        )


def _is_clear(own: str, types: Mapping[str, str]) -> bool:
    """The argument can be renamed: no other one is, or may be taken for, `command` or this one."""
    others = {name.casefold() for name in types if name != own}
    return others.isdisjoint(("command", own.casefold()))


def named_commands(types: Mapping[str, str], choices: Collection[str] = (), *, listed: bool = True) -> list[str]:
    """The arguments that are named like a command, and a program beside a list of words; `choices` are fixed values.

    In a call of a tool that is not `listed`, an argument of any type counts: the agent chooses it.
    """
    words = word_arguments(own for own, kind in types.items() if kind in _LIST)
    texts = [own for own, kind in types.items() if (kind in TEXTS or not listed) and own not in choices]
    commands = [own for own in texts if is_command(own) and own not in words]
    if not commands and words:
        commands = [own for own in texts if is_program(own)][:1]
    return commands


def guessed_aliases(  # noqa: PLR0913  # all that is known of the tool
    tool: str,
    words: Collection[str],
    types: Mapping[str, str],
    choices: Collection[str] = (),
    required: Collection[str] = (),
    *,
    nested: Sequence[str] = (),
    listed: bool = True,
) -> list[Alias]:
    """Return the aliases of a tool that may run commands by what its arguments are called: good for refusing only.

    In the `nested` ones, it is a member that is called so.
    """
    own = named_commands(types, choices, listed=listed)
    commands: Sequence[str] | None = [*own, *(name for name in nested if name not in own)]
    commands = commands or _unusual_commands(tool, words, types, choices)
    if commands is None or _is_for_database(words, commands, required):
        return []
    return list(command_aliases(tool, commands, types, {}, guessed=True, listed=listed))


def _unusual_commands(
    tool: str, words: Collection[str], types: Mapping[str, str], choices: Collection[str]
) -> Sequence[str] | None:
    """The argument that is a command because the tool is a shell, or runs it. Empty: a list of words; None: none is."""
    texts = [own for own, kind in types.items() if kind in TEXTS and own not in choices]
    plain = {own: _plain(own) for own in texts}
    if _is_typed_into(words) and (typed := [own for own in texts if plain[own] in _TYPED]):
        return typed
    if "execute" in words and _FED_ALONE.issuperset(words) and (fed := [own for own in texts if plain[own] in _FED]):
        return fed
    runs = not _RUNS.isdisjoint(words) and _OTHER_LANGUAGES.isdisjoint(words)
    if runs and (started := [own for own in texts if plain[own] in _RUN or _is_script(plain[own])]):
        return started
    if runs and "code" in words and (sources := [own for own in texts if plain[own] in _SOURCE_OF_ANY]):
        return sources
    if runs and word_arguments(texts) and (programs := [own for own in texts if plain[own] in _STARTED]):
        return programs[:1]
    if list(plain.values()) == ["shell"]:
        return texts
    if only := _only_text(words, plain):
        return only
    runs = runs or not _SHELLS.isdisjoint(words) or bool(_program_of(tool)) or "argv" in plain.values()
    return () if runs and has_words_alone(types, TEXTS if _program_of(tool) else _LIST) else None


def _is_typed_into(words: Collection[str]) -> bool:
    """True if the texts that a tool gets may be typed into a shell."""
    if "stdin" in words or "repl" in words or not _SHELLS.isdisjoint(words):
        return True
    return "process" in words and not _TYPES.isdisjoint(words)


def _only_text(words: Collection[str], plain: Mapping[str, str]) -> Sequence[str]:
    """The one text that a tool gets whose name says that it runs something; `plain` are its texts' names by their own.

    Empty: it gets several, or the one is the name or the place of something.
    """
    starts = not _STARTS.isdisjoint(words) or (_STARTS_ALONE.issuperset(words) and bool(words))
    if not starts or not _OTHER_ACTS.isdisjoint(words) or not _OTHER_LANGUAGES.isdisjoint(words):
        return ()
    texts = [own for own, name in plain.items() if name not in _CONTEXT] or list(plain)
    return texts if len(texts) == 1 and not plain[texts[0]].endswith(_NAMES_OF_THINGS) else ()


def _is_script(plain: str) -> bool:
    return plain.startswith("script") and not plain.endswith(_NAMES_OF_THINGS)


def has_words_alone(types: Mapping[str, str], kinds: Collection[str] = _LIST) -> bool:
    """True if words, of one of these types, are all that a tool gets, besides where and how the command runs."""
    lists = word_arguments(own for own, kind in types.items() if kind in kinds)
    others = [own for own, kind in types.items() if kind in TEXTS and own not in lists and _plain(own) not in _CONTEXT]
    return bool(lists) and not others


def _plain(argument: str) -> str:
    return argument.lower().replace("_", "").replace("-", "")


def _is_for_database(words: Collection[str], commands: Sequence[str], required: Collection[str]) -> bool:
    if any("shell" in own.lower() or "bash" in own.lower() for own in commands):
        return False
    return not _DATABASE.isdisjoint(words) or not DATABASE_ARGUMENTS.isdisjoint(name.lower() for name in required)


def looks_like_command(words: Sequence[str], types: Mapping[str, str]) -> bool:
    """True if a tool runs something that could be a command, by its name and arguments: a statement, code, a script."""
    if named_commands(types):
        return True
    plain = {_plain(own) for own, kind in types.items() if kind in TEXTS}
    return not _EVALUATES.isdisjoint(words) and not plain.isdisjoint(_SOURCE)


def _program_of(tool: str) -> str:
    """The program after which a tool is named, such as `git` of `run_git`; empty: its name says none."""
    words = [word for word in tool.lower().replace("-", "_").split("_") if word and word not in _FILLERS]
    return words[0] if len(words) == 1 and words[0] in _PROGRAMS else ""
