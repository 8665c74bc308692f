"""claw-code's hooks: its settings files, and what its hooks are told; `claw_answer` has what they say.

`claw` follows the hooks page: command strings, plain text, two events. `claw@current` is the program of August 2026,
which has a third event, matcher groups beside command strings, and reads JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...model.hooks import Document, Event, EventContext, HookSpec, Order, Outcome
from ...model.settings import ToolNames
from ..dialect import Dialect, HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared import input
from ..shared import input as shared_input
from ..shared.hook_file import Table
from ..shared.identity_variables import IDENTITY_VARIABLES
from . import output as claw_output

TIMEOUT: Final = 60.0
"""Seconds. claw-code waits for ever; MCP agents commonly give up on a call after a minute, and a hook that is still
running then judges a dead one."""

_FAILURE: Final = "PostToolUseFailure"
_GROUP_KEYS: Final = ("matcher", "hooks")
_HOOK_KEYS: Final = ("type", "command")
_ALL_MCP: Final = "mcp__*"
_EXPRESSION: Final = re.compile(r"[\^$()\[\]+?\\]|\.\*")
"""What stands in regular expressions, and in no name of a tool."""


class _Form(Struct, frozen=True):
    """What a file of one of the two dialects may hold."""

    dialect: str
    occasions: Mapping[str, tuple[Event, ...]]
    """The events as a file spells them, and when their hooks run."""
    groups: bool
    """Matcher groups may stand between the command strings."""


_PAGE: Final = _Form(
    "claw",
    {
        "PreToolUse": (Event.PRE_TOOL_USE,),
        "PostToolUse": (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE),  # HOOK_TOOL_IS_ERROR tells them apart
    },
    groups=False,
)
_CURRENT: Final = _Form(
    "claw@current",
    {
        "PreToolUse": (Event.PRE_TOOL_USE,),
        "PostToolUse": (Event.POST_TOOL_USE,),
        _FAILURE: (Event.POST_TOOL_USE_FAILURE,),
    },
    groups=True,
)


def _read_hook_file(form: _Form, file: HookFile) -> HookList:
    """The hooks of a settings file; its other settings are not ours to judge. Raises ConfigError."""
    settings = shared_hook_file.read_json(file.path, file.text)
    if "hooks" not in settings.members:
        return HookList((), (f"{file.path}: there are no hooks in it",))
    table = settings.table("hooks")
    found: list[HookList] = []
    for name in table.members:
        if name not in form.occasions:
            raise table.error(name, "is no event", _known(form, name))
        items = _items(table, name)
        found += [_item(form, file, name, items, key) for key in items.members]
    return shared_hook_file.merge(found)


def _known(form: _Form, name: str) -> str:
    """What a file may name in the place of `name`."""
    if name == _FAILURE:
        return f"{_CURRENT.dialect} has it; in {form.dialect}, PostToolUse hooks see failed calls as well"
    return shared_hook_file.suggestion(name, form.occasions) or f"the events are {', '.join(form.occasions)}"


def _items(table: Table, name: str) -> Table:
    """The items of a list, each as a member that is called by its place."""
    listed = table.members[name]
    if not isinstance(listed, list):
        raise table.error(name, "must be a list of commands", f'write "{name}": ["./guard.sh"]')
    return Table(table.where, table.path, {f"{name}[{at}]": item for at, item in enumerate(listed)})


def _item(form: _Form, file: HookFile, name: str, items: Table, key: str) -> HookList:
    """What one item of an event's list holds: a command, or a group of them."""
    if not isinstance(items.members[key], dict):
        return HookList(_hooks(form, file, name, items, key))
    if not form.groups:
        hint = f"{_CURRENT.dialect} reads matcher groups, and so does claude, each in its own way"
        raise items.error(key, "must be a command string, not an object", hint)
    group = items.table(key)
    group.require("hooks", '{"matcher": "…", "hooks": [{"type": "command", "command": "…"}]} is the shape')
    notes = [*_ignored(group, _GROUP_KEYS), *_doubtful(group)]
    hooks: list[HookSpec] = []
    for entry in group.tables("hooks"):
        entry.choice("type", ("command",), "command")
        entry.require("command")
        hooks += _hooks(form, file, name, entry, "command", group.text("matcher"))
        notes += _ignored(entry, _HOOK_KEYS)
    return HookList(tuple(hooks), tuple(notes))


def _hooks(form: _Form, file: HookFile, name: str, table: Table, key: str, matcher: str = "") -> tuple[HookSpec, ...]:
    """The hooks that one command is: one for each occasion of its event."""
    command = table.text(key)
    if not command.strip():
        raise table.error(key, "is empty", "name a command, or leave it out")
    place = table.path if key == "command" else table.place(key)
    return tuple(
        HookSpec(
            dialect=form.dialect,
            source=f"{file.path}: {place}",
            event=event,
            label=_label(command, place),
            matcher=matcher,
            matches=_matching(matcher),
            shell=command,
            cwd=file.project_dir,
            timeout=TIMEOUT,
            event_name=name,
        )
        for event in form.occasions[name]
    )


