"""Mistral Vibe's hooks: a list in a TOML file, each with a type, whose output is JSON or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import (
    NO_VERDICT,
    Document,
    Ended,
    Event,
    EventContext,
    HookResult,
    HookSpec,
    Order,
    Permission,
    Verdict,
)
from ..model.settings import ServerNamed
from .agent_documents import DocumentSigns, Members
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    HookDecision,
    HookOutput,
    is_own_tool,
    json_output,
    text_outcome,
)
from .dialect import Dialect, Effect, HookFile, HookList, UserFiles, WrittenEntry, for_names
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared import output as shared_output
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts, quoted
from .shared.events import AFTER_CALL, TURNS_UNSEEN
from .shared.hook_file import CANNOT_FIRE, Table

_PATH: Final = {"file_path": "path"}
TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("bash"),),
    "Read": (ToolSpelling("read"), ToolSpelling("read_file", _PATH)),
    "Write": (ToolSpelling("write_file", _PATH),),
    "Edit": (ToolSpelling("edit"), ToolSpelling("search_replace")),
    "MultiEdit": (ToolSpelling("edit"), ToolSpelling("search_replace")),
    "Grep": (ToolSpelling("grep"),),
    "WebFetch": (ToolSpelling("web_fetch"),),
    "WebSearch": (ToolSpelling("web_search"),),
}
"""Vibe's own tools, and their names in versions before 2.18."""


def _read_hook_file(file: HookFile) -> HookList:
    document = shared_hook_file.read_document(file.path, file.text)
    if "hooks" not in document.members:
        return FORMAT.read_hooks(file, document)
    seen: set[str] = set()
    return shared_hook_file.read_each(document, "hooks", lambda entry: _entry(file, entry, seen))


def _entry(file: HookFile, entry: Table, seen: set[str]) -> HookList:
    event_name, name = entry.choice("type", (*FORMAT.events, *FORMAT.unavailable), ""), entry.text("name")
    if name and name in seen:
        raise entry.error("name", f"{name!r} is used twice, and Vibe runs only the first of them", "give it another")
    seen.add(name)
    if event_name in FORMAT.unavailable:
        return HookList((), remarks=(f"{file.path}: {entry.path} ({event_name}) {CANNOT_FIRE}: {TURNS_UNSEEN}",))
    members = {key: value for key, value in entry.members.items() if key != "type"}
    return FORMAT.read_entry(file, event_name, entry, replace(entry, members=members))


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there is a list of hooks whose types are Vibe's, and at least one."""
    hooks = members.get("hooks")
    types = FORMAT.events.keys() | FORMAT.unavailable.keys()
    return (
        isinstance(hooks, list) and bool(hooks) and all(isinstance(h, dict) and h.get("type") in types for h in hooks)
    )


def _matcher(pattern: str) -> Callable[[str], bool]:
    """A pattern with wildcards, or after `re:` a regular expression, for the whole name in any case."""
    text = pattern.strip()
    if text.startswith("re:"):
        expression = re.compile(text[3:], re.IGNORECASE)
        return lambda name: expression.fullmatch(name) is not None
    return lambda name: not text or fnmatchcase(name.lower(), text.lower())


