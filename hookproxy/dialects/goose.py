"""Goose's hooks: the hooks.json of its plugins."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import NO_VERDICT, Document, Event, EventContext, HookResult, HookSpec, Order, Permission, Verdict
from .agent_documents import DocumentSigns, Members
from .agent_side import AgentSide, Can, DocumentForm, is_own_tool, output_by_status, session_of, text_outcome
from .dialect import Dialect, Effect, Files, HookFile, Plugin, UserFiles
from .shared import decision_json, exit_status, re2_regex
from .shared import input as shared_input
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts
from .shared.events import PROMPTS_UNSEEN, TURNS_UNSEEN, by_name
from .shared.hook_file import Table

_OBSERVES: Final = "it only observes Goose's own tools, as PreToolUse and PostToolUse do here"
TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("developer__shell"),),
    "Write": (ToolSpelling("developer__write", {"file_path": "path"}),),
    "Edit": (ToolSpelling("developer__edit", {"file_path": "path", "old_string": "before", "new_string": "after"}),),
    "LS": (ToolSpelling("developer__tree"),),
}
"""Goose's `developer` tools. It has none that only reads a file."""

_KEPT: Final = re.compile(r"[^a-z0-9_-]")


def mcp_tool_name(server: str, tool: str) -> str:
    """`EXTENSION__TOOL`; an extension's name is in lower case and without blanks."""
    return f"{_KEPT.sub('_', ''.join(server.split()).lower())}__{tool}"


def find_plugin(path: str, _files: Files) -> Plugin | None:
    """The plugin whose `hooks` folder the file is in."""
    folder, inner = os.path.split(os.path.dirname(path))
    return Plugin(folder) if inner == "hooks" else None


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with its plugin's folder. `on_failure` of any value but `allow` blocks."""
    root = file.plugin.root if file.plugin else os.path.dirname(file.path)
    closed = hook.event is Event.PRE_TOOL_USE and entry.text("on_failure", "allow") != "allow"
    return replace(hook, env=(("PLUGIN_ROOT", root),), fails_closed=closed)


FORMAT: Final = CommandFile(
    dialect="goose",
    events=by_name(
        Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.SESSION_START, Event.SESSION_END
    ),
    unavailable={
        "UserPromptSubmit": PROMPTS_UNSEEN,
        "Stop": TURNS_UNSEEN,
        "PreToolUseResult": "it only observes what PreToolUse hooks decided, which the audit has",
        **dict.fromkeys(("BeforeReadFile", "AfterFileEdit", "BeforeShellExecution", "AfterShellExecution"), _OBSERVES),
    },
    timeouts=Timeouts(30.0),
    entries=Entries(
        keys=("type", "command", "timeout", "on_failure"),
        grouped=True,
        finish=_finish,
        typed=True,
        closed=("on_failure", "block"),
    ),
    matchers=Matchers(
        notes=lambda _event, pattern, _matches: [re2_regex.UNREADABLE] * re2_regex.only_elsewhere(pattern),
        compile=re2_regex.unanchored_or_all,  # "*" is not valid, so its rule is skipped, as documented
    ),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input. There are no variables but `PLUGIN_ROOT`."""
    session = context.session
    members: dict[str, object] = {"event": spec.event_name, "session_id": shared_input.utf8(session.id)}
    if context.tool:
        members |= {
            "matcher_context": shared_input.utf8(context.tool_name),
            **shared_input.call_members(context),
            "working_dir": shared_input.utf8(session.cwd),
            "tool_call_id": shared_input.utf8(context.tool_use_id),
        }
    return Document(stdin=shared_input.json_line(members), env={})


_WORDS: Final = decision_json.DecisionWords(denies=("block",), allows=("allow",))


def _decision(spec: HookSpec, result: HookResult) -> Verdict | None:
    """A block counts with any exit status; of another hook that succeeds, only no output and `allow` are a decision."""
    if spec.event is not Event.PRE_TOOL_USE:
        return None
    verdict = decision_json.read(_WORDS, spec, result)
    if verdict is not None and verdict.permission is Permission.DENY:
        return verdict
    if result.code or not result.stdout.strip():
        return None
    if verdict is not None and verdict.permission is Permission.ALLOW:
        return NO_VERDICT  # a person may still be asked
    return Verdict(failure="printed something other than a decision, so it made none")


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="the page on hooks in block/goose, documentation/docs/guides/context-engineering/hooks.md, as of 2026",
    output_fields={"decision": Effect.DECIDES, "reason": Effect.REASON},
    order=Order.SERIAL,
    write_input=write_input,
    read_output=partial(exit_status.read_output, exit_status.ExitStatusRules(read_json=_decision)),
    mcp_tool_name=mcp_tool_name,
    tool_spellings=TOOL_SPELLINGS,
    shape_of="claude",
    folders=(".agents/plugins/*/hooks",),
    find_plugin=find_plugin,
    agents=("goose-cli",),
    constant_environment=True,
    user_files=(UserFiles(".agents/plugins", "*/hooks/hooks.json"),),
    project_files=(".agents/plugins/*/hooks/hooks.json",),
)


def _server_tool(_members: Members, name: str) -> tuple[str, str] | None:
    server, _, tool = name.partition("__")
    return None if is_own_tool(AGENT_SIDE, name) or not tool else (server, tool)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("matcher_context",)),
    form=DocumentForm(
        event=("event",),
        session=partial(session_of, cwd="working_dir"),
        triggers={Event.SESSION_START: "startup", Event.SESSION_END: "other"},
        server_tool=_server_tool,
        tool_use_id="tool_call_id",
        outcome=lambda _members, failed: text_outcome("the tool failed" if failed else "", failed=failed),
    ),
    file=".agents/plugins/hookproxy/hooks/hooks.json",
    can=Can.NOTHING,
    write_output=output_by_status,
)