_PROGRAM: Final = re.compile(r"(?!(?:case|for|if|test|until|while)$)\w.*", re.DOTALL)
"""What may be a program's name, and is no word with which a shell script in one line begins."""


def _label(command: str, place: str) -> str:
    """The name of the program; of a script in one line its place in the file, which people can find."""
    label = shared_hook_file.command_label(command)
    return label if _PROGRAM.match(label) else place


def _matching(matcher: str) -> Callable[[str], bool]:
    """Names separated by commas or bars, without regard to case, `*` for anything; without a word: all."""
    names = _names(matcher)
    if not matcher.strip() or _ALL_MCP in names:  # each tool here is an MCP tool, whatever name its hooks see
        return lambda _name: True
    globs = "|".join(".*".join(re.escape(part) for part in re.split(r"\*+", name)) for name in names) or "(?!)"
    expression = re.compile(globs, re.ASCII | re.IGNORECASE | re.DOTALL)
    return lambda name: expression.fullmatch(name) is not None


def _names(matcher: str) -> list[str]:
    return [name.lower() for part in re.split(r"[,|]", matcher) if (name := part.strip())]


def _doubtful(group: Table) -> list[str]:
    """Matchers that may select nothing, told because nothing else would show it."""
    matcher = group.text("matcher")
    names = _names(matcher)
    remarks = []
    if matcher.strip() and not names:
        remarks.append("never matches: it names no tool")
    if _EXPRESSION.search(matcher):
        remarks.append("is no regular expression to claw-code: write names, with * for anything")
    if any(name.startswith("mcp__") and name != _ALL_MCP for name in names):
        remarks.append('is tried on the bare names of tools, unless [[use]] has tool_names = "mcp"')
    return [f"{group.where}: {group.place('matcher')} {matcher!r} {remark}" for remark in remarks]


def _ignored(table: Table, known: tuple[str, ...]) -> list[str]:
    """A sentence for each key that claw-code does not read: it may say what then does not hold."""
    return [
        f"{table.where}: {table.place(key)} is ignored, for claw-code has no such key" + (hint and f": {hint}")
        for key, hint in table.unknown(known).items()
    ]


def recognises(members: Mapping[str, object]) -> bool:
    """Lists of command strings under claw-code's names of events, with at least one command."""
    events = members.get("hooks")
    if not isinstance(events, dict) or not all(isinstance(listed, list) for listed in events.values()):
        return False
    commands = [command for listed in events.values() for command in listed]
    return (
        bool(commands)
        and events.keys() <= _CURRENT.occasions.keys()
        and all(isinstance(command, str) for command in commands)
    )


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input and the variables; the tool's input stands there in all three ways."""
    arguments = context.arguments.decode()
    failed = context.event is Event.POST_TOOL_USE_FAILURE
    ran = context.event is not Event.PRE_TOOL_USE
    output = input.result_text(context.outcome or Outcome()) if ran else None
    document = {
        "hook_event_name": spec.event_name,
        "tool_name": context.tool_name,
        "tool_input": msgspec.Raw(context.arguments),
        "tool_input_json": arguments,
        "tool_error" if spec.event_name == _FAILURE else "tool_output": output,
        "tool_result_is_error": failed,
    }
    env = {
        "HOOK_EVENT": spec.event_name,
        "HOOK_TOOL_NAME": context.tool_name,
        "HOOK_TOOL_INPUT": arguments,
        "HOOK_TOOL_IS_ERROR": "1" if failed else "0",
    }
    if output is not None:
        env["HOOK_TOOL_OUTPUT"] = output
    return Document(stdin=shared_input.json_line(document), env=env)


CLAW: Final = Dialect(
    name=_PAGE.dialect,
    described_by="claw-code's page on its hook system, as of April 2026",
    events={name: occasions[0] for name, occasions in _PAGE.occasions.items()},
    unavailable={},
    output_fields={},  # it knows plain text only
    order=Order.UNTIL_DENIED,
    default_timeout=TIMEOUT,
    tool_names=ToolNames.BARE,
    read_hook_file=partial(_read_hook_file, _PAGE),
    write_input=write_input,
    read_output=claw_output.read_output,
    recognises=recognises,
    folders=(".claw", ".claude"),
    agents=("runtime",),  # what claw-code calls itself where it speaks MCP
    variables=IDENTITY_VARIABLES["claw"],
)

CLAW_CURRENT: Final = replace(
    CLAW,
    name=_CURRENT.dialect,
    described_by="the source of claw-code, rust/crates/runtime, as of August 2026",
    events={name: occasions[0] for name, occasions in _CURRENT.occasions.items()},
    output_fields=claw_output.FIELDS,
    read_hook_file=partial(_read_hook_file, _CURRENT),
    read_output=claw_output.read_output_current,
    recognises=lambda _members: False,
)