def _finish(_file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    strict = entry.flag("strict")
    before = hook.event is Event.PRE_TOOL_USE
    return replace(hook, fails_closed=strict and before, withholds=strict and not before)


FORMAT: Final = CommandFile(
    dialect="vibe",
    events=for_names({Event.PRE_TOOL_USE: "pre_tool before_tool", Event.POST_TOOL_USE: "post_tool after_tool"}),
    unavailable=for_names({TURNS_UNSEEN: "post_agent post_agent_turn"}),
    timeouts=Timeouts(60.0),
    entries=Entries(
        keys=("name", "command", "match", "timeout", "strict", "description"),
        also_on_failure=("post_tool", "after_tool"),
        label_key="name",
        finish=_finish,
        closed=("strict", True),
    ),
    matchers=Matchers(
        compile=_matcher,
        key="match",
        write=lambda names: f"re:(?:{'|'.join(map(re.escape, names))})" if names else "",
    ),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input. There are no variables."""
    session, outcome = context.session, context.outcome
    members: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",
        "cwd": shared_input.utf8(session.cwd),
        "parent_session_id": None,
        "hook_event_name": spec.event_name,
        "tool_name": shared_input.utf8(context.tool_name),
        "tool_call_id": shared_input.utf8(context.tool_use_id),
        "tool_input": msgspec.Raw(context.arguments),
    }
    if outcome is not None:
        text, failed = shared_input.utf8_result(context), bool(outcome.error)
        output = {"ok": True, "server": shared_input.utf8(session.server), "tool": context.tool, "text": text}
        members |= {
            "tool_status": "cancelled" if outcome.interrupted else "failure" if failed else "success",
            "tool_output": None if failed else output,
            "tool_output_text": text,
            "tool_error": shared_input.utf8(outcome.error) if failed else None,
            "duration_ms": float(outcome.duration_ms),
        }
    return Document(shared_input.json_line(members), env={})


class _Specific(Struct, frozen=True, kw_only=True):
    tool_input: msgspec.Raw = shared_output.NO_JSON
    additional_context: str | None = None


_NO_SPECIFIC: Final = _Specific()


class _JsonOutput(Struct, frozen=True, kw_only=True):
    """What a hook prints. Types are strict, other members are ignored."""

    decision: Literal["allow", "deny"] = "allow"
    reason: str | None = None
    system_message: str | None = None
    hook_specific_output: _Specific = _NO_SPECIFIC


_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_DECIDING: Final = {"decision": ("deny",), "reason": shared_output.ANY_TEXT}
FIELDS: Final = {
    "decision": Effect.DECIDES,
    "reason": Effect.REASON,
    "system_message": Effect.TELLS_PERSON,
    "hook_specific_output.tool_input": Effect.REWRITES,
    "hook_specific_output.additional_context": Effect.TELLS_MODEL,
}


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run: anything but no output and JSON of Vibe's is a failure. A denial counts with any exit
    status."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    stderr, stdout = shared_output.decode(result.stderr), shared_output.decode(result.stdout)
    verdict = shared_output.read_json(result, _DECODER, _DECIDING, lambda output: _verdict(spec, output))
    if result.code:
        failure = shared_output.exit_failure(result.code, stderr or stdout)
        return shared_output.invalid_output_verdict(verdict or NO_VERDICT, failure)
    if verdict is None:
        return Verdict(failure="printed something other than JSON") if stdout else NO_VERDICT
    return verdict


def _verdict(spec: HookSpec, output: _JsonOutput) -> Verdict:
    specific, reason = output.hook_specific_output, shared_output.truncate(output.reason or "")
    messages = shared_output.nonempty(output.system_message or "")
    denies = output.decision == "deny"
    if spec.event in AFTER_CALL:
        feedback = shared_output.nonempty(specific.additional_context or "")
        replacement = raw_json.encode(reason) if denies else None
        return Verdict(feedback=feedback, replacement=replacement, messages=messages)
    if denies:
        return Verdict(permission=Permission.DENY, reason=reason, messages=messages)
    arguments = shared_output.given(specific.tool_input)
    if arguments and not arguments.startswith(b"{"):
        return Verdict(failure="gave arguments that are not an object", messages=messages)
    return Verdict(arguments=arguments or None, messages=messages)


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Mistral's page on hooks, docs.mistral.ai/vibe/code/cli/hooks, as of autumn 2026, and the source of "
    "Vibe 2.18.4, vibe/core/hooks",
    output_fields=FIELDS,
    order=Order.PIPELINE,
    read_hook_file=_read_hook_file,
    write_input=write_input,
    read_output=read_output,
    mcp_tool_name=lambda server, tool: f"{server}_{tool}",
    tool_spellings=TOOL_SPELLINGS,
    recognises=_recognises,
    folders=(".vibe",),
    suffixes=(".toml",),
    constant_environment=True,
    user_files=(UserFiles(".vibe", "hooks.toml"),),
    project_files=(".vibe/hooks.toml",),
)


def _server_tool(_members: Members, name: str) -> tuple[str, str] | None:
    server, separator, tool = name.partition("_")
    return None if is_own_tool(AGENT_SIDE, name) or not separator else (server, tool)


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    output: dict[str, object] = {"system_message": decision.message} if decision.message else {}
    specific: dict[str, object] = {}
    if decision.permission is Permission.DENY:
        output |= {"decision": "deny", "reason": decision.reason or "denied by a hook"}
    elif decision.replacement is not None:
        output |= {"decision": "deny", "reason": raw_json.text_or_json(decision.replacement)}
    elif decision.arguments is not None:
        specific["tool_input"] = msgspec.Raw(decision.arguments)
    if decision.feedback and event.context.event is not Event.PRE_TOOL_USE:
        specific["additional_context"] = decision.feedback
    return json_output(output | ({"hook_specific_output": specific} if specific else {}))


def _refuse(reason: str) -> HookOutput:
    """JSON with status 0: another status lets the call go, unless the entry is strict."""
    return json_output({"decision": "deny", "reason": reason})


_FILE: Final = ".vibe/hooks.toml"


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """Tables of TOML, whose strings JSON spells as well."""
    tables = [
        {"name": f"hookproxy-{number}", "type": entry.event_name, **FORMAT.written(entry)}
        for number, entry in enumerate(entries, 1)
    ]
    lines = ("".join(f"{name} = {quoted(value)}\n" for name, value in table.items()) for table in tables)
    return {_FILE: "\n".join(f"[[hooks]]\n{table}" for table in lines)}


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("parent_session_id", "hook_event_name")),
    form=DocumentForm(
        server_named=ServerNamed.IN_TOOL_NAME,
        server_tool=_server_tool,
        tool_use_id="tool_call_id",
        failed=lambda members: members.text("tool_status") not in ("", "success"),
        outcome=lambda members, failed: text_outcome(
            (failed and members.text("tool_error")) or members.text("tool_output_text"), failed=failed
        ),
    ),
    file=_FILE,
    can=Can.REWRITE | Can.TELL_AFTER | Can.REPLACE | Can.BLOCK_AFTER,
    write_output=_write_output,
    write_hook_file=_write_hook_file,
    refuse=_refuse,
    also={Event.POST_TOOL_USE_FAILURE: "post_tool"},
    events={"pre_tool": Event.PRE_TOOL_USE, "post_tool": Event.POST_TOOL_USE},
)
